//! The OSD on PVCs: the device of its data, with its parts on other PVCs (`node::pvc`). No other device of
//! the node is inspected.

use crate::domain::inspection::{Evidence, NodeRequest, Proof};
use crate::domain::osd::{Kind, Role};
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::same_disk;
use crate::node::disk::devices::Disk;
use crate::node::error::NodeError;
use crate::node::find::content;
use crate::node::find::search::{FoundDisk, Search, reading};
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::pvc::device::device;
use crate::node::pvc::inspect;
use crate::node::volumes::lvm_cache::LvmCache;
use crate::node::volumes::old::Moment;
use crate::node::volumes::within;

/// Finds the device of the PVC, whatever is on it.
pub(crate) async fn any(
    host: &Host,
    request: &NodeRequest,
    pvc: &str,
    sharing: Sharing,
) -> Result<Search, NodeError> {
    let disk = device(host, Role::Block, pvc).await?;
    let examine = examine(host, &disk, request, sharing).await?;
    Ok(Search::One(Box::new(FoundDisk { disk, examine, volume: None })))
}

/// Finds the device of the PVC, if it is the recorded one.
pub(crate) async fn recorded(
    host: &Host,
    request: &NodeRequest,
    pvc: &str,
    evidence: &Evidence,
    sharing: Sharing,
) -> Result<Search, NodeError> {
    let disk = device(host, Role::Block, pvc).await?;
    // Another disk is not even examined: its LUKS header would be opened.
    if let Err(why) = same_disk::same_for(request, &evidence.device, &disk.identity) {
        return Ok(Search::None(format!("PVC {pvc} leads to another disk than recorded: {why}")));
    }
    let examine = examine(host, &disk, request, sharing).await?;
    Ok(Search::One(Box::new(FoundDisk { disk, examine, volume: None })))
}

async fn examine(
    host: &Host,
    disk: &Disk,
    request: &NodeRequest,
    sharing: Sharing,
) -> Result<DiskFinding, NodeError> {
    let examine = content::examine(disk, reading(host, request, sharing)).await?;
    let examine = within::within(host, disk, examine, &LvmCache::default(), request, Moment::Asked).await?;
    inspect::complete(host, request, disk, supported(examine)).await
}

/// Returns the finding without a proof if the OSD is of a kind that is not migrated on a PVC.
fn supported(examine: DiskFinding) -> DiskFinding {
    match &examine.proof {
        None | Some(Proof::BluestoreLabel { .. } | Proof::Luks { .. }) => examine,
        // A volume with a database or a log has them on another device.
        Some(Proof::Volume { format: Kind::Lvm, luks: None, .. }) if examine.auxiliary.is_empty() => examine,
        Some(
            Proof::Partitions { .. }
            | Proof::Volume { .. }
            | Proof::Directory { .. }
            | Proof::Available { .. },
        ) => {
            DiskFinding::other(format!("{}, which is not supported on a PVC", examine.content), examine.about)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::inspection::Content;
    use crate::node::samples::request;

    #[test]
    fn osd_on_partitions_of_a_pvc_has_no_proof() {
        let request = request("n1");
        let (osd_fsid, whoami, cluster) = (request.old, request.osd, request.cluster);
        let content = Content::Osd { format: Kind::BluestorePartition, osd_fsid, whoami, cluster };
        let proof = Proof::Partitions {
            format: Kind::BluestorePartition,
            parts: [].into(),
            fs_uuid: None,
            osd_fsid,
            whoami,
            cluster,
        };
        let examine = DiskFinding { proof: Some(proof), ..DiskFinding::plain(content, Some(osd_fsid)) };
        let found = supported(examine);
        assert!(
            matches!(&found.content, Content::Other { what } if what.ends_with("not supported on a PVC"))
        );
        assert_eq!((found.proof, found.about), (None, Some(osd_fsid)));
        let label = Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: true };
        let plain = DiskFinding { proof: Some(label), ..DiskFinding::plain(Content::Blank, Some(osd_fsid)) };
        assert_eq!(supported(plain.clone()), plain);
    }
}
