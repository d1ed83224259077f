//! State of a disk, decided by what was read. Pure.

use std::collections::BTreeMap;

use crate::domain::inventory::{DiskState, Rejection};
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};
use crate::node::disk::devices::{Disk, MIN_BYTES};
use crate::node::disk::label::Label;
use crate::node::disk::marks::Marks;
use crate::node::disk::table::Signature;
use crate::node::inventory::rejections::{LvmOsd, not_overruled};
use crate::node::volumes::names;

/// Facts that were read about a disk or partition.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) disk: Disk,
    /// Mount point.
    pub(crate) mounted: Option<String>,
    /// PersistentVolume that the device is, while a pod uses it.
    pub(crate) volume: Option<String>,
    /// Marks in the device's bytes, or why they could not be read.
    pub(crate) marks: Result<Marks, String>,
    /// BlueStore label, if the device begins with one.
    pub(crate) label: Option<Result<Label, String>>,
    /// OSD whose Filestore the device's partitions are.
    pub(crate) filestore: Option<(OsdFsid, OsdId, ClusterFsid)>,
}

/// OSDs of the node that are known before a single disk is judged.
#[derive(Debug)]
pub(crate) struct KnownOsds {
    pub(crate) cluster: ClusterFsid,
    /// OSDs of this cluster: by labels that name it, by tags of volumes, by the issued fsids of this node's
    /// agents.
    pub(crate) ours: BTreeMap<OsdFsid, Option<OsdId>>,
    pub(crate) volumes: Vec<LvmOsd>,
}

/// Returns the state of a disk, without the checks of exclusive use and of ceph-volume's reasons (`at_last`).
pub(crate) fn judge(facts: &Facts, known: &KnownOsds) -> DiskState {
    if let Some((fsid, osd)) = ours(facts, known) {
        return DiskState::Ours { fsid, osd };
    }
    let reject = |why| DiskState::Rejected { why };
    let disk = &facts.disk;
    if let Some(name) = &facts.volume {
        return reject(Rejection::PersistentVolume { name: name.clone(), claim: None });
    }
    if disk.read_only {
        return reject(Rejection::ReadOnly);
    }
    if !disk.holders.is_empty() {
        return reject(Rejection::InUse { by: disk.holders.clone() });
    }
    if let Some(at) = &facts.mounted {
        return reject(Rejection::Mounted { at: at.clone() });
    }
    match &facts.marks {
        // During a wipe, the kernel may still know the disk's partitions.
        Ok(Marks::Tombstone(stone, signature)) if stone.cluster == known.cluster => {
            // Nothing would tell that its record is about this disk.
            if !disk.identity.is_named() && disk.identity.by_path.is_empty() {
                return reject(Rejection::NoStableName);
            }
            let (osd, old, record) = (stone.osd, stone.old, stone.record.clone());
            let signature = (!signature.is_none()).then(|| signature.name().to_owned());
            return DiskState::Tombstone { osd, old, record, signature };
        }
        Ok(_) | Err(_) => {}
    }
    if !disk.partitions.is_empty() {
        return reject(Rejection::Partitioned { count: disk.partitions.len() });
    }
    match written(facts, known) {
        Some(why) => reject(why),
        None if disk.identity.size_bytes < MIN_BYTES => {
            reject(Rejection::TooSmall { bytes: disk.identity.size_bytes })
        }
        None if !is_named(disk) => reject(Rejection::NoStableName),
        None => DiskState::Available,
    }
}

/// Returns the OSD of this cluster that a disk carries, or carries a part of.
fn ours(facts: &Facts, known: &KnownOsds) -> Option<(OsdFsid, Option<OsdId>)> {
    let by_label = facts.label.as_ref().and_then(|label| label.as_ref().ok()).and_then(|label| {
        let is_ours = match label.cluster {
            Some(cluster) => cluster == known.cluster,
            // Labels of db and wal devices, and of an interrupted mkfs, name no cluster.
            None => known.ours.contains_key(&label.osd_fsid),
        };
        let osd = label.whoami.or_else(|| known.ours.get(&label.osd_fsid).copied().flatten());
        is_ours.then_some((label.osd_fsid, osd))
    });
    let volume = || {
        let mut volumes = known.volumes.iter().filter(|volume| volume.cluster == known.cluster);
        volumes.find(|volume| volume.is_on(&facts.disk.node)).map(|volume| (volume.fsid, Some(volume.osd)))
    };
    let filestore = || {
        let ours = facts.filestore.filter(|(_, _, cluster)| *cluster == known.cluster);
        ours.map(|(fsid, osd, _)| (fsid, Some(osd)))
    };
    // A volume that ceph-volume has not tagged yet.
    let begun = || {
        let Ok(Marks::Signed(signature)) = &facts.marks else { return None };
        let fsid = signature.physical_volume().and_then(names::fsid_of)?;
        known.ours.get(&fsid).map(|osd| (fsid, *osd))
    };
    by_label.or_else(volume).or_else(filestore).or_else(begun)
}

/// Returns why a disk's content keeps it from being available.
fn written(facts: &Facts, known: &KnownOsds) -> Option<Rejection> {
    let volume = known.volumes.iter().find(|volume| volume.is_on(&facts.disk.node));
    if let Some(volume) = volume {
        return Some(Rejection::ForeignCeph { cluster: Some(volume.cluster) });
    }
    match (&facts.marks, &facts.label) {
        (Err(why), _) | (Ok(Marks::Label), Some(Err(why))) => {
            Some(Rejection::Unreadable { why: why.clone() })
        }
        (Ok(Marks::Label), Some(Ok(label))) => Some(Rejection::ForeignCeph { cluster: label.cluster }),
        (Ok(Marks::Label), None) => Some(Rejection::ForeignCeph { cluster: None }),
        (Ok(Marks::Tombstone(stone, _)), _) => Some(Rejection::ForeignCeph { cluster: Some(stone.cluster) }),
        (Ok(Marks::LabelCopy(place)), _) => Some(Rejection::Data {
            what: format!("a copy of a BlueStore label at byte {place}, none at the start"),
        }),
        (Ok(Marks::Signed(signature)), _) => Some(signed(signature)),
        (Ok(Marks::Data { first }), _) => {
            Some(Rejection::Data { what: format!("in the {} MiB", if *first { "first" } else { "last" }) })
        }
        (Ok(Marks::None), _) => None,
    }
}

fn signed(signature: &Signature) -> Rejection {
    match (signature.kind.as_deref(), &signature.table) {
        (Some("LVM2_member"), _) => Rejection::Lvm,
        (Some("crypto_LUKS"), _) => Rejection::Luks,
        (Some(kind), _) => Rejection::Signature { kind: kind.to_owned() },
        (None, Some(table)) => Rejection::Signature {
            kind: signature
                .mark()
                .map_or_else(|| format!("{table} (a partition table)"), |mark| mark.described()),
        },
        (None, None) => Rejection::Signature { kind: "several kinds that contradict each other".to_owned() },
    }
}

/// Returns whether a device can be found again after a reboot.
///
/// A partition must also be recognisable as the same one.
fn is_named(disk: &Disk) -> bool {
    let identity = &disk.identity;
    let is_found = !identity.by_id.is_empty() || !identity.by_path.is_empty();
    is_found && (disk.parent.is_none() || identity.wwn.is_some())
}

/// Returns the final state of a disk with nothing on it, after the checks of exclusive use and of
/// `ceph-volume inventory`.
///
/// `held` says whether the disk is open exclusively; it is asked only if nothing is on the disk.
pub(crate) fn at_last(
    state: DiskState,
    name: &str,
    held: Result<bool, String>,
    inventory: Option<&Vec<String>>,
) -> DiskState {
    let reject = |why| DiskState::Rejected { why };
    match (state, held, inventory) {
        (_, Err(why), _) => reject(Rejection::Unreadable { why }),
        (_, Ok(true), _) => {
            reject(Rejection::InUse { by: vec!["a client that has it open exclusively".to_owned()] })
        }
        (DiskState::Available, Ok(false), Some(reasons)) => match not_overruled(name, reasons) {
            why if why.is_empty() => DiskState::Available,
            why => reject(Rejection::CephVolume { why }),
        },
        (state, Ok(false), _) => state,
    }
}

/// Returns the state of a partition in view of the state of its disk.
///
/// A disk is the cluster's if one of its partitions is. A partition does not count on its own if its disk's
/// bytes are no partition table: kernels take some BlueStore labels for an Atari table (Ceph tracker 52060).
pub(crate) fn of_partition(disk: &Facts, disk_state: &DiskState, part: DiskState) -> DiskState {
    let has_table = matches!(&disk.marks, Ok(Marks::Signed(signature)) if signature.table.is_some());
    match (disk_state, part) {
        (DiskState::Ours { fsid, osd }, DiskState::Rejected { .. }) => {
            DiskState::Ours { fsid: *fsid, osd: *osd }
        }
        (DiskState::Ours { fsid, osd }, _) if !has_table => DiskState::Ours { fsid: *fsid, osd: *osd },
        (_, DiskState::Available | DiskState::Tombstone { .. } | DiskState::Ours { .. }) if !has_table => {
            let what = format!("its disk {} has no partition table", disk.disk.name);
            DiskState::Rejected { why: Rejection::Data { what } }
        }
        (_, part) => part,
    }
}

/// A whole disk and its partitions, as read.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) facts: Facts,
    pub(super) parts: Vec<Facts>,
}

impl Seen {
    pub(super) fn all(&self) -> impl Iterator<Item = &Facts> {
        std::iter::once(&self.facts).chain(&self.parts)
    }
}

/// Returns the BlueStore label of a device, if it was read.
pub(super) fn read_label(facts: &Facts) -> Option<&Label> {
    facts.label.as_ref()?.as_ref().ok()
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
