//! OSDs on PersistentVolumeClaims, compared with their device set.

use osd_migrate::domain::classify::{self, Class, PvcRefusal, Refusal};
use osd_migrate::domain::device_set::DeviceSet;
use osd_migrate::domain::gate::{left_to_rooks_migration, reshaped_by_rook};
use osd_migrate::domain::observation::{OnPvcs, Pvc};
use osd_migrate::domain::osd::{Layout, Mode, ObjectStore, OsdId};

use super::ask::{RAW, class_of, not_built, refused};
use crate::support::build::{World, bound_pvc, node_of};

pub(super) const PVC: &str = "set1-data-0abc";
pub(super) const DB_PVC: &str = "set1-metadata-0b";

/// Puts the raw OSD on a bound PVC of a set that declares what the OSD is.
pub(super) fn on_pvc(w: &mut World) {
    w.daemon(RAW).on_pvcs =
        Some(OnPvcs { data: Some(PVC.to_owned()), set: Some("set1".to_owned()), ..OnPvcs::default() });
    w.seen.kube.pvcs.insert(PVC.to_owned(), bound_pvc());
    let (name, templates) = ("set1".to_owned(), vec!["data".to_owned()]);
    let set = DeviceSet { name, templates, count: Some(1), ..DeviceSet::default() };
    w.seen.kube.declaration.storage.sets = vec![set];
}

pub(super) fn set(w: &mut World) -> &mut DeviceSet {
    w.seen.kube.declaration.storage.sets.first_mut().unwrap()
}

fn to_be_encrypted(w: &mut World) {
    on_pvc(w);
    set(w).encrypted = true;
}

fn encrypted(w: &mut World) {
    on_pvc(w);
    let daemon = w.daemon(RAW);
    (daemon.opens_encryption, daemon.encrypted_to_rook) = (true, true);
    w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
}

/// Makes the OSD encrypted, with its key in a key management service.
fn key_in_kms(w: &mut World) {
    encrypted(w);
    w.daemon(RAW).on_pvcs.as_mut().unwrap().key_in_kms = true;
}

fn pvc(w: &mut World) -> &mut Pvc {
    to_be_encrypted(w);
    w.seen.kube.pvcs.get_mut(PVC).unwrap()
}

#[test]
fn osd_on_a_pvc_conforms_to_its_device_set() {
    assert_eq!(class_of(&World::new().with(on_pvc), RAW), Class::Conforming);
    let both = |w: &mut World| {
        encrypted(w);
        set(w).encrypted = true;
    };
    assert_eq!(class_of(&World::new().with(both), RAW), Class::Conforming);
    // The pod of a plain OSD on a logical volume (TopoLVM) sees a device-mapper device too.
    let on_volume = |w: &mut World| {
        on_pvc(w);
        w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
    };
    assert_eq!(class_of(&World::new().with(on_volume), RAW), Class::Conforming);
    // The settings of disks of hosts are not for OSDs on PVCs.
    let on_host = |w: &mut World| {
        on_pvc(w);
        w.seen.kube.declaration.storage.config.encrypted = Some(true);
    };
    assert_eq!(class_of(&World::new().with(on_host), RAW), Class::Conforming);
}

#[test]
fn differences_of_an_osd_from_its_device_set_are_named() {
    let mismatched = |change: &dyn Fn(&mut World), what: &str| {
        let world = World::new().with(change);
        let class = class_of(&world, RAW);
        assert!(matches!(class, Class::Mismatched(_)) && class.to_string().contains(what), "{class}");
        classify::target_of(RAW, &world.seen).unwrap()
    };
    let raw = |encrypted| Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted };
    assert_eq!(mismatched(&to_be_encrypted, "not encrypted, declared encrypted"), raw(true));
    assert_eq!(mismatched(&encrypted, "encrypted, declared not encrypted"), raw(false));
    let store = |w: &mut World| {
        on_pvc(w);
        w.seen.kube.declaration.store.0 = "bluestore-rdr".to_owned();
    };
    assert_eq!(mismatched(&store, "store bluestore, declared bluestore-rdr").store.0, "bluestore-rdr");
    let database = |w: &mut World| {
        on_pvc(w);
        set(w).templates.push("metadata".to_owned());
    };
    let to_get_one = |w: &mut World| {
        database(w);
        with_database_pvc(w);
    };
    assert_eq!(mismatched(&to_get_one, "template `metadata` of `set1`"), raw(false));
    let has_one = |w: &mut World| {
        database(w);
        w.slot(RAW).metadata.as_mut().unwrap().dedicated_db = true;
    };
    assert_eq!(class_of(&World::new().with(has_one), RAW), Class::Conforming);
    let unnamed = |w: &mut World| {
        on_pvc(w);
        w.daemon(RAW).on_pvcs.as_mut().unwrap().data = None;
    };
    assert!(not_built(RAW, unnamed).contains("does not name"));
}

/// Adds the PVC for the database of the OSD, and returns it.
fn with_database_pvc(w: &mut World) -> &mut Pvc {
    let pvc = Pvc { template: Some("metadata".to_owned()), ..bound_pvc() };
    w.seen.kube.pvcs.insert(DB_PVC.to_owned(), pvc);
    w.seen.kube.pvcs.get_mut(DB_PVC).unwrap()
}

/// Declares the template for databases, and adds the PVC of the OSD, which has no database yet.
pub(super) fn to_get_database(w: &mut World) -> &mut Pvc {
    on_pvc(w);
    set(w).templates.push("metadata".to_owned());
    with_database_pvc(w)
}

/// Gives the OSD a database on a PVC that its Deployment names.
fn with_database(w: &mut World) {
    to_get_database(w);
    w.daemon(RAW).on_pvcs.as_mut().unwrap().db = Some(DB_PVC.to_owned());
    w.slot(RAW).metadata.as_mut().unwrap().dedicated_db = true;
}

fn pvcs(change: impl FnOnce(&mut World)) -> Option<(String, Option<String>, Option<String>)> {
    let found = classify::pvcs_of(RAW, &World::new().with(change).seen)?;
    Some((found.data, found.db, found.wal))
}

#[test]
fn osd_gets_the_pvcs_of_its_deployment_else_of_its_index() {
    let (data, db, wal) = (|| PVC.to_owned(), || Some(DB_PVC.to_owned()), || Some("set1-wal-0c".to_owned()));
    assert_eq!(pvcs(on_pvc), Some((data(), None, None)));
    let to_get_one = |w: &mut World| {
        to_get_database(w);
    };
    assert_eq!(pvcs(to_get_one), Some((data(), db(), None)));
    assert_eq!(pvcs(with_database), Some((data(), db(), None)));
    // A database that is no longer declared stays (ADR 0022).
    let kept = |w: &mut World| {
        with_database(w);
        set(w).templates = vec!["data".to_owned()];
        set(w).encrypted = true;
    };
    assert_eq!(pvcs(kept), Some((data(), db(), None)));
    assert!(matches!(class_of(&World::new().with(kept), RAW), Class::Mismatched(_)));
    // The Deployment decides, whatever else has the index.
    let another = |w: &mut World| {
        with_database(w);
        let pvc = w.seen.kube.pvcs[DB_PVC].clone();
        w.seen.kube.pvcs.insert("set1-metadata-0z".to_owned(), pvc);
    };
    assert_eq!(pvcs(another), Some((data(), db(), None)));
    let with_log = |w: &mut World| {
        to_get_database(w);
        set(w).templates.push("wal".to_owned());
        let pvc = Pvc { template: Some("wal".to_owned()), ..bound_pvc() };
        w.seen.kube.pvcs.insert("set1-wal-0c".to_owned(), pvc);
    };
    assert_eq!(pvcs(with_log), Some((data(), db(), wal())));
    assert_eq!(classify::pvcs_of(RAW, &World::new().seen), None, "an OSD on a disk of its host");
}

/// Checks that an OSD without its log is migrated: Rook would link a PVC that is not its log.
#[test]
fn missing_log_is_a_difference_from_the_device_set() {
    let wal = |w: &mut World| {
        on_pvc(w);
        set(w).templates.push("wal".to_owned());
    };
    assert!(refused(RAW, wal).to_string().contains("the template `wal` for its index 0"));
    let with_pvc = |w: &mut World| {
        wal(w);
        let pvc = Pvc { template: Some("wal".to_owned()), ..bound_pvc() };
        w.seen.kube.pvcs.insert("set1-wal-0c".to_owned(), pvc);
    };
    let class = class_of(&World::new().with(with_pvc), RAW);
    assert!(class.to_string().contains("no log of its own, declared on a PVC (template `wal`"), "{class}");
    let has_one = |w: &mut World| {
        with_pvc(w);
        w.slot(RAW).metadata.as_mut().unwrap().dedicated_wal = true;
    };
    assert_eq!(class_of(&World::new().with(has_one), RAW), Class::Conforming);
}

#[test]
fn osd_without_a_usable_pvc_for_its_database_is_refused() {
    let why = |change: &dyn Fn(&mut World)| {
        let refusal = refused(RAW, change);
        assert_eq!(refusal.code(), "no-database-pvc", "{refusal}");
        refusal.to_string()
    };
    let with = |change: fn(&mut Pvc)| why(&|w: &mut World| change(to_get_database(w)));
    assert!(with(|pvc| pvc.index = Some("1".to_owned())).contains("index 0: there is none"));
    assert!(with(|pvc| pvc.set = Some("set2".to_owned())).contains("there is none"));
    assert!(with(|pvc| pvc.phase = "Pending".to_owned()).contains("PVC set1-metadata-0b is Pending"));
    assert!(with(|pvc| pvc.is_deleted = true).contains("is being deleted"));
    let on_h9 = |pvc: &mut Pvc| pvc.volume.as_mut().unwrap().nodes = Some(["h9".to_owned()].into());
    assert!(with(on_h9).contains("is on another node (h9)"));
    let several = |w: &mut World| {
        let pvc = to_get_database(w).clone();
        w.seen.kube.pvcs.insert("set1-metadata-0z".to_owned(), pvc);
    };
    assert!(why(&several).contains("there are several (set1-metadata-0b, set1-metadata-0z)"));
    let used = |w: &mut World| {
        to_get_database(w);
        w.daemon(OsdId(1)).on_pvcs = Some(OnPvcs { db: Some(DB_PVC.to_owned()), ..OnPvcs::default() });
    };
    assert!(why(&used).contains("PVC set1-metadata-0b belongs to osd.1"));
    let unlabelled = |w: &mut World| {
        to_get_database(w);
        w.seen.kube.pvcs.get_mut(PVC).unwrap().index = None;
    };
    assert!(why(&unlabelled).contains("no label names its index"));
    let here = |w: &mut World| {
        to_get_database(w).volume.as_mut().unwrap().nodes = Some([node_of(RAW).0].into());
    };
    assert!(matches!(class_of(&World::new().with(here), RAW), Class::Mismatched(_)));
}

#[test]
fn database_that_cannot_be_found_or_used_is_refused() {
    let unnamed = |w: &mut World| {
        with_database(w);
        w.daemon(RAW).on_pvcs.as_mut().unwrap().db = None;
        set(w).encrypted = true;
    };
    assert!(
        not_built(RAW, unnamed).contains("its database is on a device that its Deployment does not name")
    );
    let log = |w: &mut World| {
        to_be_encrypted(w);
        w.slot(RAW).metadata.as_mut().unwrap().dedicated_wal = true;
    };
    assert!(not_built(RAW, log).contains("its log is on a device"));
    let lost = |w: &mut World| {
        with_database(w);
        w.seen.kube.pvcs.get_mut(DB_PVC).unwrap().phase = "Lost".to_owned();
        set(w).encrypted = true;
    };
    let not_bound = PvcRefusal::PvcNotBound { pvc: DB_PVC.to_owned(), phase: "Lost".to_owned() };
    assert_eq!(refused(RAW, lost), Refusal::OnPvc(not_bound));
}

#[test]
fn encrypted_osd_with_a_database_is_migrated_alike() {
    let to_be_plain = |w: &mut World| {
        encrypted(w);
        set(w).templates.push("metadata".to_owned());
        with_database_pvc(w);
        w.daemon(RAW).on_pvcs.as_mut().unwrap().db = Some(DB_PVC.to_owned());
        w.slot(RAW).metadata.as_mut().unwrap().dedicated_db = true;
    };
    let class = class_of(&World::new().with(to_be_plain), RAW);
    assert!(class.to_string().contains("encrypted, declared not encrypted"), "{class}");
    let on_lvm = |w: &mut World| {
        to_be_plain(w);
        let daemon = w.daemon(RAW);
        (daemon.mode, daemon.opens_encryption) = (Some(Mode::Lvm), false);
    };
    let lvm_on_pvc = || Class::Refused(PvcRefusal::LvmOnPvc { pvc: PVC.to_owned() }.into());
    assert_eq!(class_of(&World::new().with(on_lvm), RAW), lvm_on_pvc());
}

#[test]
fn osd_without_a_clear_device_set_is_refused() {
    let no_set = |name: Option<&str>| {
        Refusal::OnPvc(PvcRefusal::NoSet { set: name.map(str::to_owned), pvc: PVC.to_owned() })
    };
    let removed = |w: &mut World| {
        on_pvc(w);
        w.seen.kube.declaration.storage.sets.clear();
    };
    assert_eq!(refused(RAW, removed), no_set(Some("set1")));
    let unlabelled = |w: &mut World| {
        on_pvc(w);
        w.daemon(RAW).on_pvcs.as_mut().unwrap().set = None;
    };
    assert_eq!(class_of(&World::new().with(unlabelled), RAW), Class::Conforming, "the PVC names its set");
    let unknown = |w: &mut World| {
        unlabelled(w);
        w.seen.kube.pvcs.clear();
    };
    assert_eq!(refused(RAW, unknown), no_set(None));
    let twice = |w: &mut World| {
        on_pvc(w);
        let again = set(w).clone();
        w.seen.kube.declaration.storage.sets.push(again);
    };
    assert_eq!(
        refused(RAW, twice),
        Refusal::OnPvc(PvcRefusal::SetUnclear { what: "device set `set1`".to_owned() })
    );
    let templates = |w: &mut World| {
        on_pvc(w);
        set(w).templates.push("data".to_owned());
    };
    let what = "template `data` of device set `set1`".to_owned();
    assert_eq!(refused(RAW, templates), Refusal::OnPvc(PvcRefusal::SetUnclear { what }));
}

#[test]
fn osd_on_a_pvc_that_another_pod_cannot_use_is_refused() {
    let name = || PVC.to_owned();
    let not_bound =
        |phase: &str| Refusal::OnPvc(PvcRefusal::PvcNotBound { pvc: name(), phase: phase.to_owned() });
    assert_eq!(refused(RAW, |w| pvc(w).phase = "Lost".to_owned()), not_bound("Lost"));
    assert_eq!(refused(RAW, |w| pvc(w).is_deleted = true), not_bound("being deleted"));
    let missing = |w: &mut World| {
        to_be_encrypted(w);
        w.seen.kube.pvcs.clear();
    };
    assert_eq!(refused(RAW, missing), not_bound("missing"));
    let without_volume = not_bound("bound to a PersistentVolume that does not exist");
    assert_eq!(refused(RAW, |w| pvc(w).volume = None), without_volume);
    assert_eq!(
        refused(RAW, |w| pvc(w).is_block = false),
        Refusal::OnPvc(PvcRefusal::PvcNoBlock { pvc: name() })
    );
    assert_eq!(
        refused(RAW, |w| pvc(w).is_for_one_pod = true),
        Refusal::OnPvc(PvcRefusal::PvcOnePod { pvc: name() })
    );
    let kms = |w: &mut World| {
        to_be_encrypted(w);
        w.seen.kube.declaration.kms = Some("vault".to_owned());
    };
    let in_vault = Refusal::OnPvc(PvcRefusal::KeyInKms { kms: "vault".to_owned(), set: "set1".to_owned() });
    assert_eq!(refused(RAW, kms), in_vault);
    // The pods read their key from the service, also if the CephCluster does not declare it any more.
    let kept = |w: &mut World| {
        key_in_kms(w);
        set(w).encrypted = true;
        w.seen.kube.declaration.store.0 = "bluestore-rdr".to_owned();
    };
    assert_eq!(refused(RAW, kept).code(), "key-in-kms");
    let to_plain = class_of(&World::new().with(key_in_kms), RAW);
    assert!(to_plain.to_string().contains("encrypted, declared not encrypted"), "{to_plain}");
    let declared_too = |w: &mut World| {
        key_in_kms(w);
        w.seen.kube.declaration.kms = Some("vault".to_owned());
    };
    assert_eq!(class_of(&World::new().with(declared_too), RAW), to_plain, "it needs no key");
    // An OSD that is as declared needs nothing of this.
    let unused = |w: &mut World| {
        pvc(w).phase = "Lost".to_owned();
        set(w).encrypted = false;
    };
    assert_eq!(class_of(&World::new().with(unused), RAW), Class::Conforming);
}

#[test]
fn rooks_migration_compares_an_osd_on_a_pvc_with_its_set() {
    let left = |change: &dyn Fn(&mut World)| {
        let confirmed = |w: &mut World| {
            change(w);
            w.seen.kube.declaration.confirmed = true;
        };
        left_to_rooks_migration(&World::new().with(confirmed).seen).contains(&RAW)
    };
    let both = |w: &mut World| {
        encrypted(w);
        set(w).encrypted = true;
    };
    let undeclared = |w: &mut World| {
        both(w);
        w.seen.kube.declaration.storage.sets.clear();
    };
    assert!(!left(&on_pvc) && !left(&both));
    assert!(left(&to_be_encrypted) && left(&encrypted) && left(&undeclared));
}

#[test]
fn rook_would_start_an_osd_with_the_pvcs_of_its_set() {
    let reshaped =
        |change: &dyn Fn(&mut World)| !reshaped_by_rook(&World::new().with(change).seen).is_empty();
    let declared = |w: &mut World| {
        to_get_database(w);
    };
    let undeclared = |w: &mut World| {
        with_database(w);
        set(w).templates.truncate(1);
    };
    let log = |w: &mut World| {
        with_database(w);
        set(w).templates.push("wal".to_owned());
    };
    assert!(!reshaped(&on_pvc) && !reshaped(&with_database));
    assert!(reshaped(&to_be_encrypted) && reshaped(&declared) && reshaped(&undeclared) && reshaped(&log));
}
