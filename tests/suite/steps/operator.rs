//! A run that scales an older operator of Rook to 0, and restores it.

use osd_migrate::domain::gate::StoppedBy;
use osd_migrate::domain::observation::{Control, ControlKind};
use osd_migrate::report::Event;

use super::*;

/// Returns a world in which an older Rook is running, and the owner lets osd-migrate scale it.
fn with_an_old_rook() -> World {
    World::new().with(|w| {
        w.policy.scales_operator = true;
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.replicas, operator.pods, operator.generation) = (2, 1, 5);
    })
}

#[test]
fn operator_is_scaled_down_only_if_nothing_else_blocks_the_osd() {
    let runs =
        |next: &Next| matches!(next, Next::Wait(Wait::Gate { reason: Reason::OperatorRuns { .. }, .. }));
    let saved = with_an_old_rook().saved("operator-scaled");
    let was = saved.ledger.run.operator.clone().unwrap();
    assert_eq!((was.replicas, was.generation), (2, 5));
    // A Rook at work has just written its status.
    with_an_old_rook().with(|w| w.seen.kube.rook_checked = Some(w.seen.at)).saved("operator-scaled");
    check!(saved.plan(), Next::Do(Act::Kube(KubeAct::ScaleOperator { replicas: 0, .. })));
    // It is not scaled without the owner's consent, while the cluster is not clean, or during a pause.
    assert!(runs(&with_an_old_rook().with(|w| w.policy.scales_operator = false).plan()));
    assert!(runs(&with_an_old_rook().with(|w| w.pg(0).state = states("active+undersized")).plan()));
    // Nor does the run do what an earlier run had saved and not done.
    assert!(runs(&saved.clone().with(|w| w.policy.scales_operator = false).plan()));
    assert!(runs(&saved.clone().with(|w| w.pg(0).state = states("active+undersized")).plan()));
    // The operator was scaled up externally after osd-migrate: the run does not scale it again.
    let fought = saved.with(|w| w.seen.kube.operator.as_mut().unwrap().generation = 7);
    assert!(runs(&fought.plan()));
}

#[test]
fn operator_scaled_up_externally_is_not_scaled_down_later() {
    let waits = |world: &World| {
        let next = world.plan();
        let Next::Wait(Wait::Gate { reason, .. }) = next else { panic!("{next:?}") };
        reason
    };
    let scaled_up = |by_osd_migrate: bool, generation: i64| {
        with_an_old_rook().saved("operator-scaled").minutes_later(10).with(|w| {
            let operator = w.seen.kube.operator.as_mut().unwrap();
            (operator.generation, operator.scaled_by_osd_migrate) = (generation, by_osd_migrate);
        })
    };
    let overridden = scaled_up(false, 7);
    // The wait names the other client, and not the switch that the run has.
    let reason = waits(&overridden);
    assert!(matches!(reason, Reason::OperatorRuns { stopped_by: StoppedBy::PersonAgain, .. }), "{reason:?}");
    // A run that ended without its own end left the entry, and its operator was restored by hand.
    let of_another = overridden.clone().with(|w| w.policy.run = "another".to_owned());
    check!(of_another.plan(), Next::Save { why: Saving::OperatorRestored, .. });
    // Nor after a pause, and not after a window.
    waits(&overridden.with(|w| {
        w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None });
    }));
    // The run itself restored the operator, or its Deployment was edited before it was scaled.
    for restored in [scaled_up(true, 7), scaled_up(false, 6)] {
        check!(restored.plan(), Next::Save { why: Saving::OperatorRestored, .. });
    }
    // The end of a run clears the entry.
    let ended = scaled_up(false, 7).with(|w| w.policy.skip = [BY_HAND, FILESTORE].into());
    check!(ended.plan(), Next::Save { why: Saving::OperatorRestored, .. });
}

#[test]
fn operator_is_restored_unless_it_was_scaled_externally() {
    let ended = |generation: i64| {
        with_an_old_rook().saved("operator-scaled").with(|w| {
            w.policy.skip = [BY_HAND, FILESTORE].into();
            let operator = w.seen.kube.operator.as_mut().unwrap();
            (operator.replicas, operator.pods, operator.generation) = (0, 0, generation);
        })
    };
    check!(ended(6).plan(), Next::Do(Act::Kube(KubeAct::ScaleOperator { replicas: 2, .. })));
    let without_the_word = ended(6).with(|w| w.policy.scales_operator = false);
    check!(without_the_word.plan(), Next::Do(Act::Kube(KubeAct::ScaleOperator { replicas: 2, .. })));
    check!(ended(8).plan(), Next::Save { why: Saving::OperatorRestored, ledger, .. } if ledger.run.operator.is_none());
    // Another client edited its Deployment, and did not scale it.
    let edited = ended(8).with(|w| w.seen.kube.operator.as_mut().unwrap().scaled_by_osd_migrate = true);
    check!(edited.plan(), Next::Do(Act::Kube(KubeAct::ScaleOperator { replicas: 2, .. })));
    let recreated = |w: &mut World| w.seen.kube.operator.as_mut().unwrap().uid = "another".to_owned();
    check!(ended(6).with(recreated).plan(), Next::Save { why: Saving::OperatorRestored, .. });
    // The ledger forgot the operator, then a runner woke on its way to it; a person scaled it to 0.
    let late =
        |generation| ended(generation).with(|w| w.ledger.run.last_operator = w.ledger.run.operator.take());
    check!(late(6).plan(), Next::Do(Act::Kube(KubeAct::ScaleOperator { replicas: 2, .. })));
    let next = late(8).plan();
    let Next::Finished(summary) = &next else { panic!("{next:?}") };
    let said = Event::Finished(summary).to_string();
    assert!(said.contains("kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=1"), "{said}");
    let runs = |w: &mut World| w.seen.kube.operator.as_mut().unwrap().replicas = 1;
    check!(late(8).with(runs).plan(), Next::Finished(summary) if summary.operator_at_0.is_none());
    // Rook would start a migration of its own, during a pause too; unless osd-migrate is being uninstalled.
    let left = |w: &mut World| {
        w.policy.skip = w.seen.ceph.slots.keys().copied().collect();
        w.seen.kube.declaration.storage = encrypted();
    };
    check!(ended(6).with(left).plan(), Next::Finished(summary) if !summary.withheld_from_rook.is_empty());
    check!(
        ended(6).with(left).with(|w| w.policy.leaves = true).plan(),
        Next::Do(Act::Kube(KubeAct::ScaleOperator { .. }))
    );
}
