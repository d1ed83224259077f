//! What is on a disk, decided by what was read. Pure.

use std::collections::BTreeMap;

use super::super::devices::Disk;
use super::super::label::Label;
use super::super::marks::Marks;
use super::super::table::Signature;
use super::super::volumes;
use super::rejections::{LvmOsd, not_overruled};
use crate::domain::inventory::{DiskState, Rejection};
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};

/// What ceph-volume takes at least (its inventory: `Insufficient space (<5GB)`).
pub(crate) const MIN_BYTES: u64 = 5_368_709_120;

/// What was read of a disk or partition.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) disk: Disk,
    /// Where it is mounted.
    pub(crate) mounted: Option<String>,
    /// The PersistentVolume that it is, while a pod has it.
    pub(crate) volume: Option<String>,
    /// What its bytes say, or why they could not be read.
    pub(crate) marks: Result<Marks, String>,
    /// Its BlueStore label, where it begins with one.
    pub(crate) label: Option<Result<Label, String>>,
    /// The OSD whose Filestore its partitions are.
    pub(crate) filestore: Option<(OsdFsid, OsdId, ClusterFsid)>,
}

/// What is known of the node's OSDs before a single disk is judged.
#[derive(Debug)]
pub(crate) struct KnownOsds {
    pub(crate) cluster: ClusterFsid,
    /// OSDs of this cluster: by labels that name it, by tags of volumes, by the claims of this node's agents.
    pub(crate) ours: BTreeMap<OsdFsid, Option<OsdId>>,
    pub(crate) volumes: Vec<LvmOsd>,
}

/// What is on a disk, but for who has it exclusively and what ceph-volume says (`at_last`).
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
        return reject(Rejection::Held { by: disk.holders.clone() });
    }
    if let Some(at) = &facts.mounted {
        return reject(Rejection::Mounted { at: at.clone() });
    }
    match &facts.marks {
        // While it is being wiped, the kernel may still know its partitions.
        Ok(Marks::Tombstone(stone)) if stone.cluster == known.cluster => {
            let (osd, old, record) = (stone.osd, stone.old, stone.record.clone());
            return DiskState::Tombstone { osd, old, record };
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

/// The OSD of this cluster that a disk carries, or carries a part of.
fn ours(facts: &Facts, known: &KnownOsds) -> Option<(OsdFsid, Option<OsdId>)> {
    let by_label = facts.label.as_ref().and_then(|label| label.as_ref().ok()).and_then(|label| {
        let is_ours = match label.cluster {
            Some(cluster) => cluster == known.cluster,
            // Labels of db and wal devices, and of a mkfs that was cut short, name no cluster.
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
    // One that ceph-volume has not tagged yet.
    let begun = || {
        let Ok(Marks::Signed(signature)) = &facts.marks else { return None };
        let fsid = signature.physical_volume().and_then(volumes::fsid_of)?;
        known.ours.get(&fsid).map(|osd| (fsid, *osd))
    };
    by_label.or_else(volume).or_else(filestore).or_else(begun)
}

/// Why a disk's content keeps it from being free.
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
        (Ok(Marks::Tombstone(stone)), _) => Some(Rejection::ForeignCeph { cluster: Some(stone.cluster) }),
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
        (None, Some(table)) => Rejection::Signature { kind: format!("{table} (a partition table)") },
        (None, None) => Rejection::Signature { kind: "several kinds that contradict each other".to_owned() },
    }
}

/// Something finds it again after a reboot, and of a partition also tells that it is the same one.
fn is_named(disk: &Disk) -> bool {
    let identity = &disk.identity;
    let is_found = !identity.by_id.is_empty() || !identity.by_path.is_empty();
    is_found && (disk.parent.is_none() || identity.wwn.is_some())
}

/// The last word on a disk on which nothing is: who has it exclusively, and what `ceph-volume inventory` says. `held` is
/// asked only where nothing is on the disk.
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
            reject(Rejection::Held { by: vec!["something that has it open exclusively".to_owned()] })
        }
        (DiskState::Available, Ok(false), Some(reasons)) => match not_overruled(name, reasons) {
            why if why.is_empty() => DiskState::Available,
            why => reject(Rejection::CephVolume { why }),
        },
        (state, Ok(false), _) => state,
    }
}

/// What the states of a disk and of its partitions mean for each other.
///
/// A disk is ours where one of its partitions is. A partition is nothing of its own where its disk's bytes are no partition
/// table: kernels take some BlueStore labels for an Atari table (Ceph tracker 52060).
pub(crate) fn of_partition(disk: &Facts, disk_state: &DiskState, part: DiskState) -> DiskState {
    let has_table = matches!(&disk.marks, Ok(Marks::Signed(signature)) if signature.table.is_some());
    match (disk_state, part) {
        (DiskState::Ours { fsid, osd }, DiskState::Rejected { .. }) => {
            DiskState::Ours { fsid: *fsid, osd: *osd }
        }
        (DiskState::Ours { fsid, osd }, _) if !has_table => DiskState::Ours { fsid: *fsid, osd: *osd },
        (_, DiskState::Available | DiskState::Tombstone { .. } | DiskState::Ours { .. }) if !has_table => {
            let what = format!("{} that it is a part of has no partition table", disk.disk.name);
            DiskState::Rejected { why: Rejection::Data { what } }
        }
        (_, part) => part,
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
