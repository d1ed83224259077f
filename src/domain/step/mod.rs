//! Decides the next step for one OSD by its phase. With `phase/` this is the table of
//! docs/concepts/how-it-works.md.
//!
//! This file dispatches, and has what all phases need: saving, the fence, quarantine. The acts are in
//! `admission` (the API server's answer about the new Deployment), `agents` (node Jobs), `deployment_by` (a
//! Deployment that Rook creates), `directory` (an OSD in a directory), `down` (until the old OSD is gone),
//! `drains` (of other nodes), `up` (from the new OSD to the closed record) and `upmaps` (lost by a purge).

mod admission;
mod agents;
pub mod bootstrap;
mod deployment_by;
mod directory;
mod down;
pub mod drains;
mod up;
mod upmaps;
mod watch;

pub use agents::{MAX_FAILURES, SILENT_MINUTES, START_MINUTES, is_late, is_silent};
pub use down::{INTENT_MINUTES, MAX_REVERTS, UNKNOWN_MINUTES, UNSAFE_MINUTES};
pub use up::{MAX_RESTARTS, ON_FILE};
pub use upmaps::MAX_UPMAP_TRIES;
pub use watch::before_halt;

use super::act::{Act, CephAct, KubeAct};
use super::gate;
use super::guard::{Guard, is_out, passes};
use super::inspection::NodeTask;
use super::ledger::{FENCE, Quarantine, Record};
use super::next::{Halt, Next, Saving, Wait};
use super::observation::{Daemon, SlotState};
use super::osd::OsdFsid;
use super::phase::{self, DiskFact, Facts, Phase, SlotFact};
use crate::domain::view::View;

/// Everything that the next step of one record depends on.
pub struct Step<'a> {
    /// Record of the OSD.
    pub record: &'a Record,
    /// View of the iteration, whose ledger contains the record.
    pub view: View<'a>,
    /// Facts that `phase::facts` derived from record and observation.
    pub facts: Facts,
    /// Phase that the facts show.
    pub phase: Phase,
}

impl<'a> Step<'a> {
    /// Creates the step of one record. `wanted`: confirmation, selection, class and target are as recorded.
    pub fn of(record: &'a Record, wanted: bool, view: View<'a>) -> Self {
        let facts = phase::facts(record, wanted, view.seen);
        Self { record, view, facts, phase: phase::phase(&facts) }
    }

    /// Returns the one thing to do next.
    pub fn next(&self) -> Next {
        if self.record.closing {
            return self.agent_started_late().unwrap_or_else(|| self.close());
        }
        if let Some(next) = self.drop_gone_pgs().or_else(|| self.watch_down()) {
            return next;
        }
        if let Some(next) = self.fence_again() {
            return next;
        }
        match self.phase {
            Phase::Busy => self.busy(),
            _ if self.was_purged_before_stop() => self.save(Saving::Purged, |record| record.closing = true),
            _ if self.was_recreated_before_stop() => {
                self.save(Saving::Withdrawn, |record| record.closing = true)
            }
            Phase::Withdrawn if self.facts.new => self.give_up(),
            Phase::Withdrawn => self.withdraw(),
            Phase::Unproven => self.prove(),
            Phase::Serving => self.stop(),
            // The OSD was started again because its device could not be read, and does not come up.
            Phase::NotOurStop if self.failed_too_often() => self.quarantine(self.agent_trouble()),
            Phase::NotOurStop => self.not_our_stop(),
            Phase::Stopping => self.stopping(),
            Phase::Stopped => self.destroy_stopped(),
            Phase::Destroyed => self.with_flags_set(|| self.rebuild()),
            Phase::Unauthed if !self.view.seen.ceph.auth.contains_key(&self.record.osd) => {
                // A key that was not asked for does not count as missing.
                Next::Wait(Wait::FreshView)
            }
            Phase::Registered | Phase::Unauthed => self.destroy_again(),
            Phase::Purged => self.reregister(),
            Phase::Unplaced => self.note_lost_upmaps().unwrap_or_else(|| self.restore_crush()),
            Phase::Gone => {
                let (osd, old) = (self.record.osd, self.record.old);
                Next::Halt(Halt::PurgedExternally { osd, old })
            }
            Phase::Misplaced => self.purge_misplaced(),
            // The decryption key is gone with the slot: nothing can be restored, and nothing can be lost.
            Phase::Undone if self.record.target.encrypted => {
                self.with_flags_set(|| self.agent(NodeTask::Rebuild))
            }
            Phase::Undone => self.with_flags_set(|| self.agent(NodeTask::RestoreSlot)),
            Phase::Prepared => self.deploy(),
            // An OSD that has booted before keeps its reweight without `noin`, and Ceph may mark it out.
            Phase::Starting if self.facts.slot == (SlotFact::Ours { never_booted: true }) => {
                self.with_flags_set(|| self.starting())
            }
            Phase::Starting => self.starting(),
            Phase::Settling => self.settling(),
            Phase::Nonconforming => {
                self.quarantine("it came up, and is not what was wanted; see `ceph osd metadata`".to_owned())
            }
            Phase::Settled => self.restore_upmaps().unwrap_or_else(|| self.settled()),
            Phase::Foreign => self.see_again(),
        }
    }

    /// Returns whether the next step would start on the OSD: inspect its device, or lead to its stop.
    pub fn begins(&self) -> bool {
        let to_begin = matches!(self.phase, Phase::Unproven | Phase::Serving);
        let to_make = self.phase == Phase::Destroyed && self.facts.before_new();
        !self.record.closing && ((self.facts.before_stop() && to_begin) || to_make)
    }

    /// Drops PGs saved at Stop that are gone, and reports them. Before Stop all PGs are saved again.
    fn drop_gone_pgs(&self) -> Option<Next> {
        let gone = gate::gone(&self.record.pgs, self.view.seen);
        if gone.is_empty() || self.facts.before_stop() {
            return None;
        }
        let pgs = self.record.pgs.difference(&gone).cloned().collect();
        Some(self.save(Saving::PgsGone { pgs: gone }, |record| record.pgs = pgs))
    }

    /// Returns whether the id was purged before osd-migrate started on it, so that nothing is left to do.
    fn was_purged_before_stop(&self) -> bool {
        let is_gone = self.facts.slot == SlotFact::Absent && !self.facts.issued;
        is_gone && !self.facts.new && self.record.stop_intended_at.is_none()
    }

    /// Returns whether another client, perhaps Rook, recreated the OSD before osd-migrate started on it. The
    /// OSD is then classified again.
    fn was_recreated_before_stop(&self) -> bool {
        let by_others = self.facts.slot == SlotFact::Other && !self.facts.issued;
        by_others && !self.facts.new && self.record.stop_intended_at.is_none()
    }

    /// Returns the act once the fence is in force. The fence is first recorded, then set, one step an
    /// iteration, and checked again before every act from Stop to Deploy. Acts on an available disk need no
    /// fence: their gate requires that Rook is stopped.
    fn fenced(&self, act: Act) -> Next {
        self.fence().unwrap_or(Next::Do(act))
    }

    /// Sets the fence again if another client removed it while the OSD is down, whatever is waited for. An
    /// agent may be at work for minutes, and Rook may otherwise prepare the disk that it has just wiped.
    fn fence_again(&self) -> Option<Next> {
        let is_ours = !self.facts.before_stop() && !self.facts.up && self.record.left_to_rook_since.is_none();
        let is_gone = self.view.our_fence().is_some() && self.view.seen.kube.fence.is_none();
        let again = self.fence().filter(|_| is_ours && is_gone)?;
        Some(match again {
            Next::Save { ledger, osd, .. } => Next::Save { ledger, osd, why: Saving::FenceGone },
            Next::Do(_) | Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => again,
        })
    }

    /// Returns the next step until the fence is in force.
    fn fence(&self) -> Option<Next> {
        if self.facts.new || is_out(Guard::FencedFirst) {
            return None;
        }
        let ours = format!("{FENCE}{}", self.record.id);
        let value = self.view.our_fence().unwrap_or(&ours);
        let put_up = || {
            let (osd, record) = (self.record.osd, self.record.id.clone());
            Some(Next::Do(Act::Kube(KubeAct::Fence { osd, record, value: value.to_owned() })))
        };
        match self.view.seen.kube.fence.as_deref() {
            Some(seen) if seen == value => self.until_in_force(put_up),
            // The fence was removed: Rook's acknowledgement was for an earlier one.
            None if !passes(Guard::FenceSavedFirst, self.is_fence_saved()) => {
                let mut ledger = self.view.ledger.clone();
                ledger.run.fence = Some(value.to_owned());
                (ledger.run.fence_after, ledger.run.fence_acknowledged) =
                    (self.view.seen.kube.cluster_revision(), false);
                Some(Next::Save { ledger, osd: Some(self.record.osd), why: Saving::Fence })
            }
            None => put_up(),
            Some(_) if is_out(Guard::NotFencedExternally) => None,
            Some(other) => Some(Next::Wait(Wait::Gate {
                osd: self.record.osd,
                reason: gate::Reason::FencedExternally { value: other.to_owned() },
            })),
        }
    }

    fn is_fence_saved(&self) -> bool {
        self.view.ledger.run.fence.is_some() && !self.view.ledger.run.fence_acknowledged
    }

    /// Returns the next step until a running Rook has acknowledged the fence, which is set.
    fn until_in_force(&self, put_up: impl FnOnce() -> Option<Next>) -> Option<Next> {
        match gate::fenced(&self.view.ledger.run, self.view.seen) {
            gate::Fenced::InForce => None,
            gate::Fenced::Unmarked => put_up(),
            gate::Fenced::Acknowledged => {
                let mut ledger = self.view.ledger.clone();
                ledger.run.fence_acknowledged = true;
                Some(Next::Save { ledger, osd: Some(self.record.osd), why: Saving::FenceAcknowledged })
            }
            gate::Fenced::NotAcknowledged(reason) => {
                Some(Next::Wait(Wait::Gate { osd: self.record.osd, reason }))
            }
        }
    }

    /// Sets the per-OSD flags for the migration if one is unset: a purge loses them, and people unset them.
    /// Without `noin` the first boot would reset the reweight. A new OSD gets none and is to come in at once.
    fn set_osd_flags(&self) -> Option<Next> {
        if self.facts.new {
            return None;
        }
        let (osd, record) = (self.record.osd, self.record.id.clone());
        let slot = self.view.slot(osd)?;
        let (noout, noin, fsid) = (!slot.noout && !self.record.noout_lifted, !slot.noin, slot.fsid);
        let with_flags_set = passes(Guard::FlagsSetFirst, !(noout || noin));
        (!with_flags_set).then(|| {
            self.fenced(Act::Ceph(CephAct::SetOsdFlags { osd, fsid, up: slot.up, record, noout, noin }))
        })
    }

    fn with_flags_set(&self, next: impl FnOnce() -> Next) -> Next {
        self.set_osd_flags().unwrap_or_else(next)
    }

    /// Removes the fence and clears its entry, if no other OSD needs it and Rook would not interfere.
    fn unfence(&self) -> Option<Next> {
        let value = self.view.our_fence()?;
        if gate::stays_fenced(self.view.seen) {
            return None;
        }
        (!self.rook_would_meet_others()).then(|| take_down(value, self.view))
    }

    /// Returns whether another OSD is in progress or quarantined after its stop. Rook would interfere.
    fn rook_would_meet_others(&self) -> bool {
        let is_half_way =
            |record: &Record| record.quarantine.is_none() || phase::is_committed(record, self.view.seen);
        self.view.ledger.records.values().any(|other| other.osd != self.record.osd && is_half_way(other))
    }

    fn save(&self, why: Saving, change: impl FnOnce(&mut Record)) -> Next {
        let mut record = self.record.clone();
        record.saved_at = Some(self.view.seen.at);
        change(&mut record);
        // A repeated milestone replaces the last one: waiting for a lock must not make the record grow.
        if record.milestones.last().is_some_and(|(last, _)| last == why.word()) {
            record.milestones.pop();
        }
        record.milestones.push((why.word().to_owned(), self.view.seen.at));
        Next::Save { ledger: self.view.ledger.with(record), osd: Some(self.record.osd), why }
    }

    fn quarantine(&self, why: String) -> Next {
        let since = self.view.seen.at;
        self.save(Saving::Quarantine { why: why.clone() }, |record| {
            record.quarantine = Some(Quarantine { why, since });
        })
    }

    /// Starts the old OSD again, unchanged: the recovery while nothing is lost yet.
    fn restart(&self) -> Next {
        Next::Do(Act::Kube(KubeAct::Restart { osd: self.record.osd, record: self.record.id.clone() }))
    }

    fn slot_fsid(&self) -> Option<OsdFsid> {
        self.view.slot(self.record.osd)?.fsid
    }

    /// Inspects a device again before the OSD is quarantined: a missing or unknown device may be a loose
    /// cable or a bad read. Another foreign object (slot, Deployment, OSD of another id) is not a read error.
    fn see_again(&self) -> Next {
        let is_the_device = self.is_not_found() && self.facts.slot != SlotFact::Other;
        let is_stopped = self.facts.slot == SlotFact::Old && self.facts.stopped;
        // The OSD is intact in its directory, whatever is on the disk that it was to go to.
        if is_stopped && self.facts.directory {
            return self.restart();
        }
        if is_the_device && !self.failed_too_often() {
            return self.save_attempt(NodeTask::Inspect);
        }
        // The OSD is stopped, but nothing is lost yet: it is started again first, and quarantined afterwards.
        if is_the_device && is_stopped {
            return self.restart();
        }
        if is_the_device && self.facts.directory && self.facts.slot == SlotFact::Destroyed {
            return self.disk_is_taken();
        }
        self.quarantine(self.foreign())
    }

    /// Returns whether the device does not contain the OSD, or its directory does not, if it is in one.
    fn is_not_found(&self) -> bool {
        let facts = &self.facts;
        let no_directory = facts.directory && facts.disk == DiskFact::Blank && facts.slot == SlotFact::Old;
        facts.disk == DiskFact::Other || no_directory
    }

    /// Restores the CRUSH item as recorded, if it is gone or has its former weight.
    fn restore_crush(&self) -> Next {
        let record = self.record;
        self.fenced(Act::Ceph(CephAct::RestoreCrush {
            osd: record.osd,
            item: record.crush.clone(),
            former: record.former_weight,
            reweight: record.reweight,
            primary_affinity: record.primary_affinity,
        }))
    }

    /// Describes the contents of the device.
    fn found_on_disk(&self) -> String {
        phase::last_inspection(self.record, self.view.seen)
            .and_then(|report| report.inspection.as_ref())
            .map_or_else(|| "not looked at".to_owned(), |inspection| inspection.content.to_string())
    }

    /// Describes the foreign objects that osd-migrate did not create.
    fn foreign(&self) -> String {
        let slot = match self.view.slot(self.record.osd) {
            None => "absent".to_owned(),
            Some(slot) if slot.up && slot.state == SlotState::Destroyed => self.revived(),
            Some(slot) => match slot.fsid {
                Some(fsid) => format!("{fsid}"),
                None => "destroyed".to_owned(),
            },
        };
        let disk = self.found_on_disk();
        let daemon = self.view.daemon(self.record.osd).map(|daemon: &Daemon| daemon.fsid);
        let starts = match daemon {
            None => "no Deployment".to_owned(),
            Some(None) => "a Deployment that names no fsid".to_owned(),
            Some(Some(fsid)) => format!("a Deployment that starts {fsid}"),
        };
        let issued: Vec<String> =
            phase::issued_of(self.record, self.view.seen).iter().map(OsdFsid::to_string).collect();
        let ours = if issued.is_empty() { "none".to_owned() } else { issued.join(", ") };
        format!(
            "something else was found than what was recorded: slot {slot}, device {disk}, {starts}; \
             recorded {}, ours: {ours}; see `ceph osd tree` and `kubectl get configmap osd-migrate-ledger -o yaml`{}",
            self.record.old,
            self.way_to_zap()
        )
    }

    /// Describes an OSD that another client gave a new key and started, although its slot is destroyed.
    fn revived(&self) -> String {
        format!(
            "destroyed, and yet up: somebody gave the OSD a new key and started it; to go on: kubectl scale deployment \
             rook-ceph-osd-{0} --replicas=0; ceph auth rm osd.{0}; osd-migrate retry osd.{0}",
            self.record.osd.0
        )
    }

    /// Returns the command for a person if the old data is gone and the disk has other contents since. Once
    /// the disk is blank, osd-migrate uses it again.
    fn way_to_zap(&self) -> String {
        let issued = phase::issued_of(self.record, self.view.seen);
        let is_awaited = self.facts.slot == SlotFact::Destroyed && self.facts.disk == DiskFact::Other;
        let by_id = self.record.device().and_then(|device| device.by_id.first());
        let Some(by_id) = by_id.filter(|_| is_awaited && !issued.is_empty()) else { return String::new() };
        format!(
            "; its old data is gone: if nothing on that disk is needed, make it blank, on node {}, in Ceph's image: \
             ceph-volume lvm zap /dev/disk/by-id/{by_id}",
            self.record.node
        )
    }
}

/// Removes the fence, then clears its entry.
pub fn take_down(value: &str, view: View<'_>) -> Next {
    if view.seen.kube.fence.as_deref() == Some(value) {
        return Next::Do(Act::Kube(KubeAct::Unfence { value: value.to_owned() }));
    }
    let mut ledger = view.ledger.clone();
    ledger.run.last_fence = ledger.run.fence.take();
    (ledger.run.fence_after, ledger.run.fence_acknowledged) = (None, false);
    Next::Save { ledger, osd: None, why: Saving::Unfenced }
}
