//! PVCs whose names are too long for the label in the LUKS2 header of an encrypted OSD.

use osd_migrate::domain::classify::{Class, PvcRefusal, Refusal};
use osd_migrate::domain::observation::OnPvcs;

use super::ask::{RAW, class_of};
use super::on_pvc::{DB_PVC, PVC, on_pvc, set, to_get_database};
use crate::support::build::World;

/// Renames a PVC of the OSD, and returns its name.
fn rename(w: &mut World, from: &str, chars: usize) -> String {
    let name = format!("{from:0<chars$}");
    let found = w.seen.kube.pvcs.remove(from).unwrap();
    w.seen.kube.pvcs.insert(name.clone(), found);
    let OnPvcs { data, db, .. } = w.daemon(RAW).on_pvcs.as_mut().unwrap();
    for named in [data, db] {
        if named.as_deref() == Some(from) {
            *named = Some(name.clone());
        }
    }
    name
}

fn to_have_database(w: &mut World) {
    to_get_database(w);
    let daemon = w.daemon(RAW);
    (daemon.opens_encryption, daemon.encrypted_to_rook) = (true, true);
    w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
}

fn too_long(pvc: String) -> Class {
    Class::Refused(Refusal::OnPvc(PvcRefusal::PvcNameTooLong { pvc, set: "set1".to_owned() }))
}

#[test]
fn osd_on_a_pvc_with_a_long_name_is_not_encrypted() {
    let to_be_encrypted = |chars: usize| {
        let mut world = World::new().with(on_pvc);
        set(&mut world).encrypted = true;
        let name = rename(&mut world, PVC, chars);
        (class_of(&world, RAW), name)
    };
    assert!(matches!(to_be_encrypted(38).0, Class::Mismatched(_)));
    let (class, name) = to_be_encrypted(39);
    assert_eq!(class, too_long(name));
    let mut plain = World::new().with(on_pvc);
    plain.seen.kube.declaration.store.0 = "bluestore-rdr".to_owned();
    rename(&mut plain, PVC, 39);
    assert!(matches!(class_of(&plain, RAW), Class::Mismatched(_)));
}

#[test]
fn encrypted_osd_gets_no_database_pvc_with_a_long_name() {
    let to_get_one = |pvc: &str| {
        let mut world = World::new().with(to_have_database);
        set(&mut world).encrypted = true;
        let name = rename(&mut world, pvc, 39);
        (class_of(&world, RAW), name)
    };
    let (class, name) = to_get_one(DB_PVC);
    assert_eq!(class, too_long(name));
    assert!(matches!(to_get_one(PVC).0, Class::Mismatched(_)), "its data are encrypted already");
}
