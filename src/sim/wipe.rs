//! What an agent does with the disk of an OSD that is removed, after the tombstone.

use crate::domain::inspection::{Content, NodeProblem, NodeRequest};
use crate::domain::removal::DiskAfter;
use crate::sim::stage::Stage;
use crate::sim::world::World;

/// Returns the content that the disk gets.
fn content_after(request: &NodeRequest) -> Content {
    match request.after {
        Some(DiskAfter::Mark) => Content::Other { what: "an empty partition table".to_owned() },
        Some(DiskAfter::Wipe | DiskAfter::Leave) | None => Content::Blank,
    }
}

/// Returns whether an earlier agent has finished the disk.
pub(super) fn is_wiped(request: &NodeRequest, content: &Content) -> bool {
    *content == content_after(request)
}

impl World {
    /// Wipes the rest of the disk, which the agent has open, and with it the OSD's volume for its database.
    pub(super) fn agent_blanks(&mut self, job: &str, request: &NodeRequest, name: &str) {
        let open = |held_by: Option<&str>| held_by == Some(job);
        let Some(disk) = self.disks.get_mut(name).filter(|disk| open(disk.held_by.as_deref())) else {
            // The agent has a disk open that was pulled out.
            self.fails(job, NodeProblem::Failed("wipe: input/output error".to_owned()));
            return;
        };
        (disk.content, disk.held_by) = (content_after(request), None);
        self.databases.remove(&request.old);
        self.advance(job, Stage::Reporting { problem: None });
    }
}
