//! What an agent does with the directory of an OSD that left it.

use crate::domain::guard::{Guard, passes};
use crate::domain::inspection::{Content, NodeProblem, NodeRequest};
use crate::domain::observation::SlotState;
use crate::domain::proof::proven::old_is_proven;
use crate::sim::stage::Stage;
use crate::sim::world::{Effect, World, fsid_on};

impl World {
    /// Proves the directory once more, and removes it.
    ///
    /// A missing directory was removed already.
    pub(super) fn agent_clears(&mut self, job: &str, request: &NodeRequest) -> Vec<Effect> {
        let Some((name, disk)) = self.directory_of(request) else {
            self.advance(job, Stage::Reporting { problem: None });
            return Vec::new();
        };
        if self.is_run(disk) {
            return self.fails(job, NodeProblem::Failed("the directory is in use".to_owned()));
        }
        let slot = self.ceph.slots.get(&request.osd).map(|slot| slot.state);
        let is_given_up = request.after.is_none() || slot == Some(SlotState::Destroyed);
        if !passes(Guard::AgentSlotDestroyed, is_given_up) {
            return self.fails(job, NodeProblem::Refused("the slot is not destroyed".to_owned()));
        }
        let proven = match (&request.evidence, &disk.proof) {
            (Some(evidence), Some(seen)) => old_is_proven(request, evidence, seen),
            (None, _) | (_, None) => Err("no proof".to_owned()),
        };
        if let Err(why) = proven {
            return self.fails(job, NodeProblem::Refused(why));
        }
        let name = name.clone();
        let Some(disk) = self.disks.get_mut(&name) else { return Vec::new() };
        let system = Content::Other { what: "the host's system".to_owned() };
        let was = std::mem::replace(&mut disk.content, system);
        disk.proof = None;
        if let Some(fsid) = fsid_on(&was) {
            self.forget_store(fsid);
        }
        self.advance(job, Stage::Reporting { problem: None });
        vec![Effect::Cleared { disk: name, was, osd: request.osd, record: request.record.clone() }]
    }
}
