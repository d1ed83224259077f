//! The strategy for new OSDs, searched like the others.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::osd::{OsdId, PgId};
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::sim::{Around, Disturbance, Happening, UnusualPg, World, example};

use super::search::Search;
use super::{agents, explore, explored, has_time, needs, nothing};

/// The disk that becomes an OSD.
const DISK: &str = "disk-new";

/// Returns the OSD that the disk becomes: the one whose slot is to be filled, else the lowest id that is
/// absent at first.
fn created_osd(world: &World) -> OsdId {
    let was_three = world.disks.contains_key("disk-0");
    OsdId(if was_three { 3 } else { 0 })
}

/// Returns the faults that happen by themselves.
pub(super) fn spontaneous(world: &World) -> Vec<Happening> {
    let mut menu = agents(world);
    let is_up = |osd: &OsdId| world.ceph.slots.get(osd).is_some_and(|slot| slot.up);
    menu.extend([OsdId(1), created_osd(world)].into_iter().filter(is_up).map(Happening::Dies));
    let lit = || world.kube.nodes.iter().filter(|(_, node)| node.ready).map(|(node, _)| node);
    menu.extend(lit().flat_map(|node| world.inventory_jobs_at_work(node)).map(Happening::InventoryJobDies));
    menu.extend(world.ceph.pgs.keys().next().map(|pg| Happening::MgrForgets(*pg)));
    let boots = world.progress().into_iter().find(|what| *what == Happening::Boots(created_osd(world)));
    menu.extend(boots.map(|_| Happening::BootsUnexpectedly(created_osd(world))));
    menu.extend(lit().next().cloned().map(Happening::PowerLost));
    menu
}

/// Returns what people and Rook do.
pub(super) fn people(world: &World) -> Vec<Happening> {
    let osd = created_osd(world);
    let mut menu = vec![
        Happening::Unselected,
        Happening::Unconfirmed,
        Happening::OthersFence,
        Happening::FlagSet,
        Happening::OperatorUp,
    ];
    if let Some(disk) = world.disks.get(DISK) {
        menu.push(Happening::DiskSwapped(DISK.to_owned()));
        if disk.held_by.is_none() && !world.is_run(disk) {
            // A person who writes to a disk opens it exclusively too.
            menu.extend([
                Happening::DiskOverwritten(DISK.to_owned()),
                Happening::DiskFormatted(DISK.to_owned()),
            ]);
        }
    }
    menu.extend(world.kube.nodes.keys().next().cloned().map(Happening::Tainted));
    match world.ceph.slots.get(&osd) {
        None => menu.push(Happening::IdTakenExternally),
        Some(slot) if !slot.up => menu.push(Happening::PersonPurges(osd)),
        Some(_) => {}
    }
    if let Some(daemon) = world.kube.daemons.get(&osd) {
        menu.push(match daemon.replicas {
            0 => Happening::PersonStarts(osd),
            _ => Happening::PersonStops(osd),
        });
        menu.extend([
            Happening::PersonEdits(osd),
            Happening::PersonDeletes(osd),
            Happening::PersonRecreates(osd),
        ]);
    }
    menu
}

/// Returns all of these faults.
pub(super) fn everything(world: &World) -> Vec<Happening> {
    let mut menu = spontaneous(world);
    menu.extend(people(world));
    menu.extend(Around::ALL.map(|what| Happening::Around(what, true)));
    menu
}

/// Returns a policy that creates two OSDs in parallel on one host.
pub(super) fn two_at_once() -> Policy {
    Policy { at_once: 2, ..Policy::default() }
}

/// Returns a world of one host with two disks.
fn two_disks() -> World {
    example::empty_with(&[2])
}

#[test]
fn new_osd_survives_a_fault_of_any_kind() {
    explore("one more disk", example::one_more, everything, (1, 0, 0));
}

#[test]
fn new_osd_survives_a_freeze_and_a_leap_in_time() {
    explore("one more disk", example::one_more, nothing, (0, 1, 1));
    let late = Search::new("one more disk, frozen late", example::one_more, nothing, (0, 1, 0));
    explored(&Search { freezes_late: true, ..late });
}

/// Returns that a PG waits for space on an OSD from now on.
fn lacks_space(world: &World) -> Vec<Happening> {
    let pgs = world.placements.keys().filter(|pg| !world.noise.unusual.contains_key(*pg));
    let turns = |pg: &PgId| Disturbance::PgChanges(*pg, UnusualPg::TooFull);
    pgs.map(|pg| Happening::Noise(turns(pg))).collect()
}

#[test]
fn new_osd_survives_a_pg_that_lacks_space() {
    explore("one more disk, and no space", example::one_more, lacks_space, (1, 0, 0));
    explore("a slot is filled again, and no space", example::refill, lacks_space, (1, 0, 0));
}

#[test]
fn empty_cluster_survives_a_leap_in_time() {
    explore("from nothing", example::empty, nothing, (0, 0, 1));
}

#[test]
fn empty_cluster_survives_a_spontaneous_fault() {
    explore("from nothing", example::empty, spontaneous, (1, 0, 0));
}

#[test]
fn two_disks_of_a_host_become_osds_in_parallel() {
    let search = Search::new("two disks at once", two_disks, nothing, (0, 0, 0));
    explored(&Search { policy: two_at_once, ..search });
}

#[test]
fn refilled_slot_survives_a_fault_of_any_kind() {
    explore("a slot is filled again", example::refill, everything, (1, 0, 0));
}

#[test]
fn osd_without_a_deployment_survives_a_fault_of_any_kind() {
    explore("an OSD that nothing starts", example::adopt, everything, (1, 0, 0));
}

pub(super) const ON_VOLUMES: &str = "on PersistentVolumes";

/// Returns a search with an OSD that no Deployment starts, and a blank disk, both PersistentVolumes.
pub(super) fn on_volumes() -> Search {
    Search { stays_shut: true, ..Search::new(ON_VOLUMES, example::on_volumes, nothing, (0, 0, 0)) }
}

#[test]
fn persistent_volume_becomes_no_osd_of_a_host() {
    explored(&on_volumes());
    explored(&Search { world: example::on_attached_volumes, ..on_volumes() });
    needs(on_volumes, &[Guard::NoPersistentVolume]);
}

#[test]
fn osds_with_later_taints_survive_a_fault_of_any_kind() {
    explore("taints that came later", example::tolerate, everything, (1, 0, 0));
}

/// Returns the few faults that matter while two OSDs are created in parallel: all of them would give too many
/// orders.
fn one_of_two_fails(world: &World) -> Vec<Happening> {
    let mut menu: Vec<_> = world.agents.keys().cloned().map(Happening::AgentDies).collect();
    let is_up = |osd: &OsdId| world.ceph.slots.get(osd).is_some_and(|slot| slot.up);
    menu.extend([OsdId(0)].into_iter().filter(is_up).map(Happening::Dies));
    // The node takes no second OSD any more.
    if world.ceph.slots.len() == 1 {
        menu.extend(world.kube.nodes.keys().next().cloned().map(Happening::Tainted));
    }
    menu
}

#[test]
fn new_osd_wider_if_there_is_time() {
    if has_time() {
        explore("one more disk", example::one_more, everything, (1, 1, 0));
        let late = Search::new("one more disk, frozen late", example::one_more, everything, (1, 1, 0));
        explored(&Search { freezes_late: true, ..late });
        explore("one more disk", example::one_more, spontaneous, (2, 0, 0));
        explore("one more disk", example::one_more, everything, (1, 0, 1));
    }
}

#[test]
fn other_new_osds_wider_if_there_is_time() {
    if has_time() {
        let late = |name, world| {
            let search = Search::new(name, world, everything, (1, 1, 0));
            explored(&Search { freezes_late: true, ..search });
        };
        late("a slot is filled again, frozen late", example::refill);
        late("an OSD that nothing starts, frozen late", example::adopt);
        explore("taints that came later", example::tolerate, everything, (1, 1, 0));
        explore("from nothing", example::empty, everything, (1, 0, 0));
        let search = Search::new("two disks at once", two_disks, one_of_two_fails, (1, 0, 0));
        explored(&Search { policy: two_at_once, ..search });
    }
}
