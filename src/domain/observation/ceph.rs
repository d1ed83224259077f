//! State of Ceph, as reported by mons and mgr.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::osd::{ClusterFsid, CrushItem, Epoch, ObjectStore, OsdFsid, OsdId, PgId, Upmap, Weight};
use crate::domain::recovery::RecoveryConfig;
use crate::domain::shared::Shared;

/// State of Ceph, as reported by mons and mgr.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ceph {
    /// `ceph fsid`
    pub fsid: ClusterFsid,
    /// Epoch of the osdmap of `slots`.
    pub epoch: Epoch,
    /// Flags of the osdmap (`noout`, `norebalance`, `full` ...).
    pub flags: BTreeSet<String>,
    /// Health codes that are raised (`OSD_NEARFULL`, `POOL_FULL` ...).
    pub health: BTreeSet<String>,
    /// Whether all daemons are of one release.
    pub releases: Releases,
    /// `nearfull_ratio` of the osdmap in 1/10000.
    pub nearfull_ratio: u32,
    /// OSDs that are too full to get data by backfill.
    pub backfill_full: BackfillFull,
    /// Pools by id.
    pub pools: Shared<BTreeMap<u64, Pool>>,
    /// Slots of the osdmap.
    pub slots: Shared<BTreeMap<OsdId, Slot>>,
    /// PGs, as known to the mgr. They lag behind the map by up to 7 s.
    pub pgs: Shared<BTreeMap<PgId, Pg>>,
    /// Upmaps: exceptions from CRUSH.
    pub upmaps: Vec<Upmap>,
    /// CRUSH hosts without items that no rule takes.
    pub empty_hosts: BTreeSet<String>,
    /// Verdicts of `osd ok-to-stop` for the sets that were asked.
    pub ok_to_stop: BTreeMap<BTreeSet<OsdId>, OkToStop>,
    /// Whether `auth get osd.N` finds an entity, for the OSDs that were asked.
    pub auth: BTreeMap<OsdId, bool>,
    /// Whether client.bootstrap-osd exists, if that was asked.
    pub bootstrap: Option<bool>,
    /// Options about recovery in the config database, if that was asked.
    pub recovery: Option<RecoveryConfig>,
    /// How long each OSD took to commit a write, in whole milliseconds, if that was asked.
    ///
    /// Zero if it wrote nothing.
    pub commit_latency: Option<BTreeMap<OsdId, Duration>>,
    /// Answers of `osd safe-to-destroy`, for the OSDs that were asked.
    pub safe_to_destroy: BTreeMap<OsdId, bool>,
    /// Whether an OSD can be emptied, for the OSD that was asked, or the OSDs that leave together.
    pub emptiable: BTreeMap<OsdId, Emptiable>,
}

/// Forecast of what happens if an OSD is marked out, by Ceph's own CRUSH code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Emptiable {
    /// Each PG finds its OSDs, and each OSD has space.
    Yes {
        /// Bytes that are copied. As many are copied back to the new OSD.
        moved_bytes: u64,
        /// The fullest OSD that gets data, and its usage at the highest in percent.
        fullest: Option<(OsdId, u64)>,
    },
    /// Waiting does not help, with the reason.
    No(String),
    /// It can't be said now, with the reason.
    Unknown(String),
}

/// OSDs that are too full to get data by backfill.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BackfillFull {
    /// `backfillfull_ratio` of the osdmap in 1/10000.
    pub ratio: u32,
    /// OSDs that use this part of their space or more (`osd df`), with the part in 1/10000.
    pub osds: BTreeMap<OsdId, u32>,
}

/// Releases of the running daemons (`ceph versions`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Releases {
    /// All daemons are of one release.
    #[default]
    One,
    /// Mons and mgrs are of one release from 18 on, which has no Filestore, and other daemons are behind. An
    /// upgrade is in progress, or is blocked because Filestore OSDs can't follow.
    OthersBehind,
    /// Any other mix of releases: an upgrade is in progress.
    Several,
}

/// Whether the PG autoscaler of the mgr changes the number of PGs of a pool (`pg_autoscale_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Autoscale {
    /// It does, or it is not known.
    #[default]
    On,
    /// `off`, or `warn`: it only warns.
    Off,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Name of the pool.
    pub name: String,
    /// Wanted number of PGs.
    pub pg_num: u32,
    /// PGs of the pool are being merged now (`pg_num_pending` is below `pg_num`).
    pub merges: bool,
    /// The number of PGs, or of their placements, is not the wanted one yet: PGs are split, merged, or moved
    /// in steps (`pg_num` and `pgp_num` differ from their targets).
    pub resizes: bool,
    /// Whether the PG autoscaler changes the number of PGs.
    pub autoscale: Autoscale,
    /// Number of replicas, or k+m.
    pub size: u32,
    /// Replicas needed to serve.
    pub min_size: u32,
    /// k of an erasure coded pool. None if replicated.
    pub data_chunks: Option<u32>,
    /// Number of chunks that can be lost, whichever they are, if that is not `size` - k (LRC, SHEC), or not
    /// known.
    pub any_losses: Option<u32>,
    /// Bucket type over which the rule spreads replicas (`host`, `rack`, `osd`): `choose` or `chooseleaf`
    /// step of the rule.
    pub failure_domain: String,
}

/// State of a slot in the osdmap.
///
/// Absent ids have no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotState {
    /// `exists`
    Exists,
    /// `exists,new` and not up: issued by `osd new`. The OSD may have booted under `noin`, which keeps the
    /// mark (16.2.15).
    New,
    /// `destroyed` (also `destroyed,exists,new`).
    Destroyed,
}

/// An id's place in the osdmap and CRUSH.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slot {
    /// State of the slot.
    pub state: SlotState,
    /// `uuid`. None if it is all zeros, as after a destroy.
    pub fsid: Option<OsdFsid>,
    /// The daemon is up.
    pub up: bool,
    /// Data is placed on it (`in`).
    pub is_in: bool,
    /// The in-weight, `reweight`.
    pub reweight: Weight,
    /// Primary affinity.
    pub primary_affinity: Weight,
    /// Epoch in which the daemon last came up.
    pub up_from: Epoch,
    /// Epoch in which the daemon last went down.
    pub down_at: Epoch,
    /// Since when the daemon has been down at least. None if it is up, or that is not known.
    pub down_since: Option<DateTime<Utc>>,
    /// Per-OSD flag `noout` is set.
    pub noout: bool,
    /// Per-OSD flag `noin` is set.
    pub noin: bool,
    /// CRUSH node, device class or OSD on which the flag `nodown` is set (`ceph osd set-group`): the mons do
    /// not mark the OSD down.
    ///
    /// None if the flag is not set, or only on the whole cluster.
    pub nodown: Option<String>,
    /// CRUSH node, device class or OSD on which the flag `noup` is set: the mons do not mark the OSD up.
    pub noup: Option<String>,
    /// The mons marked the OSD out after it was down for `mon_osd_down_out_interval` (state `autoout`).
    pub auto_out: bool,
    /// Place in CRUSH. None after a purge.
    pub crush: Option<CrushItem>,
    /// `ceph osd metadata` of the daemon that last booted in this slot, even if it is down now.
    pub metadata: Option<Metadata>,
    /// Bytes used on the OSD (`osd df`), if the mgr knows them. For Filestore, at most what its PGs explain.
    pub used_bytes: Option<u64>,
    /// The mons have a dm-crypt key for the fsid (`config-key ls`: `dm-crypt/osd/<fsid>/luks`): `ceph-volume
    /// lvm --dmcrypt` created the OSD.
    pub dmcrypt_key: bool,
}

impl Slot {
    /// Returns whether CRUSH may place data on the OSD, if the OSD is in.
    pub fn has_weight(&self) -> bool {
        self.crush.as_ref().is_some_and(|item| item.weight > Weight(0))
    }

    /// Returns whether the OSD is down and out: no data is on it that Ceph counts on.
    pub fn is_down_and_out(&self) -> bool {
        !self.up && !self.is_in
    }

    /// Returns whether CRUSH may place data on the OSD, now that it is in or out.
    pub fn gets_data(&self) -> bool {
        self.is_in && self.has_weight()
    }
}

/// Metadata that an OSD reported at its last boot (`ceph osd metadata`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// `osd_objectstore`
    pub store: ObjectStore,
    /// `hostname`
    pub hostname: String,
    /// `devices`: whole disks by kernel name. For people only: kernel names do not identify a disk, and a
    /// directory OSD shows the system disk.
    pub devices: Vec<String>,
    /// The same disks by names that survive a reboot: `device_ids` (vendor, model, serial), else
    /// `device_paths`. May be empty.
    pub stable_devices: Vec<String>,
    /// `ceph_version`, as printed.
    pub ceph_version: String,
    /// The store is on a partition (`bluestore_bdev_partition_path` or `backend_filestore_partition_path`
    /// name one).
    pub on_partition: bool,
    /// The OSD has a separate BlueFS db device (`bluefs_dedicated_db` is 1).
    pub dedicated_db: bool,
    /// The OSD has a separate BlueFS wal device (`bluefs_dedicated_wal` is 1).
    pub dedicated_wal: bool,
    /// The block device is a device-mapper device (`bluestore_bdev_dev_node` or backing path is `dm-N`): LVM
    /// or dm-crypt.
    pub device_mapper: bool,
    /// BlueStore's block is a file (`bluestore_bdev_access_mode` is `file`).
    pub on_file: bool,
}

/// A placement group's statistics (`pg dump pgs`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pg {
    /// Pool id, the part of the PG id before the dot.
    pub pool: u64,
    /// States, split at `+`. PGs in the same states share them.
    pub state: Shared<BTreeSet<String>>,
    /// OSDs that should hold the PG. Holes of an EC pool are omitted.
    pub up: BTreeSet<OsdId>,
    /// OSDs that serve the PG. Holes are omitted.
    pub acting: BTreeSet<OsdId>,
    /// Epoch of the map in which the primary last reported.
    pub reported_epoch: Epoch,
    /// Objects in the PG.
    pub objects: u64,
    /// Missing replicas of objects.
    pub degraded: u64,
    /// Misplaced replicas of objects.
    pub misplaced: u64,
    /// Bytes in one replica of the PG.
    pub bytes: u64,
}

impl Pg {
    /// Returns whether the PG is on the OSD, or should be.
    pub fn is_on(&self, osd: OsdId) -> bool {
        self.up.contains(&osd) || self.acting.contains(&osd)
    }

    /// Returns the bytes of one replica, or of one chunk of an erasure coded PG.
    pub fn bytes_on_each(&self, pools: &BTreeMap<u64, Pool>) -> u64 {
        let chunks = pools.get(&self.pool).and_then(|pool| pool.data_chunks).unwrap_or(1);
        self.bytes / u64::from(chunks.max(1))
    }

    /// Returns the last epoch in which an OSD of the PG's sets came up or went down.
    pub fn last_change(&self, slots: &BTreeMap<OsdId, Slot>) -> Epoch {
        last_change(self.up.union(&self.acting), slots)
    }
}

/// Returns the last epoch in which one of these OSDs came up or went down.
pub fn last_change<'a>(osds: impl Iterator<Item = &'a OsdId>, slots: &BTreeMap<OsdId, Slot>) -> Epoch {
    let change = |slot: &Slot| if slot.up { slot.up_from } else { slot.down_at };
    osds.filter_map(|osd| slots.get(osd)).map(change).max().unwrap_or_default()
}

/// Verdict of `osd ok-to-stop` (JSON; the exit status says nothing with `-f json`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OkToStop {
    /// `ok_to_stop`
    pub ok: bool,
    /// PGs that would stop serving.
    pub bad_pgs: u32,
}
