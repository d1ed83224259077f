//! OSDs that are removed by a request, or by a switch of the run.

use chrono::TimeDelta;

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::observation::SlotState;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::domain::removal::DiskAfter;
use osd_migrate_core::sim::{Around, Happening, World, example};

use super::search::{Menu, Search};
use super::{OURS, agents, deaths_of, explored, has_time, needs, nothing};

pub(super) const REMOVED: &str = "removed, a fault";
pub(super) const FROZEN: &str = "removed, a late freeze and a fault";
pub(super) const NO_PLACE: &str = "to be removed, and no place for its data";
pub(super) const SELECTED: &str = "to be removed, and its disk is selected";
pub(super) const WEIGHED: &str = "to be removed, and Rook resets weights";
pub(super) const DIRECTORY: &str = "removed from its directory, a fault";
pub(super) const HAS_A_DISK: &str = "in a directory, not removed because of a disk";
pub(super) const OUT_BRIEFLY: &str = "down and out for half an hour";
const NO_DISK: &str = "in a directory without a disk, a fault";
const OUT: &str = "down and out for two hours, a fault";
const ALONE: &str = "removed";
pub(super) const TWO_REPLICAS: &str = "removed from two replicas, a fault";
const AGENTS_FAIL: &str = "removed, and its agents fail";
/// The death of the OSD is not in the statistics of the mgr yet.
pub(super) const OLD_STATISTICS: &str = "removed, reweighed, and dies";
pub(super) const NODE: &str = "a node removed";
pub(super) const NODE_FAULT: &str = "a node removed, a fault";

/// OSD that gets the data.
const SPARE: OsdId = OsdId(3);
/// OSD with another replica.
const PARTNER: OsdId = OsdId(1);

/// Returns the policy of a run that removes OSDs.
pub(super) fn removes() -> Policy {
    Policy { removals: true, ..Policy::default() }
}

/// Returns the policy of a run that removes OSDs without a request, too.
fn by_switch() -> Policy {
    Policy { drop_directories: true, remove_out: Some(TimeDelta::minutes(60)), ..removes() }
}

fn switched(name: &'static str, world: fn() -> World, menu: Menu, left: (u8, u8, u8)) -> Search {
    Search { policy: by_switch, ..Search::new(name, world, menu, left) }
}

fn new(name: &'static str, world: fn() -> World, menu: Menu, left: (u8, u8, u8)) -> Search {
    Search { policy: removes, ..Search::new(name, world, menu, left) }
}

fn shut(name: &'static str, world: fn() -> World) -> Search {
    Search { stays_shut: true, ..new(name, world, nothing, (0, 0, 0)) }
}

/// Returns what a person does with the request.
pub(super) fn request(world: &World) -> Happening {
    let is_there = world.kube.requests.removals.contains_key(&OURS);
    if is_there { Happening::PersonKeeps(OURS) } else { Happening::PersonRequests(OURS) }
}

/// Returns what goes wrong while an OSD is removed, and what people do to it.
fn everything(world: &World) -> Vec<Happening> {
    let mut menu = deaths_of(&[OURS, SPARE, PARTNER], world);
    menu.extend(agents(world));
    menu.extend(world.ceph.pgs.keys().next().map(|pg| Happening::MgrForgets(*pg)));
    menu.extend(
        [Around::Paused, Around::Cancelled, Around::Cordoned].map(|what| Happening::Around(what, true)),
    );
    menu.extend([request(world), Happening::FlagSet]);
    menu.extend(with_the_osd(world));
    let disk = &world.disks["disk-0"];
    if disk.held_by.is_none() && !world.is_run(disk) {
        // A person who writes to a disk opens it exclusively too.
        menu.push(Happening::DiskOverwritten("disk-0".to_owned()));
    }
    menu
}

/// Returns what people do with the Deployment and the slot of the OSD.
fn with_the_osd(world: &World) -> Vec<Happening> {
    let mut menu = Vec::new();
    let Some(slot) = world.ceph.slots.get(&OURS) else { return menu };
    menu.extend(world.kube.daemons.get(&OURS).map(|daemon| match daemon.replicas {
        0 => Happening::PersonStarts(OURS),
        _ => Happening::PersonEdits(OURS),
    }));
    menu.push(if slot.up { Happening::PersonReweighs(OURS) } else { Happening::PersonPurges(OURS) });
    // Excluded while an agent has the disk open: between its last proof and its first write it cannot notice
    // the change.
    let is_open = world.disks["disk-0"].held_by.is_some();
    if slot.state == SlotState::Destroyed && !is_open {
        menu.push(Happening::PersonReregisters(OURS));
    }
    menu
}

/// Returns the death of the OSD, and what a person does with its weight.
fn weight_and_death(world: &World) -> Vec<Happening> {
    let mut menu = deaths_of(&[OURS], world);
    let is_up = world.ceph.slots.get(&OURS).is_some_and(|slot| slot.up);
    menu.extend(is_up.then_some(Happening::PersonReweighs(OURS)));
    menu
}

/// Returns what may come while a runner is frozen.
fn behind(world: &World) -> Vec<Happening> {
    let mut menu = deaths_of(&[SPARE], world);
    menu.extend(
        with_the_osd(world)
            .into_iter()
            .filter(|what| matches!(what, Happening::PersonReweighs(_) | Happening::PersonReregisters(_))),
    );
    menu.push(request(world));
    menu
}

/// Returns what goes wrong while the data of a node's OSDs moves: another OSD dies, or one of them is kept.
fn of_a_node(world: &World) -> Vec<Happening> {
    let is_weightless = |osd: &OsdId| world.ceph.slots.get(osd).is_some_and(|slot| !slot.has_weight());
    if !is_weightless(&OURS) && !is_weightless(&PARTNER) {
        return Vec::new();
    }
    let mut menu = deaths_of(&[OsdId(2)], world);
    menu.push(request(world));
    menu
}

/// Returns what people do to an OSD of a pool with two replicas, and the death of the other OSDs.
fn of_two_replicas(world: &World) -> Vec<Happening> {
    let mut menu = deaths_of(&[OURS, PARTNER, OsdId(2)], world);
    menu.push(request(world));
    menu.extend(with_the_osd(world));
    menu
}

/// Returns what goes wrong while an OSD leaves its directory, and what people do to it.
fn with_a_directory(world: &World) -> Vec<Happening> {
    let mut menu = deaths_of(&[OURS, SPARE], world);
    menu.extend(agents(world));
    menu.extend([Happening::Around(Around::Paused, true), Happening::Around(Around::Cancelled, true)]);
    menu.extend([request(world), Happening::Unconfirmed]);
    menu.extend(with_the_osd(world));
    let disk = &world.disks["disk-0"];
    if disk.directory().is_some() && !world.is_run(disk) {
        menu.push(Happening::DirectoryReplaced("disk-0".to_owned()));
    }
    menu
}

/// Returns what happens while a dead OSD is removed.
fn around_the_dead(world: &World) -> Vec<Happening> {
    let mut menu = deaths_of(&[SPARE, PARTNER], world);
    menu.extend([Happening::PersonIns(OURS), Happening::Around(Around::Cancelled, true), request(world)]);
    menu.extend(with_the_osd(world));
    menu
}

fn agents_fail() -> World {
    let mut world = example::removal();
    world.noise.agents_fail = world.kube.nodes.keys().take(1).cloned().collect();
    world
}

pub(super) fn searches() -> Vec<Search> {
    vec![
        shut(NO_PLACE, example::removal_without_a_place),
        shut(SELECTED, example::removal_of_a_selected_disk),
        shut(WEIGHED, example::removal_under_a_rook_that_weighs),
        new(ALONE, example::removal, nothing, (0, 0, 0)),
        Search { has_sick: true, ..new(AGENTS_FAIL, agents_fail, nothing, (0, 0, 0)) },
        new(NODE, example::removal_of_a_node, nothing, (0, 0, 0)),
        new(NODE_FAULT, example::removal_of_a_node_with_one_pg, of_a_node, (1, 0, 0)),
        new(TWO_REPLICAS, example::removal_of_two_replicas, of_two_replicas, (1, 0, 0)),
        new(REMOVED, example::removal, everything, (1, 0, 0)),
        Search { freezes_late: true, ..new(FROZEN, example::removal, behind, (1, 1, 0)) },
        new(OLD_STATISTICS, example::removal, weight_and_death, (2, 0, 0)),
        new(DIRECTORY, example::removal_of_a_directory, with_a_directory, (1, 0, 0)),
        switched(HAS_A_DISK, example::directory_with_a_disk, nothing, (0, 0, 0)),
        Search { stays_shut: true, ..switched(OUT_BRIEFLY, || example::out_for(30), nothing, (0, 0, 0)) },
    ]
}

fn search(name: &'static str) -> Search {
    searches().into_iter().find(|search| search.name == name).unwrap()
}

#[test]
fn requested_osd_is_removed_and_nothing_is_left() {
    explored(&search(ALONE));
}

#[test]
fn disk_of_a_removed_osd_is_left_or_marked_on_request() {
    let left = || example::removal_to(DiskAfter::Leave);
    explored(&new("removed, its disk is left", left, nothing, (0, 0, 0)));
    let marked = || example::removal_to(DiskAfter::Mark);
    explored(&new("removed, its disk is marked, a fault", marked, agents, (1, 0, 0)));
}

#[test]
fn osd_is_removed_although_its_agents_fail() {
    explored(&search(AGENTS_FAIL));
}

#[test]
fn removal_comes_before_a_migration() {
    explored(&new("a removal and a migration", example::removal_and_migration, nothing, (0, 0, 0)));
}

#[test]
fn removal_alongside_rook_comes_to_its_end() {
    explored(&new("removed alongside Rook", example::removal_alongside_rook, nothing, (0, 0, 0)));
}

#[test]
fn osd_is_not_removed_if_a_gate_stays_shut() {
    for name in [NO_PLACE, SELECTED, WEIGHED] {
        explored(&search(name));
    }
}

#[test]
fn osd_is_not_removed_by_a_run_without_removals() {
    let never = Search { policy: Policy::default, ..shut("removed by no run", example::removal) };
    explored(&never);
}

#[test]
fn osds_of_a_node_are_removed_together_with_its_host() {
    explored(&search(NODE));
}

#[test]
fn removal_of_a_node_survives_a_fault() {
    explored(&search(NODE_FAULT));
}

#[test]
fn directory_is_deleted_only_for_its_removed_osd() {
    explored(&search(DIRECTORY));
}

#[test]
fn directory_without_a_disk_is_removed_by_the_switch_alone() {
    explored(&switched(NO_DISK, example::directory_without_a_disk, with_a_directory, (1, 0, 0)));
    explored(&search(HAS_A_DISK));
    let off = Search {
        policy: removes,
        ..shut("in a directory without a disk, no switch", example::directory_without_a_disk)
    };
    explored(&off);
}

#[test]
fn osd_that_is_out_is_removed_after_the_time_alone() {
    explored(&switched(OUT, || example::out_for(120), around_the_dead, (1, 0, 0)));
    explored(&search(OUT_BRIEFLY));
    let off = shut("down and out for two hours, no switch", || example::out_for(120));
    explored(&off);
}

/// Checks that nothing that goes wrong while an OSD is removed costs a replica, or leaves the OSD weightless.
#[test]
fn removal_from_two_replicas_survives_a_fault() {
    explored(&search(TWO_REPLICAS));
}

#[test]
fn removal_survives_a_fault_of_any_kind() {
    explored(&search(REMOVED));
}

#[test]
fn removal_survives_a_late_freeze_and_a_fault() {
    explored(&search(FROZEN));
}

#[test]
fn removal_is_not_decided_by_statistics_of_an_older_osdmap() {
    explored(&search(OLD_STATISTICS));
}

#[test]
fn removal_wider_if_there_is_time() {
    if has_time() {
        explored(&new("removed, two faults", example::removal, of_two_replicas, (2, 0, 0)));
        explored(&new("removed, a fault and a leap", example::removal, everything, (1, 0, 1)));
        explored(&new("removed alongside Rook", example::removal_alongside_rook, everything, (1, 0, 0)));
    }
}

#[test]
fn removal_needs_its_guards() {
    needs(|| search(NO_PLACE), &[Guard::CanBeEmptied]);
    needs(|| search(SELECTED), &[Guard::NotSelectedAgain]);
    needs(|| search(WEIGHED), &[Guard::WeightsNotReset]);
    needs(|| search(ALONE), &[Guard::EmptyingSavedFirst]);
    needs(|| search(OLD_STATISTICS), &[Guard::StatisticsOfThisMap]);
    needs(|| search(NODE), &[Guard::EmptiedTogether, Guard::OneStopAtATime]);
    needs(|| search(NODE_FAULT), &[Guard::OnlyMoving]);
    needs(|| search(REMOVED), &[Guard::GetsNoData, Guard::MarkedInAgain, Guard::RequestStands]);
    needs(|| search(FROZEN), &[Guard::RecheckEmptied, Guard::WeighExpects]);
}

#[test]
fn removal_without_a_request_needs_its_guards() {
    needs(|| search(DIRECTORY), &[Guard::AgentSlotDestroyed]);
    needs(|| search(HAS_A_DISK), &[Guard::NoDiskForDirectory]);
    needs(|| search(OUT_BRIEFLY), &[Guard::OutForLong]);
}
