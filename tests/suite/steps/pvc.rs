//! An OSD on a PersistentVolumeClaim.

use osd_migrate::domain::device_set::DeviceSet;
use osd_migrate::domain::inspection::{NodeProblem, Piece, PieceLocation};
use osd_migrate::domain::ledger::RecordedPvc;
use osd_migrate::domain::observation::{OnPvcs, Pvc};
use osd_migrate::domain::osd::pvc::PerPvc;
use osd_migrate::domain::osd::{DeviceIdentity, Role};

use super::*;
use crate::support::build::{bound_pvc, evidence};

const PVC: &str = "set1-data-0a";
const DB_PVC: &str = "set1-metadata-0b";

/// An OSD that ceph-volume created, on a host with other OSDs.
const RAW: OsdId = OsdId(5);

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
        let Next::Do(Act::Kube(KubeAct::Deploy(deploy))) = next else { panic!("{next:?}") };
        assert_eq!(
            (deploy.block_path.as_str(), deploy.pvc_names()),
            (path, Some(PerPvc::of_data(PVC.to_owned())))
        );
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

/// Adds the PVC for a database to the record of an OSD on a PVC.
fn with_database(world: World) -> World {
    world.with(|w| {
        let pvc = Pvc { uid: "uid-of-db-pvc".to_owned(), ..bound_pvc() };
        w.record(OSD).pvcs.as_mut().unwrap().db = RecordedPvc::of(DB_PVC, &pvc);
        w.seen.kube.pvcs.insert(DB_PVC.to_owned(), pvc);
    })
}

fn database_pvc_recreated(w: &mut World) {
    "another".clone_into(&mut w.seen.kube.pvcs.get_mut(DB_PVC).unwrap().uid);
}

#[test]
fn recreated_pvc_of_a_database_blocks_destroy_wipe_and_start() {
    let stopped = with_database(on_pvc(World::stopped(OSD).fenced(OSD), true));
    let next = stopped.with(database_pvc_recreated).plan();
    check!(next, Next::Save { why: Saving::RevertStop { why }, .. } if why.contains(DB_PVC));
    let destroyed = with_database(on_pvc(World::destroyed(OSD).fenced(OSD), false));
    let blocked = destroyed.with(database_pvc_recreated).saved("wipe-blocked");
    check!(blocked.plan(), Next::Wait(Wait::UnsafeToWipe { reason: Reason::OtherPvc { .. }, .. }));
    let prepared = with_database(on_pvc(World::prepared(OSD).fenced(OSD).saved("new"), true));
    let next = prepared.with(database_pvc_recreated).plan();
    assert!(quarantine(&next).is_some_and(|why| why.contains(DB_PVC)), "{next:?}");
}

#[test]
fn agent_and_deployment_get_the_pvc_of_the_database() {
    let both = PerPvc { db: Some(DB_PVC.to_owned()), ..PerPvc::of_data(PVC.to_owned()) };
    let destroyed = with_database(on_pvc(World::destroyed(OSD).fenced(OSD), true));
    let next = destroyed.saved("rebuild").plan();
    let Next::Do(Act::Node(NodeAct::Agent { request, .. })) = next else { panic!("{next:?}") };
    assert_eq!((request.pvcs.as_ref(), request.pvc_with_key()), (Some(&both), Some(PVC)));
    let next = with_database(on_pvc(World::prepared(OSD).fenced(OSD).saved("new"), true)).plan();
    let Next::Do(Act::Kube(KubeAct::Deploy(deploy))) = next else { panic!("{next:?}") };
    assert_eq!(deploy.pvc_names(), Some(both));
}

#[test]
fn osd_is_settled_only_with_its_database_on_the_pvc() {
    let filled = |has_database: bool| {
        with_database(on_pvc(World::filled(OSD), true)).with(|w| {
            w.daemon(OSD).opens_encryption = true;
            w.slot(OSD).metadata.as_mut().unwrap().dedicated_db = has_database;
        })
    };
    assert_eq!(quarantine(&filled(true).plan()), None);
    assert!(quarantine(&filled(false).plan()).is_some_and(|why| why.contains("not as declared")));
}

/// Puts an OSD on a PVC of a set with the template `metadata`, to be encrypted, or to get its database.
fn to_migrate(has_database: bool) -> World {
    World::new().with(|w| {
        let templates = ["data", "metadata"].map(str::to_owned).to_vec();
        let (name, encrypted) = ("set1".to_owned(), has_database);
        let set = DeviceSet { name, encrypted, templates, count: Some(1), ..DeviceSet::default() };
        w.seen.kube.declaration.storage.sets = vec![set];
        let (data, set) = (Some(PVC.to_owned()), Some("set1".to_owned()));
        let db = has_database.then(|| DB_PVC.to_owned());
        w.daemon(RAW).on_pvcs = Some(OnPvcs { data, db, set, ..OnPvcs::default() });
        w.slot(RAW).metadata.as_mut().unwrap().dedicated_db = has_database;
        w.seen.kube.pvcs.insert(PVC.to_owned(), bound_pvc());
        let (uid, template) = ("uid-of-db-pvc".to_owned(), Some("metadata".to_owned()));
        w.seen.kube.pvcs.insert(DB_PVC.to_owned(), Pvc { uid, template, ..bound_pvc() });
        w.policy.select = [RAW].into();
    })
}

#[test]
fn record_has_all_pvcs_of_the_osd_with_their_uids() {
    for has_database in [false, true] {
        let mut world = to_migrate(has_database).saved("record");
        let pvcs = world.record(RAW).pvcs.clone().unwrap();
        let uids: Vec<_> =
            pvcs.iter().map(|(role, pvc)| (role, pvc.name.as_str(), pvc.uid.as_str())).collect();
        assert_eq!(uids, [(Role::Block, PVC, "uid-of-pvc"), (Role::Db, DB_PVC, "uid-of-db-pvc")]);
    }
}

#[test]
fn record_is_withdrawn_if_the_osd_would_get_other_pvcs() {
    let renamed = to_migrate(false).saved("record").with(|w| {
        let pvc = w.seen.kube.pvcs[DB_PVC].clone();
        w.seen.kube.pvcs.insert("set1-metadata-0z".to_owned(), pvc);
        w.daemon(RAW).on_pvcs.as_mut().unwrap().db = Some("set1-metadata-0z".to_owned());
    });
    assert_eq!(word(&renamed.plan()), Some("withdrawn"));
    let undeclared = to_migrate(false)
        .saved("record")
        .with(|w| w.seen.kube.declaration.storage.sets[0].templates.truncate(1));
    assert_eq!(word(&undeclared.plan()), Some("withdrawn"));
}

/// Returns the next step after the first inspection, which found these parts on the PVC of the database.
fn inspected(has_database: bool, parts: &[(Role, &str)]) -> Next {
    let parts = parts.iter().map(|(role, pvc)| {
        let device = DeviceIdentity { serial: Some("S-DB".to_owned()), ..evidence(RAW).device };
        Piece { role: *role, place: PieceLocation::Pvc { name: (*pvc).to_owned(), device, luks: None } }
    });
    let auxiliary = parts.collect();
    let world = to_migrate(has_database).saved("record").report_with(RAW, |report| {
        let inspection = report.inspection.as_mut().unwrap();
        let evidence = inspection.evidence.as_mut().unwrap();
        evidence.auxiliary = auxiliary;
        let (osd_fsid, whoami, cluster) = evidence.proof.names().unwrap();
        evidence.proof = Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: true };
        let (whoami, cluster, finished) = (Some(whoami), Some(cluster), true);
        inspection.content = Content::Bluestore { osd_fsid, whoami, cluster, finished, activatable: true };
    });
    world.plan()
}

#[test]
fn osd_whose_database_was_not_found_on_its_pvc_is_not_stopped() {
    check!(inspected(true, &[(Role::Db, DB_PVC)]), Next::Save { why: Saving::Proof, .. });
    for parts in [&[][..], &[(Role::Wal, DB_PVC)], &[(Role::Db, "set1-metadata-0z")]] {
        let next = inspected(true, parts);
        assert!(
            quarantine(&next).is_some_and(|why| why.contains(DB_PVC) && why.contains("block.db")),
            "{next:?}"
        );
    }
    // An OSD that is to get its first database has none.
    check!(inspected(false, &[]), Next::Save { why: Saving::Proof, .. });
}

#[test]
fn foreign_data_on_a_database_pvc_is_final_at_once() {
    let problem = |problem: fn(String) -> NodeProblem| {
        let why = format!("PVC {DB_PVC} for its block.db carries a signature of xfs");
        to_migrate(true).saved("record").report_with(RAW, |report| {
            report.problem = Some(problem(why));
            report.inspection.as_mut().unwrap().evidence = None;
            report.inspection.as_mut().unwrap().content = Content::Other { what: "UNCLEAR".to_owned() };
        })
    };
    let next = problem(NodeProblem::Foreign).plan();
    let why = quarantine(&next).unwrap();
    assert!(
        why.contains(DB_PVC) && why.contains("a signature of xfs") && why.contains("retry osd.5"),
        "{why}"
    );
    // Anything else may pass.
    for other in [NodeProblem::Refused, NodeProblem::Failed] {
        check!(
            problem(other).plan(),
            Next::Save { why: Saving::Attempt { task: NodeTask::Inspect, .. }, .. }
        );
    }
}

#[test]
fn refused_inspection_of_a_found_osd_names_its_problem() {
    let refused = |problem: Option<NodeProblem>| {
        let world = to_migrate(true).saved("record").report_with(RAW, |report| {
            report.problem = problem;
            report.inspection.as_mut().unwrap().evidence = None;
        });
        let next = world.plan();
        quarantine(&next).unwrap().to_owned()
    };
    let why = refused(Some(NodeProblem::Refused("the key opens nothing".to_owned())));
    assert_eq!(why, "its device was found, but is not proven: the key opens nothing");
    let why = refused(Some(NodeProblem::Foreign("xfs".to_owned())));
    assert!(why.contains("carries foreign data: xfs"), "{why}");
    assert!(refused(None).ends_with("the proof of its identity is missing"));
}
