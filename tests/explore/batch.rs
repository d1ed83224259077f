//! OSDs of a host that are migrated in parallel, after one of their kind was migrated alone.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

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

use super::search::Search;
use super::{deaths_of, explored, has_time, needs, nothing};

pub(super) const TWO: &str = "two in parallel";
pub(super) const ALONE: &str = "in parallel, the first one alone";
pub(super) const APART: &str = "in parallel, on several hosts";
pub(super) const SHARE: &str = "in parallel, too much of the data";
pub(super) const COMMON: &str = "in parallel, both have the PG";
pub(super) const KINDS: &str = "in parallel, of two kinds";
pub(super) const SOAKS: &str = "in parallel, the first one soaks";
const TURNS: &str = "two in parallel, acts fail";
const DEBUGGED: &str = "two in parallel, one has two Deployments";
pub(super) const FAILS: &str = "two in parallel, one does not start";

pub(super) const FIRST: OsdId = OsdId(0);
pub(super) const SECOND: OsdId = OsdId(1);
/// OSD of another host with a replica of the PG.
const PARTNER: OsdId = OsdId(2);

pub(super) fn policy() -> Policy {
    let limits = Limits { soak: TimeDelta::zero(), ..Limits::default() };
    Policy { in_parallel: InParallel::Count(2), limits, ..Policy::default() }
}

/// Returns a policy for which two of the OSDs are too much of the data.
fn small_share() -> Policy {
    Policy { in_parallel: InParallel::Percent(1), ..policy() }
}

/// Returns a policy by which the first OSD of a kind serves for ten minutes before others are in parallel.
fn soaks() -> Policy {
    Policy { limits: Limits::default(), ..policy() }
}

/// Returns a ledger of a run that has migrated one OSD of each kind already.
pub(super) fn tried(world: &World) -> Ledger {
    tried_with(world, |_| true, DateTime::UNIX_EPOCH)
}

/// Returns a ledger of a run that has migrated one OSD of the kind of each of these OSDs, at this time.
fn tried_with(world: &World, is_meant: impl Fn(OsdId) -> bool, at: DateTime<Utc>) -> Ledger {
    let seen = world.observe(|_| Questions::default());
    let kind_of = |(osd, class)| Some(batch::kind(&class, &classify::target_of(osd, &seen)?));
    let meant = classify::classify(&seen).into_iter().filter(|(osd, _)| is_meant(*osd));
    let kinds = meant.filter_map(kind_of).map(|kind| (kind, at)).collect();
    let mut ledger = Ledger::default();
    // The OSDs that were finished before are not in the world.
    ledger.run.tried = Some(Tried { job: String::new(), kinds, osds: BTreeMap::new() });
    ledger
}

fn tried_of_first(world: &World) -> Ledger {
    tried_with(world, |osd| osd == FIRST, DateTime::UNIX_EPOCH)
}

fn tried_of_second(world: &World) -> Ledger {
    tried_with(world, |osd| osd == SECOND, DateTime::UNIX_EPOCH)
}

fn tried_just_now(world: &World) -> Ledger {
    tried_with(world, |_| true, world.at)
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

/// Lets the kind soak, or almost, while the first OSD gets its data back.
fn kind_soaks(world: &World) -> Vec<Happening> {
    let is_filling = world.to_fill().iter().any(|(_, osd)| *osd == FIRST);
    if is_filling { vec![Happening::Minutes(9), Happening::Minutes(10)] } else { Vec::new() }
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
    let soaking = Search::new(SOAKS, first_has_the_pg, kind_soaks, (1, 0, 0));
    vec![
        new(ALONE, first_has_the_pg),
        new(APART, example::three_apart),
        Search { ledger: tried, ..new(TWO, first_has_the_pg) },
        Search { ledger: tried, policy: small_share, ..new(SHARE, first_has_the_pg) },
        Search { ledger: tried, ..new(COMMON, example::two_share_a_pg) },
        Search { ledger: tried_of_first, policy: soaks, ..new(KINDS, example::two_on_a_host) },
        Search { ledger: tried_just_now, policy: soaks, ..soaking },
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
fn osd_of_an_untried_kind_is_migrated_alone() {
    let of_second = || Search { ledger: tried_of_second, ..search(KINDS) };
    explored(&search(KINDS));
    explored(&of_second());
    needs(of_second, &[Guard::CanaryFirst]);
}

#[test]
fn kind_that_has_not_soaked_is_migrated_alone() {
    explored(&search(SOAKS));
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
    needs(|| search(KINDS), &[Guard::CanaryFirst]);
    needs(|| search(SOAKS), &[Guard::CanarySoaks]);
    needs(|| search(FAILS), &[Guard::BatchEndsWithQuarantine]);
}
