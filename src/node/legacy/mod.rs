//! OSDs as they were created before ceph-volume: on partitions of ceph-disk or of Rook up to 1.2, with parts
//! on other devices, in directories. `docs/concepts/legacy-osds.md` says what proves each kind.
//!
//! | module | content |
//! | --- | --- |
//! | `files` | the small files at the root of an OSD's data |
//! | `ceph_disk` | a data partition, and the other partitions on its disk |
//! | `rook` | Rook's own partitions of a BlueStore |
//! | `journal` | the head of Filestore's journal |
//! | `pieces` | parts on other devices: found, proven, cleared |
//! | `directory` | an OSD in a directory: proven, removed |
//! | `remains` | Rook's files of an OSD on the host, apart from the OSD's disk: removed |

mod ceph_disk;
pub(crate) mod directory;
mod files;
mod journal;
pub(crate) mod pieces;
pub(crate) mod remains;
mod rook;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::command::{QUICK, blocking};
use super::content::DiskFinding;
use super::devices::Disk;
use super::error::NodeError;
use super::label::{self, Label};
use super::table::{self, Entry};
use crate::domain::inspection::{Content, Proof};
use crate::domain::osd::{ClusterFsid, Kind, OsdFsid, OsdId, Role};

pub(crate) use files::{Sharing, read as read_files};

/// The OSD that a disk is read for, and how the disk may be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// Folder for mount points.
    pub(crate) scratch: &'a Path,
    pub(crate) sharing: Sharing,
    /// Requested OSD, if a disk may carry several.
    pub(crate) whom: Option<OsdFsid>,
}

/// Returns the OSD on the partitions of a disk, or none if they are no such OSD's.
pub(crate) async fn examine(disk: &Disk, reading: Reading<'_>) -> Result<Option<DiskFinding>, NodeError> {
    let entries = table::entries(&disk.node).await?;
    if let Some(what) = disagreement(disk, &entries) {
        return Ok(Some(DiskFinding::other(what, None)));
    }
    if let Some(examine) = ceph_disk::examine(disk, &entries, reading).await? {
        return Ok(Some(examine));
    }
    rook::examine(disk, &entries, reading).await
}

/// A disk's table, and the labels that its partitions begin with.
#[derive(Debug)]
struct Table<'a> {
    entries: &'a [Entry],
    /// labels by unique guid of the partition
    labels: BTreeMap<String, Label>,
}

impl<'a> Table<'a> {
    async fn read(disk: &Disk, entries: &'a [Entry]) -> Result<Self, NodeError> {
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
    fn auxiliary_of_block(&self, osd_fsid: OsdFsid) -> Result<BTreeMap<Role, String>, String> {
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
    fn others(&self, parts: &BTreeMap<Role, String>) -> Vec<String> {
        let is_other = |entry: &&Entry| !parts.values().any(|uuid| *uuid == entry.part_uuid);
        self.entries.iter().filter(is_other).map(Entry::described).collect()
    }
}

/// Identity of an OSD.
#[derive(Debug, Clone, Copy)]
struct Named {
    osd_fsid: OsdFsid,
    whoami: OsdId,
    cluster: ClusterFsid,
}

/// Returns a proof only if the whole disk is this OSD's: a rebuild takes all of the disk.
fn on_whole_disk(
    made: Kind,
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
            format!("{made} of OSD {osd_fsid} ({whoami}), and partitions that are not its own: {others}");
        return DiskFinding::other(what, about);
    }
    let proof = Some(Proof::Partitions { made, parts, fs_uuid, osd_fsid, whoami, cluster });
    DiskFinding { proof, ..DiskFinding::plain(Content::Osd { made, osd_fsid, whoami, cluster }, about) }
}

/// Part of a proof by partitions that can be read while the disk is open exclusively, which keeps it from
/// being mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reread {
    pub(crate) entries: Vec<Entry>,
    /// uuid of the file system on the data partition
    pub(crate) fs_uuid: Option<String>,
    /// OSD of the label that a partition begins with, by the partition's unique guid
    pub(crate) labels: BTreeMap<String, OsdFsid>,
}

/// Reads this part of the proof again.
pub(crate) async fn reread(disk: &Disk, parts: &BTreeMap<Role, String>) -> Result<Reread, NodeError> {
    let entries = table::entries(&disk.node).await?;
    if let Some(what) = disagreement(disk, &entries) {
        return Err(NodeError::Refused(format!("{}: {what}", disk.described())));
    }
    let mut read = Reread { entries, fs_uuid: None, labels: BTreeMap::new() };
    for entry in &read.entries {
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
fn disagreement(disk: &Disk, entries: &[Entry]) -> Option<String> {
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

fn node_of(disk: &Disk, entry: &Entry) -> Option<PathBuf> {
    disk.partitions.iter().find(|part| part.index == entry.index).map(|part| part.node.clone())
}

/// Returns the OSD whose label a device begins with.
pub(crate) async fn label_at(node: &Path) -> Result<Option<OsdFsid>, NodeError> {
    let path = node.to_owned();
    blocking("read", node.display().to_string(), QUICK, move || label::fsid_at_head(&path)).await
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(super) const OSD: &str = "7bcafb1e-936a-4173-8093-4789e2f5cb9f";
    pub(super) const OTHER: &str = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b";
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
    pub(super) fn label(osd_fsid: &str, part: &str) -> Label {
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

    pub(super) fn labels(of: &[(&str, Label)]) -> BTreeMap<String, Label> {
        of.iter().map(|(uuid, label)| ((*uuid).to_owned(), label.clone())).collect()
    }

    pub(super) fn cluster() -> ClusterFsid {
        CLUSTER.parse().unwrap()
    }

    /// Returns the parts that a finding proves, by role.
    pub(super) fn proven(examine: &DiskFinding) -> Option<Vec<(Role, &str)>> {
        let Some(Proof::Partitions { parts, .. }) = &examine.proof else { return None };
        Some(parts.iter().map(|(role, uuid)| (*role, uuid.as_str())).collect())
    }

    /// Returns why a finding proves nothing, although it is known to be about the OSD.
    pub(super) fn refused(examine: &DiskFinding) -> String {
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
