//! Other OSDs of a batch, for which a stop waits.

use chrono::{DateTime, Utc};

use super::Step;
use crate::domain::batch;
use crate::domain::ledger::Record;
use crate::domain::osd::OsdId;
use crate::domain::phase::{self, Phase};
use crate::domain::temporary::INTENT_MINUTES;

impl Step<'_> {
    /// Returns an OSD of the batch that is stopped, and is not down yet, or its pod still exists.
    ///
    /// The PGs of that OSD do not report a missing replica yet. A stop that failed may still be on its way.
    pub(super) fn stopping_beside(&self) -> Option<OsdId> {
        let may_arrive = |other: &Record| {
            let is_recent = |at: DateTime<Utc>| (self.view.seen.at - at).num_minutes() < INTENT_MINUTES;
            self.view.seen.failed.contains(other.osd) && other.stop_intended_at.is_some_and(is_recent)
        };
        let is_stopping = |other: &&Record| {
            // The facts of all of them read all PGs, for each OSD that asks.
            if !phase::is_stopped(other, self.view.daemon(other.osd)) && !may_arrive(other) {
                return false;
            }
            let step = Step::of(other, true, self.view);
            // If it is down and has two Deployments, the pod may be that of the second one.
            let is_going = step.facts.up || step.two_deployments().is_none();
            (step.phase == Phase::Stopping && is_going) || (step.phase == Phase::Serving && may_arrive(other))
        };
        let mut others = self.view.ledger.in_flight().filter(|other| other.osd != self.record.osd);
        others.find(|other| batch::is_of_batch(other) && is_stopping(other)).map(|other| other.osd)
    }
}
