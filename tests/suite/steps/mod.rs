//! The next step, world by world: each test is a row of the phase table, checked with the real `plan`.

mod agents;
mod before_stop;
mod dead;
mod destroyed;
mod drains;
mod empty_waits;
mod emptying;
mod hanging_rook;
mod operator;
mod orphans;
mod owner_fence;
mod pvc;
mod quarantined;
mod recovery;
mod removal;
mod removal_gates;
mod removal_waits;
mod rook;
mod scrubs;
mod stopped;
mod too_full;
mod up;
mod upmaps;
mod ways_back;

use std::collections::BTreeSet;

use osd_migrate::domain::act::{Act, CephAct, KubeAct, NodeAct};
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::inspection::{Content, NodeProblem, NodeTask, Proof};
use osd_migrate::domain::ledger::{Ledger, Progress, Record};
use osd_migrate::domain::next::{Halt, Next, Saving, Wait};
use osd_migrate::domain::observation::{JobState, Releases, SlotState};
use osd_migrate::domain::osd::{ClusterFsid, Epoch, Mode, NodeName, OsdFsid, OsdId, PgId, Weight};
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::Empty;

use crate::support::build::{
    BY_HAND, FILESTORE, GIB, POOL, World, encrypted, foreign, issued_fsid, label, members, metadata,
    nothing_left, old, old_content, pg_id, prepare, quarantine, states, tombstone, word,
};
use crate::support::check;

/// The OSD of most stories, which are the same for every kind of OSD.
const OSD: OsdId = BY_HAND;

/// Saves since when a gate is not open after the intent.
fn held(world: World) -> World {
    world.saved("blocked")
}

/// Marks an OSD as down for so long that its `noout` was lifted.
fn without_noout(mut world: World) -> World {
    world.record(OSD).noout_lifted = true;
    world.slot(OSD).noout = false;
    world
}

fn failed() -> Option<NodeProblem> {
    Some(NodeProblem::Failed("no luck".to_owned()))
}

fn refused() -> Option<NodeProblem> {
    Some(NodeProblem::Refused("not what was recorded".to_owned()))
}

fn busy() -> Option<NodeProblem> {
    Some(NodeProblem::Busy("another agent holds osd-0.lock".to_owned()))
}

/// Returns the agent that the program wants to start now.
fn agent(world: &World) -> NodeTask {
    match world.plan() {
        Next::Do(Act::Node(NodeAct::Agent { request, .. })) => request.task,
        other => panic!("no agent: {other:#?}"),
    }
}

/// Returns the worlds of an OSD from its stop until its data comes back.
fn committed() -> [World; 6] {
    [
        World::stopping(OSD),
        World::stopped(OSD),
        World::destroyed(OSD),
        World::prepared(OSD),
        World::deployed(OSD),
        World::booted(OSD),
    ]
}

// ---- the run

#[test]
fn run_without_osds_to_migrate_does_nothing() {
    let world = World::new().with(|w| w.policy.skip = [BY_HAND, FILESTORE].into());
    check!(world.plan(), Next::Finished(summary) if *summary == nothing_left());
}

#[test]
fn unconfirmed_run_names_the_candidates_and_does_nothing() {
    let world = World::new().with(|w| w.seen.kube.declaration.confirmed = false);
    check!(world.plan(), Next::Finished(s) if s.unconfirmed == [BY_HAND, FILESTORE].into());
    let by_flag = world.with(|w| w.policy.confirmed = true);
    assert_eq!(word(&by_flag.plan()), Some("record"));
}

#[test]
fn first_candidate_is_recorded_with_all_its_former_settings() {
    let world = World::new().with(|w| {
        w.slot(OSD).noout = true;
        w.slot(OSD).primary_affinity = Weight::from_decimal(0.5);
        w.seen.ceph.upmaps = [(3, 5), (0, 1), (1, 0)]
            .map(|(from, to)| osd_migrate::domain::osd::Upmap {
                pg: "1.0".parse().unwrap(),
                mappings: vec![(OsdId(from), OsdId(to))],
            })
            .into();
    });
    let slot = world.seen.ceph.slots[&OSD].clone();
    let Next::Save { ledger, osd: Some(OSD), why: Saving::Record } = world.plan() else { panic!() };
    let record = &ledger.records[&OSD];
    assert_eq!(record.old, old(OSD));
    assert_eq!(Some(&record.crush), slot.crush.as_ref());
    assert_eq!(
        (record.reweight, record.primary_affinity),
        (Weight::from_decimal(0.9), Weight::from_decimal(0.5))
    );
    assert_eq!(record.former_flags, (true, false));
    assert_eq!(record.upmaps.len(), 2);
    assert_eq!((record.used_bytes, record.deployment.as_str()), (Some(GIB), "uid-0"));
    assert!(record.evidence.is_none() && record.new.is_none() && record.stop_intended_at.is_none());
    assert_eq!(ledger.records.len(), 1, "one at a time");
}

#[test]
fn records_of_one_osd_never_share_a_name() {
    let first = World::recorded(OSD).ledger;
    let again = World::new().with(|w| {
        w.ledger.run.serial = first.run.serial;
        w.policy.select = [OSD].into();
    });
    let second = again.saved("record").ledger;
    assert_ne!(first.records[&OSD].id, second.records[&OSD].id);
}

#[test]
fn second_osd_is_never_recorded_while_one_is_in_progress() {
    for world in [World::recorded(OSD), World::stopped(OSD), World::booted(OSD)] {
        let world = world.with(|w| w.policy.select.clear());
        if let Next::Save { ledger, .. } = world.plan() {
            assert_eq!(ledger.records.len(), 1);
        }
    }
    check!(
        World::booted(OSD)
            .with(|w| {
                w.policy.select.clear();
                (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
                w.seen.kube.fence = None;
                w.ledger.run.fence = None;
            })
            .plan(),
        Next::Wait(Wait::ActiveClean { .. })
    );
}

#[test]
fn candidate_waits_with_the_reason_while_a_pg_is_degraded() {
    let world = World::new().with(|w| w.pg(1).state = states("active+undersized+degraded"));
    check!(world.plan(), Next::Wait(Wait::Gate { osd: OSD, reason: Reason::NotClean { .. } }));
}

#[test]
fn osd_of_a_pool_with_insufficient_redundancy_is_refused() {
    let world = World::new().with(|w| {
        w.seen.ceph.pools.get_mut(&POOL).unwrap().size = 2;
        w.policy.empty = Empty::Never;
    });
    check!(world.plan(), Next::Finished(s) if s.refused.len() == 2 && s.refused[0].1.contains("insufficient redundancy"));
}

#[test]
fn refused_osds_of_a_size_2_pool_never_hide_later_candidates() {
    // Twelve more OSDs created by hand, on hosts that sort first, all in a pool of size 2.
    let world = World::new().with(|w| {
        let mut without_redundancy = w.seen.ceph.pools[&POOL].clone();
        (without_redundancy.size, without_redundancy.pg_num) = (2, 12);
        w.seen.ceph.pools.insert(2, without_redundancy);
        for n in 0..12 {
            let osd = OsdId(100 + n);
            let mut slot = w.seen.ceph.slots[&BY_HAND].clone();
            slot.crush.as_mut().unwrap().location.insert("host".to_owned(), "a".to_owned());
            w.seen.ceph.slots.insert(osd, slot);
            let daemon = w.seen.kube.daemons[&BY_HAND].clone();
            w.seen.kube.daemons.insert(osd, daemon);
            let mut pg = w.seen.ceph.pgs[&pg_id(0)].clone();
            pg.pool = 2;
            (pg.up, pg.acting) = ([osd].into(), [osd].into());
            w.seen.ceph.pgs.insert(PgId { pool: 2, number: n }, pg);
        }
        let asked = plan::questions(&w.policy, &w.ledger, &w.seen).ok_to_stop;
        w.seen.ceph.ok_to_stop.retain(|set, _| asked.contains(set));
    });
    assert_eq!(word(&world.plan()), Some("record"));
}

#[test]
fn ok_to_stop_is_asked_for_the_osds_the_decision_needs() {
    let questions = |world: &World| plan::questions(&world.policy, &world.ledger, &world.seen);
    let at_rest = questions(&World::new());
    assert_eq!(at_rest.ok_to_stop, [[BY_HAND].into(), [FILESTORE].into()].into());
    assert_eq!(at_rest.auth, BTreeSet::new());
    let serving = [World::proven(OSD), World::intended(OSD)];
    for in_flight in serving.map(|world| world.with(|w| w.policy.select.clear())) {
        assert_eq!(questions(&in_flight).ok_to_stop, [[OSD].into()].into());
    }
}

#[test]
fn open_records_ask_ceph_only_before_the_step_with_the_answer() {
    let asked = |world: World| {
        let questions = plan::questions(&world.policy, &world.ledger, &world.seen);
        (questions.ok_to_stop.len(), questions.auth.len())
    };
    let closing = |world: World| world.with(|w| w.record(OSD).closing = true);
    assert_eq!([World::recorded(OSD), closing(World::proven(OSD))].map(asked), [(0, 0); 2]);
    assert_eq!([World::proven(OSD), World::intended(OSD)].map(asked), [(1, 0); 2]);
    // It is stopped, and until its agent has finished the new OSD.
    assert_eq!([World::intended(OSD).down(OSD), World::stopping(OSD)].map(asked), [(0, 0); 2]);
    assert_eq!([World::stopped(OSD), World::destroyed(OSD)].map(asked), [(0, 0); 2]);
    assert_eq!([World::prepared(OSD), World::deployed(OSD)].map(asked), [(0, 1); 2]);
    assert_eq!(asked(World::booted(OSD).down(OSD)), (0, 1));
    assert_eq!([World::booted(OSD), closing(World::deployed(OSD))].map(asked), [(0, 0); 2]);
}

#[test]
fn fence_or_stop_mark_without_a_record_halts() {
    let deployment = World::stopped(OSD).with(|w| w.ledger = Ledger::default());
    check!(deployment.plan(), Next::Halt(Halt::LedgerLost { place, .. }) if place == "Deployment rook-ceph-osd-0");
    let fence = World::intended(OSD).with(|w| w.ledger = Ledger::default());
    check!(fence.plan(), Next::Halt(Halt::LedgerLost { place, .. }) if place == "the CephCluster");
    // The fence that was removed last came back: a runner was frozen while it set the fence once more. No
    // ledger was lost.
    let late = fence.with(|w| w.ledger.run.last_fence = w.seen.kube.fence.clone());
    let value = late.seen.kube.fence.clone().unwrap();
    check!(late.plan(), Next::Do(Act::Kube(KubeAct::Unfence { value: off })) if *off == value);
    // The same value is not a late one if its record is open.
    let again = World::intended(OSD).with(|w| w.ledger.run.last_fence = w.ledger.run.fence.clone());
    check!(again.plan(), Next::Do(act) if !matches!(act, Act::Kube(KubeAct::Unfence { .. })));
    // Also if another record exists.
    let other = World::intended(FILESTORE).with(|w| {
        w.daemon(OSD).stopped_by = Some(osd_migrate::domain::inspection::RecordId("lost-1".to_owned()));
    });
    check!(other.plan(), Next::Halt(Halt::LedgerLost { .. }));
}

#[test]
fn second_osd_that_fails_past_its_stop_ends_the_run() {
    let quarantined = |osd: OsdId| {
        World::recorded(osd)
            .report_with(osd, |r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false)
            .saved("quarantine")
            .with(|w| w.record(osd).down_since = Some(w.seen.at))
    };
    let one = quarantined(FILESTORE).with(|w| w.policy.select.clear());
    check!(one.plan(), Next::Save { osd: Some(OSD), why: Saving::Record, .. });
    let two = one.with(|w| {
        let failed = quarantined(OSD).ledger.records.remove(&OSD).unwrap();
        w.ledger.records.insert(OSD, failed);
    });
    check!(two.plan(), Next::Halt(Halt::FailureLimit { quarantined }) if quarantined.len() == 2);
}

#[test]
fn run_that_ends_with_a_quarantined_osd_reports_it() {
    let world = World::recorded(OSD)
        .report_with(OSD, |r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false)
        .saved("quarantine");
    check!(world.plan(), Next::Finished(s) if s.quarantined.len() == 1 && s.quarantined[0].1.contains("--osd-id"));
}
