//! A run that scales an older operator of Rook to 0, and restores it.

use osd_migrate::domain::gate::StoppedBy;
use osd_migrate::domain::ledger::ScaledOperator;
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
            w.ledger.run.operator.as_mut().unwrap().restoring = by_osd_migrate;
            w.seen.kube.operator.as_mut().unwrap().generation = generation;
        })
    };
    let overridden = scaled_up(false, 7);
    // The wait names the other client, and not the switch that the run has.
    let reason = waits(&overridden);
    assert!(matches!(reason, Reason::OperatorRuns { stopped_by: StoppedBy::PersonAgain, .. }), "{reason:?}");
    // A run that ended without its own end left the entry, and its operator was scaled up by hand.
    let of_another = overridden.clone().with(|w| w.policy.run = "another".to_owned());
    let again = of_another.saved("operator-scaled");
    assert_eq!(again.ledger.run.operator.as_ref().unwrap().generation, 7);
    check!(again.plan(), Next::Do(Act::Kube(KubeAct::ScaleOperator { replicas: 0, .. })));
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

/// Checks a restore that was saved and not done: the next OSD needs the operator at 0.
#[test]
fn operator_that_is_needed_at_0_is_not_being_restored() {
    let stopped = World::stopped(BY_HAND).with(|w| {
        w.policy.scales_operator = true;
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.replicas, operator.pods, operator.generation) = (0, 0, 6);
        let (name, uid, job) =
            (operator.name.clone(), Some(operator.uid.clone()), Some(w.policy.run.clone()));
        let was = ScaledOperator { name, replicas: 1, uid, generation: 5, since: None, job, restoring: true };
        w.ledger.run.operator = Some(was);
    });
    let stays = stopped.saved("operator-scaled");
    assert!(!stays.ledger.run.operator.as_ref().unwrap().restoring);
    check!(stays.plan(), Next::Do(Act::Ceph(CephAct::Destroy { .. })));
    // A later run takes over what an earlier one scaled, unless its Deployment was edited since.
    let of_another = stays.with(|w| "another".clone_into(&mut w.policy.run));
    let taken_over = of_another.clone().saved("operator-scaled");
    assert_eq!(taken_over.ledger.run.operator.as_ref().unwrap().job.as_deref(), Some("another"));
    check!(taken_over.plan(), Next::Do(Act::Ceph(CephAct::Destroy { .. })));
    let changed = of_another.with(|w| w.seen.kube.operator.as_mut().unwrap().generation = 8);
    check!(changed.plan(), Next::Do(Act::Ceph(CephAct::Destroy { .. })));
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
    let is_restored = |world: World| {
        let world = world.saved("operator-restoring");
        check!(world.plan(), Next::Do(Act::Kube(KubeAct::ScaleOperator { replicas: 2, .. })));
    };
    is_restored(ended(6));
    is_restored(ended(6).with(|w| w.policy.scales_operator = false));
    // Another client edited its Deployment, and did not scale it.
    is_restored(ended(8));
    // Another run does not know who scaled it, except for an uninstall.
    let of_another = |generation| ended(generation).with(|w| w.policy.run = "another".to_owned());
    is_restored(of_another(6));
    is_restored(of_another(8).with(|w| w.policy.leaves = true));
    let cleared = |world: World| {
        check!(world.plan(), Next::Save { why: Saving::OperatorRestored, ledger, .. } if ledger.run.operator.is_none());
    };
    cleared(ended(8).with(|w| w.seen.kube.operator.as_mut().unwrap().replicas = 2));
    cleared(ended(6).with(|w| w.seen.kube.operator.as_mut().unwrap().uid = "another".to_owned()));
    cleared(of_another(8));
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
    is_restored(ended(6).with(left).with(|w| w.policy.leaves = true));
}
