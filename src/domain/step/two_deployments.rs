//! An OSD past its stop that has two Deployments: a person works on it.

use super::Step;
use crate::domain::gate::{self, Gate};
use crate::domain::guard::{Guard, passes};
use crate::domain::next::{Next, Wait};

impl Step<'_> {
    /// Returns a wait instead of an act that needs the OSD's only Deployment, while there are two.
    ///
    /// Saves and flags go on: Ceph heals without the OSD meanwhile. After a limit, the OSD no longer holds up
    /// the others. Before the stop, a gate is shut.
    pub fn unless_twice(&self, next: Next) -> Next {
        let (record, seen) = (self.record, self.view.seen);
        let Next::Do(act) = &next else { return next };
        let Gate::Shut(reason) = gate::one_deployment(record.osd, seen).guarded() else { return next };
        if self.facts.before_stop() || !act.needs_only_deployment() {
            return next;
        }
        let since = record.down_since.or(record.saved_at);
        let is_late = since.is_some_and(|since| seen.at - since >= self.stop_limit());
        if !passes(Guard::StopHasALimit, !is_late) {
            return self.quarantine(format!(
                "it has two Deployments, and was not completed for that reason: {reason}"
            ));
        }
        Next::Wait(Wait::Gate { osd: record.osd, reason })
    }
}
