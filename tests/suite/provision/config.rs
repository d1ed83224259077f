//! The layout of new OSDs, and layouts that are impossible.

use osd_migrate::domain::osd::{Layout, Mode, ObjectStore, Weight};
use osd_migrate::domain::storage::DeviceConfig;

use super::*;
use crate::support::check;

fn sized(size: u64) -> DeviceConfig {
    DeviceConfig { database_size_mb: Some(size), ..DeviceConfig::default() }
}

fn encrypted(yes: bool) -> DeviceConfig {
    DeviceConfig { encrypted: Some(yes), ..DeviceConfig::default() }
}

fn class(class: &str) -> DeviceConfig {
    DeviceConfig { device_class: Some(class.to_owned()), ..DeviceConfig::default() }
}

/// Returns `sdb` named by `h1`, with a config on each level.
fn levels(cluster: DeviceConfig, node: DeviceConfig, device: DeviceConfig) -> Case {
    Case::named(
        devices(&["sdb"]),
        DeviceSelection::default(),
        &[free("sdb"), free("nvme0n1"), free("nvme1n1")],
    )
    .with(|case| {
        case.storage().config = cluster;
        case.storage().nodes[0].config = node;
        case.storage().nodes[0].selection.devices[0].config = device;
    })
}

fn none() -> DeviceConfig {
    DeviceConfig::default()
}

#[test]
fn osd_config_of_device_precedes_node_and_node_the_cluster() {
    let class_of = |case: Case| case.only().device_class;
    assert_eq!(class_of(levels(class("a"), none(), none())).as_deref(), Some("a"));
    assert_eq!(class_of(levels(class("a"), class("b"), none())).as_deref(), Some("b"));
    assert_eq!(class_of(levels(class("a"), class("b"), class("c"))).as_deref(), Some("c"));
    assert_eq!(class_of(levels(none(), none(), none())), None);

    let encryption = |case: Case| case.only().layout.encrypted;
    assert!(encryption(levels(encrypted(true), none(), none())));
    assert!(!encryption(levels(encrypted(true), encrypted(false), none())));
    assert!(encryption(levels(encrypted(true), encrypted(false), encrypted(true))));

    let weight = |tib| DeviceConfig { initial_weight: Some(Weight::from_decimal(tib)), ..none() };
    let weight_of = |case: Case| case.only().initial_weight;
    assert_eq!(weight_of(levels(weight(1.0), none(), none())), Some(Weight::ONE));
    assert_eq!(weight_of(levels(weight(1.0), weight(2.0), none())), Some(Weight::from_decimal(2.0)));
    assert_eq!(weight_of(levels(weight(1.0), weight(2.0), weight(0.5))), Some(Weight::from_decimal(0.5)));

    let db_of = |case: Case| case.only().db.map(|db| (db.identity.stable_name(), db.size_mib));
    let nvme = |n: u32, size| Some((format!("/dev/disk/by-id/ata-nvme{n}n1"), size));
    assert_eq!(db_of(levels(metadata("nvme0n1"), none(), none())), nvme(0, None));
    assert_eq!(db_of(levels(metadata("nvme0n1"), metadata("/dev/nvme1n1"), none())), nvme(1, None));
    let by_link = metadata("/dev/disk/by-id/ata-nvme1n1");
    assert_eq!(db_of(levels(metadata("nvme0n1"), sized(2048), by_link)), nvme(1, Some(2048)));
    assert_eq!(db_of(levels(sized(1024), metadata("nvme0n1"), sized(4096))), nvme(0, Some(4096)));

    let count = |count| DeviceConfig { osds_per_device: Some(count), ..none() };
    assert_eq!(levels(count(2), count(1), none()).new_osds(), ["sdb"]);
    assert_eq!(levels(count(1), none(), count(2)).new_osds(), Vec::<String>::new());
}

#[test]
fn empty_config_value_resets_on_a_node_not_on_a_device() {
    assert_eq!(levels(metadata("nvme0n1"), metadata(""), none()).only().db, None);
    assert_eq!(levels(class("a"), class(""), none()).only().device_class, None);
    assert!(levels(metadata("nvme0n1"), none(), metadata("")).only().db.is_some());
    assert_eq!(levels(class("a"), none(), class("")).only().device_class.as_deref(), Some("a"));
    let size_of = |case: Case| case.only().db.unwrap().size_mib;
    let both = DeviceConfig { database_size_mb: Some(2048), ..metadata("nvme0n1") };
    assert_eq!(size_of(levels(both.clone(), sized(0), none())), None);
    assert_eq!(size_of(levels(both, none(), sized(0))), Some(2048));
}

#[test]
fn osd_layout_is_raw_only_if_rook_chooses_raw() {
    let layout = |mode, encrypted| Layout { store: ObjectStore::bluestore(), mode, encrypted };
    let of = |config| levels(config, none(), none()).only().layout;
    assert_eq!(of(none()), layout(Mode::Raw, false));
    assert_eq!(of(encrypted(true)), layout(Mode::Lvm, true));
    assert_eq!(of(metadata("nvme0n1")), layout(Mode::Lvm, false));
    assert_eq!(of(DeviceConfig { encrypted: Some(true), ..metadata("nvme0n1") }), layout(Mode::Lvm, true));
    // Sizes do not change the layout.
    assert_eq!(of(sized(1024)), layout(Mode::Raw, false));
}

#[test]
fn osd_config_that_is_unsupported_is_rejected_and_reported_once() {
    let disks = [free("sdb"), free("sdc")];
    let changes: [(Change<'_>, &str); 7] = [
        (&|case| case.storage().config.osds_per_device = Some(2), "osdsPerDevice is 2"),
        (
            &|case| case.seen.kube.declaration.store = ObjectStore("bluestore-rdr".to_owned()),
            "the declared store is bluestore-rdr",
        ),
        (&|case| case.storage().config.unreadable = vec!["x is `y`".to_owned()], "x is `y`"),
        (&|case| case.inventory.capability.raw_osd_id = false, "ceph-volume of ceph version 16.2.15"),
        (
            &|case| {
                let can = &mut case.inventory.capability;
                (can.raw_osd_id, can.tool_trouble) = (false, Some("killed".to_owned()));
            },
            "ceph-volume did not say on its node what it can do: killed",
        ),
        (
            &|case| case.inventory.capability.missing_tools = set(&["sgdisk"]),
            "the image of its node is missing sgdisk",
        ),
        (
            &|case| {
                case.storage().config.device_class = Some("hdd".to_owned());
                case.node().labels.insert("osd.rook.io/device-class".to_owned(), "ssd".to_owned());
            },
            "deviceClass is hdd and the label osd.rook.io/device-class of its node is ssd",
        ),
    ];
    for (change, why) in changes {
        let case = Case::of(all(), &disks).with(change);
        assert_eq!(case.new_osds(), Vec::<String>::new(), "{why}");
        let expected = format!("sdb, sdc cannot become an OSD: {why}");
        check!(&case.problems()[..], [only] if only.starts_with(&expected));
        check!(case.verdict("sdb"), Verdict::Rejected(_));
        // The problem is not reported if no disk would become an OSD.
        assert_eq!(Case::of(filter("none"), &disks).with(change).problems(), Vec::<String>::new(), "{why}");
    }
}

#[test]
fn osd_config_that_is_unreadable_is_reported_on_every_level() {
    let unreadable = || DeviceConfig { unreadable: vec!["x is `y`".to_owned()], ..none() };
    for case in [
        levels(unreadable(), none(), none()),
        levels(none(), unreadable(), none()),
        levels(none(), none(), unreadable()),
    ] {
        assert_eq!(case.problems(), ["sdb cannot become an OSD: x is `y`"]);
    }
}

#[test]
fn partition_is_rejected_for_encryption_or_a_metadata_device() {
    let part = |config: DeviceConfig| {
        Case::of(filter("^sda1$"), &[free_partition("sda1", "sda"), free("nvme0n1")])
            .with(|case| case.storage().config = config)
    };
    assert_eq!(part(none()).only().layout.mode, Mode::Raw);
    assert_eq!(
        part(encrypted(true)).problems(),
        ["sda1 cannot become an OSD: a partition cannot be encrypted (encryptedDevice)"]
    );
    assert_eq!(
        part(metadata("nvme0n1")).problems(),
        ["sda1 cannot become an OSD: a partition cannot have a metadataDevice"]
    );
}

#[test]
fn plain_osd_with_db_is_rejected_if_rook_expects_encryption() {
    let plain_on_encrypted =
        levels(none(), DeviceConfig { encrypted: Some(true), ..metadata("nvme0n1") }, encrypted(false));
    check!(&plain_on_encrypted.problems()[..], [only] if only.contains("Rook could not start the OSD"));
    assert_eq!(levels(none(), encrypted(true), encrypted(false)).only().layout.mode, Mode::Raw);
}

#[test]
fn device_class_label_of_a_node_applies_if_nothing_else_does() {
    let label = |case: &mut Case| {
        case.node().labels.insert("osd.rook.io/device-class".to_owned(), "nvme".to_owned());
    };
    assert_eq!(levels(none(), none(), none()).with(label).only().device_class.as_deref(), Some("nvme"));
    // A device's own class is no conflict: it has precedence.
    assert_eq!(levels(none(), none(), class("c")).with(label).only().device_class.as_deref(), Some("c"));
}

#[test]
fn db_and_wal_sizes_without_effect_are_reported_for_new_osds() {
    let wal = DeviceConfig { wal_size_mb: Some(576), ..sized(1024) };
    let case = levels(none(), none(), wal.clone());
    assert_eq!(case.new_osds(), ["sdb"]);
    check!(&case.problems()[..], [first, second]
        if first.starts_with("databaseSizeMB 1024 has no effect without a metadataDevice")
            && second.starts_with("walSizeMB 576 has no effect"));
    let with_db = levels(metadata("nvme0n1"), none(), wal.clone());
    check!(&with_db.problems()[..], [only] if only.starts_with("walSizeMB 576"));
    let nothing_new =
        levels(wal, none(), none()).with(|case| case.inventory.disks = vec![ours("sdb", OsdId(1))]);
    assert_eq!(nothing_new.problems(), Vec::<String>::new());
}
