//! What is done next, world by world: each test is a sentence of the design's table (section 5), asked of the real `plan`.

use std::collections::BTreeSet;

use osd_migrate::domain::act::Act;
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::inspection::{Content, NodeProblem, NodeTask, Proof};
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::next::{Halt, Next, Saving, Wait};
use osd_migrate::domain::observation::{JobState, SlotState};
use osd_migrate::domain::osd::{ClusterFsid, Epoch, NodeName, OsdFsid, OsdId, PgId, Weight};
use osd_migrate::domain::plan;

use crate::support::build::{
    BY_HAND, FILESTORE, GIB, POOL, World, claim, foreign, label, members, metadata, old, old_content, pg_id,
    quarantine, states, tombstone, word,
};
use crate::support::check;

/// Most stories are the same for every kind of OSD; they are told of osd.0.
const OSD: OsdId = BY_HAND;

fn failed() -> Option<NodeProblem> {
    Some(NodeProblem::Failed("no luck".to_owned()))
}

fn refused() -> Option<NodeProblem> {
    Some(NodeProblem::Refused("not what was recorded".to_owned()))
}

fn busy() -> Option<NodeProblem> {
    Some(NodeProblem::Busy("another agent holds osd-0.lock".to_owned()))
}

/// The agent that the world's program wants to start now.
fn agent(world: &World) -> NodeTask {
    match world.plan() {
        Next::Do(Act::Agent { request, .. }) => request.task,
        other => panic!("no agent: {other:#?}"),
    }
}

// ---- the run

#[test]
fn where_nothing_is_legacy_nothing_is_done() {
    let world = World::new().with(|w| w.policy.skip = [BY_HAND, FILESTORE].into());
    check!(world.plan(), Next::Finished(summary) if *summary == osd_migrate::domain::next::Summary::default());
}

#[test]
fn without_a_confirmation_the_candidates_are_named_and_nothing_is_saved_or_done() {
    let world = World::new().with(|w| w.seen.kube.declaration.confirmed = false);
    check!(world.plan(), Next::Finished(s) if s.unconfirmed == [BY_HAND, FILESTORE].into());
    let by_flag = world.with(|w| w.policy.confirmed = true);
    assert_eq!(word(&by_flag.plan()), Some("record"));
}

#[test]
fn the_first_candidate_is_recorded_with_all_that_cannot_be_seen_again() {
    let world = World::new().with(|w| {
        w.slot(OSD).noout = true;
        w.slot(OSD).primary_affinity = Weight::from_decimal(0.5);
        w.seen.ceph.upmaps = [(3, 5), (0, 1), (1, 0)]
            .map(|(from, to)| osd_migrate::domain::osd::Upmap {
                pg: PgId("1.0".to_owned()),
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
fn while_one_osd_is_in_flight_no_other_is_begun() {
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
                w.slot(OSD).noin = false;
                w.seen.kube.fence = None;
                w.ledger.run.fence = None;
            })
            .plan(),
        Next::Wait(Wait::ActiveClean { .. })
    );
}

#[test]
fn a_shut_gate_keeps_a_candidate_waiting_with_the_reason() {
    let world = World::new().with(|w| w.pg(1).state = states("active+undersized+degraded"));
    check!(world.plan(), Next::Wait(Wait::Gate { osd: OSD, reason: Reason::NotClean { .. } }));
}

#[test]
fn an_osd_of_a_thin_pool_is_refused_and_the_run_ends() {
    let world = World::new().with(|w| w.seen.ceph.pools.get_mut(&POOL).unwrap().size = 2);
    check!(world.plan(), Next::Finished(s) if s.refused.len() == 2 && s.refused[0].1.contains("drained"));
}

#[test]
fn osds_of_a_thin_pool_do_not_hide_the_candidates_after_them() {
    // Twelve by-hand OSDs more, on hosts that sort first, all in a pool of size 2.
    let world = World::new().with(|w| {
        let mut thin = w.seen.ceph.pools[&POOL].clone();
        (thin.size, thin.pg_num) = (2, 12);
        w.seen.ceph.pools.insert(2, thin);
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
            w.seen.ceph.pgs.insert(PgId(format!("2.{n:x}")), pg);
        }
        let asked = plan::questions(&w.policy, &w.ledger, &w.seen).ok_to_stop;
        w.seen.ceph.ok_to_stop.retain(|set, _| asked.contains(set));
    });
    assert_eq!(word(&world.plan()), Some("record"));
}

#[test]
fn ceph_is_asked_about_the_osds_that_the_decision_needs() {
    let questions = |world: &World| plan::questions(&world.policy, &world.ledger, &world.seen);
    let at_rest = questions(&World::new());
    assert_eq!(at_rest.ok_to_stop, [[BY_HAND].into(), [FILESTORE].into()].into());
    assert_eq!(at_rest.auth, BTreeSet::new());
    let in_flight = questions(&World::stopped(OSD).with(|w| w.policy.select.clear()));
    assert_eq!(in_flight.ok_to_stop, [[OSD].into()].into());
    assert_eq!(in_flight.auth, [OSD].into());
}

#[test]
fn a_mark_of_ours_without_a_record_halts() {
    let deployment = World::stopped(OSD).with(|w| w.ledger = Ledger::default());
    check!(deployment.plan(), Next::Halt(Halt::LedgerLost { place, .. }) if place == "Deployment rook-ceph-osd-0");
    let fence = World::intended(OSD).with(|w| w.ledger = Ledger::default());
    check!(fence.plan(), Next::Halt(Halt::LedgerLost { place, .. }) if place == "the CephCluster");
    // Also where another record is there.
    let other = World::intended(FILESTORE).with(|w| {
        w.daemon(OSD).stopped_by = Some(osd_migrate::domain::inspection::RecordId("lost-1".to_owned()));
    });
    check!(other.plan(), Next::Halt(Halt::LedgerLost { .. }));
}

#[test]
fn one_osd_may_fail_a_second_failure_stops_the_run() {
    let quarantined = |osd: OsdId| {
        World::recorded(osd)
            .report_with(osd, |r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false)
            .saved("quarantine")
    };
    let one = quarantined(FILESTORE).with(|w| w.policy.select.clear());
    check!(one.plan(), Next::Save { osd: Some(OSD), why: Saving::Record, .. });
    let two = one.with(|w| {
        let failed = quarantined(OSD).ledger.records.remove(&OSD).unwrap();
        w.ledger.records.insert(OSD, failed);
    });
    check!(two.plan(), Next::Halt(Halt::FailureBudget { quarantined }) if quarantined.len() == 2);
}

#[test]
fn a_run_that_ends_with_one_quarantined_says_so() {
    let world = World::recorded(OSD)
        .report_with(OSD, |r| r.inspection.as_mut().unwrap().capability.key_accepted = false)
        .saved("quarantine");
    check!(world.plan(), Next::Finished(s) if s.quarantined.len() == 1 && s.quarantined[0].1.contains("bootstrap-osd"));
}

// ---- Unproven: looking

#[test]
fn a_recorded_osd_is_looked_at_before_anything_is_done_and_without_a_fence() {
    let world = World::recorded(OSD);
    check!(
        world.plan(),
        Next::Do(Act::Agent { request, image, data_dir })
            if request.task == NodeTask::Inspect && request.attempt == 1 && request.evidence.is_none()
                && request.old == old(OSD) && request.node == NodeName("h1".to_owned())
                && image == "ceph:16" && data_dir == "/var/lib/rook"
    );
}

#[test]
fn what_the_first_look_proves_is_saved() {
    let world = World::recorded(OSD).report(OSD, Some(old_content(OSD)), None);
    let Next::Save { ledger, why: Saving::Proof, .. } = world.plan() else { panic!("{:#?}", world.plan()) };
    assert_eq!(ledger.records[&OSD].evidence, Some(crate::support::build::evidence(OSD)));
}

#[test]
fn a_node_that_cannot_make_the_new_osd_is_found_out_before_stop() {
    let world = |change: fn(&mut osd_migrate::domain::inspection::NodeReport)| {
        World::recorded(OSD).report_with(OSD, change)
    };
    for (world, words) in [
        (
            world(|r| r.inspection.as_mut().unwrap().capability.missing_tools = ["sgdisk".to_owned()].into()),
            "sgdisk",
        ),
        (world(|r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false), "--osd-id"),
        (world(|r| r.inspection.as_mut().unwrap().capability.key_accepted = false), "bootstrap-osd"),
        (world(|r| r.inspection.as_mut().unwrap().evidence = None), "proves"),
        (
            world(|r| r.inspection.as_mut().unwrap().evidence.as_mut().unwrap().device.by_id.clear()),
            "stable name",
        ),
        (world(|r| r.inspection.as_mut().unwrap().evidence.as_mut().unwrap().usable_bytes = GIB), "bytes"),
    ] {
        let next = world.plan();
        assert!(quarantine(&next).is_some_and(|why| why.contains(words)), "{words}: {next:#?}");
    }
}

#[test]
fn a_device_that_contradicts_the_class_is_left_alone() {
    let world = World::recorded(OSD).report_with(OSD, |r| {
        let evidence = r.inspection.as_mut().unwrap().evidence.as_mut().unwrap();
        if let Proof::BluestoreLabel { activatable, .. } = &mut evidence.proof {
            *activatable = true;
        }
    });
    assert!(quarantine(&world.plan()).unwrap().contains("new Deployment"));
}

#[test]
fn a_proof_that_names_another_osd_or_cluster_proves_nothing() {
    type Change = fn(&mut OsdFsid, &mut OsdId, &mut ClusterFsid);
    let changes: [Change; 3] = [
        |fsid, _, _| *fsid = foreign(),
        |_, id, _| *id = OsdId(7),
        |_, _, cluster| *cluster = "11111111-1111-1111-1111-111111111111".parse().unwrap(),
    ];
    for osd in [BY_HAND, FILESTORE] {
        for change in changes {
            let world = World::recorded(osd).report_with(osd, |r| {
                match &mut r.inspection.as_mut().unwrap().evidence.as_mut().unwrap().proof {
                    Proof::BluestoreLabel { osd_fsid, whoami, cluster, .. }
                    | Proof::FilestorePartition { osd_fsid, whoami, cluster, .. } => {
                        change(osd_fsid, whoami, cluster);
                    }
                }
            });
            let next = world.plan();
            assert!(quarantine(&next).is_some(), "{osd}: {next:#?}");
        }
    }
}

#[test]
fn a_device_that_carries_something_else_is_foreign_already_before_stop() {
    let other_cluster = Content::Bluestore {
        osd_fsid: old(OSD),
        whoami: Some(OSD),
        cluster: Some("11111111-1111-1111-1111-111111111111".parse().unwrap()),
        finished: true,
        activatable: false,
    };
    for content in [
        Content::Blank,
        Content::Other { what: "ext4".to_owned() },
        Content::NotFound { looked_at: "sdb".to_owned() },
        label(foreign(), OSD, true),
        label(old(OSD), OsdId(9), true),
        other_cluster,
    ] {
        let world = looked_thrice(World::recorded(OSD).report(OSD, Some(content.clone()), None), &content);
        let next = world.plan();
        assert!(
            quarantine(&next).is_some_and(|why| why.contains("something else")),
            "{content:?}: {next:#?}"
        );
    }
}

/// Its device carried that, and does so at two more looks; nothing but looks is done meanwhile.
fn looked_thrice(mut world: World, content: &Content) -> World {
    for _ in 0..2 {
        world = world.saved("inspect");
        assert_eq!(agent(&world), NodeTask::Inspect);
        world = world.report(OSD, Some(content.clone()), None);
    }
    world
}

#[test]
fn a_device_that_one_look_does_not_find_is_looked_at_again() {
    let lost = Content::NotFound { looked_at: "sdb".to_owned() };
    // Before Stop: the next look proves it.
    let world = World::recorded(OSD).report(OSD, Some(lost.clone()), None).saved("inspect");
    assert_eq!(word(&world.report(OSD, Some(old_content(OSD)), None).plan()), Some("proof"));
    // Past Stop: the rebuild could not read what it had written, the next look can.
    let world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    let world = world.rebuild_ended(OSD, Some(lost), failed()).saved("inspect");
    assert_eq!(word(&world.report(OSD, Some(gone), None).plan()), Some("rebuild"));
}

#[test]
fn a_finished_rebuild_whose_device_is_not_found_thrice_is_left_alone() {
    let lost = Content::NotFound { looked_at: "sdb".to_owned() };
    let world = World::destroyed(OSD).rebuild_ended(OSD, Some(lost.clone()), None);
    let next = looked_thrice(world, &lost).plan();
    assert!(quarantine(&next).is_some_and(|why| why.contains("something else")), "{next:#?}");
}

#[test]
fn stopped_and_its_device_not_found_thrice_it_is_started_again_and_left_alone_then() {
    let lost = Content::NotFound { looked_at: "sdb".to_owned() };
    let world = World::stopped(OSD).report(OSD, Some(lost.clone()), None);
    let world = looked_thrice(world, &lost);
    check!(world.plan(), Next::Do(Act::Restart { osd: OSD, .. }));
    let started = world.with(|w| (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (1, None));
    // Whether it comes up or not: nobody waits for it.
    assert!(quarantine(&started.plan()).is_some(), "{:#?}", started.plan());
    assert!(quarantine(&started.up(OSD).reported().plan()).is_some());
}

#[test]
fn an_inspection_that_fails_three_times_leaves_the_osd_alone_before_stop() {
    let mut world = World::recorded(OSD);
    for attempt in 2..=3 {
        world = world.report(OSD, None, failed()).saved("inspect");
        assert_eq!(world.record(OSD).attempt.number, attempt);
        check!(world.plan(), Next::Do(Act::Agent { request, .. }) if request.attempt == attempt);
    }
    let next = world.report(OSD, None, failed()).plan();
    assert!(quarantine(&next).is_some_and(|why| why.contains("no luck")), "{next:#?}");
}

#[test]
fn a_job_that_ended_without_a_report_has_failed_too() {
    let mut world = World::recorded(OSD);
    for _ in 0..2 {
        world = world.job(OSD, JobState::Ended).saved("inspect");
    }
    assert!(quarantine(&world.job(OSD, JobState::Ended).plan()).is_some());
}

#[test]
fn an_agent_that_found_another_at_work_has_not_failed() {
    let mut world = World::recorded(OSD);
    for _ in 0..300 {
        world = world.report(OSD, None, busy()).saved("inspect");
    }
    assert_eq!(world.record(OSD).attempt.failures, 0);
    let text = world.ledger.to_keys().unwrap();
    assert!(
        text["osd-0"].len() < 4096,
        "waiting for a lock must not make the record grow: {}",
        text["osd-0"].len()
    );
}

#[test]
fn stopped_and_not_provable_it_is_started_again() {
    // The first look is lost; the second one fails three times.
    let mut world = World::stopped(OSD).with(|w| {
        w.seen.kube.reports.clear();
        w.seen.kube.node_jobs.clear();
    });
    assert_eq!(agent(&world), NodeTask::Inspect);
    for _ in 0..2 {
        world = world.report(OSD, None, refused()).saved("inspect");
    }
    check!(world.report(OSD, None, refused()).plan(), Next::Do(Act::Restart { osd: OSD, .. }));
}

// ---- Busy

#[test]
fn while_an_agent_is_at_work_nothing_else_is_done() {
    for world in [World::recorded(OSD), World::stopped(OSD), World::destroyed(OSD), World::prepared(OSD)] {
        let world = world.job(OSD, JobState::Running);
        check!(world.plan(), Next::Wait(Wait::Agent { osd: OSD, .. }));
    }
}

#[test]
fn an_agent_that_is_silent_for_ten_minutes_is_reported_and_not_killed() {
    let world = World::recorded(OSD).job(OSD, JobState::Running);
    check!(world.clone().minutes_later(9).plan(), Next::Wait(Wait::Agent { .. }));
    check!(world.clone().minutes_later(10).plan(), Next::Wait(Wait::AgentSilent { osd: OSD, .. }));
    let beating = world.minutes_later(100).with(|w| w.seen.kube.node_jobs[0].heartbeat_at = Some(w.seen.at));
    check!(beating.plan(), Next::Wait(Wait::Agent { .. }));
}

#[test]
fn an_agent_that_does_not_start_for_ten_minutes_is_a_failed_attempt_and_dropped() {
    let world = World::recorded(OSD).job(OSD, JobState::Waiting);
    check!(world.clone().minutes_later(9).plan(), Next::Wait(Wait::Agent { .. }));
    let mut world = world.minutes_later(10);
    for attempt in 2..=4 {
        // The next attempt is saved before its predecessor is deleted, so that it counts.
        world = world.saved("inspect");
        check!(world.plan(), Next::Do(Act::DropAgent { uid, .. }) if uid.ends_with(&format!("-{}", attempt - 1)));
        world.seen.kube.node_jobs.clear();
        if attempt < 4 {
            check!(world.plan(), Next::Do(Act::Agent { request, .. }) if request.attempt == attempt);
            world = world.job(OSD, JobState::Waiting).minutes_later(10);
        }
    }
    assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
}

// ---- Withdrawn

#[test]
fn before_stop_a_withdrawn_wish_gives_the_record_up() {
    type Change = fn(&mut World);
    let changes: [Change; 6] = [
        |w| w.seen.kube.declaration.confirmed = false,
        |w| w.policy.select = [FILESTORE].into(),
        |w| w.policy.skip = [OSD].into(),
        |w| w.seen.kube.declaration.encrypted = true,
        |w| w.daemon(OSD).activates = true,
        |w| w.daemon(OSD).held_by_others = Some("Rook replaces it".to_owned()),
    ];
    for change in changes {
        for world in [World::recorded(OSD), World::proven(OSD), World::intended(OSD)] {
            assert_eq!(word(&world.with(change).plan()), Some("withdrawn"));
        }
    }
}

#[test]
fn an_osd_that_moved_to_another_node_is_not_the_one_that_was_proven() {
    for world in [World::proven(OSD), World::intended(OSD)] {
        let moved = world.with(|w| w.daemon(OSD).node = Some(NodeName("h2".to_owned())));
        assert_eq!(word(&moved.plan()), Some("withdrawn"));
    }
}

#[test]
fn a_deployment_that_was_made_anew_is_recorded_and_kept_anew() {
    let anew = |world: World| world.with(|w| w.daemon(OSD).uid = "uid-new".to_owned());
    for world in [World::recorded(OSD), World::proven(OSD).keep(OSD), World::intended(OSD)] {
        assert_eq!(word(&anew(world).plan()), Some("withdrawn"));
    }
    // Past Stop it is not asked.
    check!(anew(World::stopped(OSD)).plan(), Next::Do(Act::Destroy { .. }));
}

#[test]
fn withdrawn_it_lifts_its_own_flags_and_fence_sweeps_and_is_gone() {
    let mut world =
        World::intended(OSD).with(|w| w.seen.kube.declaration.confirmed = false).saved("withdrawn");
    check!(world.plan(), Next::Do(Act::Unhush { osd: OSD, noout: true, noin: true }));
    (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
    check!(world.plan(), Next::Do(Act::Unfence { .. }));
    world.seen.kube.fence = None;
    world = world.saved("unfenced");
    check!(world.plan(), Next::Do(Act::Sweep { osd: OSD, .. }));
    world.seen.kube.kept.clear();
    world.seen.kube.reports.clear();
    world.seen.kube.node_jobs.clear();
    world = world.saved("closed");
    assert!(world.ledger.records.is_empty() && world.ledger.run.fence.is_none());
    check!(world.plan(), Next::Finished(s) if s.unconfirmed == [OSD].into());
}

#[test]
fn flags_that_were_there_before_stay_and_flags_before_our_intent_are_not_ours() {
    let withdraw = |world: World| world.with(|w| w.policy.skip = [OSD].into()).saved("withdrawn");
    // noout was set when the record was made.
    let had = World::new().with(|w| {
        w.policy.select = [OSD].into();
        w.slot(OSD).noout = true;
    });
    let had =
        had.saved("record").report(OSD, Some(old_content(OSD)), None).saved("proof").keep(OSD).saved("stop");
    check!(withdraw(had.hushed(OSD)).plan(), Next::Do(Act::Unhush { noout: false, noin: true, .. }));
    // Somebody set flags before we ever meant to.
    check!(withdraw(World::proven(OSD).hushed(OSD)).plan(), Next::Do(Act::Sweep { .. }));
}

#[test]
fn a_flag_that_a_person_set_between_record_and_stop_stays_theirs() {
    let set = World::proven(OSD).keep(OSD).with(|w| {
        w.slot(OSD).noout = true;
        w.slot(OSD).primary_affinity = Weight::from_decimal(0.5);
    });
    let world = set.saved("stop");
    assert_eq!(world.ledger.records[&OSD].former_flags, (true, false));
    assert_eq!(world.ledger.records[&OSD].primary_affinity, Weight::from_decimal(0.5));
    // The intent grows old after our own flags were set: they do not become a person's by that.
    let again = world.hushed(OSD).fenced(OSD).minutes_later(1).saved("stop");
    assert_eq!(again.ledger.records[&OSD].former_flags, (true, false));
    // Its owner takes it off: what is set then is ours.
    let off = again.with(|w| w.slot(OSD).noout = false).minutes_later(1).saved("stop");
    assert_eq!(off.ledger.records[&OSD].former_flags, (false, false));
}

#[test]
fn past_stop_a_withdrawn_confirmation_changes_nothing() {
    for world in [
        World::stopping(OSD),
        World::stopped(OSD),
        World::destroyed(OSD),
        World::prepared(OSD),
        World::deployed(OSD),
        World::booted(OSD),
        World::filled(OSD),
    ] {
        let withdrawn = world.clone().with(|w| {
            w.seen.kube.declaration.confirmed = false;
            w.policy.skip.insert(OSD);
        });
        assert_eq!(withdrawn.plan(), world.plan());
    }
}

// ---- Serving: towards Stop

#[test]
fn proven_it_is_kept_its_pgs_saved_fenced_hushed_and_stopped_one_a_turn() {
    let mut world = World::proven(OSD);
    check!(world.plan(), Next::Do(Act::Keep { osd: OSD, deployment, .. }) if deployment == "uid-0");
    world = world.keep(OSD).saved("stop");
    let held: BTreeSet<PgId> = (0..8).filter(|n| members(*n).contains(&OSD)).map(pg_id).collect();
    assert_eq!(world.record(OSD).pgs, held);
    world = world.saved("fence");
    check!(world.plan(), Next::Do(Act::Fence { .. }));
    world = world.fenced(OSD);
    check!(world.plan(), Next::Do(Act::Hush { osd: OSD, noout: true, noin: true }));
    world = world.hushed(OSD);
    let record = world.record(OSD).id.clone();
    check!(
        world.plan(),
        Next::Do(Act::Stop { osd: OSD, fsid, record: named, deployment, resource_version })
            if *fsid == old(OSD) && *named == record && deployment == "uid-0" && resource_version == "1"
    );
}

#[test]
fn a_flag_that_is_set_already_is_not_set_again() {
    let world = World::intended(OSD).with(|w| w.slot(OSD).noin = false);
    check!(world.plan(), Next::Do(Act::Hush { noout: false, noin: true, .. }));
}

#[test]
fn the_gates_are_asked_again_before_every_turn_towards_stop() {
    for world in [World::proven(OSD), World::proven(OSD).keep(OSD), World::intended(OSD)] {
        let world = world.down(OsdId(3));
        check!(
            world.clone().reported().plan(),
            Next::Wait(Wait::Gate { reason: Reason::NotClean { .. }, .. })
        );
        check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::StatisticsOld { .. }, .. }));
    }
}

#[test]
fn an_osd_whose_new_one_would_be_too_small_is_never_stopped() {
    // It was small enough when it was recorded, and grew while it waited.
    let world = World::intended(OSD).with(|w| w.slot(OSD).used_bytes = Some(6 * GIB));
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::TooSmall { .. }, .. }));
    let unknown = World::intended(OSD).with(|w| {
        w.record(OSD).used_bytes = None;
        w.slot(OSD).used_bytes = None;
    });
    check!(unknown.plan(), Next::Wait(Wait::Gate { reason: Reason::RoomUnknown, .. }));
}

#[test]
fn what_it_holds_is_saved_at_stop() {
    let world = World::proven(OSD).keep(OSD).with(|w| w.slot(OSD).used_bytes = Some(2 * GIB)).saved("stop");
    assert_eq!(world.ledger.records[&OSD].used_bytes, Some(2 * GIB));
}

#[test]
fn pgs_that_moved_since_they_were_saved_are_saved_again_before_stop() {
    let world = World::intended(OSD).with(|w| w.pg(1).up.extend([OSD]));
    assert_eq!(word(&world.plan()), Some("stop"));
}

#[test]
fn the_fence_is_recorded_before_it_is_put_up_and_put_up_again_where_somebody_takes_it_off() {
    let bare = World::intended(OSD).with(|w| {
        w.ledger.run.fence = None;
        w.seen.kube.fence = None;
    });
    let recorded = bare.saved("fence");
    check!(recorded.plan(), Next::Do(Act::Fence { value }) if Some(value) == recorded.ledger.run.fence.as_ref());
    // Every act from Stop to Deploy has it as its precondition.
    for world in [World::intended(OSD), World::stopped(OSD), World::prepared(OSD).saved("new")] {
        check!(world.with(|w| w.seen.kube.fence = None).plan(), Next::Do(Act::Fence { .. }));
    }
    let rebuild = World::destroyed(OSD).saved("rebuild").with(|w| w.seen.kube.fence = None);
    check!(rebuild.plan(), Next::Do(Act::Fence { .. }));
}

#[test]
fn a_fence_of_others_is_never_replaced() {
    let others = |world: World| world.with(|w| w.seen.kube.fence = Some("theirs".to_owned()));
    check!(
        others(World::prepared(OSD).saved("new")).plan(),
        Next::Wait(Wait::Gate { reason: Reason::FencedByOthers { .. }, .. })
    );
    check!(
        others(World::intended(OSD)).plan(),
        Next::Wait(Wait::Gate { reason: Reason::FencedByOthers { .. }, .. })
    );
}

// ---- NotOurStop

#[test]
fn an_osd_that_others_stopped_is_waited_for_and_never_destroyed() {
    for world in [World::recorded(OSD), World::proven(OSD), World::intended(OSD)] {
        let world = world.with(|w| {
            w.daemon(OSD).replicas = 0;
            w.daemon(OSD).pods.clear();
        });
        check!(world.down(OSD).reported().plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
    }
}

#[test]
fn the_record_alone_never_makes_a_stop_ours() {
    // Somebody took our annotation off while the OSD was stopped.
    let world = World::stopped(OSD).with(|w| w.daemon(OSD).stopped_by = None);
    check!(world.plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
}

#[test]
fn a_deployment_that_was_deleted_while_we_had_it_stopped_is_made_again_from_the_kept_one() {
    let world = World::stopped(OSD).with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
    check!(world.plan(), Next::Do(Act::Restart { osd: OSD, .. }));
}

// ---- Stopping, Stopped

#[test]
fn a_stop_is_done_when_the_map_says_down_and_the_pod_is_gone() {
    let up = World::stopping(OSD);
    check!(up.plan(), Next::Wait(Wait::Down { osd: OSD }));
    let pod_gone = World::stopping(OSD).with(|w| w.daemon(OSD).pods.clear());
    check!(pod_gone.plan(), Next::Wait(Wait::Down { osd: OSD }));
    let down_with_pod = World::stopping(OSD).down(OSD).reported();
    check!(down_with_pod.plan(), Next::Wait(Wait::Down { osd: OSD }));
}

#[test]
fn stopped_and_safe_it_is_destroyed_by_its_old_fsid() {
    for osd in [BY_HAND, FILESTORE] {
        check!(World::stopped(osd).plan(), Next::Do(Act::Destroy { osd: id, fsid }) if *id == osd && *fsid == old(osd));
    }
}

#[test]
fn stopped_on_stale_statistics_it_is_neither_destroyed_nor_started() {
    let world = World::stopping(OSD).with(|w| w.daemon(OSD).pods.clear()).down(OSD);
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::StatisticsOld { .. }, .. }));
}

#[test]
fn stopped_under_a_flag_that_keeps_it_from_coming_back_it_is_started_again() {
    for flag in ["nodown", "noup", "norecover", "nobackfill", "pauserd"] {
        let set = |w: &mut World| w.seen.ceph.flags.extend([flag.to_owned()]);
        check!(turned_back(&World::stopped(OSD).with(set)), Next::Do(Act::Restart { osd: OSD, .. }));
        check!(
            World::destroyed(OSD).with(set).plan(),
            Next::Wait(Wait::UnsafeToWipe { reason: Reason::Flag { flag: named }, .. }) if named == flag
        );
    }
}

#[test]
fn an_osd_that_nodown_keeps_up_in_the_map_is_started_again_when_its_pod_is_gone() {
    let set = |w: &mut World| w.seen.ceph.flags.extend(["nodown".to_owned()]);
    check!(World::stopping(OSD).with(set).plan(), Next::Wait(Wait::Down { .. }));
    let gone = World::stopping(OSD).with(set).with(|w| w.daemon(OSD).pods.clear());
    check!(turned_back(&gone), Next::Do(Act::Restart { osd: OSD, .. }));
}

#[test]
fn stopped_and_no_longer_safe_it_is_started_again() {
    let world = World::stopped(OSD).down(OsdId(2)).reported();
    check!(turned_back(&world), Next::Do(Act::Restart { osd: OSD, .. }));
    // Decided and counted, it is done, whatever the gate says meanwhile.
    let counted = world.saved("turn-back").with(|w| w.seen.ceph = World::stopped(OSD).seen.ceph);
    check!(counted.plan(), Next::Do(Act::Restart { osd: OSD, .. }));
}

/// The turn back is counted; what is done then.
fn turned_back(world: &World) -> Next {
    world.clone().saved("turn-back").plan()
}

/// osd.0 was stopped, its neighbours became nearly full by it, and it serves again.
fn stopped_in_vain(world: World) -> World {
    let world = world.with(|w| {
        let id = w.record(OSD).id.clone();
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (0, Some(id));
        w.daemon(OSD).pods.clear();
        w.seen.ceph.health.insert("OSD_NEARFULL".to_owned());
    });
    let world = world.down(OSD).reported().saved("turn-back");
    check!(world.plan(), Next::Do(Act::Restart { osd: OSD, .. }));
    let world = world.with(|w| {
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (1, None);
        w.daemon(OSD).pods.push(crate::support::build::pod(OSD));
        w.seen.ceph.health.clear();
    });
    world.up(OSD).reported()
}

#[test]
fn a_stop_that_was_turned_back_is_meant_anew_before_it_is_done_again() {
    // Within the minute that an intent holds: else the next turn back would not be counted.
    let world = stopped_in_vain(World::intended(OSD)).saved("stop");
    assert_eq!((world.ledger.records[&OSD].restarts, &world.ledger.records[&OSD].turned_back), (1, &None));
    check!(world.plan(), Next::Do(Act::Stop { .. }));
}

#[test]
fn an_osd_whose_stop_was_turned_back_twice_is_left_alone_serving_with_its_flags_lifted() {
    let once = stopped_in_vain(World::intended(OSD)).saved("stop");
    let twice = stopped_in_vain(once);
    let next = twice.plan();
    assert!(
        quarantine(&next).is_some_and(|why| why.contains("2 times") && why.contains("OSD_NEARFULL")),
        "{next:#?}"
    );
    let mut world = twice.saved("quarantine");
    check!(world.plan(), Next::Do(Act::Unhush { osd: OSD, noout: true, noin: true }));
    (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
    // Tried again, it counts from nothing.
    let again = world.ledger.retried(OSD).unwrap();
    assert_eq!((again.records[&OSD].restarts, &again.records[&OSD].turned_back), (0, &None));
}

#[test]
fn stopped_with_its_node_away_it_is_waited_for_and_then_started_again() {
    let world = World::stopped(OSD)
        .with(|w| w.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().ready = false);
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::NodeNotReady { .. }, .. }));
    check!(turned_back(&world.minutes_later(3)), Next::Do(Act::Restart { osd: OSD, .. }));
}

#[test]
fn a_healthy_copy_is_not_kept_from_serving_by_a_gate_that_stays_unknown() {
    // The two other copies of PG 0 died after our Stop: nobody reports for it any more.
    let world = World::stopped(OSD).down(OsdId(2)).down(OsdId(4)).with(|w| {
        for n in 0..8 {
            w.pg(n).state.insert("stale".to_owned());
        }
    });
    check!(world.clone().minutes_later(2).plan(), Next::Wait(Wait::Gate { .. }));
    check!(turned_back(&world.clone().minutes_later(3)), Next::Do(Act::Restart { osd: OSD, .. }));
    // One that is open late is open.
    check!(World::stopped(OSD).minutes_later(60).plan(), Next::Do(Act::Destroy { .. }));
    // Destroyed, there is nothing to start.
    let destroyed = world.slot_destroyed(OSD).minutes_later(3).plan();
    assert!(!matches!(destroyed, Next::Do(_)), "{destroyed:#?}");
}

#[test]
fn a_stop_is_never_done_on_an_intent_that_is_a_minute_old() {
    let world = World::intended(OSD);
    check!(world.plan(), Next::Do(Act::Stop { .. }));
    assert_eq!(
        word(&world.minutes_later(1).plan()),
        Some("stop"),
        "what counts from the intent counts from the stop"
    );
}

#[test]
fn stopped_without_a_saved_proof_the_proof_is_saved_first() {
    let world = World::stopped(OSD).with(|w| w.record(OSD).evidence = None);
    assert_eq!(word(&world.plan()), Some("proof"));
}

// ---- Destroyed

#[test]
fn destroyed_with_the_old_data_there_it_is_rebuilt_by_a_saved_attempt_that_carries_the_proof() {
    let world = World::destroyed(OSD).saved("rebuild");
    check!(
        world.plan(),
        Next::Do(Act::Agent { request, .. })
            if request.task == NodeTask::Rebuild && request.attempt == 2 && request.evidence.is_some()
                && request.device_class.as_deref() == Some("hdd")
    );
}

#[test]
fn the_old_data_is_wiped_only_while_no_other_copy_lacks() {
    for world in [World::destroyed(OSD), World::destroyed(OSD).saved("rebuild")] {
        let unsafe_now = world.clone().down(OsdId(2)).reported().saved("barred");
        check!(
            unsafe_now.plan(),
            Next::Wait(Wait::UnsafeToWipe { osd: OSD, reason: Reason::OtherCopyLacks { .. } })
        );
        check!(
            world.down(OsdId(2)).saved("barred").plan(),
            Next::Wait(Wait::Gate { reason: Reason::StatisticsOld { .. }, .. })
        );
    }
}

#[test]
fn a_wipe_that_stays_unsafe_for_ten_minutes_halts_with_the_way_back() {
    // However long ago it was stopped.
    let world = World::destroyed(OSD).minutes_later(60).down(OsdId(2)).reported().saved("barred");
    check!(world.clone().minutes_later(9).plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    let world = world.minutes_later(10);
    let Next::Halt(halt) = world.plan() else { panic!("{:#?}", world.plan()) };
    assert!(halt.to_string().contains(&format!("ceph osd new {} 0", old(OSD))), "{halt}");
}

#[test]
fn a_wipe_whose_other_copies_nobody_knows_of_for_ten_minutes_halts_too() {
    let world = World::destroyed(OSD).pg_state(0, "stale+active+undersized").saved("barred");
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::Peering { .. }, .. }));
    check!(
        world.minutes_later(10).plan(),
        Next::Halt(Halt::UnsafeToWipe { reason: Reason::Peering { .. }, .. })
    );
}

#[test]
fn a_wipe_that_its_surroundings_forbid_waits_and_calls_nobody() {
    type Change = fn(&mut World);
    let changes: [Change; 7] = [
        |w| w.seen.kube.operator.as_mut().unwrap().replicas = 1,
        |w| w.seen.ceph.mixed_versions = true,
        |w| w.seen.kube.fence = Some("theirs".to_owned()),
        |w| w.seen.kube.rook_prepares.push("rook-ceph-osd-prepare-h2".to_owned()),
        |w| w.seen.kube.draining_failure_domain = Some("h3".to_owned()),
        |w| w.seen.ceph.flags.extend(["norecover".to_owned()]),
        |w| w.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().ready = false,
    ];
    for change in changes {
        let world = World::destroyed(OSD).minutes_later(1000).with(change);
        check!(world.plan(), Next::Wait(Wait::UnsafeToWipe { .. } | Wait::Gate { .. }));
        // Data that stands in the way as well is not hidden by it.
        let both = world.down(OsdId(2)).reported().saved("barred").minutes_later(10);
        check!(both.plan(), Next::Halt(Halt::UnsafeToWipe { reason: Reason::OtherCopyLacks { .. }, .. }));
    }
}

#[test]
fn the_minutes_of_an_unsafe_wipe_count_anew_after_a_retry_and_after_a_rebuild() {
    let lacks = |world: World| world.down(OsdId(2)).reported();
    let healed = |world: World| world.up(OsdId(2)).reported();
    // Unsafe for nine minutes, then a rebuild that fails and leaves the old data there.
    let world = healed(lacks(World::destroyed(OSD)).saved("barred").minutes_later(9));
    let world = world.rebuild_ended(OSD, Some(old_content(OSD)), failed());
    assert_eq!(world.ledger.records[&OSD].barred_since, None);
    let again = lacks(world.minutes_later(60)).saved("barred");
    check!(again.clone().minutes_later(9).plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    // The attempt was saved already when it became unsafe.
    let world = healed(lacks(World::destroyed(OSD).saved("rebuild")).saved("barred").minutes_later(9));
    let world = lacks(world.report(OSD, Some(old_content(OSD)), failed()).minutes_later(9));
    check!(world.plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    // Left alone, and tried again.
    let tried = again.with(|w| {
        w.record(OSD).quarantine =
            Some(osd_migrate::domain::ledger::Quarantine { why: String::new(), since: w.seen.at });
        w.ledger = w.ledger.retried(OSD).unwrap();
    });
    let tried = tried.minutes_later(60).report(OSD, Some(old_content(OSD)), None).saved("barred");
    check!(tried.plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
}

#[test]
fn the_ten_minutes_count_from_the_stop_that_was_done_and_not_from_one_that_was_undone() {
    // Stop was first meant an hour ago, undone, and is meant again now.
    let mut world = World::intended(OSD).minutes_later(60);
    world = world.saved("stop");
    check!(world.plan(), Next::Do(Act::Stop { .. }));
    assert_eq!(world.ledger.records[&OSD].stop_intended_at, Some(world.seen.at));
}

#[test]
fn with_the_old_data_gone_the_rebuild_is_the_cure_and_waits_for_no_gate() {
    for content in [tombstone(&World::destroyed(OSD).ledger.records[&OSD]), label(claim(OSD, 1), OSD, false)]
    {
        let world = World::destroyed(OSD).rebuild_ended(OSD, Some(content), failed());
        assert_eq!(word(&world.down(OsdId(2)).reported().plan()), Some("rebuild"));
    }
}

#[test]
fn a_rebuild_that_fails_three_times_is_left_alone_and_its_noout_lifted() {
    let mut world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    for _ in 0..3 {
        world = world.rebuild_ended(OSD, Some(gone.clone()), failed());
    }
    world = world.saved("quarantine");
    check!(world.plan(), Next::Do(Act::Unhush { osd: OSD, noout: true, noin: true }));
    (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
    check!(world.plan(), Next::Finished(s) if s.quarantined.len() == 1);
}

#[test]
fn an_osd_that_is_tried_again_is_looked_at_first_and_counts_from_nothing() {
    let mut world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    assert_eq!(world.ledger.retried(OSD), None, "it was not left alone");
    for _ in 0..3 {
        world = world.rebuild_ended(OSD, Some(gone.clone()), failed());
    }
    world = world.saved("quarantine");
    world.ledger = world.ledger.retried(OSD).unwrap();
    assert_eq!(agent(&world), NodeTask::Inspect);
    let world = world.report(OSD, Some(gone), None).saved("rebuild");
    assert_eq!(agent(&world), NodeTask::Rebuild);
    assert_eq!(world.ledger.records[&OSD].attempt.failures, 0);
}

#[test]
fn rebuilds_that_die_without_a_word_are_counted_through_the_looks_between_them() {
    let mut world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    for _ in 0..2 {
        world = world.saved("rebuild").job(OSD, JobState::Ended);
        world = world.saved("inspect").report(OSD, Some(gone.clone()), None);
    }
    world = world.saved("rebuild").job(OSD, JobState::Ended);
    assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
}

#[test]
fn a_rebuild_that_died_is_followed_by_a_look_and_not_by_a_guess() {
    let world = World::destroyed(OSD).saved("rebuild").job(OSD, JobState::Ended).saved("inspect");
    assert_eq!(agent(&world), NodeTask::Inspect);
    let again = world.report(OSD, Some(old_content(OSD)), None);
    // The old data is there after all: its gate is asked.
    let unsafe_now = again.clone().down(OsdId(2)).reported().saved("barred");
    check!(unsafe_now.plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    assert_eq!(word(&again.plan()), Some("rebuild"));
}

#[test]
fn what_is_not_ours_on_the_device_of_a_destroyed_slot_is_never_written_over() {
    let mut others_tombstone = tombstone(&World::destroyed(OSD).ledger.records[&OSD]);
    if let Content::Tombstone { old, .. } = &mut others_tombstone {
        *old = foreign();
    }
    for content in [
        Content::Blank,
        Content::Other { what: "LVM2_member".to_owned() },
        Content::NotFound { looked_at: String::new() },
        label(foreign(), OSD, true),
        label(foreign(), OSD, false),
        others_tombstone,
    ] {
        let world = World::destroyed(OSD).rebuild_ended(OSD, Some(content.clone()), failed());
        let world = looked_thrice(world, &content);
        assert!(quarantine(&world.plan()).is_some(), "{content:?}: {:#?}", world.plan());
    }
}

// ---- Claimed, Purged, Gone, Unplaced, Strayed, Undone, Unauthed

#[test]
fn a_slot_claimed_for_an_osd_that_was_not_finished_is_destroyed_again() {
    let fsid = claim(OSD, 1);
    for content in [
        label(fsid, OSD, false),
        tombstone(&World::destroyed(OSD).ledger.records[&OSD]),
        // Finished, but for an earlier claim.
        label(claim(OSD, 2), OSD, true),
    ] {
        let world = World::destroyed(OSD)
            .rebuild_ended(OSD, Some(content.clone()), failed())
            .report_claims(OSD, [fsid, claim(OSD, 2)])
            .slot_claimed(OSD, fsid);
        check!(world.plan(), Next::Do(Act::Destroy { osd: OSD, fsid: named }) if *named == fsid);
    }
}

#[test]
fn a_claim_that_booted_once_is_never_destroyed_for_what_its_device_shows() {
    let fsid = claim(OSD, 1);
    let world = World::destroyed(OSD)
        .rebuild_ended(OSD, Some(label(fsid, OSD, false)), failed())
        .slot_claimed(OSD, fsid)
        .with(|w| w.slot(OSD).state = SlotState::Exists);
    assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
}

#[test]
fn an_id_that_was_purged_under_our_claim_is_taken_back_by_the_claim_on_the_disk() {
    let world = World::destroyed(OSD)
        .rebuild_ended(OSD, Some(label(claim(OSD, 1), OSD, true)), None)
        .report_claims(OSD, [claim(OSD, 1), claim(OSD, 2)])
        .slot_gone(OSD);
    check!(world.plan(), Next::Do(Act::Reclaim { osd: OSD, claim: named }) if *named == claim(OSD, 1));
}

#[test]
fn an_id_that_was_purged_without_a_claim_of_ours_halts() {
    check!(
        World::destroyed(OSD).slot_gone(OSD).plan(),
        Next::Save { why: Saving::Attempt { task: NodeTask::Inspect }, .. }
            | Next::Halt(Halt::PurgedByOthers { osd: OSD })
    );
    let looked = World::stopped(OSD).slot_gone(OSD);
    check!(looked.plan(), Next::Halt(Halt::PurgedByOthers { osd: OSD }));
}

#[test]
fn an_id_that_was_purged_before_its_stop_is_told_of_and_forgotten() {
    let purged = |world: World| world.with(|w| w.daemon(OSD).pods.clear()).slot_gone(OSD).reported();
    for world in [World::recorded(OSD), World::proven(OSD), World::proven(OSD).keep(OSD)] {
        let mut world = purged(world).saved("purged-by-others");
        while matches!(world.plan(), Next::Do(Act::Sweep { .. })) {
            world.seen.kube.kept.clear();
            world.seen.kube.node_jobs.clear();
            world.seen.kube.reports.clear();
        }
        world = world.saved("closed");
        check!(world.plan(), Next::Finished(_));
    }
    // An agent that still looks is waited for.
    let busy = purged(World::recorded(OSD).job(OSD, JobState::Running));
    check!(busy.plan(), Next::Wait(Wait::Agent { .. }));
    // From the intent to stop on, it may have been stopped by us.
    check!(purged(World::intended(OSD)).plan(), Next::Halt(Halt::PurgedByOthers { .. }));
}

#[test]
fn a_place_that_was_lost_is_put_back_as_recorded() {
    let mut world = World::prepared(OSD).with(|w| w.slot(OSD).crush = None);
    let record = world.record(OSD).clone();
    check!(
        world.plan(),
        Next::Do(Act::RestoreCrush { osd: OSD, item, reweight, primary_affinity })
            if *item == record.crush && *reweight == record.reweight && *primary_affinity == record.primary_affinity
    );
}

/// A purge takes the per-OSD flags with it, and a first boot without noin resets the reweight.
#[test]
fn flags_that_were_lost_are_set_again_before_the_new_daemon_starts() {
    let world = World::prepared(OSD).saved("new").with(|w| {
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
    });
    check!(world.plan(), Next::Do(Act::Hush { osd: OSD, noout: true, noin: true }));
}

#[test]
fn a_stray_id_that_was_made_for_our_disk_is_purged_and_the_disk_rebuilt() {
    let stray = OsdId(6);
    let fsid = claim(OSD, 1);
    let strayed = || World::destroyed(OSD).rebuild_ended(OSD, Some(label(fsid, stray, true)), failed());
    let slot = |w: &mut World| {
        let mut slot = w.seen.ceph.slots[&OSD].clone();
        (slot.state, slot.fsid, slot.up) = (SlotState::New, Some(fsid), false);
        w.seen.ceph.slots.insert(stray, slot);
    };
    check!(strayed().with(slot).plan(), Next::Do(Act::PurgeStray { stray: id, fsid: named }) if *id == stray && *named == fsid);
    assert_eq!(word(&strayed().plan()), Some("rebuild"), "it is gone already");
    for change in [
        (|w: &mut World, s| w.slot(s).state = SlotState::Exists) as fn(&mut World, OsdId),
        |w, s| w.slot(s).up = true,
        |w, s| w.slot(s).fsid = Some(foreign()),
        |w, s| w.slot(s).state = SlotState::Destroyed,
    ] {
        let world = strayed().with(slot).with(|w| change(w, stray));
        check!(world.plan(), Next::Halt(Halt::StrayInUse { osd: OSD, stray: id }) if *id == stray);
    }
}

#[test]
fn a_finished_osd_whose_slot_was_destroyed_behind_it_gets_its_slot_back_and_nothing_is_wiped() {
    for world in [World::prepared(OSD), World::deployed(OSD), World::booted(OSD).down(OSD)] {
        let world = world.slot_destroyed(OSD).saved("give-back");
        assert_eq!(agent(&world), NodeTask::GiveBack);
    }
}

#[test]
fn a_finished_osd_without_a_key_goes_the_way_of_the_destroyed_one() {
    let world = World::prepared(OSD).with(|w| w.seen.ceph.auth.extend([(OSD, false)]));
    check!(world.plan(), Next::Do(Act::Destroy { osd: OSD, fsid }) if *fsid == claim(OSD, 1));
}

#[test]
fn a_key_that_was_not_asked_for_is_not_a_missing_one() {
    for world in [World::prepared(OSD), World::deployed(OSD)] {
        let world = world.with(|w| w.seen.ceph.auth.clear());
        check!(world.plan(), Next::Wait(Wait::FreshView));
    }
}

// ---- Prepared, Starting

#[test]
fn the_new_fsid_is_saved_before_it_is_deployed() {
    let mut world = World::prepared(OSD).saved("new");
    assert_eq!(world.record(OSD).new, Some(claim(OSD, 1)));
    assert!(world.record(OSD).claims.contains(&claim(OSD, 1)));
    check!(
        world.plan(),
        Next::Do(Act::Deploy(deploy))
            if deploy.fsid == claim(OSD, 1) && deploy.block_path == "/dev/disk/by-id/ata-disk-0"
                && deploy.store == "bluestore" && deploy.node == NodeName("h1".to_owned())
    );
    let gone = World::prepared(OSD).saved("new").with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
    check!(gone.plan(), Next::Do(Act::Deploy(_)));
}

#[test]
fn the_new_daemon_is_waited_for() {
    check!(World::deployed(OSD).plan(), Next::Wait(Wait::Up { osd: OSD, trouble: None }));
    let pulling =
        World::deployed(OSD).with(|w| w.daemon(OSD).pods[0].trouble = Some("ImagePullBackOff".to_owned()));
    check!(pulling.plan(), Next::Wait(Wait::Up { trouble: Some(why), .. }) if why == "ImagePullBackOff");
    let scaled = World::deployed(OSD).with(|w| w.daemon(OSD).replicas = 0);
    check!(scaled.plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
}

#[test]
fn a_new_daemon_that_restarted_three_times_is_left_alone_with_its_last_words() {
    let world = |restarts| {
        World::deployed(OSD).with(|w| {
            w.daemon(OSD).pods[0].restarts = restarts;
            w.daemon(OSD).pods[0].trouble = Some("exit 1: no block".to_owned());
        })
    };
    check!(world(2).plan(), Next::Wait(Wait::Up { .. }));
    let next = world(3).plan();
    assert!(quarantine(&next).is_some_and(|why| why.contains("no block")), "{next:#?}");
}

#[test]
fn a_deployment_that_starts_somebody_elses_osd_is_foreign() {
    for world in [World::prepared(OSD).saved("new"), World::deployed(OSD)] {
        let world = world.with(|w| w.daemon(OSD).fsid = Some(foreign()));
        assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
    }
}

#[test]
fn an_id_that_somebody_else_took_is_foreign_and_left_to_them() {
    for world in [World::destroyed(OSD), World::prepared(OSD), World::deployed(OSD)] {
        let next = world.slot_claimed(OSD, foreign()).plan();
        assert!(quarantine(&next).is_some_and(|why| why.contains(&foreign().to_string())), "{next:#?}");
    }
}

// ---- Settling, Settled

/// A daemon that booted under noin is still marked `new`: noin is lifted, and the mark with it, as soon as it is up.
fn noin_lifted(world: World) -> World {
    check!(world.plan(), Next::Do(Act::Unhush { osd: OSD, noout: false, noin: true }));
    world.with(|w| w.slot(OSD).noin = false)
}

/// The fence comes down next.
fn unfenced(world: World) -> World {
    check!(world.plan(), Next::Do(Act::Unfence { .. }));
    world.with(|w| w.seen.kube.fence = None).saved("unfenced")
}

#[test]
fn while_data_comes_back_rook_has_its_cluster_back_and_the_wait_has_numbers() {
    let world = unfenced(noin_lifted(World::booted(OSD)));
    check!(
        world.plan(),
        Next::Wait(Wait::ActiveClean { osd: OSD, pgs: 4, objects: 400, bytes }) if *bytes == 400 << 20
    );
}

#[test]
fn right_after_the_boot_statistics_that_do_not_know_it_yet_prove_nothing() {
    // The mgr still shows the sets without osd.0, from when it was down: no PG names it, so none of its PGs is unclean.
    let world = World::deployed(OSD).up(OSD).with(|w| {
        w.slot(OSD).metadata = Some(metadata("bluestore", OSD, false));
        w.slot(OSD).noin = false;
        w.ledger.run.fence = None;
        w.seen.kube.fence = None;
    });
    assert!(world.seen.ceph.pgs.values().all(|pg| !pg.up.contains(&OSD)));
    check!(world.plan(), Next::Wait(Wait::ActiveClean { .. }));
    // Nor where some PGs report already, and others not yet.
    let half = world.with(|w| {
        let epoch = w.seen.ceph.epoch;
        let pg = w.pg(0);
        (pg.state, pg.up, pg.acting, pg.reported_epoch) =
            (states("active+clean"), members(0), members(0), epoch);
    });
    check!(half.plan(), Next::Wait(Wait::ActiveClean { .. }));
}

#[test]
fn clean_since_before_its_last_boot_is_not_clean() {
    let world = World::filled(OSD);
    assert_eq!(word(&world.plan()), Some("closing"));
    let restarted =
        unfenced(noin_lifted(world.with(|w| w.slot(OSD).up_from = Epoch(w.seen.ceph.epoch.0 + 1))));
    check!(restarted.plan(), Next::Wait(Wait::ActiveClean { .. }));
}

#[test]
fn a_pg_that_it_should_hold_and_does_not_serve_is_not_settled() {
    let world = unfenced(noin_lifted(World::filled(OSD).with(|w| w.pg(0).acting.retain(|osd| *osd != OSD))));
    check!(world.plan(), Next::Wait(Wait::ActiveClean { .. }));
    let incomplete =
        unfenced(noin_lifted(World::filled(OSD).with(|w| drop(w.seen.ceph.pgs.remove(&pg_id(0))))));
    check!(incomplete.plan(), Next::Wait(Wait::ActiveClean { .. }));
}

#[test]
fn a_pg_that_is_gone_since_the_stop_holds_nothing_up() {
    let world = World::filled(OSD).with(|w| {
        w.seen.ceph.pgs.remove(&pg_id(0));
        w.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num -= 1;
    });
    assert_eq!(word(&world.plan()), Some("closing"));
}

#[test]
fn others_trouble_elsewhere_does_not_keep_it_from_being_settled() {
    let world = World::filled(OSD).pg_state(1, "active+undersized+degraded");
    assert_eq!(word(&world.plan()), Some("closing"));
}

#[test]
fn an_osd_that_others_took_out_meanwhile_is_not_settled_and_waits_with_the_command() {
    let out = World::filled(OSD).with(|w| {
        w.slot(OSD).is_in = false;
        w.slot(OSD).reweight = Weight(0);
        // Its PGs moved elsewhere, and are clean.
        for n in (0..8).filter(|n| members(*n).contains(&OSD)) {
            let pg = w.pg(n);
            pg.up = [1, 3, 5].map(OsdId).into();
            pg.acting.clone_from(&pg.up);
        }
    });
    let out = unfenced(noin_lifted(out));
    let Next::Wait(wait @ Wait::OutByOthers { osd: OSD, .. }) = out.plan() else {
        panic!("{:#?}", out.plan())
    };
    assert!(
        wait.to_string().contains("`ceph osd in 0` and `ceph osd reweight 0 0.899993896484375`"),
        "{wait}"
    );
    let plain = Wait::OutByOthers { osd: OSD, reweight: Weight::ONE }.to_string();
    assert!(plain.ends_with("`ceph osd in 0`"), "{plain}");
    // One that was out when it was recorded stays out.
    let was_out = out.with(|w| w.record(OSD).reweight = Weight(0));
    assert_eq!(word(&was_out.plan()), Some("closing"));
}

#[test]
fn an_osd_that_came_up_as_something_else_is_left_alone() {
    for change in [
        (|w: &mut World| w.slot(OSD).metadata = None) as fn(&mut World),
        |w| w.slot(OSD).metadata.as_mut().unwrap().store.0 = "filestore".to_owned(),
        |w| w.slot(OSD).metadata.as_mut().unwrap().device_mapper = true,
        |w| w.slot(OSD).metadata.as_mut().unwrap().on_partition = true,
        |w| w.slot(OSD).metadata.as_mut().unwrap().dedicated_db = true,
    ] {
        let world = World::filled(OSD).with(change);
        assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
    }
}

#[test]
fn settled_is_judged_by_the_record_and_not_by_todays_declaration() {
    let world = World::filled(OSD).with(|w| w.seen.kube.declaration.encrypted = true);
    assert_eq!(word(&world.plan()), Some("closing"));
}

#[test]
fn settled_closes_one_thing_a_turn_and_in_the_end_the_record_is_gone() {
    let mut world = World::filled(OSD).saved("closing");
    check!(world.plan(), Next::Do(Act::Unhush { osd: OSD, noout: true, noin: true }));
    (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
    world = unfenced(world);
    check!(world.plan(), Next::Do(Act::Sweep { osd: OSD, .. }));
    world.seen.kube.kept.clear();
    check!(world.plan(), Next::Do(Act::Sweep { .. }));
    world.seen.kube.node_jobs.clear();
    check!(world.plan(), Next::Do(Act::Sweep { .. }));
    world.seen.kube.reports.clear();
    let id = world.record(OSD).id.clone();
    world.seen.kube.leftovers.insert(id.clone(), ["Secret/x".to_owned()].into());
    check!(world.plan(), Next::Do(Act::Sweep { .. }));
    world.seen.kube.leftovers.remove(&id);
    world = world.saved("closed");
    assert!(world.ledger.records.is_empty());
    world.daemon(OSD).fsid = Some(claim(OSD, 1));
    check!(world.plan(), Next::Finished(s) if *s == osd_migrate::domain::next::Summary::default());
    assert_eq!(world.ledger.run.serial, 1, "names of records are never used again");
}

#[test]
fn a_closing_record_does_nothing_but_close_whatever_happens_to_the_osd() {
    let world = World::filled(OSD).saved("closing").down(OSD).reported();
    check!(world.plan(), Next::Do(Act::Unhush { .. }));
}

#[test]
fn a_fence_that_nobody_needs_is_taken_down_at_the_end() {
    let world = World::new().with(|w| {
        w.policy.skip = [BY_HAND, FILESTORE].into();
        w.ledger.run.fence = Some("osd-migrate-x".to_owned());
        w.seen.kube.fence = Some("osd-migrate-x".to_owned());
    });
    check!(world.plan(), Next::Do(Act::Unfence { value }) if value == "osd-migrate-x");
    let down = world.with(|w| w.seen.kube.fence = None).saved("unfenced");
    check!(down.plan(), Next::Finished(_));
}

// ---- OSDs that were left alone, and the rest

/// It was left alone, its flags lifted; the others may be migrated.
fn left_alone(world: World) -> World {
    world.with(|w| {
        let since = w.seen.at;
        w.record(OSD).quarantine =
            Some(osd_migrate::domain::ledger::Quarantine { why: "no luck".to_owned(), since });
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
        w.policy.select.clear();
    })
}

/// Nobody else is a candidate.
fn alone(world: World) -> World {
    world.with(|w| w.policy.skip = [FILESTORE].into())
}

#[test]
fn where_the_rest_waits_only_for_pgs_of_osds_that_were_left_alone_a_person_is_called() {
    for world in [World::stopped(OSD), World::destroyed(OSD), World::prepared(OSD)] {
        let world = left_alone(world);
        check!(world.plan(), Next::Halt(Halt::Quarantined { quarantined }) if quarantined.len() == 1);
        // Another PG lacks something too: that may pass.
        let other = world.pg_state(1, "active+undersized+degraded");
        check!(other.plan(), Next::Wait(Wait::Gate { osd: FILESTORE, reason: Reason::NotClean { .. } }));
    }
    // Ceph has healed without it.
    let healed = left_alone(World::destroyed(OSD)).with(|w| {
        for n in 0..8 {
            w.pg(n).state = states("active+clean");
        }
    });
    check!(healed.plan(), Next::Save { osd: Some(FILESTORE), why: Saving::Record, .. });
}

#[test]
fn pgs_of_an_osd_that_was_left_alone_and_is_up_are_waited_for() {
    // The new one fills; the old one serves again, and catches up.
    for world in [World::booted(OSD), World::intended(OSD).pg_state(0, "active+recovering+degraded")] {
        let world = left_alone(world);
        check!(world.plan(), Next::Wait(Wait::Gate { osd: FILESTORE, reason: Reason::NotClean { .. } }));
    }
}

#[test]
fn an_osd_that_was_left_alone_before_stop_does_not_keep_the_fence_and_one_past_stop_does() {
    // It was only meant to be stopped; or it was stopped and serves again.
    for world in [World::intended(OSD), stopped_in_vain(World::intended(OSD))] {
        check!(alone(left_alone(world)).plan(), Next::Do(Act::Unfence { .. }));
    }
    for world in [
        World::stopping(OSD),
        World::stopped(OSD),
        World::destroyed(OSD),
        World::prepared(OSD),
        World::deployed(OSD),
        World::booted(OSD),
    ] {
        check!(alone(left_alone(world)).plan(), Next::Finished(s) if s.quarantined.len() == 1);
    }
}
