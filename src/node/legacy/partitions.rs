//! Partitions of a disk with an OSD on them: the table, the labels, and what of it proves the OSD.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::domain::inspection::{Content, Proof};
use crate::domain::osd::{ClusterFsid, Kind, OsdFsid, OsdId, Role};
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::proven::Reread;
use crate::node::disk::devices::Disk;
use crate::node::disk::label::{self, Label, label_at};
use crate::node::disk::table::{self, Entry};
use crate::node::error::NodeError;

/// A disk's table, and the labels that its partitions begin with.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) entries: &'a [Entry],
    /// labels by unique guid of the partition
    pub(super) labels: BTreeMap<String, Label>,
}

impl<'a> Table<'a> {
    pub(super) async fn read(disk: &Disk, entries: &'a [Entry]) -> Result<Self, NodeError> {
        let mut labels = BTreeMap::new();
        for entry in entries {
            let Some(node) = node_of(disk, entry) else { continue };
            if label_at(&node).await?.is_some() {
                labels.insert(entry.part_uuid.clone(), label::read(&node).await?);
            }
        }
        Ok(Self { entries, labels })
    }

    /// Returns the partitions with a label of this OSD, except its main one; a sentence if two have the same
    /// role.
    pub(super) fn auxiliary_of_block(&self, osd_fsid: OsdFsid) -> Result<BTreeMap<Role, String>, String> {
        let mut parts = BTreeMap::new();
        for (uuid, label) in self.labels.iter().filter(|(_, label)| label.osd_fsid == osd_fsid) {
            let role = label.role().filter(|role| *role != Role::Block);
            if let Some(role) = role
                && parts.insert(role, uuid.clone()).is_some()
            {
                return Err(format!("two partitions are its {role}"));
            }
        }
        Ok(parts)
    }

    /// Returns the partitions that are none of these.
    pub(super) fn others(&self, parts: &BTreeMap<Role, String>) -> Vec<String> {
        let is_other = |entry: &&Entry| !parts.values().any(|uuid| *uuid == entry.part_uuid);
        self.entries.iter().filter(is_other).map(Entry::described).collect()
    }
}

/// Identity of an OSD.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    pub(super) osd_fsid: OsdFsid,
    pub(super) whoami: OsdId,
    pub(super) cluster: ClusterFsid,
}

/// Returns a proof only if the whole disk is this OSD's: a rebuild takes all of the disk.
pub(super) fn on_whole_disk(
    kind: Kind,
    named: Named,
    table: &Table<'_>,
    parts: BTreeMap<Role, String>,
    fs_uuid: Option<String>,
) -> DiskFinding {
    let Named { osd_fsid, whoami, cluster } = named;
    let about = Some(osd_fsid);
    let others = table.others(&parts);
    if !others.is_empty() {
        let others = others.join(", ");
        let what =
            format!("{kind} of OSD {osd_fsid} ({whoami}), and partitions that are not its own: {others}");
        return DiskFinding::other(what, about);
    }
    let proof = Some(Proof::Partitions { format: kind, parts, fs_uuid, osd_fsid, whoami, cluster });
    DiskFinding {
        proof,
        ..DiskFinding::plain(Content::Osd { format: kind, osd_fsid, whoami, cluster }, about)
    }
}

/// Reads this part of the proof again.
pub(crate) async fn reread(disk: &Disk, parts: &BTreeMap<Role, String>) -> Result<Reread, NodeError> {
    let entries = table::entries(&disk.node).await?;
    if let Some(what) = disagreement(disk, &entries) {
        return Err(NodeError::Refused(format!("{}: {what}", disk.described())));
    }
    let partitions = entries.iter().map(|entry| entry.part_uuid.clone()).collect();
    let mut read = Reread { partitions, fs_uuid: None, labels: BTreeMap::new() };
    for entry in &entries {
        let Some(node) = node_of(disk, entry) else { continue };
        if parts.get(&Role::Data) == Some(&entry.part_uuid) {
            read.fs_uuid = table::signature(&node).await?.uuid;
        } else if let Some(fsid) = label_at(&node).await? {
            read.labels.insert(entry.part_uuid.clone(), fsid);
        }
    }
    Ok(read)
}

/// Returns how the table on the disk differs from the kernel's partitions.
///
/// If they differ, a node leads to other bytes than the table says.
pub(super) fn disagreement(disk: &Disk, entries: &[Entry]) -> Option<String> {
    let on_disk: Vec<_> = entries.iter().map(|entry| (entry.index, entry.start, entry.sectors)).collect();
    let in_kernel: Vec<_> =
        disk.partitions.iter().map(|part| (part.index, part.start, part.sectors)).collect();
    (on_disk != in_kernel).then(|| {
        format!(
            "a partition table with {} partitions, which differ from the {} partitions that the kernel knows. To \
             update the kernel: partx -u {}",
            on_disk.len(),
            in_kernel.len(),
            disk.node.display()
        )
    })
}

pub(super) fn node_of(disk: &Disk, entry: &Entry) -> Option<PathBuf> {
    disk.partitions.iter().find(|part| part.index == entry.index).map(|part| part.node.clone())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const OSD: &str = "7bcafb1e-936a-4173-8093-4789e2f5cb9f";
    pub(crate) const OTHER: &str = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b";
    const CLUSTER: &str = "5f382147-dc61-408c-ad68-8e6a2e37590b";

    pub(crate) fn entry(index: u32, type_guid: &str, part_uuid: &str, name: &str) -> Entry {
        let (start, sectors) = (u64::from(index) * 2048, 2048);
        let owned = str::to_owned;
        Entry {
            index,
            start,
            sectors,
            type_guid: owned(type_guid),
            part_uuid: owned(part_uuid),
            name: owned(name),
        }
    }

    /// Returns a label of osd.1; labels of db and wal devices name neither id nor cluster.
    pub(crate) fn label(osd_fsid: &str, part: &str) -> Label {
        let main = part == "main";
        Label {
            osd_fsid: osd_fsid.parse().unwrap(),
            whoami: main.then_some(OsdId(1)),
            cluster: main.then(|| CLUSTER.parse().unwrap()),
            finished: main,
            activatable: false,
            part: part.to_owned(),
        }
    }

    pub(crate) fn labels(of: &[(&str, Label)]) -> BTreeMap<String, Label> {
        of.iter().map(|(uuid, label)| ((*uuid).to_owned(), label.clone())).collect()
    }

    pub(crate) fn cluster() -> ClusterFsid {
        CLUSTER.parse().unwrap()
    }

    /// Returns the parts that a finding proves, by role.
    pub(crate) fn proven(examine: &DiskFinding) -> Option<Vec<(Role, &str)>> {
        let Some(Proof::Partitions { parts, .. }) = &examine.proof else { return None };
        Some(parts.iter().map(|(role, uuid)| (*role, uuid.as_str())).collect())
    }

    /// Returns why a finding proves nothing, although it is known to be about the OSD.
    pub(crate) fn refused(examine: &DiskFinding) -> String {
        assert_eq!(
            (&examine.proof, examine.about),
            (&None, Some(OSD.parse().unwrap())),
            "{:?}",
            examine.content
        );
        let Content::Other { what } = &examine.content else { panic!("{:?}", examine.content) };
        what.clone()
    }
}
