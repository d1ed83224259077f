//! Steps until the old OSD is destroyed: stop, destroy, and the revert of a stop.

use chrono::{DateTime, TimeDelta, Utc};

use super::Step;
use crate::domain::act::{Act, CephAct, DataPrecondition, KubeAct};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::inspection::NodeTask;
use crate::domain::ledger::{Attempt, NodeStatus, RecordedPvc};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::observation::Daemon;
use crate::domain::phase::{self, DaemonFact, DiskFact, SlotFact};
use crate::domain::policy::Accepted;
use crate::domain::temporary::{INTENT_MINUTES, drains};

/// Minutes down after which a gate that is still unknown reverts the stop.
///
/// Statistics lag by up to 7 s, and peering takes seconds. A state that is unknown after three minutes comes
/// from missing replicas (their PGs become stale), or from an unreachable mgr or node. Meanwhile a healthy
/// replica does not serve.
pub const UNKNOWN_MINUTES: i64 = 3;

/// Stops of one OSD that may be reverted.
///
/// A gate that shuts because of the stop itself (a neighbour becomes nearly full) opens as soon as the OSD
/// serves again. Without a limit the OSD would stop and start for ever.
pub const MAX_REVERTS: u32 = 2;

/// Minutes that a gate may block an OSD between its intent and its stop.
///
/// Then the preparations for the stop (flags, fence, drains) are restored: Rook reconciles nothing meanwhile.
const BLOCKED_MINUTES: i64 = 3;

/// Minutes between a reverted stop and the next try.
///
/// The cause may pass (a merge, a repair), and clients must not lose their OSD twice within seconds.
const REVERT_PAUSE_MINUTES: i64 = 2;

impl Step<'_> {
    pub(super) fn withdraw(&self) -> Next {
        // Down, and its Deployment was deleted: closing the record would delete the backup, the last copy.
        let backups = self.view.seen.kube.backups.get(&self.record.osd) == Some(&self.record.id);
        // That of a dead OSD may be of the OSD that had the id before.
        if backups && self.facts.daemon == DaemonFact::Gone && !self.facts.up && !self.facts.dead {
            return self.restart();
        }
        if let Some(next) = self.mark_in_first() {
            return next;
        }
        let next = self.save(Saving::Withdrawn, |record| record.closing = true);
        if self.facts.lost_its_disk() { self.leave_disk(next, false) } else { next }
    }

    /// Leaves the record's disk unchanged for this run, and reports it.
    fn leave_disk(&self, next: Next, is_inspected_again: bool) -> Next {
        let Next::Save { mut ledger, osd, why } = next else { return next };
        if let Some(work) = ledger.nodes.get_mut(&self.record.node) {
            if is_inspected_again {
                (work.status, work.since, work.inventory) =
                    (NodeStatus::ComputingDiff, self.view.seen.at, work.inventory + 1);
            }
            let is_taken = self.facts.disk == DiskFact::Other || self.facts.lost_its_disk();
            if let Some(disk) = self.record.device().filter(|_| is_taken) {
                work.left.insert(disk.stable_name(), self.found_on_disk());
            }
        }
        Next::Save { ledger, osd, why }
    }

    /// Leaves a PVC unchanged for this run if its device is not blank, and reports it.
    fn leave_pvc(&self, next: Next, pvc: &RecordedPvc) -> Next {
        let Next::Save { mut ledger, osd, why } = next else { return next };
        if self.facts.disk == DiskFact::Other {
            let found = format!("its device is not blank: {}", self.found_on_disk());
            ledger.leave_pvc(&pvc.name, &pvc.uid, &self.view.policy.run, &found);
        }
        Next::Save { ledger, osd, why }
    }

    /// Gives up an available disk before the cluster contained anything of it.
    ///
    /// Once an agent was requested, the inventory of its node is outdated: the node is inventoried again, and
    /// the number is saved first. A disk that was not available is left unchanged for this run. Otherwise an
    /// inventory and an agent that disagree would repeat for ever.
    pub(super) fn give_up(&self) -> Next {
        let next = self.save(Saving::Withdrawn, |record| record.closing = true);
        if let Some(pvcs) = &self.record.pvcs {
            return self.leave_pvc(next, &pvcs.data);
        }
        if self.record.attempt.number > 0 { self.leave_disk(next, true) } else { next }
    }

    /// Handles an agent of a given-up disk that a frozen runner created late.
    ///
    /// The agent is waited for. If it has taken the id, its work is finished.
    pub(super) fn agent_started_late(&self) -> Option<Next> {
        if !self.facts.new || self.record.new.is_some() {
            return None;
        }
        if self.facts.busy {
            return Some(self.busy());
        }
        let is_begun = self.facts.issued && self.facts.slot != SlotFact::Other;
        (!passes(Guard::StartedIsFinished, !is_begun)).then(|| {
            let issued = phase::issued_of(self.record, self.view.seen);
            self.save(Saving::Attempt { task: NodeTask::Inspect, after: None }, |record| {
                let number = record.attempt.number + 1;
                record.attempt = Attempt::inspect(number);
                (record.closing, record.issued) = (false, issued);
            })
        })
    }

    pub(super) fn stop(&self) -> Next {
        if self.record.restarts >= MAX_REVERTS {
            return self.quarantine(format!(
                "its stop was reverted {} times, the last time because: {}",
                self.record.restarts,
                self.record.stop_reverted.as_deref().unwrap_or("no reason is known")
            ));
        }
        if let Some(wait) = self.rests_after_revert() {
            return self.up_again().unwrap_or(Next::Wait(wait));
        }
        if let Some(first) = self.leaves_after().or_else(|| self.stopping_beside()) {
            return self.queued(first);
        }
        let admitted =
            if self.facts.removal { Gate::Open } else { gate::admitted(self.record.osd, self.view.seen) };
        if let Some(next) = self.up_again().or_else(|| self.give_up_unadmitted(&admitted)) {
            return next;
        }
        let accepted = self.accepted();
        match gate::first_of([self.stop_gates(&accepted), admitted]) {
            Gate::Open => self.unless_rook_hangs(self.stop_now(accepted)),
            // The API server was asked about another OSD.
            Gate::Unknown(reason @ Reason::AdmissionUnknown { why: None, .. })
                if self.record.stop_intended_at.is_none() =>
            {
                Next::Wait(Wait::Gate { osd: self.record.osd, reason })
            }
            Gate::Shut(reason) | Gate::Unknown(reason) => self.blocked(&reason, &accepted),
        }
    }

    /// Returns a wait for some time after a reverted stop, until a gate blocks the next one.
    pub(super) fn rests_after_revert(&self) -> Option<Wait> {
        let record = self.record;
        let why = record.stop_reverted.clone().filter(|_| record.blocked_since.is_none())?;
        let until = record.saved_at? + TimeDelta::minutes(REVERT_PAUSE_MINUTES);
        let reason = Reason::StopReverted { why, until };
        (self.view.seen.at < until).then_some(Wait::Gate { osd: record.osd, reason })
    }

    /// Waits for a gate that is not open, and withdraws the record after `BLOCKED_MINUTES`.
    ///
    /// Preparations for the stop do not stay longer than that, and a reason of this OSD alone does not delay
    /// other OSDs.
    pub(super) fn blocked(&self, reason: &Reason, accepted: &Accepted) -> Next {
        let record = self.record;
        let wait = Next::Wait(Wait::Gate { osd: record.osd, reason: reason.clone() });
        // An empty OSD waits longer than one that was not touched, without anything prepared for its stop.
        let is_empty = record.empty.as_ref().is_some_and(|empty| empty.emptied_at.is_some());
        if is_empty && self.gives_up_empty() {
            return self.not_emptied(&format!("it is empty, and can't be stopped: {reason}"));
        }
        if is_empty && record.stop_intended_at.is_none() {
            return self.noting_blocked(wait);
        }
        if record.stop_intended_at.is_none() {
            // It is to be emptied by now, with a new record.
            if matches!(reason, Reason::NoRedundancy { .. }) {
                return self.withdraw();
            }
            if !self.is_its_own(reason, accepted) {
                return wait;
            }
        }
        let Some(since) = record.blocked_since else {
            return self.note_blocked();
        };
        if (self.view.seen.at - since).num_minutes() < BLOCKED_MINUTES {
            return wait;
        }
        if let Some(next) = is_empty.then(|| self.clear_stop_intent()).flatten() {
            return next;
        }
        let is_asked = !matches!(reason, Reason::AdmissionUnknown { why: None, .. });
        if record.restarts > 0 && is_asked {
            return self.quarantine(format!(
                "its stop was reverted ({}), and since then it cannot be stopped: {reason}",
                record.stop_reverted.as_deref().unwrap_or("no reason is known")
            ));
        }
        self.withdraw_blocked(reason)
    }

    /// Returns whether a gate is shut for this OSD, and would be open for another one.
    fn is_its_own(&self, reason: &Reason, accepted: &Accepted) -> bool {
        let is_own = |own: &gate::Own| {
            *own.all() == Gate::Open && own.gate(self.record.osd, &self.record.node) != Gate::Open
        };
        reason.is_of_the_osd_that_asks() || is_own(&gate::Own::of(accepted, self.view.seen))
    }

    /// Returns the act that backs up the Deployment; `None` if its backup exists.
    pub(super) fn back_up(&self, daemon: &Daemon) -> Option<Next> {
        let (record, osd) = (self.record, self.record.osd);
        let is_backed_up = self.view.seen.kube.backups.get(&osd) == Some(&record.id);
        (!passes(Guard::BackedUpFirst, is_backed_up)).then(|| {
            Next::Do(Act::Kube(KubeAct::BackUp {
                osd,
                record: record.id.clone(),
                deployment: daemon.uid.clone(),
                generation: daemon.generation,
            }))
        })
    }

    /// Stops the OSD after its gates opened, one step an iteration: back up, save the PGs, fence, set flags,
    /// block drains, stop.
    ///
    /// The gates are checked again each time. If Rook would migrate too, the fence is set before the PGs are
    /// saved.
    pub(super) fn stop_now(&self, accepted: Accepted) -> Next {
        let (record, osd) = (self.record, self.record.osd);
        let Some((daemon, slot)) = self.view.daemon(osd).zip(self.view.slot(osd)) else {
            return Next::Wait(Wait::FreshView);
        };
        if let Some(next) = self.back_up(daemon) {
            return next;
        }
        // A Rook that may migrate this OSD finishes what it has started before the intent is saved.
        if let Some(next) = self.fence().filter(|_| gate::needs_lasting_fence(self.view.seen)) {
            return next;
        }
        let pgs = gate::pgs_of(osd, self.view.seen);
        let is_recent = |at: DateTime<Utc>| (self.view.seen.at - at).num_minutes() < INTENT_MINUTES;
        let holds_still = |at| !is_out(Guard::IntentOutlivesSlowIterations) || is_recent(at);
        let is_new_try = record.stop_reverted.is_some() || record.blocked_since.is_some();
        // A person's flag that is unset now would be set by osd-migrate, and kept as the person's flag.
        let (had_noout, had_noin) = record.former_flags;
        let is_lifted = (had_noout && !slot.noout) || (had_noin && !slot.noin);
        let is_intended = !is_new_try && !is_lifted && record.stop_intended_at.is_some_and(holds_still);
        if !passes(Guard::IntentSavedFirst, record.pgs == pgs && is_intended) {
            // The first intent is saved before osd-migrate sets any flag, so a flag that is set then is a
            // person's. Later a flag may be osd-migrate's: only an unset flag is known to be no client's.
            let is_first = record.stop_intended_at.is_none();
            let (noout, noin) = record.former_flags;
            let former = (slot.noout && (is_first || noout), slot.noin && (is_first || noin));
            return self.save(Saving::Stop, |record| {
                record.former_flags = former;
                // An OSD that was emptied has neither its data nor its in-weight any more.
                if record.empty.is_none() {
                    record.used_bytes = slot.used_bytes.or(record.used_bytes);
                }
                if is_first && record.empty.is_none() {
                    (record.reweight, record.primary_affinity) = (slot.reweight, slot.primary_affinity);
                }
                record.pgs = pgs;
                record.stop_intended_at = Some(self.view.seen.at);
                (record.stop_reverted, record.blocked_since) = (None, None);
                // The OSD serves: an earlier reverted stop is over, and this one needs `noout` again.
                record.noout_lifted = false;
            });
        }
        if let Some(next) = self.set_osd_flags() {
            return next;
        }
        let block_drains = drains::change(record, self.view);
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
            emptied: record.empty.is_some(),
            up: !self.facts.dead,
        }))
    }

    pub(super) fn destroy_stopped(&self) -> Next {
        let osd = self.record.osd;
        if let Some(next) = self.started_externally() {
            return next;
        }
        // Nothing is decided before one is deleted.
        if let Some(reason) = self.two_deployments() {
            return Next::Wait(Wait::Gate { osd, reason });
        }
        // A decided and counted revert is carried out, even if the gate has opened again.
        if self.record.stop_reverted.is_some() {
            return self.restart();
        }
        match self.after_stop() {
            Gate::Open => {
                let precondition = match self.record.empty {
                    Some(_) => DataPrecondition::NoneMissing { osd },
                    None => self.only_ours_missing(),
                };
                let (stopped_for, precondition) = (Some(self.record.id.clone()), Some(precondition));
                self.fenced(Act::Ceph(CephAct::Destroy {
                    osd,
                    fsid: self.record.old,
                    stopped_for,
                    precondition,
                }))
            }
            Gate::Shut(reason) => self.revert_stop(&reason),
            // Nothing is lost yet: a view that stays unknown is no reason to keep a healthy replica down.
            Gate::Unknown(reason) if self.was_stopped_long_ago() => self.revert_stop(&reason),
            Gate::Unknown(reason) => Next::Wait(Wait::Gate { osd, reason }),
        }
    }

    /// Starts the OSD again.
    ///
    /// The revert is counted first and carried out then.
    pub(super) fn revert_stop(&self, reason: &Reason) -> Next {
        self.revert_stop_because(reason.to_string())
    }

    pub(super) fn revert_stop_because(&self, why: String) -> Next {
        if self.record.stop_reverted.is_some() {
            return self.restart();
        }
        self.save(Saving::RevertStop { why: why.clone() }, |record| {
            record.restarts += 1;
            (record.stop_reverted, record.blocked_since) = (Some(why), None);
        })
    }

    fn was_stopped_long_ago(&self) -> bool {
        let is_long_ago = |at: DateTime<Utc>| (self.view.seen.at - at).num_minutes() >= UNKNOWN_MINUTES;
        self.record.down_since.is_some_and(is_long_ago)
    }
}
