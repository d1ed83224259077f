//! Figures of a run for metrics, from its events: the same values that `status` shows.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::act::{Act, NodeAct};
use crate::domain::ledger::Ledger;
use crate::domain::next::{Saving, Summary};
use crate::domain::temporary;
use crate::report::{Event, RunProgress};

/// Figures of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// Time of the last iteration that observed the cluster.
    pub iteration_at: Option<DateTime<Utc>>,
    /// Whether an event had the ledger: without it, nothing is known about OSDs and changes.
    pub has_ledger: bool,
    /// OSDs by state.
    pub osds: Osds,
    /// OSDs that are down because of their migration.
    pub down: u64,
    /// Bytes left to move.
    pub left_bytes: u64,
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Bytes per second.
    pub rate: Option<u64>,
    /// Whether the backfill in progress has stalled.
    pub stalled: bool,
    /// Temporary changes, and whether they are in place.
    pub changes: BTreeMap<&'static str, bool>,
    /// Code of the halt.
    pub halted: Option<&'static str>,
    /// Whether the run finished.
    pub finished: bool,
    /// Time that this process waited, by code.
    pub waited: BTreeMap<&'static str, TimeDelta>,
    /// Node Jobs that this process created, by task.
    pub node_jobs: BTreeMap<&'static str, u64>,
    /// Failures that this process reported, by kind.
    pub failures: BTreeMap<&'static str, u64>,
    /// Code of the present wait, and its time.
    pub waits: Option<(&'static str, DateTime<Utc>)>,
}

/// Number of OSDs by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Osds {
    /// Migrated or created by the run.
    pub done: u64,
    /// In progress.
    pub in_progress: u64,
    /// To migrate.
    pub queued: u64,
    /// Quarantined after a failure.
    pub quarantined: u64,
    /// Never migrated as the cluster is now.
    pub refused: u64,
}

impl Figures {
    /// Takes up an event, after the progress has taken it up.
    pub fn add(&mut self, event: &Event<'_>, progress: &RunProgress, now: DateTime<Utc>) {
        if let Some((code, since)) = self.waits.take() {
            let waited = self.waited.entry(code).or_default();
            *waited += (now - since).max(TimeDelta::zero());
        }
        match event {
            Event::Waiting { wait, ledger, .. } => {
                self.waits = Some((wait.code(), now));
                self.of_ledger(ledger);
                self.observed(now);
            }
            Event::Saved { why, ledger, .. } => {
                if let Saving::Attempt { after: Some(_), .. } = why {
                    self.count_failure("node-job");
                }
                self.of_ledger(ledger);
                self.observed(now);
            }
            Event::Done(act) => {
                if let Act::Node(NodeAct::Agent { request, .. }) = act {
                    *self.node_jobs.entry(request.task.code()).or_default() += 1;
                }
                self.observed(now);
            }
            Event::NotDone { .. } => {
                self.count_failure("act");
                self.observed(now);
            }
            Event::Conflict => self.observed(now),
            Event::Blind(_) => self.count_failure("observation"),
            Event::Lease(_) => {}
            Event::Finished(summary) => {
                self.finished = true;
                self.observed(now);
                self.of_progress(progress, now);
                return self.of_summary(summary);
            }
            Event::Halted(halt) => {
                self.halted = Some(halt.code());
                self.observed(now);
            }
        }
        self.of_progress(progress, now);
    }

    fn observed(&mut self, now: DateTime<Utc>) {
        self.iteration_at = Some(now);
    }

    fn count_failure(&mut self, kind: &'static str) {
        *self.failures.entry(kind).or_default() += 1;
    }

    fn of_ledger(&mut self, ledger: &Ledger) {
        self.has_ledger = true;
        self.osds.in_progress = count(ledger.in_flight().count());
        self.osds.quarantined = count(ledger.quarantined().count());
        self.down = count(ledger.records.values().filter(|record| record.down_since.is_some()).count());
        self.changes = temporary::ALL.iter().map(|one| (one.name, (one.is_saved)(ledger))).collect();
    }

    fn of_progress(&mut self, progress: &RunProgress, now: DateTime<Utc>) {
        let (pace, of_run) = (&progress.pace, progress.pace.progress(now));
        self.osds.done = pace.done;
        self.osds.queued = pace.queue.osds;
        self.osds.refused = pace.queue.refused;
        self.left_bytes = of_run.left_bytes;
        self.moved_bytes = of_run.moved_bytes;
        self.rate = of_run.rate;
        self.stalled = of_run.stalled.is_some();
    }

    /// Takes up the end of a run, which may have observed nothing but the end.
    fn of_summary(&mut self, summary: &Summary) {
        // The summary of `fence` has only its outcome.
        if summary.fence.is_some() {
            return;
        }
        self.has_ledger = true;
        let stays = |name: &'static str| (name, summary.changes.contains(name));
        self.changes = temporary::ALL.iter().map(|one| stays(one.name)).collect();
        self.down = count(summary.down);
        self.osds.quarantined = count(summary.quarantined.len());
        self.osds.refused = count(summary.refused.len());
        self.osds.queued = count(summary.unconfirmed.len() + summary.skipped.len());
        self.osds.in_progress = 0;
        (self.left_bytes, self.rate, self.stalled) = (0, None, false);
    }
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
