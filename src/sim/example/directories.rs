//! Worlds with OSDs in directories of their hosts.

use crate::domain::storage::StorageNode;
use crate::sim::example::shape::{GIB, Kind, PoolShape, Shape, host};
use crate::sim::world::World;

fn with(first: Vec<Kind>, pgs: u32) -> World {
    let pool = PoolShape { pgs, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![first, vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    world.kube.declaration.storage.selection.all = Some(true);
    // Only the first node is declared, as with new OSDs: other tests show how a run proceeds from node to
    // node.
    world.kube.declaration.storage.nodes = vec![StorageNode { name: host(0), ..StorageNode::default() }];
    world.add_disk("disk-new", "h1", 6 * GIB);
    world
}

/// Returns three replicas on three hosts with one OSD each.
///
/// One OSD is in a directory, and its node has an available disk.
pub fn in_directory() -> World {
    with(vec![Kind::Directory], 1)
}

/// Returns two OSDs in directories of one host with one available disk.
pub fn two_in_directories() -> World {
    with(vec![Kind::Directory, Kind::Directory], 2)
}
