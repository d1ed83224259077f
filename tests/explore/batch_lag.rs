//! A view lags while two OSDs of a host are migrated in parallel: the second one joins while the first one
//! gets its data back.
//!
//! Each of them has a PG. The searches begin right before the second one is recorded: from the start of both,
//! there are too many states.

use osd_migrate_core::domain::guard::{Guard, without};
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::observation::{Daemon, Slot};
use osd_migrate_core::domain::osd::NodeName;
use osd_migrate_core::sim::{Around, Disturbance, Happening, World, example};

use super::batch::{FIRST, SECOND, policy, tried};
use super::lag::Lags;
use super::search::{Menu, Search};
use super::state::State;
use super::{explored, needs};

/// Steps after which the second OSD must have joined.
const BOUND: usize = 300;

/// Plays a run until it is about to record the second OSD, while the first one gets its data back.
///
/// A guard that a search takes out is in place here: all its searches begin in the same state.
fn until_second_joins(mut state: State) -> State {
    without(None, || {
        for _ in 0..BOUND {
            let next = state.decide(&policy());
            let joins = matches!(&next, Next::Save { ledger, .. } if ledger.records.contains_key(&SECOND));
            if joins && gets_its_data_back(&state.world) {
                return;
            }
            if joins || matches!(next, Next::Wait(_)) {
                let what = state.world.progress().into_iter().next().unwrap();
                state.world.happen(&what);
            } else {
                state.perform(&next, state.version);
            }
        }
        panic!("the second OSD does not join");
    });
    state
}

fn gets_its_data_back(world: &World) -> bool {
    world.to_fill().iter().any(|(_, osd)| *osd == FIRST)
}

fn lagging(name: &'static str, lags: Lags, menu: Menu) -> Search {
    let new = Search::new(name, example::two_on_a_host, menu, (1, 0, 0));
    Search { lags, policy, ledger: tried, earlier: until_second_joins, ..new }
}

/// Lets Rook prepare OSDs on a node that is not known: no OSD may be stopped or destroyed meanwhile.
fn rook_prepares(_: &World) -> Vec<Happening> {
    vec![Happening::Around(Around::RookPreparesSomewhere, true)]
}

/// Loses the node of an OSD that has a replica of each PG, shortly before the second OSD is stopped, or until
/// it is destroyed.
fn partner_is_lost(world: &World) -> Vec<Happening> {
    let node = NodeName("h2".to_owned());
    let is_there = world.kube.nodes.get(&node).is_some_and(|node| node.ready);
    let is_old = |slot: &Slot| slot.noout && slot.fsid == Some(example::fsid(SECOND, 0));
    let is_meant = gets_its_data_back(world) && world.ceph.slots.get(&SECOND).is_some_and(is_old);
    (is_there && is_meant).then_some(Happening::Noise(Disturbance::NodeLost(node))).into_iter().collect()
}

/// Lets a person stop the second OSD, or start it again.
fn second_is_scaled(world: &World) -> Vec<Happening> {
    let scaled = |daemon: &Daemon| {
        if daemon.replicas == 0 { Happening::PersonStarts(SECOND) } else { Happening::PersonStops(SECOND) }
    };
    let daemon = world.kube.daemons.get(&SECOND).filter(|_| gets_its_data_back(world));
    daemon.map(scaled).into_iter().collect()
}

fn parts() -> Search {
    lagging("two in parallel, a view lags", Lags::Parts, rook_prepares)
}

#[test]
fn view_of_two_osds_that_lags_leads_to_nothing_but_waiting() {
    explored(&parts());
    needs(parts, &[Guard::OnlyWaitsByParts, Guard::PartsExpire]);
}

fn map() -> Search {
    lagging("two in parallel, the osdmap moves", Lags::Map, partner_is_lost)
}

#[test]
fn osdmap_that_moves_does_no_harm_to_two_osds() {
    explored(&map());
    needs(map, &[Guard::AllClean, Guard::RecheckAllClean, Guard::RecheckOnlyOursMissing]);
}

fn list() -> Search {
    lagging("two in parallel, the list is old", Lags::List, second_is_scaled)
}

#[test]
fn list_that_is_old_does_no_harm_to_two_osds() {
    explored(&list());
    needs(list, &[Guard::AtRest, Guard::StoppedByUs, Guard::StaysStopped]);
}

fn others() -> Search {
    lagging("two in parallel, other OSDs stay old", Lags::Others, second_is_scaled)
}

#[test]
fn list_of_other_osds_that_stays_old_does_no_harm_to_two() {
    explored(&others());
    needs(others, &[Guard::InProgressIsRead, Guard::StoppedByUs, Guard::StaysStopped]);
}
