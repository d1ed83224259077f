//! The next step of one OSD, by its phase. With `phase/` this is the table of docs/concepts/how-it-works.md.

use crate::domain::gate::{self, Reason};
use crate::domain::inspection::NodeTask;
use crate::domain::ledger::Record;
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::osd::OsdId;
use crate::domain::phase::{self, Facts, Phase, SlotFact};
use crate::domain::temporary::fence;
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
    /// Creates the step of one record.
    ///
    /// `wanted`: confirmation, selection, class and target are as recorded.
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
            Phase::Emptying => self.empty(),
            Phase::Serving => self.stop(),
            // The OSD was started again because its device could not be read, and does not come up.
            Phase::NotOurStop if self.failed_too_often() => self.quarantine(self.agent_trouble()),
            Phase::NotOurStop => self.not_our_stop(),
            Phase::Stopping => self.stopping(),
            Phase::Stopped => self.destroy_stopped(),
            Phase::Removing => self.removing(),
            Phase::Removed => self.removed(),
            Phase::Destroyed => self.with_flags_set(|| self.rebuild()),
            Phase::Unauthed if !self.view.seen.ceph.auth.contains_key(&self.record.osd) => {
                // A key that was not asked for does not count as missing.
                Next::Wait(Wait::FreshView)
            }
            Phase::Registered | Phase::Unauthed => self.destroy_again(),
            Phase::Purged => self.reregister(),
            Phase::Unplaced => self.note_lost_upmaps().unwrap_or_else(|| self.restore_crush()),
            Phase::Gone => self.purged_externally(),
            Phase::Misplaced => self.purge_misplaced(),
            // The decryption key is gone with the slot: nothing can be restored, and nothing can be lost.
            Phase::Undone if self.record.target.encrypted && self.record.pvcs.is_none() => {
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
                self.quarantine("it is up, but not as declared. See: ceph osd metadata".to_owned())
            }
            Phase::Settled => self.restore_upmaps().unwrap_or_else(|| self.settled()),
            Phase::Foreign => self.see_again(),
        }
    }

    /// Returns whether the next step would start on the OSD: inspect its device, or lead to its stop.
    pub fn begins(&self) -> bool {
        let has_data = || self.view.slot(self.record.osd).is_some_and(|slot| !self.record.is_dropped(slot));
        let to_begin = matches!(self.phase, Phase::Unproven | Phase::Serving)
            || (self.phase == Phase::Emptying && has_data());
        let to_make = self.phase == Phase::Destroyed && self.facts.before_new();
        // An available PVC is inspected only after it is recorded.
        let to_inspect = self.facts.new && !self.facts.proven && self.phase == Phase::Unproven;
        !self.record.closing && ((self.facts.before_stop() && to_begin) || to_make || to_inspect)
    }

    /// Returns the OSD about which Ceph is asked `osd ok-to-stop`, if this step is the one that uses the
    /// answer: its stop.
    ///
    /// A record that waits for something else (its agent, its data, the new OSD) would ask for hours in vain.
    pub fn asks_ok_to_stop(&self) -> Option<OsdId> {
        let is_to_be_stopped = self.phase == Phase::Serving && !self.record.closing;
        is_to_be_stopped.then_some(self.record.osd)
    }

    /// Returns the OSD about whose key Ceph is asked, if the phase may depend on it: a new OSD that is down.
    pub fn asks_auth(&self) -> Option<OsdId> {
        let is_new = matches!(self.facts.slot, SlotFact::Ours { .. });
        let is_to_be_started = is_new && !self.facts.up && !self.facts.busy && !self.record.closing;
        is_to_be_started.then_some(self.record.osd)
    }

    /// Waits before work on the OSD starts: a person's control, or the time of day.
    pub fn held(&self, reason: Reason) -> Next {
        let cleared = || self.record.is_marked_out().then(|| self.clear_stop_intent()).flatten();
        let wait = Next::Wait(Wait::Gate { osd: self.record.osd, reason });
        self.up_again().or_else(cleared).or_else(|| fence::acknowledged(self.view)).unwrap_or(wait)
    }

    /// Drops PGs saved at Stop that are gone, and reports them.
    ///
    /// Before Stop all PGs are saved again.
    fn drop_gone_pgs(&self) -> Option<Next> {
        if self.facts.before_stop() {
            return None;
        }
        let gone = gate::gone(&self.record.pgs, self.view.seen);
        if gone.is_empty() {
            return None;
        }
        let pgs = self.record.pgs.difference(&gone).copied().collect();
        Some(self.save(Saving::PgsGone { pgs: gone }, |record| record.pgs = pgs))
    }

    /// Gives up an OSD whose id another client purged after its stop: only a person knows whether the OSD is
    /// to be recreated.
    fn purged_externally(&self) -> Next {
        let (id, old) = (self.record.osd.0, self.record.old);
        let Some(daemon) = self.view.daemon(self.record.osd) else {
            return self.save(Saving::Purged, |record| record.closing = true);
        };
        self.quarantine(format!(
            "another client purged its id. If no other OSD is to have this id, register it again, then retry: ceph osd new \
             {old} {id}; ceph osd destroy {id} --yes-i-really-mean-it. If the OSD is not to be recreated: kubectl -n NAMESPACE \
             delete deployment {}",
            daemon.name
        ))
    }

    /// Returns whether the id was purged before osd-migrate started on it, so that nothing is left to do.
    fn was_purged_before_stop(&self) -> bool {
        let is_gone = self.facts.slot == SlotFact::Absent && !self.facts.issued;
        is_gone && !self.facts.new && self.record.stop_intended_at.is_none()
    }

    /// Returns whether another client, perhaps Rook, recreated the OSD before osd-migrate started on it.
    ///
    /// The OSD is then classified again.
    fn was_recreated_before_stop(&self) -> bool {
        let is_foreign = self.facts.slot == SlotFact::Other && !self.facts.issued;
        is_foreign && !self.facts.new && self.record.stop_intended_at.is_none()
    }
}
