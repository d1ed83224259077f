//! The device of a PVC. It is the one that Kubernetes gave to the agent's pod; no other device of the node is
//! inspected.

use std::path::Path;

use crate::domain::osd::Role;
use crate::node::disk::devices::{self, Disk};
use crate::node::disk::links::Links;
use crate::node::disk::parts;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::tools::command::{QUICK, blocking};

/// Returns the device of a PVC by the node that the pod's init container made (`bridge`).
pub(crate) async fn device(host: &Host, role: Role, pvc: &str) -> Result<Disk, NodeError> {
    let node = host.pvc_device(role);
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
    use crate::node::samples::host;

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
        let why = device(&host, Role::Db, "set1-data-0x").await.unwrap_err();
        assert!(matches!(&why, NodeError::Refused(why) if why.contains("set1-data-0x")), "{why}");
        fs::create_dir_all(&host.pvc).unwrap();
        fs::write(host.pvc_device(Role::Db), "").unwrap();
        let why = device(&host, Role::Db, "x").await.unwrap_err().to_string();
        assert!(why.ends_with("is not a block device"), "{why}");
    }
}
