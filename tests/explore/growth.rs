//! Decisions at several sizes of a cluster, for `build/growth`, which counts their instructions.
//!
//! The number of instructions is the same in every run and on a busy computer; times are not.

use chrono::TimeDelta;

use osd_migrate_core::domain::classify::{self, Class};
use osd_migrate_core::domain::in_parallel::InParallel;
use osd_migrate_core::domain::ledger::Ledger;
use osd_migrate_core::domain::next::{Next, Saving, Wait};
use osd_migrate_core::domain::observation::{Observation, OnPvcs};
use osd_migrate_core::domain::plan;
use osd_migrate_core::domain::policy::{Limits, Policy};
use osd_migrate_core::domain::preview;
use osd_migrate_core::sim::World;
use osd_migrate_core::sim::example::{Kind, PoolShape, Shape};

use super::batch::tried;
use super::counted::{counted_by_growth, osds};
use super::state::{Allowance, State};

/// OSDs of a host: as many as a large chassis for hard disks has, divided by two.
const PER_HOST: usize = 25;

/// PGs of an OSD, as Ceph's autoscaler aims at a third of 100 for one of three pools.
const PGS_PER_OSD: usize = 33;

/// Returns a world with a pool of so many replicas; every second OSD is legacy.
fn world(size: u32) -> World {
    let osds = osds();
    let kinds = [Kind::Filestore, Kind::Raw, Kind::ByHand, Kind::Raw];
    let host = |host: usize| (0..PER_HOST).map(|osd| kinds[(host * PER_HOST + osd) % 4]).collect();
    let pgs = u32::try_from(osds * PGS_PER_OSD).unwrap() / size;
    let pools = vec![PoolShape { pgs, size, min_size: size - 1, data_chunks: None, gib: 1 }];
    Shape { hosts: (0..osds / PER_HOST).map(host).collect(), pools, disk_gib: 1000 }.world()
}

fn state() -> State {
    State::new(world(3), Allowance { faults: 0, freezes: 0, leaps: 0 })
}

#[test]
#[ignore = "build/growth runs it"]
fn first_decision() {
    let (state, policy) = (state(), Policy::default());
    let next = counted_by_growth(|| state.decide(&policy));
    assert!(matches!(next, Next::Save { why: Saving::Record, .. }), "{next:?}");
}

/// Returns what a run in a cluster of this observation decides.
fn first_decision_for(change: impl FnOnce(&mut Observation), size: u32) -> Next {
    let (policy, ledger) = (Policy::default(), Ledger::default());
    let mut seen = world(size).observe(|seen| plan::questions(&policy, &ledger, seen));
    change(&mut seen);
    counted_by_growth(|| plan::plan(&policy, &ledger, &seen))
}

/// Decides in a cluster of which no OSD may be stopped with its data.
#[test]
#[ignore = "build/growth runs it"]
fn first_decision_with_two_replicas() {
    let next = first_decision_for(|_| {}, 2);
    assert!(matches!(next, Next::Save { .. } | Next::Wait(_)), "{next:?}");
}

#[test]
#[ignore = "build/growth runs it"]
fn first_decision_for_osds_on_pvcs() {
    let on =
        OnPvcs { data: Some("set1-data-0a".to_owned()), set: Some("set1".to_owned()), ..OnPvcs::default() };
    let on_pvcs = |seen: &mut Observation| {
        seen.kube.daemons.values_mut().for_each(|daemon| daemon.on_pvcs = Some(on.clone()));
    };
    let next = first_decision_for(on_pvcs, 3);
    assert!(matches!(next, Next::Save { .. } | Next::Finished(_)), "{next:?}");
}

/// Returns a state in which an OSD is in progress, and its agent is at work.
fn at_work() -> State {
    let (mut state, policy) = (state(), Policy::default());
    for _ in 0..20 {
        let next = state.decide(&policy);
        if matches!(next, Next::Wait(Wait::Agent { .. })) {
            break;
        }
        state.perform(&next, state.version);
        state.world.at += TimeDelta::seconds(1);
    }
    state
}

/// Returns a state in which an OSD is in progress, and a policy by which others of its host may be, too.
fn with_room() -> (State, Policy) {
    let limits = Limits { soak: TimeDelta::zero(), ..Limits::default() };
    let mut state = at_work();
    state.ledger.run.tried = tried(&state.world).run.tried;
    (state, Policy { in_parallel: InParallel::Percent(5), limits, ..Policy::default() })
}

/// Decides while an OSD is in progress, and one more of its host may be.
#[test]
#[ignore = "build/growth runs it"]
fn decision_in_parallel() {
    let (state, policy) = with_room();
    let next = counted_by_growth(|| state.decide(&policy));
    assert!(matches!(next, Next::Save { why: Saving::Record, .. }), "{next:?}");
}

/// Decides while one more OSD of the host might be in progress, and all others conform.
#[test]
#[ignore = "build/growth runs it"]
fn decision_to_wait_with_room() {
    let (state, policy) = with_room();
    let in_progress = state.ledger.in_flight().map(|record| record.osd);
    let conforming = classify::classify(&state.world.observe(|_| plan::Questions::default()))
        .into_iter()
        .filter_map(|(osd, class)| (class == Class::Conforming).then_some(osd));
    let policy = Policy { select: in_progress.chain(conforming).collect(), ..policy };
    let next = counted_by_growth(|| state.decide(&policy));
    assert!(matches!(next, Next::Wait(Wait::Agent { .. })), "{next:?}");
}

#[test]
#[ignore = "build/growth runs it"]
fn decision_to_wait() {
    let (state, policy) = (at_work(), Policy::default());
    let next = counted_by_growth(|| state.decide(&policy));
    assert!(matches!(next, Next::Wait(Wait::Agent { .. })), "{next:?}");
}

#[test]
#[ignore = "build/growth runs it"]
fn classes() {
    let seen = world(3).observe(|_| plan::Questions::default());
    let classes = counted_by_growth(|| classify::classify(&seen));
    assert_eq!(classes.len(), osds());
}

#[test]
#[ignore = "build/growth runs it"]
fn preview() {
    let (policy, ledger) = (Policy::default(), Ledger::default());
    let seen = world(3).observe(|seen| plan::questions(&policy, &ledger, seen));
    let lines = counted_by_growth(|| preview::lines(&policy, &ledger, &seen));
    assert_eq!(lines.len(), osds());
}
