//! Decisions, the stored ledger and completed observations at several sizes of a cluster, for `build/growth`,
//! which counts their instructions.
//!
//! The number of instructions is nearly the same in every run and on a busy computer; times are not.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use osd_migrate_core::domain::classify::{self, Class};
use osd_migrate_core::domain::in_parallel::InParallel;
use osd_migrate_core::domain::ledger::{
    Ledger, MAX_OPEN, MAX_RECORDS, NodeStatus, NodeWork, Quarantine, Record,
};
use osd_migrate_core::domain::next::{Next, Saving, Wait};
use osd_migrate_core::domain::observation::{Ceph, Kube, Listed, Observation, OnPvcs};
use osd_migrate_core::domain::osd::{NodeName, OsdId, PgId};
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
fn world(osds: usize, size: u32) -> World {
    let kinds = [Kind::Filestore, Kind::Raw, Kind::ByHand, Kind::Raw];
    let host = |host: usize| (0..PER_HOST).map(|osd| kinds[(host * PER_HOST + osd) % 4]).collect();
    let pgs = u32::try_from(osds * PGS_PER_OSD).unwrap() / size;
    let pools = vec![PoolShape { pgs, size, min_size: size - 1, data_chunks: None, gib: 1 }];
    Shape { hosts: (0..osds / PER_HOST).map(host).collect(), pools, disk_gib: 1000 }.world()
}

fn state(osds: usize) -> State {
    State::new(world(osds, 3), Allowance { faults: 0, freezes: 0, leaps: 0 })
}

#[test]
#[ignore = "build/growth runs it"]
fn first_decision() {
    let (state, policy) = (state(osds()), Policy::default());
    let next = counted_by_growth(|| state.decide(&policy));
    assert!(matches!(next, Next::Save { why: Saving::Record, .. }), "{next:?}");
}

/// Returns what a run in a cluster of this observation decides.
fn first_decision_for(change: impl FnOnce(&mut Observation), size: u32) -> Next {
    let (policy, ledger) = (Policy::default(), Ledger::default());
    let mut seen = world(osds(), size).observe(|seen| plan::questions(&policy, &ledger, seen));
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
fn at_work(osds: usize) -> State {
    let (mut state, policy) = (state(osds), Policy::default());
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
    let mut state = at_work(osds());
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
    let (state, policy) = (at_work(osds()), Policy::default());
    let next = counted_by_growth(|| state.decide(&policy));
    assert!(matches!(next, Next::Wait(Wait::Agent { .. })), "{next:?}");
}

#[test]
#[ignore = "build/growth runs it"]
fn classes() {
    let seen = world(osds(), 3).observe(|_| plan::Questions::default());
    let classes = counted_by_growth(|| classify::classify(&seen));
    assert_eq!(classes.len(), osds());
}

#[test]
#[ignore = "build/growth runs it"]
fn preview() {
    let (policy, ledger) = (Policy::default(), Ledger::default());
    let seen = world(osds(), 3).observe(|seen| plan::questions(&policy, &ledger, seen));
    let lines = counted_by_growth(|| preview::lines(&policy, &ledger, &seen));
    assert_eq!(lines.len(), osds());
}

fn osd(number: usize) -> OsdId {
    OsdId(u32::try_from(number).unwrap())
}

/// Returns a ledger with records of a tenth of the OSDs, at most as many as it may have, and with each node.
fn ledger() -> Ledger {
    let work = at_work(4 * PER_HOST);
    let one = work.ledger.in_flight().next().unwrap();
    let record = |number: usize| {
        let quarantine = Quarantine { why: "its daemon does not stay up".to_owned(), since: work.world.at };
        let record = Record {
            osd: osd(number),
            pgs: (0..PGS_PER_OSD).map(|pg| PgId { pool: 1, number: u32::try_from(pg).unwrap() }).collect(),
            quarantine: (number >= MAX_OPEN).then_some(quarantine),
            ..one.clone()
        };
        (record.osd, record)
    };
    let node = |number: usize| {
        let disk = |disk: usize| format!("/dev/disk/by-id/ata-ST18000NM000J-2TV103_{number:03}{disk:02}");
        let work = NodeWork {
            status: NodeStatus::Completed,
            since: work.world.at,
            message: format!("created OSDs on {PER_HOST} disks"),
            run: "osd-migrate-1".to_owned(),
            inventoried_by: None,
            away_since: None,
            inventory: 1,
            failures: 0,
            done: (0..PER_HOST).map(disk).collect(),
            left: [(disk(PER_HOST), "a file system (xfs)".to_owned())].into(),
            directories: [].into(),
            databases: [].into(),
            problems: vec!["device sdz is named, and does not exist".to_owned()],
        };
        (NodeName(format!("h{number}")), work)
    };
    Ledger {
        records: (0..(osds() / 10).min(MAX_RECORDS)).map(record).collect(),
        nodes: (0..osds() / PER_HOST).map(node).collect(),
        ..(*work.ledger).clone()
    }
}

#[test]
#[ignore = "build/growth runs it"]
fn ledger_to_store() {
    let ledger = ledger();
    let keys = counted_by_growth(|| ledger.to_keys().unwrap());
    assert_eq!(keys.len(), ledger.records.len() + 3);
}

#[test]
#[ignore = "build/growth runs it"]
fn stored_ledger() {
    let ledger = ledger();
    let keys = ledger.to_keys().unwrap();
    let read = counted_by_growth(|| Ledger::from_keys(&keys).unwrap());
    assert_eq!((read.records, read.nodes.len()), (ledger.records, ledger.nodes.len()));
}

/// Returns an observation of a cluster in which each OSD is on a PVC of its own.
fn on_own_pvcs() -> Observation {
    let mut seen = world(osds(), 3).observe(|_| plan::Questions::default());
    for (osd, daemon) in &mut seen.kube.daemons {
        let data = Some(format!("set1-data-{}", osd.0));
        daemon.on_pvcs = Some(OnPvcs { data, set: Some("set1".to_owned()), ..OnPvcs::default() });
    }
    seen
}

/// Returns the OSDs of a host, and a partial observation of them: their pods are gone.
fn partial(earlier: &Kube) -> (BTreeSet<OsdId>, Kube) {
    let in_progress: BTreeSet<OsdId> = (0..PER_HOST).map(osd).collect();
    let read = earlier.daemons.iter().filter(|(osd, _)| in_progress.contains(*osd));
    let mut daemons: Vec<_> = read.map(|(osd, daemon)| (*osd, daemon.clone())).collect();
    for (_, daemon) in &mut daemons {
        daemon.pods.clear();
    }
    (in_progress, Kube { daemons: daemons.into_iter().collect(), ..earlier.clone() })
}

/// Completes a partial observation of another osdmap.
#[test]
#[ignore = "build/growth runs it"]
fn completed_ceph() {
    let earlier = world(osds(), 3).observe(|_| plan::Questions::default()).ceph;
    // Slots that were just read are not shared.
    let now = Ceph { slots: (*earlier.slots).clone().into(), ..earlier.clone() };
    let completed = counted_by_growth(|| now.completed_by(&earlier).unwrap());
    assert_eq!(completed.slots.len(), osds());
}

#[test]
#[ignore = "build/growth runs it"]
fn completed_kubernetes() {
    let earlier = on_own_pvcs().kube;
    let (in_progress, now) = partial(&earlier);
    let completed = counted_by_growth(|| now.completed_by(earlier, &in_progress));
    assert_eq!(completed.daemons.values().filter(|daemon| daemon.pods.is_empty()).count(), PER_HOST);
}

/// Completes a list of all OSDs, and looks for PVCs that two of them name.
#[test]
#[ignore = "build/growth runs it"]
fn completed_list() {
    let Observation { at, kube: earlier, .. } = on_own_pvcs();
    let (read, now) = partial(&earlier);
    let listed = Listed::of(&earlier, at).unwrap();
    drop(earlier);
    let (kube, listed) = counted_by_growth(|| listed.complete(now, &read));
    assert!(listed.is_some() && kube.daemons.len() == osds());
}
