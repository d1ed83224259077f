//! Each class and each refusal, from the small world with one thing changed.

use osd_migrate::domain::classify::{self, Class, Legacy, Refusal};
use osd_migrate::domain::inspection::Proof;
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::{Layout, NodeName, ObjectStore, OsdId};

use crate::support::build::{BY_HAND, FILESTORE, MODE, World, evidence, metadata};

const RAW: OsdId = OsdId(5);

fn class_of(world: &World, osd: OsdId) -> Class {
    classify::classify(&world.seen).remove(&osd).unwrap()
}

fn refused(osd: OsdId, change: impl FnOnce(&mut World)) -> Refusal {
    match class_of(&World::new().with(change), osd) {
        Class::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

fn not_built(osd: OsdId, change: impl FnOnce(&mut World)) -> String {
    match refused(osd, change) {
        Refusal::NotBuiltYet(what) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_small_world_has_two_legacy_osds_and_four_as_wanted() {
    let classes = classify::classify(&World::new().seen);
    assert_eq!(classes.len(), 6);
    for (osd, class) in classes {
        let expected = match osd {
            BY_HAND => Class::Legacy(Legacy::BluestoreByHand),
            FILESTORE => Class::Legacy(Legacy::FilestorePartition),
            _ => Class::Conforming,
        };
        assert_eq!(class, expected, "{osd}");
    }
}

#[test]
fn a_slot_that_nobody_runs_is_refused_with_what_is_missing() {
    assert_eq!(refused(BY_HAND, |w| w.slot(BY_HAND).state = SlotState::New), Refusal::Orphan);
    assert_eq!(refused(BY_HAND, |w| w.slot(BY_HAND).state = SlotState::Destroyed), Refusal::Orphan);
    assert_eq!(refused(BY_HAND, |w| w.slot(BY_HAND).metadata = None), Refusal::NoMetadata);
    assert_eq!(refused(BY_HAND, |w| drop(w.seen.kube.daemons.remove(&BY_HAND))), Refusal::NoDeployment);
    assert_eq!(refused(BY_HAND, |w| w.slot(BY_HAND).crush = None), Refusal::NoCrushItem);
    assert_eq!(
        refused(BY_HAND, |w| drop(w.seen.kube.nodes.remove(&NodeName("h1".to_owned())))),
        Refusal::NoNode("h1".to_owned())
    );
    assert_eq!(refused(BY_HAND, |w| w.daemon(BY_HAND).node = None), Refusal::NoNode("(unknown)".to_owned()));
}

#[test]
fn sources_that_this_version_does_not_take_are_named() {
    for (osd, change, what) in [
        (BY_HAND, (|w| w.daemon(BY_HAND).pvc_backed = true) as fn(&mut World), "PersistentVolumeClaim"),
        (BY_HAND, |w| w.slot(BY_HAND).metadata.as_mut().unwrap().device_mapper = true, "LVM or dm-crypt"),
        (BY_HAND, |w| w.slot(BY_HAND).metadata.as_mut().unwrap().dedicated_db = true, "db or wal"),
        (BY_HAND, |w| w.slot(BY_HAND).metadata.as_mut().unwrap().dedicated_wal = true, "db or wal"),
        (BY_HAND, |w| w.slot(BY_HAND).metadata.as_mut().unwrap().on_partition = true, "ceph-disk partitions"),
        (
            FILESTORE,
            |w| w.slot(FILESTORE).metadata.as_mut().unwrap().device_mapper = true,
            "Filestore on LVM",
        ),
        (FILESTORE, |w| w.slot(FILESTORE).metadata.as_mut().unwrap().on_partition = false, "directory"),
    ] {
        let said = not_built(osd, change);
        assert!(said.contains(what), "{said}");
    }
}

/// A directory OSD shows the system disk in `devices`: it must never be taken for a whole device.
#[test]
fn a_filestore_in_a_directory_is_not_taken_for_a_device() {
    assert!(
        not_built(FILESTORE, |w| {
            let metadata = w.slot(FILESTORE).metadata.as_mut().unwrap();
            metadata.on_partition = false;
            metadata.devices = vec!["sda".to_owned()];
        })
        .contains("directory")
    );
}

#[test]
fn targets_that_this_version_does_not_make_are_named() {
    assert!(not_built(BY_HAND, |w| w.seen.kube.declaration.encrypted = true).contains("encryption"));
    assert!(
        not_built(BY_HAND, |w| w.seen.kube.declaration.unsupported.push("a metadata device".to_owned()))
            .contains("a metadata device")
    );
    assert!(
        not_built(BY_HAND, |w| w.seen.kube.declaration.store = ObjectStore("bluestore-rdr".to_owned()))
            .contains("bluestore-rdr")
    );
    // One that is as wanted but for encryption is not called conforming.
    assert!(not_built(RAW, |w| w.seen.kube.declaration.encrypted = true).contains("encryption"));
}

#[test]
fn a_release_that_cannot_keep_ids_is_refused_before_anything_is_done() {
    for too_old in
        ["ceph version 15.2.17 octopus", "ceph version 16.2.14 pacific", "ceph version 18.2.0 reef", ""]
    {
        let why = refused(BY_HAND, |w| {
            w.slot(BY_HAND).metadata.as_mut().unwrap().ceph_version = too_old.to_owned();
        });
        assert_eq!(why, Refusal::TooOld(too_old.to_owned()));
    }
}

#[test]
fn what_others_hold_is_left_to_them_unless_there_is_nothing_to_do_anyway() {
    let held = |osd: OsdId| {
        move |w: &mut World| w.daemon(osd).held_by_others = Some("replacement by Rook".to_owned())
    };
    assert_eq!(refused(BY_HAND, held(BY_HAND)), Refusal::HeldByOthers("replacement by Rook".to_owned()));
    assert_eq!(class_of(&World::new().with(held(RAW)), RAW), Class::Conforming);
}

#[test]
fn bluestore_rdr_is_never_taken_back_to_bluestore_however_it_was_made() {
    for osd in [RAW, BY_HAND] {
        let why =
            refused(osd, |w| w.slot(osd).metadata.as_mut().unwrap().store.0 = "bluestore-rdr".to_owned());
        assert_eq!(why, Refusal::NoWayBack, "{osd}");
    }
}

#[test]
fn a_store_that_nobody_here_knows_is_not_migrated() {
    for store in ["seastore", "memstore", "kstore", ""] {
        let class = class_of(
            &World::new().with(|w| w.slot(BY_HAND).metadata = Some(metadata(store, BY_HAND, false))),
            BY_HAND,
        );
        assert!(matches!(class, Class::Refused(Refusal::NotBuiltYet(_))), "{store}: {class:?}");
    }
}

#[test]
fn the_target_is_raw_of_the_declared_store() {
    let target = classify::target(&World::new().seen.kube.declaration);
    assert_eq!(target, Ok(Layout { store: ObjectStore::bluestore(), mode: MODE, encrypted: false }));
}

#[test]
fn the_device_has_the_last_word_about_the_class() {
    let by_hand = Class::Legacy(Legacy::BluestoreByHand);
    let filestore = Class::Legacy(Legacy::FilestorePartition);
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
fn every_class_and_refusal_has_words_for_a_person() {
    let refusals = [
        Refusal::NotBuiltYet("x".to_owned()),
        Refusal::TooOld("x".to_owned()),
        Refusal::Orphan,
        Refusal::NoMetadata,
        Refusal::NoDeployment,
        Refusal::NoNode("x".to_owned()),
        Refusal::NoCrushItem,
        Refusal::HeldByOthers("x".to_owned()),
        Refusal::NoWayBack,
    ];
    let classes = [
        Class::Conforming,
        Class::Legacy(Legacy::BluestoreByHand),
        Class::Legacy(Legacy::FilestorePartition),
    ];
    for class in refusals.into_iter().map(Class::Refused).chain(classes) {
        assert!(class.to_string().len() > 8, "{class:?}");
        let text = serde_json::to_string(&class).unwrap();
        assert_eq!(serde_json::from_str::<Class>(&text).unwrap(), class);
    }
}
