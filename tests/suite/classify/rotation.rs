//! OSDs on PVCs that are to get another device, and must not yet.

use osd_migrate::domain::classify::{Class, PvcRefusal, Refusal};
use osd_migrate::domain::observation::Rotation;

use super::ask::{RAW, class_of, refused};
use super::on_pvc::{DB_PVC, PVC, set, to_get_database};
use crate::support::build::World;

#[test]
fn osd_whose_pvc_names_no_template_gets_no_database() {
    let old_label = |w: &mut World| {
        to_get_database(w);
        w.seen.kube.pvcs.get_mut(PVC).unwrap().template = None;
    };
    let why = refused(RAW, old_label).to_string();
    assert!(
        why.contains("label pvc set1-data-0abc --overwrite ceph.rook.io/DeviceSetPVCId=set1-data-0"),
        "{why}"
    );
}

#[test]
fn encrypted_osd_gets_no_part_that_a_rotation_leaves_out() {
    let rotated = |db: bool| {
        move |w: &mut World| {
            to_get_database(w);
            let daemon = w.daemon(RAW);
            (daemon.opens_encryption, daemon.encrypted_to_rook) = (true, true);
            w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
            set(w).encrypted = true;
            w.seen.kube.rotations.insert(RAW, Rotation { db, wal: false });
        }
    };
    assert_eq!(refused(RAW, rotated(false)), Refusal::OnPvc(PvcRefusal::OldRotation { osd: RAW }));
    let is_mismatched = |class: Class| matches!(class, Class::Mismatched(_));
    assert!(is_mismatched(class_of(&World::new().with(rotated(true)), RAW)));
    let without = |w: &mut World| {
        rotated(false)(w);
        w.seen.kube.rotations.clear();
    };
    assert!(is_mismatched(class_of(&World::new().with(without), RAW)));
    let named = |w: &mut World| {
        rotated(false)(w);
        w.daemon(RAW).on_pvcs.as_mut().unwrap().db = Some(DB_PVC.to_owned());
    };
    assert!(is_mismatched(class_of(&World::new().with(named), RAW)), "Rook knows the device");
    let becomes_plain = |w: &mut World| {
        rotated(false)(w);
        set(w).encrypted = false;
    };
    assert!(is_mismatched(class_of(&World::new().with(becomes_plain), RAW)));
}
