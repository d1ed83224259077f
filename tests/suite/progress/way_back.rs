//! Rule 2: no OSD stays down without a way back.

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, CephAct};
use osd_migrate::domain::next::{Next, Wait};
use osd_migrate::domain::observation::Pod;
use osd_migrate::domain::policy::Limits;

use super::sick::SICK;
use crate::support::build::{World, issued_fsid, label, old_content, pod, quarantine, word};
use crate::support::check;

#[test]
fn noout_ends_after_fifteen_minutes_down() {
    for world in [World::destroyed(SICK).saved("rebuild"), World::deployed(SICK)] {
        assert_ne!(word(&world.clone().minutes_later(14).plan()), Some("noout-lifted"));
        let lifted = world.minutes_later(15).saved("noout-lifted");
        check!(
            lifted.plan(),
            Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: SICK, noout: true, noin: false }))
        );
        // noout is not set again.
        let without = lifted.with(|w| w.slot(SICK).noout = false);
        assert!(
            !matches!(without.plan(), Next::Do(Act::Ceph(CephAct::SetOsdFlags { .. }))),
            "{:#?}",
            without.plan()
        );
    }
    // A flag that a person set stays.
    let theirs =
        World::destroyed(SICK).saved("rebuild").with(|w| w.record(SICK).former_flags = (true, false));
    assert_ne!(word(&theirs.minutes_later(60).plan()), Some("noout-lifted"));
}

#[test]
fn daemon_that_never_starts_is_quarantined_in_time() {
    let trouble = |w: &mut World| {
        let why = Some("init container activate: CrashLoopBackOff".to_owned());
        w.daemon(SICK).pods = vec![Pod { trouble: why, ..pod(SICK) }];
    };
    let world = World::deployed(SICK).with(trouble);
    check!(world.clone().minutes_later(14).plan(), Next::Wait(Wait::Up { osd: SICK, .. }));
    let late = world.minutes_later(15).with(|w| {
        w.record(SICK).noout_lifted = true;
        w.slot(SICK).noout = false;
    });
    assert!(
        quarantine(&late.plan()).is_some_and(|why| why.contains("CrashLoopBackOff")),
        "{:#?}",
        late.plan()
    );
    // After a retry, its pod may exist from before: the time limit starts again.
    let again = late.clone().saved("quarantine").with(|w| {
        w.daemon(SICK).pods[0].restarts = 9;
        w.ledger = w.ledger.retried(SICK, w.seen.at).unwrap();
    });
    let looked = again.report(SICK, Some(label(issued_fsid(SICK, 1), SICK, true)), None);
    check!(looked.plan(), Next::Wait(Wait::Up { .. }));
    // The owner can set the time, and Rook's own comes before it.
    let soon = World::deployed(SICK)
        .with(|w| w.policy.limits = Limits { start: TimeDelta::minutes(2), ..w.policy.limits });
    assert!(quarantine(&soon.clone().minutes_later(2).plan()).is_some());
    let by_rook = soon.with(|w| w.record(SICK).left_to_rook_since = Some(w.seen.at));
    check!(by_rook.minutes_later(2).plan(), Next::Wait(Wait::Up { .. }));
}

#[test]
fn agent_retries_are_spaced_past_the_stop() {
    let paced = |w: &mut World| w.policy.limits = Limits::default();
    let failed =
        Some(osd_migrate::domain::inspection::NodeProblem::Failed("no route to the mons".to_owned()));
    let world =
        World::destroyed(SICK).with(paced).rebuild_ended(SICK, Some(old_content(SICK)), failed.clone());
    let until = |world: &World| match world.plan() {
        Next::Wait(Wait::AgentRests { until, .. }) => Some((until - world.seen.at).num_seconds()),
        _ => None,
    };
    assert_eq!(until(&world), Some(30));
    let again = world.clone().with(|w| w.seen.at += TimeDelta::seconds(30)).saved("rebuild");
    let twice = again.report(SICK, Some(old_content(SICK)), failed.clone());
    assert_eq!(until(&twice), Some(120));
    let thrice =
        twice.minutes_later(2).saved("rebuild").report(SICK, Some(old_content(SICK)), failed.clone());
    assert_eq!(until(&thrice), Some(480));
    let last = thrice.minutes_later(8).saved("rebuild").report(SICK, Some(old_content(SICK)), failed);
    assert!(quarantine(&last.plan()).is_some());
    // Before the stop the OSD serves and the others wait: there is no pause.
    let before = World::recorded(SICK).with(paced).report(
        SICK,
        None,
        Some(osd_migrate::domain::inspection::NodeProblem::Failed("no".to_owned())),
    );
    assert_eq!(word(&before.plan()), Some("inspect"));
}
