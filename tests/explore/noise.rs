//! One part is sick and stays sick: the rest is migrated, and no OSD stays down without a way back
//! (`promises::progress`).

use osd_migrate_core::domain::observation::SlotState;
use osd_migrate_core::domain::osd::{NodeName, OsdId, PgId};
use osd_migrate_core::domain::plan::Questions;
use osd_migrate_core::domain::policy::{Policy, RequireClean};
use osd_migrate_core::sim::{Disturbance, Happening, UnusualPg, World, example};

use super::search::{Menu, Search};
use super::{OURS, deaths_of, explored, has_time, nothing, operator, spontaneous};

const DIES_ELSEWHERE: &str = "an OSD of other PGs dies before the wipe";
const PLACED: &str = "CRUSH places a PG on a stopped OSD";
const HEALED: &str = "a quarantined OSD is marked out";

fn noise(what: Disturbance) -> Vec<Happening> {
    vec![Happening::Noise(what)]
}

fn first_node() -> NodeName {
    NodeName("h1".to_owned())
}

fn pool_at_its_quota(_: &World) -> Vec<Happening> {
    noise(Disturbance::Raised("POOL_FULL"))
}

fn mon_dies(_: &World) -> Vec<Happening> {
    noise(Disturbance::Raised("MON_DOWN"))
}

fn node_is_lost(world: &World) -> Vec<Happening> {
    let is_there = world.kube.nodes[&first_node()].ready;
    if is_there { noise(Disturbance::NodeLost(first_node())) } else { Vec::new() }
}

fn node_is_cordoned(world: &World) -> Vec<Happening> {
    let is_cordoned = world.noise.cordoned.contains(&first_node());
    if is_cordoned { Vec::new() } else { noise(Disturbance::Cordons(first_node())) }
}

fn init_container_fails(world: &World) -> Vec<Happening> {
    let is_well = !world.noise.init_fails.contains(&OURS);
    if is_well { noise(Disturbance::InitFails(OURS)) } else { Vec::new() }
}

/// Returns an admission policy that appears while the OSD serves.
///
/// A rejection after the stop would be noticed too late.
fn policy_comes(world: &World) -> Vec<Happening> {
    let serves = world.kube.daemons.get(&OURS).is_some_and(|daemon| daemon.stopped_by.is_none());
    let is_old = world.ceph.slots[&OURS].fsid == example::two_in_line().ceph.slots[&OURS].fsid;
    let is_well = world.noise.refused.is_empty();
    if serves && is_old && is_well { noise(Disturbance::Refuses(OURS)) } else { Vec::new() }
}

fn agents_fail(world: &World) -> Vec<Happening> {
    let is_well = world.noise.agents_fail.is_empty();
    if is_well { noise(Disturbance::AgentsFail(first_node())) } else { Vec::new() }
}

fn mgr_fails_over(world: &World) -> Vec<Happening> {
    if world.noise.mgr_away { Vec::new() } else { noise(Disturbance::MgrAway) }
}

fn pg_turns_unusual(world: &World) -> Vec<Happening> {
    let unusual = [UnusualPg::Repair, UnusualPg::Premerge, UnusualPg::Recovering];
    let pg = world.placements.keys().find(|pg| !world.noise.unusual.contains_key(*pg));
    let turns = |pg: PgId| unusual.map(|unusual| Happening::Noise(Disturbance::PgChanges(pg, unusual)));
    pg.copied().map(|pg| turns(pg).into()).unwrap_or_default()
}

/// Returns a cluster whose first OSD does not start again once it is recreated, with another OSD for its PG.
fn first_does_not_start_again() -> World {
    let mut world = example::two_in_line();
    world.noise.init_fails.insert(OURS);
    for placement in world.placements.values_mut() {
        placement.spare = vec![OsdId(3)];
    }
    world
}

/// Returns what the mons do with that OSD when its `noout` is lifted, and a person at any time: Ceph heals
/// without it.
fn marked_out(world: &World) -> Vec<Happening> {
    let slot = world.ceph.slots.get(&OURS);
    let is_new = slot.is_some_and(|slot| slot.fsid.is_some_and(|fsid| fsid != example::fsid(OURS, 0)));
    let is_due = slot.is_some_and(|slot| !slot.up && slot.is_in);
    if is_new && is_due { vec![Happening::PersonOuts(OURS)] } else { Vec::new() }
}

/// Returns a cluster in which an OSD that shares no PG with the first one does not boot again.
fn second_does_not_boot_again() -> World {
    let mut world = example::two_on_a_host();
    world.noise.init_fails.insert(OsdId(1));
    world
}

/// Returns the death of that OSD while the first one is destroyed.
fn second_dies(world: &World) -> Vec<Happening> {
    let is_destroyed = world.ceph.slots.get(&OURS).is_some_and(|slot| slot.state == SlotState::Destroyed);
    if is_destroyed { deaths_of(&[OsdId(1)], world) } else { Vec::new() }
}

/// Returns an error that a scrub finds on a new OSD, while the OSD gets its data or after that.
fn scrub_finds_an_error(world: &World) -> Vec<Happening> {
    let slot = world.ceph.slots.get(&OURS);
    let is_new = slot.is_some_and(|slot| slot.up && slot.fsid != Some(example::fsid(OURS, 0)));
    let pg = world.placements.keys().find(|pg| world.up_set(pg).contains(&OURS));
    let error = |pg: &PgId| Happening::Noise(Disturbance::PgChanges(*pg, UnusualPg::Inconsistent));
    pg.filter(|_| is_new && world.noise.unusual.is_empty()).map(error).into_iter().collect()
}

/// Returns a split of the pool's PGs, and a new pool: each once, after the stop.
fn pool_is_split_or_created(world: &World) -> Vec<Happening> {
    let is_stopped = world.kube.daemons.get(&OURS).is_none_or(|daemon| daemon.replicas == 0);
    let is_first = world.ceph.pools.len() == 1 && world.ceph.pools[&1].pg_num == 1;
    if !is_stopped || !is_first {
        return Vec::new();
    }
    [Disturbance::PoolSplits(1), Disturbance::PoolCreated].map(Happening::Noise).into()
}

/// Returns the changes of one PG to an unusual state, and of each PG to one that is remapped for months.
fn pg_is_remapped_or_unusual(world: &World) -> Vec<Happening> {
    let pgs = world.placements.keys().filter(|pg| !world.noise.unusual.contains_key(*pg));
    let remapped = |pg: &PgId| Happening::Noise(Disturbance::PgChanges(*pg, UnusualPg::Remapped));
    pgs.map(remapped).chain(pg_turns_unusual(world)).collect()
}

/// Returns a policy that requires only the OSD's own PGs to be clean.
fn only_its_own_pgs() -> Policy {
    Policy { require_clean: RequireClean::Own, ..Policy::default() }
}

fn own_pgs(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    Search { policy: only_its_own_pgs, ..Search::new(name, with_a_second_pool, menu, left) }
}

fn with_a_second_pool() -> World {
    example::two_on_a_host()
}

fn alone(name: &'static str, world: fn() -> World) -> Search {
    Search { has_sick: true, ..Search::new(name, world, nothing, (0, 0, 0)) }
}

/// Returns a change of `pgp_num`, once after the stop: CRUSH places a PG on the stopped OSD that it never
/// served.
fn pg_is_placed_on_the_stopped(world: &World) -> Vec<Happening> {
    let is_stopped = world.kube.daemons.get(&OURS).is_none_or(|daemon| daemon.replicas == 0);
    let elsewhere = world.placements.iter().find(|(_, placement)| !placement.home.contains(&OURS));
    let placed = |(pg, _): (&PgId, _)| Happening::Noise(Disturbance::PgPlaced(*pg));
    elsewhere.filter(|_| is_stopped).map(placed).into_iter().collect()
}

/// Returns the searches for mutants of progress.
pub(super) fn searches() -> Vec<Search> {
    let one = |name, world, menu| Search::new(name, world, menu, (1, 0, 0));
    vec![
        alone("an OSD died long ago", example::a_dead_osd),
        alone("a node is gone", example::a_node_that_is_gone),
        alone("a node is cordoned", example::a_cordoned_node),
        alone("an OSD may not stop", example::an_osd_that_may_not_stop),
        alone("a Deployment is refused", example::a_refused_deployment),
        one("a policy comes", example::two_in_line, policy_comes),
        alone("two without a device", example::two_without_a_device),
        one("a pool at its quota", example::two_in_line, pool_at_its_quota),
        one("a node is cordoned at any time", example::two_in_line, node_is_cordoned),
        one("a node is lost", example::two_in_line, node_is_lost),
        one("an init container fails", example::two_in_line, init_container_fails),
        one("agents fail", example::two_in_line, agents_fail),
        one("the mgr fails over", example::two_in_line, mgr_fails_over),
        one("a PG turns unusual", with_a_second_pool, pg_turns_unusual),
        Search { has_sick: true, ..one(DIES_ELSEWHERE, second_does_not_boot_again, second_dies) },
        Search { has_sick: true, ..one(HEALED, first_does_not_start_again, marked_out) },
        one("a scrub finds an error", example::replicated, scrub_finds_an_error),
        one(PLACED, with_a_second_pool, pg_is_placed_on_the_stopped),
        one("a pool is split", example::replicated, pool_is_split_or_created),
        operator::alongside("a mon dies alongside an old Rook", mon_dies, (1, 0, 0)),
    ]
}

fn search(name: &str) -> Search {
    searches().into_iter().find(|search| search.name == name).unwrap()
}

#[test]
fn dead_osd_holds_up_no_other() {
    explored(&search("an OSD died long ago"));
    explored(&search("a node is gone"));
}

#[test]
fn cordoned_node_holds_up_no_other() {
    explored(&search("a node is cordoned"));
}

#[test]
fn node_cordoned_at_any_time_holds_up_no_other() {
    explored(&search("a node is cordoned at any time"));
}

#[test]
fn osd_that_may_not_stop_holds_up_no_other() {
    explored(&search("an OSD may not stop"));
}

#[test]
fn osd_whose_deployment_is_refused_is_not_stopped() {
    explored(&search("a Deployment is refused"));
    explored(&search("a policy comes"));
}

#[test]
fn osds_that_fail_before_stop_hold_up_no_other() {
    explored(&search("two without a device"));
}

#[test]
fn pool_at_its_quota_holds_up_nothing() {
    explored(&search("a pool at its quota"));
}

#[test]
fn lost_node_leaves_no_osd_down_with_noout() {
    explored(&search("a node is lost"));
}

#[test]
fn failing_init_container_leaves_no_osd_down_with_noout() {
    explored(&search("an init container fails"));
}

#[test]
fn failing_agents_are_retried_over_minutes() {
    explored(&search("agents fail"));
}

#[test]
fn mgr_failover_is_waited_for() {
    explored(&search("the mgr fails over"));
}

#[test]
fn pg_that_is_merged_or_repaired_reverts_no_stop() {
    explored(&search("a PG turns unusual"));
}

#[test]
fn osd_that_dies_elsewhere_before_the_wipe_is_waited_for() {
    explored(&search(DIES_ELSEWHERE));
}

#[test]
fn quarantined_osd_whose_data_healed_holds_up_no_other() {
    explored(&search(HEALED));
}

#[test]
fn error_that_a_scrub_finds_leaves_no_osd_in_progress() {
    explored(&search("a scrub finds an error"));
}

#[test]
fn pool_that_is_split_or_created_after_a_stop_blocks_no_wipe() {
    explored(&search("a pool is split"));
}

#[test]
fn pg_that_crush_places_on_a_stopped_osd_blocks_no_wipe() {
    explored(&search(PLACED));
}

#[test]
fn own_clean_pgs_suffice_with_require_clean_own() {
    explored(&own_pgs("own PGs clean, a PG turns unusual", pg_is_remapped_or_unusual, (1, 0, 0)));
    explored(&own_pgs("own PGs clean, a fault", spontaneous, (1, 0, 0)));
    explored(&own_pgs("own PGs clean, a freeze", nothing, (0, 1, 0)));
}

#[test]
fn rooks_operator_is_restored_after_a_mon_dies() {
    explored(&search("a mon dies alongside an old Rook"));
}

#[test]
fn noise_wider_if_there_is_time() {
    if has_time() {
        for pace in [30, 120] {
            for search in searches() {
                explored(&Search { pace, ..search });
            }
        }
        for (name, world) in [
            ("an OSD died long ago, a fault", example::a_dead_osd as fn() -> World),
            ("a node is cordoned, a fault", example::a_cordoned_node),
        ] {
            explored(&Search::new(name, world, spontaneous, (1, 0, 0)));
        }
    }
}

#[test]
fn noise_worlds_have_two_osds_to_migrate_and_clean_pgs() {
    for world in [example::a_dead_osd(), example::a_node_that_is_gone(), example::a_cordoned_node()] {
        let seen = world.observe(|_| Questions::default());
        let class = |osd| super::promises::class(&world, OsdId(osd));
        assert!(class(0).migrates().is_some() && class(1).migrates().is_some());
        assert!(seen.ceph.pgs.values().all(|pg| pg.state.contains("clean") && pg.up.len() == 3));
    }
}
