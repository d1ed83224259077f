//! ceph-volume on a bad day, inside a node agent.

use super::{Effect, Stage, World};
use crate::domain::guard::{Guard, is_out};
use crate::domain::inspection::NodeProblem;

/// How ceph-volume fails. Each was seen on 16.2.15 (tests/lab/faults) or is in its sources (devices/lvm/common.py, `rollback_osd`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stumble {
    /// It fails before `osd new`, after it, or in mkfs, wherever it is.
    Fails,
    /// It ends with exit 0 and has done nothing (raw prepare on a device it takes for prepared).
    DoesNothing,
    /// Its rollback: `osd purge-new`. Through our stand-in, which refuses.
    RollsBack,
    /// The same past our stand-in: the id, its CRUSH item and its upmaps are gone.
    RollsBackPastUs,
    /// It ignores `--osd-id` and asks for a new id (a Squid regression). Through our stand-in, which refuses.
    IgnoresId,
    /// The same past our stand-in.
    IgnoresIdPastUs,
}

impl World {
    /// ceph-volume fails where it is now.
    pub(super) fn agent_stumbles(&mut self, job: &str, how: Stumble) -> Vec<Effect> {
        let Some(agent) = self.agents.get(job).cloned() else { return Vec::new() };
        let request = &agent.request;
        let failed = || NodeProblem::Failed("ceph-volume failed".to_owned());
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
