//! Worlds with OSDs in directories of their hosts.

use super::{GIB, Kind, PoolShape, Shape, host};
use crate::domain::storage::StorageNode;
use crate::sim::World;

fn with(first: Vec<Kind>, pgs: u32) -> World {
    let pool = PoolShape { pgs, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![first, vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    world.kube.declaration.storage.selection.all = Some(true);
    // As with new OSDs: the walk from node to node is shown elsewhere.
    world.kube.declaration.storage.nodes = vec![StorageNode { name: host(0), ..StorageNode::default() }];
    world.add_disk("disk-new", "h1", 6 * GIB);
    world
}

/// Three copies on three hosts with one OSD each; one lies in a directory, and its node has a free disk.
pub fn in_directory() -> World {
    with(vec![Kind::Directory], 1)
}

/// Two in directories of one host, and one free disk there.
pub fn two_in_directories() -> World {
    with(vec![Kind::Directory, Kind::Directory], 2)
}
