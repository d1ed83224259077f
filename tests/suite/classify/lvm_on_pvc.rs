//! OSDs on a volume of LVM on their PersistentVolumeClaim.

use osd_migrate::domain::classify::{Class, Difference, Mismatch, target_of};
use osd_migrate::domain::observation::Metadata;
use osd_migrate::domain::osd::{Kind, Mode};

use super::ask::{RAW, class_of, refused};
use super::on_pvc::{on_pvc, set};
use crate::support::build::World;

#[test]
fn osd_on_lvm_of_a_pvc_is_to_be_raw() {
    let lvm = |w: &mut World, mode: Option<Mode>| {
        on_pvc(w);
        w.daemon(RAW).mode = mode;
        w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
    };
    let to_raw = || Class::Mismatched(Mismatch { format: Kind::Lvm, differs: [Difference::OnLvm].into() });
    // Rook 1.2 named no mode.
    for mode in [Some(Mode::Lvm), None] {
        let world = World::new().with(|w: &mut World| lvm(w, mode));
        assert_eq!(class_of(&world, RAW), to_raw());
        let layout = target_of(RAW, &world.seen).unwrap();
        assert_eq!((layout.mode, layout.encrypted), (Mode::Raw, false));
    }
    let encrypted = |w: &mut World| {
        lvm(w, Some(Mode::Lvm));
        set(w).encrypted = true;
    };
    let class = class_of(&World::new().with(encrypted), RAW).to_string();
    assert!(class.contains("not encrypted, declared encrypted; on a volume of LVM on its PVC"), "{class}");
    let with_database: fn(&mut Metadata) = |metadata| metadata.dedicated_db = true;
    let with_log: fn(&mut Metadata) = |metadata| metadata.dedicated_wal = true;
    for with_part in [with_database, with_log] {
        let elsewhere = |w: &mut World| {
            lvm(w, Some(Mode::Lvm));
            with_part(w.slot(RAW).metadata.as_mut().unwrap());
        };
        assert_eq!(refused(RAW, elsewhere).code(), "lvm-on-pvc");
    }
    // A volume of LVM below the PVC is the device of the PVC, and its OSD is raw.
    let on_a_volume = |w: &mut World| {
        on_pvc(w);
        w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
    };
    assert_eq!(class_of(&World::new().with(on_a_volume), RAW), Class::Conforming);
}
