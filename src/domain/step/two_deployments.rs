//! An OSD past its stop that has two Deployments: a person works on it.

use super::Step;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::next::{Next, Wait};

impl Step<'_> {
    /// Returns a wait instead of an act that needs the OSD's only Deployment, while there are two.
    ///
    /// Saves and flags go on: Ceph heals without the OSD meanwhile. Before the stop, a gate is shut.
    pub fn unless_twice(&self, next: Next) -> Next {
        let Next::Do(act) = &next else { return next };
        match self.two_deployments() {
            Some(reason) if !self.facts.before_stop() && act.needs_only_deployment() => {
                Next::Wait(Wait::Gate { osd: self.record.osd, reason })
            }
            Some(_) | None => next,
        }
    }

    /// Returns a reason if the OSD has two Deployments.
    pub(super) fn two_deployments(&self) -> Option<Reason> {
        match gate::one_deployment(self.record.osd, self.view.seen).guarded() {
            Gate::Shut(reason) | Gate::Unknown(reason) => Some(reason),
            Gate::Open => None,
        }
    }
}
