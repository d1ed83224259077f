//! Node agents: the phases Unproven and Busy.

use chrono::TimeDelta;

use super::*;

// ---- Unproven: inspection

#[test]
fn recorded_osd_is_inspected_first_and_without_a_fence() {
    let world = World::recorded(OSD);
    check!(
        world.plan(),
        Next::Do(Act::Node(NodeAct::Agent { request, image, data_dir, .. }))
            if request.task == NodeTask::Inspect && request.attempt == 1 && request.evidence.is_none()
                && request.old == old(OSD) && request.node == NodeName("h1".to_owned())
                && image == "ceph:16" && data_dir == "/var/lib/rook"
    );
}

#[test]
fn proof_of_the_first_inspection_is_saved() {
    let world = World::recorded(OSD).report(OSD, Some(old_content(OSD)), None);
    let Next::Save { ledger, why: Saving::Proof, .. } = world.plan() else { panic!("{:#?}", world.plan()) };
    assert_eq!(ledger.records[&OSD].evidence, Some(crate::support::build::evidence(OSD)));
}

#[test]
fn node_that_can_not_rebuild_quarantines_the_osd_before_stop() {
    let world = |change: fn(&mut osd_migrate::domain::inspection::NodeReport)| {
        World::recorded(OSD).report_with(OSD, change)
    };
    for (world, words) in [
        (
            world(|r| r.inspection.as_mut().unwrap().capability.missing_tools = ["sgdisk".to_owned()].into()),
            "sgdisk",
        ),
        (world(|r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false), "--osd-id"),
        (world(|r| r.inspection.as_mut().unwrap().evidence = None), "proof of its identity"),
        (
            world(|r| r.inspection.as_mut().unwrap().evidence.as_mut().unwrap().usable_bytes = GIB),
            "could use 870.4 MiB",
        ),
    ] {
        let next = world.plan();
        assert!(quarantine(&next).is_some_and(|why| why.contains(words)), "{words}: {next:#?}");
    }
}

/// Checks the retry after the mons refuse the key, which is limited.
///
/// Rook 1.19 and later delete the key after a reconcile, which may be between the observation and the agent's
/// start.
#[test]
fn bootstrap_key_refused_by_the_mons_has_limited_retries() {
    let refused = |world: World| {
        world.report_with(OSD, |r| {
            let can = &mut r.inspection.as_mut().unwrap().capability;
            (can.key_accepted, can.key_trouble) = (false, Some("`ceph` failed with 13: EACCES".to_owned()));
        })
    };
    let mut world = refused(World::recorded(OSD));
    for number in 2..=3 {
        check!(world.plan(), Next::Save { why: Saving::Attempt { task: NodeTask::Inspect, after: Some(why) }, .. }
            if why.contains("EACCES"));
        world = world.saved("inspect");
        // The key is gone by now: it is created again first.
        world.seen.ceph.bootstrap = Some(false);
        check!(world.plan(), Next::Save { why: Saving::Bootstrap { ours: true }, .. });
        world.seen.ceph.bootstrap = Some(true);
        check!(world.plan(), Next::Do(Act::Node(NodeAct::Agent { request, .. })) if request.attempt == number);
        world = refused(world);
    }
    let last = world.plan();
    let why = quarantine(&last).unwrap();
    assert!(why.contains("ceph auth get client.bootstrap-osd") && why.contains("EACCES"), "{why}");
    world.report_with(OSD, |_| {}).saved("proof");
}

#[test]
fn osd_with_a_device_that_contradicts_its_class_is_quarantined() {
    let world = World::recorded(OSD).report_with(OSD, |r| {
        let evidence = r.inspection.as_mut().unwrap().evidence.as_mut().unwrap();
        if let Proof::BluestoreLabel { activatable, .. } = &mut evidence.proof {
            *activatable = true;
        }
    });
    assert!(quarantine(&world.plan()).unwrap().contains("new Deployment"));
}

#[test]
fn proof_that_names_another_osd_or_cluster_is_rejected() {
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
                    | Proof::Partitions { osd_fsid, whoami, cluster, .. } => {
                        change(osd_fsid, whoami, cluster);
                    }
                    Proof::Volume { .. }
                    | Proof::Luks { .. }
                    | Proof::Directory { .. }
                    | Proof::Available { .. } => {
                        unreachable!("neither has such a proof")
                    }
                }
            });
            let next = world.plan();
            assert!(quarantine(&next).is_some(), "{osd}: {next:#?}");
        }
    }
}

#[test]
fn osd_with_foreign_device_content_is_quarantined_before_stop() {
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
        Content::NotFound { inspected: "sdb".to_owned() },
        label(foreign(), OSD, true),
        label(old(OSD), OsdId(9), true),
        other_cluster,
    ] {
        let world = inspected_thrice(World::recorded(OSD).report(OSD, Some(content.clone()), None), &content);
        let next = world.plan();
        let what = match content {
            Content::NotFound { .. } => "its disk was not found on node h1: sdb. ",
            _ => "differs from the record",
        };
        assert!(quarantine(&next).is_some_and(|why| why.contains(what)), "{content:?}: {next:#?}");
    }
}

/// Returns the world after two more inspections that report the same content; meanwhile only inspections are
/// done.
pub(super) fn inspected_thrice(mut world: World, content: &Content) -> World {
    for _ in 0..2 {
        world = world.saved("inspect");
        assert_eq!(agent(&world), NodeTask::Inspect);
        world = world.report(OSD, Some(content.clone()), None);
    }
    world
}

/// Returns the world after one more inspection: after the stop there are four attempts.
pub(super) fn inspected_again(world: World, content: &Content) -> World {
    world.saved("inspect").report(OSD, Some(content.clone()), None)
}

#[test]
fn device_not_found_by_one_inspection_is_inspected_again() {
    let lost = Content::NotFound { inspected: "sdb".to_owned() };
    // Before Stop: the next inspection proves it.
    let world = World::recorded(OSD).report(OSD, Some(lost.clone()), None).saved("inspect");
    assert_eq!(word(&world.report(OSD, Some(old_content(OSD)), None).plan()), Some("proof"));
    // After Stop: the rebuild could not read what it had written, the next inspection can.
    let world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    let world = world.rebuild_ended(OSD, Some(lost), failed()).saved("inspect");
    assert_eq!(word(&world.report(OSD, Some(gone), None).plan()), Some("rebuild"));
}

#[test]
fn rebuilt_osd_whose_device_is_never_found_is_quarantined() {
    let lost = Content::NotFound { inspected: "sdb".to_owned() };
    let world = World::destroyed(OSD).rebuild_ended(OSD, Some(lost.clone()), None);
    let next = inspected_again(inspected_thrice(world, &lost), &lost).plan();
    let way = "; if it is dead, remove the OSD: osd-migrate -n NAMESPACE remove osd.0";
    assert!(quarantine(&next).is_some_and(|why| why.ends_with(way)), "{next:#?}");
}

#[test]
fn stopped_osd_without_its_device_is_restarted_and_quarantined() {
    let lost = Content::NotFound { inspected: "sdb".to_owned() };
    let world = World::stopped(OSD).report(OSD, Some(lost.clone()), None);
    let world = inspected_again(inspected_thrice(world, &lost), &lost);
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
    let started = world.with(|w| (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (1, None));
    // The OSD is quarantined whether or not it comes up: the run does not wait for it.
    assert!(quarantine(&started.plan()).is_some(), "{:#?}", started.plan());
    assert!(quarantine(&started.up(OSD).reported().saved("up").plan()).is_some());
}

#[test]
fn inspection_that_fails_three_times_quarantines_before_stop() {
    let mut world = World::recorded(OSD);
    for attempt in 2..=3 {
        world = world.report(OSD, None, failed()).saved("inspect");
        assert_eq!(world.record(OSD).attempt.number, attempt);
        check!(world.plan(), Next::Do(Act::Node(NodeAct::Agent { request, .. })) if request.attempt == attempt);
    }
    let next = world.report(OSD, None, failed()).plan();
    assert!(quarantine(&next).is_some_and(|why| why.contains("no luck")), "{next:#?}");
}

#[test]
fn attempt_after_a_failed_one_reports_its_cause() {
    let after = |world: &World| match world.plan() {
        Next::Save { why: Saving::Attempt { after, .. }, .. } => after,
        next => panic!("{next:#?}"),
    };
    let recorded = || World::recorded(OSD);
    assert_eq!(after(&recorded().report(OSD, None, failed())).as_deref(), Some("no luck"));
    assert_eq!(after(&recorded().job(OSD, JobState::Ended)).as_deref(), Some("it left no report"));
    let later = recorded().report(OSD, None, busy()).with(|w| w.seen.at += TimeDelta::minutes(1));
    assert_eq!(after(&later), None);
}

#[test]
fn job_that_ended_without_a_report_has_failed() {
    let mut world = World::recorded(OSD);
    for _ in 0..2 {
        world = world.job(OSD, JobState::Ended).saved("inspect");
    }
    assert!(quarantine(&world.job(OSD, JobState::Ended).plan()).is_some());
}

#[test]
fn agent_that_found_another_at_work_has_not_failed() {
    // Before the stop for 10 minutes, and after it as long as an agent may be silent.
    let down = without_noout(World::destroyed(OSD)).saved("rebuild");
    for (mut world, minutes) in [(World::recorded(OSD), 10), (down, 30)] {
        for minute in 1..=minutes {
            world = world.report(OSD, None, busy());
            // After a frozen agent no new one is started every few seconds.
            check!(world.plan(), Next::Wait(Wait::AgentBusy { osd: OSD, .. }));
            world = world.minutes_later(1);
            world = if minute < minutes { world.saved("inspect") } else { world };
        }
        assert_eq!(world.record(OSD).attempt.failures, 0);
        let length = world.ledger.to_keys().unwrap()["osd-0"].len();
        assert!(length < 4096, "waiting for a lock must not make the record grow: {length}");
        let next = world.plan();
        assert!(quarantine(&next).is_some_and(|why| why.contains("is still running")), "{next:#?}");
    }
}

#[test]
fn stopped_osd_that_can_not_be_proven_is_restarted() {
    // The first inspection is lost; the second one fails four times.
    let mut world = World::stopped(OSD).with(|w| {
        w.seen.kube.reports.clear();
        w.seen.kube.node_jobs.clear();
    });
    assert_eq!(agent(&world), NodeTask::Inspect);
    for _ in 0..3 {
        world = world.report(OSD, None, refused()).saved("inspect");
    }
    check!(world.report(OSD, None, refused()).plan(), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
}

// ---- Busy

#[test]
fn running_agent_is_waited_for_before_any_other_act() {
    for world in [World::recorded(OSD), World::stopped(OSD), World::destroyed(OSD), World::prepared(OSD)] {
        let world = world.job(OSD, JobState::Running);
        check!(world.plan(), Next::Wait(Wait::Agent { osd: OSD, .. }));
    }
}

#[test]
fn agent_wait_reports_that_its_node_is_not_ready() {
    let trouble = |world: &World| match world.plan() {
        Next::Wait(Wait::Agent { trouble, .. }) => trouble,
        next => panic!("{next:#?}"),
    };
    let world = World::recorded(OSD).job(OSD, JobState::Waiting);
    assert_eq!(trouble(&world), None);
    let dark = world.with(|w| w.seen.kube.nodes.values_mut().for_each(|node| node.ready = false));
    assert!(trouble(&dark).is_some_and(|why| why.contains("is not Ready")));
}

#[test]
fn silent_agent_quarantines_its_osd_and_is_never_killed() {
    // Before the stop the agent has changed nothing: the OSD serves, and the others continue.
    let world = World::recorded(OSD).job(OSD, JobState::Running);
    check!(world.clone().minutes_later(9).plan(), Next::Wait(Wait::Agent { .. }));
    assert!(
        quarantine(&world.clone().minutes_later(10).plan()).is_some_and(|why| why.contains("does not end"))
    );
    // After the stop Ceph may recover first.
    let down = without_noout(World::destroyed(OSD).saved("rebuild").job(OSD, JobState::Running));
    check!(down.clone().minutes_later(29).plan(), Next::Wait(Wait::AgentSilent { osd: OSD, .. }));
    assert!(quarantine(&down.minutes_later(30).plan()).is_some());
    let beating = world.minutes_later(119).with(|w| w.seen.kube.node_jobs[0].heartbeat_at = Some(w.seen.at));
    check!(beating.clone().plan(), Next::Wait(Wait::Agent { .. }));
    let for_ever = beating.minutes_later(1).with(|w| w.seen.kube.node_jobs[0].heartbeat_at = Some(w.seen.at));
    assert!(quarantine(&for_ever.plan()).is_some(), "ceph-volume hangs");
}

#[test]
fn agent_not_started_in_ten_minutes_has_failed_and_is_dropped() {
    let world = World::recorded(OSD).job(OSD, JobState::Waiting);
    check!(world.clone().minutes_later(9).plan(), Next::Wait(Wait::Agent { .. }));
    let mut world = world.minutes_later(10);
    for attempt in 2..=4 {
        // The next attempt is saved before its predecessor is deleted, so that it counts.
        world = world.saved("inspect");
        check!(world.plan(), Next::Do(Act::Node(NodeAct::DropAgent { uid, .. })) if uid.ends_with(&format!("-{}", attempt - 1)));
        world.seen.kube.node_jobs.clear();
        if attempt < 4 {
            check!(world.plan(), Next::Do(Act::Node(NodeAct::Agent { request, .. })) if request.attempt == attempt);
            world = world.job(OSD, JobState::Waiting).minutes_later(10);
            let trouble = Some("ImagePullBackOff: no such image".to_owned());
            world.seen.kube.node_jobs.iter_mut().for_each(|job| job.trouble.clone_from(&trouble));
        }
    }
    let plan = world.plan();
    let why = quarantine(&plan).unwrap();
    assert!(why.ends_with("the last time: ImagePullBackOff: no such image"), "{why}");
}

// ---- the key with which the agent creates OSDs

#[test]
fn missing_bootstrap_key_is_recorded_and_created_before_agent() {
    let mut world = World::recorded(OSD).with(|w| w.seen.ceph.bootstrap = Some(false));
    let Next::Save { ledger, why: Saving::Bootstrap { ours: true }, .. } = world.plan() else {
        panic!("{:#?}", world.plan())
    };
    assert!(ledger.run.bootstrap);
    world.ledger = ledger;
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::Bootstrap { there: true })));
    world.seen.ceph.bootstrap = Some(true);
    check!(world.plan(), Next::Do(Act::Node(NodeAct::Agent { .. })));
    world.seen.ceph.bootstrap = None;
    check!(world.plan(), Next::Wait(Wait::FreshView));
}

#[test]
fn own_bootstrap_key_is_removed_by_any_run_when_unused() {
    let ours = World::new().with(|w| {
        w.ledger.run.bootstrap = true;
        w.seen.kube.declaration.confirmed = false;
    });
    check!(ours.plan(), Next::Do(Act::Ceph(CephAct::Bootstrap { there: false })));
    let gone = ours.clone().with(|w| w.seen.ceph.bootstrap = Some(false));
    let Next::Save { ledger, why: Saving::Bootstrap { ours: false }, .. } = gone.plan() else {
        panic!("{:#?}", gone.plan())
    };
    assert!(!ledger.run.bootstrap);
    for node in [None, Some(NodeName("h1".to_owned()))] {
        let prepares = ours.clone().with(|w| w.seen.kube.rook_prepares = vec![prepare(node.as_ref())]);
        check!(prepares.plan(), Next::Finished(_));
    }
    // After an uninstall, no run removes the key: the pod of a lost node does not keep it.
    let jobs = World::recorded(OSD).job(OSD, JobState::Running).seen.kube.node_jobs;
    let lost = ours.clone().with(|w| w.seen.kube.node_jobs = jobs).minutes_later(10);
    check!(lost.clone().plan(), Next::Finished(_));
    let uninstalled = lost.with(|w| w.policy.leaves = true);
    check!(uninstalled.plan(), Next::Do(Act::Ceph(CephAct::Bootstrap { there: false })));
    let theirs = ours.with(|w| w.ledger.run.bootstrap = false);
    check!(theirs.plan(), Next::Finished(_));
}
