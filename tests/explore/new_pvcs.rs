//! New OSDs on PVCs of a device set, searched like the others.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::inspection::Content;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::sim::{Around, Happening, PvcChange, World, example};

use super::search::Search;
use super::{agents, explore, explored, has_time, needs, nothing};

/// OSD that the PVC becomes.
const NEW: OsdId = OsdId(3);

pub(super) const OF_A_DESTROYED_OSD: &str = "the Deployment of a destroyed OSD names the PVC";
pub(super) const RECREATED_LATE: &str = "a PVC without an OSD is recreated, a late freeze";
pub(super) const QUARANTINED: &str = "a new OSD on a PVC is quarantined";

/// Returns what people and Rook do to the PVC and to the device behind it.
fn people(world: &World) -> Vec<Happening> {
    let mut menu =
        vec![Happening::Unconfirmed, Happening::OthersFence, Happening::FlagSet, Happening::OperatorUp];
    menu.extend(recreated(world));
    let disk = &world.disks[example::NEW_DISK];
    if disk.held_by.is_none() && !world.is_run(disk) {
        menu.push(Happening::DiskOverwritten(example::NEW_DISK.to_owned()));
    }
    match world.ceph.slots.get(&NEW) {
        None => menu.push(Happening::IdTakenExternally),
        Some(slot) if !slot.up => menu.push(Happening::PersonPurges(NEW)),
        Some(_) => {}
    }
    if world.kube.daemons.contains_key(&NEW) {
        menu.extend([
            Happening::PersonEdits(NEW),
            Happening::PersonDeletes(NEW),
            Happening::PersonRecreates(NEW),
        ]);
    }
    menu
}

/// Returns the new PVC of the same name over another disk, while no pod uses the old one.
fn recreated(world: &World) -> Vec<Happening> {
    let can_be =
        world.pvcs.disks[example::NEW_PVC] != example::OTHER_DISK && world.is_unused(example::NEW_PVC);
    let (pvc, disk) = (example::NEW_PVC.to_owned(), example::OTHER_DISK.to_owned());
    can_be.then_some(Happening::Pvc(PvcChange::Recreated(pvc, disk))).into_iter().collect()
}

fn everything(world: &World) -> Vec<Happening> {
    let mut menu = agents(world);
    menu.extend(people(world));
    menu.extend(Around::ALL.map(|what| Happening::Around(what, true)));
    menu
}

/// Returns a world in which the agent of the new OSD fails after its inspection.
fn failing() -> World {
    let mut world = example::pvc_without_osd();
    world.noise.agents_fail = world.kube.nodes.keys().cloned().collect();
    world
}

/// Returns the search for a PVC that the Deployment of a destroyed OSD names: nothing is to be done there.
pub(super) fn of_a_destroyed_osd() -> Search {
    let world = example::pvc_of_a_destroyed_osd;
    Search { stays_shut: true, ..Search::new(OF_A_DESTROYED_OSD, world, nothing, (0, 0, 0)) }
}

/// Returns the search for a PVC that is recreated while a runner is frozen right before it starts the OSD.
pub(super) fn recreated_late() -> Search {
    let new = Search::new(RECREATED_LATE, example::pvc_without_osd, recreated, (1, 1, 0));
    Search { freezes_late: true, ..new }
}

/// Returns the search for a PVC whose OSD is quarantined.
pub(super) fn quarantined() -> Search {
    Search { has_sick: true, ..Search::new(QUARANTINED, failing, nothing, (0, 0, 0)) }
}

#[test]
fn world_with_a_pvc_without_an_osd_has_a_blank_device() {
    let world = example::pvc_without_osd();
    assert_eq!(world.disks[example::NEW_DISK].content, Content::Blank);
    assert!(!world.ceph.slots.contains_key(&NEW));
}

#[test]
fn new_osd_on_a_pvc_survives_a_fault_of_any_kind() {
    explore("a PVC without an OSD", example::pvc_without_osd, everything, (1, 0, 0));
}

#[test]
fn new_osd_on_a_pvc_survives_a_freeze_and_a_leap_in_time() {
    explore("a PVC without an OSD", example::pvc_without_osd, nothing, (0, 1, 1));
}

#[test]
fn new_encrypted_osd_on_a_pvc_survives_a_failing_agent() {
    explore("an encrypted PVC without an OSD", example::pvc_without_osd_encrypted, agents, (1, 0, 0));
}

#[test]
fn new_osd_with_a_database_on_a_pvc_survives_a_failing_agent() {
    explore("PVCs without an OSD", example::pvcs_without_osd, agents, (1, 0, 0));
}

#[test]
fn guards_of_new_osds_on_pvcs_are_needed() {
    explored(&of_a_destroyed_osd());
    explored(&recreated_late());
    needs(recreated_late, &[Guard::StartsOnPvc]);
    needs(of_a_destroyed_osd, &[Guard::PvcUnused]);
    needs(quarantined, &[Guard::PvcOnce]);
}

#[test]
fn new_osds_on_pvcs_wider_if_there_is_time() {
    if has_time() {
        explore("a PVC without an OSD", example::pvc_without_osd, everything, (1, 1, 0));
        explore("PVCs without an OSD", example::pvcs_without_osd, everything, (1, 0, 0));
    }
}
