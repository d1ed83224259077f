//! Beside a Rook that runs.

use super::{Kind, World, on_three_hosts, replicated};

/// As `replicated`, beside a Rook that runs, can be fenced, and begins to reconcile when it likes.
pub fn with_rook() -> World {
    let mut world = replicated();
    run_fenceable(&mut world);
    // Confirmed by a flag: what the CephCluster confirms, Rook would do too.
    world.kube.declaration.confirmed = false;
    world
}

/// The same, and the CephCluster lets Rook look at the disks of all nodes: what is whole on one and has no Deployment gets one.
pub fn with_rook_that_hydrates() -> World {
    let mut world = with_rook();
    world.kube.declaration.storage.all_nodes = true;
    world
}

/// The first of three OSDs are encrypted and are to become plain, beside a Rook that runs, can be fenced, and would do the
/// same: the CephCluster confirms it to both.
pub fn with_rook_that_migrates(encrypted: usize) -> World {
    let kind = |n| if n < encrypted { Kind::Encrypted } else { Kind::Raw };
    let mut world = on_three_hosts([0, 1, 2].map(kind));
    world.kube.declaration.storage.all_nodes = true;
    run_fenceable(&mut world);
    world
}

fn run_fenceable(world: &mut World) {
    if let Some(operator) = &mut world.kube.operator {
        (operator.honours_fence, operator.replicas, operator.pods) = (true, 1, 1);
        "rook/ceph:v1.20.0".clone_into(&mut operator.image);
    }
    (world.reconciling, world.drains_due) = (true, true);
}

/// As `replicated`, beside a Rook that runs and knows no fence.
pub fn with_old_rook() -> World {
    let mut world = replicated();
    if let Some(operator) = &mut world.kube.operator {
        (operator.replicas, operator.pods) = (1, 1);
    }
    (world.reconciling, world.drains_due) = (true, true);
    world
}
