//! One window: weekdays and a range of times.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Weekday;

use super::bad_window::BadWindow;
use super::days::Days;

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// A range of times on some weekdays, from a minute to before another one: `Mon-Fri 22:00-05:00`.
///
/// A window that crosses midnight belongs to the weekday on which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// Weekdays on which the window begins.
    pub(super) days: Days,
    /// Minute of the day at which the window begins.
    pub(super) from: u32,
    /// Minute of the day before which the window ends; on the next day if it is not after `from`.
    to: u32,
}

impl Window {
    /// Returns whether the window is open if the clock shows this weekday and this minute of the day.
    pub(super) fn contains(self, day: Weekday, minute: u32) -> bool {
        let (since_today, until_today) = (minute >= self.from, minute < self.to);
        if self.from < self.to {
            self.days.contains(day) && since_today && until_today
        } else {
            (self.days.contains(day) && since_today) || (self.days.contains(day.previous()) && until_today)
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { days, from, to } = self;
        if *days != Days::ALL {
            write!(f, "{days} ")?;
        }
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

impl FromStr for Window {
    type Err = BadWindow;

    fn from_str(text: &str) -> Result<Self, BadWindow> {
        let (days, times) = match text.rsplit_once(' ') {
            Some((days, times)) => (Some(days), times),
            None => (None, text),
        };
        let ends = times.split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        match (ends, days.map(str::parse).transpose()?) {
            // The end of the day may be written as 24:00.
            (None | Some((DAY, _)), _) => Err(BadWindow::Form(text.to_owned())),
            (Some((from, to)), _) if from == to => Err(BadWindow::Empty(text.to_owned())),
            (Some((from, to)), days) => Ok(Self { days: days.unwrap_or(Days::ALL), from, to }),
        }
    }
}

/// Returns `HH:MM`, two digits each, as a minute of the day.
fn minute(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| {
        let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<u32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minute = hours * 60 + minutes;
    (minutes < 60 && minute <= DAY).then_some(minute)
}
