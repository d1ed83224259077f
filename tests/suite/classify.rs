//! Each class and each refusal, from the small world with one thing changed.

use osd_migrate::domain::classify::{self, Class, Difference, Mismatch, Refusal};
use osd_migrate::domain::inspection::{Evidence, Piece, PieceLocation, Proof};
use osd_migrate::domain::next::Next;
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::{Kind, Layout, Mode, NodeName, ObjectStore, OsdId, Role};

use osd_migrate::domain::storage::{DeviceConfig, NamedDevice};

use crate::support::build::{BY_HAND, FILESTORE, MODE, World, encrypted, evidence, metadata};

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
    assert_eq!(refused(BY_HAND, |w| w.daemon(BY_HAND).node = None), Refusal::NoNode("(unknown)".to_owned()));
}

fn in_directory(w: &mut World) {
    let daemon = w.daemon(FILESTORE);
    (daemon.mounts_device, daemon.data_dir) = (false, Some("/srv/osd2".to_owned()));
}

#[test]
fn directory_osd_without_osd_data_argument_is_refused() {
    let said = not_built(FILESTORE, |w| w.daemon(FILESTORE).mounts_device = false);
    assert!(said.contains("--osd-data"), "{said}");
}

/// Checks a directory on the system's disk: Ceph names that disk, which does not determine where the OSD
/// goes.
#[test]
fn directory_osd_ignores_the_config_of_the_system_disk() {
    let named = |w: &mut World| {
        let config = DeviceConfig { encrypted: Some(true), ..DeviceConfig::default() };
        let devices = vec![NamedDevice { name: "sdb".to_owned(), config }];
        w.seen.kube.declaration.storage.selection.devices = devices;
    };
    let encrypted = |world: &World| classify::target_of(FILESTORE, &world.seen).unwrap().encrypted;
    assert!(encrypted(&World::new().with(named)));
    assert!(!encrypted(&World::new().with(named).with(in_directory)));
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
fn mismatch_names_each_difference_to_the_declaration() {
    fn mismatch(change: impl FnOnce(&mut World)) -> Mismatch {
        match class_of(&World::new().with(change), RAW) {
            Class::Mismatched(mismatch) => mismatch,
            other => panic!("{other:?}"),
        }
    }
    let plain_to_encrypted = mismatch(|w| w.seen.kube.declaration.storage = encrypted());
    let expected = Mismatch { made: Kind::Raw, differs: [Difference::ToBeEncrypted].into() };
    assert_eq!(plain_to_encrypted, expected);
    let encrypted_one = |w: &mut World| {
        w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
        w.daemon(RAW).mode = Some(Mode::Lvm);
        w.slot(RAW).dmcrypt_key = true;
    };
    let to_plain = mismatch(encrypted_one);
    assert_eq!(to_plain, Mismatch { made: Kind::LvmCrypt, differs: [Difference::ToBePlain].into() });
    // Its node was removed from the list: nothing is declared for it.
    let off_the_list = |w: &mut World| w.seen.kube.declaration.storage.all_nodes = false;
    assert_eq!(class_of(&World::new().with(encrypted_one).with(off_the_list), RAW), Class::Conforming);
    let both = mismatch(|w| {
        w.seen.kube.declaration.storage = encrypted();
        w.seen.kube.declaration.store = ObjectStore("bluestore-rdr".to_owned());
    });
    assert_eq!(both.differs.len(), 2);
    assert!(both.to_string().contains("store bluestore, declared bluestore-rdr"), "{both}");
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
        assert!(matches!(&class, Class::Mismatched(m) if m.made == Kind::RawCrypt), "{class:?}");
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
fn encrypted_osd_needs_a_whole_disk() {
    let to_be_encrypted = |w: &mut World| w.seen.kube.declaration.storage = encrypted();
    assert_eq!(class_of(&World::new().with(to_be_encrypted), BY_HAND), Class::Legacy(Kind::BluestoreByHand));
    let both = |w: &mut World| {
        to_be_encrypted(w);
        in_directory(w);
    };
    assert_eq!(class_of(&World::new().with(both), FILESTORE), Class::Legacy(Kind::FilestoreDirectory));
    let mut on_partition = evidence(BY_HAND);
    on_partition.device.wwn = Some("partuuid-4f3b6a1e-0000-4000-8000-000000000001".to_owned());
    let raw = Layout { store: ObjectStore::bluestore(), mode: MODE, encrypted: false };
    let volume = Layout { mode: Mode::Lvm, encrypted: true, ..raw.clone() };
    assert!(classify::excludes(&on_partition, &volume).unwrap().contains("on a partition"));
    assert_eq!(classify::excludes(&on_partition, &raw), None);
}

fn database(device: &str) -> impl Fn(&mut World) {
    let device = device.to_owned();
    move |w| w.seen.kube.declaration.storage.config.metadata_device = Some(device.clone())
}

#[test]
fn database_declared_elsewhere_is_added_if_the_osd_has_none() {
    let wants = |world: &World, osd| classify::database_of(osd, &world.seen).map(|asked| asked.device);
    let declared = World::new().with(database("nvme0n1"));
    let mismatch =
        Mismatch { made: Kind::Raw, differs: [Difference::DatabaseElsewhere("nvme0n1".to_owned())].into() };
    assert!(mismatch.to_string().contains("declared on nvme0n1"), "{mismatch}");
    assert_eq!(class_of(&declared, RAW), Class::Mismatched(mismatch));
    assert_eq!(class_of(&declared, BY_HAND), Class::Legacy(Kind::BluestoreByHand));
    let target = classify::target_of(BY_HAND, &declared.seen).unwrap();
    assert_eq!((target.mode, target.encrypted), (Mode::Lvm, false));
    assert_eq!(wants(&declared, BY_HAND).as_deref(), Some("nvme0n1"));
    assert_eq!(wants(&World::new(), BY_HAND), None);
    // The location and size of a database are not checked if the OSD has one elsewhere.
    let has_one = |w: &mut World| w.slot(RAW).metadata.as_mut().unwrap().dedicated_db = true;
    assert_eq!(class_of(&World::new().with(database("nvme0n1")).with(has_one), RAW), Class::Conforming);
    // Nor is a database removed that is no longer declared.
    assert_eq!(class_of(&World::new().with(has_one), RAW), Class::Conforming);
    // A database on a volume gets a volume there again when the OSD is recreated for another reason. A
    // database on a raw device or a partition is recreated on the declared device.
    let encrypted = |w: &mut World| {
        w.seen.kube.declaration.storage = encrypted();
        database("nvme0n1")(w);
        has_one(w);
    };
    let on_raw = World::new().with(encrypted);
    assert_eq!(wants(&on_raw, RAW).as_deref(), Some("nvme0n1"));
    let on_lvm = World::new().with(encrypted).with(|w| {
        w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
        w.daemon(RAW).mode = Some(Mode::Lvm);
    });
    assert_eq!((class_of(&on_lvm, RAW).migrates(), wants(&on_lvm, RAW)), (Some(Kind::Lvm), None));
}

#[test]
fn database_elsewhere_needs_a_whole_disk_and_rooks_support() {
    let on_partition = |w: &mut World| {
        database("nvme0n1")(w);
        w.slot(RAW).metadata.as_mut().unwrap().on_partition = true;
    };
    assert!(not_built(RAW, on_partition).contains("a raw OSD on a partition"));
    assert!(
        class_of(&World::new().with(on_partition), FILESTORE).migrates().is_some(),
        "its whole disk is recreated"
    );
    let plain_device_of_encrypted_node = |w: &mut World| {
        w.seen.kube.declaration.storage = encrypted();
        database("nvme0n1")(w);
        let config = DeviceConfig { encrypted: Some(false), ..DeviceConfig::default() };
        let name = w.slot(BY_HAND).metadata.as_ref().unwrap().devices[0].clone();
        w.seen.kube.declaration.storage.selection.devices = vec![NamedDevice { name, config }];
    };
    assert!(not_built(BY_HAND, plain_device_of_encrypted_node).contains("Rook could not start"));
}

fn on_volume(alone: bool) -> Proof {
    let Proof::BluestoreLabel { osd_fsid, whoami, cluster, .. } = evidence(BY_HAND).proof else { panic!() };
    Proof::Volume {
        made: Kind::BluestoreByHand,
        group: "G".to_owned(),
        volume: "V".to_owned(),
        name: "both/data-0".to_owned(),
        alone,
        luks: None,
        osd_fsid,
        whoami,
        cluster,
    }
}

/// Checks a shared disk: the declared layout is impossible on a disk that other OSDs need, but not on a
/// volume of it.
#[test]
fn osd_that_shares_its_disk_is_recreated_only_on_a_volume() {
    let raw = Layout { store: ObjectStore::bluestore(), mode: MODE, encrypted: false };
    let volume = Layout { mode: Mode::Lvm, encrypted: true, ..raw.clone() };
    let with = |alone| Evidence { proof: on_volume(alone), ..evidence(BY_HAND) };
    assert!(
        classify::excludes(&with(false), &raw)
            .unwrap()
            .contains("both/data-0 shares its disk or volume group")
    );
    assert_eq!(classify::excludes(&with(false), &volume), None);
    assert_eq!(
        (classify::excludes(&with(true), &raw), classify::excludes(&evidence(BY_HAND), &raw)),
        (None, None)
    );
    let world = World::recorded(BY_HAND).report_with(BY_HAND, |r| {
        r.inspection.as_mut().unwrap().evidence.as_mut().unwrap().proof = on_volume(false);
    });
    let Next::Save { ledger, .. } = world.plan() else { panic!("{:?}", world.plan()) };
    assert!(
        ledger.records[&BY_HAND].quarantine.as_ref().unwrap().why.contains("shares its disk or volume group")
    );
}

#[test]
fn db_and_wal_on_volumes_are_recreated_only_on_volumes() {
    let at = |role, place| Piece { role, place };
    let volume = || PieceLocation::Volume {
        name: "g/d".to_owned(),
        uuid: "d".to_owned(),
        group: "G".to_owned(),
        size_bytes: 1,
    };
    let mut evidence = evidence(BY_HAND);
    let partition = PieceLocation::Device(evidence.device.clone());
    evidence.auxiliary = vec![at(Role::Db, volume()), at(Role::Wal, partition), at(Role::Journal, volume())];
    let raw = Layout { store: ObjectStore::bluestore(), mode: MODE, encrypted: false };
    let lvm = Layout { mode: Mode::Lvm, encrypted: true, ..raw.clone() };
    let again = |target| [Role::Db, Role::Wal, Role::Journal].map(|role| evidence.has_again(role, target));
    assert_eq!(again(&lvm), [true, false, false]);
    assert_eq!(again(&raw), [false; 3]);
}

#[test]
fn unsupported_sources_and_targets_are_named() {
    assert!(not_built(BY_HAND, |w| w.daemon(BY_HAND).pvc_backed = true).contains("PersistentVolumeClaim"));
    let config =
        |w: &mut World, change: fn(&mut DeviceConfig)| change(&mut w.seen.kube.declaration.storage.config);
    assert!(not_built(RAW, |w| config(w, |c| c.osds_per_device = Some(2))).contains("osdsPerDevice"));
    assert!(
        not_built(RAW, |w| config(w, |c| c.unreadable = vec!["x is no number".to_owned()])).contains("x is")
    );
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

#[test]
fn target_is_raw_of_the_declared_store() {
    let target = classify::target_of(BY_HAND, &World::new().seen);
    assert_eq!(target, Some(Layout { store: ObjectStore::bluestore(), mode: MODE, encrypted: false }));
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
            made: Kind::Raw,
            differs: [Difference::ToBeEncrypted, Difference::ToBePlain].into(),
        }),
    ];
    for class in refusals.into_iter().map(Class::Refused).chain(classes) {
        assert!(class.to_string().len() > 8, "{class:?}");
        let text = serde_json::to_string(&class).unwrap();
        assert_eq!(serde_json::from_str::<Class>(&text).unwrap(), class);
    }
}
