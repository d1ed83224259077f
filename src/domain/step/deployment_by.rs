//! Leaves the Deployment of a recreated OSD to Rook: its prepare Job finds the OSD on the disk (1.20,
//! "re-hydration").
//!
//! See `docs/development/adr/0020-deployment-by-rook.md`.

use chrono::TimeDelta;

use super::Step;
use crate::domain::act::{Act, KubeAct};
use crate::domain::gate;
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::policy::DeploymentBy;
use crate::domain::provision;
use crate::domain::temporary::{fence, owner_fence};

/// Minutes that Rook may take on a small cluster.
///
/// It took 45 to 85 s from the removal of the fence, including a reconcile that ended before (1.20.6, three
/// hosts). Meanwhile the OSD is down, and its data is missing a replica.
const HYDRATE_MINUTES: i64 = 10;

/// Nodes for which Rook gets one more minute: it creates its Jobs one after the other, 3.1 to 3.8 s each, and
/// evaluates none of them before.
const NODES_A_MINUTE: usize = 15;

/// Returns the minutes that Rook gets in a cluster of this many nodes.
fn minutes(nodes: usize) -> i64 {
    HYDRATE_MINUTES + i64::try_from(nodes / NODES_A_MINUTE).unwrap_or(HYDRATE_MINUTES)
}

impl Step<'_> {
    /// Returns the time that Rook had for the Deployment, if the Deployment was left to it.
    ///
    /// The daemon's own time starts after that.
    pub(super) fn time_of_rook(&self) -> TimeDelta {
        let given = self.record.left_to_rook_since.map(|_| minutes(self.view.seen.kube.nodes.len()));
        TimeDelta::minutes(given.unwrap_or(0))
    }

    /// Returns the next step if Rook is to create the Deployment; `None` if osd-migrate renders it.
    ///
    /// First the old Deployment is deleted, then the fence is removed, then Rook has its time.
    pub(super) fn leave_to_rook(&self) -> Option<Next> {
        let operator = self.view.seen.kube.fenceable_operator().filter(|_| self.is_left_to_rook())?;
        let (osd, record) = (self.record.osd, self.record);
        let Some(since) = record.left_to_rook_since else {
            let at = self.view.seen.at;
            return Some(self.save(Saving::LeftToRook, |record| record.left_to_rook_since = Some(at)));
        };
        let minutes = minutes(self.view.seen.kube.nodes.len());
        if (self.view.seen.at - since).num_minutes() >= minutes {
            return None;
        }
        if let Some(daemon) = self.view.daemon(osd) {
            return Some(self.fenced(Act::Kube(KubeAct::DropDeployment {
                osd,
                record: record.id.clone(),
                deployment: daemon.uid.clone(),
                generation: daemon.generation,
            })));
        }
        Some(match self.view.our_fence() {
            Some(value) => fence::take_down(value, self.view),
            None => Next::Wait(Wait::RookDeploys { osd, operator: operator.name.clone(), minutes }),
        })
    }

    /// Returns whether Rook can continue without harm, manages the node's disks, and no client uses the old
    /// Deployment.
    ///
    /// Rook finds OSDs on PVCs in another way; these get their Deployment from osd-migrate.
    fn is_left_to_rook(&self) -> bool {
        let (osd, record) = (self.record.osd, self.record);
        let is_at_rest = || {
            let daemon = self.view.daemon(osd);
            daemon.is_none_or(|daemon| self.facts.stopped && daemon.replicas == 0 && daemon.pods.is_empty())
        };
        self.view.policy.deployment_by == DeploymentBy::ByRook
            && !record.is_new()
            && record.pvcs.is_none()
            && !gate::needs_lasting_fence(self.view.seen)
            && !owner_fence::stands(self.view)
            && !self.rook_would_meet_others()
            && is_at_rest()
            && provision::is_declared(&record.node, self.view.seen)
    }
}
