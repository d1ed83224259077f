//! The phases Stopping and Stopped: a start still undoes them.

use chrono::TimeDelta;

use super::*;

// ---- Stopping, Stopped

#[test]
fn stop_is_done_when_the_osd_is_down_and_its_pod_is_gone() {
    let up = World::stopping(OSD);
    check!(up.plan(), Next::Wait(Wait::Down { osd: OSD }));
    let pod_gone = World::stopping(OSD).with(|w| w.daemon(OSD).pods.clear());
    check!(pod_gone.plan(), Next::Wait(Wait::Down { osd: OSD }));
    let down_with_pod = World::stopping(OSD).down(OSD).reported();
    check!(down_with_pod.plan(), Next::Wait(Wait::Down { osd: OSD }));
}

#[test]
fn stop_is_reverted_if_the_pod_does_not_end() {
    let mut lost = World::stopping(OSD).down(OSD).reported();
    if lost.ledger.records[&OSD].down_since.is_none() {
        lost = lost.saved("down");
    }
    lost.slot(OSD).noout = false; // unset after the first limit
    check!(lost.clone().minutes_later(29).plan(), Next::Wait(Wait::Down { osd: OSD }));
    let late = lost.minutes_later(30);
    check!(stop_reverted(&late), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
}

#[test]
fn stopped_osd_that_is_safe_is_destroyed_by_its_old_fsid() {
    for osd in [BY_HAND, FILESTORE] {
        check!(World::stopped(osd).plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: id, fsid, .. })) if *id == osd && *fsid == old(osd));
    }
}

#[test]
fn stopped_osd_waits_while_the_statistics_are_stale() {
    let world = World::stopping(OSD).with(|w| w.daemon(OSD).pods.clear()).down(OSD);
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::StatisticsOld { .. }, .. }));
}

#[test]
fn stopped_osd_is_restarted_if_a_flag_blocks_its_return() {
    for flag in ["nodown", "noup", "norecover", "nobackfill", "pauserd"] {
        let set = |w: &mut World| w.seen.ceph.flags.extend([flag.to_owned()]);
        check!(
            stop_reverted(&World::stopped(OSD).with(set)),
            Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. }))
        );
        check!(
            World::destroyed(OSD).with(set).plan(),
            Next::Wait(Wait::UnsafeToWipe { reason: Reason::Flag { flag: named, .. }, .. }) if named == flag
        );
    }
}

#[test]
fn osd_shown_up_by_nodown_is_restarted_when_its_pod_is_gone() {
    let set = |w: &mut World| w.seen.ceph.flags.extend(["nodown".to_owned()]);
    check!(World::stopping(OSD).with(set).plan(), Next::Wait(Wait::Down { .. }));
    let gone = World::stopping(OSD).with(set).with(|w| w.daemon(OSD).pods.clear());
    check!(stop_reverted(&gone), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
}

#[test]
fn osd_shown_up_by_nodown_of_its_host_is_restarted() {
    let set = |w: &mut World| w.slot(OSD).nodown = Some("h1".to_owned());
    check!(World::stopping(OSD).with(set).plan(), Next::Wait(Wait::Down { .. }));
    let gone = World::stopping(OSD).with(set).with(|w| w.daemon(OSD).pods.clear());
    check!(gone.plan(), Next::Save { why: Saving::RevertStop { why }, .. } if why.contains("unset-group nodown h1"));
    check!(stop_reverted(&gone), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
}

#[test]
fn noup_of_a_stopped_osd_reverts_its_stop_or_blocks_its_wipe() {
    let set = |w: &mut World| w.slot(OSD).noup = Some("osd.0".to_owned());
    check!(
        stop_reverted(&World::stopped(OSD).with(set)),
        Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. }))
    );
    check!(
        World::destroyed(OSD).with(set).plan(),
        Next::Wait(Wait::UnsafeToWipe { reason: Reason::Flag { on: Some(on), .. }, .. }) if on == "osd.0"
    );
}

/// Checks the stop of an OSD that something unknown keeps from being marked down.
#[test]
fn stop_is_reverted_if_the_osd_counts_as_up_without_a_pod() {
    let gone = World::stopping(OSD).with(|w| w.daemon(OSD).pods.clear());
    check!(gone.clone().minutes_later(2).plan(), Next::Wait(Wait::Down { osd: OSD }));
    let late = gone.minutes_later(3);
    check!(late.plan(), Next::Save { why: Saving::RevertStop { why }, .. } if why.contains("still counts it as up"));
    check!(stop_reverted(&late), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
}

#[test]
fn stopped_osd_that_is_no_longer_safe_is_restarted() {
    let world = World::stopped(OSD).down(OsdId(2)).reported();
    check!(stop_reverted(&world), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
    // A revert that is decided and counted is done, whatever the gate says meanwhile.
    let counted = world.saved("revert-stop").with(|w| w.seen.ceph = World::stopped(OSD).seen.ceph);
    check!(counted.plan(), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
}

/// Counts the reverted stop, and returns the next step.
fn stop_reverted(world: &World) -> Next {
    world.clone().saved("revert-stop").plan()
}

/// Returns the world after osd.0 was stopped, its neighbours became nearly full, and osd.0 serves again.
pub(super) fn stopped_in_vain(world: World) -> World {
    let world = world.with(|w| {
        let id = w.record(OSD).id.clone();
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (0, Some(id));
        w.daemon(OSD).pods.clear();
        w.seen.ceph.health.insert("OSD_NEARFULL".to_owned());
    });
    let world = world.down(OSD).reported().saved("down").saved("revert-stop");
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
    let world = world.with(|w| {
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (1, None);
        w.daemon(OSD).pods.push(crate::support::build::pod(OSD));
        w.seen.ceph.health.clear();
    });
    world.up(OSD).reported().saved("up")
}

#[test]
fn reverted_stop_is_intended_again_before_it_is_repeated() {
    // The stop follows after a pause: the cause of the failure may pass, and clients must not lose their OSD
    // twice within seconds.
    let world = stopped_in_vain(World::intended(OSD));
    check!(
        world.clone().minutes_later(1).plan(),
        Next::Wait(Wait::Gate { reason: Reason::StopReverted { .. }, .. })
    );
    let world = world.minutes_later(2).saved("stop");
    assert_eq!((world.ledger.records[&OSD].restarts, &world.ledger.records[&OSD].stop_reverted), (1, &None));
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Stop { .. })));
}

/// Checks that the pause after a reverted stop ends with the first gate, whose reason is then reported.
#[test]
fn gate_after_a_reverted_stop_is_reported_and_not_the_pause() {
    let world = stopped_in_vain(World::intended(OSD)).minutes_later(2).with(|w| {
        w.seen.ceph.health.insert("OSD_NEARFULL".to_owned());
    });
    let world = world.saved("blocked");
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::Full { .. }, .. }));
    let open = world.minutes_later(1).with(|w| w.seen.ceph.health.clear());
    assert_eq!(word(&open.plan()), Some("stop"));
}

#[test]
fn osd_with_two_reverted_stops_is_quarantined_and_flags_unset() {
    let once = stopped_in_vain(World::intended(OSD)).minutes_later(2).saved("stop");
    let twice = stopped_in_vain(once);
    let next = twice.plan();
    assert!(
        quarantine(&next).is_some_and(|why| why.contains("2 times") && why.contains("OSD_NEARFULL")),
        "{next:#?}"
    );
    let mut world = twice.saved("quarantine");
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: OSD, noout: true, noin: true })));
    (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
    // After a retry, the count starts at zero.
    let again = world.ledger.retried(OSD, world.seen.at).unwrap();
    assert_eq!((again.records[&OSD].restarts, &again.records[&OSD].stop_reverted), (0, &None));
}

#[test]
fn stopped_osd_waits_for_a_node_not_ready_then_is_restarted() {
    let world = World::stopped(OSD)
        .with(|w| w.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().ready = false);
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::NodeNotReady { .. }, .. }));
    check!(stop_reverted(&world.minutes_later(3)), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
}

#[test]
fn stopped_osd_is_restarted_if_its_gate_stays_unknown() {
    // The two other copies of PG 0 died after the Stop: no OSD reports for it any more.
    let world = World::stopped(OSD).down(OsdId(2)).down(OsdId(4)).with(|w| {
        for n in 0..8 {
            w.pg(n).state.insert("stale".to_owned());
        }
    });
    check!(world.clone().minutes_later(2).plan(), Next::Wait(Wait::Gate { .. }));
    check!(
        stop_reverted(&world.clone().minutes_later(3)),
        Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. }))
    );
    // A gate that opens late is open.
    check!(
        without_noout(World::stopped(OSD).minutes_later(60)).plan(),
        Next::Do(Act::Ceph(CephAct::Destroy { .. }))
    );
    // If the OSD is destroyed, there is nothing to start.
    let destroyed = world.slot_destroyed(OSD).minutes_later(3).plan();
    assert!(!matches!(destroyed, Next::Do(_)), "{destroyed:#?}");
}

#[test]
fn intent_to_stop_holds_however_long_an_iteration_takes() {
    for minutes in [0, 1, 60] {
        check!(World::intended(OSD).minutes_later(minutes).plan(), Next::Do(Act::Kube(KubeAct::Stop { .. })));
    }
}

#[test]
fn stopped_osd_without_a_proof_has_its_proof_saved_first() {
    let world = World::stopped(OSD).with(|w| w.record(OSD).evidence = None);
    assert_eq!(word(&world.plan()), Some("proof"));
}

#[test]
fn merged_pgs_are_dropped_and_reported_before_the_gate() {
    let merged = |w: &mut World| {
        w.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num = 4;
        w.seen.ceph.pgs.retain(|id, _| (0..4).any(|n| *id == pg_id(n)));
    };
    for world in [World::stopped(OSD), World::destroyed(OSD), World::booted(OSD)] {
        let world = world.with(merged);
        let next = world.plan();
        check!(&next, Next::Save { why: Saving::PgsGone { pgs }, .. } if *pgs == [pg_id(4), pg_id(6)].into());
        let Next::Save { osd, why, ledger } = &next else { panic!() };
        let text = osd_migrate::report::Event::Saved { osd: *osd, why, ledger }.to_string();
        assert!(text.ends_with("no longer exist: 1.4, 1.6 [pgs-gone]"), "{text}");
        let world = world.saved("pgs-gone");
        assert_eq!(world.ledger.records[&OSD].pgs, [pg_id(0), pg_id(2)].into());
        assert_ne!(word(&world.plan()), Some("pgs-gone"));
        // The limits of the OSD go on: a pool may merge its PGs one by one, for hours.
        let later = world.clone().minutes_later(9).with(|w| w.record(OSD).pgs.extend([pg_id(5)]));
        assert_eq!(
            later.saved("pgs-gone").ledger.records[&OSD].saved_at,
            world.ledger.records[&OSD].saved_at
        );
    }
    check!(
        World::stopped(OSD).with(merged).saved("pgs-gone").plan(),
        Next::Do(Act::Ceph(CephAct::Destroy { .. }))
    );
    // Before Stop the PGs are saved again with the intent.
    assert_eq!(word(&World::intended(OSD).with(merged).plan()), Some("stop"));
}

#[test]
fn limits_of_a_down_osd_begin_with_the_process_of_the_run() {
    let agent = without_noout(World::destroyed(OSD).saved("rebuild").job(OSD, JobState::Running));
    let daemon = without_noout(World::deployed(OSD));
    for (world, limit) in [(agent, 10), (daemon, 15)] {
        let long_ago = world.minutes_later(300);
        assert!(quarantine(&long_ago.plan()).is_some(), "{:#?}", long_ago.plan());
        let began = |minutes| {
            let since = long_ago.seen.at - TimeDelta::minutes(minutes);
            long_ago.clone().with(|w| w.policy.at_work_since = Some(since))
        };
        check!(began(limit - 1).plan(), Next::Wait(_));
        assert!(quarantine(&began(limit).plan()).is_some());
    }
}
