//! Whether the API server admits the Deployment of the new OSD: asked before the old one is stopped, because afterwards the data is gone.

use super::{Step, drains};
use crate::domain::act::Deploy;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::next::{Next, Saving};
use crate::domain::phase::{self, Phase};
use crate::domain::policy::Accepted;

impl Step<'_> {
    /// Returns what the API server is asked about: the Deployment to be, if nothing else stands in the way of the stop.
    pub fn asks_admission(&self) -> Option<Deploy> {
        let is_next = self.phase == Phase::Serving && self.begins() && self.rests_after_revert().is_none();
        if !is_next || gate::held(self.policy, self.seen) != Gate::Open {
            return None;
        }
        match self.stop_gates(&gate::accepted(self.policy, self.seen)) {
            // Ceph is asked for `ok-to-stop` at the same time.
            Gate::Open | Gate::Unknown(Reason::NotAsked) => self.foreseen(),
            Gate::Shut(_) | Gate::Unknown(_) => None,
        }
    }

    /// The gates before a stop, except for what the API server says of the new Deployment: that is asked last.
    pub(super) fn stop_gates(&self, accepted: &Accepted) -> Gate {
        let (record, seen) = (self.record, self.seen);
        // Behind our fence Rook could not end what it has begun.
        let rook = || self.our_fence().map_or_else(|| gate::migrates_none(self.ledger, seen), |_| Gate::Open);
        let gates: [&dyn Fn() -> Gate; 5] = [
            &rook,
            &|| gate::before_stop(record.osd, &record.node, self.our_fence(), accepted, seen),
            &|| gate::enough_space(record, seen),
            &|| drains::counted(record, seen),
            &|| drains::allowed(record.osd, seen),
        ];
        gates.iter().map(|gate| gate()).find(|gate| *gate != Gate::Open).unwrap_or(Gate::Open)
    }

    /// Returns what Deploy will be rendered from, as far as that is known. The fsid and the paths of logical volumes come with the
    /// rebuild: in their place are values of the same form.
    fn foreseen(&self) -> Option<Deploy> {
        let record = self.record;
        let device = &record.evidence.as_ref()?.device;
        let look = phase::last_inspection(record, self.seen).and_then(|report| report.inspection.as_ref());
        let kernel = look.and_then(|look| look.kernel.as_ref());
        let volume = || format!("/dev/ceph-{0}/osd-block-{0}", record.old);
        let block_path = super::up::block_path(record, device, None, kernel).unwrap_or_else(volume);
        Some(self.deployment(record.old, block_path, None, kernel))
    }

    /// Closes the record of an OSD whose new Deployment is refused, if nothing was set for its stop: this run does not begin it again, and
    /// the others go on. An intent is waited out first, as for any other gate: a call may be on its way.
    pub(super) fn give_up_unadmitted(&self, admitted: &Gate) -> Option<Next> {
        let Gate::Shut(Reason::AdmissionRefused { why, .. }) = admitted else { return None };
        if self.record.stop_intended_at.is_some() {
            return None;
        }
        let next = self.save(Saving::NotAdmitted { why: why.clone() }, |record| record.closing = true);
        let Next::Save { mut ledger, osd, why: saving } = next else { return Some(next) };
        ledger.note_refusal(self.record.osd, &self.policy.run, why);
        Some(Next::Save { ledger, osd, why: saving })
    }
}
