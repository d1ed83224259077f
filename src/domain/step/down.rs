//! Until the old OSD is gone: stop, destroy, wipe, and the ways back from what others did meanwhile.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Step, drains};
use crate::domain::act::{Act, CephAct, DataPrecondition, KubeAct};
use crate::domain::expect;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::inspection::{NodeTask, Proof};
use crate::domain::ledger::{Attempt, NodeStatus};
use crate::domain::next::{Halt, Next, Saving, Wait};
use crate::domain::observation::SlotState;
use crate::domain::osd::OsdId;
use crate::domain::phase::{self, DaemonFact, DiskFact, SlotFact};
use crate::domain::policy::Accepted;

/// Minutes that a wipe may stay forbidden before a person is called: Ceph's default `mon_osd_down_out_interval` is 600 s.
pub const UNSAFE_MINUTES: i64 = 10;

/// Minutes that an OSD is seen down after which a gate that is still unknown turns the stop back. Statistics lag by up to
/// 7 s and peering takes seconds: what nobody knows after three minutes comes of copies that are gone (their PGs go
/// stale), a mgr or a node that is away, and meanwhile a healthy copy is kept from serving.
pub const UNKNOWN_MINUTES: i64 = 3;

/// Stops of one OSD that may be turned back. A gate that shuts for what the stop itself does (a neighbour that becomes
/// nearly full) opens as soon as the OSD serves again: without an end to it, the OSD would go down and up for ever.
pub const MAX_REVERTS: u32 = 2;

/// Minutes after which no call of the intent's time can still be on its way: a call has ten seconds.
pub const INTENT_MINUTES: i64 = 1;

/// Minutes for which a gate may hold up an OSD between its intent and its stop. Then what was set for the stop (flags, fence, drains)
/// is restored: Rook reconciles nothing meanwhile.
const BLOCKED_MINUTES: i64 = 3;

/// Minutes between a stop that was reverted and the next try: what made it fail may pass (a merge, a repair), and clients are not to
/// see their OSD go twice within seconds.
const REVERT_PAUSE_MINUTES: i64 = 2;

impl Step<'_> {
    pub(super) fn withdraw(&self) -> Next {
        // Down, and its Deployment deleted since we kept it: closing would sweep the only copy.
        let backups = self.seen.kube.backups.get(&self.record.osd) == Some(&self.record.id);
        if backups && self.facts.daemon == DaemonFact::Gone && !self.facts.up {
            return self.restart();
        }
        let next = self.save(Saving::Withdrawn, |record| record.closing = true);
        if self.facts.lost_its_disk() { self.leave_disk(next, false) } else { next }
    }

    /// The disk that it was made or was to be made on is left as it is for this run, and told of.
    fn leave_disk(&self, next: Next, is_inspected_again: bool) -> Next {
        let Next::Save { mut ledger, osd, why } = next else { return next };
        if let Some(work) = ledger.nodes.get_mut(&self.record.node) {
            if is_inspected_again {
                (work.status, work.since, work.inventory) =
                    (NodeStatus::ComputingDiff, self.seen.at, work.inventory + 1);
            }
            let is_taken = self.facts.disk == DiskFact::Other || self.facts.lost_its_disk();
            if let Some(disk) = self.record.device().filter(|_| is_taken) {
                work.left.insert(disk.stable_name(), self.found_on_disk());
            }
        }
        Next::Save { ledger, osd, why }
    }

    /// A free disk is given up before anything of it was in the cluster. Once an agent was asked for, what its node's look had
    /// found is not true any more: the node is looked at anew, the number saved first as ever. A disk that was not free after
    /// all is left as it is for this run, so that a look and an agent that disagree do not go on for ever.
    pub(super) fn give_up(&self) -> Next {
        let next = self.save(Saving::Withdrawn, |record| record.closing = true);
        if self.record.attempt.number > 0 { self.leave_disk(next, true) } else { next }
    }

    /// A free disk was given up, and its agent was made all the same, by a runner that was frozen before: it is waited for, and
    /// where it has taken the id, what it began is finished.
    pub(super) fn agent_started_late(&self) -> Option<Next> {
        if !self.facts.new || self.record.new.is_some() {
            return None;
        }
        if self.facts.busy {
            return Some(self.busy());
        }
        let is_begun = self.facts.issued && self.facts.slot != SlotFact::Other;
        (!passes(Guard::StartedIsFinished, !is_begun)).then(|| {
            let issued = phase::issued_of(self.record, self.seen);
            self.save(Saving::Attempt { task: NodeTask::Inspect, after: None }, |record| {
                let number = record.attempt.number + 1;
                record.attempt = Attempt { number, task: NodeTask::Inspect, failures: 0 };
                (record.closing, record.issued) = (false, issued);
            })
        })
    }

    pub(super) fn stop(&self) -> Next {
        if self.record.restarts >= MAX_REVERTS {
            return self.quarantine(format!(
                "it was stopped and had to be started again {} times, the last time because: {}",
                self.record.restarts,
                self.record.stop_reverted.as_deref().unwrap_or("no reason is known")
            ));
        }
        if let Some(wait) = self.rests_after_revert() {
            return Next::Wait(wait);
        }
        let admitted = gate::admitted(self.record.osd, self.seen);
        if let Some(next) = self.give_up_unadmitted(&admitted) {
            return next;
        }
        let accepted = gate::accepted(self.policy, self.seen);
        match gate::first_of([self.stop_gates(&accepted), admitted]) {
            Gate::Open => self.stop_now(accepted),
            Gate::Shut(reason) | Gate::Unknown(reason) => self.blocked(&reason, &accepted),
        }
    }

    /// A while after a stop that was reverted no other one is tried.
    pub(super) fn rests_after_revert(&self) -> Option<Wait> {
        let record = self.record;
        let why = record.stop_reverted.clone()?;
        let until = record.saved_at? + TimeDelta::minutes(REVERT_PAUSE_MINUTES);
        let reason = Reason::StopReverted { why, until };
        (self.seen.at < until).then_some(Wait::Gate { osd: record.osd, reason })
    }

    /// Waits for a gate that is not open, and withdraws the record after `BLOCKED_MINUTES`: what was set for the stop does not stay for
    /// longer, and a reason that is this OSD's own holds up no other OSD.
    fn blocked(&self, reason: &Reason, accepted: &Accepted) -> Next {
        let record = self.record;
        let wait = Next::Wait(Wait::Gate { osd: record.osd, reason: reason.clone() });
        if record.stop_intended_at.is_none() && !self.is_its_own(reason, accepted) {
            return wait;
        }
        let Some(since) = record.blocked_since else {
            return self.save(Saving::Held, |record| record.blocked_since = Some(self.seen.at));
        };
        if (self.seen.at - since).num_minutes() < BLOCKED_MINUTES {
            return wait;
        }
        if record.restarts > 0 {
            return self.quarantine(format!(
                "its stop was reverted because {}, and since then it can't be stopped: {reason}",
                record.stop_reverted.as_deref().unwrap_or("of an unknown reason")
            ));
        }
        self.withdraw()
    }

    /// Returns whether a gate is shut for this OSD, and would be open for another one.
    fn is_its_own(&self, reason: &Reason, accepted: &Accepted) -> bool {
        let is_own = |own: &gate::Own| {
            *own.all() == Gate::Open && own.gate(self.record.osd, &self.record.node) != Gate::Open
        };
        matches!(reason, Reason::NotOkToStop { .. }) || is_own(&gate::Own::of(accepted, self.seen))
    }

    /// Gates are open: keep, remember the PGs, fence, hush, keep drains off, stop; one a turn, and the gates asked again each time.
    /// Where Rook would do the same, the fence goes before the PGs.
    fn stop_now(&self, accepted: Accepted) -> Next {
        let (record, osd) = (self.record, self.record.osd);
        let Some((daemon, slot)) = self.seen.kube.daemons.get(&osd).zip(self.seen.ceph.slots.get(&osd))
        else {
            return Next::Wait(Wait::FreshView);
        };
        if !passes(Guard::BackedUpFirst, self.seen.kube.backups.get(&osd) == Some(&record.id)) {
            return Next::Do(Act::Kube(KubeAct::BackUp {
                osd,
                record: record.id.clone(),
                deployment: daemon.uid.clone(),
                generation: daemon.generation,
            }));
        }
        // A Rook that might migrate this very OSD ends what it has begun before anything is meant.
        if let Some(next) = self.fence().filter(|_| gate::stays_fenced(self.seen)) {
            return next;
        }
        let pgs = gate::pgs_of(osd, self.seen);
        let is_recent = |at: DateTime<Utc>| (self.seen.at - at).num_minutes() < INTENT_MINUTES;
        let holds_still = |at| !is_out(Guard::IntentOutlivesSlowIterations) || is_recent(at);
        let is_new_try = record.stop_reverted.is_some() || record.blocked_since.is_some();
        // A flag that was a person's and is off now would be set by us, and kept as theirs.
        let (had_noout, had_noin) = record.former_flags;
        let is_lifted = (had_noout && !slot.noout) || (had_noin && !slot.noin);
        let is_intended = !is_new_try && !is_lifted && record.stop_intended_at.is_some_and(holds_still);
        if !passes(Guard::IntentSavedFirst, record.pgs == pgs && is_intended) {
            // The first intent comes before our first Hush: what is set then is a person's. Later a flag may be ours, and
            // only one that is off is known to be nobody's.
            let is_first = record.stop_intended_at.is_none();
            let (noout, noin) = record.former_flags;
            let former = (slot.noout && (is_first || noout), slot.noin && (is_first || noin));
            return self.save(Saving::Stop, |record| {
                record.used_bytes = slot.used_bytes.or(record.used_bytes);
                record.former_flags = former;
                if is_first {
                    (record.reweight, record.primary_affinity) = (slot.reweight, slot.primary_affinity);
                }
                record.pgs = pgs;
                record.stop_intended_at = Some(self.seen.at);
                (record.stop_reverted, record.blocked_since) = (None, None);
                // The OSD serves: an earlier stop that was reverted is over, and this one needs `noout` again.
                record.noout_lifted = false;
            });
        }
        if let Some(next) = self.set_osd_flags() {
            return next;
        }
        let block_drains = drains::block_drains(record, self.ledger, self.seen);
        if let Some(next) = block_drains.filter(|_| !is_out(Guard::DrainsLimitedFirst)) {
            return next;
        }
        self.fenced(Act::Kube(KubeAct::Stop {
            osd,
            fsid: record.old,
            record: record.id.clone(),
            deployment: daemon.uid.clone(),
            generation: daemon.generation,
            accepted,
        }))
    }

    /// Somebody scaled its Deployment up again, our mark still on it: nothing is lost yet, so it is theirs again.
    fn started_externally(&self) -> Option<Next> {
        let daemon = self.seen.kube.daemons.get(&self.record.osd)?;
        let is_wanted_up = daemon.replicas > 0 && daemon.stopped_by.is_some();
        (!passes(Guard::StaysStopped, !is_wanted_up)).then(|| self.revert_stop(&Reason::StartedExternally))
    }

    pub(super) fn stopping(&self) -> Next {
        let osd = self.record.osd;
        if let Some(next) = self.started_externally() {
            return next;
        }
        // Under `nodown` it never counts as down: its PGs would wait for a daemon that is gone.
        match gate::flags(self.seen) {
            Gate::Shut(reason) if !self.facts.pod => self.revert_stop(&reason),
            Gate::Open | Gate::Shut(_) | Gate::Unknown(_) => Next::Wait(Wait::Down { osd }),
        }
    }

    pub(super) fn destroy_stopped(&self) -> Next {
        let osd = self.record.osd;
        if let Some(next) = self.started_externally() {
            return next;
        }
        // What was decided and counted is done, also where the gate has opened again.
        if self.record.stop_reverted.is_some() {
            return self.restart();
        }
        match gate::after_stop(self.record, self.our_fence(), self.seen) {
            Gate::Open => {
                let (stopped_for, precondition) =
                    (Some(self.record.id.clone()), Some(self.only_ours_missing()));
                self.fenced(Act::Ceph(CephAct::Destroy {
                    osd,
                    fsid: self.record.old,
                    stopped_for,
                    precondition,
                }))
            }
            Gate::Shut(reason) => self.revert_stop(&reason),
            // Nothing is lost yet: a view that stays unknown is no reason to keep a healthy copy from serving.
            Gate::Unknown(reason) if self.was_stopped_long_ago() => self.revert_stop(&reason),
            Gate::Unknown(reason) => Next::Wait(Wait::Gate { osd, reason }),
        }
    }

    /// What is asked again right before the old OSD's data is given up.
    pub(super) fn only_ours_missing(&self) -> DataPrecondition {
        DataPrecondition::OnlyOursMissing { osd: self.record.osd, pgs: self.record.pgs.clone() }
    }

    /// The OSD is to serve again: counted first, done then.
    fn revert_stop(&self, reason: &Reason) -> Next {
        if self.record.stop_reverted.is_some() {
            return self.restart();
        }
        let why = reason.to_string();
        self.save(Saving::RevertStop { why: why.clone() }, |record| {
            record.restarts += 1;
            record.stop_reverted = Some(why);
        })
    }

    fn was_stopped_long_ago(&self) -> bool {
        let is_long_ago = |at: DateTime<Utc>| (self.seen.at - at).num_minutes() >= UNKNOWN_MINUTES;
        self.record.down_since.is_some_and(is_long_ago)
    }

    /// The slot holds a claim whose OSD is not finished, or has no key: back to destroyed, from where it is made again.
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
        // The old data is gone: making the new OSD is the cure, and waits for nothing.
        if !self.old_can_return() {
            return self.agent(NodeTask::Rebuild);
        }
        match gate::after_stop(self.record, self.our_fence(), self.seen) {
            Gate::Open => self.agent(NodeTask::Rebuild),
            Gate::Shut(reason) => self.wipe_blocked(reason, |osd, reason| Wait::UnsafeToWipe { osd, reason }),
            Gate::Unknown(reason) => self.wipe_blocked(reason, |osd, reason| Wait::Gate { osd, reason }),
        }
    }

    /// The old OSD is whole, and could be given its slot back. One that ceph-volume lvm encrypted can't: the mons dropped what opens
    /// it when its slot was destroyed.
    pub(super) fn old_can_return(&self) -> bool {
        let proof = self.record.evidence.as_ref().map(|evidence| &evidence.proof);
        let is_locked = matches!(proof, Some(Proof::Volume { luks: Some(_), .. }));
        self.facts.disk == DiskFact::Old && !is_locked
    }

    /// Nothing was written yet: the gates are asked once more.
    fn begin_new(&self) -> Next {
        match gate::before_new(&self.record.node, self.our_fence(), self.seen) {
            Gate::Open => self.agent(NodeTask::Rebuild),
            Gate::Shut(reason) | Gate::Unknown(reason) => {
                Next::Wait(Wait::Gate { osd: self.record.osd, reason })
            }
        }
    }

    /// Waits, and calls a person where data has stood in the way for too long. The time counts from the first turn that saw
    /// it after the last attempt to rebuild.
    fn wipe_blocked(&self, reason: Reason, wait: fn(OsdId, Reason) -> Wait) -> Next {
        let (record, osd) = (self.record, self.record.osd);
        if !reason.is_about_data() {
            return Next::Wait(wait(osd, reason));
        }
        let Some(since) = record.wipe_blocked_since else {
            return self.save(Saving::WipeBlocked, |record| record.wipe_blocked_since = Some(self.seen.at));
        };
        let since = self.report().map_or(since, |report| since.max(report.ended_at));
        if (self.seen.at - since).num_minutes() >= UNSAFE_MINUTES {
            let (old, key) = (record.old, self.old_key());
            return Next::Halt(Halt::UnsafeToWipe { osd, old, key, reason });
        }
        Next::Wait(wait(osd, reason))
    }

    pub(super) fn reregister(&self) -> Next {
        let on_disk = phase::last_inspection(self.record, self.seen).and_then(phase::label_fsid);
        if let Some(next) = self.purge_unwritten_misplaced() {
            return next;
        }
        let issued = phase::issued_of(self.record, self.seen);
        let claim = on_disk.filter(|fsid| issued.contains(fsid)).or(issued.last().copied());
        match claim {
            Some(claim) => self.fenced(Act::Ceph(CephAct::Reregister { osd: self.record.osd, claim })),
            None => Next::Wait(Wait::FreshView),
        }
    }

    /// ceph-volume took another id for the disk, and did not come as far as to finish it there: nothing on the disk tells of it.
    fn purge_unwritten_misplaced(&self) -> Option<Next> {
        let issued = phase::issued_of(self.record, self.seen);
        let orphans = self.seen.ceph.slots.iter().filter(|(osd, _)| **osd != self.record.osd);
        let (misplaced, fsid) = orphans
            .filter_map(|(osd, slot)| Some((*osd, slot, slot.fsid?)))
            .find(|(_, slot, fsid)| issued.contains(fsid) && expect::to_purge_misplaced(slot, *fsid))
            .map(|(osd, _, fsid)| (osd, fsid))?;
        Some(self.fenced(Act::Ceph(CephAct::PurgeMisplaced { misplaced, fsid })))
    }

    pub(super) fn purge_misplaced(&self) -> Next {
        let report = phase::last_inspection(self.record, self.seen);
        let Some((misplaced, fsid)) =
            report.and_then(|report| Some((phase::label_id(report)?, phase::label_fsid(report)?)))
        else {
            return Next::Wait(Wait::FreshView);
        };
        match self.seen.ceph.slots.get(&misplaced) {
            None => self.agent(NodeTask::Rebuild),
            Some(slot) if slot.state == SlotState::New && !slot.up && slot.fsid == Some(fsid) => {
                self.fenced(Act::Ceph(CephAct::PurgeMisplaced { misplaced, fsid }))
            }
            Some(_) => Next::Halt(Halt::MisplacedInUse { osd: self.record.osd, misplaced }),
        }
    }
}
