//! The device of the PVC that an OSD is on. It is the one that Kubernetes gave to the agent's pod; no other
//! device of the node is inspected.

use std::path::Path;

use crate::domain::inspection::{Evidence, NodeRequest, Proof, pvc_node};
use crate::domain::osd::Role;
use crate::domain::proof::finding::{DiskFinding, Layer};
use crate::domain::proof::same_disk;
use crate::node::disk::devices::{self, Disk};
use crate::node::disk::links::Links;
use crate::node::disk::parts;
use crate::node::error::NodeError;
use crate::node::find::content;
use crate::node::find::search::{FoundDisk, Search, reading};
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::tools::command::{QUICK, blocking};
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
    let disk = device(host, pvc).await?;
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
    let disk = device(host, pvc).await?;
    let other = |why: String| Search::None(format!("PVC {pvc} leads to another disk than recorded: {why}"));
    // Another disk is not even examined: its LUKS header would be opened.
    if let Err(why) = same_disk::same_device(&evidence.device, &disk.identity) {
        return Ok(other(why));
    }
    let examine = examine(host, &disk, request, sharing).await?;
    if let Err(why) = same_disk::same_disk(&evidence.device, &disk.identity, &examine.content) {
        return Ok(other(why));
    }
    Ok(Search::One(Box::new(FoundDisk { disk, examine, volume: None })))
}

async fn examine(
    host: &Host,
    disk: &Disk,
    request: &NodeRequest,
    sharing: Sharing,
) -> Result<DiskFinding, NodeError> {
    let examine = content::examine(disk, reading(host, request, sharing)).await?;
    let examine = match &examine.layer {
        Some(Layer::Luks(_)) => {
            within::within(host, disk, examine, &LvmCache::default(), request, Moment::Asked).await?
        }
        Some(Layer::Physical(_)) | None => examine,
    };
    Ok(supported(examine))
}

/// Returns the finding without a proof if the OSD is of a kind that is not migrated on a PVC.
fn supported(examine: DiskFinding) -> DiskFinding {
    match &examine.proof {
        None | Some(Proof::BluestoreLabel { .. } | Proof::Luks { .. }) => examine,
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

/// Returns the device of the PVC by the node that the pod's init container made (`bridge`).
async fn device(host: &Host, pvc: &str) -> Result<Disk, NodeError> {
    let node = host.pvc.join(pvc_node(Role::Block));
    let refused = |why: String| NodeError::Refused(format!("the device of PVC {pvc}: {why}"));
    let number = devices::number_of(&node).map_err(refused)?;
    let disk = with_number(host, number).await?.map_err(refused)?;
    Ok(Disk { node, ..disk })
}

/// Returns the whole device or the partition with that number, or why there is none.
async fn with_number(host: &Host, number: (u32, u32)) -> Result<Result<Disk, String>, NodeError> {
    let (sys_block, dev) = (host.sys_block.clone(), host.dev.clone());
    let read = move || Ok(whole(&sys_block, &dev, number));
    let Some(whole) = blocking("inspect", host.sys_block.display().to_string(), QUICK, read).await? else {
        return Ok(Err(format!(
            "the kernel of node {} shows no device {}:{}",
            host.node, number.0, number.1
        )));
    };
    if whole.number == number {
        return Ok(Ok(whole));
    }
    let parts = parts::of(&whole, &host.sys_block, &host.dev).await?;
    let part = parts.disks.into_iter().find(|part| part.number == number);
    Ok(part.ok_or_else(|| format!("a partition of {}: {}", whole.name, parts.unseen.join("; "))))
}

/// Returns the whole device with that number, or with a partition that has it.
fn whole(sys_block: &Path, dev: &Path, number: (u32, u32)) -> Option<Disk> {
    let (name, number) = devices::with_number(sys_block, number)?;
    let node = dev.join(name.replace('!', "/"));
    Some(devices::whole(&sys_block.join(&name), &name, number, node, &Links::read(dev), dev))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::domain::inspection::Content;
    use crate::domain::osd::Kind;
    use crate::node::samples::{host, request};

    /// Returns a node with a disk, one with a partition, and a volume of LVM.
    fn node(root: &Path) -> Host {
        let root = root.canonicalize().unwrap();
        let host = host(&root);
        let files = [
            ("sdb/dev", "8:16"),
            ("sdb/size", "2048"),
            ("sdb/device/wwid", "naa.5"),
            ("sdb/holders/dm-1", ""),
            ("sdb/ro", "1"),
            ("sdc/dev", "8:32"),
            ("sdc/sdc1/dev", "8:33"),
            ("sdc/sdc1/partition", "1"),
            ("sdc/sdc1/start", "8"),
            ("sdc/sdc1/size", "8"),
            ("dm-0/dev", "254:0"),
            ("dm-0/size", "4096"),
            ("dm-0/dm/uuid", "LVM-x"),
        ];
        for (file, text) in files {
            let file = host.sys_block.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
        fs::create_dir_all(host.dev.join("disk/by-id")).unwrap();
        fs::write(host.dev.join("sdb"), "").unwrap();
        symlink("../../sdb", host.dev.join("disk/by-id/ata-b")).unwrap();
        host
    }

    #[tokio::test]
    async fn device_of_a_pvc_is_found_in_sysfs_by_its_number() {
        let root = tempfile::tempdir().unwrap();
        let host = node(root.path());
        let disk = with_number(&host, (8, 16)).await.unwrap().unwrap();
        assert_eq!((disk.name.as_str(), disk.identity.size_bytes), ("sdb", 1 << 20));
        assert_eq!(disk.identity.by_id, ["ata-b".to_owned()].into());
        assert_eq!(disk.identity.wwn.as_deref(), Some("naa.5"));
        assert!(disk.read_only && disk.holders == ["dm-1"]);
        let volume = with_number(&host, (254, 0)).await.unwrap().unwrap();
        assert_eq!(volume.identity.wwn.as_deref(), Some("dm-uuid-LVM-x"));
        let whole = whole(&host.sys_block, &host.dev, (8, 33)).unwrap();
        assert_eq!((whole.name.as_str(), whole.number), ("sdc", (8, 32)));
        // The table of the disk can't be read here, so the partition has no identity.
        let why = with_number(&host, (8, 33)).await.unwrap().unwrap_err();
        assert!(why.starts_with("a partition of sdc: ") && why.contains("sdc1"), "{why}");
        let why = with_number(&host, (8, 48)).await.unwrap().unwrap_err();
        assert_eq!(why, "the kernel of node n1 shows no device 8:48");
    }

    #[tokio::test]
    async fn missing_device_of_a_pvc_is_refused_with_its_name() {
        let root = tempfile::tempdir().unwrap();
        let host = node(root.path());
        let found = any(&host, &request("n1"), "set1-data-0x", Sharing::No).await;
        let why = found.unwrap_err();
        assert!(matches!(&why, NodeError::Refused(why) if why.contains("set1-data-0x")), "{why}");
        fs::create_dir_all(&host.pvc).unwrap();
        fs::write(host.pvc.join(pvc_node(Role::Block)), "").unwrap();
        let why = any(&host, &request("n1"), "x", Sharing::No).await.unwrap_err().to_string();
        assert!(why.ends_with("is not a block device"), "{why}");
    }

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
