//! Worlds with OSDs that are removed: by a request, or by a switch of the run.

use chrono::TimeDelta;

use crate::domain::inspection::Content;
use crate::domain::observation::Daemon;
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::removal::{DiskAfter, RemovalRequest};
use crate::domain::storage::StorageNode;
use crate::sim::example::rook::with_operator;
use crate::sim::example::shape::{GIB, Kind, PoolShape, Shape, fsid, host};
use crate::sim::world::World;

impl World {
    /// Stores the request to remove the OSD that the slot holds now.
    pub fn request_removal(&mut self, osd: OsdId, disk: DiskAfter) {
        if let Some(fsid) = self.ceph.slots.get(&osd).and_then(|slot| slot.fsid) {
            self.kube.requests.removals.insert(osd, RemovalRequest { disk, ..RemovalRequest::of(fsid) });
        }
    }
}

/// Returns one PG on the first `size` hosts, which have one OSD each; the OSDs of the other hosts are spare.
fn cluster(kinds: &[Kind], size: u32) -> World {
    let min_size = if size > 2 { 2 } else { 1 };
    let pool = PoolShape { pgs: 1, size, min_size, data_chunks: None, gib: 1 };
    let hosts = kinds.iter().map(|kind| vec![*kind]).collect();
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    let spare = world.ceph.slots.keys().copied().filter(|osd| osd.0 >= size).collect::<Vec<_>>();
    world.placements.values_mut().for_each(|placement| placement.spare.clone_from(&spare));
    world
}

fn requested(mut world: World, disk: DiskAfter) -> World {
    world.request_removal(OsdId(0), disk);
    world
}

/// Returns three replicas on four hosts, and the request to remove the first OSD.
pub fn removal() -> World {
    removal_to(DiskAfter::Wipe)
}

/// Returns `removal` with this state of the disk afterwards.
pub fn removal_to(disk: DiskAfter) -> World {
    requested(cluster(&[Kind::Raw; 4], 3), disk)
}

/// Returns two replicas on three hosts, and the request to remove the first OSD.
pub fn removal_of_two_replicas() -> World {
    requested(cluster(&[Kind::Raw; 3], 2), DiskAfter::Wipe)
}

/// Returns three replicas on three hosts: the data of the OSD to be removed has no place.
pub fn removal_without_a_place() -> World {
    requested(cluster(&[Kind::Raw; 3], 3), DiskAfter::Wipe)
}

/// Returns three replicas on four hosts: the first OSD is to be removed, and the last one to be migrated.
pub fn removal_and_migration() -> World {
    requested(cluster(&[Kind::Raw, Kind::Raw, Kind::Raw, Kind::ByHand], 3), DiskAfter::Wipe)
}

/// Returns `removal` of an OSD whose disk the CephCluster selects.
pub fn removal_of_a_selected_disk() -> World {
    let mut world = removal();
    let storage = &mut world.kube.declaration.storage;
    (storage.all_nodes, storage.selection.all) = (true, Some(true));
    world
}

/// Returns `removal` with a running Rook operator that can be fenced.
pub fn removal_alongside_rook() -> World {
    let mut world = with_operator(removal());
    // Confirmed by nothing: Rook would also act on a confirmation in the CephCluster.
    world.kube.declaration.confirmed = false;
    world
}

/// Returns `removal` with a running Rook operator that resets CRUSH weights of 0.
pub fn removal_under_a_rook_that_weighs() -> World {
    let mut world = removal_alongside_rook();
    world.kube.declaration.resets_weights = true;
    world
}

impl World {
    /// Stores the requests to remove all OSDs of a node.
    pub fn request_removal_of_node(&mut self, node: &NodeName) {
        let is_its = |daemon: &Daemon| daemon.node.as_ref() == Some(node);
        let daemons = self.kube.daemons.iter().filter(|(_, daemon)| is_its(daemon));
        for osd in daemons.map(|(osd, _)| *osd).collect::<Vec<_>>() {
            self.request_removal(osd, DiskAfter::Wipe);
            if let Some(request) = self.kube.requests.removals.get_mut(&osd) {
                request.node = Some(node.clone());
            }
        }
    }
}

/// Returns two replicas on three hosts, of which one has two OSDs; a person requested that the whole host
/// leaves.
///
/// Each of these PGs is on one OSD of the host. The third host has space for them.
fn node_with_pgs_on(homes: &[OsdId]) -> World {
    let pgs = u32::try_from(homes.len()).unwrap_or(u32::MAX);
    let pool = PoolShape { pgs, size: 2, min_size: 1, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::Raw; 2], vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    for (placement, home) in world.placements.values_mut().zip(homes) {
        (placement.home, placement.spare) = (vec![*home, OsdId(2)], vec![OsdId(3)]);
        placement.complete = placement.home.iter().map(|osd| fsid(*osd, 0)).collect();
    }
    for pg in world.lagging() {
        world.report_pg(&pg);
    }
    world.request_removal_of_node(&NodeName(host(0)));
    world
}

/// Returns a node that leaves with two OSDs, which have a PG each.
pub fn removal_of_a_node() -> World {
    node_with_pgs_on(&[OsdId(0), OsdId(1)])
}

/// Returns a node that leaves with two OSDs, of which the first has no PG.
pub fn removal_of_a_node_with_one_pg() -> World {
    node_with_pgs_on(&[OsdId(1)])
}

/// Returns `removal` of an OSD in a directory.
pub fn removal_of_a_directory() -> World {
    requested(in_a_directory(), DiskAfter::Wipe)
}

fn in_a_directory() -> World {
    four_of(&[Kind::Directory, Kind::Raw, Kind::Raw, Kind::Raw])
}

/// Returns three replicas on four hosts, and two OSDs in directories of nodes without a disk for them.
pub fn two_directories_without_a_disk() -> World {
    four_of(&[Kind::Directory, Kind::Directory, Kind::Raw, Kind::Raw])
}

fn four_of(kinds: &[Kind]) -> World {
    let mut world = cluster(kinds, 3);
    world.kube.declaration.storage.selection.all = Some(true);
    world.kube.declaration.storage.nodes = vec![StorageNode { name: host(0), ..StorageNode::default() }];
    world
}

/// Returns three replicas on four hosts, and an OSD in a directory of a node without a disk for it.
pub fn directory_without_a_disk() -> World {
    in_a_directory()
}

/// Returns `directory_without_a_disk` with an available disk.
pub fn directory_with_a_disk() -> World {
    let mut world = in_a_directory();
    world.add_disk("disk-new", "h1", 6 * GIB);
    world
}

/// Returns three replicas on four hosts, and an OSD that died that many minutes ago.
///
/// It is out, and Ceph has recovered its data on the others.
pub fn out_for(minutes: i64) -> World {
    let mut world = cluster(&[Kind::Raw; 4], 3);
    for placement in world.placements.values_mut() {
        placement.home = (1..4).map(OsdId).collect();
        placement.spare = vec![OsdId(0)];
    }
    world.places_hold_all();
    let since = world.at - TimeDelta::minutes(minutes);
    world.ceph.slots.values_mut().for_each(|slot| slot.down_since = Some(since));
    if let Some(slot) = world.ceph.slots.get_mut(&OsdId(0)) {
        (slot.up, slot.is_in) = (false, false);
    }
    world.noise.dead.insert(OsdId(0));
    if let Some(disk) = world.disks.get_mut("disk-0") {
        (disk.content, disk.proof) = (Content::Other { what: "input/output errors".to_owned() }, None);
    }
    world
}
