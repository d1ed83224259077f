//! Worlds with a running Rook operator.

use crate::sim::example::shape::Kind;
use crate::sim::example::worlds::{on_three_hosts, replicated};
use crate::sim::world::World;

/// Returns `replicated` with a running Rook operator that can be fenced and may reconcile at any time.
pub fn with_rook() -> World {
    let mut world = replicated();
    run_fenceable(&mut world);
    // Confirmed by a flag: Rook would also act on a confirmation in the CephCluster.
    world.kube.declaration.confirmed = false;
    world
}

/// Returns the same cluster, in which the CephCluster lets Rook inspect the disks of all nodes.
///
/// A complete OSD without a Deployment gets one from Rook.
pub fn with_rook_that_hydrates() -> World {
    let mut world = with_rook();
    world.kube.declaration.storage.all_nodes = true;
    world
}

/// Returns three OSDs, the first of them encrypted and to become unencrypted, with a running Rook operator.
///
/// Rook can be fenced, and would migrate the same OSDs: the CephCluster confirms it to both.
pub fn with_rook_that_migrates(encrypted: usize) -> World {
    let kind = |n| if n < encrypted { Kind::Encrypted } else { Kind::Raw };
    let mut world = on_three_hosts([0, 1, 2].map(kind));
    world.kube.declaration.storage.all_nodes = true;
    run_fenceable(&mut world);
    world
}

/// Returns a world with a running Rook operator.
pub(super) fn with_operator(mut world: World) -> World {
    run_fenceable(&mut world);
    world
}

fn run_fenceable(world: &mut World) {
    if let Some(operator) = &mut world.kube.operator {
        (operator.honours_fence, operator.opens_lvm) = (true, true);
        (operator.replicas, operator.pods) = (1, 1);
        "rook/ceph:v1.20.0".clone_into(&mut operator.image);
    }
    (world.reconciling, world.drains_due) = (true, true);
}

/// Returns `replicated` with a running Rook operator that knows no fence.
pub fn with_old_rook() -> World {
    let mut world = replicated();
    if let Some(operator) = &mut world.kube.operator {
        (operator.replicas, operator.pods) = (1, 1);
    }
    (world.reconciling, world.drains_due) = (true, true);
    world
}
