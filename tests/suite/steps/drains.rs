//! No drain may evict another OSD while osd-migrate has stopped one (ADR 0021).

use osd_migrate::domain::ledger::FormerPdb;
use osd_migrate::domain::observation::{Control, ControlKind, OsdPdb};

use super::*;

/// Sets the OSDs' PodDisruptionBudget, and its generation.
fn pdb(max_unavailable: u32, generation: i64) -> impl FnOnce(&mut World) {
    move |w| {
        let (left_out, uid) = (BTreeSet::new(), "rooks".to_owned());
        w.seen.kube.osd_pdb = Some(OsdPdb { max_unavailable, left_out, uid, generation });
    }
}

fn was(max_unavailable: u32, generation: i64) -> Option<FormerPdb> {
    Some(FormerPdb { max_unavailable, uid: Some("rooks".to_owned()), generation: Some(generation) })
}

/// Limits the PodDisruptionBudget as osd-migrate does, on generation 4.
fn limited(world: World) -> World {
    world.with(pdb(0, 5)).with(|w| w.ledger.run.pdb = was(1, 4))
}

fn is_write(next: &Next, limit: u32, on: i64) -> bool {
    matches!(next, Next::Do(Act::Kube(KubeAct::LimitDrains { max_unavailable, generation, .. }))
        if *max_unavailable == limit && *generation == on)
}

fn is_stop(next: &Next) -> bool {
    matches!(next, Next::Do(Act::Kube(KubeAct::Stop { .. })))
}

fn is_own(next: &Next) -> bool {
    matches!(next, Next::Do(Act::Kube(KubeAct::CreatePdb { osd: OSD, .. })))
}

fn none_of_rooks(w: &mut World) {
    w.seen.kube.osd_pdb = None;
}

fn own(w: &mut World) {
    w.seen.kube.own_pdb = Some("own".to_owned());
}

/// Changes Rook's PodDisruptionBudget so that it does not count an OSD.
fn leaves_out(osd: OsdId) -> impl FnOnce(&mut World) {
    move |w| {
        pdb(1, 4)(w);
        w.seen.kube.osd_pdb.as_mut().unwrap().left_out = [osd].into();
    }
}

fn cancel(w: &mut World) {
    w.seen.kube.control = Some(Control { kind: ControlKind::Cancel, since: None });
}

#[test]
fn pdb_is_saved_and_then_limited_right_before_a_stop() {
    let saved = World::intended(OSD).with(pdb(1, 4)).saved("pdb");
    assert_eq!(saved.ledger.run.pdb, was(1, 4));
    assert!(is_write(&saved.plan(), 0, 4), "{:?}", saved.plan());
    assert!(is_stop(&saved.with(pdb(0, 5)).plan()));
    // Nothing is to be done if the PodDisruptionBudget already allows no eviction.
    assert!(is_stop(&World::intended(OSD).with(pdb(0, 4)).plan()));
}

#[test]
fn own_pdb_is_created_if_rooks_is_missing_or_excludes_an_osd() {
    let other = if OSD == BY_HAND { FILESTORE } else { BY_HAND };
    assert!(is_own(&World::intended(OSD).with(none_of_rooks).plan()));
    let left_out = World::intended(OSD).with(leaves_out(other));
    assert!(is_own(&left_out.plan()));
    assert!(is_stop(&left_out.clone().with(own).plan()));
    // The OSD itself, and an OSD that is down, need not be counted.
    assert!(!is_own(&World::intended(OSD).with(leaves_out(OSD)).plan()));
    assert!(!is_own(&left_out.with(|w| w.slot(other).up = false).plan()));
}

#[test]
fn stop_waits_one_minute_for_rooks_pdb_to_count_all_up_osds() {
    let other = if OSD == BY_HAND { FILESTORE } else { BY_HAND };
    let inspected = |replicas: u32| {
        move |w: &mut World| {
            let at = w.seen.at;
            w.record(OSD).milestones.push((Saving::Proof.code().to_owned(), at));
            let operator = w.seen.kube.operator.as_mut().unwrap();
            (operator.replicas, operator.pods, operator.honours_fence) = (replicas, replicas, true);
            w.seen.kube.declaration.confirmed = false;
            w.policy.confirmed = true;
        }
    };
    let left_out = World::proven(OSD).with(leaves_out(other)).with(inspected(1));
    check!(
        left_out.plan(),
        Next::Wait(Wait::Gate { osd: OSD, reason: Reason::PdbExcludesOsd { osd } }) if *osd == other
    );
    // The run waits at most a minute; nor does it wait for this OSD, for one that is down, or if nothing was
    // observed.
    let goes_on = |world: World| !matches!(world.plan(), Next::Wait(_));
    assert!(goes_on(left_out.clone().minutes_later(1)));
    assert!(goes_on(left_out.clone().with(leaves_out(OSD))));
    assert!(goes_on(left_out.clone().with(|w| w.slot(other).up = false)));
    assert!(goes_on(World::proven(OSD).with(leaves_out(other)).with(inspected(0))));
    // Rook gives up on all of them while one legacy Deployment has no label of its topology.
    assert!(goes_on(left_out.with(|w| w.daemon(OSD).names_topology = false)));
}

#[test]
fn own_pdb_is_created_if_rook_changes_its_pdb_after_a_stop() {
    let other = if OSD == BY_HAND { FILESTORE } else { BY_HAND };
    let leaves_out = |w: &mut World| w.seen.kube.osd_pdb.as_mut().unwrap().left_out = [other].into();
    for world in committed() {
        let limited = limited(world);
        let undisturbed = limited.plan();
        let cases: [&dyn Fn(&mut World); 3] = [&none_of_rooks, &|w| pdb(1, 6)(w), &leaves_out];
        for change in cases {
            let changed = limited.clone().with(change);
            assert!(is_own(&changed.plan()));
            assert_eq!(changed.with(own).plan(), undisturbed);
        }
    }
}

/// Checks a rejection by a missing right, a quota, or a policy.
#[test]
fn own_pdb_rejection_blocks_a_stop_but_no_committed_osd() {
    let refused = |w: &mut World| w.seen.kube.pdb_rejected = Some("by a policy".to_owned());
    check!(
        held(World::intended(OSD).with(none_of_rooks).with(refused)).plan(),
        Next::Wait(Wait::Gate { osd: OSD, reason: Reason::PdbRejected { why } }) if why == "by a policy"
    );
    assert!(is_stop(&World::intended(OSD).with(pdb(0, 4)).with(refused).plan()));
    for world in committed() {
        let limited = limited(world);
        let undisturbed = limited.plan();
        assert_eq!(limited.with(none_of_rooks).with(refused).plan(), undisturbed);
    }
}

#[test]
fn own_pdb_is_deleted_before_rooks_is_restored() {
    let closing = limited(World::filled(OSD).with(|w| w.record(OSD).closing = true));
    let both = closing.clone().with(own);
    assert_eq!(both.plan(), Next::Do(Act::Kube(KubeAct::DeletePdb { uid: "own".to_owned() })));
    assert!(is_write(&closing.plan(), 1, 5));
    // Also one that came late, by a runner that was frozen.
    let left = World::new().with(own).with(|w| w.policy.skip = [BY_HAND, FILESTORE].into());
    check!(left.clone().plan(), Next::Do(Act::Kube(KubeAct::DeletePdb { .. })));
    check!(left.with(cancel).plan(), Next::Do(Act::Kube(KubeAct::DeletePdb { .. })));
}

#[test]
fn pdb_is_restored_after_backfill_before_anything_else() {
    let closing = limited(World::filled(OSD).with(|w| w.record(OSD).closing = true));
    assert!(is_write(&closing.plan(), 1, 5));
    let back = closing.with(pdb(1, 6)).saved("pdb-restored");
    assert_eq!((&back.ledger.run.pdb, &back.ledger.run.last_pdb), (&None, &was(1, 4)));
    assert!(!matches!(back.plan(), Next::Do(Act::Kube(KubeAct::LimitDrains { .. }))));
}

#[test]
fn pdb_is_restored_once_the_pod_is_ready_or_a_minute_later() {
    let rooks: fn(&Next) -> bool = |next| is_write(next, 1, 5);
    is_waited_for(limited(World::filled(OSD)), rooks);
    let ours: fn(&Next) -> bool = |next| matches!(next, Next::Do(Act::Kube(KubeAct::DeletePdb { .. })));
    is_waited_for(World::filled(OSD).with(none_of_rooks).with(own), ours);
}

fn is_waited_for(world: World, is_put_back: fn(&Next) -> bool) {
    let closing = world.with(|w| {
        let at = w.seen.at;
        w.record(OSD).closing = true;
        w.record(OSD).milestones.push((Saving::Closing.code().to_owned(), at));
        w.daemon(OSD).rolled_out = false;
    });
    let mut turns = closing.clone();
    loop {
        match turns.plan() {
            Next::Wait(Wait::Up { osd: OSD, .. }) => break,
            Next::Save { ledger, .. } => turns.ledger = ledger,
            Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { .. })) => {
                (turns.slot(OSD).noout, turns.slot(OSD).noin) = (false, false);
            }
            Next::Do(Act::Kube(KubeAct::Unfence { .. })) => turns.seen.kube.fence = None,
            next => panic!("{next:?}"),
        }
    }
    assert!(is_put_back(&turns.clone().with(|w| w.daemon(OSD).rolled_out = true).plan()));
    assert!(is_put_back(&turns.minutes_later(1).plan()));
}

#[test]
fn pdb_changed_or_deleted_externally_is_not_restored() {
    let closing = || limited(World::filled(OSD).with(|w| w.record(OSD).closing = true));
    // Also an external 0.
    for theirs in [pdb(1, 6), pdb(0, 7), pdb(3, 8)] {
        closing().with(theirs).saved("pdb-restored");
    }
    closing().with(|w| w.seen.kube.osd_pdb = None).saved("pdb-restored");
}

#[test]
fn reverted_stop_restarts_the_osd_before_the_pdb_is_restored() {
    let turned =
        limited(World::stopped(OSD)).with(|w| w.record(OSD).stop_reverted = Some("a reason".to_owned()));
    check!(turned.plan(), Next::Do(Act::Kube(KubeAct::Restart { .. })));
    let again =
        limited(World::intended(OSD)).with(|w| w.record(OSD).stop_reverted = Some("a reason".to_owned()));
    assert!(is_write(&again.plan(), 1, 5));
}

#[test]
fn pdb_is_restored_for_quarantined_and_withdrawn_osds() {
    let quarantined = |w: &mut World| {
        let since = w.seen.at;
        w.record(OSD).quarantine =
            Some(osd_migrate::domain::ledger::Quarantine { why: "no luck".to_owned(), since });
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
    };
    for world in committed() {
        assert!(is_write(&limited(world).with(quarantined).plan(), 1, 5));
    }
    // The gate shut after the limit: the OSD is given up after three minutes, and drains wait no longer.
    let shut = limited(World::intended(OSD)).with(|w| w.seen.kube.rook_prepares = vec![prepare(None)]);
    let shut = held(shut);
    check!(shut.plan(), Next::Wait(Wait::Gate { .. }));
    check!(shut.clone().minutes_later(2).plan(), Next::Wait(Wait::Gate { .. }));
    assert!(is_write(&shut.minutes_later(3).saved("withdrawn").plan(), 1, 5));
    let cancelled = limited(World::intended(OSD)).with(cancel).minutes_later(1).saved("withdrawn");
    assert!(is_write(&cancelled.plan(), 1, 5));
    // After its stop the OSD is finished, and the limit is not restored before that.
    for world in committed() {
        let next = limited(world).with(cancel).minutes_later(1).plan();
        assert!(!matches!(next, Next::Do(Act::Kube(KubeAct::LimitDrains { .. }))), "{next:?}");
    }
}

#[test]
fn pdb_left_limited_is_restored_by_a_run_with_nothing_to_do() {
    let left = || limited(World::new()).with(|w| w.policy.skip = [BY_HAND, FILESTORE].into());
    let cases: [fn(&mut World); 4] =
        [|_| (), cancel, |w| w.policy.leaves = true, |w| w.seen.kube.declaration.confirmed = false];
    for change in cases {
        assert!(is_write(&left().with(change).plan(), 1, 5));
    }
    // A recreated PodDisruptionBudget is not the one that osd-migrate wrote.
    let recreated = left().with(|w| w.seen.kube.osd_pdb.as_mut().unwrap().uid = "another".to_owned());
    recreated.saved("pdb-restored");
    // A ledger from before the limit had a generation of its own.
    let older = left().with(|w| {
        w.ledger.run.pdb = Some(FormerPdb { max_unavailable: 1, uid: None, generation: None });
    });
    assert!(is_write(&older.plan(), 1, 5));
}

#[test]
fn pdb_limit_that_arrives_late_is_restored_or_adopted() {
    // The runner was frozen right before it wrote. Another runner gave the OSD up meanwhile, and found
    // nothing to restore.
    let late = |w: &mut World| (w.ledger.run.pdb, w.ledger.run.last_pdb) = (None, was(1, 4));
    let ended = World::new().with(|w| w.policy.skip = [BY_HAND, FILESTORE].into()).with(late);
    check!(ended.clone().with(pdb(1, 4)).plan(), Next::Finished(_));
    assert!(is_write(&ended.clone().with(pdb(0, 5)).plan(), 1, 5));
    check!(ended.with(pdb(0, 6)).plan(), Next::Finished(_));
    let again = World::intended(OSD).with(late).with(pdb(0, 5)).saved("pdb");
    assert_eq!(again.ledger.run.pdb, was(1, 4));
    assert!(is_stop(&again.plan()));
}
