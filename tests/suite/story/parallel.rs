//! OSDs of a host are migrated in parallel: less time, one replica missing at most, and the same end after a
//! crash at any point.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::classify::Class;
use osd_migrate::domain::in_parallel::InParallel;
use osd_migrate::domain::observation::Ambiguity;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::policy::{Limits, Policy};
use osd_migrate::sim::example::{Kind, PoolShape, Shape};
use osd_migrate::sim::ports::{Call, Side, Watch};
use osd_migrate::sim::{Happening, World};

use super::crash::Crashes;
use super::freeze;
use super::play::{Play, assert_no_leftovers, closed, ends, old};

/// Returns four OSDs to migrate on one host, and as many on two other hosts with the other replicas.
fn world() -> World {
    let pool = PoolShape { pgs: 12, size: 3, min_size: 2, data_chunks: None, gib: 64 };
    let hosts = vec![vec![Kind::ByHand; 4], vec![Kind::Raw; 4], vec![Kind::Raw; 4]];
    Shape { hosts, pools: vec![pool], disk_gib: 400 }.world()
}

/// Returns three OSDs to migrate on one host, each with a PG.
fn small_world() -> World {
    let pool = PoolShape { pgs: 3, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand; 3], vec![Kind::Raw], vec![Kind::Raw]];
    Shape { hosts, pools: vec![pool], disk_gib: 6 }.world()
}

fn policy(count: u32, soak: TimeDelta) -> Policy {
    Policy {
        in_parallel: InParallel::Count(count),
        limits: Limits { soak, ..Limits::default() },
        ..Policy::default()
    }
}

pub(super) fn in_parallel() -> Play {
    Play::with_policy(small_world(), policy(2, TimeDelta::zero()), 1)
}

fn assert_all_are_migrated(play: &Play) {
    let sim = play.sim.borrow();
    let ends = ends(&sim);
    for (osd, end) in &ends {
        let host = &end.crush.as_ref().unwrap().location["host"];
        assert_eq!((end.is_new, &end.class), (host == "h1", &Class::Conforming), "{osd}");
        assert_eq!(end.flags, (true, true, false, false), "{osd}: up, in, no flag left");
    }
    let migrated = ends.values().filter(|end| end.is_new).count();
    assert_eq!(closed(&sim).len(), migrated, "all are in the history");
    assert_no_leftovers(&sim);
}

/// Times of saves, each with the number of OSDs in progress.
type Saves = Rc<RefCell<Vec<(DateTime<Utc>, usize)>>>;

fn notes(saves: &Saves) -> Option<Watch> {
    let saves = Rc::clone(saves);
    Some(Box::new(move |call, side, world| {
        if let (Call::Save(ledger), Side::Done) = (call, side) {
            saves.borrow_mut().push((world.at, ledger.in_flight().count()));
        }
        false
    }))
}

/// Runs to the end, and returns the saves.
fn run(play: &Play) -> Vec<(DateTime<Utc>, usize)> {
    play.sim.borrow_mut().schedule.rate = 100 << 20; // so that the backfills take most of the time
    let saves = Saves::default();
    assert_eq!(play.run_watched(notes(&saves)), Play::finished());
    assert_all_are_migrated(play);
    saves.take()
}

fn most(saves: &[(DateTime<Utc>, usize)]) -> usize {
    saves.iter().map(|(_, open)| *open).max().unwrap()
}

fn first_closed(saves: &[(DateTime<Utc>, usize)]) -> DateTime<Utc> {
    saves.iter().find(|(_, open)| *open == 0).unwrap().0
}

#[test]
fn osds_of_a_host_in_parallel_take_the_time_of_one() {
    let play = Play::with_policy(world(), policy(3, TimeDelta::zero()), 1);
    let begun = play.sim.borrow().world.at;
    let saves = run(&play);
    assert_eq!(most(&saves), 3);
    let alone = first_closed(&saves) - begun;
    let all = play.sim.borrow().world.at - begun;
    // The first one alone, then three together, each of which takes a quarter of a minute to join. In which
    // order their PGs get data depends on when they join: a twentieth for that.
    assert!(all < alone * 2 + alone / 20 + TimeDelta::minutes(1), "{alone} {all}");
}

#[test]
fn osds_in_parallel_have_no_more_of_the_data_than_the_run_allows() {
    // Three of the four OSDs of the host have a ninth of the data each. The first one is migrated alone.
    for (percent, expected) in [(11, 1), (12, 2), (23, 3)] {
        let in_parallel = InParallel::Percent(percent);
        let saves =
            run(&Play::with_policy(world(), Policy { in_parallel, ..policy(1, TimeDelta::zero()) }, 1));
        assert_eq!(most(&saves), expected, "{percent} %");
    }
}

#[test]
fn next_osd_of_the_host_waits_until_the_first_has_soaked() {
    let soak = TimeDelta::minutes(60);
    let saves = run(&Play::with_policy(world(), policy(3, soak), 1));
    let first_closed = first_closed(&saves);
    let second_joined = saves.iter().find(|(_, open)| *open > 1).unwrap().0;
    assert!(second_joined - first_closed >= soak, "{first_closed} {second_joined}");
}

#[test]
fn osd_that_shares_a_pg_is_not_migrated_in_parallel() {
    let mut world = world();
    // The first two OSDs of the host have the PG, as in a pool whose replicas may be on one host.
    let pgs: Vec<_> = world.placements.keys().copied().collect();
    for pg in pgs {
        let placement = world.placements.get_mut(&pg).unwrap();
        let mine = placement.home.iter().copied().find(|osd| osd.0 < 4).unwrap();
        let next = OsdId((mine.0 + 1) % 4);
        let partner = placement.home.iter().copied().find(|osd| osd.0 >= 4).unwrap();
        placement.home = vec![mine, next, partner];
        placement.complete =
            placement.home.iter().map(|osd| osd_migrate::sim::example::fsid(*osd, 0)).collect();
        world.happen(&Happening::PgReports(pg));
    }
    let saves = run(&Play::with_policy(world, policy(3, TimeDelta::zero()), 1));
    // osd.1 and osd.3 share no PG, as osd.0 and osd.2.
    assert_eq!(most(&saves), 2);
}

#[test]
fn osds_in_parallel_end_the_same_after_a_crash_at_any_point() {
    Crashes { play: in_parallel, check: assert_all_are_migrated, ..Crashes::PLAIN }.run("in parallel", true);
}

#[test]
fn frozen_runner_touches_none_of_the_osds_in_parallel() {
    for (side, name) in [(freeze::BEFORE, "in parallel, before"), (freeze::LATE, "in parallel, late")] {
        freeze::at_each_point(in_parallel, assert_all_are_migrated, side, name);
    }
}

/// Lets something go wrong with the second OSD that is destroyed, until the other one is migrated.
fn other_is_migrated_beside(trouble: fn(&mut World, OsdId, bool)) {
    let play = in_parallel();
    let begun = play.sim.borrow().world.at;
    let (mut sick, mut is_over) = (None, false);
    let watch: Watch = Box::new(move |call, side, world| {
        match (call, side, sick) {
            (Call::Act(Act::Ceph(CephAct::Destroy { osd, .. })), Side::Done, None) if *osd != OsdId(0) => {
                sick = Some(*osd);
                trouble(world, *osd, true);
            }
            (Call::Save(_), Side::Done, Some(osd)) if !is_over => {
                is_over = other_is_migrated(osd, world);
                if is_over {
                    trouble(world, osd, false);
                }
            }
            (Call::Act(act), Side::Before, Some(osd))
                if act.osd() == Some(osd) && act.needs_only_deployment() =>
            {
                assert!(world.kube.ambiguities.is_empty(), "{act:?}");
            }
            _ => {}
        }
        world.at - begun > TimeDelta::days(1)
    });
    assert_eq!(play.run_watched(Some(watch)), Play::finished());
    assert_all_are_migrated(&play);
}

#[test]
fn osd_whose_stop_fails_holds_up_no_other_one() {
    let play = in_parallel();
    let begun = play.sim.borrow().world.at;
    let (mut sick, mut tries) = (None, 0);
    let watch: Watch = Box::new(move |call, side, world| {
        if let (Call::Act(Act::Kube(KubeAct::Stop { osd, .. })), Side::Before) = (call, side)
            && *osd != OsdId(0)
            && *sick.get_or_insert(*osd) == *osd
            && !other_is_migrated(*osd, world)
        {
            // Another client has just written it.
            tries += 1;
            world.kube.daemons.get_mut(osd).unwrap().generation += 1;
        }
        assert!(tries < 1000, "{sick:?}");
        world.at - begun > TimeDelta::days(1)
    });
    assert_eq!(play.run_watched(Some(watch)), Play::finished());
    assert_all_are_migrated(&play);
}

/// Returns whether the other OSD of these two is migrated.
fn other_is_migrated(osd: OsdId, world: &World) -> bool {
    let slot = &world.ceph.slots[&OsdId(3 - osd.0)];
    slot.up && slot.fsid != Some(old(OsdId(3 - osd.0)))
}

#[test]
fn osd_whose_deployment_is_refused_holds_up_no_other_one() {
    other_is_migrated_beside(|world, osd, is_begun| {
        world.noise.refused.extend(is_begun.then_some(osd));
        world.noise.refused.retain(|_| is_begun);
    });
}

#[test]
fn destroyed_osd_with_two_deployments_waits_alone() {
    other_is_migrated_beside(|world, osd, is_begun| {
        let what = format!("{osd} has two Deployments: a and b");
        world.kube.ambiguities =
            is_begun.then(|| Ambiguity::of_two_deployments(osd, true, what)).into_iter().collect();
    });
}
