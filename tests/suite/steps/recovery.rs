//! Options with which recovery is faster while OSDs are emptied or refilled (`--recovery fast`).

use osd_migrate::domain::ledger::FastRecovery;
use osd_migrate::domain::observation::{Control, ControlKind};
use osd_migrate::domain::policy::{FenceCommand, Recovery};
use osd_migrate::domain::recovery::{OpQueue, RecoveryConfig, RecoveryOption, RecoveryOptions};

use super::*;
use RecoveryOption::{OsdMaxBackfills, OsdMclockProfile, OsdRecoverySleepHdd, OsdRecoverySleepHybrid};

fn options(pairs: &[(RecoveryOption, &str)]) -> RecoveryOptions {
    RecoveryOptions(pairs.iter().map(|(option, value)| (*option, (*value).to_owned())).collect())
}

/// Returns the options under `wpq`.
fn wpq() -> RecoveryOptions {
    options(&[(OsdMaxBackfills, "3"), (OsdRecoverySleepHdd, "0"), (OsdRecoverySleepHybrid, "0")])
}

/// Returns what the mons then print.
fn printed() -> RecoveryOptions {
    let sleeps = [OsdRecoverySleepHdd, OsdRecoverySleepHybrid].map(|option| (option, "0.000000"));
    options(&[(OsdMaxBackfills, "3"), sleeps[0], sleeps[1]])
}

fn config(values: RecoveryOptions) -> impl FnOnce(&mut World) {
    move |w| w.seen.ceph.recovery = Some(RecoveryConfig { values, ..RecoveryConfig::default() })
}

fn wanted(w: &mut World) {
    w.policy.recovery = Recovery::Fast;
}

/// Returns a world in which an OSD is stopped next, and no option has a value.
fn about_to_stop() -> World {
    let own_pdb = |w: &mut World| w.seen.kube.own_pdb = Some("own".to_owned());
    let stops = World::intended(OSD).with(|w| w.seen.kube.osd_pdb = None).with(own_pdb);
    stops.with(wanted).with(config(RecoveryOptions::default()))
}

/// Returns a world in which the options are set, and an OSD is stopped next.
fn set() -> World {
    about_to_stop().saved("fast-recovery").with(config(printed())).saved("fast-recovery-set")
}

/// Returns a world in which these options of osd-migrate are set, and the run waits for an OSD to go down.
fn waits(ours: RecoveryOptions) -> World {
    World::stopping(OSD).with(wanted).with(config(printed())).with(move |w| {
        w.ledger.run.recovery = Some(FastRecovery { options: ours, seen: true });
    })
}

fn paused(w: &mut World) {
    w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None });
}

fn is_stop(next: &Next) -> bool {
    matches!(next, Next::Do(Act::Kube(KubeAct::Stop { .. })))
}

fn sets(next: &Next) -> Option<RecoveryOptions> {
    if let Next::Do(Act::Ceph(CephAct::SetFastRecovery { options })) = next {
        Some(options.clone())
    } else {
        None
    }
}

fn removes(next: &Next) -> Option<RecoveryOptions> {
    if let Next::Do(Act::Ceph(CephAct::UnsetFastRecovery { options })) = next {
        Some(options.clone())
    } else {
        None
    }
}

/// Returns the options that are recorded before a stop.
fn recorded(world: World) -> RecoveryOptions {
    world.saved("fast-recovery").ledger.run.recovery.unwrap().options
}

#[test]
fn recovery_options_are_saved_then_set_right_before_a_stop() {
    assert!(is_stop(&about_to_stop().with(|w| w.policy.recovery = Recovery::AsIs).plan()), "not asked for");
    let saved = about_to_stop().saved("fast-recovery");
    assert_eq!(saved.ledger.run.recovery, Some(FastRecovery { options: wpq(), seen: false }));
    assert_eq!(sets(&saved.plan()), Some(wpq()));
    // One of three commands was sent.
    let rest = options(&[(OsdRecoverySleepHdd, "0"), (OsdRecoverySleepHybrid, "0")]);
    assert_eq!(sets(&saved.with(config(options(&[(OsdMaxBackfills, "3")]))).plan()), Some(rest));
    assert!(is_stop(&set().plan()));
    assert!(set().ledger.run.recovery.unwrap().seen);
}

#[test]
fn recovery_options_follow_the_queue_and_its_release() {
    let mclock = || options(&[(OsdMclockProfile, "high_recovery_ops")]);
    let version = |text: &'static str| {
        move |w: &mut World| {
            let metadata = w.seen.ceph.slots.values_mut().filter_map(|slot| slot.metadata.as_mut());
            metadata.for_each(|metadata| text.clone_into(&mut metadata.ceph_version));
        }
    };
    let queue = |queue| move |w: &mut World| w.seen.ceph.recovery.as_mut().unwrap().queue = Some(queue);
    assert_eq!(recorded(about_to_stop()), wpq(), "16");
    for newer in ["ceph version 17.2.9 (x) quincy (stable)", "ceph version 20.2.4 (x) tentacle (stable)"] {
        assert_eq!(recorded(about_to_stop().with(version(newer))), mclock(), "{newer}");
        let configured = about_to_stop().with(version(newer)).with(queue(OpQueue::Wpq));
        assert_eq!(recorded(configured), wpq(), "{newer}");
    }
    assert_eq!(recorded(about_to_stop().with(queue(OpQueue::Mclock))), mclock());
}

#[test]
fn recovery_options_are_not_set_if_queue_or_values_are_unknown() {
    type Change = fn(&mut World);
    let other = |w: &mut World, version: &str| {
        version.clone_into(&mut w.slot(OsdId(2)).metadata.as_mut().unwrap().ceph_version);
    };
    let changes: [Change; 3] = [
        |w| w.seen.ceph.recovery = None,
        |w| w.seen.ceph.recovery.as_mut().unwrap().queue = Some(OpQueue::Other),
        |w| w.slot(OsdId(2)).metadata = None,
    ];
    for version in ["", "ceph version 18.2.7 (x) reef (stable)"] {
        assert!(is_stop(&about_to_stop().with(|w| other(w, version)).plan()), "{version}");
    }
    for change in changes {
        let next = about_to_stop().with(change).plan();
        assert!(is_stop(&next), "{next:?}");
    }
}

#[test]
fn recovery_option_with_a_value_of_another_client_stays() {
    let theirs = || config(options(&[(OsdRecoverySleepHdd, "0.5"), (OsdRecoverySleepHybrid, "0")]));
    assert_eq!(recorded(about_to_stop().with(theirs())), options(&[(OsdMaxBackfills, "3")]));
    let elsewhere = |w: &mut World| {
        w.seen.ceph.recovery.as_mut().unwrap().elsewhere = [OsdMaxBackfills].into();
    };
    let sleeps = || options(&[(OsdRecoverySleepHdd, "0"), (OsdRecoverySleepHybrid, "0")]);
    assert_eq!(recorded(about_to_stop().with(elsewhere)), sleeps(), "in another section");
    // osd_max_backfills is another client's, with the value that osd-migrate would have set.
    check!(waits(sleeps()).plan(), Next::Wait(_));
    assert_eq!(removes(&waits(sleeps()).with(paused).plan()), Some(sleeps()));
    // All are another client's: nothing is to be done.
    assert!(is_stop(&about_to_stop().with(config(printed())).plan()));
}

#[test]
fn recovery_option_that_another_client_changes_is_left_alone() {
    let sleeps = || options(&[(OsdRecoverySleepHdd, "0"), (OsdRecoverySleepHybrid, "0")]);
    let removed = || config(sleeps());
    let other = || {
        config(options(&[(OsdMaxBackfills, "9"), (OsdRecoverySleepHdd, "0"), (OsdRecoverySleepHybrid, "0")]))
    };
    let changed = "fast-recovery-changed-externally";
    for world in
        [set().with(removed()), set().with(other()), waits(wpq()).with(removed()), waits(wpq()).with(other())]
    {
        let left = world.saved(changed);
        assert_eq!(left.ledger.run.recovery, Some(FastRecovery { options: sleeps(), seen: true }));
        assert_eq!(sets(&left.plan()), None);
        assert_eq!(removes(&left.with(paused).with(other()).plan()), Some(sleeps()));
    }
    // It got another value between the save and the command: the others are set.
    let between = about_to_stop().saved("fast-recovery").with(config(options(&[(OsdMaxBackfills, "9")])));
    assert_eq!(sets(&between.plan()), Some(sleeps()));
    let left = between.with(other()).saved(changed).saved("fast-recovery-set");
    assert_eq!(left.ledger.run.recovery, Some(FastRecovery { options: sleeps(), seen: true }));
}

#[test]
fn recovery_options_are_removed_while_a_run_is_held_and_without_the_option() {
    type Change = fn(&mut World);
    let changes: [Change; 4] = [
        paused,
        |w| w.seen.kube.control = Some(Control { kind: ControlKind::Cancel, since: None }),
        |w| w.policy.windows = "03:00-03:01".parse().unwrap(),
        |w| w.policy.recovery = Recovery::AsIs,
    ];
    for change in changes {
        let waits = waits(wpq()).with(change);
        assert_eq!(removes(&waits.plan()), Some(wpq()));
        let restored = waits.with(config(RecoveryOptions::default())).saved("fast-recovery-restored");
        assert_eq!(restored.ledger.run.recovery, None);
        assert_eq!(sets(&restored.plan()), None);
    }
}

#[test]
fn recovery_options_are_asked_only_if_they_are_wanted_or_recorded() {
    let asks = |world: &World| plan::questions(&world.policy, &world.ledger, &world.seen).recovery;
    assert!(!asks(&World::intended(OSD)), "no run without the option sends a further command");
    assert!(asks(&about_to_stop()));
    let recorded = waits(wpq()).with(|w| w.policy.recovery = Recovery::AsIs);
    assert!(asks(&recorded), "any run restores what the ledger names");
    let fences = recorded.with(|w| w.policy.fence = Some(FenceCommand::Remove));
    assert!(asks(&fences));
}
