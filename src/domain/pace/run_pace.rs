//! OSDs and bytes of a whole run.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::backfill::{Backfill, rate, time_for};
use super::span::Span;
use crate::domain::gate::{self, Own};
use crate::domain::ledger::RefusedStep;
use crate::domain::osd::OsdId;
use crate::domain::plan::{candidates, refused, removals_due};
use crate::domain::view::View;

/// Time for an OSD in addition to its backfill, as long as none was measured: stop, wipe, prepare, start.
///
/// Node Jobs took one to three minutes on disks of all kinds.
pub(in crate::domain) const ASSUMED_OVERHEAD: TimeDelta = TimeDelta::minutes(2);

/// OSDs that a run has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Queue {
    /// Number of OSDs.
    pub osds: u64,
    /// Bytes used on them, twice for OSDs that are emptied first: these bytes move away, and back.
    pub bytes: u64,
    /// Number of OSDs in progress.
    pub in_progress: u64,
    /// Number of quarantined OSDs.
    pub quarantined: u64,
    /// Number of OSDs that are never migrated as the cluster is now: they are not among `osds`.
    #[serde(default)]
    pub refused: u64,
}

impl Queue {
    /// Returns the OSDs that a run has yet to migrate, as far as it selects them.
    pub fn of(view: View<'_>) -> Self {
        let own = Own::of(&gate::accepted(view), view.seen);
        let is_emptied = |osd: OsdId| own.is_to_be_emptied(osd, view.policy.empty);
        let cannot_be_emptied = |osd: OsdId| {
            let refused = view.ledger.refused(osd, &view.policy.run);
            refused.is_some_and(|refused| refused.step == RefusedStep::Emptying)
        };
        let is_never = |osd: OsdId| cannot_be_emptied(osd) || (own.never(osd).is_some() && !is_emptied(osd));
        let all = candidates(view).into_iter().map(|(osd, _)| osd);
        let (never, osds): (Vec<OsdId>, Vec<OsdId>) = all.partition(|osd| is_never(*osd));
        let refused = refused(view).len() + never.len();
        let used = |osd: &OsdId| {
            let bytes = view.slot(*osd).and_then(|slot| slot.used_bytes).unwrap_or(0);
            if is_emptied(*osd) { bytes.saturating_mul(2) } else { bytes }
        };
        // The data of a removed OSD moves once, and a dead OSD has none to move.
        let removals: Vec<OsdId> = removals_due(view).collect();
        let leaves = |osd: &OsdId| view.slot(*osd).filter(|slot| slot.up)?.used_bytes;
        let leaving: u64 = removals.iter().filter_map(leaves).sum();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            osds: count(osds.len() + removals.len()),
            bytes: osds.iter().map(used).sum::<u64>().saturating_add(leaving),
            in_progress: count(view.ledger.in_flight().count()),
            quarantined: count(view.ledger.quarantined().count()),
            refused: count(refused),
        }
    }
}

/// Pace of a run, from its first OSD on: it is stored with the status, and survives the pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunPace {
    /// uid of the Job: another Job begins again.
    pub job: String,
    /// Time of the first event. None in data of earlier versions.
    #[serde(default)]
    pub began: Option<DateTime<Utc>>,
    /// Whether migrations were confirmed at some time of the run. False in data of earlier versions.
    #[serde(default)]
    pub confirmed: bool,
    /// OSDs that are done.
    pub done: u64,
    /// Bytes that the backfills of these OSDs moved.
    pub moved_bytes: u64,
    /// Seconds that these backfills took, one after the other.
    pub backfill_seconds: i64,
    /// Seconds in which one of these backfills or several were in progress.
    #[serde(default)]
    pub busy_seconds: i64,
    /// End of the last of these backfills.
    #[serde(default)]
    pub busy_until: Option<DateTime<Utc>>,
    /// Seconds that these OSDs took in addition, from their record to their end.
    pub overhead_seconds: i64,
    /// Backfill or emptying of each OSD in progress that moves data.
    #[serde(default)]
    pub backfills: BTreeMap<OsdId, Backfill>,
    /// OSDs that are not done, at the last sample.
    pub queue: Queue,
}

impl RunPace {
    /// Adds a sample of the backfill of an OSD.
    pub fn backfills(&mut self, osd: OsdId, at: DateTime<Utc>, left_bytes: u64, pgs: u64) {
        let known = self.backfills.get_mut(&osd);
        if let Some(backfill) = known.filter(|known| !known.away) {
            return backfill.add(at, left_bytes, pgs);
        }
        // PGs that still peer miss nothing yet.
        if left_bytes == 0 && pgs > 0 {
            return;
        }
        let mut backfill = Backfill::new(osd, at, left_bytes, pgs);
        if let Some(emptied) = self.backfills.remove(&osd) {
            backfill.emptied_seconds = self.ended(emptied.since, emptied.progressed_at);
            self.moved_bytes += emptied.total_bytes;
        }
        self.backfills.insert(osd, backfill);
    }

    /// Adds a sample of the emptying of an OSD, which is removed or not.
    pub fn empties(
        &mut self,
        (osd, is_removal): (OsdId, bool),
        at: DateTime<Utc>,
        left_bytes: u64,
        pgs: u64,
    ) {
        match self.backfills.get_mut(&osd).filter(|known| known.away) {
            Some(emptying) => emptying.add(at, left_bytes, pgs),
            None => drop(self.backfills.insert(osd, Backfill::away(osd, is_removal, at, left_bytes, pgs))),
        }
    }

    /// Drops the backfill or emptying of an OSD that is given up: how its data moves on is not observed.
    pub fn gives_up(&mut self, osd: OsdId) {
        if let Some(known) = self.backfills.remove(&osd) {
            self.moved_bytes += known.moved_bytes();
            // Bytes without their time would make a rate that no disk has.
            self.ended(known.since, known.progressed_at);
        }
    }

    /// Counts an OSD that is quarantined.
    pub fn is_quarantined(&mut self, osd: OsdId) {
        self.gives_up(osd);
        self.queue.in_progress = self.queue.in_progress.saturating_sub(1);
        self.queue.quarantined += 1;
    }

    /// Drops the backfills of OSDs that are no longer in progress.
    pub fn keeps(&mut self, is_in_progress: impl Fn(OsdId) -> bool) {
        let gone: Vec<_> = self.backfills.keys().filter(|osd| !is_in_progress(**osd)).copied().collect();
        for osd in gone {
            self.gives_up(osd);
        }
    }

    /// Counts an OSD that is done, after a time since its record.
    pub fn is_done(&mut self, osd: OsdId, took: TimeDelta, now: DateTime<Utc>) {
        self.done += 1;
        // The queue is counted again with the next wait. A run that ends has none.
        self.queue.in_progress = self.queue.in_progress.saturating_sub(1);
        let Some(backfill) = self.backfills.remove(&osd) else {
            self.overhead_seconds += took.num_seconds();
            return;
        };
        // A removed OSD is done some time after its last byte has moved away.
        let moved_until = if backfill.away { backfill.progressed_at } else { now };
        let backfilled = self.ended(backfill.since, moved_until);
        self.moved_bytes += backfill.total_bytes;
        self.overhead_seconds += (took.num_seconds() - backfilled - backfill.emptied_seconds).max(0);
    }

    /// Counts the time of a backfill or an emptying that has ended, and returns it in seconds.
    fn ended(&mut self, since: DateTime<Utc>, at: DateTime<Utc>) -> i64 {
        let took = (at - since).num_seconds();
        self.backfill_seconds += took;
        let alone_since = self.busy_until.map_or(since, |until| until.max(since));
        self.busy_seconds += (at - alone_since).num_seconds().max(0);
        self.busy_until = self.busy_until.max(Some(at));
        took
    }

    /// Returns the progress, with the time that the rest takes.
    pub fn progress(&self, now: DateTime<Utc>) -> Progress {
        let current = || self.backfills.values();
        let before = rate(self.moved_bytes, TimeDelta::seconds(self.busy_seconds));
        let now_moved = current().filter_map(Backfill::rate).reduce(u64::saturating_add);
        // All of them are waited for.
        let lefts = current().map(Backfill::time_left).collect::<Option<Vec<_>>>();
        let osd_left = lefts.and_then(|lefts| lefts.into_iter().reduce(Span::longer));
        let later = current().map(Backfill::later_bytes).fold(0, u64::saturating_add);
        let queue_left = [before, now_moved]
            .into_iter()
            .flatten()
            .map(|rate| Span::exactly(time_for(self.queue.bytes.saturating_add(later), rate)))
            .reduce(Span::with)
            .map(|span| span.plus(Span::exactly(self.overheads())));
        let nothing = Span::exactly(TimeDelta::zero());
        let is_idle = self.backfills.is_empty();
        let all_left = match (queue_left, osd_left) {
            (Some(queue), Some(osd)) => Some(queue.plus(osd)),
            (Some(queue), None) if is_idle => Some(queue),
            (None, osd) if self.queue.osds == 0 && later == 0 => osd.or(is_idle.then_some(nothing)),
            (Some(_) | None, _) => None,
        };
        let left_bytes = current().map(|backfill| backfill.left_bytes).fold(later, u64::saturating_add);
        let moved_bytes = current().map(Backfill::moved_bytes).fold(self.moved_bytes, u64::saturating_add);
        let stalled = |backfill: &Backfill| Some((backfill.stalled_since(now)?, backfill.osd));
        Progress {
            rate: now_moved.or(before),
            osd_left,
            all_left,
            left_bytes: left_bytes.saturating_add(self.queue.bytes),
            moved_bytes,
            stalled: current().filter_map(stalled).min(),
        }
    }

    /// Returns the time that the queued OSDs take in addition to their backfills.
    ///
    /// OSDs that are migrated in parallel share it, as those before did.
    fn overheads(&self) -> TimeDelta {
        let done = i64::try_from(self.done).unwrap_or(i64::MAX);
        let of_one = self.overhead_seconds.checked_div(done).map_or(ASSUMED_OVERHEAD, TimeDelta::seconds);
        let queued = i32::try_from(self.queue.osds).unwrap_or(i32::MAX);
        let all = of_one.checked_mul(queued).unwrap_or(TimeDelta::MAX);
        let shared = all.num_seconds().checked_mul(self.busy_seconds);
        let shared = shared.and_then(|seconds| seconds.checked_div(self.backfill_seconds));
        shared.and_then(TimeDelta::try_seconds).unwrap_or(all)
    }
}

/// Progress of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Rate in bytes per second: of the backfills and emptyings in progress, else of those before.
    pub rate: Option<u64>,
    /// Time that all backfills and emptyings in progress still take.
    pub osd_left: Option<Span>,
    /// Time that all OSDs still take, as if no gate ever made the run wait.
    pub all_left: Option<Span>,
    /// Bytes that are left to move.
    pub left_bytes: u64,
    /// Bytes that were moved.
    pub moved_bytes: u64,
    /// Time since which a backfill in progress has stalled, and its OSD: that of the longest stall.
    pub stalled: Option<(DateTime<Utc>, OsdId)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    #[test]
    fn time_left_of_all_is_backfills_and_overheads() {
        let mut pace = RunPace::default();
        pace.backfills(OsdId(1), at(0), 60 * GIB, 8);
        pace.backfills(OsdId(1), at(60), 0, 0);
        pace.queue = Queue { in_progress: 1, ..Queue::default() };
        pace.is_done(OsdId(1), TimeDelta::minutes(65), at(60));
        assert_eq!(pace.queue.in_progress, 0, "a run that ends has no OSD in progress");
        pace.queue = Queue { osds: 3, bytes: 120 * GIB, ..Queue::default() };
        let progress = pace.progress(at(61));
        assert_eq!((pace.done, progress.moved_bytes, progress.left_bytes), (1, 60 * GIB, 120 * GIB));
        // 120 GiB at 1 GiB a minute, and 5 minutes for each of the three.
        assert_eq!(progress.all_left, Some(Span::exactly(TimeDelta::minutes(135))));
    }

    #[test]
    fn time_left_is_unknown_before_anything_moved() {
        let mut pace =
            RunPace { queue: Queue { osds: 3, bytes: GIB, ..Queue::default() }, ..RunPace::default() };
        assert_eq!((pace.progress(at(0)).all_left, pace.progress(at(0)).rate), (None, None));
        pace.backfills(OsdId(1), at(0), 60 * GIB, 8);
        assert_eq!(pace.progress(at(1)).all_left, None);
        pace.backfills(OsdId(1), at(30), 30 * GIB, 8);
        let left = pace.progress(at(30)).all_left.unwrap();
        assert_eq!(left.shortest.num_minutes(), 30 + 1 + 3 * ASSUMED_OVERHEAD.num_minutes());
    }

    #[test]
    fn emptied_osd_moves_its_data_twice() {
        let mut pace = RunPace::default();
        pace.empties((OsdId(1), false), at(0), 60 * GIB, 8);
        pace.empties((OsdId(1), false), at(30), 30 * GIB, 4);
        let progress = pace.progress(at(30));
        assert_eq!((progress.left_bytes, progress.moved_bytes), (90 * GIB, 30 * GIB));
        // 30 GiB away at 1 GiB a minute, or the last half of it at that rate, and 60 GiB back.
        assert_eq!(progress.all_left.unwrap().shortest, TimeDelta::minutes(90));
        pace.empties((OsdId(1), false), at(60), 0, 0);
        assert_eq!(pace.progress(at(70)).stalled, None, "an empty OSD waits for its stop");
        pace.backfills(OsdId(1), at(70), 60 * GIB, 8);
        assert_eq!((pace.progress(at(70)).left_bytes, pace.moved_bytes), (60 * GIB, 60 * GIB));
        pace.backfills(OsdId(1), at(130), 0, 0);
        pace.is_done(OsdId(1), TimeDelta::minutes(135), at(130));
        assert_eq!((pace.moved_bytes, pace.backfill_seconds), (120 * GIB, 120 * 60));
        assert_eq!(pace.overhead_seconds, 15 * 60);
    }

    /// Covers three OSDs of 60 GiB at 1 GiB a minute, begun ten minutes apart, with three more in the queue.
    #[test]
    fn osds_in_parallel_share_the_time_that_is_left() {
        let queue = Queue { osds: 3, bytes: 180 * GIB, in_progress: 3, ..Queue::default() };
        let mut pace = RunPace { queue, ..RunPace::default() };
        for minute in 0..=30 {
            for (osd, begin) in [(1, 0), (2, 10), (3, 20)] {
                let Ok(done) = u64::try_from(minute - begin) else { continue };
                pace.backfills(OsdId(osd), at(minute), (60 - done) * GIB, 8);
            }
        }
        let progress = pace.progress(at(30));
        assert_eq!((progress.moved_bytes, progress.left_bytes), (60 * GIB, 300 * GIB));
        assert_eq!(progress.rate, Some(3 * (GIB / 60)));
        // The last one has 50 GiB left; the queue takes 60 minutes at three times the rate, and 3 times 2.
        assert_eq!(progress.all_left.unwrap().shortest.num_minutes(), 50 + 60 + 6);
        for (osd, begin) in [(1, 0), (2, 10), (3, 20)] {
            pace.is_done(OsdId(osd), TimeDelta::minutes(66), at(begin + 60));
        }
        assert_eq!((pace.backfill_seconds, pace.busy_seconds), (180 * 60, 80 * 60));
        let progress = pace.progress(at(90));
        // 180 GiB in 80 minutes, and 6 minutes for each OSD, of which 2.25 were in progress on average.
        assert_eq!(progress.rate, Some(180 * GIB / (80 * 60)));
        assert_eq!(progress.all_left, Some(Span::exactly(TimeDelta::minutes(80 + 8))));
    }

    #[test]
    fn stall_of_one_osd_is_seen_while_others_move() {
        let mut pace = RunPace::default();
        for minute in 0..30 {
            pace.backfills(OsdId(1), at(minute), 60 * GIB, 8);
            pace.backfills(OsdId(2), at(minute), (60 - u64::try_from(minute).unwrap()) * GIB, 8);
        }
        let progress = pace.progress(at(29));
        assert_eq!((progress.stalled, progress.osd_left), (Some((at(0), OsdId(1))), None));
        pace.keeps(|osd| osd == OsdId(2));
        assert_eq!(pace.progress(at(29)).stalled, None, "a quarantined OSD");
    }

    #[test]
    fn quarantined_osd_is_in_progress_no_more() {
        let queue = Queue { in_progress: 1, ..Queue::default() };
        let mut pace = RunPace { queue, ..RunPace::default() };
        pace.backfills(OsdId(1), at(0), GIB, 8);
        pace.is_quarantined(OsdId(1));
        assert_eq!((pace.queue.in_progress, pace.queue.quarantined), (0, 1));
        assert!(pace.backfills.is_empty());
    }

    #[test]
    fn finished_run_has_no_time_left() {
        assert_eq!(RunPace::default().progress(at(0)).all_left, Some(Span::exactly(TimeDelta::zero())));
    }
}
