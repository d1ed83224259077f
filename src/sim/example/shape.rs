//! Shape of an example: its hosts, OSDs and pools, and the world that it describes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::inspection::RecordId;
use crate::domain::observation::{
    Autoscale, BackfillFull, Ceph, Daemon, Metadata, Node, Pod, Pool, Releases, Slot, SlotState,
};
use crate::domain::osd::{
    ClusterFsid, CrushItem, DeviceIdentity, Epoch, Mode, NodeName, ObjectStore, OsdFsid, OsdId, PgId, Weight,
};
use crate::domain::recovery::RecoveryConfig;
use crate::domain::shared::Shared;
use crate::sim::agent;
use crate::sim::by_person::ByPerson;
use crate::sim::example::kube::kube;
use crate::sim::world::{Disk, Placement, World};

/// Reweight of every OSD at first: not 1.0, so that a first boot that resets it is visible.
pub const REWEIGHT: Weight = Weight(0xe666);

pub(super) const GIB: u64 = 1 << 30;

/// Layout of an example's OSD on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// BlueStore as Rook creates it today.
    Raw,
    /// BlueStore on a whole disk, created without ceph-volume.
    ByHand,
    /// Filestore on ceph-disk's partitions.
    Filestore,
    /// Filestore in a directory of the host.
    Directory,
    /// BlueStore as `ceph-volume lvm` creates it, encrypted.
    Encrypted,
}

/// Pool of an example; each of its PGs has one OSD on each of `size` hosts.
#[derive(Debug, Clone, Copy)]
pub struct PoolShape {
    /// Number of PGs.
    pub pgs: u32,
    /// Replicas, or k+m.
    pub size: u32,
    /// Replicas needed to serve.
    pub min_size: u32,
    /// k, if the pool is erasure coded.
    pub data_chunks: Option<u32>,
    /// GiB in one replica of one PG.
    pub gib: u64,
}

/// Example: OSDs of each host, and its pools.
#[derive(Debug, Clone)]
pub struct Shape {
    /// OSDs of each host; ids are numbered across the hosts.
    pub hosts: Vec<Vec<Kind>>,
    /// Pools.
    pub pools: Vec<PoolShape>,
    /// GiB of each disk.
    pub disk_gib: u64,
}

/// Returns the cluster's fsid in every example.
pub fn cluster() -> ClusterFsid {
    ClusterFsid::new(Uuid::from_u128(0xc105_7e40_0000_4000_8000_0000_0000_0001))
        .unwrap_or_else(|| unreachable!("a constant that is not nil"))
}

/// Returns the first fsid of an example's OSD (n = 0), and those that ceph-volume generates.
pub fn fsid(osd: OsdId, n: u32) -> OsdFsid {
    let head = (0x05d0_0000_u128 + u128::from(osd.0)) << 96;
    OsdFsid::new(Uuid::from_u128(head | 0x4000_8000_0000_0000_0000 | u128::from(n)))
        .unwrap_or_else(|| unreachable!("its head is not zero"))
}

impl World {
    /// Returns the next fsid that ceph-volume generates.
    pub(in crate::sim) fn new_fsid(&mut self, osd: OsdId) -> OsdFsid {
        let is_of = |(of, _): &(&(OsdId, RecordId), &BTreeSet<OsdFsid>)| of.0 == osd;
        let issued: usize = self.issued.iter().filter(is_of).map(|(_, issued)| issued.len()).sum();
        let mut number = u32::try_from(issued).unwrap_or(u32::MAX);
        // An fsid that was generated without being recorded counts too.
        loop {
            number += 1;
            let fsid = fsid(osd, number);
            let is_taken =
                self.ceph.slots.values().any(|slot| slot.fsid == Some(fsid)) || self.disk_of(fsid).is_some();
            if !is_taken {
                return fsid;
            }
        }
    }
}

pub(super) fn host(n: usize) -> String {
    format!("h{}", n + 1)
}

/// Returns Ceph of an empty cluster.
fn ceph() -> Ceph {
    Ceph {
        fsid: cluster(),
        epoch: Epoch(10),
        flags: BTreeSet::new(),
        health: BTreeSet::new(),
        releases: Releases::One,
        nearfull_ratio: 8500,
        backfill_full: BackfillFull { ratio: 9000, osds: BTreeMap::new() },
        pools: Shared::default(),
        slots: Shared::default(),
        pgs: Shared::default(),
        upmaps: Vec::new(),
        ok_to_stop: BTreeMap::new(),
        auth: BTreeMap::new(),
        bootstrap: Some(true),
        recovery: Some(RecoveryConfig::default()),
        commit_latency: None,
        safe_to_destroy: BTreeMap::new(),
        empty_hosts: BTreeSet::new(),
        emptiable: BTreeMap::new(),
    }
}

impl Shape {
    /// Returns the world of this shape: everything up and clean, Rook's operator at 0 replicas, confirmed.
    pub fn world(&self) -> World {
        let mut world = World {
            at: DateTime::<Utc>::from_timestamp(1_790_000_000, 0).unwrap_or_default(),
            ceph: ceph(),
            marked_new: BTreeSet::new(),
            out_from: BTreeMap::new(),
            kube: kube(),
            placements: Shared::default(),
            disks: Shared::default(),
            agents: Shared::default(),
            issued: Shared::default(),
            attempts: BTreeMap::new(),
            dmcrypt: BTreeMap::new(),
            databases: BTreeMap::new(),
            pvcs: Shared::default(),
            broken: BTreeSet::new(),
            reconciling: false,
            scaled_by_osd_migrate: false,
            drains_due: false,
            pdbs: 0,
            rejects_pdbs: false,
            by_person: ByPerson::default(),
            noise: Shared::default(),
        };
        let mut next = 0;
        for (n, kinds) in self.hosts.iter().enumerate() {
            let node = Node {
                ready: true,
                cordoned: false,
                hostname: host(n),
                labels: BTreeMap::new(),
                taints: Vec::new(),
            };
            world.kube.nodes.insert(NodeName(host(n)), node);
            for kind in kinds {
                world.add_osd(OsdId(next), &host(n), *kind, self.disk_gib * GIB);
                next += 1;
            }
        }
        for (number, pool) in self.pools.iter().enumerate() {
            self.add_pool(&mut world, number as u64 + 1, pool);
        }
        world
    }

    fn add_pool(&self, world: &mut World, id: u64, shape: &PoolShape) {
        let pool = Pool {
            name: format!("pool{id}"),
            pg_num: shape.pgs,
            merges: false,
            resizes: false,
            autoscale: Autoscale::On,
            size: shape.size,
            min_size: shape.min_size,
            data_chunks: shape.data_chunks,
            any_losses: None,
            failure_domain: "host".to_owned(),
        };
        world.ceph.pools.insert(id, pool);
        for number in 0..shape.pgs {
            let home: Vec<OsdId> = (0..shape.size as usize)
                .filter_map(|replica| self.member(number as usize, replica))
                .collect();
            let complete = home.iter().map(|osd| fsid(*osd, 0)).collect();
            let placement = Placement {
                pool: id,
                home,
                spare: Vec::new(),
                complete,
                peered: true,
                changed: Epoch(10),
                objects: shape.gib * 256,
                bytes: shape.gib * GIB,
            };
            let pg = PgId { pool: id, number };
            world.placements.insert(pg, placement);
            world.report_pg(&pg);
        }
        let mut used: BTreeMap<OsdId, u64> = BTreeMap::new();
        for placement in world.placements.values() {
            for osd in &placement.home {
                *used.entry(*osd).or_default() += placement.bytes;
            }
        }
        for (osd, slot) in &mut world.ceph.slots {
            slot.used_bytes = Some(used.get(osd).copied().unwrap_or(0));
        }
    }

    /// Returns the OSD of one PG's replica: hosts in rotation, OSDs of a host in rotation.
    fn member(&self, pg: usize, replica: usize) -> Option<OsdId> {
        let hosts = self.hosts.len();
        let at = (pg + replica) % hosts;
        let before: usize = self.hosts.iter().take(at).map(Vec::len).sum();
        let osds = self.hosts.get(at)?.len();
        if osds == 0 {
            return None;
        }
        u32::try_from(before + (pg / hosts + pg) % osds).ok().map(OsdId)
    }
}

impl World {
    /// Places a PG on other OSDs, on which it is complete.
    pub(super) fn place<const SIZE: usize>(&mut self, pg: PgId, home: [OsdId; SIZE]) {
        if let Some(placement) = self.placements.get_mut(&pg) {
            placement.complete = home.iter().map(|osd| fsid(*osd, 0)).collect();
            placement.home = home.into();
        }
        self.report_pg(&pg);
    }

    /// Puts the disk of an OSD behind a mapping of its host.
    pub(super) fn map_by_host(&mut self, osd: OsdId) {
        if let Some(disk) = self.disks.get_mut(&format!("disk-{}", osd.0)) {
            disk.mapped_by_host = true;
        }
        if let Some(metadata) = self.ceph.slots.get_mut(&osd).and_then(|slot| slot.metadata.as_mut()) {
            metadata.device_mapper = true;
        }
    }

    fn add_osd(&mut self, osd: OsdId, host: &str, kind: Kind, size_bytes: u64) {
        let osd_fsid = fsid(osd, 0);
        let (content, proof) = kind.lies(osd, self.ceph.fsid);
        let data_dir = kind.directory(osd);
        let identity = identity(format!("ata-disk-{}", osd.0), format!("S{}", osd.0), size_bytes);
        let stable_devices = vec![format!("/dev/disk/by-id/ata-disk-{}", osd.0)];
        let node = NodeName(host.to_owned());
        let name = format!("disk-{}", osd.0);
        self.disks.insert(name, Disk::new(node.clone(), identity, content, Some(proof)));
        let filestore = matches!(kind, Kind::Filestore | Kind::Directory);
        let encrypted = kind == Kind::Encrypted;
        let metadata = Metadata {
            store: ObjectStore(if filestore { "filestore" } else { "bluestore" }.to_owned()),
            hostname: host.to_owned(),
            devices: vec!["sdb".to_owned()],
            stable_devices,
            ceph_version: agent::able().ceph_version,
            on_partition: filestore,
            dedicated_db: false,
            dedicated_wal: false,
            device_mapper: encrypted,
            on_file: false,
        };
        if encrypted {
            self.dmcrypt.insert(osd_fsid, true);
        }
        self.ceph.slots.insert(
            osd,
            Slot {
                state: SlotState::Exists,
                fsid: Some(osd_fsid),
                up: true,
                is_in: true,
                reweight: REWEIGHT,
                primary_affinity: Weight::ONE,
                up_from: Epoch(5),
                down_at: Epoch(0),
                down_since: None,
                noout: false,
                noin: false,
                nodown: None,
                noup: None,
                auto_out: false,
                dmcrypt_key: encrypted,
                crush: Some(CrushItem {
                    location: [("root", "default"), ("host", host)]
                        .map(|(kind, name)| (kind.to_owned(), name.to_owned()))
                        .into(),
                    weight: Weight::ONE,
                    device_class: Some("hdd".to_owned()),
                }),
                metadata: Some(metadata),
                used_bytes: None,
            },
        );
        self.ceph.auth.insert(osd, true);
        let starts = (kind == Kind::Raw).then_some(osd_fsid);
        let daemon = daemon(osd, &node, starts);
        self.kube.daemons.insert(osd, Daemon { mounts_device: kind == Kind::Filestore, data_dir, ..daemon });
    }
}

fn identity(by_id: String, serial: String, size_bytes: u64) -> DeviceIdentity {
    DeviceIdentity {
        by_id: [by_id].into(),
        by_path: BTreeSet::new(),
        serial: Some(serial),
        wwn: None,
        size_bytes,
    }
}

fn daemon(osd: OsdId, node: &NodeName, fsid: Option<OsdFsid>) -> Daemon {
    Daemon {
        name: format!("rook-ceph-osd-{}", osd.0),
        uid: format!("uid-{}-1", osd.0),
        generation: 1,
        replicas: 1,
        stopped_by: None,
        fsid,
        node: Some(node.clone()),
        image: "ceph:v16.2.15".to_owned(),
        activates: fsid.is_some(),
        mode: fsid.map(|_| Mode::Raw),
        mounts_device: false,
        data_dir: None,
        on_pvcs: None,
        managed_externally: None,
        tolerations: Vec::new(),
        opens_encryption: false,
        encrypted_to_rook: false,
        rolled_out: true,
        names_topology: true,
        replica_failure: None,
        pods: vec![Pod {
            name: format!("rook-ceph-osd-{}-a", osd.0),
            uid: format!("uid-pod-{}", osd.0),
            node: Some(node.clone()),
            restarts: 0,
            trouble: None,
        }],
    }
}
