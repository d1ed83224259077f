//! A Rook that acknowledges no fence: its Deployment has a replica, and its pod is Pending or crashes.

use osd_migrate::domain::ledger::{FenceWait, Refusals, RefusedStep, Run};
use osd_migrate::domain::observation::{Control, ControlKind, Emptiable};
use osd_migrate::domain::removal::DiskAfter;

use super::rook::auxiliary;
use super::{emptying, removal, *};

/// Lets an operator of Rook run that honours fences, and acknowledges none.
fn hangs(world: World) -> World {
    auxiliary(world, None)
}

fn away(w: &mut World) {
    let operator = w.seen.kube.operator.as_mut().unwrap();
    (operator.replicas, operator.pods) = (0, 0);
}

/// Saves the fence, and sets it.
fn fenced(world: World) -> World {
    world.saved("fence").with(|w| {
        w.seen.kube.fence.clone_from(&w.ledger.run.fence);
        w.seen.kube.fenced_at = Some(8);
    })
}

/// Saves the intent to stop the OSD, sets its flags, and fences it.
fn intended(world: World) -> World {
    fenced(world.saved("stop").with_flags_set(OSD))
}

fn unclean(w: &mut World) {
    w.pg(1).state = states("active+undersized+degraded");
}

fn clean(w: &mut World) {
    w.pg(1).state = states("active+clean");
}

fn is_waited_for(next: &Next) -> bool {
    matches!(next, Next::Wait(Wait::Gate { reason: Reason::FenceNotAcknowledged { .. }, .. }))
}

fn refusals(world: &World) -> Refusals {
    world.ledger.run.refusals.clone().unwrap()
}

/// Notes that the run has given up this number of other OSDs, because Rook acknowledged no fence.
fn given_up(number: u32) -> impl Fn(&mut World) {
    move |w| {
        for osd in 0..number {
            w.ledger.note_refusal(OsdId(100 + osd), &w.policy.run, RefusedStep::Fence, "a reason");
        }
    }
}

/// Returns whether the run ends, and names the OSD as skipped because Rook acknowledges no fence.
fn ends_without(osd: OsdId, next: &Next) -> bool {
    let is_it = |(of, why): &(OsdId, String)| {
        *of == osd && why.contains("has not acknowledged the fence of the CephCluster")
    };
    matches!(next, Next::Finished(summary) if summary.skipped.iter().any(is_it))
}

#[test]
fn fence_wait_is_over_in_time_although_pgs_flap() {
    let mut world = intended(hangs(World::proven(OSD).backed_up(OSD)));
    for _ in 0..9 {
        assert!(is_waited_for(&world.plan()), "{:#?}", world.plan());
        world = world.minutes_later(2).with(unclean).saved("blocked");
        world = world.minutes_later(1).with(clean).saved("stop");
    }
    assert!(is_waited_for(&world.clone().minutes_later(2).plan()));
    let over = world.minutes_later(3).saved("withdrawn");
    assert_eq!(over.ledger.refused(OSD, &over.policy.run).unwrap().step, RefusedStep::Fence);
    // The fence of the next OSD has its own time.
    assert_eq!(over.ledger.run.fence_wait.as_ref().unwrap().since, over.seen.at);
}

#[test]
fn fence_wait_continues_after_records_are_withdrawn() {
    /// Returns the state of the run after another record that PGs block for 3 minutes, `minutes` after the
    /// first one.
    fn withdrawn(run: Run, minutes: i64) -> World {
        let world = hangs(World::proven(OSD).backed_up(OSD)).minutes_later(minutes);
        let world = intended(world.with(|w| w.ledger.run = run)).minutes_later(2);
        let world = world.with(unclean).saved("blocked").minutes_later(3).saved("withdrawn").cleaned_up(OSD);
        let world = world.with(|w| (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false));
        world.with(|w| w.seen.kube.fence = None).saved("unfenced")
    }
    let mut run = World::new().ledger.run;
    // An hour in which no fence is set does not count.
    for round in 0..5 {
        run = withdrawn(run, round * 60).ledger.run;
        assert!(run.refusals.is_none(), "{round}: {run:#?}");
    }
    let last = withdrawn(run, 300);
    assert_eq!(last.ledger.refused(OSD, &last.policy.run).unwrap().step, RefusedStep::Fence);
    assert!(refusals(&last).rook_hangs);
}

#[test]
fn acknowledged_fence_ends_the_wait_and_the_count() {
    let waits = intended(hangs(World::proven(OSD).backed_up(OSD)).with(given_up(2)));
    let known = FenceWait { job: waits.policy.run.clone(), since: waits.seen.at, removed_at: None };
    assert_eq!(waits.ledger.run.fence_wait, Some(known));
    let acknowledged = waits.with(|w| w.seen.kube.skipped = Some(9)).saved("fence-acknowledged");
    assert_eq!(acknowledged.ledger.run.fence_wait, None);
    let known = refusals(&acknowledged);
    assert_eq!((known.rook_hangs, known.unfenced, known.osds.len()), (false, 0, 2));
}

/// Checks that no acknowledgement is missed: Rook emits it once, and Kubernetes deletes it after an hour.
#[test]
fn acknowledgement_is_saved_in_a_pause_or_the_fence_set_again() {
    let rook_migrates = |w: &mut World| w.seen.kube.declaration.confirmed = true;
    let waits = fenced(hangs(World::proven(OSD).backed_up(OSD)).with(rook_migrates)).saved("blocked");
    let paused = waits.clone().with(|w| {
        w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None });
    });
    check!(paused.plan(), Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. }));
    assert!(
        paused
            .with(|w| w.seen.kube.skipped = Some(9))
            .saved("fence-acknowledged")
            .ledger
            .run
            .fence_acknowledged
    );
    // A fence that would stay is removed with the OSD that it was not acknowledged for.
    let given_up = waits.minutes_later(30).saved("withdrawn").cleaned_up(OSD);
    check!(given_up.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    // So it is at the end of a run.
    let left = given_up.with(|w| w.ledger.records.clear()).with(|w| {
        w.policy.skip = w.seen.ceph.slots.keys().copied().collect();
        w.seen.kube.declaration.storage = encrypted();
    });
    check!(left.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    let acknowledged = left.with(|w| w.ledger.run.fence_acknowledged = true);
    check!(acknowledged.plan(), Next::Finished(summary) if !summary.withheld_from_rook.is_empty());
}

#[test]
fn fence_of_an_earlier_job_has_its_time_from_the_intent() {
    let noted = intended(hangs(World::proven(OSD).backed_up(OSD)));
    let mut world = noted.with(|w| "another".clone_into(&mut w.policy.run)).minutes_later(1);
    for _ in 0..10 {
        world = world.minutes_later(2).with(unclean).saved("blocked");
        world = world.minutes_later(1).with(clean).saved("stop");
    }
    assert!(is_waited_for(&world.clone().minutes_later(2).plan()));
    assert_eq!(word(&world.minutes_later(3).plan()), Some("withdrawn"));
}

#[test]
fn empty_osd_without_a_fence_keeps_others_from_being_emptied() {
    let world = intended(hangs(emptying::emptied()));
    assert!(is_waited_for(&world.clone().minutes_later(58).plan()));
    let skipped = world.minutes_later(60).saved("not-emptied");
    assert_eq!(skipped.ledger.refused(OSD, &skipped.policy.run).unwrap().step, RefusedStep::Fence);
    let (run, known) = (skipped.policy.run.clone(), refusals(&skipped));
    assert!(known.rook_hangs && known.job == run);
    // No other OSD is recorded, and the run ends.
    let others = hangs(World::new()).with(|w| {
        w.policy.empty = Empty::All;
        for osd in [OSD, FILESTORE] {
            w.seen.ceph.emptiable.insert(osd, Emptiable::Yes { moved_bytes: 0, fullest: None });
        }
    });
    let asked = |world: &World| plan::questions(&world.policy, &world.ledger, &world.seen).emptiable;
    assert_eq!((word(&others.plan()), asked(&others)), (Some("record"), Some(OSD)));
    let others = others.with(|w| w.ledger.run.refusals = Some(known));
    for osd in [OSD, FILESTORE] {
        assert!(ends_without(osd, &others.plan()), "{:#?}", others.plan());
    }
    assert_eq!(asked(&others), None);
    // Another OSD that keeps its data is tried, and by another Job all of them are.
    let in_place = others.clone().with(|w| w.policy.empty = Empty::Never);
    check!(in_place.plan(), Next::Save { osd: Some(FILESTORE), why: Saving::Record, .. });
    let again = others.with(|w| {
        "another".clone_into(&mut w.policy.run);
        w.policy.select = [FILESTORE].into();
    });
    check!(again.plan(), Next::Save { osd: Some(FILESTORE), why: Saving::Record, .. });
}

#[test]
fn osd_is_not_emptied_while_rook_acknowledges_no_fence() {
    let recorded = hangs(emptying::proven());
    assert_eq!(word(&recorded.plan()), Some("emptying"));
    let withdrawn = recorded.clone().with(given_up(1)).saved("withdrawn");
    assert!(withdrawn.ledger.refused(OSD, &withdrawn.policy.run).is_none(), "it was not tried");
    let closed = withdrawn.cleaned_up(OSD).saved("closed");
    assert!(ends_without(OSD, &closed.plan()), "{:#?}", closed.plan());
    // Without an operator that has to be fenced, nothing hangs, and nothing did.
    let at_0 = recorded.with(given_up(1)).with(away).saved("emptying");
    assert!(!refusals(&at_0).rook_hangs);
    check!(hangs(at_0).plan(), Next::Do(Act::Ceph(CephAct::MarkOut { .. })));
}

#[test]
fn osd_is_not_removed_while_rook_acknowledges_no_fence() {
    let recorded = hangs(removal::proven(DiskAfter::Wipe));
    assert_eq!(word(&recorded.plan()), Some("emptying"));
    assert_eq!(word(&recorded.with(given_up(1)).plan()), Some("withdrawn"));
    let requested = hangs(removal::requested(DiskAfter::Wipe));
    check!(requested.plan(), Next::Save { osd: Some(OSD), why: Saving::Record, .. });
    let refused = requested.with(given_up(1)).plan();
    assert!(ends_without(OSD, &refused), "{refused:#?}");
    // The removal of an OSD that was given up itself is refused.
    let world = intended(hangs(removal::emptied(DiskAfter::Wipe))).minutes_later(60).saved("not-emptied");
    let end =
        hangs(removal::requested(DiskAfter::Wipe)).with(|w| w.ledger.run.refusals = Some(refusals(&world)));
    let is_named = |(osd, why): &(OsdId, String)| *osd == OSD && why.contains("has not acknowledged");
    check!(end.plan(), Next::Finished(s) if s.unremoved == [OSD].into() && s.refused.iter().any(is_named));
}

#[test]
fn osd_is_not_emptied_while_drains_cannot_be_blocked() {
    let rejected = |w: &mut World| {
        w.seen.kube.osd_pdb = None;
        w.seen.kube.pdb_rejected = Some("by a policy".to_owned());
    };
    assert_eq!(word(&emptying::proven().with(rejected).plan()), Some("withdrawn"));
    assert_eq!(word(&removal::proven(DiskAfter::Wipe).with(rejected).plan()), Some("withdrawn"));
    let candidate = World::new().with(|w| {
        (w.policy.empty, w.policy.select) = (Empty::All, [OSD].into());
        w.seen.ceph.emptiable.insert(OSD, Emptiable::Yes { moved_bytes: 0, fullest: None });
    });
    assert_eq!(word(&candidate.plan()), Some("record"));
    let waits = candidate.with(rejected).saved("skipping");
    check!(waits.plan(), Next::Wait(Wait::Gate { osd: OSD, reason: Reason::PdbRejected { .. } }));
    let over = waits.minutes_later(24 * 60).plan();
    let is_named = |(osd, why): &(OsdId, String)| *osd == OSD && why.contains("by a policy");
    check!(over, Next::Finished(s) if s.skipped.iter().any(is_named));
}

#[test]
fn run_tries_no_osd_after_three_without_a_fence() {
    let world = hangs(World::new());
    assert_eq!(word(&world.clone().with(given_up(2)).plan()), Some("record"));
    let three = world.with(given_up(3));
    for osd in [OSD, FILESTORE] {
        assert!(ends_without(osd, &three.plan()), "{:#?}", three.plan());
    }
    // The run goes on to new OSDs.
    let new = three.clone().with(|w| w.seen.kube.declaration.storage.selection.all = Some(true)).plan();
    assert!(ends_without(OSD, &new), "{new:#?}");
    check!(new, Next::Finished(summary) if !summary.left_to_rook.is_empty());
    // An operator at 0 needs no fence, and an OSD that is begun on then shows it.
    let at_0 = three.with(away).with(|w| w.policy.select = [OSD].into()).saved("record");
    let proven = at_0.report(OSD, Some(old_content(OSD)), None).saved("proof");
    assert_eq!((refusals(&proven).rook_hangs, refusals(&proven).unfenced), (false, 0));
}

#[test]
fn refusals_of_an_earlier_version_are_read() {
    let text = r#"{"job":"job","osds":[[5,{"step":"fence","why":"a reason"}]],"rook_hangs":true}"#;
    let read: Refusals = serde_json::from_str(text).unwrap();
    assert_eq!((read.rook_hangs, read.unfenced), (true, 0));
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}
