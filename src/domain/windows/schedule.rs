//! All windows of a run, in one time zone.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};

use super::bad_window::BadWindow;
use super::days::Days;
use super::window::Window;
use super::zone::Zone;

/// Days in which the next opening is searched.
///
/// A window of one weekday opens within a week, unless the clock is set forward over it. Two more weeks are
/// for a time zone that also skips a date, as Pacific/Apia did in 2011.
const SEARCHED: u16 = 22;

/// Times at which work on an OSD may start.
///
/// If there is no window, work may start at any time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Windows {
    windows: Vec<Window>,
    zone: Zone,
}

impl Windows {
    /// Joins windows, and reads all of them in this time zone.
    pub fn join<'a>(all: impl IntoIterator<Item = &'a Self>, zone: Zone) -> Self {
        Self { windows: all.into_iter().flat_map(|one| one.windows.iter().copied()).collect(), zone }
    }

    /// Returns whether there is no window.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Returns each window.
    pub fn each(&self) -> &[Window] {
        &self.windows
    }

    /// Returns the time zone in which the windows are read.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns whether a window is open at this time, or there is no window.
    pub fn is_open_at(&self, at: DateTime<Utc>) -> bool {
        let (day, minute) = self.zone.clock(at);
        self.windows.is_empty() || self.windows.iter().any(|window| window.contains(day, minute))
    }

    /// Returns when a window opens next after a time.
    ///
    /// There is none if there is no window, or if one is always open.
    pub fn opens_after(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        // A clock that is set back at midnight shows yesterday's date once more.
        let first = self.zone.date(at).yesterday().ok()?;
        let dates = first.series(jiff::Span::new().days(1)).take(SEARCHED.into());
        let begins = dates.flat_map(|date| {
            let of_the_day = self.windows.iter().filter(move |window| window.days.contains(date.weekday()));
            of_the_day.flat_map(move |window| self.zone.times(date, window.from))
        });
        let changes = self.zone.changes(at, at + TimeDelta::days(SEARCHED.into()));
        let opens = |time: &DateTime<Utc>| {
            *time > at && self.is_open_at(*time) && !self.is_open_at(*time - TimeDelta::nanoseconds(1))
        };
        begins.chain(changes).filter(opens).min()
    }
}

impl FromStr for Windows {
    type Err = BadWindow;

    /// Parses windows in UTC, separated by commas.
    ///
    /// A comma after a weekday separates the weekdays of one window.
    fn from_str(text: &str) -> Result<Self, BadWindow> {
        let (mut windows, mut parts) = (Vec::new(), Vec::new());
        for part in text.split(',').map(str::trim) {
            parts.push(part);
            if part.contains(':') {
                windows.push(std::mem::take(&mut parts).join(",").parse()?);
            }
        }
        let rest = parts.join(",");
        match (parts.is_empty(), rest.parse::<Days>()) {
            (true, _) => Ok(Self { windows, zone: Zone::default() }),
            (false, Ok(_)) => Err(BadWindow::NoTimes(rest)),
            (false, Err(_)) => Err(BadWindow::Form(rest)),
        }
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows: Vec<_> = self.windows.iter().map(ToString::to_string).collect();
        write!(f, "{} {}", windows.join(", "), self.zone)
    }
}
