//! `metadataDevice`: the disk for the databases of new OSDs, perhaps of several, each on a volume of its own.
//!
//! Rook uses it for whole disks with `ceph-volume lvm batch --db-devices` (pkg/daemon/ceph/osd/volume.go,
//! `initializeDevicesLVMMode`, v1.20.6). Rook uses a partition or a logical volume for one OSD each: this
//! version supports neither.

use std::collections::BTreeSet;

use super::select;
use crate::domain::inventory::{DiskSeen, DiskState, NodeInventory, OsdSeen, Rejection};
use crate::domain::osd::{ClusterFsid, DbDevice};

/// Allocation unit of LVM (its default extent), and the space that LVM reserves at the front of a disk.
const EXTENT_MIB: u64 = 4;
const HEADER_MIB: u64 = 1;

/// Disks of a node that a `metadataDevice` on the node names.
pub(super) struct Databases<'a> {
    inventory: &'a NodeInventory,
    cluster: ClusterFsid,
    backups: BTreeSet<&'a str>,
}

impl<'a> Databases<'a> {
    pub(super) fn new<'n>(
        names: impl IntoIterator<Item = &'n str>,
        inventory: &'a NodeInventory,
        cluster: ClusterFsid,
    ) -> Self {
        let disks = names.into_iter().filter_map(|name| select::find(name, inventory));
        Self { inventory, cluster, backups: disks.map(|disk| disk.name.as_str()).collect() }
    }

    /// Returns whether a disk is reserved for databases: a `metadataDevice`, or a partition of one.
    ///
    /// It becomes no OSD, whatever selects it.
    ///
    /// Rook excludes the disk only if `metadataDevice` of cluster or node is its kernel name
    /// (pkg/daemon/ceph/osd/daemon.go, `getAvailableDevices`, v1.20.6). If it is named by a path, Rook uses
    /// it as a data disk too, if a filter matches it.
    pub(super) fn keeps(&self, disk: &DiskSeen) -> bool {
        let is_kept = |name: &str| self.backups.contains(name);
        is_kept(&disk.name) || disk.parent.as_deref().is_some_and(is_kept)
    }

    /// Returns the disk that a `metadataDevice` names, if it can take databases: it is available, or has
    /// databases of this cluster already, or a volume group for them.
    pub(super) fn usable(&self, name: &str) -> Result<&'a DiskSeen, String> {
        let disk = select::find(name, self.inventory)
            .ok_or_else(|| format!("its metadataDevice {name} was not found"))?;
        if disk.parent.is_some() {
            return Err(format!("its metadataDevice {name} is a partition: only whole disks are supported"));
        }
        // Without a serial number, another disk in its place could be mistaken for it.
        let is_group = self.inventory.database_groups.contains_key(&disk.name) && disk.identity.is_named();
        let has_databases = self.on(disk) > 0 || is_group;
        let refused =
            |why: &dyn std::fmt::Display| Err(format!("its metadataDevice {name} cannot be used: {why}"));
        match &disk.state {
            // Several OSDs depend on this disk: another disk in its place must never be mistaken for it.
            DiskState::Available if !disk.identity.is_named() => refused(&"it has no serial number"),
            DiskState::Available => Ok(disk),
            DiskState::Ours { .. }
            | DiskState::Rejected {
                why: Rejection::Lvm | Rejection::InUse { .. } | Rejection::CephVolume { .. },
            } if has_databases => Ok(disk),
            DiskState::Ours { osd: Some(osd), .. } => {
                refused(&format!("it carries {osd} of this cluster, and no databases"))
            }
            DiskState::Ours { fsid, osd: None } => {
                refused(&format!("it carries the OSD {fsid} of this cluster, and no databases"))
            }
            DiskState::Tombstone { osd, .. } => refused(&format!("it is reserved for {osd}")),
            DiskState::Rejected { why } => refused(why),
        }
    }

    /// Returns how many OSDs of this cluster have their database on a disk.
    fn on(&self, disk: &DiskSeen) -> u64 {
        let is_there = |osd: &&OsdSeen| {
            osd.cluster == self.cluster && osd.db_disk.as_deref() == Some(disk.name.as_str())
        };
        self.inventory.osds.iter().filter(is_there).count() as u64
    }

    /// Returns what each of the new OSDs of one metadata disk gets there, in their order; `asked` is
    /// `databaseSizeMB`, if it is declared.
    ///
    /// Declared sizes are given while there is room. Rook ignores sizes below 1024 MB, as `lvm batch` can't
    /// create them (`cephVolumeMinDBSize`, v1.20.6); `lvm prepare` can. The other OSDs share the rest evenly,
    /// as with `lvm batch`. A single OSD leaves the size to ceph-volume.
    ///
    /// If databases exist already, the remaining room is unknown. Each OSD without a declared size then gets
    /// the part that it would have had if all had been created at once. A run that dies and starts again so
    /// comes to the same result.
    pub(super) fn shares(&self, disk: &DiskSeen, asked: &[Option<u64>]) -> Vec<Result<DbDevice, String>> {
        let there = self.on(disk);
        let size = (disk.identity.size_bytes >> 20).saturating_sub(HEADER_MIB);
        // Databases of OSDs that are gone take their part.
        let left = self.inventory.database_groups.get(&disk.name);
        let whole = whole_extents(left.filter(|_| there == 0).map_or(size, |left| size.min(*left)));
        let mut room = whole;
        let mut taken: Vec<Option<u64>> = Vec::new();
        for size in asked.iter().flatten() {
            let fits = there > 0 || extents(*size) <= room;
            taken.push(fits.then_some(*size));
            room = room.saturating_sub(if fits { extents(*size) } else { 0 });
        }
        let sharing = asked.iter().filter(|size| size.is_none()).count() as u64;
        let all = asked.len() as u64;
        let share = match (there, sharing) {
            (0, _) => whole_extents(room / sharing.max(1)),
            (there, sharing) => {
                let room = left.map_or(u64::MAX, |left| left / sharing.max(1));
                whole_extents((whole / (there + all)).min(room))
            }
        };
        let is_alone = there == 0 && all == 1;
        let mut declared = taken.into_iter();
        let full = || Err(format!("there is not enough space for its database on {}", disk.name));
        let give = |size_mib| Ok(DbDevice { identity: disk.identity.clone(), size_mib });
        asked
            .iter()
            .map(|size| match size {
                Some(_) => declared.next().flatten().map_or_else(full, |size| give(Some(size))),
                None if is_alone && whole > 0 => give(None),
                None if share == 0 => full(),
                None => give(Some(share)),
            })
            .collect()
    }
}

fn whole_extents(mib: u64) -> u64 {
    mib - mib % EXTENT_MIB
}

fn extents(mib: u64) -> u64 {
    mib.div_ceil(EXTENT_MIB).saturating_mul(EXTENT_MIB)
}
