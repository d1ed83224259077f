//! Progress of a run, from its events: what the log and `status` add to a backfill and to the end of an OSD.

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::ledger::Ledger;
use crate::domain::next::{Saving, Wait};
use crate::domain::pace::{Backfill, Progress, Queue, RunPace};
use crate::domain::stall;
use crate::domain::units::{size, time};
use crate::domain::view::View;
use crate::report::Event;

/// Time between two counts of the OSDs that are left: a count classifies all OSDs.
const COUNT_AFTER: TimeDelta = TimeDelta::seconds(10);

/// Progress of a run, kept up to date with its events.
#[derive(Debug, Clone, Default)]
pub struct RunProgress {
    /// Pace, as it is stored with the status.
    pub pace: RunPace,
    /// Cause of the present stall.
    pub stall: Option<String>,
    counted_at: Option<DateTime<Utc>>,
}

impl RunProgress {
    /// Begins the progress of a Job, or continues that of an earlier pod of the same Job.
    pub fn of_job(job: &str, stored: Option<RunPace>) -> Self {
        let pace = stored.filter(|pace| pace.job == job);
        let pace = pace.unwrap_or_else(|| RunPace { job: job.to_owned(), ..RunPace::default() });
        Self { pace, ..Self::default() }
    }

    /// Takes up an event, and returns what its message has to add.
    ///
    /// `waits`: see [`Event::waits`].
    pub fn add(&mut self, event: &Event<'_>, waits: &[Wait], now: DateTime<Utc>) -> Option<String> {
        self.note(event, now);
        match event {
            Event::Waiting { wait, policy, ledger, seen } => {
                if self.counted_at.is_none_or(|at| now - at >= COUNT_AFTER) {
                    self.pace.queue = Queue::of(View { policy, ledger, seen });
                    self.counted_at = Some(now);
                }
                let is_in_progress = |osd| ledger.in_flight().any(|record| record.osd == osd);
                self.pace.keeps(is_in_progress);
                let mut is_moving = self.sample(wait, ledger, now);
                for other in waits.iter().filter(|other| *other != *wait) {
                    is_moving |= self.sample(other, ledger, now);
                }
                if !is_moving {
                    self.stall = None;
                    return None;
                }
                let progress = self.pace.progress(now);
                self.stall = progress.stalled.map(|(_, osd)| stall::cause(osd, seen));
                backfill_text(&self.pace, &progress, self.stall.as_deref(), now)
            }
            Event::Saved { osd: Some(osd), why: Saving::Emptied, ledger } => {
                self.pace.empties((*osd, ledger.removal(*osd).is_some()), now, 0, 0);
                None
            }
            Event::Saved { osd: Some(osd), why: Saving::NotEmptied { .. }, .. } => {
                self.pace.gives_up(*osd);
                None
            }
            Event::Saved { osd: Some(osd), why: Saving::Quarantine { .. }, .. } => {
                self.pace.is_quarantined(*osd);
                None
            }
            Event::Saved {
                osd: Some(osd),
                why: Saving::Closing | Saving::Uncleared { .. } | Saving::Removed,
                ledger,
            } => {
                let began = ledger.records.get(osd)?.milestones.first().map(|(_, at)| *at)?;
                let bytes = self.pace.backfills.get(osd);
                let bytes = bytes.map(|backfill| format!(", {} moved", size(backfill.total_bytes)));
                self.pace.is_done(*osd, now - began, now);
                self.counted_at = None;
                let (done, took) = (self.pace.done, time(now - began));
                let others = ledger.in_flight().filter(|record| !record.closing).count() as u64;
                let total = done + self.pace.queue.osds + others + self.pace.queue.quarantined;
                Some(format!("{done} of {total} OSDs; {took}{}", bytes.unwrap_or_default()))
            }
            Event::Saved { .. }
            | Event::Conflict
            | Event::Done(_)
            | Event::NotDone { .. }
            | Event::Blind(_)
            | Event::Lease(_)
            | Event::Finished(_)
            | Event::Halted(_) => {
                self.stall = None;
                None
            }
        }
    }

    /// Notes when the run began, and whether migrations were confirmed.
    fn note(&mut self, event: &Event<'_>, now: DateTime<Utc>) {
        self.pace.began.get_or_insert(now);
        self.pace.confirmed |= is_confirmed(event);
    }

    /// Adds a sample if the wait is for data that moves; returns whether it is.
    #[expect(clippy::wildcard_enum_match_arm, reason = "two waits move data")]
    fn sample(&mut self, wait: &Wait, ledger: &Ledger, now: DateTime<Utc>) -> bool {
        match wait {
            Wait::ActiveClean { osd, pgs, bytes, .. } => self.pace.backfills(*osd, now, *bytes, *pgs),
            Wait::Emptying { osd, pgs, bytes, .. } => {
                self.pace.empties((*osd, ledger.removal(*osd).is_some()), now, *bytes, *pgs);
            }
            _ => return false,
        }
        true
    }
}

/// Returns whether migrations are confirmed, as far as the event shows it.
#[expect(clippy::wildcard_enum_match_arm, reason = "two events show it")]
fn is_confirmed(event: &Event<'_>) -> bool {
    match event {
        Event::Waiting { policy, ledger, seen, .. } => View { policy, ledger, seen }.is_confirmed(),
        // Migrations and new OSDs are begun only while they are confirmed.
        Event::Saved { osd: Some(osd), why: Saving::Record, ledger } => ledger.removal(*osd).is_none(),
        _ => false,
    }
}

/// Returns rate and time left of the backfills and emptyings in progress, or the longest stall.
pub fn backfill_text(
    pace: &RunPace,
    progress: &Progress,
    stall: Option<&str>,
    now: DateTime<Utc>,
) -> Option<String> {
    let moving: Vec<_> = moving(pace).collect();
    let (total, moved) = moving.iter().fold((0_u64, 0_u64), |(total, moved), backfill| {
        (total.saturating_add(backfill.total_bytes), moved.saturating_add(backfill.moved_bytes()))
    });
    let rate = progress.rate.map(|rate| format!("{}/s", size(rate)));
    if let Some((since, osd)) = progress.stalled {
        let before = rate.map(|rate| format!(" ({rate} before)")).unwrap_or_default();
        let cause = stall.unwrap_or("the cause is not known");
        let of_osd = if moving.len() > 1 { format!(" of {osd}") } else { String::new() };
        return Some(format!("no progress{of_osd} for {}{before}: {cause}", time(now - since)));
    }
    let percent = moved.saturating_mul(100).checked_div(total)?;
    let of_osds = if moving.len() > 1 { format!(" of {} OSDs", moving.len()) } else { String::new() };
    let left = progress.osd_left.map(|left| format!("{left} left"));
    let parts = [Some(format!("{percent} % of {}{of_osds}", size(total))), rate, left];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Returns the backfills and emptyings that have data to move, and backfills that have ended just now.
pub fn moving(pace: &RunPace) -> impl Iterator<Item = &Backfill> {
    pace.backfills.values().filter(|backfill| !backfill.away || backfill.left_bytes > 0)
}

/// Inserts a detail into a message, before the code at its end.
pub fn with_detail(message: &str, detail: Option<&str>) -> String {
    match (detail, message.rsplit_once(" [")) {
        (None, _) => message.to_owned(),
        (Some(detail), Some((text, code))) => format!("{text}; {detail} [{code}"),
        (Some(detail), None) => format!("{message}; {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_stands_before_the_code() {
        assert_eq!(with_detail("osd.5 is backfilling [x]", Some("9 %")), "osd.5 is backfilling; 9 % [x]");
        assert_eq!(with_detail("no code", Some("9 %")), "no code; 9 %");
        assert_eq!(with_detail("osd.5 [x]", None), "osd.5 [x]");
    }

    #[test]
    fn progress_continues_with_the_next_pod_of_the_job_only() {
        let stored = || Some(RunPace { job: "a".to_owned(), done: 3, ..RunPace::default() });
        assert_eq!(RunProgress::of_job("a", stored()).pace.done, 3);
        assert_eq!(RunProgress::of_job("b", stored()).pace.done, 0);
    }
}
