//! Worlds in which disks become OSDs.

use std::collections::BTreeSet;

use crate::domain::inspection::Content;
use crate::domain::observation::LocalVolume;
use crate::domain::osd::{DeviceIdentity, NodeName, OsdId};
use crate::domain::storage::{StorageNode, Taint};
use crate::sim::example::shape::{GIB, Kind, PoolShape, Shape, fsid, host};
use crate::sim::happening::Happening;
use crate::sim::world::{Disk, World};

/// Returns three replicas on three hosts with one OSD each, all conforming.
///
/// The owner selects all disks of the first host.
fn three() -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::Raw], vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    world.kube.declaration.storage.selection.all = Some(true);
    // The other nodes are not listed: other tests show how a run proceeds from node to node, and it would
    // triple the states.
    let first = StorageNode { name: host(0), ..StorageNode::default() };
    world.kube.declaration.storage.nodes = vec![first];
    world
}

/// Returns conforming OSDs and an available disk.
pub fn one_more() -> World {
    let mut world = three();
    world.add_disk("disk-new", "h1", 6 * GIB);
    world
}

/// Returns three hosts with an available disk each and no OSD: mons, and an empty pool.
pub fn empty() -> World {
    empty_with(&[1, 1, 1])
}

/// Returns the same cluster with so many available disks on each host.
pub fn empty_with(disks: &[usize]) -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 0 };
    let hosts = vec![Vec::new(); disks.len()];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    world.kube.declaration.storage.all_nodes = true;
    world.kube.declaration.storage.selection.all = Some(true);
    for (n, disks) in disks.iter().enumerate() {
        for disk in 0..*disks {
            world.add_disk(&format!("disk-{n}{disk}"), &host(n), 6 * GIB);
        }
    }
    world
}

/// Returns a cluster with one failed OSD: a person destroyed its slot, its Deployment is at 0, and a blank
/// disk replaces its disk.
pub fn refill() -> World {
    let mut world = three();
    let failed = OsdId(0);
    world.osd_down(failed);
    world.osd_destroy(failed).ok();
    if let Some(daemon) = world.kube.daemons.get_mut(&failed) {
        daemon.replicas = 0;
        daemon.pods.clear();
    }
    world.disks.remove("disk-0");
    world.add_disk("disk-new", "h1", 6 * GIB);
    world.comes_to_rest();
    world
}

/// Returns a cluster in which nothing starts a finished OSD: its Deployment is gone.
///
/// Another disk has an old store of an earlier OSD with that id.
pub fn adopt() -> World {
    let mut world = three();
    let lost = OsdId(0);
    world.osd_down(lost);
    world.kube.daemons.remove(&lost);
    world.add_disk("a-disk", "h1", 6 * GIB);
    let content = Content::Bluestore {
        osd_fsid: fsid(lost, 9),
        whoami: Some(lost),
        cluster: Some(world.ceph.fsid),
        finished: true,
        activatable: true,
    };
    world.disks.entry("a-disk".to_owned()).and_modify(|disk| disk.content = content);
    world.comes_to_rest();
    world
}

/// Returns the same OSD on a PersistentVolume, and a blank disk that is one too.
pub fn on_volumes() -> World {
    let mut world = adopt();
    world.add_disk("disk-new", "h1", 6 * GIB);
    for disk in ["disk-0", "disk-new"] {
        let name = world.disks.get(disk).and_then(|disk| disk.identity.by_id.first()).cloned();
        world.kube.local_volumes.push(LocalVolume {
            name: format!("pv-{disk}"),
            path: Some(format!("/dev/disk/by-id/{}", name.unwrap_or_default())),
            claim: None,
            is_block: true,
            bytes: Some(6 * GIB),
            nodes: Some(BTreeSet::from([host(0)])),
        });
    }
    world
}

/// Returns `on_volumes` with volumes that a driver attaches: nothing says which disks they are.
pub fn on_attached_volumes() -> World {
    let mut world = on_volumes();
    for volume in &mut *world.kube.local_volumes {
        (volume.path, volume.nodes) = (None, None);
        volume.claim = Some("rook-ceph/set1-data-0a".to_owned());
    }
    world
}

/// Returns a cluster in which two nodes got a taint later that their OSDs do not tolerate.
pub fn tolerate() -> World {
    let mut world = three();
    for n in 0..2 {
        world.happen(&Happening::Tainted(NodeName(host(n))));
    }
    world
}

/// Returns the taint that a person sets on nodes.
pub(in crate::sim) fn taint() -> Taint {
    Taint { key: "storage".to_owned(), value: "only".to_owned(), effect: "NoSchedule".to_owned() }
}

impl World {
    /// Adds a blank disk.
    pub fn add_disk(&mut self, name: &str, host: &str, size_bytes: u64) {
        let identity = DeviceIdentity {
            by_id: BTreeSet::from([format!("ata-{name}")]),
            by_path: [].into(),
            serial: Some(format!("S-{name}")),
            wwn: None,
            size_bytes,
        };
        let node = NodeName(host.to_owned());
        self.disks.insert(name.to_owned(), Disk::new(node, identity, Content::Blank, None));
    }

    /// Lets all PGs peer, and the mgr receive their statistics.
    pub(super) fn comes_to_rest(&mut self) {
        for pg in self.placements.keys().copied().collect::<Vec<_>>() {
            self.peer(&pg);
            self.report_pg(&pg);
        }
    }
}
