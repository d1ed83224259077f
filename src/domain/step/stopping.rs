//! Steps of an OSD that osd-migrate has stopped, until it is down and its pod is gone.

use chrono::TimeDelta;

use super::Step;
use super::down::UNKNOWN_MINUTES;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, passes};
use crate::domain::next::{Next, Wait};

/// Limits of `noout` that the pod of a stopped OSD may take to end.
///
/// Ceph heals without the OSD after the first one, so nothing gets worse by waiting for a reboot of the node.
const STOPS: i32 = 2;

/// Minutes that the pod has at least: a pod that ends as it should has 30 s by default, and some a few
/// minutes.
const STOP_MINUTES: i64 = 10;

impl Step<'_> {
    /// Reverts the stop if another client scaled up the Deployment, which still has osd-migrate's mark.
    ///
    /// Nothing is lost yet.
    pub(super) fn started_externally(&self) -> Option<Next> {
        let daemon = self.view.daemon(self.record.osd)?;
        let is_wanted_up = daemon.replicas > 0 && daemon.stopped_by.is_some();
        (!passes(Guard::StaysStopped, !is_wanted_up)).then(|| self.revert_stop(&Reason::StartedExternally))
    }

    pub(super) fn stopping(&self) -> Next {
        if let Some(next) = self.started_externally().or_else(|| self.give_up_stop()) {
            return next;
        }
        // Under `nodown` the OSD never counts as down: its PGs would wait for a daemon that is gone.
        let flags = [gate::flags(self.view.seen), gate::flags_of(self.record.osd, self.view.seen)];
        match gate::first_not_open(flags) {
            Gate::Shut(reason) if !self.facts.pod => self.revert_stop(&reason),
            Gate::Open | Gate::Shut(_) | Gate::Unknown(_) => Next::Wait(self.wait_for_its_pod()),
        }
    }

    /// Reverts the stop of an OSD whose pod does not end, or that still counts as up without a pod.
    ///
    /// If its node is lost, or its daemon hangs, the other OSDs must not wait for it. It serves again as soon
    /// as a pod can start. A dead OSD is given up for this run. Clients wait for an OSD that counts as up,
    /// whatever keeps the mons from marking it down.
    fn give_up_stop(&self) -> Option<Next> {
        let limit = (self.view.policy.limits.noout * STOPS).max(TimeDelta::minutes(STOP_MINUTES));
        // The pod may be that of a second Deployment.
        let may_end = self.facts.pod && self.two_deployments().is_none();
        let is_late = may_end && self.down_for() >= limit;
        let counts_as_up = !self.facts.pod && self.facts.up;
        let is_missed = counts_as_up && self.down_for() >= TimeDelta::minutes(UNKNOWN_MINUTES);
        (!passes(Guard::StopHasALimit, !is_late && !is_missed)).then(|| {
            let minutes = self.down_for().num_minutes();
            let why = if is_missed {
                format!("its pod is gone, and Ceph still counts it as up, {minutes} minutes after its stop")
            } else {
                format!("its pod has not ended for {minutes} minutes")
            };
            if self.facts.dead { self.not_emptied(&why) } else { self.revert_stop_because(why) }
        })
    }

    /// Waits until the OSD is down and its pod gone; of a dead OSD, perhaps for what its node needs.
    pub(super) fn wait_for_its_pod(&self) -> Wait {
        let osd = self.record.osd;
        if let Some(reason) = self.two_deployments() {
            return Wait::Gate { osd, reason };
        }
        match gate::node_answers(osd, self.view.seen) {
            Gate::Shut(reason) | Gate::Unknown(reason) if self.facts.dead => Wait::Gate { osd, reason },
            Gate::Open | Gate::Shut(_) | Gate::Unknown(_) => Wait::Down { osd },
        }
    }
}
