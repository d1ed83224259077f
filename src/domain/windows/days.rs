//! Sets of weekdays.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Weekday;

use super::bad_window::BadWindow;

/// Names of the weekdays, as they are written.
const NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// A set of weekdays, from Monday: `Mon-Fri`, `Sat,Sun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Days([bool; 7]);

impl Days {
    /// All weekdays.
    pub const ALL: Self = Self([true; 7]);

    /// Returns whether the weekday is in the set.
    pub fn contains(self, day: Weekday) -> bool {
        let number = usize::from(day.to_monday_zero_offset().unsigned_abs());
        self.0.get(number).is_some_and(|is_in| *is_in)
    }

    fn insert(&mut self, number: usize) {
        if let Some(is_in) = self.0.get_mut(number % 7) {
            *is_in = true;
        }
    }
}

impl FromStr for Days {
    type Err = BadWindow;

    /// Parses weekdays and ranges of weekdays, separated by commas.
    ///
    /// A range may include the end of the week.
    fn from_str(text: &str) -> Result<Self, BadWindow> {
        let mut days = Self([false; 7]);
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            let last = if last < first { last + 7 } else { last };
            (first..=last).for_each(|day| days.insert(day));
        }
        Ok(days)
    }
}

/// Returns the number of a weekday, from 0 for Monday.
fn number(name: &str) -> Result<usize, BadWindow> {
    let found = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name));
    found.ok_or_else(|| BadWindow::Weekday(name.to_owned()))
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> = NAMES.iter().zip(self.0).collect();
        let runs = named.split(|(_, is_in)| !is_in).filter(|run| !run.is_empty());
        let words = runs.map(|run| match run {
            [(first, _), _, .., (last, _)] if run.len() > 2 => format!("{first}-{last}"),
            run => run.iter().map(|(name, _)| **name).collect::<Vec<_>>().join(","),
        });
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}
