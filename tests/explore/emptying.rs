//! OSDs that are emptied before their stop, because their pools can't lose a replica.

use chrono::TimeDelta;

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::observation::{Slot, SlotState};
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::domain::policy::{Empty, Limits, Policy};
use osd_migrate_core::sim::{Around, Disturbance, Happening, World, example};

use super::removal::{removes, request};
use super::search::Search;
use super::{OURS, agents, deaths_of, explored, needs, nothing};

pub(super) const EMPTIED: &str = "emptied, a fault";
pub(super) const FROZEN: &str = "emptied, a late freeze and a fault";
pub(super) const NO_PLACE: &str = "to be emptied, and no place for its data";
pub(super) const DIES: &str = "emptied, dies, and is to be removed";
const DESTROYED: &str = "destroyed, its agents fail, and it is to be removed";
const NEVER_UP: &str = "recreated, never up, and is to be removed";
pub(super) const KEPT: &str = "its removal is withdrawn, and it is migrated";
pub(super) const FULL: &str = "emptied, a late freeze, and the others are full";

/// OSD that gets the data.
const SPARE: OsdId = OsdId(1);
/// OSD with the other replica.
const PARTNER: OsdId = OsdId(2);

fn is_in(osd: OsdId, world: &World) -> bool {
    world.ceph.slots.get(&osd).is_some_and(|slot| slot.is_in)
}

/// Returns what goes wrong while an OSD is emptied, and what people do to it.
fn everything(world: &World) -> Vec<Happening> {
    let mut menu = deaths_of(&[OURS, SPARE, PARTNER], world);
    menu.extend(agents(world));
    menu.extend(world.ceph.pgs.keys().next().map(|pg| Happening::MgrForgets(*pg)));
    menu.extend(
        [Around::Paused, Around::Cancelled, Around::Cordoned].map(|what| Happening::Around(what, true)),
    );
    menu.extend([Happening::Unconfirmed, Happening::FlagSet, Happening::PersonEdits(OURS)]);
    menu.extend(marked_externally(world));
    menu
}

/// Returns another client's change of the mark of the OSD that is emptied.
fn marked_externally(world: &World) -> Vec<Happening> {
    vec![if is_in(OURS, world) { Happening::PersonOuts(OURS) } else { Happening::PersonIns(OURS) }]
}

/// Returns what may come while a runner is frozen.
fn behind(world: &World) -> Vec<Happening> {
    let mut menu = deaths_of(&[SPARE], world);
    menu.extend((!is_in(OURS, world)).then_some(Happening::PersonIns(OURS)));
    menu
}

/// Returns the death of the OSD while it is out, and then the request of its removal.
fn death_and_request(world: &World) -> Vec<Happening> {
    match world.ceph.slots.get(&OURS) {
        Some(slot) if slot.is_in => Vec::new(),
        Some(slot) if slot.up => deaths_of(&[OURS], world),
        Some(_) => vec![request(world)],
        None => Vec::new(),
    }
}

/// Returns that the agents of a destroyed OSD fail, and then the request of its removal.
fn failure_and_request(world: &World) -> Vec<Happening> {
    let is_destroyed = world.ceph.slots.get(&OURS).is_some_and(|slot| slot.state == SlotState::Destroyed);
    let node = world.disks["disk-0"].node.clone();
    match (is_destroyed, world.noise.agents_fail.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => vec![Happening::Noise(Disturbance::AgentsFail(node))],
        (true, false) => vec![request(world)],
    }
}

/// Returns that the daemon of a recreated OSD never comes up, and then the request of its removal.
fn never_up_and_request(world: &World) -> Vec<Happening> {
    let is_new = |slot: &Slot| slot.state == SlotState::New && !slot.up;
    let is_recreated = world.ceph.slots.get(&OURS).is_some_and(is_new);
    match (is_recreated, world.noise.init_fails.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => vec![Happening::Noise(Disturbance::InitFails(OURS))],
        (true, false) => vec![request(world)],
    }
}

/// Returns the policy of a run that removes OSDs, and gives up at once an OSD that is down.
///
/// So it quarantines a recreated OSD before its daemon is up, too.
fn at_once() -> Policy {
    let limits = Limits { start: TimeDelta::zero(), ..Limits::default() };
    Policy { limits, ..removes() }
}

/// Returns that the other OSDs become full before the data moves.
pub(super) fn full(world: &World) -> Vec<Happening> {
    let is_ahead = is_in(OURS, world) && !world.noise.no_space;
    is_ahead.then_some(Happening::Around(Around::Full, true)).into_iter().collect()
}

fn without_a_place() -> World {
    let mut world = example::two_replicas_with_a_spare_osd();
    world.noise.no_space = true;
    world
}

pub(super) fn searches() -> Vec<Search> {
    let spare = example::two_replicas_with_a_spare_osd;
    vec![
        Search { stays_shut: true, ..Search::new(NO_PLACE, without_a_place, nothing, (0, 0, 0)) },
        Search::new("emptied", spare, nothing, (0, 0, 0)),
        Search::new(EMPTIED, spare, everything, (1, 0, 0)),
        Search { freezes_late: true, ..Search::new(FROZEN, spare, behind, (1, 1, 0)) },
        Search { freezes_late: true, ..Search::new(FULL, spare, full, (1, 1, 0)) },
        Search { policy: at_once, has_sick: true, ..Search::new(DIES, spare, death_and_request, (3, 0, 0)) },
        Search { policy: removes, ..Search::new(DESTROYED, spare, failure_and_request, (3, 0, 0)) },
        Search {
            policy: at_once,
            has_sick: true,
            ..Search::new(NEVER_UP, spare, never_up_and_request, (3, 0, 0))
        },
        Search { policy: removes, ..Search::new(KEPT, spare, |world| vec![request(world)], (2, 0, 0)) },
    ]
}

fn search(name: &'static str) -> Search {
    searches().into_iter().find(|search| search.name == name).unwrap()
}

#[test]
fn osd_of_a_pool_with_two_replicas_is_emptied_and_migrated() {
    explored(&search("emptied"));
}

#[test]
fn osd_of_a_pool_with_one_spare_chunk_is_emptied_and_migrated() {
    let world = example::erasure_coded_with_a_spare_osd;
    explored(&Search::new("emptied, erasure coded", world, nothing, (0, 0, 0)));
}

#[test]
fn osd_is_emptied_by_order_although_its_pool_has_redundancy() {
    let world = || {
        let mut world = example::without_serial_numbers();
        world.placements.values_mut().for_each(|placement| placement.spare = vec![SPARE]);
        world
    };
    let policy = || Policy { empty: Empty::All, ..Policy::default() };
    explored(&Search { policy, ..Search::new("emptied by order", world, nothing, (0, 0, 0)) });
}

#[test]
fn osd_is_not_emptied_if_its_data_has_no_place() {
    explored(&search(NO_PLACE));
}

#[test]
fn osd_is_not_emptied_if_the_owner_forbids_it() {
    let policy = || Policy { empty: Empty::Never, ..Policy::default() };
    let world = example::two_replicas_with_a_spare_osd;
    let search = Search::new("never emptied", world, nothing, (0, 0, 0));
    explored(&Search { policy, stays_shut: true, ..search });
}

/// Checks that nothing that goes wrong while an OSD is emptied costs a replica, or leaves the OSD out.
#[test]
fn emptied_osd_keeps_its_data_whatever_goes_wrong() {
    explored(&search(EMPTIED));
}

#[test]
fn emptied_osd_keeps_its_data_although_a_runner_freezes() {
    explored(&search(FROZEN));
    explored(&search(FULL));
}

/// Checks that an OSD which dies while it is emptied is removed when a person asks for that, and is marked in
/// when it comes up otherwise.
#[test]
fn osd_that_dies_while_it_is_emptied_is_removed_on_request() {
    explored(&search(DIES));
}

#[test]
fn recreated_osd_that_never_comes_up_is_removed_on_request() {
    explored(&search(NEVER_UP));
}

#[test]
fn destroyed_osd_that_cannot_be_recreated_is_removed_on_request() {
    explored(&search(DESTROYED));
}

#[test]
fn osd_whose_removal_is_withdrawn_is_migrated() {
    explored(&search(KEPT));
}

#[test]
fn emptied_osd_needs_its_guards() {
    needs(|| search(NO_PLACE), &[Guard::CanBeEmptied]);
    needs(|| search("emptied"), &[Guard::EmptyingSavedFirst]);
    needs(|| search(EMPTIED), &[Guard::MarkedInAgain]);
    needs(|| search(KEPT), &[Guard::ReturnSeenFirst]);
    needs(|| search(FROZEN), &[Guard::RecheckEmptied]);
    needs(|| search(FULL), &[Guard::RecheckPlace]);
}
