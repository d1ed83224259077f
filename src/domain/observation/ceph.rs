//! What mons and mgr say.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::osd::{ClusterFsid, CrushItem, Epoch, ObjectStore, OsdFsid, OsdId, PgId, Upmap, Weight};

/// What mons and mgr say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ceph {
    /// `ceph fsid`
    pub fsid: ClusterFsid,
    /// Epoch of the osdmap that `slots` come from.
    pub epoch: Epoch,
    /// Flags of the osdmap (`noout`, `norebalance`, `full` ...).
    pub flags: BTreeSet<String>,
    /// Codes of `health` that are raised (`OSD_NEARFULL`, `POOL_FULL` ...).
    pub health: BTreeSet<String>,
    /// Whether its daemons are of one release.
    pub releases: Releases,
    /// `nearfull_ratio` of the osdmap in 1/10000.
    pub nearfull_ratio: u32,
    /// Pools by id.
    pub pools: BTreeMap<u64, Pool>,
    /// Slots of the osdmap.
    pub slots: BTreeMap<OsdId, Slot>,
    /// PGs, as the mgr knows them: they lag behind the map by up to 7 s.
    pub pgs: BTreeMap<PgId, Pg>,
    /// Exceptions from CRUSH.
    pub upmaps: Vec<Upmap>,
    /// Verdicts of `osd ok-to-stop` for the sets that were asked.
    pub ok_to_stop: BTreeMap<BTreeSet<OsdId>, OkToStop>,
    /// Whether `auth get osd.N` finds an entity, for the OSDs that were asked.
    pub auth: BTreeMap<OsdId, bool>,
    /// Whether client.bootstrap-osd is there, where it was asked.
    pub bootstrap: Option<bool>,
}

/// Releases of the daemons that run (`ceph versions`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Releases {
    /// All are of one.
    #[default]
    One,
    /// Mons and mgrs are of one release from 18 on, which has no Filestore, and others are behind: an upgrade that goes on, or one
    /// that stands because OSDs with Filestore can't follow.
    OthersBehind,
    /// Anything else: an upgrade goes on.
    Several,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Number of PGs it should have.
    pub pg_num: u32,
    /// PGs of it are being merged right now (`pg_num_pending` is below `pg_num`).
    pub merges: bool,
    /// Copies, or k+m.
    pub size: u32,
    /// Copies needed to serve.
    pub min_size: u32,
    /// k of an erasure coded pool; none where replicated.
    pub data_chunks: Option<u32>,
    /// Bucket type that its rule spreads copies over (`host`, `rack`, `osd`); `choose` or `chooseleaf` step of the rule.
    pub failure_domain: String,
}

/// State of a slot in the osdmap. Absent ids have no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotState {
    /// `exists`
    Exists,
    /// `exists,new` and not up: claimed by `osd new`. It may have booted under `noin`, which leaves the mark on (16.2.15).
    New,
    /// `destroyed` (also `destroyed,exists,new`).
    Destroyed,
}

/// An id's place in the osdmap and CRUSH.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slot {
    /// See there.
    pub state: SlotState,
    /// `uuid`; none where it is all zeros, as after a destroy.
    pub fsid: Option<OsdFsid>,
    /// The daemon is up.
    pub up: bool,
    /// Data is placed on it (`in`).
    pub is_in: bool,
    /// The in-weight, `reweight`.
    pub reweight: Weight,
    /// Primary affinity.
    pub primary_affinity: Weight,
    /// Epoch it came up in.
    pub up_from: Epoch,
    /// Epoch it went down in.
    pub down_at: Epoch,
    /// Per-OSD flag `noout` is set on it.
    pub noout: bool,
    /// Per-OSD flag `noin` is set on it.
    pub noin: bool,
    /// The mons marked it out themselves, after it was down for `mon_osd_down_out_interval` (state `autoout`).
    pub auto_out: bool,
    /// Place in CRUSH; none after a purge.
    pub crush: Option<CrushItem>,
    /// `ceph osd metadata`: of the daemon that booted last in this slot, also when it is down now.
    pub metadata: Option<Metadata>,
    /// Bytes used on it (`osd df`), where the mgr knows; of a Filestore not more than its PGs explain.
    pub used_bytes: Option<u64>,
    /// The mons keep a dm-crypt key for its fsid (`config-key ls`: `dm-crypt/osd/<fsid>/luks`): `ceph-volume lvm --dmcrypt` made it.
    pub dmcrypt_key: bool,
}

/// What an OSD said of itself at its last boot (`ceph osd metadata`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// `osd_objectstore`
    pub store: ObjectStore,
    /// `hostname`
    pub hostname: String,
    /// `devices`: whole disks by kernel name. For people only: kernel names are no identity, and a directory OSD shows the system disk.
    pub devices: Vec<String>,
    /// The same disks by names that outlive a reboot: `device_ids` (vendor, model, serial), else `device_paths`. May be empty.
    pub stable_devices: Vec<String>,
    /// `ceph_version`, as printed.
    pub ceph_version: String,
    /// The store lies on a partition (`bluestore_bdev_partition_path` or `backend_filestore_partition_path` name one).
    pub on_partition: bool,
    /// A separate BlueFS db device (`bluefs_dedicated_db` is 1).
    pub dedicated_db: bool,
    /// A separate BlueFS wal device (`bluefs_dedicated_wal` is 1).
    pub dedicated_wal: bool,
    /// The block device is a device-mapper one (`bluestore_bdev_dev_node` or backing path is `dm-N`): LVM or dm-crypt.
    pub device_mapper: bool,
    /// BlueStore's block is a file (`bluestore_bdev_access_mode` is `file`).
    pub on_file: bool,
}

/// A placement group's statistics (`pg dump pgs`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pg {
    /// Pool id, the part before the dot.
    pub pool: u64,
    /// States, split at `+`.
    pub state: BTreeSet<String>,
    /// OSDs that should hold it; holes of an EC pool are left out.
    pub up: BTreeSet<OsdId>,
    /// OSDs that serve it; holes are left out.
    pub acting: BTreeSet<OsdId>,
    /// Epoch of the map in which its primary reported last.
    pub reported_epoch: Epoch,
    /// Objects in it.
    pub objects: u64,
    /// Copies of objects that lack.
    pub degraded: u64,
    /// Copies that lie elsewhere than they should.
    pub misplaced: u64,
    /// Bytes in it, one copy.
    pub bytes: u64,
}

/// Verdict of `osd ok-to-stop` (JSON; the exit status says nothing with `-f json`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OkToStop {
    /// `ok_to_stop`
    pub ok: bool,
    /// PGs that would stop serving.
    pub bad_pgs: u32,
}
