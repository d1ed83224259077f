//! Data that moves to or from one OSD, by samples of what is left.

use std::collections::VecDeque;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::osd::OsdId;
use crate::domain::pace::span::Span;

/// Time without any progress after which a backfill counts as stalled.
///
/// A backfill that `mclock` or a person throttles still moves an object of a PG within minutes: the default
/// of `osd_recovery_sleep_hdd` is 0.1 s. The statistics of PGs arrive every few seconds.
pub const STALLS_AFTER: TimeDelta = TimeDelta::minutes(10);

/// Time within which the PGs of a new OSD have peered, and report what they miss.
///
/// Later, more data that is missing was written by clients, and is no sign of progress.
const PEERS_WITHIN: TimeDelta = TimeDelta::minutes(2);

/// Number of samples that are kept: more do not improve the estimate, and they are stored in a ConfigMap.
const MOST_SAMPLES: usize = 24;

/// Number of samples by which the time is divided: half of the most, so that some room is left.
const HALF_OF_THE_SAMPLES: i32 = 12;

/// Backfill of one OSD, or its emptying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    /// The OSD.
    pub osd: OsdId,
    /// Whether the data moves away from the OSD, which is emptied before its stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub away: bool,
    /// Whether the data that moves away stays away: the OSD is removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) stays_away: bool,
    /// Seconds that the OSD was emptied for before.
    #[serde(default)]
    pub(super) emptied_seconds: i64,
    /// Time of the first sample.
    pub since: DateTime<Utc>,
    /// Bytes that were left at first, or the most that were left since: clients write meanwhile.
    pub total_bytes: u64,
    /// Bytes that are left.
    pub left_bytes: u64,
    /// Time of the last sample that had less left than all before.
    pub progressed_at: DateTime<Utc>,
    /// The least that was left: (bytes, PGs).
    least: (u64, u64),
    /// The most that one sample had less left than the sample before.
    largest_step: u64,
    /// Samples (time, bytes left) at about equal distances.
    samples: VecDeque<(DateTime<Utc>, u64)>,
}

impl Backfill {
    /// Creates the backfill from its first sample.
    pub fn new(osd: OsdId, at: DateTime<Utc>, left_bytes: u64, pgs: u64) -> Self {
        let samples = VecDeque::from([(at, left_bytes)]);
        let least = (left_bytes, pgs);
        Self {
            osd,
            away: false,
            stays_away: false,
            emptied_seconds: 0,
            since: at,
            total_bytes: left_bytes,
            left_bytes,
            progressed_at: at,
            least,
            largest_step: 0,
            samples,
        }
    }

    /// Creates the emptying of an OSD, which is removed or not, from its first sample.
    pub fn away(osd: OsdId, is_removal: bool, at: DateTime<Utc>, left_bytes: u64, pgs: u64) -> Self {
        Self { away: true, stays_away: is_removal, ..Self::new(osd, at, left_bytes, pgs) }
    }

    /// Adds a sample.
    pub fn add(&mut self, at: DateTime<Utc>, left_bytes: u64, pgs: u64) {
        self.largest_step = self.largest_step.max(self.left_bytes.saturating_sub(left_bytes));
        self.left_bytes = left_bytes;
        if left_bytes > self.total_bytes {
            // What came before says nothing: PGs still peered, or clients write faster than the backfill.
            (self.total_bytes, self.samples) = (left_bytes, VecDeque::new());
            if at - self.since < PEERS_WITHIN {
                (self.least, self.progressed_at) = ((left_bytes, pgs), at);
            }
        }
        if left_bytes < self.least.0 || pgs < self.least.1 {
            self.progressed_at = at;
        }
        self.least = (self.least.0.min(left_bytes), self.least.1.min(pgs));
        self.keep((at, left_bytes));
    }

    /// Keeps a sample at a distance from the one before that grows with the time: the distances stay about
    /// equal.
    fn keep(&mut self, sample: (DateTime<Utc>, u64)) {
        let began = self.samples.front().map_or(sample.0, |(at, _)| *at);
        let distance = (sample.0 - began) / HALF_OF_THE_SAMPLES;
        let before_last = self.samples.iter().rev().nth(1).map(|(at, _)| *at);
        if let (Some(before), Some(last)) = (before_last, self.samples.back_mut())
            && last.0 - before < distance
        {
            *last = sample;
            return;
        }
        self.samples.push_back(sample);
        if self.samples.len() > MOST_SAMPLES {
            let last = self.samples.len() - 1;
            let samples = std::mem::take(&mut self.samples).into_iter().enumerate();
            self.samples =
                samples.filter(|(n, _)| n % 2 == 0 || *n == last).map(|(_, sample)| sample).collect();
        }
    }

    /// Returns the bytes that were moved.
    pub fn moved_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.left_bytes)
    }

    /// Returns the bytes that move later: those that left an emptied OSD move back to the new one, if there
    /// is to be one.
    pub fn later_bytes(&self) -> u64 {
        if self.away && !self.stays_away { self.total_bytes } else { 0 }
    }

    /// Returns since when there was no progress, if this counts as a stall.
    pub fn stalled_since(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        (self.left_bytes > 0 && now - self.progressed_at >= STALLS_AFTER).then_some(self.progressed_at)
    }

    /// Returns the rate in bytes per second, from the first sample to the last progress.
    ///
    /// The time of a stall does not count: the rate says how fast the data moved while it moved.
    pub fn rate(&self) -> Option<u64> {
        let began = self.samples.front().map_or(self.since, |(at, _)| *at);
        rate(self.total_bytes.saturating_sub(self.least.0), self.progressed_at - began)
    }

    /// Returns the time that the rest takes, as the shortest and the longest of its estimates.
    ///
    /// The estimates are those of the whole backfill, and of its last half if that has enough steps: a
    /// rate that changes makes the span wider. So does data that arrives in large steps, as whole PGs: the
    /// last step may just have arrived.
    pub fn time_left(&self) -> Option<Span> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let half = first.0 + (last.0 - first.0) / 2;
        let middle = self.samples.iter().rfind(|(at, _)| *at <= half)?;
        let between = |one: &(DateTime<Utc>, u64), less: u64| {
            rate(one.1.saturating_sub(last.1).saturating_sub(less), last.0 - one.0)
        };
        let recent = between(middle, 0).filter(|_| middle.1.saturating_sub(last.1) > self.largest_step * 4);
        let estimates = [between(first, 0), between(first, self.largest_step), recent];
        let times = estimates.into_iter().flatten().map(|rate| time_for(self.left_bytes, rate));
        times.map(Span::exactly).reduce(Span::with)
    }
}

/// Returns bytes per second; none if nothing was moved or no time has passed.
pub(in crate::domain) fn rate(bytes: u64, time: TimeDelta) -> Option<u64> {
    let millis = u64::try_from(time.num_milliseconds()).ok().filter(|millis| *millis > 0)?;
    Some(bytes.saturating_mul(1000) / millis).filter(|rate| *rate > 0)
}

/// Returns the time that so many bytes take at a rate.
pub(in crate::domain) fn time_for(bytes: u64, rate: u64) -> TimeDelta {
    let seconds = bytes.checked_div(rate).and_then(|seconds| i64::try_from(seconds).ok());
    seconds.and_then(TimeDelta::try_seconds).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    /// Returns a backfill of 600 GiB at 1 GiB a minute after so many minutes.
    fn steady(minutes: u64) -> Backfill {
        let mut backfill = Backfill::new(OsdId(5), at(0), 600 * GIB, 100);
        for minute in 1..=minutes {
            backfill.add(at(i64::try_from(minute).unwrap()), (600 - minute) * GIB, 100);
        }
        backfill
    }

    #[test]
    fn steady_backfill_ends_when_its_rate_says() {
        let backfill = steady(120);
        assert_eq!((backfill.moved_bytes(), backfill.rate()), (120 * GIB, Some(GIB / 60)));
        let left = backfill.time_left().unwrap();
        assert_eq!((left.shortest.num_minutes(), left.longest.num_minutes()), (480, 484));
        assert_eq!(steady(0).time_left(), None, "one sample has no rate");
    }

    #[test]
    fn changed_rate_widens_the_estimate() {
        let mut backfill = steady(60);
        for minute in 61..=120 {
            backfill.add(at(minute), 540 * GIB - u64::try_from(minute - 60).unwrap() * GIB / 4, 100);
        }
        let left = backfill.time_left().unwrap();
        // 525 GiB: at the 0.625 GiB a minute of both hours, or at the 0.25 of the last one.
        assert!(left.shortest.num_minutes() <= 840 && left.longest.num_minutes() >= 1700, "{left:?}");
    }

    #[test]
    fn stalled_backfill_is_known_after_ten_minutes() {
        let mut backfill = steady(60);
        for minute in 61..75 {
            backfill.add(at(minute), 540 * GIB, 100);
        }
        assert_eq!(backfill.stalled_since(at(69)), None);
        assert_eq!(backfill.stalled_since(at(70)), Some(at(60)));
        assert_eq!(backfill.rate(), Some(GIB / 60), "the rate before the stall");
        // Clients that write make more bytes missing: a PG that is done is progress all the same.
        backfill.add(at(75), 541 * GIB, 99);
        assert_eq!(backfill.stalled_since(at(75)), None);
    }

    #[test]
    fn throttled_backfill_is_not_stalled() {
        let mut backfill = Backfill::new(OsdId(5), at(0), 600 * GIB, 100);
        for minute in 1..600 {
            backfill.add(at(minute), 600 * GIB - u64::try_from(minute).unwrap() * 4096, 100);
            assert_eq!(backfill.stalled_since(at(minute)), None);
        }
        assert!(backfill.samples.len() <= MOST_SAMPLES);
    }
}
