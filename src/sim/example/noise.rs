//! Worlds with a persistent problem elsewhere in the cluster. OSD 0, the first in line, has the problem.

use crate::domain::inspection::Content;
use crate::domain::osd::{NodeName, OsdId};
use crate::sim::example::shape::{Kind, PoolShape, Shape};
use crate::sim::world::World;

/// First OSD in line, on host `h1`.
const SICK: OsdId = OsdId(0);

/// Returns two OSDs to migrate on their own hosts, `h1` and `h2`, and two that conform.
///
/// The PG is on the last three hosts: all data of the first OSD was moved away.
pub fn with_a_sick_osd() -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    world(pool, 1)
}

/// Returns the same cluster with the PG on the first three hosts.
pub fn two_in_line() -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    world(pool, 0)
}

fn world(pool: PoolShape, shift: u32) -> World {
    let hosts = vec![vec![Kind::ByHand], vec![Kind::ByHand], vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    for (n, home) in (0..).zip(world.placements.values_mut().map(|placement| &mut placement.home)) {
        *home = (0..3).map(|replica| OsdId((n + replica + shift) % 4)).collect();
    }
    world.places_hold_all();
    world
}

/// Returns a cluster whose first OSD died long ago: it is down and out, and Ceph has recovered its data
/// elsewhere.
pub fn a_dead_osd() -> World {
    let mut world = with_a_sick_osd();
    if let Some(slot) = world.ceph.slots.get_mut(&SICK) {
        (slot.up, slot.is_in) = (false, false);
    }
    world.noise.dead.insert(SICK);
    if let Some(disk) = world.disks.get_mut("disk-0") {
        (disk.content, disk.proof) = (Content::Other { what: "input/output errors".to_owned() }, None);
    }
    world
}

/// Returns a cluster in which the first OSD's node is cordoned permanently.
pub fn a_cordoned_node() -> World {
    let mut world = two_in_line();
    world.noise.cordoned.insert(NodeName("h1".to_owned()));
    world.noise_stays();
    world
}

/// Returns a cluster in which a policy refuses the new Deployment of the first OSD.
pub fn a_refused_deployment() -> World {
    let mut world = two_in_line();
    world.noise.refused.insert(SICK);
    world
}

/// Returns a cluster in which the first OSD's node is gone.
///
/// Ceph has recovered its data elsewhere.
pub fn a_node_that_is_gone() -> World {
    let mut world = a_dead_osd();
    world.noise.not_ready.insert(NodeName("h1".to_owned()));
    world.noise_stays();
    world
}

/// Returns a cluster with a second pool on the first OSD that serves only with all its replicas: `ok-to-stop`
/// refuses that OSD, and no other in line.
pub fn an_osd_that_may_not_stop() -> World {
    let pool = |min_size| PoolShape { pgs: 1, size: 3, min_size, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand], vec![Kind::ByHand], vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool(2), pool(3)], disk_gib: 6 }.world();
    for (placement, home) in world.placements.values_mut().zip([[1, 2, 3], [0, 2, 3]]) {
        placement.home = home.map(OsdId).into();
    }
    world.places_hold_all();
    world
}

/// Returns two OSDs whose devices cannot be found, before one without problems.
pub fn two_without_a_device() -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let legacy = || vec![Kind::ByHand];
    let hosts = vec![legacy(), legacy(), legacy(), vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    world.placements.values_mut().for_each(|placement| placement.home = [2, 3, 4].map(OsdId).into());
    for disk in ["disk-0", "disk-1"] {
        // The OSD serves, but no disk is found for it on its node.
        if let Some(disk) = world.disks.get_mut(disk) {
            disk.node = NodeName("elsewhere".to_owned());
        }
    }
    world.places_hold_all();
    world
}

impl World {
    /// Makes every PG complete on its OSDs, and lets the mgr receive that.
    pub(super) fn places_hold_all(&mut self) {
        for placement in self.placements.values_mut() {
            placement.complete =
                placement.home.iter().map(|osd| crate::sim::example::shape::fsid(*osd, 0)).collect();
        }
        self.lagging().iter().for_each(|pg| self.report_pg(pg));
        for (osd, slot) in &mut self.ceph.slots {
            let held = self.placements.values().filter(|placement| placement.home.contains(osd));
            slot.used_bytes = Some(held.map(|placement| placement.bytes).sum());
        }
    }
}
