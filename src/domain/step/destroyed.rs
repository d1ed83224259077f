//! Steps of a destroyed OSD until its device is wiped: rebuild, registration, and ids that ceph-volume took
//! by mistake.

use chrono::{DateTime, Utc};

use super::Step;
use crate::domain::act::{Act, CephAct, DataPrecondition};
use crate::domain::batch;
use crate::domain::expect;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::inspection::{NodeTask, Proof};
use crate::domain::next::{Halt, Next, Saving, Wait};
use crate::domain::observation::{Slot, SlotState};
use crate::domain::osd::OsdId;
use crate::domain::phase::{self, DiskFact};

/// Minutes to wait for a node that is away while other OSDs wait, or nothing else is left to do.
///
/// A reboot takes less.
pub const AWAY_MINUTES: i64 = 15;

/// Minutes that a wipe may stay blocked before the run halts for a person.
///
/// Ceph's default `mon_osd_down_out_interval` is 600 s.
pub const UNSAFE_MINUTES: i64 = 10;

impl Step<'_> {
    /// Returns the precondition that is checked again right before the old OSD's data is given up.
    pub(super) fn only_ours_missing(&self) -> DataPrecondition {
        let pgs = gate::served(self.record, &self.view.seen.ceph);
        let beside = batch::beside(self.record, self.view);
        DataPrecondition::OnlyOursMissing { osd: self.record.osd, pgs, beside }
    }

    /// Returns the gate before the old OSD's data is given up.
    pub(super) fn after_stop(&self) -> Gate {
        let beside = batch::beside(self.record, self.view);
        gate::after_stop(self.record, &self.view.ledger.run, &beside, self.view.seen)
    }

    /// Destroys a slot with an issued fsid whose OSD is unfinished or has no key, so that it is rebuilt.
    pub(super) fn destroy_again(&self) -> Next {
        match self.slot_fsid() {
            Some(fsid) => self.fenced(Act::Ceph(CephAct::Destroy {
                osd: self.record.osd,
                fsid,
                stopped_for: None,
                precondition: None,
            })),
            None => Next::Wait(Wait::FreshView),
        }
    }

    pub(super) fn rebuild(&self) -> Next {
        if self.facts.before_new() {
            return self.begin_new();
        }
        if let Some(next) = self.purge_unwritten_misplaced() {
            return next;
        }
        // The old data is gone. Creating the new OSD restores redundancy and waits for nothing.
        if !self.old_can_return() {
            return self.agent(NodeTask::Rebuild);
        }
        match self.after_stop() {
            Gate::Open => self.wipe_unblocked().unwrap_or_else(|| self.agent(NodeTask::Rebuild)),
            Gate::Shut(reason) => self.wipe_blocked(reason, |osd, reason| Wait::UnsafeToWipe { osd, reason }),
            Gate::Unknown(reason) => self.wipe_blocked(reason, |osd, reason| Wait::Gate { osd, reason }),
        }
    }

    /// Returns whether the old OSD is intact and could get its slot again.
    ///
    /// An OSD that ceph-volume lvm encrypted can't: the mons dropped its decryption key when its slot was
    /// destroyed.
    pub(super) fn old_can_return(&self) -> bool {
        self.facts.disk == DiskFact::Old && !self.is_locked()
    }

    /// Returns whether the mons have dropped the key that the old OSD's volume needs.
    pub(super) fn is_locked(&self) -> bool {
        let proof = self.record.evidence.as_ref().map(|evidence| &evidence.proof);
        matches!(proof, Some(Proof::Volume { luks: Some(_), .. }))
    }

    /// Returns the gate before a new OSD, except for the API server's answer about its Deployment.
    pub(super) fn new_gates(&self) -> Gate {
        let seen = self.view.seen;
        let before = gate::before_new(&self.record.node, &self.view.ledger.run, seen);
        gate::first_not_open([before, gate::same_pvc(self.record, seen)])
    }

    /// Starts the rebuild of a new OSD after the gates are checked once more.
    ///
    /// Nothing was written yet.
    fn begin_new(&self) -> Next {
        let is_on_pvcs = self.record.pvcs.is_some();
        let admitted = match self.new_gates() {
            Gate::Open if is_on_pvcs => gate::admitted(self.record.osd, self.view.seen),
            gate @ (Gate::Open | Gate::Shut(_) | Gate::Unknown(_)) => gate,
        };
        match admitted {
            Gate::Open => self.agent(NodeTask::Rebuild),
            Gate::Shut(Reason::AdmissionRefused { why, .. }) if is_on_pvcs => {
                self.give_up_unadmitted_new(&why)
            }
            Gate::Shut(reason) | Gate::Unknown(reason) => {
                Next::Wait(Wait::Gate { osd: self.record.osd, reason })
            }
        }
    }

    /// Waits, and halts for a person if data has blocked the wipe for too long.
    ///
    /// The time counts from the first iteration that observed the block after the last rebuild attempt.
    ///
    /// There is no limit for PGs of other OSDs: the old data has no replica of them, so the slot that a
    /// person would restore does not help them. The time begins again after them.
    fn wipe_blocked(&self, reason: Reason, wait: fn(OsdId, Reason) -> Wait) -> Next {
        let (record, osd) = (self.record, self.record.osd);
        if let Reason::NodeNotReady { node } = &reason {
            let why = format!("node {node} is not Ready. See: kubectl describe node {node}");
            return self.wait_before_the_wipe(&why, wait(osd, reason.clone()));
        }
        // Rook, which would roll the image out, is kept away as long as the OSD is down.
        if let Reason::ImageChanged { declared, known } = &reason {
            let why = format!(
                "the CephCluster declares image {declared} instead of {known}, and Rook rolls out no image while an OSD \
                 is destroyed. Declare {known} again: kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER"
            );
            return self.wait_before_the_wipe(&why, wait(osd, reason.clone()));
        }
        if !reason.is_about_data() {
            return Next::Wait(wait(osd, reason));
        }
        if self.is_about_others(&reason) {
            let is_counted = record.wipe_blocked_since.is_some();
            let restart = || self.save(Saving::WipeBlocked, |record| record.wipe_blocked_since = None);
            return if is_counted { restart() } else { Next::Wait(wait(osd, reason)) };
        }
        let Some(since) = record.wipe_blocked_since else { return self.note_wipe_blocked() };
        let since = self.report().map_or(since, |report| since.max(report.ended_at));
        if (self.view.seen.at - since).num_minutes() >= UNSAFE_MINUTES {
            let (old, key) = (record.old, self.old_key());
            return Next::Halt(Halt::UnsafeToWipe { osd, old, key, reason });
        }
        Next::Wait(wait(osd, reason))
    }

    /// Saves that nothing blocks the wipe any more; `None` if nothing did.
    ///
    /// Each block has its own time.
    fn wipe_unblocked(&self) -> Option<Next> {
        self.record.wipe_blocked_since.or(self.record.blocked_since)?;
        Some(self.save(Saving::WipeBlocked, |record| {
            (record.wipe_blocked_since, record.blocked_since) = (None, None);
        }))
    }

    /// Saves since when the wipe is blocked.
    pub(super) fn note_wipe_blocked(&self) -> Next {
        self.save(Saving::WipeBlocked, |record| record.wipe_blocked_since = Some(self.view.seen.at))
    }

    /// Waits up to a limit for what an OSD that is destroyed and not wiped needs.
    fn wait_before_the_wipe(&self, why: &str, wait: Wait) -> Next {
        // `wipe_blocked_since` is for data that blocks the wipe: that halts the run.
        let Some(since) = self.record.blocked_since else { return self.note_blocked() };
        let since = self.report().map_or(since, |report| since.max(report.ended_at));
        if (self.view.seen.at - since).num_minutes() < AWAY_MINUTES {
            return Next::Wait(wait);
        }
        self.quarantine(format!("it is destroyed, and its old data is not wiped: {why}"))
    }

    /// Returns whether a reason is about a PG of other OSDs, which get its replica back: by themselves, or
    /// from a person.
    ///
    /// A PG that lacks an OSD although no other OSD is down has nothing but the old OSD to wait for.
    fn is_about_others(&self, reason: &Reason) -> bool {
        let (Reason::OtherReplicaMissing { pg: id, .. } | Reason::Peering { pg: id, .. }) = reason else {
            return false;
        };
        let ceph = &self.view.seen.ceph;
        let is_short = ceph.pgs.get(id).is_some_and(|pg| gate::is_short_of_osds(pg, ceph));
        // Before the stop all PGs were clean without those that were down by then.
        let is_recent = |since: DateTime<Utc>| self.record.down_since.is_none_or(|stopped| since >= stopped);
        let may_return = |slot: &Slot| {
            !slot.up && slot.state == SlotState::Exists && slot.down_since.is_none_or(is_recent)
        };
        let heals = || !is_short || ceph.slots.values().any(may_return);
        !gate::served(self.record, ceph).contains(id) && heals()
    }

    pub(super) fn reregister(&self) -> Next {
        let on_disk = phase::last_inspection(self.record, self.view.seen).and_then(phase::label_fsid);
        if let Some(next) = self.purge_unwritten_misplaced() {
            return next;
        }
        let issued = phase::issued_of(self.record, self.view.seen);
        let fsid = on_disk.filter(|fsid| issued.contains(fsid)).or(issued.last().copied());
        match fsid {
            Some(issued) => self.fenced(Act::Ceph(CephAct::Reregister { osd: self.record.osd, issued })),
            None => Next::Wait(Wait::FreshView),
        }
    }

    /// Purges another id that ceph-volume took for the disk and did not finish: no disk shows that id.
    fn purge_unwritten_misplaced(&self) -> Option<Next> {
        let issued = phase::issued_of(self.record, self.view.seen);
        let orphans = self.view.seen.ceph.slots.iter().filter(|(osd, _)| **osd != self.record.osd);
        let (misplaced, fsid) = orphans
            .filter_map(|(osd, slot)| Some((*osd, slot, slot.fsid?)))
            .find(|(_, slot, fsid)| issued.contains(fsid) && expect::to_purge_misplaced(slot, *fsid))
            .map(|(osd, _, fsid)| (osd, fsid))?;
        Some(self.fenced(Act::Ceph(CephAct::PurgeMisplaced { misplaced, fsid })))
    }

    pub(super) fn purge_misplaced(&self) -> Next {
        let report = phase::last_inspection(self.record, self.view.seen);
        let Some((misplaced, fsid)) =
            report.and_then(|report| Some((phase::label_id(report)?, phase::label_fsid(report)?)))
        else {
            return Next::Wait(Wait::FreshView);
        };
        match self.view.slot(misplaced) {
            None => self.agent(NodeTask::Rebuild),
            Some(slot) if slot.state == SlotState::New && !slot.up && slot.fsid == Some(fsid) => {
                self.fenced(Act::Ceph(CephAct::PurgeMisplaced { misplaced, fsid }))
            }
            Some(_) => Next::Halt(Halt::MisplacedInUse { osd: self.record.osd, misplaced }),
        }
    }
}
