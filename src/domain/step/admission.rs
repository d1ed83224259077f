//! Admission of the new OSD's Deployment: the API server is asked before the old OSD is stopped, because
//! afterwards the data is gone.

use super::Step;
use crate::domain::act::{Act, Deploy, KubeAct};
use crate::domain::batch;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::ledger::RefusedStep;
use crate::domain::next::{Next, Saving};
use crate::domain::phase::{self, Phase};
use crate::domain::policy::Accepted;
use crate::domain::temporary::drains;

/// Minutes for which acts may be denied between the intent of an OSD and its stop.
///
/// An API server that has just started, and a Role that is being replaced, deny for seconds.
const DENIED_MINUTES: i64 = 3;

impl Step<'_> {
    /// Returns the Deployment that the API server is asked about, if nothing else prevents the stop.
    pub fn asks_admission(&self) -> Option<Deploy> {
        if gate::held(self.view) != Gate::Open {
            return None;
        }
        if self.begins_on_pvcs() {
            return (self.new_gates() == Gate::Open).then(|| self.foreseen())?;
        }
        let is_next = matches!(self.phase, Phase::Serving | Phase::Emptying) && self.begins();
        let waits = || self.rests_after_revert().is_some() || self.stopping_beside().is_some();
        if !is_next || self.facts.removal || waits() {
            return None;
        }
        let accepted = self.accepted();
        let gates = if self.phase == Phase::Emptying {
            self.gates_of_emptying(&accepted)
        } else {
            self.stop_gates(&accepted)
        };
        match gates {
            // Ceph is asked at the same time.
            Gate::Open | Gate::Unknown(Reason::NotAsked | Reason::EmptyingUnknown { why: None, .. }) => {
                self.foreseen()
            }
            Gate::Shut(_) | Gate::Unknown(_) => None,
        }
    }

    /// Returns whether the API server need not be asked again after a save: what prepares the stop follows,
    /// and not the stop.
    ///
    /// Another observation follows what is prepared. An OSD is marked out, and a new one created, only by an
    /// answer to a question of that iteration.
    pub fn keeps_admission(&self) -> bool {
        let is_stop = || matches!(self.stop_now(self.accepted()), Next::Do(Act::Kube(KubeAct::Stop { .. })));
        self.phase == Phase::Serving && !is_stop()
    }

    /// Returns the PGs that are accepted before the stop of this OSD.
    pub(super) fn accepted(&self) -> Accepted {
        batch::accepted_beside(self.record, gate::accepted(self.view), self.view)
    }

    /// Returns whether a new OSD on PVCs is about to be created.
    ///
    /// The Deployment is made from that of another OSD, which may be impossible.
    fn begins_on_pvcs(&self) -> bool {
        self.record.pvcs.is_some()
            && self.facts.before_new()
            && self.phase == Phase::Destroyed
            && self.begins()
    }

    /// Closes the record of a new OSD on PVCs whose Deployment is refused: its devices were not written.
    pub(super) fn give_up_unadmitted_new(&self, why: &str) -> Next {
        let next = self.save(Saving::NotAdmitted { why: why.to_owned() }, |record| record.closing = true);
        let Next::Save { mut ledger, osd, why: saving } = next else { return next };
        if let Some(pvcs) = &self.record.pvcs {
            let found = format!("the Deployment of its OSD is refused: {why}");
            ledger.leave_pvc(&pvcs.data.name, &pvcs.data.uid, &self.view.policy.run, &found);
        }
        Next::Save { ledger, osd, why: saving }
    }

    /// Returns the gate before a stop, except for the API server's answer about the new Deployment, which is
    /// asked last.
    pub(super) fn stop_gates(&self, accepted: &Accepted) -> Gate {
        let (record, seen) = (self.record, self.view.seen);
        // Behind the fence Rook could not finish a migration that it has started.
        let rook = || self.view.our_fence().map_or_else(|| gate::migrates_none(self.view), |_| Gate::Open);
        if self.facts.removal {
            return gate::first_of([
                rook(),
                gate::before_last_stop(record.osd, &record.node, &self.view.ledger.run, accepted, seen),
                drains::counted(record, seen),
                drains::allowed(record.osd, seen),
            ]);
        }
        let is_emptied = record.empty.is_some();
        let safe = || if is_emptied { gate::safe_to_destroy(record.osd, seen) } else { Gate::Open };
        let gates: [&dyn Fn() -> Gate; 6] = [
            &rook,
            &|| gate::before_stop(record.osd, &record.node, &self.view.ledger.run, accepted, seen),
            &safe,
            &|| gate::enough_space(record, seen),
            &|| drains::counted(record, seen),
            &|| drains::allowed(record.osd, seen),
        ];
        gates.iter().map(|gate| gate()).find(|gate| *gate != Gate::Open).unwrap_or(Gate::Open)
    }

    /// Returns the Deployment to be, as far as it is known.
    ///
    /// The fsid and the paths of logical volumes are known only after the rebuild: placeholders of the same
    /// form are used until then.
    fn foreseen(&self) -> Option<Deploy> {
        let record = self.record;
        let device = &record.evidence.as_ref()?.device;
        let inspection =
            phase::last_inspection(record, self.view.seen).and_then(|report| report.inspection.as_ref());
        let kernel = inspection.and_then(|inspection| inspection.kernel.as_ref());
        let volume = || format!("/dev/ceph-{0}/osd-block-{0}", record.old);
        let block_path = super::up::block_path(record, device, None, (kernel, false)).unwrap_or_else(volume);
        Some(self.deployment(record.old, block_path, None, kernel))
    }

    /// Closes the record of an OSD whose new Deployment is refused, if nothing was set for its stop.
    ///
    /// This run does not start on the OSD again, and the other OSDs continue. After an intent the usual time
    /// passes first, as with any other gate: a call may be on its way.
    pub(super) fn give_up_unadmitted(&self, admitted: &Gate) -> Option<Next> {
        if self.record.stop_intended_at.is_some() {
            return self.give_up_denied();
        }
        let Gate::Shut(Reason::AdmissionRefused { why, .. }) = admitted else { return None };
        Some(self.not_admitted(why))
    }

    /// Gives the OSD up for this run if no gate blocks it, and something denies its stop, or what is to
    /// precede the stop.
    ///
    /// A record whose acts are done is saved within seconds. An empty OSD waits longer: its data would move
    /// back.
    fn give_up_denied(&self) -> Option<Next> {
        let why = self.view.seen.failed.denied(self.record.osd)?;
        let since = self.record.saved_at.filter(|_| self.record.blocked_since.is_none())?;
        let is_late = (self.view.seen.at - since).num_minutes() >= DENIED_MINUTES;
        match &self.record.empty {
            Some(_) => (is_late && self.has_waited_empty()).then(|| self.not_emptied(why)),
            None => is_late.then(|| self.not_admitted(why)),
        }
    }

    /// Gives up an OSD that a gate has blocked before its stop, for this run if the gate would block it
    /// again.
    pub(super) fn withdraw_blocked(&self, reason: &Reason) -> Next {
        if let Reason::PdbRejected { why } = reason
            && self.record.empty.is_none()
        {
            return self.not_admitted(why);
        }
        self.withdraw_unfenced().unwrap_or_else(|| self.withdraw())
    }

    fn not_admitted(&self, why: &str) -> Next {
        let next = self.save(Saving::NotAdmitted { why: why.to_owned() }, |record| record.closing = true);
        let Next::Save { mut ledger, osd, why: saving } = next else { return next };
        ledger.note_refusal(self.record.osd, &self.view.policy.run, RefusedStep::Admission, why);
        Next::Save { ledger, osd, why: saving }
    }
}
