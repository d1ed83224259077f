//! Partitions that are to carry an OSD of their own: each counts as a disk with its own identity. Work on
//! such a partition reaches neither the disk's partition table nor the neighbouring partitions: the
//! partition's node ends together with the partition.

use std::path::Path;

use crate::domain::osd::DeviceIdentity;
pub(crate) use crate::domain::osd::PART_UUID;
use crate::node::disk::devices::{self, Disk, SECTOR_BYTES};
use crate::node::disk::links::Links;
use crate::node::disk::table::{self, Entry};
use crate::node::error::NodeError;

/// Returns the partitions of a disk that the kernel knows.
///
/// A partition that the table on the disk does not show at exactly that place has no unique id: its node may
/// lead to other bytes.
pub(crate) async fn of(disk: &Disk, sys_block: &Path, dev: &Path) -> Result<Parts, NodeError> {
    if disk.partitions.is_empty() {
        return Ok(Parts::default());
    }
    let (entries, unread) = match table::entries(&disk.node).await {
        Ok(entries) => (entries, None),
        Err(error) => (Vec::new(), Some(format!("the partition table of {}: {error}", disk.described()))),
    };
    let mut parts = listed(disk, &entries, sys_block, dev);
    parts.unseen.extend(unread);
    Ok(parts)
}

/// Partitions of a disk.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) disks: Vec<Disk>,
    /// Partitions and tables that can't be inspected, with reasons.
    pub(crate) unseen: Vec<String>,
}

fn listed(disk: &Disk, entries: &[Entry], sys_block: &Path, dev: &Path) -> Parts {
    let links = Links::read(dev);
    let mut found = Parts::default();
    for part in &disk.partitions {
        let sys = sys_block.join(&disk.name).join(&part.name);
        let entry = entries.iter().find(|entry| {
            (entry.index, entry.start, entry.sectors) == (part.index, part.start, part.sectors)
        });
        let uuid = entry.map(|entry| entry.part_uuid.as_str()).filter(|uuid| !uuid.is_empty());
        match devices::same_device(&sys, &part.node) {
            Err(why) => found.unseen.push(format!("{} ({why})", part.name)),
            Ok(number) => found.disks.push(Disk {
                name: part.name.clone(),
                node: part.node.clone(),
                number,
                identity: DeviceIdentity {
                    by_id: links.by_id(&part.node),
                    by_path: links.by_path(&part.node),
                    serial: None,
                    wwn: uuid.map(|uuid| format!("{PART_UUID}{uuid}")),
                    size_bytes: part.sectors.saturating_mul(SECTOR_BYTES),
                },
                links: links.of(&part.node),
                parent: Some(disk.name.clone()),
                rotational: disk.rotational,
                read_only: disk.read_only || devices::is_read_only(&sys),
                holders: devices::holders(&sys),
                partitions: Vec::new(),
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> DeviceIdentity {
        DeviceIdentity { by_id: [].into(), by_path: [].into(), serial: None, wwn: None, size_bytes: 1 }
    }

    #[test]
    fn partition_without_its_device_node_is_reported_as_unseen() {
        let root = tempfile::tempdir().unwrap();
        let partition = devices::Partition {
            index: 1,
            name: "sdb1".into(),
            node: root.path().join("sdb1"),
            start: 2048,
            sectors: 100,
        };
        let disk = Disk {
            name: "sdb".into(),
            node: root.path().join("sdb"),
            number: (8, 16),
            identity: identity(),
            links: [].into(),
            parent: None,
            rotational: true,
            read_only: false,
            holders: Vec::new(),
            partitions: vec![partition],
        };
        let found = listed(&disk, &[], root.path(), root.path());
        assert!(found.disks.is_empty() && found.unseen[0].starts_with("sdb1 ("), "{:?}", found.unseen);
    }
}
