//! OSDs on PersistentVolumeClaims, which become encrypted or unencrypted or get a database on another one,
//! searched like the others.

use osd_migrate_core::domain::classify::Class;
use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::inspection::Content;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::sim::{Happening, PvcChange, World, example};

use super::search::Search;
use super::{OURS, everything, explore, explored, has_time, needs, nothing, promises, spontaneous};

pub(super) const RECREATED: &str = "a PVC is recreated on another disk";
pub(super) const ALONGSIDE_ROOK: &str = "alongside Rook, a device set is edited";
pub(super) const ROTATED: &str = "on a PVC, its key is rotated";
pub(super) const OVERWRITTEN: &str = "on a PVC, the disk of its database is overwritten";
pub(super) const ELSEWHERE: &str = "on a PVC, its database is elsewhere";
pub(super) const WITHOUT_KEY: &str = "on a PVC, its key is lost";
pub(super) const ON_LVM: &str = "on LVM on a PVC";
pub(super) const KILLED: &str = "on a PVC, to be encrypted, agents fail";

/// Returns a new PVC of the same name over the other disk, while no pod uses the old one.
fn recreates(pvc: &str, world: &World) -> Option<Happening> {
    let can_be = world.pvcs.disks[pvc] != example::OTHER_DISK && world.is_unused(pvc);
    let what = || PvcChange::Recreated(pvc.to_owned(), example::OTHER_DISK.to_owned());
    can_be.then(|| Happening::Pvc(what()))
}

pub(super) fn recreated(world: &World) -> Vec<Happening> {
    recreates(example::PVC, world).into_iter().collect()
}

fn database_recreated(world: &World) -> Vec<Happening> {
    recreates(example::DB_PVC, world).into_iter().collect()
}

/// Returns the store of another OSD that a person writes to the disk for the database, before the new OSD has
/// its database there.
fn database_overwritten(world: &World) -> Vec<Happening> {
    let disk = &world.disks[example::DB_DISK];
    let is_old = world.database_on(example::DB_DISK).is_none_or(|fsid| fsid == example::fsid(OURS, 0));
    // A person who writes to a disk opens it exclusively too.
    let is_run = world.ceph.slots[&OURS].up && world.database_on(example::DB_DISK).is_some();
    let is_new = world.ceph.slots[&OURS].fsid != Some(example::fsid(OURS, 0));
    let can_be = disk.held_by.is_none() && disk.content == Content::Blank && is_old && !is_run && !is_new;
    can_be.then(|| Happening::DiskOverwritten(example::DB_DISK.to_owned())).into_iter().collect()
}

/// Returns the faults of agents, and what people do to the PVC for the database and its disk.
fn with_database(world: &World) -> Vec<Happening> {
    let mut menu = super::agents(world);
    menu.extend(database_recreated(world));
    menu.extend(database_overwritten(world));
    menu
}

/// Returns everything, and what people do to the PVC and its key.
fn with_pvcs(world: &World) -> Vec<Happening> {
    let mut menu = everything(world);
    menu.extend(recreated(world));
    menu
}

/// Returns the loss of the key while no store needs it.
fn key_lost(world: &World) -> Vec<Happening> {
    let is_needed = world.pvcs.stores.keys().any(|fsid| world.disk_of(*fsid).is_some());
    let can_be = !is_needed && world.pvcs.keys.contains_key(example::PVC);
    can_be.then(|| Happening::Pvc(PvcChange::KeyDeleted(example::PVC.to_owned()))).into_iter().collect()
}

/// Returns the edit of the device set, while the CephCluster is fenced for another OSD.
fn edited(world: &World) -> Vec<Happening> {
    let is_fenced = world.kube.fence.is_some();
    let is_plain = world.kube.declaration.storage.sets.iter().all(|set| !set.encrypted);
    (is_fenced && is_plain).then_some(Happening::Pvc(PvcChange::SetEdited(true))).into_iter().collect()
}

/// Returns a search in which Rook would start an OSD on a PVC as its edited device set declares.
fn alongside_rook() -> Search {
    let policy = || Policy { confirmed: true, ..Policy::default() };
    Search { policy, ..Search::new(ALONGSIDE_ROOK, example::pvc_alongside_rook, edited, (1, 0, 0)) }
}

/// Returns the begin of a rotation of the key, while the OSD has a pod.
fn rotated(world: &World) -> Vec<Happening> {
    let has_pod = world.kube.daemons.get(&OURS).is_some_and(|daemon| !daemon.pods.is_empty());
    let can_be = has_pod && world.kube.rotating.is_empty();
    can_be.then_some(Happening::Pvc(PvcChange::RotationStarts(OURS))).into_iter().collect()
}

/// Returns the searches for mutants.
pub(super) fn searches() -> Vec<Search> {
    let new = Search::new;
    vec![
        new("on a PVC, to be unencrypted", example::pvc_to_be_plain, nothing, (0, 0, 0)),
        new(RECREATED, example::pvc_to_be_encrypted, recreated, (1, 0, 0)),
        alongside_rook(),
        new(ROTATED, example::pvc_to_be_plain, rotated, (1, 0, 0)),
        new(KILLED, example::pvc_to_be_encrypted, super::agents, (1, 0, 0)),
        overwritten(),
        elsewhere(),
        without_key(),
    ]
}

fn overwritten() -> Search {
    Search::new(OVERWRITTEN, example::pvc_with_database, database_overwritten, (1, 0, 0))
}

fn elsewhere() -> Search {
    let world = example::pvc_with_database_elsewhere;
    Search { stays_shut: true, ..Search::new(ELSEWHERE, world, nothing, (0, 0, 0)) }
}

fn without_key() -> Search {
    let world = example::pvc_without_its_key;
    Search { stays_shut: true, ..Search::new(WITHOUT_KEY, world, nothing, (0, 0, 0)) }
}

#[test]
fn pvc_worlds_have_one_osd_to_migrate() {
    for (world, what) in [
        (example::pvc_to_be_encrypted(), "not encrypted, declared encrypted"),
        (example::pvc_to_be_plain(), "encrypted, declared not encrypted"),
        (example::pvc_with_database(), "not encrypted, declared encrypted"),
        (example::pvc_gets_database(), "its database is with its data"),
        (example::pvc_encrypted_gets_database(), "its database is with its data"),
        (example::pvc_gets_encrypted_database(), "not encrypted, declared encrypted; its database"),
        (example::pvc_on_lvm(), "on a volume of LVM on its PVC"),
    ] {
        let class = |osd| promises::class(&world, OsdId(osd));
        assert!(class(0).migrates().is_some() && class(0).to_string().contains(what), "{}", class(0));
        assert_eq!((class(1), class(2)), (Class::Conforming, Class::Conforming));
    }
    assert_eq!(OURS, OsdId(0));
}

#[test]
fn pvc_to_encrypted_survives_a_fault_of_any_kind() {
    explore("a PVC to encrypted", example::pvc_to_be_encrypted, with_pvcs, (1, 0, 0));
}

#[test]
fn pvc_to_plain_survives_a_fault_of_any_kind() {
    explore("a PVC to plain", example::pvc_to_be_plain, with_pvcs, (1, 0, 0));
}

#[test]
fn pvc_to_encrypted_survives_a_freeze_and_a_lost_key() {
    explore("a PVC to encrypted", example::pvc_to_be_encrypted, nothing, (0, 1, 0));
    explored(&Search::new("its key is deleted", example::pvc_to_be_encrypted, key_lost, (1, 0, 0)));
}

#[test]
fn lvm_on_a_pvc_to_raw_survives_a_fault_of_any_kind() {
    explore(ON_LVM, example::pvc_on_lvm, with_pvcs, (1, 0, 0));
}

#[test]
fn guards_of_a_database_on_a_pvc_are_needed() {
    needs(overwritten, &[Guard::PvcPartProven]);
    needs(elsewhere, &[Guard::PartsFoundFirst]);
    explored(&without_key());
    needs(without_key, &[Guard::KeyOfOld]);
}

#[test]
fn database_stays_on_its_pvc_despite_a_fault() {
    explore("a PVC with a database", example::pvc_with_database, with_database, (1, 0, 0));
}

#[test]
fn pvc_gets_a_database_despite_a_fault() {
    explore("a PVC gets a database", example::pvc_gets_database, with_database, (1, 0, 0));
}

#[test]
fn encrypted_pvcs_get_a_database_despite_a_fault() {
    for world in [example::pvc_encrypted_gets_database, example::pvc_gets_encrypted_database] {
        explore("an encrypted PVC gets a database", world, with_database, (1, 0, 0));
    }
}

#[test]
fn pvcs_wider_if_there_is_time() {
    if has_time() {
        explore("a PVC to plain", example::pvc_to_be_plain, nothing, (0, 1, 0));
        explore(ON_LVM, example::pvc_on_lvm, nothing, (0, 1, 0));
        explore("a PVC to encrypted", example::pvc_to_be_encrypted, spontaneous, (1, 1, 0));
        explore("a PVC to encrypted", example::pvc_to_be_encrypted, with_pvcs, (1, 0, 1));
        for world in [
            example::pvc_with_database,
            example::pvc_gets_database,
            example::pvc_encrypted_gets_database,
            example::pvc_gets_encrypted_database,
        ] {
            explore("a PVC and a database", world, nothing, (0, 1, 0));
            explore("a PVC and a database", world, spontaneous, (1, 0, 0));
        }
    }
}
