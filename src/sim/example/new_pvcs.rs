//! Worlds with PVCs of a device set that have no OSD.

use crate::domain::osd::OsdId;
use crate::sim::example::pvcs::{DB_DISK, DB_PVC, OTHER_DISK, PVC, on_three};
use crate::sim::example::rook::with_operator;
use crate::sim::example::shape::{GIB, host};
use crate::sim::world::World;

/// PVC of the device set that has no OSD.
pub const NEW_PVC: &str = "set1-data-1c";

/// Disk behind that PVC.
pub const NEW_DISK: &str = "disk-3";

/// PVC for the database of the OSD on that PVC.
pub const NEW_DB_PVC: &str = "set1-metadata-1d";

/// Disk behind that PVC.
pub const NEW_DB_DISK: &str = "disk-of-new-db-pvc";

/// Returns three replicas on three hosts; the OSD of the first one is on a PVC, as its device set declares.
///
/// The set declares two OSDs, and has another PVC on that host.
pub fn pvc_without_osd() -> World {
    with_another(false)
}

/// Returns `pvc_without_osd` with a device set that is encrypted.
pub fn pvc_without_osd_encrypted() -> World {
    with_another(true)
}

/// Returns `pvc_without_osd` with PVCs for databases.
pub fn pvcs_without_osd() -> World {
    let mut world = with_another(false);
    world.declare_set(&["data", "metadata"], false);
    world.add_disk(DB_DISK, &host(0), 6 * GIB);
    world.add_pvc(DB_PVC, ("metadata", 0), DB_DISK);
    world.put_database(OsdId(0), DB_DISK);
    world.add_disk(NEW_DB_DISK, &host(0), 6 * GIB);
    world.add_pvc(NEW_DB_PVC, ("metadata", 1), NEW_DB_DISK);
    world
}

/// Returns `pvc_without_osd` with data of another owner on the device of the PVC.
pub fn pvc_with_data() -> World {
    let mut world = with_another(false);
    world.put_foreign(NEW_DISK);
    world
}

/// Returns `pvc_without_osd` with another PVC that is as available.
pub fn two_pvcs_without_osd() -> World {
    let mut world = with_another(false);
    world.add_disk("disk-4", &host(1), 6 * GIB);
    world.add_pvc("set1-data-2e", ("data", 2), "disk-4");
    world.declare_set(&["data"], false);
    world
}

/// Returns a device set whose second OSD was destroyed, and its device cleared by a person.
///
/// The Deployment is at 0, and still names the PVC.
pub fn pvc_of_a_destroyed_osd() -> World {
    let mut world = on_three();
    let destroyed = OsdId(1);
    world.put_on_pvc(OsdId(0), PVC, 0, false);
    world.put_on_pvc(destroyed, NEW_PVC, 1, false);
    world.declare_set(&["data"], false);
    world.osd_down(destroyed);
    world.osd_destroy(destroyed).ok();
    if let Some(daemon) = world.kube.daemons.get_mut(&destroyed) {
        daemon.replicas = 0;
        daemon.pods.clear();
    }
    world.disks.remove("disk-1");
    world.add_disk("disk-1", &host(1), 6 * GIB);
    world.comes_to_rest();
    world
}

/// Returns `pvc_of_a_destroyed_osd` after its PVC was deleted, and another one was created for the index.
pub fn pvc_in_place_of_a_destroyed_osd() -> World {
    let mut world = pvc_of_a_destroyed_osd();
    world.kube.pvcs.remove(NEW_PVC);
    world.pvcs.disks.remove(NEW_PVC);
    world.add_pvc("set1-data-1e", ("data", 1), "disk-1");
    world
}

/// Returns `pvc_without_osd` with a running Rook.
pub fn pvc_without_osd_alongside_rook() -> World {
    with_operator(pvc_without_osd())
}

fn with_another(is_encrypted: bool) -> World {
    let mut world = on_three();
    world.put_on_pvc(OsdId(0), PVC, 0, is_encrypted);
    world.add_disk(NEW_DISK, &host(0), 6 * GIB);
    world.add_pvc(NEW_PVC, ("data", 1), NEW_DISK);
    world.declare_set(&["data"], is_encrypted);
    world.add_disk(OTHER_DISK, &host(0), 6 * GIB);
    world.put_foreign(OTHER_DISK);
    world
}
