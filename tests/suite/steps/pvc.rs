//! An OSD on a PersistentVolumeClaim.

use osd_migrate::domain::act::Deploy;
use osd_migrate::domain::ledger::RecordedPvc;
use osd_migrate::domain::observation::{OnPvcs, Pvc};
use osd_migrate::domain::osd::pvc::PerPvc;

use super::*;
use crate::support::build::bound_pvc;

const PVC: &str = "set1-data-0a";

/// Puts the OSD, its record and its Deployment on a PVC.
fn on_pvc(world: World, encrypted: bool) -> World {
    world.with(|w| {
        let pvc = bound_pvc();
        w.record(OSD).pvcs = RecordedPvc::of(PVC, &pvc).map(PerPvc::of_data);
        w.record(OSD).target.encrypted = encrypted;
        let on = OnPvcs { data: Some(PVC.to_owned()), set: Some("set1".to_owned()), ..OnPvcs::default() };
        w.daemon(OSD).on_pvcs = Some(on);
        w.seen.kube.pvcs.insert(PVC.to_owned(), pvc);
    })
}

fn pvc(w: &mut World) -> &mut Pvc {
    w.seen.kube.pvcs.get_mut(PVC).unwrap()
}

fn volume_recreated(w: &mut World) {
    pvc(w).volume.as_mut().unwrap().uid = Some("another".to_owned());
}

fn recreated(w: &mut World) {
    "another".clone_into(&mut pvc(w).uid);
}

fn gone(w: &mut World) {
    w.seen.kube.pvcs.clear();
}

#[test]
fn stopped_osd_whose_pvc_was_recreated_is_started_again() {
    let stopped = || on_pvc(World::stopped(OSD).fenced(OSD), true);
    check!(stopped().plan(), Next::Do(Act::Ceph(CephAct::Destroy { .. })));
    for change in [recreated, volume_recreated, gone] {
        let next = stopped().with(change).plan();
        check!(next, Next::Save { why: Saving::RevertStop { why }, .. } if why.contains(PVC));
    }
}

#[test]
fn old_data_on_a_pvc_that_was_recreated_is_not_wiped() {
    let destroyed = || on_pvc(World::destroyed(OSD).fenced(OSD), false);
    check!(destroyed().plan(), Next::Save { why: Saving::Attempt { task: NodeTask::Rebuild, .. }, .. });
    let blocked = destroyed().with(recreated).saved("wipe-blocked");
    check!(blocked.plan(), Next::Wait(Wait::UnsafeToWipe { reason: Reason::OtherPvc { .. }, .. }));
}

#[test]
fn agent_of_an_osd_on_a_pvc_gets_the_pvc_and_its_key() {
    for encrypted in [false, true] {
        let saved = on_pvc(World::destroyed(OSD).fenced(OSD), encrypted).saved("rebuild");
        let next = saved.plan();
        let Next::Do(Act::Node(NodeAct::Agent { request, .. })) = next else { panic!("{next:?}") };
        assert_eq!(request.data_pvc(), Some(PVC));
        assert_eq!(request.pvc_with_key(), encrypted.then_some(PVC));
    }
}

#[test]
fn new_osd_on_a_pvc_is_deployed_at_the_path_that_rook_reads() {
    for (encrypted, path) in [(false, "/mnt/set1-data-0a"), (true, "/dev/mapper/set1-data-0a-block-dmcrypt")]
    {
        let next = on_pvc(World::prepared(OSD).fenced(OSD).saved("new"), encrypted).plan();
        let Next::Do(Act::Kube(KubeAct::Deploy(Deploy { block_path, pvcs, .. }))) = next else {
            panic!("{next:?}")
        };
        assert_eq!((block_path.as_str(), pvcs), (path, Some(PerPvc::of_data(PVC.to_owned()))));
    }
}

#[test]
fn new_osd_is_not_deployed_on_a_recreated_pvc() {
    for change in [recreated, volume_recreated, gone] {
        let next = on_pvc(World::prepared(OSD).fenced(OSD).saved("new"), true).with(change).plan();
        assert!(quarantine(&next).is_some_and(|why| why.contains(PVC)), "{next:?}");
    }
}

#[test]
fn osd_on_a_pvc_is_settled_when_its_deployment_opens_it_as_declared() {
    let filled =
        |opens: bool| on_pvc(World::filled(OSD), true).with(|w| w.daemon(OSD).opens_encryption = opens);
    check!(filled(true).plan(), Next::Save { .. } | Next::Do(_));
    assert!(quarantine(&filled(false).plan()).is_some_and(|why| why.contains("not as declared")));
    assert_eq!(quarantine(&filled(true).plan()), None);
}

#[test]
fn encrypted_osd_on_a_pvc_whose_slot_was_destroyed_keeps_its_store() {
    let world = on_pvc(World::prepared(OSD).slot_destroyed(OSD), true).saved("restore-slot");
    check!(world.plan(), Next::Do(Act::Node(NodeAct::Agent { request, .. })) if request.task == NodeTask::RestoreSlot);
}
