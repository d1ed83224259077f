//! One window: weekdays and a range of times.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Weekday;

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

/// Error of a text that is not a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWindow {
    /// The text is not `HH:MM-HH:MM`, with or without weekdays.
    #[error(
        "{0:?} is not a window. Write HH:MM-HH:MM, with weekdays before it if the window is not daily: 22:00-05:00, \
         Mon-Fri 22:00-05:00, Sat,Sun 00:00-24:00"
    )]
    Form(String),
    /// A word before the times is not a weekday.
    #[error(
        "{0:?} is not a weekday. Write Mon, Tue, Wed, Thu, Fri, Sat or Sun: Mon-Fri 22:00-05:00, Sat,Sun 00:00-24:00"
    )]
    Weekday(String),
    /// Weekdays without times.
    #[error("{0} has no times. For whole days, write {0} 00:00-24:00")]
    NoTimes(String),
    /// The window ends when it begins, which is ambiguous: it could be a whole day or nothing.
    #[error("the window {0} ends when it begins. For a whole day, write 00:00-24:00")]
    Empty(String),
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
