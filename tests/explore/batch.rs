//! OSDs of a host that are migrated in parallel, after one of their kind was migrated alone.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use osd_migrate_core::domain::batch;
use osd_migrate_core::domain::classify;
use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::in_parallel::InParallel;
use osd_migrate_core::domain::ledger::{Ledger, Tried};
use osd_migrate_core::domain::observation::SlotState;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::domain::plan::Questions;
use osd_migrate_core::domain::policy::{Limits, Policy};
use osd_migrate_core::sim::{Around, Happening, Stage, Stumble, World, example};

use super::promises::batch::TRIED_BEFORE;
use super::search::Search;
use super::{deaths_of, explored, has_time, needs, nothing};

pub(super) const TWO: &str = "two in parallel";
pub(super) const ALONE: &str = "in parallel, the first one alone";
pub(super) const APART: &str = "in parallel, on several hosts";
pub(super) const SHARE: &str = "in parallel, too much of the data";
pub(super) const COMMON: &str = "in parallel, both have the PG";
const TURNS: &str = "two in parallel, acts fail";
const DEBUGGED: &str = "two in parallel, one has two Deployments";
pub(super) const FAILS: &str = "two in parallel, one does not start";

const FIRST: OsdId = OsdId(0);
const SECOND: OsdId = OsdId(1);
/// OSD of another host with a replica of the PG.
const PARTNER: OsdId = OsdId(2);

fn policy() -> Policy {
    let limits = Limits { soak: TimeDelta::zero(), ..Limits::default() };
    Policy { in_parallel: InParallel::Count(2), limits, ..Policy::default() }
}

/// Returns a policy for which two of the OSDs are too much of the data.
fn small_share() -> Policy {
    Policy { in_parallel: InParallel::Percent(1), ..policy() }
}

/// Returns a ledger of a run that has migrated one OSD of each kind already.
pub(super) fn tried(world: &World) -> Ledger {
    let seen = world.observe(|_| Questions::default());
    let kind_of = |(osd, class)| Some(batch::kind(&class, &classify::target_of(osd, &seen)?));
    let kinds = classify::classify(&seen).into_iter().filter_map(kind_of);
    let kinds = kinds.map(|kind| (kind, TRIED_BEFORE)).collect();
    let mut ledger = Ledger::default();
    // The OSDs that were finished before are not in the world.
    ledger.run.tried = Some(Tried { job: String::new(), kinds, osds: BTreeMap::new() });
    ledger
}

/// Returns what goes wrong while two OSDs are migrated in parallel.
fn faults(world: &World) -> Vec<Happening> {
    let deaths = deaths_of(&[FIRST, SECOND, PARTNER], world);
    deaths.into_iter().chain(faults_of_agents(world)).collect()
}

fn partner_dies(world: &World) -> Vec<Happening> {
    deaths_of(&[PARTNER], world)
}

fn faults_of_agents(world: &World) -> Vec<Happening> {
    let mut menu = Vec::new();
    for (job, agent) in &world.agents {
        menu.push(Happening::AgentDies(job.clone()));
        if matches!(agent.stage, Stage::Buried { .. } | Stage::Registered { .. }) {
            menu.push(Happening::AgentStumbles(job.clone(), Stumble::Fails));
        }
    }
    menu
}

fn first_has_the_pg() -> World {
    example::two_of_a_kind(FIRST)
}

fn second_has_the_pg() -> World {
    example::two_of_a_kind(SECOND)
}

/// Returns a cluster in which the new daemon of the OSD with the PG never starts.
fn first_does_not_start() -> World {
    let mut world = first_has_the_pg();
    world.noise.init_fails.insert(FIRST);
    world
}

/// Lets the time to start pass while the first OSD is recreated, and the second one still serves.
fn time_passes(world: &World) -> Vec<Happening> {
    let slot = |osd| world.ceph.slots.get(&osd);
    let is_recreated = slot(FIRST).is_some_and(|slot| !slot.up && slot.fsid != Some(example::fsid(FIRST, 0)));
    let serves = slot(SECOND).is_some_and(|slot| slot.up && slot.fsid == Some(example::fsid(SECOND, 0)));
    if is_recreated && serves { vec![Happening::Minutes(20)] } else { Vec::new() }
}

/// Creates a second Deployment of the first OSD between its stop and its destroy, while the other one still
/// serves.
fn is_debugged(world: &World) -> Vec<Happening> {
    let is_stopped = |osd| world.kube.daemons.get(&osd).is_some_and(|daemon| daemon.stopped_by.is_some());
    let is_old = world.ceph.slots.get(&FIRST).is_some_and(|slot| slot.state == SlotState::Exists);
    let is_so = is_stopped(FIRST) && is_old && !is_stopped(SECOND);
    is_so.then_some(Happening::Around(Around::AmbiguousObjects, true)).into_iter().collect()
}

pub(super) fn searches() -> Vec<Search> {
    let new = |name, world| Search { policy, ..Search::new(name, world, nothing, (0, 0, 0)) };
    let late = Search::new(FAILS, first_does_not_start, time_passes, (1, 0, 0));
    vec![
        new(ALONE, first_has_the_pg),
        new(APART, example::three_apart),
        Search { ledger: tried, ..new(TWO, first_has_the_pg) },
        Search { ledger: tried, policy: small_share, ..new(SHARE, first_has_the_pg) },
        Search { ledger: tried, ..new(COMMON, example::two_share_a_pg) },
        Search { policy, ledger: tried, has_sick: true, ..late },
    ]
}

fn search(name: &'static str) -> Search {
    searches().into_iter().find(|search| search.name == name).unwrap()
}

#[test]
fn first_osd_of_a_kind_is_migrated_alone() {
    explored(&search(ALONE));
}

#[test]
fn osds_of_a_host_are_migrated_in_parallel() {
    explored(&search(TWO));
}

#[test]
fn osds_in_parallel_have_their_turns_after_failed_acts() {
    explored(&Search { acts_fail: true, name: TURNS, ..search(TWO) });
}

#[test]
fn stopped_osd_with_two_deployments_is_not_touched() {
    let new = Search::new(DEBUGGED, first_has_the_pg, is_debugged, (1, 0, 0));
    explored(&Search { policy, ledger: tried, ..new });
}

#[test]
fn osds_of_several_hosts_are_migrated_one_after_the_other() {
    explored(&search(APART));
}

#[test]
fn osds_with_too_much_data_are_migrated_one_after_the_other() {
    explored(&search(SHARE));
}

#[test]
fn osds_that_share_a_pg_are_migrated_one_after_the_other() {
    explored(&search(COMMON));
}

#[test]
fn osd_that_does_not_start_holds_up_no_other_of_its_batch() {
    explored(&search(FAILS));
}

/// Checks seeded walks with several faults and a frozen runner: all their states are too many.
#[test]
fn osds_in_parallel_survive_walks_with_faults_and_a_freeze() {
    let walks = if has_time() { 30_000 } else { 300 };
    for world in [first_has_the_pg, second_has_the_pg] {
        let new = Search::new("two in parallel, walks", world, faults, (3, 1, 2));
        let search = Search { policy, ledger: tried, freezes_late: true, ..new };
        for seed in 0..walks {
            let (_, violation) = search.walk(seed, 250);
            assert_eq!(violation, None, "{}", violation.as_deref().unwrap_or_default());
        }
    }
}

#[test]
fn osds_in_parallel_survive_a_fault_if_there_is_time() {
    if has_time() {
        // With all faults at once, there are more than three million states.
        for menu in [partner_dies, faults_of_agents] {
            let new = Search::new("two in parallel, a fault", second_has_the_pg, menu, (1, 0, 0));
            explored(&Search { policy, ledger: tried, ..new });
        }
    }
}

#[test]
fn osds_in_parallel_need_their_guards() {
    needs(|| search(ALONE), &[Guard::CanaryFirst]);
    needs(|| search(APART), &[Guard::BatchOneHost]);
    needs(|| search(SHARE), &[Guard::BatchShare]);
    needs(|| search(COMMON), &[Guard::BatchNoCommonPg]);
    needs(|| search(FAILS), &[Guard::BatchEndsWithQuarantine]);
}
