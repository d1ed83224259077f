//! Quarantined OSDs, and the rest.

use super::stopped::stopped_in_vain;
use super::*;
use crate::support::build::job_name;
use osd_migrate::domain::ledger::ScaledOperator;
use osd_migrate::domain::next::Summary;
use osd_migrate::domain::observation::{Control, ControlKind, KeyOwner, Pg, Pool};
use osd_migrate::domain::preview::{self, Now};

// ---- quarantined OSDs, and the rest

/// Quarantines the OSD, with its flags lifted; the others may be migrated.
fn quarantined(world: World) -> World {
    world.with(|w| {
        let since = w.seen.at;
        w.record(OSD).quarantine =
            Some(osd_migrate::domain::ledger::Quarantine { why: "no luck".to_owned(), since });
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
        w.policy.select.clear();
    })
}

/// Leaves no other candidate.
fn alone(world: World) -> World {
    world.with(|w| w.policy.skip = [FILESTORE].into())
}

/// Returns worlds in which only PGs of a quarantined OSD are unclean.
fn only_theirs_unclean() -> [World; 3] {
    [World::stopped(OSD), World::destroyed(OSD), World::prepared(OSD)].map(quarantined)
}

fn waits_for_clean_pgs(world: &World) -> bool {
    let next = world.plan();
    matches!(next, Next::Wait(Wait::Gate { osd: FILESTORE, reason: Reason::NotClean { .. } }))
}

#[test]
fn pgs_of_a_quarantined_osd_have_an_hour_to_begin_to_heal() {
    for world in only_theirs_unclean() {
        assert!(waits_for_clean_pgs(&world.clone().minutes_later(59)));
        check!(world.clone().minutes_later(60).plan(), Next::Halt(Halt::Quarantined { .. }));
        // The OSD served for a while after it was quarantined, and went down.
        let died = world.minutes_later(60).with(|w| w.slot(OSD).down_since = Some(w.seen.at));
        assert!(waits_for_clean_pgs(&died.clone().minutes_later(59)));
        check!(died.minutes_later(60).plan(), Next::Halt(Halt::Quarantined { .. }));
    }
}

#[test]
fn pgs_that_heal_without_a_quarantined_osd_are_waited_for() {
    let heal = [
        "active+undersized+degraded+remapped+backfilling",
        "active+undersized+degraded+remapped+backfill_wait",
        "active+recovery_wait+undersized+degraded+remapped",
        "active+recovering+undersized+degraded+remapped",
        "peering",
        "activating+undersized+degraded+remapped",
    ];
    let do_not = [
        "active+undersized+degraded",
        "active+undersized+degraded+remapped+backfill_toofull",
        "undersized+degraded+peered",
    ];
    for world in only_theirs_unclean() {
        let with = |state: &str| world.clone().minutes_later(1000).pg_state(0, state);
        for state in heal {
            assert!(waits_for_clean_pgs(&with(state)), "{state}");
        }
        for state in do_not {
            check!(with(state).plan(), Next::Halt(Halt::Quarantined { .. }));
        }
    }
}

#[test]
fn run_halts_if_only_pgs_of_quarantined_osds_stay_unclean() {
    for world in only_theirs_unclean() {
        let world = world.minutes_later(60);
        check!(world.plan(), Next::Halt(Halt::Quarantined { quarantined }) if quarantined.len() == 1);
        // Another PG is not clean either: that may pass.
        let other = world.clone().pg_state(1, "active+undersized+degraded");
        check!(other.plan(), Next::Wait(Wait::Gate { osd: FILESTORE, reason: Reason::NotClean { .. } }));
        // A pool was created since, and one of its PGs lacks only the quarantined OSD: that does not pass.
        let created = world.with(|w| {
            let pool = w.seen.ceph.pools[&POOL].clone();
            w.seen.ceph.pools.insert(9, Pool { pg_num: 1, ..pool });
            let state = states("active+undersized");
            let two: BTreeSet<OsdId> = [2, 4].map(OsdId).into();
            let pg =
                Pg { pool: 9, state, up: two.clone(), acting: two, ..w.seen.ceph.pgs[&pg_id(0)].clone() };
            w.seen.ceph.pgs.insert("9.0".parse().unwrap(), pg);
        });
        check!(created.plan(), Next::Halt(Halt::Quarantined { .. }));
    }
    // Ceph has recovered without it.
    let healed = quarantined(World::destroyed(OSD)).with(|w| {
        for n in 0..8 {
            let pg = w.pg(n);
            pg.state = states("active+clean");
            for osd in (1..6).map(OsdId).filter(|osd| *osd != FILESTORE) {
                if pg.acting.len() < 3 {
                    pg.acting.insert(osd);
                }
            }
        }
    });
    check!(healed.plan(), Next::Save { osd: Some(FILESTORE), why: Saving::Record, .. });
    check!(healed.saved("record").plan(), Next::Do(Act::Node(NodeAct::Agent { .. })));
}

/// Checks that nothing is waited for if quarantined OSDs have all places of the ledger.
#[test]
fn run_ends_if_the_ledger_is_full_of_quarantined_osds() {
    let full = quarantined(World::recorded(OSD)).with(|w| {
        let one = w.ledger.records[&OSD].clone();
        let others = (1000..1255).map(|n| (OsdId(n), Record { osd: OsdId(n), ..one.clone() }));
        w.ledger.records.extend(others);
        let slot = w.slot(OSD).clone();
        w.seen.ceph.slots.extend((1000..1255).map(|n| (OsdId(n), slot.clone())));
    });
    let Next::Finished(summary) = full.plan() else { panic!("{:#?}", full.plan()) };
    assert_eq!(summary.quarantined.len(), 256);
    let (osd, why) = &summary.refused[0];
    assert!(*osd == FILESTORE && why.contains("osd-migrate -n NAMESPACE retry osd."), "{why}");
}

#[test]
fn pgs_of_a_quarantined_osd_that_is_up_are_waited_for() {
    // The new OSD is backfilling; the old OSD serves again, and recovers.
    for world in [World::booted(OSD), World::intended(OSD).pg_state(0, "active+recovering+degraded")] {
        let world = quarantined(world);
        check!(world.plan(), Next::Wait(Wait::Gate { osd: FILESTORE, reason: Reason::NotClean { .. } }));
    }
}

#[test]
fn fence_stays_only_for_an_osd_quarantined_past_its_stop() {
    // The stop was only intended; or the OSD was stopped and serves again.
    for world in [World::intended(OSD), stopped_in_vain(World::intended(OSD))] {
        check!(alone(quarantined(world)).plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    }
    for world in committed() {
        check!(alone(quarantined(world)).plan(), Next::Finished(s) if s.quarantined.len() == 1);
    }
}

#[test]
fn plan_shows_an_osd_in_progress_with_its_recorded_class() {
    let line = |world: &World| {
        let lines = preview::lines(&world.policy, &world.ledger, &world.seen);
        lines.into_iter().find(|line| line.osd == OSD).unwrap()
    };
    for begun in [World::stopped(OSD), World::destroyed(OSD), World::prepared(OSD)] {
        let class = begun.ledger.records[&OSD].class.clone();
        assert_eq!((line(&begun).now, line(&begun).class), (Now::InFlight, class));
        check!(&line(&quarantined(begun)).now, Now::Quarantined { .. });
    }
}

/// Returns a world with an OSD that is up under the fence, and in again.
fn alone_and_up() -> World {
    World::booted(FILESTORE)
        .fenced(FILESTORE)
        .with(|w| (w.slot(FILESTORE).noout, w.slot(FILESTORE).noin) = (false, false))
}

/// Returns a world with a quarantined OSD whose slot is destroyed, and another OSD that comes up.
///
/// Ceph has recovered. Both OSDs need the fence.
fn half_way_and_another_up() -> World {
    let lost = quarantined(World::destroyed(OSD));
    let (ledger, slot) = (lost.ledger.records[&OSD].clone(), lost.seen.ceph.slots[&OSD].clone());
    let (daemon, key) = (lost.seen.kube.daemons[&OSD].clone(), lost.seen.ceph.auth[&OSD]);
    alone_and_up().with(|w| {
        w.ledger.records.insert(OSD, ledger);
        w.seen.ceph.slots.insert(OSD, slot);
        w.seen.kube.daemons.insert(OSD, daemon);
        w.seen.ceph.auth.insert(OSD, key);
    })
}

#[test]
fn rook_is_not_released_while_a_committed_osd_is_quarantined() {
    let is_unfence = |next: &Next| matches!(next, Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    let both = half_way_and_another_up();
    assert!(!is_unfence(&both.plan()), "{:#?}", both.plan());
    assert!(is_unfence(&alone_and_up().plan()));

    // During a pause, with Rook's operator at 0 by osd-migrate.
    let paused = |world: World| {
        quarantined(world).with(|w| {
            for n in 0..8 {
                w.pg(n).state = states("active+clean");
            }
            w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None });
            let operator = w.seen.kube.operator.as_mut().unwrap();
            operator.generation = 6;
            let name = operator.name.clone();
            w.ledger.run.operator = Some(ScaledOperator {
                name,
                replicas: 1,
                uid: None,
                generation: 5,
                since: None,
                job: Some(w.policy.run.clone()),
                restoring: false,
            });
        })
    };
    check!(paused(World::destroyed(OSD)).plan(), Next::Wait(Wait::Gate { .. }));
    check!(paused(World::proven(OSD)).plan(), Next::Save { why: Saving::OperatorRestoring, .. });
}

#[test]
fn paused_run_withdraws_its_record_to_restore_the_operator() {
    let held = |world: World| {
        world.with(|w| w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None }))
    };
    let aside = |w: &mut World| {
        let name = w.seen.kube.operator.as_ref().unwrap().name.clone();
        w.ledger.run.operator = Some(ScaledOperator {
            name,
            replicas: 1,
            uid: None,
            generation: 0,
            since: None,
            job: None,
            restoring: false,
        });
    };
    check!(held(World::proven(OSD)).plan(), Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. }));
    check!(held(World::proven(OSD)).with(aside).plan(), Next::Save { why: Saving::Withdrawn, .. });
}

#[test]
fn summary_names_the_retry_that_lets_rook_run_again() {
    let fenced = alone(quarantined(World::destroyed(OSD).fenced(OSD))).with(|w| {
        for n in 0..8 {
            w.pg(n).state = states("active+clean");
        }
    });
    let done = fenced.plan();
    let Next::Finished(summary) = &done else { panic!("{done:#?}") };
    let unconfirmed = Summary { unconfirmed: [FILESTORE].into(), ..Summary::clone(summary) };
    for summary in [summary, &unconfirmed] {
        let said = osd_migrate::report::Event::Finished(summary).to_string();
        let expected =
            "quarantined after their stop: osd.0. Fix them, then: osd-migrate -n NAMESPACE retry osd.0";
        assert!(said.contains(expected), "{said}");
    }
    // If nothing keeps Rook off, there is nothing to report.
    let unfenced = fenced.with(|w| (w.ledger.run.fence, w.seen.kube.fence) = (None, None));
    check!(unfenced.plan(), Next::Finished(summary) if summary.half_way.is_empty());
}

#[test]
fn fence_that_nothing_needs_is_removed_during_a_pause() {
    let fence = || Some("osd-migrate-x".to_owned());
    let paused = World::new().with(|w| {
        (w.ledger.run.fence, w.seen.kube.fence) = (fence(), fence());
        w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None });
    });
    check!(paused.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
}

/// Adds the key of the saved attempt, as it is observed alongside its node Job.
fn with_key(world: World) -> World {
    world.with(|w| {
        let record = w.record(OSD).clone();
        let job = job_name(&record.id, OSD, record.attempt.task, record.attempt.number);
        w.seen.kube.keys.insert(job, KeyOwner { uid: "key".to_owned(), record: record.id });
    })
}

#[test]
fn quarantined_osd_loses_its_key_once_its_node_job_ended() {
    for begun in [World::recorded(OSD), World::destroyed(OSD), World::prepared(OSD)] {
        let with_job = |state| with_key(quarantined(begun.clone())).job(OSD, state);
        let ended = with_job(JobState::Ended);
        let expected = ended.seen.kube.node_jobs.last().unwrap().name.clone();
        check!(ended.plan(), Next::Do(Act::Node(NodeAct::DeleteKey { osd: OSD, job, uid })) if *job == expected && uid == "key");
        // The key is removed once: the Job stays, as the message of the quarantine names its log.
        let without_key = ended.with(|w| w.seen.kube.keys.clear());
        assert!(!is_about_key(&without_key.plan()), "{:#?}", without_key.plan());
        // An agent that has not ended may still need the key.
        for state in [JobState::Waiting, JobState::Running] {
            let next = with_job(state).plan();
            assert!(!is_about_key(&next), "{state:?}: {next:#?}");
        }
        // A Job that was deleted, or never created, needs no key.
        let no_job = with_key(quarantined(begun.clone())).with(|w| w.seen.kube.node_jobs.clear());
        assert!(is_about_key(&no_job.plan()), "{:#?}", no_job.plan());
    }
}

#[test]
fn key_of_a_record_in_progress_is_not_deleted() {
    let open = with_key(World::destroyed(OSD)).job(OSD, JobState::Ended);
    assert!(!is_about_key(&open.plan()), "{:#?}", open.plan());
}

fn is_about_key(next: &Next) -> bool {
    matches!(next, Next::Do(Act::Node(NodeAct::DeleteKey { .. })))
}
