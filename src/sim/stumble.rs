//! Failures of ceph-volume inside a node agent.

use crate::domain::guard::{Guard, is_out};
use crate::domain::inspection::{NodeProblem, NodeTask};
use crate::sim::stage::Stage;
use crate::sim::world::{Effect, World};

/// Failure of ceph-volume.
///
/// Each was observed on 16.2.15 (tests/lab/faults) or is in its sources (devices/lvm/common.py,
/// `rollback_osd`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stumble {
    /// ceph-volume fails before `osd new`, after it, or in mkfs, at its current step.
    Fails,
    /// ceph-volume ends with exit 0 and has done nothing (raw prepare on a device that it considers
    /// prepared).
    DoesNothing,
    /// ceph-volume rolls back with `osd purge-new`, through the shim, which refuses it.
    RollsBack,
    /// ceph-volume rolls back without the shim: the id, its CRUSH item and its upmaps are gone.
    RollsBackPastUs,
    /// ceph-volume ignores `--osd-id` and asks for a new id (a Squid regression), through the shim, which
    /// refuses it.
    IgnoresId,
    /// ceph-volume ignores `--osd-id` without the shim.
    IgnoresIdPastUs,
}

impl World {
    /// Lets ceph-volume fail at its current step.
    pub(super) fn agent_stumbles(&mut self, job: &str, how: Stumble) -> Vec<Effect> {
        let Some(agent) = self.agents.get(job).cloned() else { return Vec::new() };
        let request = &agent.request;
        let failed = || NodeProblem::Failed("ceph-volume failed".to_owned());
        if request.task == NodeTask::Wipe {
            return self.fails(job, NodeProblem::Failed("the wipe failed".to_owned()));
        }
        let issued = match &agent.stage {
            Stage::Registered { id, .. } | Stage::Labelled { id, .. } => Some(*id),
            Stage::Waiting
            | Stage::Inspected { .. }
            | Stage::Proven { .. }
            | Stage::Buried { .. }
            | Stage::Reporting { .. } => None,
        };
        match (how, &agent.stage, issued) {
            (Stumble::DoesNothing, _, _) => {
                self.advance(job, Stage::Reporting { problem: None });
                Vec::new()
            }
            (Stumble::RollsBack, _, Some(id)) if is_out(Guard::ShimRefusesPurge) => {
                self.osd_purge_new(id).ok();
                self.fails(job, failed());
                vec![Effect::Purged(id)]
            }
            (Stumble::RollsBackPastUs, _, Some(id)) => {
                self.osd_purge_new(id).ok();
                self.fails(job, failed())
            }
            (Stumble::IgnoresIdPastUs, Stage::Buried { disk }, _) => {
                self.agent_issues_fsid(job, request, disk.clone(), true);
                Vec::new()
            }
            (Stumble::IgnoresId, Stage::Buried { disk }, _) if is_out(Guard::ShimOneId) => {
                self.agent_issues_fsid(job, request, disk.clone(), true)
            }
            (
                Stumble::Fails
                | Stumble::RollsBack
                | Stumble::RollsBackPastUs
                | Stumble::IgnoresId
                | Stumble::IgnoresIdPastUs,
                _,
                _,
            ) => self.fails(job, failed()),
        }
    }
}
