//! How an OSD was created determines its kind, and evidence of another kind contradicts it.

use osd_migrate::domain::classify::{self, Class, Difference, Mismatch, Refusal};
use osd_migrate::domain::inspection::Proof;
use osd_migrate::domain::osd::{Kind, Mode, ObjectStore, OsdId};

use super::ask::{RAW, class_of, database, in_directory, not_built, refused};
use crate::support::build::{BY_HAND, FILESTORE, World, encrypted, evidence};

#[test]
fn small_world_has_two_legacy_and_four_conforming_osds() {
    let classes = classify::classify(&World::new().seen);
    assert_eq!(classes.len(), 6);
    for (osd, class) in classes {
        let expected = match osd {
            BY_HAND => Class::Legacy(Kind::BluestoreByHand),
            FILESTORE => Class::Legacy(Kind::FilestorePartition),
            _ => Class::Conforming,
        };
        assert_eq!(class, expected, "{osd}");
    }
}

#[test]
fn legacy_osd_is_classified_by_how_it_was_created() {
    type Change = fn(&mut World);
    let cases: [(OsdId, Change, Kind); 8] = [
        (FILESTORE, |_| {}, Kind::FilestorePartition),
        // The directory is on a partition of the system's disk: what counts is that nothing is mounted for
        // it.
        (FILESTORE, in_directory, Kind::FilestoreDirectory),
        (BY_HAND, |_| {}, Kind::BluestoreByHand),
        (
            BY_HAND,
            |w| w.slot(BY_HAND).metadata.as_mut().unwrap().on_partition = true,
            Kind::BluestorePartition,
        ),
        (
            BY_HAND,
            |w| {
                w.slot(BY_HAND).metadata.as_mut().unwrap().on_file = true;
                w.daemon(BY_HAND).data_dir = Some("/srv/osd0".to_owned());
            },
            Kind::BluestoreDirectory,
        ),
        (BY_HAND, |w| w.slot(BY_HAND).metadata.as_mut().unwrap().dedicated_db = true, Kind::BluestoreByHand),
        // A system on LVM, and a directory of it.
        (
            FILESTORE,
            |w| {
                in_directory(w);
                w.slot(FILESTORE).metadata.as_mut().unwrap().device_mapper = true;
            },
            Kind::FilestoreDirectory,
        ),
        (BY_HAND, |w| w.slot(BY_HAND).metadata.as_mut().unwrap().dedicated_wal = true, Kind::BluestoreByHand),
    ];
    for (osd, change, kind) in cases {
        assert_eq!(class_of(&World::new().with(change), osd), Class::Legacy(kind));
    }
}

/// Checks that an lvm OSD is not migrated for its mode: Rook starts both modes.
#[test]
fn lvm_osd_that_is_otherwise_as_declared_conforms() {
    let on_lvm = |w: &mut World| {
        w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
        w.daemon(RAW).mode = Some(Mode::Lvm);
    };
    assert_eq!(class_of(&World::new().with(on_lvm), RAW), Class::Conforming);
}

#[test]
fn osd_on_device_mapper_is_classified_by_deployment_and_key() {
    let on_lvm = |w: &mut World, osd: OsdId| w.slot(osd).metadata.as_mut().unwrap().device_mapper = true;
    let filestore = World::new().with(|w| {
        on_lvm(w, FILESTORE);
        w.daemon(FILESTORE).activates = true;
    });
    assert_eq!(class_of(&filestore, FILESTORE), Class::Legacy(Kind::FilestoreLvm));
    let raw_crypt = |evidence: fn(&mut World)| {
        let world = World::new().with(on_host_mapping).with(evidence);
        let class = class_of(&world, RAW);
        assert!(matches!(&class, Class::Mismatched(m) if m.format == Kind::RawCrypt), "{class:?}");
        world
    };
    raw_crypt(|w| w.daemon(RAW).opens_encryption = true);
    // 16.2.15 leaves a key with the mons for it too.
    let world = raw_crypt(|w| w.slot(RAW).dmcrypt_key = true);
    let world = world.with(|w| w.slot(RAW).metadata.as_mut().unwrap().dedicated_db = true);
    assert!(not_built(RAW, |w| *w = world).contains("database or log"));
}

/// Puts a raw OSD on a device-mapper device, without a sign of encryption by Ceph or Rook.
fn on_host_mapping(w: &mut World) {
    w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
    w.daemon(RAW).mode = Some(Mode::Raw);
}

/// Checks multipath, and LUKS that the host opens (crypttab, clevis): conforming OSDs were destroyed for it.
#[test]
fn raw_osd_on_a_host_mapping_conforms() {
    let world = World::new().with(on_host_mapping);
    assert_eq!(class_of(&world, RAW), Class::Conforming);
    // Rook labels a Deployment by the node's settings, not by the content of the device.
    let world = world.with(|w| w.daemon(RAW).encrypted_to_rook = true);
    assert_eq!(class_of(&world, RAW), Class::Conforming);
}

#[test]
fn mismatched_osd_on_a_host_mapping_is_refused() {
    let changes: [fn(&mut World); 3] = [
        |w| w.seen.kube.declaration.storage = encrypted(),
        |w| w.seen.kube.declaration.store = ObjectStore("bluestore-rdr".to_owned()),
        |w| database("nvme0n1")(w),
    ];
    for change in changes {
        match refused(RAW, |w| *w = World::new().with(on_host_mapping).with(change)) {
            why @ Refusal::HostDevice(_) => assert!(why.to_string().contains("multipath"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn class_is_contradicted_by_evidence_of_another_kind() {
    let by_hand = Class::Legacy(Kind::BluestoreByHand);
    let filestore = Class::Legacy(Kind::FilestorePartition);
    let label = evidence(BY_HAND).proof;
    let partition = evidence(FILESTORE).proof;
    let Proof::BluestoreLabel { osd_fsid, whoami, cluster, .. } = label.clone() else { panic!() };
    let by_ceph_volume = Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: true };

    assert_eq!(classify::contradicts(&by_hand, &label), None);
    assert_eq!(classify::contradicts(&filestore, &partition), None);
    let needs_deployment = classify::contradicts(&by_hand, &by_ceph_volume).unwrap();
    assert!(needs_deployment.contains("new Deployment, not a new store"), "{needs_deployment}");
    assert!(classify::contradicts(&by_hand, &partition).is_some());
    assert!(classify::contradicts(&filestore, &label).is_some());
    assert!(classify::contradicts(&filestore, &by_ceph_volume).is_some());
    for nothing in [Class::Conforming, Class::Refused(Refusal::Orphan)] {
        for proof in [&label, &partition, &by_ceph_volume] {
            assert!(classify::contradicts(&nothing, proof).is_some());
        }
    }
}

#[test]
fn classes_and_refusals_have_text_and_survive_json() {
    let refusals = [
        Refusal::NotBuiltYet("x".to_owned()),
        Refusal::TooOld("x".to_owned()),
        Refusal::Orphan,
        Refusal::NoMetadata,
        Refusal::NoDeployment,
        Refusal::NoNode("x".to_owned()),
        Refusal::NoCrushItem,
        Refusal::ManagedExternally("x".to_owned()),
        Refusal::NoWayBack,
    ];
    let classes = [
        Class::Conforming,
        Class::Legacy(Kind::BluestoreByHand),
        Class::Legacy(Kind::FilestorePartition),
        Class::Mismatched(Mismatch {
            format: Kind::Raw,
            differs: [Difference::ToBeEncrypted, Difference::ToBePlain].into(),
        }),
    ];
    for class in refusals.into_iter().map(Class::Refused).chain(classes) {
        assert!(class.to_string().len() > 8, "{class:?}");
        let text = serde_json::to_string(&class).unwrap();
        assert_eq!(serde_json::from_str::<Class>(&text).unwrap(), class);
    }
}
