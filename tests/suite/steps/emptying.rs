//! The phase Emptying: an OSD is marked out, serves until no PG needs it, and is marked in again.

use osd_migrate::domain::act::DataPrecondition;
use osd_migrate::domain::ledger::Emptying;
use osd_migrate::domain::observation::{Control, ControlKind, Emptiable};

use super::*;

/// Returns a world in which the OSD is proven, and is to be emptied.
pub(super) fn proven() -> World {
    World::proven(OSD).backed_up(OSD).with(|w| {
        w.policy.empty = Empty::All;
        w.record(OSD).empty = Some(Emptying::default());
        let yes = Emptiable::Yes { moved_bytes: 0, fullest: None };
        w.seen.ceph.emptiable.insert(OSD, yes);
    })
}

/// Returns a world in which the OSD is marked out, and its PGs are still on it.
pub(super) fn marked_out() -> World {
    proven().saved("emptying").with(|w| w.slot(OSD).is_in = false).saved("marked-out")
}

#[test]
fn osd_that_another_client_marked_out_waits_until_its_data_has_left() {
    let out = World::new().with(|w| {
        w.policy.select = [OSD].into();
        w.seen.ceph.pools.get_mut(&POOL).unwrap().size = 2;
        w.slot(OSD).is_in = false;
    });
    let waits = out.saved("skipping");
    check!(waits.clone().plan(), Next::Wait(Wait::Gate { reason: Reason::StillNeeded { .. }, .. }));
    check!(waits.with(moved).plan(), Next::Save { osd: Some(OSD), why: Saving::Record, .. });
}

/// Moves all PGs of the OSD to other OSDs.
pub(super) fn moved(w: &mut World) {
    for pg in w.seen.ceph.pgs.values_mut().filter(|pg| pg.up.contains(&OSD)) {
        let free = (0..6).map(OsdId).find(|osd| !pg.up.contains(osd)).unwrap();
        pg.up.remove(&OSD);
        pg.up.insert(free);
        pg.acting = pg.up.clone();
    }
}

/// Returns a world in which no PG needs the OSD, and Ceph agrees.
pub(super) fn emptied() -> World {
    let world = marked_out().with(moved).saved("emptied").minutes_later(1);
    world.with(|w| w.seen.ceph.safe_to_destroy = [(OSD, true)].into())
}

pub(super) fn controlled(kind: ControlKind) -> impl FnOnce(&mut World) {
    move |w| w.seen.kube.control = Some(Control { kind, since: None })
}

pub(super) fn cordoned(w: &mut World) {
    w.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().cordoned = true;
}

pub(super) fn takes_in(next: &Next) -> bool {
    matches!(next, Next::Do(Act::Ceph(CephAct::TakeIn { osd: OSD, .. })))
}

#[test]
fn emptying_is_saved_with_the_in_weight_before_the_osd_is_marked_out() {
    let unsaved = proven().with(|w| w.slot(OSD).reweight = Weight(0x8000));
    let saved = unsaved.saved("emptying");
    let record = &saved.ledger.records[&OSD];
    assert_eq!(record.reweight, Weight(0x8000));
    assert!(!record.held_pgs().is_empty() && record.is_marked_out());
    check!(saved.plan(), Next::Do(Act::Ceph(CephAct::MarkOut { osd: OSD, .. })));
}

#[test]
fn osd_is_not_marked_out_while_a_gate_of_its_stop_is_shut() {
    type Change = fn(&mut World);
    let changes: [Change; 4] = [
        cordoned,
        |w| w.seen.ceph.flags = ["norebalance".to_owned()].into(),
        |w| w.seen.ceph.health = ["OSD_NEARFULL".to_owned()].into(),
        |w| w.seen.ceph.emptiable.clear(),
    ];
    for change in changes {
        for world in [proven(), proven().saved("emptying")] {
            let next = world.with(change).plan();
            let waits =
                matches!(next, Next::Wait(Wait::Gate { .. }) | Next::Save { why: Saving::Blocked, .. });
            assert!(waits, "{next:#?}");
        }
    }
}

#[test]
fn osd_that_cannot_be_emptied_is_skipped_in_this_run() {
    let full = |w: &mut World| {
        w.seen.ceph.emptiable.insert(OSD, Emptiable::No("osd.3 would be full".to_owned()));
    };
    let given_up = proven().with(full).saved("not-emptied");
    let end = given_up.cleaned_up(OSD).saved("closed");
    let Next::Finished(summary) = end.plan() else { panic!("{:#?}", end.plan()) };
    assert!(
        matches!(summary.refused.as_slice(), [(OSD, why)] if why.contains("osd.3 would be full")),
        "{summary:#?}"
    );
    // Another OSD is not held up, and a run of another Job asks again.
    let others = end.clone().with(|w| {
        w.policy.select.clear();
        w.seen.ceph.emptiable.insert(FILESTORE, Emptiable::Yes { moved_bytes: 0, fullest: None });
    });
    check!(others.plan(), Next::Save { osd: Some(FILESTORE), why: Saving::Record, .. });
    let again = end.with(|w| w.policy.run = "another".to_owned());
    check!(again.plan(), Next::Save { osd: Some(OSD), .. });
}

#[test]
fn emptied_osd_is_stopped_when_ceph_agrees_and_statistics_are_new() {
    let world = emptied();
    let saved = world.clone().saved("stop");
    assert!(saved.ledger.records[&OSD].pgs.is_empty());
    check!(
        saved.with_flags_set(OSD).fenced(OSD).plan(),
        Next::Do(Act::Kube(KubeAct::LimitDrains { .. } | KubeAct::Stop { emptied: true, .. }))
            | Next::Save { why: Saving::Pdb, .. }
    );
    let disagrees = world.clone().with(|w| w.seen.ceph.safe_to_destroy = [(OSD, false)].into());
    let disagrees = disagrees.saved("blocked");
    check!(disagrees.plan(), Next::Wait(Wait::Gate { reason: Reason::NotSafeToDestroy { .. }, .. }));
    let too_early = marked_out().with(moved).saved("emptied");
    check!(too_early.plan(), Next::Wait(Wait::Emptying { pgs: 0, .. }));
    let needed = world.with(|w| w.pg(0).acting.extend([OSD]));
    check!(needed.plan(), Next::Wait(Wait::Emptying { pgs: 1, .. }) | Next::Save { .. });
}

#[test]
fn osd_that_does_not_become_empty_is_quarantined_and_marked_in() {
    let world = marked_out();
    check!(world.clone().minutes_later(59).plan(), Next::Wait(Wait::Emptying { .. }));
    let quarantined = world.minutes_later(60).saved("quarantine");
    assert!(takes_in(&quarantined.plan()), "{:#?}", quarantined.plan());
    // A person takes it out afterwards: it stays out.
    let inside = quarantined.with(|w| w.slot(OSD).is_in = true).saved("up");
    let theirs = inside.with(|w| w.slot(OSD).is_in = false);
    assert!(!takes_in(&theirs.plan()), "{:#?}", theirs.plan());
    // One object that moved is enough, however slow that is.
    let slow = marked_out().minutes_later(59).with(|w| {
        let mut on_it = w.seen.ceph.pgs.values_mut().filter(|pg| pg.up.contains(&OSD));
        let pg = on_it.next().unwrap();
        (pg.objects, pg.misplaced) = (1000, 999);
    });
    check!(slow.saved("emptying-progress").minutes_later(59).plan(), Next::Wait(Wait::Emptying { .. }));
    // With less data on it, the time counts from there.
    let less = marked_out().minutes_later(59).with(|w| {
        let mut on_it = w.seen.ceph.pgs.values_mut().filter(|pg| pg.up.contains(&OSD));
        let pg = on_it.next().unwrap();
        let free = (0..6).map(OsdId).find(|osd| !pg.up.contains(osd)).unwrap();
        pg.up = pg.up.iter().map(|osd| if *osd == OSD { free } else { *osd }).collect();
        pg.acting = pg.up.clone();
    });
    let goes_on = less.saved("emptying-progress").minutes_later(59);
    check!(goes_on.plan(), Next::Wait(Wait::Emptying { .. }));
}

/// Moves one PG of the OSD to another OSD.
fn one_moved(w: &mut World) {
    let pg = w.seen.ceph.pgs.values_mut().find(|pg| pg.up.contains(&OSD)).unwrap();
    let free = (0..6).map(OsdId).find(|osd| !pg.up.contains(osd)).unwrap();
    pg.up = pg.up.iter().map(|osd| if *osd == OSD { free } else { *osd }).collect();
    pg.acting = pg.up.clone();
}

#[test]
fn fewer_pgs_are_progress_although_clients_write_more() {
    let written = |w: &mut World| {
        w.seen.ceph.pgs.values_mut().for_each(|pg| pg.bytes = 2 * (pg.bytes + GIB));
    };
    let moved = marked_out().minutes_later(59).with(one_moved).with(written).saved("emptying-progress");
    check!(moved.clone().minutes_later(59).plan(), Next::Wait(Wait::Emptying { .. }));
    assert!(quarantine(&moved.clone().minutes_later(60).plan()).is_some());
    // A ledger of an earlier version has no number of PGs.
    let earlier = marked_out().minutes_later(59).with(one_moved).with(written).with(|w| {
        w.record(OSD).empty.as_mut().unwrap().least_pgs = None;
    });
    assert_eq!(word(&earlier.plan()), Some("emptying-progress"));
    assert!(quarantine(&marked_out().with(written).minutes_later(60).plan()).is_some());
}

#[test]
fn emptying_that_a_flag_or_another_recovery_holds_up_is_no_stall() {
    type Change<'a> = &'a dyn Fn(&mut World);
    let elsewhere = |w: &mut World, state: &str| {
        let pg = w.seen.ceph.pgs.values_mut().find(|pg| !pg.is_on(OSD)).unwrap();
        (pg.state, pg.degraded) = (states(state), pg.objects);
    };
    let flagged: Change<'_> = &|w| w.seen.ceph.flags = ["nobackfill".to_owned()].into();
    let own = |w: &mut World, state: &str| {
        w.seen.ceph.pgs.values_mut().find(|pg| pg.is_on(OSD)).unwrap().state = states(state);
    };
    let recovers: Change<'_> = &|w| {
        elsewhere(w, "active+undersized+degraded+remapped+backfilling");
        own(w, "active+remapped+backfill_wait");
    };
    for change in [flagged, recovers] {
        let pgs = marked_out().seen.ceph.pgs.clone();
        let held = marked_out().with(change).minutes_later(9);
        check!(held.clone().plan(), Next::Wait(Wait::Emptying { .. }));
        let saved = held.minutes_later(60).saved("emptying-held-up");
        let over = saved.with(|w| (w.seen.ceph.flags, w.seen.ceph.pgs) = ([].into(), pgs));
        check!(over.clone().minutes_later(59).plan(), Next::Wait(Wait::Emptying { .. }));
        assert!(quarantine(&over.minutes_later(60).plan()).is_some());
    }
    // A PG that lacks space does not wait for others, and in a large cluster, data always moves.
    let full = marked_out().with(recovers).with(|w| own(w, "active+remapped+backfill_toofull"));
    assert!(quarantine(&full.minutes_later(60).plan()).is_some());
    // PGs that only wait hold up nothing.
    let waiting = marked_out().with(|w| elsewhere(w, "active+undersized+degraded+remapped+backfill_wait"));
    assert!(quarantine(&waiting.minutes_later(60).plan()).is_some());
}

#[test]
fn emptying_behind_another_recovery_names_one_of_its_pgs() {
    let elsewhere = |w: &mut World| {
        let pg = w.seen.ceph.pgs.values_mut().find(|pg| !pg.is_on(OSD)).unwrap();
        (pg.state, pg.degraded) = (states("active+undersized+degraded+remapped+backfilling"), pg.objects);
    };
    let text = |world: World| {
        let Next::Wait(wait) = world.clone().plan() else { panic!("{:#?}", world.plan()) };
        wait.to_string()
    };
    assert!(!text(marked_out()).contains("recovers"), "{}", text(marked_out()));
    let behind = text(marked_out().with(elsewhere));
    let said = ". Ceph recovers other data first, for example PG ";
    assert!(behind.contains(said) && behind.contains("+backfilling)"), "{behind}");
    // Data of the OSD moves, too: it is only slower.
    let slower = marked_out().with(elsewhere).with(|w| {
        let pg = w.seen.ceph.pgs.values_mut().find(|pg| pg.is_on(OSD)).unwrap();
        pg.state = states("active+remapped+backfilling");
    });
    assert!(!text(slower.clone()).contains(said), "{}", text(slower));
}

#[test]
fn pause_holds_up_the_stop_and_not_the_emptying() {
    let paused = || controlled(ControlKind::Pause);
    check!(marked_out().with(paused()).plan(), Next::Wait(Wait::Emptying { .. }));
    check!(emptied().with(paused()).plan(), Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. }));
    // An OSD that is not marked out yet waits.
    check!(proven().with(paused()).plan(), Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. }));
    // The preparations for the stop are restored, and the OSD stays empty.
    let intended = emptied().saved("stop").with_flags_set(OSD).with(paused());
    check!(intended.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { .. })));
    let unset = intended.with(|w| (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false));
    let cleared = unset.saved("stop-intent-cleared");
    assert_eq!(cleared.ledger.records[&OSD].stop_intended_at, None);
    check!(cleared.minutes_later(600).plan(), Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. }));
}

#[test]
fn cancelled_emptying_marks_the_osd_in_and_withdraws_the_record() {
    type Change = fn(&mut World);
    let changes: [Change; 3] = [
        |w| w.seen.kube.control = Some(Control { kind: ControlKind::Cancel, since: None }),
        |w| w.policy.empty = Empty::Never,
        |w| w.policy.leaves = true,
    ];
    for change in changes {
        for world in [marked_out(), emptied()] {
            let world = world.with(change);
            assert!(takes_in(&world.plan()), "{:#?}", world.plan());
            let inside = world.with(|w| w.slot(OSD).is_in = true);
            assert_eq!(word(&inside.plan()), Some("withdrawn"));
        }
    }
}

#[test]
fn osd_that_goes_down_while_it_is_emptied_stays_out_until_it_is_up() {
    let down = marked_out().down(OSD).saved("blocked");
    check!(down.clone().minutes_later(14).plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
    let quarantined = down.clone().minutes_later(15).saved("quarantine");
    assert!(!takes_in(&quarantined.plan()), "{:#?}", quarantined.plan());
    assert!(takes_in(&quarantined.up(OSD).plan()));
    // Up in time, it goes on.
    check!(down.up(OSD).saved("up").plan(), Next::Wait(Wait::Emptying { .. }));
}

#[test]
fn record_of_an_emptied_osd_closes_when_its_pgs_are_seen_again() {
    let before = marked_out();
    let pgs = before.seen.ceph.pgs.clone();
    let given_up = before.with(moved).saved("emptied").with(|w| w.policy.empty = Empty::Never);
    let inside = given_up.with(|w| w.slot(OSD).is_in = true).saved("withdrawn").cleaned_up(OSD);
    check!(inside.clone().plan(), Next::Wait(Wait::FreshView));
    assert_eq!(word(&inside.clone().with(|w| w.seen.ceph.pgs = pgs).plan()), Some("closed"));
    // The balancer has given them to other OSDs.
    assert_eq!(word(&inside.minutes_later(1).plan()), Some("closed"));
}

#[test]
fn osd_that_another_client_marks_in_is_skipped_in_this_run() {
    for world in [marked_out(), emptied()] {
        let given_up = world.with(|w| w.slot(OSD).is_in = true).saved("not-emptied");
        assert!(!takes_in(&given_up.plan()), "{:#?}", given_up.plan());
    }
    // Marked out by another client before osd-migrate did it: its data moves without it.
    let theirs = proven().with(|w| w.slot(OSD).is_in = false);
    assert_eq!(word(&theirs.plan()), Some("withdrawn"));
}

#[test]
fn gate_that_shuts_before_the_stop_of_an_empty_osd_undoes_the_preparations() {
    let held = emptied().saved("stop").with_flags_set(OSD).with(cordoned).saved("blocked");
    check!(held.clone().minutes_later(2).plan(), Next::Wait(Wait::Gate { .. }));
    let undone = held.minutes_later(3);
    check!(undone.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { .. })));
    let unset = undone.with(|w| (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false));
    let cleared = unset.saved("stop-intent-cleared").saved("blocked");
    check!(cleared.plan(), Next::Wait(Wait::Gate { reason: Reason::NodeCordoned { .. }, .. }));
    // The in-weight was saved before, and is not read again from an OSD that is out.
    let again = cleared.with(|w| {
        w.seen.kube.nodes.values_mut().for_each(|node| node.cordoned = false);
        w.slot(OSD).reweight = Weight(0);
    });
    assert_ne!(again.saved("stop").ledger.records[&OSD].reweight, Weight(0));
}

#[test]
fn emptied_osd_is_destroyed_only_while_it_is_out_and_nothing_is_missing() {
    let stopped = || {
        let mut world = emptied().saved("stop").with_flags_set(OSD).fenced(OSD);
        let id = world.record(OSD).id.clone();
        let daemon = world.daemon(OSD);
        (daemon.replicas, daemon.stopped_by) = (0, Some(id));
        daemon.pods.clear();
        world.saved("down").down(OSD)
    };
    check!(
        stopped().plan(),
        Next::Do(Act::Ceph(CephAct::Destroy {
            precondition: Some(DataPrecondition::NoneMissing { .. }),
            ..
        }))
    );
    let inside = stopped().with(|w| w.slot(OSD).is_in = true);
    assert_eq!(word(&inside.plan()), Some("revert-stop"));
    // Another replica is missing: nothing is excused.
    let lacking = stopped().with(|w| {
        let pg = w.pg(0);
        pg.acting.pop_first();
        (pg.state, pg.degraded) = (states("active+undersized+degraded"), pg.objects);
    });
    assert_eq!(word(&lacking.plan()), Some("revert-stop"));
}

#[test]
fn retried_osd_is_emptied_from_the_beginning() {
    let quarantined = marked_out().minutes_later(60).saved("quarantine");
    let retried = quarantined.ledger.retried(OSD, quarantined.seen.at).unwrap();
    let empty = retried.records[&OSD].empty.as_ref().unwrap();
    assert_eq!((empty.out_since, &empty.least, empty.emptied_at), (None, &None, None));
    // Still down, it is still out: the record does not forget it.
    let down = World { ledger: retried, ..quarantined }.down(OSD).saved("blocked");
    assert_eq!(word(&down.minutes_later(15).plan()), Some("quarantine"));
}
