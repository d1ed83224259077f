//! The phase Destroyed: the wipe and the rebuild.

use osd_migrate::domain::observation::{Pg, Pool};

use super::agents::{inspected_again, inspected_thrice};
use super::*;

// ---- Destroyed

#[test]
fn destroyed_osd_with_its_old_data_is_rebuilt_with_the_proof() {
    let world = World::destroyed(OSD).saved("rebuild");
    check!(
        world.plan(),
        Next::Do(Act::Node(NodeAct::Agent { request, .. }))
            if request.task == NodeTask::Rebuild && request.attempt == 2 && request.evidence.is_some()
                && request.device_class.as_deref() == Some("hdd")
    );
}

#[test]
fn old_data_is_wiped_only_while_no_other_replica_is_missing() {
    for world in [World::destroyed(OSD), World::destroyed(OSD).saved("rebuild")] {
        let unsafe_now = world.clone().down(OsdId(2)).reported().saved("wipe-blocked");
        check!(
            unsafe_now.plan(),
            Next::Wait(Wait::UnsafeToWipe { osd: OSD, reason: Reason::OtherReplicaMissing { .. } })
        );
        check!(
            world.down(OsdId(2)).saved("wipe-blocked").plan(),
            Next::Wait(Wait::Gate { reason: Reason::StatisticsOld { .. }, .. })
        );
    }
}

#[test]
fn wipe_unsafe_for_ten_minutes_halts_with_recovery_command() {
    // However long ago the OSD was stopped.
    let long = without_noout(World::destroyed(OSD).minutes_later(60));
    let world = long.down(OsdId(2)).reported().saved("wipe-blocked");
    check!(world.clone().minutes_later(9).plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    let world = world.minutes_later(10);
    let Next::Halt(halt) = world.plan() else { panic!("{:#?}", world.plan()) };
    assert!(halt.to_string().contains(&format!("ceph osd new {} 0", old(OSD))), "{halt}");
}

/// Checks two OSDs in parallel: a run that ended would leave the second one down.
#[test]
fn halt_waits_until_no_other_osd_in_progress_is_down() {
    let long = without_noout(World::destroyed(OSD).minutes_later(60));
    let unsafe_now = long.down(OsdId(2)).reported().saved("wipe-blocked").minutes_later(10);
    check!(unsafe_now.clone().plan(), Next::Halt(Halt::UnsafeToWipe { osd: OSD, .. }));
    let other = World::deployed(FILESTORE);
    let both = unsafe_now.with(|w| {
        let slot = other.seen.ceph.slots[&FILESTORE].clone();
        w.seen.ceph.slots.insert(FILESTORE, slot);
        w.seen.kube.daemons.insert(FILESTORE, other.seen.kube.daemons[&FILESTORE].clone());
        w.slot(FILESTORE).noout = false;
        let record = other.ledger.records[&FILESTORE].clone();
        let record = Record { saved_at: Some(w.seen.at), noout_lifted: true, ..record };
        w.ledger.records.insert(FILESTORE, record);
        let reports = other.seen.kube.reports.iter().map(|(name, report)| (name.clone(), report.clone()));
        w.seen.kube.reports.extend(reports);
    });
    check!(both.plan(), Next::Wait(Wait::UnsafeToWipe { osd: OSD, .. } | Wait::Up { osd: FILESTORE, .. }));
}

/// Checks an agent whose image can't be pulled: another OSD dies before it starts.
#[test]
fn rebuild_that_has_not_started_is_dropped_if_a_replica_is_missing() {
    let begun = World::destroyed(OSD).saved("rebuild");
    let waiting = |world: World, state| world.job(OSD, state).down(OsdId(2)).reported();
    check!(waiting(begun.clone(), JobState::Waiting).plan(), Next::Do(Act::Node(NodeAct::DropAgent { .. })));
    check!(waiting(begun.clone(), JobState::Running).plan(), Next::Wait(Wait::Agent { .. }));
    check!(begun.job(OSD, JobState::Waiting).plan(), Next::Wait(Wait::Agent { .. }));
}

#[test]
fn destroyed_osd_behind_another_image_is_quarantined() {
    let changed = |w: &mut World| w.seen.kube.rook_image = Some("ceph:before".to_owned());
    let world = without_noout(World::destroyed(OSD)).with(changed).saved("blocked");
    check!(world.plan(), Next::Wait(Wait::UnsafeToWipe { reason: Reason::ImageChanged { .. }, .. }));
    // The time of data that blocks the wipe is another one.
    let peers = world.clone().minutes_later(11).with(|w| w.seen.kube.rook_image = None);
    let peers = peers.pg_state(0, "peering");
    check!(peers.saved("wipe-blocked").plan(), Next::Wait(Wait::UnsafeToWipe { .. } | Wait::Gate { .. }));
    let late = world.minutes_later(15).plan();
    assert!(quarantine(&late).is_some_and(|why| why.contains("Declare ceph:before again")), "{late:#?}");
}

/// Returns a world in which another OSD is down that shares no PG with the destroyed one.
fn another_is_down() -> World {
    without_noout(World::destroyed(OSD).minutes_later(60)).down(OsdId(1)).reported()
}

#[test]
fn destroyed_osd_on_a_lost_node_holds_up_no_other() {
    let ready = |ready| {
        move |w: &mut World| w.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().ready = ready
    };
    let lost = World::destroyed(OSD).with(ready(false)).saved("blocked");
    check!(lost.plan(), Next::Wait(Wait::Gate { reason: Reason::NodeNotReady { .. }, .. }));
    let waited = lost.clone().minutes_later(14);
    assert_ne!(word(&waited.plan()), Some("quarantine"));
    let late = without_noout(lost.minutes_later(15)).saved("quarantine");
    // A person retries it when the node is back.
    let mut again = late.with(ready(true));
    again.ledger = again.ledger.retried(OSD, again.seen.at).unwrap();
    assert!(again.ledger.records[&OSD].blocked_since.is_none());
    assert_ne!(word(&again.plan()), Some("quarantine"));
}

#[test]
fn wipe_blocked_by_pgs_of_other_osds_waits_and_never_halts() {
    let world = another_is_down().minutes_later(1000);
    check!(
        world.plan(),
        Next::Wait(Wait::UnsafeToWipe { osd: OSD, reason: Reason::OtherReplicaMissing { .. } })
    );
    let peering = without_noout(World::destroyed(OSD).minutes_later(60)).pg_state(1, "peering");
    check!(peering.plan(), Next::Wait(Wait::Gate { osd: OSD, reason: Reason::Peering { .. } }));
    // A PG that the old OSD served lacks another replica, too: the old data may be needed.
    let both = world.down(OsdId(2)).reported().saved("wipe-blocked");
    check!(both.clone().minutes_later(9).plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    check!(both.minutes_later(10).plan(), Next::Halt(Halt::UnsafeToWipe { .. }));
}

#[test]
fn unsafe_wipe_timer_restarts_after_pgs_of_other_osds() {
    let own = another_is_down().down(OsdId(2)).reported().saved("wipe-blocked").minutes_later(9);
    let others = own.up(OsdId(2)).reported().saved("wipe-blocked");
    assert_eq!(others.ledger.records[&OSD].wipe_blocked_since, None);
    check!(others.clone().minutes_later(60).plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    let again = others.minutes_later(60).down(OsdId(2)).reported().saved("wipe-blocked");
    check!(again.minutes_later(9).plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
}

#[test]
fn wipe_blocked_by_a_pg_that_has_no_other_osd_to_wait_for_halts() {
    let short = without_noout(World::destroyed(OSD).minutes_later(60)).with(|w| {
        let pg = w.pg(1);
        (pg.state, pg.degraded) = (states("active+undersized+degraded"), pg.objects);
        (pg.up, pg.acting) = ([2, 4].map(OsdId).into(), [2, 4].map(OsdId).into());
    });
    // CRUSH places it on the destroyed OSD, and on no other one that is down.
    check!(short.clone().saved("rebuild").plan(), Next::Do(Act::Node(NodeAct::Agent { .. })));
    let short = short.with(|w| (w.slot(OsdId(1)).state, w.slot(OsdId(1)).up) = (SlotState::Destroyed, false));
    let short = short.saved("wipe-blocked").minutes_later(10);
    check!(short.clone().plan(), Next::Halt(Halt::UnsafeToWipe { .. }));
    // An OSD that is down may come back.
    let down = short.down(OsdId(1)).reported().with(|w| w.slot(OsdId(1)).state = SlotState::Exists);
    check!(down.saved("wipe-blocked").plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
}

#[test]
fn wipe_with_replicas_unknown_for_ten_minutes_halts() {
    let world = World::destroyed(OSD).pg_state(0, "stale+active+undersized").saved("wipe-blocked");
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::Peering { .. }, .. }));
    // After the halt nothing else lifts its noout.
    let halts = world.minutes_later(10).saved("noout-lifted");
    check!(halts.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: OSD, noout: true, noin: false })));
    check!(
        without_noout(halts).plan(),
        Next::Halt(Halt::UnsafeToWipe { reason: Reason::Peering { .. }, .. })
    );
}

/// Doubles the PGs of the pool: each new PG is on the OSDs of its parent.
fn split(world: &mut World) {
    world.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num = 16;
    for n in 0..8 {
        let parent = world.seen.ceph.pgs[&pg_id(n)].clone();
        world.seen.ceph.pgs.insert(pg_id(n + 8), parent);
    }
}

#[test]
fn split_after_the_stop_blocks_no_wipe() {
    for world in [World::stopped(OSD), World::destroyed(OSD).saved("rebuild")] {
        let world = world.with(split);
        assert!(matches!(
            world.plan(),
            Next::Do(Act::Ceph(CephAct::Destroy { .. }) | Act::Node(NodeAct::Agent { .. }))
        ));
        // Another replica of a young PG is missing too.
        let unsafe_now = world.down(OsdId(2)).reported().plan();
        check!(unsafe_now, Next::Save { why: Saving::WipeBlocked | Saving::RevertStop { .. }, .. });
    }
}

#[test]
fn pool_created_after_the_stop_blocks_no_wipe() {
    let create = |w: &mut World| {
        let pool = w.seen.ceph.pools[&POOL].clone();
        w.seen.ceph.pools.insert(9, Pool { pg_num: 1, ..pool });
        let pg = Pg { pool: 9, objects: 0, degraded: 0, ..w.seen.ceph.pgs[&pg_id(0)].clone() };
        w.seen.ceph.pgs.insert("9.0".parse::<PgId>().unwrap(), pg);
    };
    let world = World::destroyed(OSD).saved("rebuild").with(create);
    check!(world.plan(), Next::Do(Act::Node(NodeAct::Agent { request, .. })) if request.task == NodeTask::Rebuild);
}

#[test]
fn split_after_a_merge_blocks_no_wipe() {
    let merged = |w: &mut World| {
        w.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num = 4;
        w.seen.ceph.pgs.retain(|id, _| (0..4).any(|n| *id == pg_id(n)));
    };
    let again = |w: &mut World| {
        w.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num = 8;
        for n in 0..4 {
            let parent = w.seen.ceph.pgs[&pg_id(n)].clone();
            w.seen.ceph.pgs.insert(pg_id(n + 4), parent);
        }
    };
    let world = World::destroyed(OSD).saved("rebuild").with(merged).saved("pgs-gone").with(again);
    check!(world.plan(), Next::Do(Act::Node(NodeAct::Agent { request, .. })) if request.task == NodeTask::Rebuild);
}

#[test]
fn wipe_is_never_blocked_by_remapped_pgs_that_are_clean() {
    let world = World::destroyed(OSD).saved("rebuild").pg_state(0, "active+clean+remapped").with(|w| {
        let pg = w.pg(0);
        (pg.acting, pg.degraded) = ([1, 2, 4].map(OsdId).into(), 0);
    });
    check!(world.plan(), Next::Do(Act::Node(NodeAct::Agent { request, .. })) if request.task == NodeTask::Rebuild);
}

#[test]
fn wipe_blocked_by_the_surroundings_waits_and_never_halts() {
    type Change = fn(&mut World);
    let changes: [Change; 7] = [
        |w| w.seen.kube.operator.as_mut().unwrap().replicas = 1,
        |w| w.seen.ceph.releases = Releases::Several,
        |w| w.seen.kube.fence = Some("theirs".to_owned()),
        |w| w.seen.kube.rook_prepares.push(prepare(None)),
        |w| w.seen.kube.rook_prepares.push(prepare(Some(&NodeName("h1".to_owned())))),
        |w| w.seen.kube.draining_failure_domain = Some("h3".to_owned()),
        |w| w.seen.ceph.flags.extend(["norecover".to_owned()]),
    ];
    for change in changes {
        let world = without_noout(World::destroyed(OSD).minutes_later(1000)).with(change);
        check!(world.plan(), Next::Wait(Wait::UnsafeToWipe { .. } | Wait::Gate { .. }));
        // The halt also reports data that blocks the wipe as well.
        let both = world.down(OsdId(2)).reported().saved("wipe-blocked").minutes_later(10);
        check!(
            both.plan(),
            Next::Halt(Halt::UnsafeToWipe { reason: Reason::OtherReplicaMissing { .. }, .. })
        );
    }
}

#[test]
fn unsafe_wipe_timer_restarts_after_a_retry_and_a_rebuild() {
    let undersized = |world: World| world.down(OsdId(2)).reported();
    let healed = |world: World| world.up(OsdId(2)).reported();
    // Unsafe for nine minutes, then a rebuild that fails and leaves the old data in place.
    let world = healed(undersized(World::destroyed(OSD)).saved("wipe-blocked").minutes_later(9));
    let world = world.saved("wipe-blocked");
    let world = world.rebuild_ended(OSD, Some(old_content(OSD)), failed());
    assert_eq!(world.ledger.records[&OSD].wipe_blocked_since, None);
    let again = undersized(without_noout(world.minutes_later(60))).saved("wipe-blocked");
    check!(again.clone().minutes_later(9).plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    // The attempt was saved already when it became unsafe.
    let world =
        healed(undersized(World::destroyed(OSD).saved("rebuild")).saved("wipe-blocked").minutes_later(9));
    let world = world.saved("wipe-blocked");
    let world = undersized(world.report(OSD, Some(old_content(OSD)), failed()).minutes_later(9));
    check!(without_noout(world).saved("wipe-blocked").plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    // An agent that was dropped before it started: the gate was open in between.
    let flaps = undersized(World::destroyed(OSD).saved("rebuild")).saved("wipe-blocked").minutes_later(9);
    let later = undersized(healed(flaps).saved("wipe-blocked").minutes_later(5)).saved("wipe-blocked");
    check!(without_noout(later.minutes_later(9)).plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    // Quarantined, and tried again.
    let tried = again.with(|w| {
        w.record(OSD).quarantine =
            Some(osd_migrate::domain::ledger::Quarantine { why: String::new(), since: w.seen.at });
        w.ledger = w.ledger.retried(OSD, w.seen.at).unwrap();
    });
    let tried = tried.minutes_later(60).report(OSD, Some(old_content(OSD)), None).saved("wipe-blocked");
    check!(tried.plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
}

#[test]
fn down_since_counts_from_the_stop_and_not_from_its_intent() {
    // Stop was intended an hour ago: the time counts from when the OSD is seen stopped.
    let world = World::intended(OSD).minutes_later(60);
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Stop { .. })));
    let id = world.ledger.records[&OSD].id.clone();
    let mut world =
        world.with(|w| (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (0, Some(id))).saved("down");
    assert_eq!(world.ledger.records[&OSD].down_since, Some(world.seen.at));
    world.daemon(OSD).replicas = 0;
}

#[test]
fn rebuild_waits_for_no_gate_when_the_old_data_is_gone() {
    for content in
        [tombstone(&World::destroyed(OSD).ledger.records[&OSD]), label(issued_fsid(OSD, 1), OSD, false)]
    {
        let world = World::destroyed(OSD).rebuild_ended(OSD, Some(content), failed());
        assert_eq!(word(&world.down(OsdId(2)).reported().plan()), Some("rebuild"));
    }
}

#[test]
fn rebuild_that_fails_repeatedly_quarantines_and_unsets_noout() {
    let mut world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    for _ in 0..4 {
        world = world.rebuild_ended(OSD, Some(gone.clone()), failed());
    }
    world = world.saved("quarantine");
    // Its noin stays: it preserves the reweight for the first boot.
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: OSD, noout: true, noin: false })));
    world.slot(OSD).noout = false;
    check!(world.plan(), Next::Finished(s) if s.quarantined.len() == 1);
}

#[test]
fn retried_osd_is_inspected_first_and_its_failures_are_reset() {
    let mut world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    assert_eq!(world.ledger.retried(OSD, world.seen.at), None, "it was not quarantined");
    assert_eq!(world.ledger.all_retried(&[OSD, OsdId(4)], world.seen.at), Err(OSD));
    for _ in 0..4 {
        world = world.rebuild_ended(OSD, Some(gone.clone()), failed());
    }
    world = world.saved("quarantine");
    assert_eq!(world.ledger.all_retried(&[OSD, OsdId(4)], world.seen.at), Err(OsdId(4)));
    assert_eq!(
        world.ledger.all_retried(&[OSD, OSD], world.seen.at).ok(),
        world.ledger.retried(OSD, world.seen.at)
    );
    world.ledger = world.ledger.retried(OSD, world.seen.at).unwrap();
    assert_eq!(agent(&world), NodeTask::Inspect);
    let world = world.report(OSD, Some(gone), None).saved("rebuild");
    assert_eq!(agent(&world), NodeTask::Rebuild);
    assert_eq!(world.ledger.records[&OSD].attempt.failures, 0);
}

#[test]
fn rebuilds_without_a_report_are_counted_across_inspections() {
    let mut world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    for _ in 0..3 {
        world = world.saved("rebuild").job(OSD, JobState::Ended);
        world = world.saved("inspect").report(OSD, Some(gone.clone()), None);
    }
    world = world.saved("rebuild").job(OSD, JobState::Ended);
    assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
}

#[test]
fn rebuild_without_a_report_is_followed_by_an_inspection() {
    let world = World::destroyed(OSD).saved("rebuild").job(OSD, JobState::Ended).saved("inspect");
    assert_eq!(agent(&world), NodeTask::Inspect);
    let again = world.report(OSD, Some(old_content(OSD)), None);
    // The old data still exists: its gate is asked.
    let unsafe_now = again.clone().down(OsdId(2)).reported().saved("wipe-blocked");
    check!(unsafe_now.plan(), Next::Wait(Wait::UnsafeToWipe { .. }));
    assert_eq!(word(&again.plan()), Some("rebuild"));
}

#[test]
fn foreign_content_of_a_destroyed_slot_is_never_overwritten() {
    let mut others_tombstone = tombstone(&World::destroyed(OSD).ledger.records[&OSD]);
    if let Content::Tombstone { old, .. } = &mut others_tombstone {
        *old = foreign();
    }
    for content in [
        Content::Blank,
        Content::Other { what: "LVM2_member".to_owned() },
        Content::NotFound { inspected: String::new() },
        label(foreign(), OSD, true),
        label(foreign(), OSD, false),
        others_tombstone,
    ] {
        let world = World::destroyed(OSD).rebuild_ended(OSD, Some(content.clone()), failed());
        // A blank device with an issued fsid would have nothing to overwrite.
        let issued =
            if content == Content::Blank { [].into() } else { BTreeSet::from([issued_fsid(OSD, 1)]) };
        let world = inspected_again(inspected_thrice(world.report_issued(OSD, issued), &content), &content);
        assert!(quarantine(&world.plan()).is_some(), "{content:?}: {:#?}", world.plan());
    }
}

#[test]
fn destroyed_osd_that_is_up_is_quarantined_with_the_command() {
    let revived = |world: World| world.with(|w| w.slot(OSD).up = true);
    for world in [World::destroyed(OSD), World::destroyed(OSD).saved("rebuild")] {
        check!(revived(world).plan(), Next::Save { why: Saving::Quarantine { why }, .. }
            if why.contains("destroyed, but up") && why.contains("ceph auth rm osd.0"));
    }
}
