//! What is declared for an OSD: its layout, its encryption and the device of its database.

use osd_migrate::domain::classify::{self, Class, Difference, Mismatch, Refusal};
use osd_migrate::domain::gate::left_to_rooks_migration;
use osd_migrate::domain::inspection::{Evidence, Piece, PieceLocation, Proof};
use osd_migrate::domain::next::{Next, Saving};
use osd_migrate::domain::osd::{Kind, Layout, Mode, ObjectStore, OsdId, Role};
use osd_migrate::domain::storage::{DeviceConfig, NamedDevice, StorageNode};

use super::ask::{RAW, class_of, database, in_directory, not_built};
use crate::support::build::{BY_HAND, FILESTORE, MODE, World, encrypted, evidence, node_of};

#[test]
fn target_is_raw_of_the_declared_store() {
    let target = classify::target_of(BY_HAND, &World::new().seen);
    assert_eq!(target, Some(Layout { store: ObjectStore::bluestore(), mode: MODE, encrypted: false }));
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

/// Checks an operator with `ROOK_CUSTOM_HOSTNAME_LABEL`: the entry has the value of that label.
#[test]
fn osd_is_refused_while_an_entry_without_node_may_mean_its_node() {
    let entries = |names: &[&str]| {
        World::new().with(|w| {
            let entry = |name: &&str| StorageNode { name: (*name).to_owned(), ..StorageNode::default() };
            let storage = &mut w.seen.kube.declaration.storage;
            (storage.all_nodes, storage.nodes) = (false, names.iter().map(entry).collect());
        })
    };
    let node = node_of(RAW).0;
    let labelled = |w: &mut World| {
        let labels = &mut w.seen.kube.nodes.get_mut(&node_of(RAW)).unwrap().labels;
        labels.insert("example.com/host".to_owned(), "stor1".to_owned());
    };
    let refused = |names: &[&str]| class_of(&entries(names).with(labelled), RAW);
    let unclear = Refusal::NodeUnclear { node: node.clone(), entry: "stor1".to_owned() };
    assert_eq!(refused(&["stor1"]), Class::Refused(unclear));
    assert_eq!(refused(&["stor1", &node]), Class::Conforming, "an entry names it");
    assert_eq!(refused(&[&node_of(BY_HAND).0]), Class::Conforming, "all entries name nodes");
    // An entry for a node that was decommissioned names no node, and no label of this one.
    assert_eq!(refused(&["decommissioned"]), Class::Conforming);
    let all = entries(&["stor1"]).with(labelled).with(|w| w.seen.kube.declaration.storage.all_nodes = true);
    assert_eq!(class_of(&all, RAW), Class::Conforming);
    // Rook's own migration would still take an OSD with another store.
    let other_store = entries(&["stor1"]).with(labelled).with(|w| {
        w.seen.kube.declaration.store.0 = "bluestore-rdr".to_owned();
        w.seen.kube.declaration.confirmed = true;
    });
    assert!(left_to_rooks_migration(&other_store.seen).contains(&RAW));
}

/// Checks disks that are named by links, as Rook's documentation recommends.
#[test]
fn config_of_a_link_is_that_of_the_osd_with_its_id() {
    let named = |link: &str| {
        let config = DeviceConfig { encrypted: Some(true), ..DeviceConfig::default() };
        let devices = vec![NamedDevice { name: format!("/dev/disk/by-id/{link}"), config }];
        World::new().with(|w| {
            w.seen.kube.declaration.storage.selection.devices = devices;
            for (osd, slot) in &mut w.seen.ceph.slots {
                slot.metadata.as_mut().unwrap().stable_devices = vec![format!("MODEL_SERIAL{}", osd.0)];
            }
        })
    };
    let target = |world: &World, osd| classify::target_of(osd, &world.seen).map(|layout| layout.encrypted);
    let its = named(&format!("ata-MODEL_SERIAL{}", BY_HAND.0));
    assert_eq!((target(&its, BY_HAND), target(&its, FILESTORE)), (Some(true), Some(false)));
    // It is not known to which disk this leads.
    let unknown = named("wwn-0x5000c500a1b2c3d4");
    assert_eq!(target(&unknown, BY_HAND), None);
    let Class::Refused(why) = class_of(&unknown, BY_HAND) else { panic!() };
    assert!(why.to_string().contains("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"), "{why}");
    // Nor does it matter if the link asks for what the node has.
    let same = unknown.with(|w| w.seen.kube.declaration.storage.config.encrypted = Some(true));
    assert_eq!(target(&same, BY_HAND), Some(true));
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
    let expected = Mismatch { format: Kind::Raw, differs: [Difference::ToBeEncrypted].into() };
    assert_eq!(plain_to_encrypted, expected);
    let encrypted_one = |w: &mut World| {
        w.slot(RAW).metadata.as_mut().unwrap().device_mapper = true;
        w.daemon(RAW).mode = Some(Mode::Lvm);
        w.slot(RAW).dmcrypt_key = true;
    };
    let to_plain = mismatch(encrypted_one);
    assert_eq!(to_plain, Mismatch { format: Kind::LvmCrypt, differs: [Difference::ToBePlain].into() });
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

#[test]
fn database_declared_elsewhere_is_added_if_the_osd_has_none() {
    let wants = |world: &World, osd| classify::database_of(osd, &world.seen).map(|asked| asked.device);
    let declared = World::new().with(database("nvme0n1"));
    let mismatch =
        Mismatch { format: Kind::Raw, differs: [Difference::DatabaseElsewhere("nvme0n1".to_owned())].into() };
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
    volume_of(BY_HAND, Kind::BluestoreByHand, alone)
}

fn volume_of(osd: OsdId, format: Kind, alone: bool) -> Proof {
    let Proof::BluestoreLabel { osd_fsid, whoami, cluster, .. } = evidence(osd).proof else { panic!() };
    Proof::Volume {
        format,
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

fn volume() -> PieceLocation {
    PieceLocation::Volume {
        name: "g/d".to_owned(),
        uuid: "d".to_owned(),
        group: "G".to_owned(),
        size_bytes: 1,
        physical: None,
    }
}

#[test]
fn db_and_wal_on_volumes_are_recreated_only_on_volumes() {
    let at = |role, place| Piece { role, place };
    let mut evidence = evidence(BY_HAND);
    let partition = PieceLocation::Device(evidence.device.clone());
    evidence.auxiliary = vec![at(Role::Db, volume()), at(Role::Wal, partition), at(Role::Journal, volume())];
    let raw = Layout { store: ObjectStore::bluestore(), mode: MODE, encrypted: false };
    let lvm = Layout { mode: Mode::Lvm, encrypted: true, ..raw.clone() };
    let again = |target| [Role::Db, Role::Wal, Role::Journal].map(|role| evidence.has_again(role, target));
    assert_eq!(again(&lvm), [true, false, false]);
    assert_eq!(again(&raw), [false; 3]);
}

/// Returns a world in which the first inspection found an OSD on LVM that is to be encrypted, with its
/// database or log in another place.
fn inspected_on_lvm(role: Role, place: PieceLocation, change: impl FnOnce(&mut World)) -> World {
    let on_lvm = |w: &mut World| {
        w.seen.kube.declaration.storage = encrypted();
        let metadata = w.slot(RAW).metadata.as_mut().unwrap();
        (metadata.device_mapper, metadata.dedicated_db) = (true, true);
        w.daemon(RAW).mode = Some(Mode::Lvm);
        w.policy.select = [RAW].into();
    };
    World::new().with(on_lvm).with(change).saved("record").report_with(RAW, |report| {
        let evidence = report.inspection.as_mut().unwrap().evidence.as_mut().unwrap();
        evidence.proof = volume_of(RAW, Kind::Lvm, true);
        evidence.auxiliary = vec![Piece { role, place }];
    })
}

#[test]
fn db_on_a_partition_is_kept_if_a_metadata_device_is_declared() {
    let partition = || {
        let mut device = evidence(BY_HAND).device;
        device.wwn = Some("partuuid-4f3b6a1e-0000-4000-8000-000000000001".to_owned());
        PieceLocation::Device(device)
    };
    for role in [Role::Db, Role::Wal] {
        let refused = inspected_on_lvm(role, partition(), database("nvme0n1p1")).saved("quarantine");
        let why = &refused.ledger.records[&RAW].quarantine.as_ref().unwrap().why;
        let expected =
            format!("its {role} on /dev/disk/by-id/ata-disk-0 would be cleared and not created again");
        assert!(why.starts_with(&expected) && why.ends_with("--skip osd.5"), "{why}");
    }
    // A volume is created again. Without a metadataDevice, the database goes to the data.
    inspected_on_lvm(Role::Db, volume(), database("nvme0n1")).saved("proof");
    let proven = inspected_on_lvm(Role::Db, partition(), |_| {}).saved("proof");
    // One that is declared after the proof withdraws the record before the stop.
    proven.with(database("nvme0n1p1")).saved("withdrawn");
    let on_volume = inspected_on_lvm(Role::Db, volume(), |_| {}).saved("proof").with(database("nvme0n1"));
    assert!(!matches!(on_volume.plan(), Next::Save { why: Saving::Withdrawn, .. }));
}
