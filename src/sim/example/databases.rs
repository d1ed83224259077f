//! Worlds whose owner declares databases on another disk.

use crate::domain::storage::{DeviceConfig, StorageNode};
use crate::sim::example::shape::{GIB, Kind, PoolShape, Shape, host};
use crate::sim::world::World;

/// Name of the disk for databases.
pub const DATABASE_DISK: &str = "disk-db";

fn with(first: Vec<Kind>, pgs: u32) -> World {
    let pool = PoolShape { pgs, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![first, vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    let metadata_device = Some(format!("/dev/disk/by-id/ata-{DATABASE_DISK}"));
    let config = DeviceConfig { metadata_device, ..DeviceConfig::default() };
    let first = StorageNode { name: host(0), config, ..StorageNode::default() };
    let others = [1, 2].map(|n| StorageNode { name: host(n), ..StorageNode::default() });
    world.kube.declaration.storage.nodes = [first].into_iter().chain(others).collect();
    world.add_disk(DATABASE_DISK, "h1", 6 * GIB);
    world
}

/// Returns three replicas on three hosts with one OSD each.
///
/// One OSD was created by hand, and is to have its database on another disk of its node.
pub fn to_have_a_database() -> World {
    with(vec![Kind::ByHand], 1)
}

/// Returns two such OSDs on one host, which share that disk: one created by hand, and one that ceph-volume
/// created as it does today.
pub fn two_to_have_databases() -> World {
    with(vec![Kind::ByHand, Kind::Raw], 2)
}
