//! A sick part never blocks the healthy rest, and no OSD stays down without a way back (ADR 0025).
//!
//! There is one test for each finding.

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::gate::{self, Gate, Reason};
use osd_migrate::domain::ledger::{Ledger, ScaledOperator};
use osd_migrate::domain::next::{Next, Saving, Summary, Wait};
use osd_migrate::domain::observation::{Admission, Operator, Pod};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::{Accepted, Limits, RequireClean};

use crate::support::build::{
    BY_HAND, FILESTORE, World, claim, label, members, node_of, old_content, pod, quarantine, states, word,
};
use crate::support::check;

/// Two legacy OSDs on different hosts; the first of them is the sick one.
const SICK: OsdId = BY_HAND;
const HEALTHY: OsdId = FILESTORE;

type Change = fn(&mut World);

/// Changes the sick OSD to one that died long ago: down, out, and Ceph has recovered without it.
fn dead(w: &mut World) {
    let slot = w.slot(SICK);
    (slot.up, slot.is_in) = (false, false);
    for n in (0..8).filter(|n| members(*n).contains(&SICK)) {
        let others = w.pg(n).up.iter().copied().filter(|osd| *osd != SICK).collect();
        let pg = w.pg(n);
        (pg.up, pg.state) = (others, states("active+clean"));
        let free = (1..6).map(OsdId).find(|osd| !pg.up.contains(osd)).unwrap();
        pg.up.insert(free);
        pg.acting = pg.up.clone();
    }
}

fn cordoned(w: &mut World) {
    w.seen.kube.nodes.get_mut(&node_of(SICK)).unwrap().cordoned = true;
}

fn not_ready(w: &mut World) {
    w.seen.kube.nodes.get_mut(&node_of(SICK)).unwrap().ready = false;
}

fn ended(next: &Next) -> &Summary {
    match next {
        Next::Finished(summary) => summary,
        other => panic!("{other:#?}"),
    }
}

// ---- rule 1: the rest continues

#[test]
fn sick_osd_or_node_holds_up_no_other_osd() {
    let sick: [Change; 3] = [dead, cordoned, not_ready];
    for change in sick {
        let world = World::new().with(change);
        check!(world.plan(), Next::Save { osd: Some(HEALTHY), why: Saving::Record, .. });
    }
}

#[test]
fn cordoned_node_is_waited_for_and_skipped_at_last() {
    let alone = World::new().with(|w| w.policy.skip = [HEALTHY].into()).with(cordoned);
    let waits = alone.saved("skipping");
    let is_cordoned = |reason: &Reason| matches!(reason, Reason::NodeCordoned { .. });
    check!(waits.clone().minutes_later(14).plan(), Next::Wait(Wait::Gate { osd: SICK, reason }) if is_cordoned(reason));
    let end = waits.clone().minutes_later(15).plan();
    assert!(matches!(ended(&end).skipped.as_slice(), [(SICK, why)] if why.contains("cordoned")));
    // A run of another Job waits again.
    let another = waits.clone().minutes_later(60).with(|w| w.policy.run = "another".to_owned());
    assert_eq!(word(&another.plan()), Some("skipping"));
    // The owner is done: the OSD is started, and no skip is remembered.
    let back = waits.with(|w| w.seen.kube.nodes.get_mut(&node_of(SICK)).unwrap().cordoned = false);
    assert_eq!(back.saved("record").ledger.run.skipping, None);
}

#[test]
fn osd_whose_deployment_is_refused_is_skipped_unstopped() {
    let refused = |w: &mut World| {
        w.seen.kube.admission.insert(SICK, Admission::Refused("no privileged pods".to_owned()));
    };
    let world = World::proven(SICK).with(|w| w.policy.select.clear());
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::BackUp { osd: SICK, .. })));
    let closing = world.clone().with(refused).saved("not-admitted");
    let end = closing.cleaned_up(SICK).saved("closed");
    assert!(!end.ledger.records.contains_key(&SICK));
    // The next OSD is started, and this one is not started again.
    check!(end.plan(), Next::Save { osd: Some(HEALTHY), why: Saving::Record, .. });
    let alone = end.with(|w| w.policy.skip = [HEALTHY].into());
    let last = alone.plan();
    assert!(
        matches!(ended(&last).skipped.as_slice(), [(SICK, why)] if why.contains("no privileged pods")),
        "{last:#?}"
    );
    // A run of another Job asks again.
    let another = alone.with(|w| w.policy.run = "another".to_owned());
    check!(another.plan(), Next::Save { osd: Some(SICK), why: Saving::Record, .. });
    // An intent must expire before the OSD is given up: a call may still be in transit.
    let intended = World::intended(SICK).with(refused).with(|w| w.seen.at += TimeDelta::seconds(1));
    assert_eq!(word(&intended.plan()), Some("blocked"));
}

#[test]
fn stop_waits_for_the_answer_of_the_api_server() {
    let unasked = World::proven(SICK).with(|w| w.seen.kube.admission.clear());
    check!(unasked.plan(), Next::Wait(Wait::Gate { reason: Reason::AdmissionUnknown { why: None, .. }, .. }));
    let silent = unasked.clone().with(|w| {
        w.seen.kube.admission.insert(SICK, Admission::Unanswered("failed calling webhook".to_owned()));
    });
    check!(
        silent.plan(),
        Next::Wait(Wait::Gate { reason: Reason::AdmissionUnknown { why: Some(_), .. }, .. })
    );
    // The program asks for admission of the future Deployment once nothing else blocks.
    let asked = |world: &World| plan::questions(&world.policy, &world.ledger, &world.seen).admission;
    let deploy = asked(&unasked).unwrap();
    assert_eq!((deploy.osd, &deploy.node), (SICK, &node_of(SICK)));
    assert!(deploy.block_path.starts_with("/dev/disk/by-id/"), "{deploy:?}");
    assert_eq!(asked(&unasked.clone().with(cordoned)), None);
    assert_eq!(asked(&World::new()), None);
    assert_eq!(asked(&World::recorded(SICK)), None);
    assert_eq!(asked(&World::stopping(SICK)), None);
    // `osd ok-to-stop` is asked at the same time.
    assert!(asked(&unasked.with(|w| w.seen.ceph.ok_to_stop.clear())).is_some());
}

#[test]
fn ledger_stays_small_with_many_refusals() {
    let mut ledger = World::new().ledger;
    (0..10_000).for_each(|osd| ledger.note_refusal(OsdId(osd), "job", &"x".repeat(2000)));
    assert_eq!(ledger.not_admitted(OsdId(0), "job").map(str::len), Some(300));
    assert_eq!(ledger.not_admitted(OsdId(9999), "job"), Some("see the log of the run"));
    assert_eq!(ledger.not_admitted(OsdId(0), "another"), None);
    let keys = ledger.to_keys().unwrap();
    let bytes: usize = keys.values().map(String::len).sum();
    assert!(bytes < 450_000, "{bytes}");
    assert_eq!(Ledger::from_keys(&keys).unwrap(), ledger);
}

#[test]
fn dead_osd_is_reported_and_not_waited_for() {
    let end = World::new().with(|w| w.policy.skip = [HEALTHY].into()).with(dead).plan();
    assert!(matches!(ended(&end).skipped.as_slice(), [(SICK, why)] if why.contains("ceph osd purge 0")));
}

#[test]
fn osds_that_fail_before_their_stop_end_no_run() {
    let failed = |osd: OsdId| {
        World::recorded(osd)
            .report_with(osd, |r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false)
            .saved("quarantine")
    };
    let both = failed(SICK).with(|w| {
        w.policy.select.clear();
        w.ledger.records.extend(failed(HEALTHY).ledger.records);
    });
    let end = both.plan();
    assert_eq!(ended(&end).quarantined.len(), 2);
}

#[test]
fn rooks_operator_is_restored_while_a_run_waits() {
    let at_0 = |w: &mut World| {
        w.policy.scales_operator = true;
        w.seen.kube.declaration.confirmed = false;
        w.policy.confirmed = true;
        let name = "rook-ceph/rook-ceph-operator".to_owned();
        w.seen.kube.operator = Some(Operator {
            name: name.clone(),
            replicas: 0,
            pods: 0,
            generation: 6,
            honours_fence: false,
            ..w.seen.kube.operator.clone().unwrap()
        });
        let (uid, since) = (Some(w.seen.kube.operator.as_ref().unwrap().uid.clone()), Some(w.seen.at));
        w.ledger.run.operator = Some(ScaledOperator { name, replicas: 1, uid, generation: 5, since });
    };
    let is_back = |world: World| {
        matches!(world.plan(), Next::Do(Act::Kube(KubeAct::ScaleOperator { replicas: 1, .. })))
    };
    // A mon is down, which only Rook can replace.
    let mon_down = World::new().with(at_0).with(|w| w.seen.ceph.health.extend(["MON_DOWN".to_owned()]));
    check!(mon_down.clone().minutes_later(2).plan(), Next::Wait(_));
    assert!(is_back(mon_down.minutes_later(3)));
    // An OSD is backfilling for hours.
    assert!(is_back(
        World::booted(SICK)
            .with(at_0)
            .with(|w| {
                (w.slot(SICK).noout, w.slot(SICK).noin) = (false, false);
                (w.ledger.run.fence, w.seen.kube.fence) = (None, None);
            })
            .minutes_later(3)
    ));
    // From the stop to the boot, Rook would start the old OSD.
    for world in [World::stopping(SICK), World::destroyed(SICK), World::prepared(SICK)] {
        assert!(!is_back(world.with(at_0).minutes_later(10)));
    }
}

// ---- the data: what endangers none of it

#[test]
fn require_clean_own_accepts_pgs_that_miss_no_copy() {
    let begun = |world: &World| matches!(world.plan(), Next::Save { why: Saving::Record, .. });
    let own = |w: &mut World| w.policy.require_clean = RequireClean::Own;
    let elsewhere = (0..8).find(|n| !members(*n).contains(&SICK)).unwrap();
    let ours = (0..8).find(|n| members(*n).contains(&SICK)).unwrap();
    let alone = |w: &mut World| w.policy.select = [SICK].into();
    for state in [
        "active+clean+remapped",
        "active+clean+inconsistent",
        "active+clean+laggy",
        "active+remapped+backfilling",
    ] {
        let world = World::new().with(alone).pg_state(elsewhere, state);
        assert!(!begun(&world), "all PGs have to be clean by default: {state}");
        assert!(begun(&world.with(own)), "{state}");
    }
    // For a PG that shares the OSD, another copy must be certain to be good.
    assert!(begun(&World::new().with(alone).with(own).pg_state(ours, "active+clean+remapped")));
    for state in ["active+clean+inconsistent", "active+recovering+degraded", "active+clean+premerge"] {
        assert!(!begun(&World::new().with(alone).with(own).pg_state(ours, state)), "{state}");
    }
    // A copy is missing elsewhere.
    assert!(!begun(
        &World::new()
            .with(alone)
            .with(own)
            .pg_state(elsewhere, "active+undersized+degraded")
            .with(move |w| w.pg(elsewhere).acting = [OsdId(5)].into())
    ));
    // Rook's own setting accepts the same states, in the order in which Ceph prints them.
    let regex = |w: &mut World| {
        w.seen.kube.declaration.pg_healthy_regex =
            Some(r"^active\+clean(\+scrubbing\+deep)?(\+remapped)?$".to_owned());
    };
    let remapped = World::new().with(alone).pg_state(elsewhere, "active+clean+remapped").with(regex);
    assert!(begun(&remapped));
    assert!(!begun(&remapped.pg_state(elsewhere, "active+clean+inconsistent")));
}

#[test]
fn pgs_that_merge_or_are_repaired_revert_no_stop() {
    let after = |world: &World| {
        gate::after_stop(&world.ledger.records[&SICK], world.ledger.run.fence.as_deref(), &world.seen)
    };
    let elsewhere = (0..8).find(|n| !members(*n).contains(&SICK)).unwrap();
    let ours = (0..8).find(|n| members(*n).contains(&SICK)).unwrap();
    for state in [
        "clean+premerge+peered",
        "active+clean+scrubbing+deep+repair",
        "active+recovering",
        "active+recovery_wait",
    ] {
        let world = World::stopped(SICK).pg_state(elsewhere, state);
        check!(after(&world), Gate::Unknown(Reason::Peering { .. }));
        check!(world.plan(), Next::Wait(Wait::Gate { .. }));
    }
    check!(
        after(&World::stopped(SICK).pg_state(ours, "active+recovering+undersized+degraded")),
        Gate::Unknown(Reason::Peering { .. })
    );
    // Clients write: objects of a PG elsewhere are behind for a second.
    let behind = World::stopped(SICK)
        .pg_state(elsewhere, "active+recovering+degraded")
        .with(|w| w.pg(elsewhere).degraded = 3);
    check!(after(&behind), Gate::Unknown(_));
    // Before the stop the pools of the OSD must not be merging.
    let merging =
        World::intended(SICK).with(|w| w.seen.ceph.pools.values_mut().for_each(|pool| pool.merges = true));
    let gate = gate::before_stop(
        SICK,
        &node_of(SICK),
        merging.ledger.run.fence.as_deref(),
        &Accepted::default(),
        &merging.seen,
    );
    check!(gate, Gate::Unknown(Reason::Merging { .. }));
}

#[test]
fn inconsistent_copy_of_its_own_pg_reverts_the_stop() {
    let elsewhere = (0..8).find(|n| !members(*n).contains(&SICK)).unwrap();
    let ours = (0..8).find(|n| members(*n).contains(&SICK)).unwrap();
    let world = World::stopped(SICK).pg_state(ours, "active+undersized+degraded+inconsistent");
    assert_eq!(word(&world.plan()), Some("revert-stop"));
    let world = World::stopped(SICK).pg_state(elsewhere, "active+clean+inconsistent");
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::Destroy { .. })));
}

// ---- rule 2: a way back

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
        w.ledger = w.ledger.retried(SICK).unwrap();
        w.record(SICK).saved_at = Some(w.seen.at);
    });
    let looked = again.report(SICK, Some(label(claim(SICK, 1), SICK, true)), None);
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

// ---- messages for people

#[test]
fn flags_that_hold_up_a_backfill_are_named() {
    let world = World::booted(SICK).with(|w| {
        (w.slot(SICK).noout, w.slot(SICK).noin) = (false, false);
        (w.ledger.run.fence, w.seen.kube.fence) = (None, None);
        w.seen.ceph.flags.insert("norebalance".to_owned());
    });
    let Next::Wait(wait @ Wait::ActiveClean { .. }) = world.plan() else { panic!("{:#?}", world.plan()) };
    let said = wait.to_string();
    assert!(said.contains("ceph osd unset norebalance") && said.contains("undersized+degraded"), "{said}");
}

#[test]
fn finished_osd_limits_no_drains_again_if_its_pod_is_not_ready() {
    let closing = World::filled(SICK).with(|w| {
        w.record(SICK).closing = true;
        let at = w.seen.at;
        w.record(SICK).milestones.push((Saving::Closing.code().to_owned(), at));
        w.seen.kube.osd_pdb = None;
        w.daemon(SICK).rolled_out = false;
    });
    assert!(
        !matches!(closing.plan(), Next::Do(Act::Kube(KubeAct::CreatePdb { .. }))),
        "{:#?}",
        closing.plan()
    );
}
