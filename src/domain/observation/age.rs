//! Age of the parts that a partial observation does not read.

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::guard::{Guard, passes};

/// Divisor that gives the part of the time for which a waiting run observes everything.
///
/// A cluster of 10,000 OSDs takes 5 s of the API server's CPU time for that, every 100 s.
const PARTS: i32 = 20;

/// Shortest time for which parts of an observation are kept.
///
/// A small cluster is observed in a tenth of a second. Without this limit, a run observed everything each two
/// seconds in the time after an act: a third of its complete observations found that it waits (8 OSDs).
/// Changes that they hold up take longer: a node becomes Ready, a Job of Rook ends, a volume is bound.
const SHORTEST: TimeDelta = TimeDelta::seconds(10);

/// Longest time for which parts of an observation are kept: what they hold up is seen late by so much.
///
/// Data moves for hours, and nothing else changes: the time doubles up to this one while nothing is done.
const LONGEST: TimeDelta = TimeDelta::minutes(2);

/// When something was read, and for how long it may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Age {
    read_at: DateTime<Utc>,
    limit: TimeDelta,
}

impl Age {
    /// Returns the age of what was read between these times.
    ///
    /// `before`: that of what was read before, if nothing was done since.
    pub fn new(began: DateTime<Utc>, ended: DateTime<Utc>, before: Option<Self>) -> Self {
        let twice = before.map_or_else(TimeDelta::zero, |before| before.limit * 2);
        let limit = ((ended - began) * PARTS).max(twice).clamp(SHORTEST, LONGEST);
        Self { read_at: began, limit }
    }

    /// Returns whether it may still be kept; not if the clock was set back.
    pub fn is_young(self, now: DateTime<Utc>) -> bool {
        passes(Guard::PartsExpire, (TimeDelta::zero()..self.limit).contains(&(now - self.read_at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observation_is_kept_for_twenty_times_its_duration() {
        let began: DateTime<Utc> = "2026-11-27T12:00:00Z".parse().unwrap();
        let is_young = |took: i64, age: i64| {
            let after = |milliseconds| began + TimeDelta::milliseconds(milliseconds);
            Age::new(began, after(took), None).is_young(after(age))
        };
        assert!(is_young(1_000, 19_999) && !is_young(1_000, 20_000));
        assert!(is_young(100, 9_999) && !is_young(100, 10_000), "ten seconds at least");
        assert!(is_young(60_000, 119_999) && !is_young(60_000, 120_000), "two minutes at most");
        assert!(!is_young(100, -1), "the clock was set back");
    }

    #[test]
    fn observation_is_kept_twice_as_long_while_nothing_is_done() {
        let began: DateTime<Utc> = "2026-11-28T12:00:00Z".parse().unwrap();
        let after = |seconds| began + TimeDelta::seconds(seconds);
        let first = Age::new(began, after(1), None);
        let second = Age::new(began, after(1), Some(first));
        assert!(second.is_young(after(39)) && !second.is_young(after(40)));
        let third = Age::new(began, after(1), Some(Age::new(began, after(1), Some(second))));
        assert!(third.is_young(after(119)) && !third.is_young(after(120)), "two minutes at most");
    }
}
