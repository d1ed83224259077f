//! The whole ledger.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::bounds::leave_place;
use super::{Attempt, Emptying, LeftPvcs, NodeWork, Record, Refusals, Refused, RefusedStep, Run};
use crate::domain::inspection::RecordId;
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::removal::Removal;

/// Format of the stored ledger: a newer one is a halt, never a best effort.
pub const FORMAT: u32 = 1;

/// Maximum number of OSDs in progress: 64 records of 8 KiB fit into a save of 1,000 KiB (ConfigMap: 1 MiB).
pub const MAX_OPEN: usize = 64;

/// Maximum number of records, quarantined too: one that failed before Stop (no PGs yet) takes 1 to 2 KiB.
pub const MAX_RECORDS: usize = 256;

/// The whole ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ledger {
    /// State of the run as a whole.
    pub run: Run,
    /// Open records: in progress or quarantined.
    pub records: BTreeMap<OsdId, Record>,
    /// Progress of each node with its new OSDs, in the run of the last inventory.
    pub nodes: BTreeMap<NodeName, NodeWork>,
}

impl Ledger {
    /// Returns the records in progress.
    pub fn in_flight(&self) -> impl Iterator<Item = &Record> {
        self.records.values().filter(|record| record.quarantine.is_none())
    }

    /// Returns whether the ledger has this record.
    pub fn has(&self, id: &RecordId) -> bool {
        self.records.values().any(|record| record.id == *id)
    }

    /// Returns the quarantined records.
    pub fn quarantined(&self) -> impl Iterator<Item = &Record> {
        self.records.values().filter(|record| record.quarantine.is_some())
    }

    /// Returns the ledger with this record in place of the OSD's former one.
    #[must_use]
    pub fn with(&self, record: Record) -> Self {
        let mut ledger = self.clone();
        ledger.records.insert(record.osd, record);
        ledger
    }

    /// Returns whether one more record has a place beside those in progress.
    ///
    /// All records as JSON are measured, so ask only when a record is about to be opened.
    pub fn has_place(&self) -> bool {
        self.in_flight().count() < MAX_OPEN
            && self.records.len() < MAX_RECORDS
            && leave_place(self.records.values())
    }

    /// Returns why nothing begins any more, if quarantined OSDs have all the records.
    pub fn full_of_quarantined(&self) -> Option<String> {
        let first = self.quarantined().next()?.osd;
        if self.in_flight().next().is_some() || self.has_place() {
            return None;
        }
        let number = self.records.len();
        Some(format!(
            "{number} OSDs are quarantined, and the ledger has no place for another one. Fix what they are \
             quarantined for, then retry each of them, the first with: osd-migrate -n NAMESPACE retry {first}"
        ))
    }

    /// Returns how an OSD in the ledger is removed; `None` if it is not.
    pub fn removal(&self, osd: OsdId) -> Option<&Removal> {
        self.records.get(&osd)?.removal()
    }

    /// Returns the ledger without one record.
    #[must_use]
    pub fn without(&self, osd: OsdId) -> Self {
        let mut ledger = self.clone();
        ledger.records.remove(&osd);
        ledger
    }

    /// Returns the ledger with a quarantined OSD to be retried from now on, or none if the OSD is not
    /// quarantined.
    pub fn retried(&self, osd: OsdId, now: DateTime<Utc>) -> Option<Self> {
        let mut record = self.records.get(&osd).filter(|record| record.quarantine.is_some())?.clone();
        (record.quarantine, record.closing) = (None, false);
        (record.restarts, record.stop_reverted, record.wipe_blocked_since) = (0, None, None);
        (record.blocked_since, record.retried, record.pod_restarts) = (None, true, None);
        // The time of its daemon to start begins again.
        record.saved_at = Some(now);
        if !record.is_committed() {
            // The intent stays: an OSD that is down is still out.
            record.empty = record.empty.map(|Emptying { pgs, bytes, intended_at, .. }| Emptying {
                pgs,
                bytes,
                intended_at,
                ..Emptying::default()
            });
        }
        // A new attempt: the report of the failed one must not count again.
        record.attempt = Attempt::inspect(record.attempt.number + 1);
        Some(self.with(record))
    }

    /// Returns the ledger with all these quarantined OSDs to be retried.
    ///
    /// The error is the first OSD that is not quarantined. An OSD may be named twice.
    pub fn all_retried(&self, osds: &[OsdId], now: DateTime<Utc>) -> Result<Self, OsdId> {
        let osds: BTreeSet<OsdId> = osds.iter().copied().collect();
        osds.into_iter().try_fold(self.clone(), |ledger, osd| ledger.retried(osd, now).ok_or(osd))
    }

    /// Returns why this run does not start the OSD again, if that is the case.
    pub fn refused(&self, osd: OsdId, job: &str) -> Option<&Refused> {
        self.run.refusals_of(job)?.osds.get(&osd)
    }

    /// Notes that this run does not start the OSD again.
    ///
    /// Discards the notes of another run. The time that Rook has for the fence of the next OSD begins again.
    pub fn note_refusal(&mut self, osd: OsdId, job: &str, step: RefusedStep, why: &str) {
        if step == RefusedStep::Fence {
            self.run.fence_wait = None;
        }
        let known = self.run.refusals.take().filter(|known| known.job == job);
        self.run.refusals = Some(Refusals::noted(known, osd, job, step, why));
    }

    /// Returns why this run creates no OSD on a PVC, if it has given that up.
    pub fn left_pvc(&self, name: &str, uid: &str, job: &str) -> Option<&str> {
        let known = self.run.left_pvcs.as_ref().filter(|known| known.job == job)?;
        known.pvcs.get(name).filter(|left| left.uid == uid).map(|left| left.found.as_str())
    }

    /// Notes that this run creates no OSD on a PVC.
    ///
    /// Discards the notes of another run.
    pub fn leave_pvc(&mut self, name: &str, uid: &str, job: &str, found: &str) {
        let known = self.run.left_pvcs.take().filter(|known| known.job == job);
        self.run.left_pvcs = Some(LeftPvcs::noted(known, job, name, uid, found));
    }
}
