//! The last observation, which partial observations take the rest from.

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::observation::{Ceph, Kube, Observation};
use crate::domain::shared::Shared;

/// Divisor that gives the part of the time for which a waiting run observes everything.
///
/// A cluster of 10,000 OSDs takes 5 s of the API server's CPU time for that, every 100 s.
const PARTS: i32 = 20;

/// Longest time for which parts of an observation are kept: what they hold up is seen late by so much.
const LONGEST: TimeDelta = TimeDelta::minutes(2);

/// Last observation.
pub(super) struct Kept {
    /// Without PGs, which the session keeps and changes: they would be copied.
    pub(super) ceph: Ceph,
    pub(super) kube: Kube,
    /// Age of the parts that a partial observation does not read.
    pub(super) age: Age,
}

impl Kept {
    /// Keeps an observation.
    pub(super) fn of(seen: &Observation, age: Age) -> Self {
        let ceph = Ceph { pgs: Shared::default(), ..seen.ceph.clone() };
        Self { ceph, kube: seen.kube.clone(), age }
    }
}

/// When something was read, and for how long it may be kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Age {
    read_at: DateTime<Utc>,
    limit: TimeDelta,
}

impl Age {
    /// Returns the age of what was read between these times.
    pub(super) fn new(began: DateTime<Utc>, ended: DateTime<Utc>) -> Self {
        Self { read_at: began, limit: ((ended - began) * PARTS).clamp(TimeDelta::zero(), LONGEST) }
    }

    /// Returns whether it may still be kept; not if the clock was set back.
    pub(super) fn is_young(self, now: DateTime<Utc>) -> bool {
        (TimeDelta::zero()..self.limit).contains(&(now - self.read_at))
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
            Age::new(began, after(took)).is_young(after(age))
        };
        assert!(is_young(100, 1_999) && !is_young(100, 2_000));
        assert!(is_young(60_000, 119_999) && !is_young(60_000, 120_000), "two minutes at most");
        assert!(!is_young(-5, 0) && !is_young(100, -1), "the clock was set back");
    }
}
