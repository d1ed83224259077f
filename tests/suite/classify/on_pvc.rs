//! OSDs on PersistentVolumeClaims, compared with their device set.

use osd_migrate::domain::classify::{self, Class, PvcRefusal, Refusal};
use osd_migrate::domain::device_set::DeviceSet;
use osd_migrate::domain::gate::left_to_rooks_migration;
use osd_migrate::domain::observation::{OnPvcs, Pvc};
use osd_migrate::domain::osd::{Layout, Mode, ObjectStore};

use super::ask::{RAW, class_of, not_built, refused};
use crate::support::build::{World, bound_pvc};

const PVC: &str = "set1-data-0abc";

/// Puts the raw OSD on a bound PVC of a set that declares what the OSD is.
fn on_pvc(w: &mut World) {
    w.daemon(RAW).on_pvcs =
        Some(OnPvcs { data: Some(PVC.to_owned()), set: Some("set1".to_owned()), ..OnPvcs::default() });
    w.seen.kube.pvcs.insert(PVC.to_owned(), bound_pvc());
    let set = DeviceSet { name: "set1".to_owned(), encrypted: false, templates: vec!["data".to_owned()] };
    w.seen.kube.declaration.storage.sets = vec![set];
}

fn set(w: &mut World) -> &mut DeviceSet {
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
    assert!(not_built(RAW, database).contains("template `metadata` of `set1`"));
    let has_one = |w: &mut World| {
        database(w);
        w.slot(RAW).metadata.as_mut().unwrap().dedicated_db = true;
    };
    assert_eq!(class_of(&World::new().with(has_one), RAW), Class::Conforming);
    let stays = |w: &mut World| {
        has_one(w);
        set(w).encrypted = true;
    };
    assert!(not_built(RAW, stays).contains("its database or its log is on another PVC"));
    let unnamed = |w: &mut World| {
        on_pvc(w);
        w.daemon(RAW).on_pvcs.as_mut().unwrap().data = None;
    };
    assert!(not_built(RAW, unnamed).contains("does not name"));
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
    let key_in_kms = Refusal::OnPvc(PvcRefusal::KeyInKms { kms: "vault".to_owned(), set: "set1".to_owned() });
    assert_eq!(refused(RAW, kms), key_in_kms);
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
