//! Worlds with OSDs that are emptied before their stop.

use crate::domain::osd::OsdId;
use crate::sim::example::shape::{Kind, PoolShape, Shape};
use crate::sim::world::World;

/// Returns two replicas of one PG on two hosts, one of them on an OSD created by hand.
///
/// Another OSD of its host can take the replica.
pub fn two_replicas_with_a_spare_osd() -> World {
    let pool = PoolShape { pgs: 1, size: 2, min_size: 1, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand, Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    for placement in world.placements.values_mut() {
        (placement.home, placement.spare) = (vec![OsdId(0), OsdId(2)], vec![OsdId(1)]);
    }
    world
}

/// Returns an erasure coded pool, k=2 and m=1, on three hosts, with one Filestore OSD.
///
/// The pool serves only with all its chunks.
pub fn erasure_coded_with_a_spare_osd() -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 3, data_chunks: Some(2), gib: 1 };
    let hosts = vec![vec![Kind::Filestore, Kind::Raw], vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    for placement in world.placements.values_mut() {
        (placement.home, placement.spare) = (vec![OsdId(0), OsdId(2), OsdId(3)], vec![OsdId(1)]);
    }
    world
}
