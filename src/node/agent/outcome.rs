//! Result of a task, as the agent reports it.

use crate::domain::inspection::{
    Capability, Content, Evidence, Inspection, KernelDisk, NodeRequest, Piece, Proof,
};
use crate::domain::osd::device_type;
use crate::domain::proof::Layers;
use crate::node::create::capability::{self, CapabilityAnswer};
use crate::node::disk::devices::Disk;
use crate::node::error::NodeError;
use crate::node::find::search::{FoundDisk, Search};
use crate::node::host::Host;
use crate::node::volumes::luks::HEADER_BYTES;

/// The agent's last observation, and why it did not do its task.
pub(crate) struct Outcome {
    pub(crate) inspection: Option<Inspection>,
    pub(crate) error: Option<NodeError>,
    /// Remains on the host after the task is done, with reasons.
    pub(crate) left: Vec<String>,
}

impl Outcome {
    pub(crate) fn failed(error: NodeError) -> Self {
        Self { inspection: None, error: Some(error), left: Vec::new() }
    }
}

/// Returns what a search found and what the image can do, for the report.
pub(super) fn inspection(
    request: &NodeRequest,
    host: &Host,
    search: Search,
    asked: &CapabilityAnswer,
) -> Inspection {
    let mut capability = asked.capability.clone();
    let layers = match &search {
        Search::One(found) => Layers::found(&found.examine),
        Search::None(_) | Search::Several(_) => Layers::None,
    };
    capability.missing_tools.extend(capability::missing_for_layers(host, request, layers));
    match search {
        Search::One(found) => {
            let FoundDisk { disk, examine, volume } = *found;
            let kernel = kernel(&disk);
            let evidence = examine
                .proof
                .filter(|_| examine.about == Some(request.old))
                .map(|proof| evidence(request, disk, proof, examine.auxiliary, examine.usable_bytes));
            Inspection { content: examine.content, evidence, capability, volume, kernel }
        }
        Search::None(inspected) => nothing(Content::NotFound { inspected }, capability),
        Search::Several(disks) => {
            nothing(Content::Other { what: format!("several disks carry this OSD: {disks}") }, capability)
        }
    }
}

fn nothing(content: Content, capability: Capability) -> Inspection {
    Inspection { content, evidence: None, capability, volume: None, kernel: None }
}

fn kernel(disk: &Disk) -> Option<KernelDisk> {
    let device_type = device_type(disk.rotational, &disk.name).to_owned();
    // The node of a PVC's device is in the agent's pod only.
    let node = format!("/dev/{}", disk.name.replace('!', "/"));
    (!disk.is_file()).then_some(KernelDisk { node, device_type, links: disk.links.clone() })
}

fn evidence(
    request: &NodeRequest,
    disk: Disk,
    proof: Proof,
    auxiliary: Vec<Piece>,
    usable_bytes: Option<u64>,
) -> Evidence {
    let header = request.pvc_with_key().map_or(0, |_| HEADER_BYTES);
    let usable_bytes = usable_bytes.unwrap_or(disk.identity.size_bytes).saturating_sub(header);
    Evidence { usable_bytes, device: disk.identity, proof, auxiliary }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::node::disk::links::Links;
    use crate::node::samples::bare_disk;

    /// Checks that a disk is reported under each path that `devices` of a CephCluster may contain.
    #[test]
    fn reported_disk_has_the_paths_that_an_owner_may_name() {
        let root = tempfile::tempdir().unwrap();
        let dev = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(dev.join("disk/by-id")).unwrap();
        std::fs::write(dev.join("sdb"), "").unwrap();
        symlink("../../sdb", dev.join("disk/by-id/ata-1")).unwrap();
        let links = Links::read(&dev).of(&dev.join("sdb"));
        let kernel = kernel(&Disk { links, ..bare_disk(&["ata-1"], 1) }).unwrap();
        assert_eq!(kernel.node, "/dev/sdb");
        assert_eq!(kernel.links, [dev.join("disk/by-id/ata-1").display().to_string()].into());
    }
}
