//! A time that is known within bounds.

use std::fmt;

use chrono::TimeDelta;

use crate::domain::units::time;

/// A time that is known to lie between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Lower bound.
    pub shortest: TimeDelta,
    /// Upper bound.
    pub longest: TimeDelta,
}

impl Span {
    /// Returns a time that is known.
    pub fn exactly(time: TimeDelta) -> Self {
        Self { shortest: time, longest: time }
    }

    /// Returns the span that contains both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { shortest: self.shortest.min(other.shortest), longest: self.longest.max(other.longest) }
    }

    /// Returns the time until both are over.
    #[must_use]
    pub fn longer(self, other: Self) -> Self {
        Self { shortest: self.shortest.max(other.shortest), longest: self.longest.max(other.longest) }
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: TimeDelta, other| one.checked_add(&other).unwrap_or(TimeDelta::MAX);
        Self { shortest: sum(self.shortest, other.shortest), longest: sum(self.longest, other.longest) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shortest, longest) = (time(self.shortest), time(self.longest));
        if shortest == longest { write!(f, "about {longest}") } else { write!(f, "{shortest} to {longest}") }
    }
}
