//! Conditions that keep any OSD from being started: pause, cancel, windows, the failure limit. None of them
//! keeps an OSD from being finished.

use std::time::Duration;

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::gate::{self, Gate, Reason};
use osd_migrate::domain::next::{Halt, Next, Saving, Wait};
use osd_migrate::domain::observation::{Control, ControlKind, JobState};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::{Empty, Limits, Policy};

use crate::support::build::{BY_HAND, FILESTORE, POOL, World, noon, word};
use crate::support::check;

const OSD: OsdId = BY_HAND;

/// A third OSD, which conforms.
const RAW: OsdId = OsdId(5);

fn control_changed(kind: ControlKind) -> impl FnOnce(&mut World) {
    move |w| w.seen.kube.control = Some(Control { kind, since: Some(noon()) })
}

fn paused(world: World) -> World {
    world.with(control_changed(ControlKind::Pause))
}

fn cancelled(world: World) -> World {
    world.with(control_changed(ControlKind::Cancel))
}

/// Sets the window of an hour that ended when the small world begins.
fn outside(world: World) -> World {
    let at = world.seen.at;
    let text = format!("{}-{}", (at - TimeDelta::hours(1)).format("%H:%M"), at.format("%H:%M"));
    world.with(|w| w.policy.windows = text.parse().unwrap())
}

type Holding = (fn(World) -> World, fn(&Reason) -> bool);

/// Conditions that suspend an OSD before its stop, with the reported reason.
const HOLDING: [Holding; 3] = [
    (paused, |reason| matches!(reason, Reason::Paused { .. })),
    (cancelled, |reason| matches!(reason, Reason::Cancelled { .. })),
    (outside, |reason| matches!(reason, Reason::OutsideWindow { .. })),
];

/// Returns worlds for everything from Stop to the closed record.
fn committed() -> Vec<World> {
    vec![
        World::stopping(OSD),
        World::stopped(OSD),
        World::destroyed(OSD),
        World::destroyed(OSD).saved("rebuild"),
        World::prepared(OSD),
        World::deployed(OSD),
        World::booted(OSD),
        World::filled(OSD),
    ]
}

// ---- each gate

#[test]
fn gate_is_shut_by_pause_cancel_window_and_no_confirmation() {
    let begin = |world: &World| gate::begin(world.view());
    assert_eq!(begin(&World::new()), Gate::Open);
    for (hold, is_expected) in HOLDING {
        let gate = begin(&hold(World::new()));
        assert!(matches!(&gate, Gate::Shut(reason) if is_expected(reason)), "{gate:?}");
    }
    let unconfirmed = World::new().with(|w| w.seen.kube.declaration.confirmed = false);
    assert_eq!(begin(&unconfirmed), Gate::Shut(Reason::NotConfirmed));
    assert_eq!(begin(&unconfirmed.with(|w| w.policy.confirmed = true)), Gate::Open);
}

/// Limits the commit latency to 50 ms; the OSDs need so long as given, by id.
fn limited(latency: impl Fn(OsdId) -> Option<Duration>) -> World {
    World::new().with(|w| {
        w.policy.max_commit_latency = Some(Duration::from_millis(50));
        let osds: Vec<OsdId> = w.seen.ceph.slots.keys().copied().collect();
        w.seen.ceph.commit_latency =
            Some(osds.into_iter().filter_map(|osd| Some((osd, latency(osd)?))).collect());
    })
}

#[test]
fn commit_latency_above_its_limit_starts_no_osd() {
    let begin = |world: &World| gate::begin(world.view());
    let millis = |ms| Some(Duration::from_millis(ms));
    assert_eq!(begin(&limited(|_| millis(50))), Gate::Open);
    assert_eq!(begin(&limited(|osd| millis(if osd == OSD { 900 } else { 5 }))), Gate::Open, "one slow disk");
    assert_eq!(begin(&limited(|_| millis(0))), Gate::Open, "no OSD wrote");
    let (median, limit) = (Duration::from_millis(51), Duration::from_millis(50));
    let slow = limited(|_| Some(median));
    assert_eq!(begin(&slow), Gate::Shut(Reason::CommitLatency { median, limit }));
    assert!(matches!(slow.plan(), Next::Wait(Wait::Gate { reason: Reason::CommitLatency { .. }, .. })));
    let unlimited = slow.with(|w| w.policy.max_commit_latency = None);
    assert_eq!(begin(&unlimited), Gate::Open);
}

#[test]
fn commit_latency_that_is_not_known_starts_no_osd() {
    let begin = |world: &World| gate::begin(world.view());
    let partly = limited(|osd| (osd != RAW).then_some(Duration::from_millis(1)));
    assert_eq!(begin(&partly), Gate::Unknown(Reason::CommitLatencyUnknown { osd: RAW }));
    let not_asked = partly.with(|w| w.seen.ceph.commit_latency = None);
    assert_eq!(begin(&not_asked), Gate::Unknown(Reason::NotAsked));
    let asks = |world: &World| plan::questions(&world.policy, &world.ledger, &world.seen).commit_latency;
    assert!(asks(&not_asked) && !asks(&World::new()));
}

#[test]
fn commit_latency_holds_up_no_osd_in_progress() {
    for world in committed() {
        let limited = world.clone().with(|w| w.policy.max_commit_latency = Some(Duration::from_millis(1)));
        assert_eq!(limited.plan(), world.plan());
    }
}

/// Lets a running Rook that honours a fence migrate an OSD itself, which has no Deployment for now.
fn rook_migrates(world: World) -> World {
    world.with(|w| {
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.honours_fence, operator.replicas, operator.pods) = (true, 1, 1);
        w.seen.kube.rook_migrated = [RAW].into();
        w.seen.kube.daemons.remove(&RAW);
    })
}

#[test]
fn run_alongside_rooks_own_migration_waits_and_starts_no_osd() {
    check!(
        rook_migrates(World::new()).plan(),
        Next::Wait(Wait::Gate { reason: Reason::RookMigrates { osd: RAW, name }, .. }) if name.ends_with("operator")
    );
    let begin = |world: &World| gate::begin(world.view());
    let is_shut = |world: World| matches!(begin(&world), Gate::Shut(Reason::RookMigrates { .. }));
    assert!(is_shut(rook_migrates(World::new())), "new OSDs ask it, too");
    // An older Rook is not scaled to 0 during its migration.
    let older = rook_migrates(World::new()).with(|w| {
        w.seen.kube.operator.as_mut().unwrap().honours_fence = false;
        w.policy.scales_operator = true;
    });
    check!(older.clone().plan(), Next::Wait(Wait::Gate { reason: Reason::RookMigrates { .. }, .. }));
    let done = older.with(|w| drop(w.seen.kube.daemons.insert(RAW, World::new().daemon(RAW).clone())));
    check!(done.plan(), Next::Save { why: Saving::OperatorScaled, .. });
    // With the operator at 0 its migration does not continue. A removed OSD is ignored. An OSD that
    // osd-migrate migrates has no Deployment for a while.
    let away = |w: &mut World| {
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.replicas, operator.pods) = (0, 0);
    };
    assert!(!is_shut(rook_migrates(World::new()).with(away)));
    assert!(!is_shut(rook_migrates(World::new()).with(|w| drop(w.seen.ceph.slots.remove(&RAW)))));
    let ours = rook_migrates(World::stopped(OSD)).with(|w| {
        w.seen.kube.rook_migrated = [OSD].into();
        w.seen.kube.daemons.remove(&OSD);
    });
    assert!(!is_shut(ours));
    // OSDs in progress are finished.
    let migrated = |w: &mut World| w.seen.kube.rook_migrated = [RAW].into();
    for world in committed() {
        assert_eq!(world.clone().with(migrated).plan(), world.plan());
    }
}

#[test]
fn fence_is_not_set_during_rooks_own_migration() {
    let is_waited_for = |world: &World| {
        matches!(
            world.plan(),
            Next::Wait(Wait::Gate { osd: OSD, reason: Reason::RookMigrates { osd: RAW, .. } })
        )
    };
    let meant = rook_migrates(World::proven(OSD).backed_up(OSD));
    assert!(is_waited_for(&meant), "{:?}", meant.plan());
    // Behind osd-migrate's fence Rook's migration could not end.
    let fenced = meant.fenced(OSD);
    assert!(!is_waited_for(&fenced), "{:?}", fenced.plan());
}

#[test]
fn failure_limit_counts_only_osds_past_their_stop() {
    let failed_before = |osd: OsdId| {
        World::recorded(osd)
            .report_with(osd, |r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false)
            .saved("quarantine")
    };
    let quarantined = |osds: &[OsdId]| {
        let mut world = World::new();
        for osd in osds {
            let mut failed = failed_before(*osd);
            failed.record(*osd).down_since = Some(noon());
            let record = failed.record(*osd).clone();
            world.ledger.records.insert(*osd, record);
        }
        world
    };
    assert_eq!(gate::failure_limit(&Policy::default(), &World::new().ledger), Gate::Open);
    assert_eq!(gate::failure_limit(&Policy::default(), &quarantined(&[OSD]).ledger), Gate::Open);
    let two = quarantined(&[OSD, FILESTORE]);
    let before =
        two.clone().with(|w| w.ledger.records.values_mut().for_each(|record| record.down_since = None));
    assert_eq!(gate::failure_limit(&Policy::default(), &before.ledger), Gate::Open, "both serve");
    let three = |w: &World| Policy { limits: Limits { failures: 2, ..w.policy.limits }, ..w.policy.clone() };
    assert_eq!(gate::failure_limit(&three(&two), &two.ledger), Gate::Open, "the limit is the owner's");
    check!(
        gate::failure_limit(&Policy::default(), &two.ledger),
        Gate::Shut(Reason::FailureLimit { quarantined }) if *quarantined == [OSD, FILESTORE].into()
    );
    check!(two.plan(), Next::Halt(Halt::FailureLimit { .. }));
    // Nothing is stopped: the fence is removed before the run ends.
    let fence = || "osd-migrate-x".to_owned();
    let fenced =
        two.clone().with(|w| (w.ledger.run.fence, w.seen.kube.fence) = (Some(fence()), Some(fence())));
    check!(fenced.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    // A cancelled run does not ask for fixes first.
    check!(cancelled(two).plan(), Next::Finished(s) if s.cancelled && s.quarantined.len() == 2);
}

// ---- before Stop

#[test]
fn suspended_run_records_no_osd() {
    for (hold, is_expected) in [HOLDING[0], HOLDING[2]] {
        let next = hold(World::new()).plan();
        assert!(
            matches!(&next, Next::Wait(Wait::Gate { osd: OSD, reason }) if is_expected(reason)),
            "{next:#?}"
        );
    }
}

#[test]
fn recorded_osd_is_not_inspected_or_stopped_if_suspended() {
    for (hold, is_expected) in [HOLDING[0], HOLDING[2]] {
        for world in [World::recorded(OSD), World::proven(OSD), World::proven(OSD).backed_up(OSD)] {
            let next = hold(world).plan();
            assert!(
                matches!(&next, Next::Wait(Wait::Gate { osd: OSD, reason }) if is_expected(reason)),
                "{next:#?}"
            );
        }
    }
    // An agent that is inspecting already is waited for.
    check!(paused(World::recorded(OSD).job(OSD, JobState::Running)).plan(), Next::Wait(Wait::Agent { .. }));
}

#[test]
fn flags_and_fence_are_unset_once_a_suspended_stop_expired() {
    for (hold, is_expected) in HOLDING {
        // A Stop may have been sent at this moment, and its answer lost.
        let mut world = hold(World::intended(OSD));
        check!(world.plan(), Next::Wait(Wait::Gate { osd: OSD, reason }) if is_expected(reason));
        world = world.minutes_later(1).saved("withdrawn").cleaned_up(OSD);
        check!(
            world.plan(),
            Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: OSD, noout: true, noin: true }))
        );
        (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
        check!(world.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
        world.seen.kube.fence = None;
        world.saved("unfenced").saved("closed");
    }
}

#[test]
fn osd_whose_stop_arrives_while_suspended_is_finished() {
    for (hold, _) in HOLDING {
        check!(hold(World::stopped(OSD)).plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: OSD, .. })));
    }
}

// ---- after Stop

#[test]
fn committed_osd_ignores_pause_cancel_and_window() {
    for world in committed() {
        for (hold, _) in HOLDING {
            assert_eq!(hold(world.clone()).plan(), world.plan());
        }
    }
}

#[test]
fn reverted_stop_is_not_retried_while_suspended() {
    for (hold, _) in HOLDING {
        let world = World::intended(OSD).with(|w| {
            w.record(OSD).restarts = 1;
            w.record(OSD).stop_reverted = Some("a neighbour was nearly full".to_owned());
        });
        assert_eq!(word(&hold(world).minutes_later(5).plan()), Some("withdrawn"));
    }
}

// ---- cancel

#[test]
fn cancelled_run_withdraws_its_records_ends_and_reports_it() {
    check!(cancelled(World::new()).plan(), Next::Finished(s) if s.cancelled && s.unconfirmed.is_empty());
    for world in [World::recorded(OSD), World::proven(OSD)] {
        let mut world = cancelled(world).saved("withdrawn");
        while matches!(world.plan(), Next::Do(Act::Kube(KubeAct::CleanUp { .. }))) {
            world.seen.kube.backups.clear();
            world.seen.kube.node_jobs.clear();
            world.seen.kube.reports.clear();
        }
        world = world.saved("closed");
        check!(world.plan(), Next::Finished(s) if s.cancelled);
    }
    let text = osd_migrate::report::Event::Finished(&osd_migrate::domain::next::Summary {
        cancelled: true,
        ..Default::default()
    });
    assert!(text.to_string().contains("osd-migrate -n NAMESPACE resume [run-cancelled]"), "{text}");
}

#[test]
fn fence_is_removed_before_a_cancelled_run_ends() {
    let fence = || Some("osd-migrate-x".to_owned());
    let world =
        cancelled(World::new()).with(|w| (w.ledger.run.fence, w.seen.kube.fence) = (fence(), fence()));
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    let down = world.with(|w| w.seen.kube.fence = None).saved("unfenced");
    check!(down.plan(), Next::Finished(s) if s.cancelled);
}

#[test]
fn resumed_run_continues_where_it_was_paused() {
    for world in [World::new(), World::proven(OSD), World::intended(OSD)] {
        let lifted = paused(world.clone()).with(|w| w.seen.kube.control = None);
        assert_eq!(lifted.plan(), world.plan());
    }
}

#[test]
fn paused_run_with_nothing_to_do_finishes() {
    let without_redundancy = World::new().with(|w| {
        w.seen.ceph.pools.get_mut(&POOL).unwrap().size = 2;
        w.policy.empty = Empty::Never;
    });
    check!(paused(without_redundancy).plan(), Next::Finished(s) if s.refused.len() == 2);
    let unconfirmed = World::new().with(|w| w.seen.kube.declaration.confirmed = false);
    check!(paused(unconfirmed).plan(), Next::Finished(s) if s.unconfirmed.len() == 2);
}

// ---- windows

#[test]
fn run_outside_its_window_reports_when_the_window_opens() {
    let next = outside(World::new()).plan();
    let Next::Wait(wait) = next else { panic!("{next:#?}") };
    // noon() is 14:13:20.
    assert!(
        wait.to_string()
            .ends_with("outside of the window 13:13-14:13 UTC; it opens at Tue 2026-09-22 13:13 UTC"),
        "{wait}"
    );
}
