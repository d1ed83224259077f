//! When an OSD counts as empty, and how long it waits for its stop before it gets its data back.

use osd_migrate::domain::observation::ControlKind;

use super::emptying::{controlled, cordoned, emptied, marked_out, moved, takes_in};
use super::*;

/// Returns a world in which the OSD is empty, which took five hours.
fn long_emptied() -> World {
    emptied().with(|w| {
        let empty = w.record(OSD).empty.as_mut().unwrap();
        empty.out_since = empty.out_since.map(|at| at - chrono::TimeDelta::hours(5));
    })
}

#[test]
fn empty_osd_waits_an_hour_for_its_stop_and_is_marked_in() {
    let held = emptied().with(cordoned).saved("blocked");
    check!(held.clone().minutes_later(58).plan(), Next::Wait(Wait::Gate { .. }));
    // Without the backup, no late command can mark it out again.
    let skipped = held.minutes_later(60).saved("not-emptied").cleaned_up(OSD);
    assert!(takes_in(&skipped.plan()), "{:#?}", skipped.plan());
    // An OSD that took long to empty waits as long.
    let long = long_emptied().with(cordoned).saved("blocked");
    check!(long.clone().minutes_later(298).plan(), Next::Wait(Wait::Gate { .. }));
    assert_eq!(word(&long.minutes_later(301).plan()), Some("not-emptied"));
}

#[test]
fn gate_that_is_shut_for_a_moment_gives_up_no_empty_osd() {
    let paused = |world: World| world.with(controlled(ControlKind::Pause));
    // It has waited for days, for a window.
    let waited = paused(long_emptied()).minutes_later(3000);
    check!(waited.plan(), Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. }));
    let again = waited.with(|w| w.seen.kube.control = None);
    assert!(again.clone().saved("stop").ledger.records[&OSD].stop_intended_at.is_some());
    let shut = again.with(cordoned).saved("blocked");
    check!(shut.clone().minutes_later(14).plan(), Next::Wait(Wait::Gate { .. }));
    assert_eq!(word(&shut.clone().minutes_later(15).plan()), Some("not-emptied"));
    // The time of a pause does not count.
    let cleared = paused(shut).minutes_later(600).saved("stop-intent-cleared");
    check!(cleared.plan(), Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. }));
    let after = cleared.with(|w| w.seen.kube.control = None).saved("blocked");
    check!(after.minutes_later(14).plan(), Next::Wait(Wait::Gate { .. }));
}

#[test]
fn pg_without_a_replica_elsewhere_gives_up_an_empty_osd_after_15_minutes() {
    let lacks = |world: World| world.pg_state(1, "active+undersized+degraded").with(|w| w.pg(1).degraded = 7);
    let waited = lacks(long_emptied()).minutes_later(3000);
    let shut = waited.saved("blocked");
    check!(shut.clone().minutes_later(14).plan(), Next::Wait(Wait::Emptying { elsewhere: Some(_), .. }));
    assert_eq!(word(&shut.minutes_later(15).plan()), Some("not-emptied"));
}

#[test]
fn empty_osd_that_a_gate_blocked_may_restart() {
    // The node of the OSD is cordoned, and reboots after half an hour.
    let blocked = emptied().with(cordoned).saved("blocked").minutes_later(30);
    let down = blocked.down(OSD).saved("blocked");
    check!(down.clone().minutes_later(14).plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
    assert_eq!(word(&down.clone().minutes_later(15).plan()), Some("quarantine"));
    let up = down.minutes_later(12).up(OSD).saved("up");
    check!(up.minutes_later(1).plan(), Next::Wait(Wait::Gate { reason: Reason::NodeCordoned { .. }, .. }));
}

#[test]
fn empty_osd_whose_stop_was_reverted_is_given_up_in_time() {
    let reverted = emptied().with(cordoned).with(|w| {
        (w.record(OSD).restarts, w.record(OSD).stop_reverted) = (1, Some("a reason".to_owned()));
        w.record(OSD).saved_at = Some(w.seen.at);
    });
    let blocked = reverted.minutes_later(60).saved("blocked");
    // The pause after the revert is over.
    for minutes in [1, 14] {
        check!(
            blocked.clone().minutes_later(minutes).plan(),
            Next::Wait(Wait::Gate { reason: Reason::NodeCordoned { .. }, .. })
        );
    }
    assert_eq!(word(&blocked.minutes_later(15).plan()), Some("not-emptied"));
}

#[test]
fn empty_osd_whose_stop_is_denied_keeps_waiting_for_an_hour() {
    let denied = |w: &mut World| w.seen.failed.note(Some(OSD), false, Some("a policy".to_owned()));
    let meant = emptied().saved("stop").with(denied);
    check!(meant.clone().minutes_later(58).plan(), Next::Do(_) | Next::Save { why: Saving::Fence, .. });
    assert_eq!(word(&meant.clone().minutes_later(60).plan()), Some("not-emptied"));
    // Acts of other OSDs say nothing about this one.
    let other = meant.with(|w| w.seen.failed.note(Some(FILESTORE), false, Some("a policy".to_owned())));
    assert_ne!(word(&other.minutes_later(60).plan()), Some("not-emptied"));
}

#[test]
fn empty_osd_that_restarts_twice_in_a_pause_is_not_given_up() {
    let paused = emptied().with(controlled(ControlKind::Pause));
    let up = paused.down(OSD).saved("blocked").minutes_later(5).up(OSD).saved("up");
    check!(up.clone().plan(), Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. }));
    let again = up.minutes_later(180).down(OSD).saved("blocked");
    check!(again.minutes_later(14).plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
}

#[test]
fn preparations_of_an_empty_osd_that_goes_down_are_restored() {
    let intended = emptied().saved("stop").with_flags_set(OSD).down(OSD).minutes_later(2);
    check!(intended.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { .. })));
    let unset = intended.with(|w| (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false));
    let cleared = unset.saved("stop-intent-cleared").saved("blocked");
    check!(cleared.minutes_later(14).plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
}

/// Checks that statistics which name no OSD do not make an OSD count as empty.
#[test]
fn osd_is_empty_only_by_statistics_that_place_all_its_pgs() {
    let failover = marked_out().with(|w| w.seen.ceph.pgs.clear());
    check!(
        failover.clone().plan(),
        Next::Wait(Wait::Gate { osd: OSD, reason: Reason::StatisticsIncomplete { known: 0, .. } })
    );
    check!(failover.minutes_later(90).plan(), Next::Wait(Wait::Gate { osd: OSD, .. }));
    for state in ["peering", "remapped+peering", "activating+remapped", "unknown", "stale+active+clean"] {
        let peering = marked_out().with(|w| {
            let its: Vec<_> = w.ledger.records[&OSD].held_pgs().iter().copied().collect();
            moved(w);
            w.seen.ceph.pgs.get_mut(&its[0]).unwrap().state = states(state);
        });
        check!(
            peering.clone().minutes_later(9).plan(),
            Next::Save { why: Saving::EmptyingProgress { .. }, .. }
                | Next::Wait(Wait::Emptying { pgs: 1, .. })
        );
        let world =
            peering.with(|w| w.seen.ceph.pgs.values_mut().for_each(|pg| pg.state = states("active+clean")));
        assert_eq!(word(&world.plan()), Some("emptied"));
    }
    // PGs of other OSDs peer all the time in a large cluster.
    let others = marked_out().with(|w| {
        let its = w.ledger.records[&OSD].held_pgs().clone();
        moved(w);
        let other = w.seen.ceph.pgs.iter_mut().find(|(id, _)| !its.contains(id)).unwrap();
        other.1.state = states("peering");
    });
    assert_eq!(word(&others.plan()), Some("emptied"));
}

#[test]
fn empty_osd_with_pgs_again_is_no_longer_empty() {
    let before = marked_out().seen.ceph.pgs;
    let back = emptied().minutes_later(50).with(|w| w.seen.ceph.pgs = before).saved("emptying-progress");
    let empty = back.ledger.records[&OSD].empty.clone().unwrap();
    let count = empty.pgs.len() as u64;
    assert_eq!((empty.emptied_at, empty.least_pgs), (None, Some(count)));
    // The time of a stall begins again.
    check!(back.clone().minutes_later(59).plan(), Next::Wait(Wait::Emptying { .. }));
    assert_eq!(word(&back.minutes_later(59).with(moved).plan()), Some("emptied"));
}
