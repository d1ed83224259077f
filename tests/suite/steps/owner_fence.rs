//! The fence that the owner orders before an edit of the CephCluster: `fence`, `fence --remove`, and the runs
//! that come before the edit and after it.

use chrono::TimeDelta;

use osd_migrate::domain::device_set::DeviceSet;
use osd_migrate::domain::ledger::ScaledOperator;
use osd_migrate::domain::next::{FenceOutcome, Summary};
use osd_migrate::domain::observation::{Control, ControlKind, OnPvcs};
use osd_migrate::domain::policy::FenceCommand;
use osd_migrate::domain::storage::{DeviceConfig, StorageNode};
use osd_migrate::exit::{Exit, ended};
use osd_migrate::report::Event;
use osd_migrate::run::End;

use super::*;
use crate::support::build::{OPERATOR, bound_pvc, noon};

/// An OSD that conforms.
const RAW: OsdId = OsdId(5);
const PVC: &str = "set1-data-0abc";

/// Returns a world in which Rook runs and can be fenced, an OSD is on a PVC, and nothing is to be migrated.
fn alongside_rook() -> World {
    World::new().with(|w| {
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.honours_fence, operator.replicas, operator.pods) = (true, 1, 1);
        w.seen.kube.declaration.confirmed = false;
        w.policy.confirmed = true;
        w.policy.skip = [BY_HAND, FILESTORE].into();
        "8".clone_into(&mut w.seen.kube.cluster_version);
        w.daemon(RAW).on_pvcs =
            Some(OnPvcs { data: Some(PVC.to_owned()), set: Some("set1".to_owned()), ..OnPvcs::default() });
        w.seen.kube.pvcs.insert(PVC.to_owned(), bound_pvc());
        let (name, templates) = ("set1".to_owned(), vec!["data".to_owned()]);
        let set = DeviceSet { name, templates, count: Some(1), ..DeviceSet::default() };
        w.seen.kube.declaration.storage.sets = vec![set];
    })
}

fn fencing(world: World) -> World {
    let until = noon() + TimeDelta::minutes(30);
    world.with(|w| w.policy.fence = Some(FenceCommand::Set { until }))
}

fn removing(world: World) -> World {
    world.with(|w| w.policy.fence = Some(FenceCommand::Remove))
}

fn run(world: World) -> World {
    world.with(|w| w.policy.fence = None)
}

/// Sets the label that the program must want to set now.
fn labelled(world: World) -> World {
    let Next::Do(Act::Kube(KubeAct::Fence { record: None, value })) = world.plan() else {
        panic!("{:?}", world.plan())
    };
    assert_eq!(world.ledger.run.fence.as_ref(), Some(&value));
    world.with(|w| {
        let before = w.seen.kube.cluster_revision().unwrap();
        (w.seen.kube.fence, w.seen.kube.fenced_at) = (Some(value), Some(before));
        w.seen.kube.cluster_version = (before + 1).to_string();
    })
}

/// Returns a world in which the owner's fence is in force.
fn in_force() -> World {
    let set = labelled(fencing(alongside_rook()).saved("fence-ordered"));
    set.with(|w| w.seen.kube.skipped = Some(9)).saved("fence-acknowledged")
}

fn edited(world: World) -> World {
    world.with(|w| w.seen.kube.declaration.storage.sets[0].encrypted = true)
}

/// Lets the OSD be as the edited set declares.
fn migrated(world: World) -> World {
    world.with(|w| {
        let daemon = w.daemon(RAW);
        (daemon.opens_encryption, daemon.encrypted_to_rook) = (true, true);
        w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
    })
}

fn outcome(world: &World) -> FenceOutcome {
    match world.plan() {
        Next::Finished(Summary { fence: Some(outcome), .. }) => outcome,
        other => panic!("no end of `fence`: {other:?}"),
    }
}

#[test]
fn owners_fence_is_saved_then_set_then_acknowledged() {
    let ordered = fencing(alongside_rook()).saved("fence-ordered");
    let order = ordered.ledger.run.fence_order.clone().unwrap();
    assert_eq!((order.since, ordered.ledger.run.fence_after), (noon(), Some(8)));
    // A process that is killed here is continued by the next one.
    let set = labelled(ordered);
    check!(set.plan(), Next::Wait(Wait::Fence { reason: Reason::FenceNotAcknowledged { .. } }));
    let force = in_force();
    assert_eq!(outcome(&force), FenceOutcome::InForce { since: noon() });
    // Typed again an hour later: the same answer, and nothing is changed.
    let again = force.minutes_later(60);
    let until = again.seen.at + TimeDelta::minutes(30);
    let again = again.with(|w| w.policy.fence = Some(FenceCommand::Set { until }));
    assert_eq!(outcome(&again), FenceOutcome::InForce { since: noon() });
}

#[test]
fn fence_command_ends_if_rook_does_not_acknowledge_in_time() {
    let set = labelled(fencing(alongside_rook()).saved("fence-ordered"));
    check!(set.clone().minutes_later(29).plan(), Next::Wait(Wait::Fence { .. }));
    let late = set.minutes_later(30);
    let FenceOutcome::NotInForce { reason } = outcome(&late) else { panic!("{:?}", late.plan()) };
    assert!(matches!(reason, Reason::FenceNotAcknowledged { .. }));
    assert!(late.ledger.run.fence.is_some(), "the fence stays");
}

#[test]
fn fence_is_not_needed_or_refused_by_the_state_of_the_operator() {
    let with = |change: fn(&mut World)| fencing(alongside_rook().with(change));
    let operator = |w: &mut World, replicas, pods, honours| {
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.replicas, operator.pods, operator.honours_fence) = (replicas, pods, honours);
    };
    let at_0 = FenceOutcome::NotNeeded { operator: Some(OPERATOR.to_owned()) };
    assert_eq!(outcome(&fencing(alongside_rook().with(|w| operator(w, 0, 0, true)))), at_0);
    let old = fencing(alongside_rook().with(|w| operator(w, 1, 1, false)));
    assert!(matches!(
        outcome(&old),
        FenceOutcome::Refused { reason: Reason::OperatorRuns { ends: false, .. } }
    ));
    let ends = fencing(alongside_rook().with(|w| operator(w, 0, 1, false)));
    check!(ends.plan(), Next::Wait(Wait::Fence { reason: Reason::OperatorRuns { ends: true, .. } }));
    let none = with(|w| (w.seen.kube.operator, w.seen.kube.rook_checked) = (None, None));
    assert_eq!(outcome(&none), FenceOutcome::NotNeeded { operator: None });
    let elsewhere = with(|w| (w.seen.kube.operator, w.seen.kube.rook_checked) = (None, Some(noon())));
    assert!(matches!(outcome(&elsewhere), FenceOutcome::Refused { reason: Reason::OperatorNotFound { .. } }));
    let theirs = with(|w| w.seen.kube.fence = Some("theirs".to_owned()));
    assert!(matches!(outcome(&theirs), FenceOutcome::Refused { reason: Reason::FencedExternally { .. } }));
    let scaled = with(|w| {
        let (name, uid) = (OPERATOR.to_owned(), None);
        let was = ScaledOperator {
            name,
            replicas: 1,
            uid,
            generation: 5,
            since: None,
            job: None,
            restoring: false,
        };
        w.ledger.run.operator = Some(was);
    });
    assert!(matches!(outcome(&scaled), FenceOutcome::ScaledByRun { .. }));
    // An order that is saved is completed, whatever the operator does meanwhile.
    let ordered = fencing(alongside_rook()).saved("fence-ordered").with(|w| operator(w, 0, 0, true));
    assert!(matches!(outcome(&labelled(ordered)), FenceOutcome::InForce { .. }));
}

#[test]
fn run_before_the_edit_keeps_the_owners_fence_and_says_so() {
    let cases: [fn(&mut World); 5] = [
        |_| (),
        |w| w.policy.windows = "03:00-03:01".parse().unwrap(),
        |w| w.seen.kube.control = Some(Control { kind: ControlKind::Cancel, since: None }),
        // Other edits than that of a shape: the image, a node, the confirmation.
        |w| w.seen.kube.declaration.storage.nodes.push(osd_migrate::domain::storage::StorageNode::default()),
        |w| w.policy.only_new = true,
    ];
    for change in cases {
        let world = run(in_force()).with(change);
        check!(world.plan(), Next::Finished(summary) if summary.fenced_since == Some(noon()));
    }
    let Next::Finished(summary) = run(in_force()).plan() else { panic!() };
    let said = Event::Finished(&summary).to_string();
    assert!(said.contains("fenced by its owner") && said.contains("fence --remove"), "{said}");
    // An OSD of another kind is migrated meanwhile: the fence stays when it is up.
    let booted = run(in_force()).ledger.run;
    let up = World::booted(OSD).with(|w| {
        w.ledger.run = booted.clone();
        (w.seen.kube.fence, w.slot(OSD).noout, w.slot(OSD).noin) = (booted.fence.clone(), false, false);
        w.seen.kube.operator = alongside_rook().seen.kube.operator;
        w.seen.kube.declaration = alongside_rook().seen.kube.declaration;
        w.policy.confirmed = true;
    });
    assert!(!matches!(up.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. }))), "{:?}", up.plan());
}

#[test]
fn owners_fence_goes_when_the_osds_are_as_edited() {
    let differs = run(edited(in_force())).with(|w| {
        w.policy.skip.insert(RAW);
    });
    check!(differs.plan(), Next::Finished(summary)
        if summary.fenced_since.is_some() && summary.reshaped_by_rook == [RAW].into());
    let done = migrated(differs);
    check!(done.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    let unfenced = done.with(|w| w.seen.kube.fence = None).saved("unfenced");
    assert_eq!((&unfenced.ledger.run.fence, &unfenced.ledger.run.fence_order), (&None, &None));
    check!(unfenced.plan(), Next::Finished(summary) if summary.fenced_since.is_none());
    // Edited back: as long as nobody edits or removes it, the fence stays.
    check!(run(in_force()).plan(), Next::Finished(summary) if summary.fenced_since.is_some());
}

/// Checks an operator with `ROOK_CUSTOM_HOSTNAME_LABEL`: it is not known whether the edit concerns the OSDs.
#[test]
fn owners_fence_stays_while_an_entry_may_mean_a_node_with_osds() {
    let encrypted = run(in_force()).with(|w| {
        let config = DeviceConfig { encrypted: Some(true), ..DeviceConfig::default() };
        let entry = StorageNode { name: "stor1".to_owned(), config, ..StorageNode::default() };
        let storage = &mut w.seen.kube.declaration.storage;
        (storage.all_nodes, storage.nodes) = (false, vec![entry]);
        for node in w.seen.kube.nodes.values_mut() {
            node.labels.insert("example.com/host".to_owned(), "stor1".to_owned());
        }
    });
    check!(encrypted.plan(), Next::Finished(summary) if summary.fenced_since.is_some());
    // Rook would activate a plain OSD on LVM as its node declares.
    let lvm = removing(encrypted).with(|w| {
        w.daemon(OsdId(3)).mode = Some(Mode::Lvm);
        w.seen.kube.operator.as_mut().unwrap().opens_lvm = true;
    });
    check!(outcome(&lvm), FenceOutcome::ChangedByRook { osds } if osds.contains(&OsdId(3)));
}

#[test]
fn missing_label_of_the_owners_fence_is_set_again_by_a_run() {
    // `fence` was killed after its first save, or another client removed the label.
    let killed = run(fencing(alongside_rook()).saved("fence-ordered"));
    labelled(killed);
    let removed = run(in_force()).with(|w| w.seen.kube.fence = None).saved("fence");
    assert!(removed.ledger.run.fence_order.is_some() && !removed.ledger.run.fence_acknowledged);
    // The run does not wait for Rook.
    let set = labelled(removed).with(|w| w.seen.kube.skipped = None);
    check!(set.plan(), Next::Finished(summary) if summary.fenced_since.is_some());
}

#[test]
fn owners_fence_is_removed_unless_rook_would_change_osds() {
    let removed = removing(in_force());
    check!(removed.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    let removed = removed.with(|w| w.seen.kube.fence = None).saved("unfenced");
    assert_eq!(outcome(&removed), FenceOutcome::Removed);
    // A frozen `fence` sets the label late.
    let late = removed.with(|w| w.seen.kube.fence.clone_from(&w.ledger.run.last_fence));
    check!(late.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));

    let differs = removing(edited(in_force()));
    assert_eq!(outcome(&differs), FenceOutcome::ChangedByRook { osds: [RAW].into() });
    check!(migrated(differs).plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    let record = World::recorded(OSD).ledger.records;
    let in_progress = removing(in_force()).with(|w| w.ledger.records = record);
    assert_eq!(outcome(&in_progress), FenceOutcome::InProgress { osds: [OSD].into() });
    let before = |world: &World| FenceOutcome::refused_by(&world.ledger);
    assert_eq!(before(&in_progress), Some(FenceOutcome::InProgress { osds: [OSD].into() }), "nor set");
    assert_eq!(before(&in_force()), None);
    let of_run = removing(alongside_rook()).with(|w| w.ledger.run.fence = Some("osd-migrate-x".to_owned()));
    assert_eq!(outcome(&of_run), FenceOutcome::OfRun { value: "osd-migrate-x".to_owned() });
}

#[test]
fn fence_of_a_run_becomes_the_owners_and_uninstall_removes_it() {
    let value = || Some("osd-migrate-x".to_owned());
    let of_run = fencing(alongside_rook()).with(|w| {
        (w.ledger.run.fence, w.seen.kube.fence) = (value(), value());
        w.ledger.run.fence_acknowledged = true;
    });
    let ordered = of_run.saved("fence-ordered");
    assert_eq!(ordered.ledger.run.fence, value());
    assert!(matches!(outcome(&ordered), FenceOutcome::InForce { .. }));
    let leaves = run(in_force()).with(|w| w.policy.leaves = true);
    check!(leaves.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
}

#[test]
fn exit_code_of_fence_says_whether_to_edit() {
    let exit = |fence| {
        let summary = Summary { fence: Some(fence), ..Summary::default() };
        ended(Ok(End::Finished(summary)), &osd_migrate::domain::policy::Policy::default())
    };
    assert_eq!(exit(FenceOutcome::InForce { since: noon() }), Exit::Finished);
    assert_eq!(exit(FenceOutcome::NotNeeded { operator: None }), Exit::Finished);
    assert_eq!(exit(FenceOutcome::NotInForce { reason: Reason::MonDown }), Exit::Halted);
    assert_eq!(exit(FenceOutcome::ChangedByRook { osds: [RAW].into() }), Exit::Refused);
}
