//! OSDs that are refused, and why.

use osd_migrate::domain::classify::{self, Class, Refusal};
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::{Mode, NodeName, OsdId};
use osd_migrate::domain::storage::DeviceConfig;

use super::ask::{RAW, class_of, database, not_built, refused};
use crate::support::build::{BY_HAND, FILESTORE, World, encrypted, metadata};

#[test]
fn incomplete_osd_is_refused_with_what_is_missing() {
    assert_eq!(refused(BY_HAND, |w| w.slot(BY_HAND).state = SlotState::New), Refusal::Orphan);
    assert_eq!(refused(BY_HAND, |w| w.slot(BY_HAND).state = SlotState::Destroyed), Refusal::Orphan);
    assert_eq!(refused(BY_HAND, |w| w.slot(BY_HAND).metadata = None), Refusal::NoMetadata);
    assert_eq!(refused(BY_HAND, |w| drop(w.seen.kube.daemons.remove(&BY_HAND))), Refusal::NoDeployment);
    assert_eq!(refused(BY_HAND, |w| w.slot(BY_HAND).crush = None), Refusal::NoCrushItem);
    assert_eq!(
        refused(BY_HAND, |w| drop(w.seen.kube.nodes.remove(&NodeName("h1".to_owned())))),
        Refusal::NoNode("h1".to_owned())
    );
    assert_eq!(refused(BY_HAND, |w| w.daemon(BY_HAND).node = None), Refusal::NoPod(BY_HAND));
}

#[test]
fn directory_osd_without_osd_data_argument_is_refused() {
    let said = not_built(FILESTORE, |w| w.daemon(FILESTORE).mounts_device = false);
    assert!(said.contains("--osd-data"), "{said}");
}

#[test]
fn unsupported_sources_and_targets_are_named() {
    let config =
        |w: &mut World, change: fn(&mut DeviceConfig)| change(&mut w.seen.kube.declaration.storage.config);
    assert!(not_built(BY_HAND, |w| config(w, |c| c.osds_per_device = Some(2))).contains("osdsPerDevice"));
    assert!(
        not_built(RAW, |w| config(w, |c| c.unreadable = vec!["x is no number".to_owned()])).contains("x is")
    );
}

/// Checks that an OSD that is as declared has nothing to refuse: nothing is to be created on its device.
#[test]
fn osds_per_device_refuses_only_an_osd_that_differs() {
    let several = |w: &mut World| w.seen.kube.declaration.storage.config.osds_per_device = Some(2);
    assert_eq!(class_of(&World::new().with(several), RAW), Class::Conforming);
    let encrypted_too = |w: &mut World| {
        w.seen.kube.declaration.storage = encrypted();
        several(w);
    };
    assert!(not_built(RAW, encrypted_too).contains("a target with 2 OSDs on a device (osdsPerDevice)"));
    assert_eq!(classify::target_of(RAW, &World::new().with(encrypted_too).seen), None);
    let encrypted_one = |w: &mut World| {
        encrypted_too(w);
        let slot = w.slot(RAW);
        slot.dmcrypt_key = true;
        slot.metadata.as_mut().unwrap().device_mapper = true;
        w.daemon(RAW).mode = Some(Mode::Lvm);
    };
    assert_eq!(class_of(&World::new().with(encrypted_one), RAW), Class::Conforming);
    let database_too = World::new().with(encrypted_one).with(database("nvme0n1"));
    assert!(matches!(class_of(&database_too, RAW), Class::Refused(Refusal::NotBuiltYet(_))));
}

#[test]
fn release_too_old_to_preserve_osd_ids_is_refused() {
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
fn externally_managed_osd_is_refused_unless_it_conforms() {
    let held = |osd: OsdId| {
        move |w: &mut World| w.daemon(osd).managed_externally = Some("replacement by Rook".to_owned())
    };
    assert_eq!(refused(BY_HAND, held(BY_HAND)), Refusal::ManagedExternally("replacement by Rook".to_owned()));
    assert_eq!(class_of(&World::new().with(held(RAW)), RAW), Class::Conforming);
}

#[test]
fn bluestore_rdr_is_never_migrated_to_bluestore() {
    for osd in [RAW, BY_HAND] {
        let why =
            refused(osd, |w| w.slot(osd).metadata.as_mut().unwrap().store.0 = "bluestore-rdr".to_owned());
        assert_eq!(why, Refusal::NoWayBack, "{osd}");
    }
}

#[test]
fn unknown_object_store_is_never_migrated() {
    for store in ["seastore", "memstore", "kstore", ""] {
        let class = class_of(
            &World::new().with(|w| w.slot(BY_HAND).metadata = Some(metadata(store, BY_HAND, false))),
            BY_HAND,
        );
        assert!(matches!(class, Class::Refused(Refusal::NotBuiltYet(_))), "{store}: {class:?}");
    }
}
