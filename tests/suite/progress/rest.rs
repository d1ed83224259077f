//! Rule 1: a sick part never blocks the healthy rest.

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::ledger::{Ledger, RefusedStep, ScaledOperator};
use osd_migrate::domain::next::{Next, Saving, Wait};
use osd_migrate::domain::observation::{Admission, Operator};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan;

use super::sick::{HEALTHY, SICK, cordoned, dead, ended, not_ready, prepared_by_rook};
use crate::support::build::{World, node_of, prepare, word};
use crate::support::check;

type Change = fn(&mut World);

#[test]
fn sick_osd_or_node_holds_up_no_other_osd() {
    let sick: [Change; 4] = [dead, cordoned, not_ready, prepared_by_rook];
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
fn job_of_rook_that_hangs_is_waited_for_and_its_node_skipped_at_last() {
    let alone = World::new().with(|w| w.policy.skip = [HEALTHY].into()).with(prepared_by_rook);
    let waits = alone.saved("skipping");
    let is_its = |reason: &Reason| matches!(reason, Reason::RookPrepares { node: Some(_), .. });
    check!(waits.clone().minutes_later(14).plan(), Next::Wait(Wait::Gate { osd: SICK, reason }) if is_its(reason));
    let end = waits.minutes_later(15).plan();
    assert!(matches!(ended(&end).skipped.as_slice(), [(SICK, why)] if why.contains("on node h1")), "{end:?}");
    // A Job whose node is not known may work on any node.
    let somewhere = World::new().with(|w| w.seen.kube.rook_prepares.push(prepare(None)));
    check!(somewhere.plan(), Next::Wait(Wait::Gate { reason: Reason::RookPrepares { node: None, .. }, .. }));
}

#[test]
fn job_of_rook_on_another_node_reverts_no_stop() {
    let elsewhere = |w: &mut World| w.seen.kube.rook_prepares.push(prepare(Some(&node_of(HEALTHY))));
    let stopped = World::stopped(SICK).with(elsewhere);
    check!(stopped.plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: SICK, .. })));
    let on_its_node = World::stopped(SICK).with(prepared_by_rook);
    check!(on_its_node.plan(), Next::Save { why: Saving::RevertStop { why }, .. } if why.contains("preparing OSDs"));
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
fn admission_is_asked_again_right_before_the_stop() {
    let keeps = |world: &World| {
        let questions = plan::questions(&world.policy, &world.ledger, &world.seen);
        assert!(questions.admission.is_some());
        questions.keeps_admission
    };
    let recorded = World::proven(SICK).backed_up(SICK);
    let intended = recorded.clone().saved("stop");
    let ordered = intended.clone().saved("fence");
    let fenced = intended.clone().fenced(SICK);
    for world in [&World::proven(SICK), &recorded, &intended, &ordered, &fenced] {
        assert!(keeps(world), "what prepares the stop comes first");
    }
    let next = fenced.with_flags_set(SICK);
    check!(next.plan(), Next::Do(Act::Kube(KubeAct::Stop { .. })));
    assert!(!keeps(&next));
}

#[test]
fn ledger_stays_small_with_many_refusals() {
    let mut ledger = World::new().ledger;
    (0..10_000)
        .for_each(|osd| ledger.note_refusal(OsdId(osd), "job", RefusedStep::Admission, &"x".repeat(2000)));
    let why = |osd, job: &str| ledger.refused(osd, job).map(|refused| refused.why().to_owned());
    assert_eq!(why(OsdId(0), "job").map(|why| why.len()), Some(300));
    assert_eq!(why(OsdId(9999), "job").as_deref(), Some("see the log of the run"));
    assert_eq!(why(OsdId(0), "another"), None);
    let keys = ledger.to_keys().unwrap();
    let bytes: usize = keys.values().map(String::len).sum();
    assert!(bytes < 450_000, "{bytes}");
    assert_eq!(Ledger::from_keys(&keys).unwrap(), ledger);
}

#[test]
fn dead_osd_is_reported_and_not_waited_for() {
    let end = World::new().with(|w| w.policy.skip = [HEALTHY].into()).with(dead).plan();
    assert!(matches!(ended(&end).skipped.as_slice(), [(SICK, why)] if why.contains("remove osd.0")));
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
            opens_lvm: false,
            ..w.seen.kube.operator.clone().unwrap()
        });
        let (uid, since) = (Some(w.seen.kube.operator.as_ref().unwrap().uid.clone()), Some(w.seen.at));
        w.ledger.run.operator = Some(ScaledOperator {
            name,
            replicas: 1,
            uid,
            generation: 5,
            since,
            job: None,
            restoring: false,
        });
    };
    let is_back = |world: World| matches!(world.plan(), Next::Save { why: Saving::OperatorRestoring, .. });
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
