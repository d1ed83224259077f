//! OSDs and bytes of a whole run.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::backfill::{Backfill, rate, time_for};
use super::span::Span;
use crate::domain::gate::{self, Own};
use crate::domain::ledger::RefusedStep;
use crate::domain::osd::OsdId;
use crate::domain::plan::{candidates, refused};
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
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            osds: count(osds.len()),
            bytes: osds.iter().map(used).sum(),
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
    /// OSDs that are done.
    pub done: u64,
    /// Bytes that the backfills of these OSDs moved.
    pub moved_bytes: u64,
    /// Seconds that these backfills took.
    pub backfill_seconds: i64,
    /// Seconds that these OSDs took in addition, from their record to their end.
    pub overhead_seconds: i64,
    /// Backfill or emptying in progress.
    pub backfill: Option<Backfill>,
    /// Seconds that the emptying of the OSD in progress took, which are among `backfill_seconds`.
    #[serde(default)]
    pub emptied_seconds: i64,
    /// OSDs that are not done, at the last sample.
    pub queue: Queue,
}

impl RunPace {
    /// Adds a sample of the backfill of an OSD.
    pub fn backfills(&mut self, osd: OsdId, at: DateTime<Utc>, left_bytes: u64, pgs: u64) {
        // PGs that still peer miss nothing yet.
        if left_bytes == 0
            && pgs > 0
            && self.backfill.as_ref().is_none_or(|known| known.osd != osd || known.away)
        {
            return;
        }
        if let Some(backfill) = self.backfill.as_mut().filter(|known| known.osd == osd && !known.away) {
            return backfill.add(at, left_bytes, pgs);
        }
        let emptied = self.backfill.replace(Backfill::new(osd, at, left_bytes, pgs));
        let emptied = emptied.filter(|emptied| emptied.osd == osd);
        let took = |emptied: &Backfill| (emptied.progressed_at - emptied.since).num_seconds();
        self.emptied_seconds = emptied.as_ref().map_or(0, took);
        self.backfill_seconds += self.emptied_seconds;
        self.moved_bytes += emptied.map_or(0, |emptied| emptied.total_bytes);
    }

    /// Adds a sample of the emptying of an OSD.
    pub fn empties(&mut self, osd: OsdId, at: DateTime<Utc>, left_bytes: u64, pgs: u64) {
        match &mut self.backfill {
            Some(emptying) if emptying.osd == osd && emptying.away => emptying.add(at, left_bytes, pgs),
            other => *other = Some(Backfill::away(osd, at, left_bytes, pgs)),
        }
    }

    /// Drops the emptying of an OSD that is given up: its data moves back, which is not observed.
    pub fn gives_up(&mut self, osd: OsdId) {
        let moved = self.backfill.take_if(|known| known.osd == osd).map(|known| known.moved_bytes());
        self.moved_bytes += moved.unwrap_or(0);
    }

    /// Counts an OSD that is done, after a time since its record.
    pub fn is_done(&mut self, osd: OsdId, took: TimeDelta, now: DateTime<Utc>) {
        self.done += 1;
        // The queue is counted again with the next wait. A run that ends has none.
        self.queue.in_progress = self.queue.in_progress.saturating_sub(1);
        let backfill = self.backfill.take().filter(|backfill| backfill.osd == osd);
        let backfilled = backfill.as_ref().map_or(TimeDelta::zero(), |backfill| now - backfill.since);
        self.moved_bytes += backfill.map_or(0, |backfill| backfill.total_bytes);
        self.backfill_seconds += backfilled.num_seconds();
        let emptied = std::mem::take(&mut self.emptied_seconds);
        self.overhead_seconds += ((took - backfilled).num_seconds() - emptied).max(0);
    }

    /// Returns the progress, with the time that the rest takes.
    pub fn progress(&self, now: DateTime<Utc>) -> Progress {
        let current = self.backfill.as_ref();
        let before = rate(self.moved_bytes, TimeDelta::seconds(self.backfill_seconds));
        let rates = [before, current.and_then(Backfill::rate)];
        let osd_left = current.and_then(Backfill::time_left);
        let later = current.map_or(0, Backfill::later_bytes);
        let done = i64::try_from(self.done).unwrap_or(i64::MAX);
        let overhead = self.overhead_seconds.checked_div(done).map_or(ASSUMED_OVERHEAD, TimeDelta::seconds);
        let queued = i32::try_from(self.queue.osds).unwrap_or(i32::MAX);
        let overheads = overhead.checked_mul(queued).unwrap_or(TimeDelta::MAX);
        let queue_left = rates
            .into_iter()
            .flatten()
            .map(|rate| Span::exactly(time_for(self.queue.bytes.saturating_add(later), rate)))
            .reduce(Span::with)
            .map(|span| span.plus(Span::exactly(overheads)));
        let nothing = Span::exactly(TimeDelta::zero());
        let all_left = match (queue_left, osd_left, current) {
            (Some(queue), Some(osd), _) => Some(queue.plus(osd)),
            (Some(queue), None, None) => Some(queue),
            (None, osd, _) if self.queue.osds == 0 && later == 0 => {
                osd.or(current.is_none().then_some(nothing))
            }
            _ => None,
        };
        Progress {
            rate: current.and_then(Backfill::rate).or(before),
            osd_left,
            all_left,
            left_bytes: current
                .map_or(0, |backfill| backfill.left_bytes)
                .saturating_add(later)
                .saturating_add(self.queue.bytes),
            moved_bytes: self.moved_bytes.saturating_add(current.map_or(0, Backfill::moved_bytes)),
            stalled_since: current.and_then(|backfill| backfill.stalled_since(now)),
        }
    }
}

/// Progress of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Rate in bytes per second: of the backfill or emptying in progress, else of those before.
    pub rate: Option<u64>,
    /// Time that the backfill or emptying in progress still takes.
    pub osd_left: Option<Span>,
    /// Time that all OSDs still take, as if no gate ever made the run wait.
    pub all_left: Option<Span>,
    /// Bytes that are left to move.
    pub left_bytes: u64,
    /// Bytes that were moved.
    pub moved_bytes: u64,
    /// Time since which the backfill in progress has stalled.
    pub stalled_since: Option<DateTime<Utc>>,
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
        pace.empties(OsdId(1), at(0), 60 * GIB, 8);
        pace.empties(OsdId(1), at(30), 30 * GIB, 4);
        let progress = pace.progress(at(30));
        assert_eq!((progress.left_bytes, progress.moved_bytes), (90 * GIB, 30 * GIB));
        // 30 GiB away at 1 GiB a minute, or the last half of it at that rate, and 60 GiB back.
        assert_eq!(progress.all_left.unwrap().shortest, TimeDelta::minutes(90));
        pace.empties(OsdId(1), at(60), 0, 0);
        assert_eq!(pace.progress(at(70)).stalled_since, None, "an empty OSD waits for its stop");
        pace.backfills(OsdId(1), at(70), 60 * GIB, 8);
        assert_eq!((pace.progress(at(70)).left_bytes, pace.moved_bytes), (60 * GIB, 60 * GIB));
        pace.backfills(OsdId(1), at(130), 0, 0);
        pace.is_done(OsdId(1), TimeDelta::minutes(135), at(130));
        assert_eq!((pace.moved_bytes, pace.backfill_seconds), (120 * GIB, 120 * 60));
        assert_eq!(pace.overhead_seconds, 15 * 60);
    }

    #[test]
    fn finished_run_has_no_time_left() {
        assert_eq!(RunPace::default().progress(at(0)).all_left, Some(Span::exactly(TimeDelta::zero())));
    }
}
