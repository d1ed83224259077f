//! The disks that are selected, and those of them that are available.

use osd_migrate::domain::inspection::RecordId;
use osd_migrate::domain::inventory::{DiskState, Rejection};
use osd_migrate::domain::osd::{Mode, NodeName, OsdId};
use osd_migrate::domain::provision::{self, FILE, Verdict};
use osd_migrate::domain::storage::DeviceSelection;

use super::*;
use crate::support::check;

/// Returns two disks, a partitioned one, and its blank partition.
fn shelf() -> Vec<DiskSeen> {
    vec![
        rejected("sda", Rejection::Partitioned { count: 1 }),
        free_partition("sda1", "sda"),
        free("sdb"),
        free("sdc"),
    ]
}

#[test]
fn device_selections_mean_the_same_as_in_rook() {
    for (selection, expected) in [
        (DeviceSelection::default(), vec![]),
        (DeviceSelection { all: Some(false), ..DeviceSelection::default() }, vec![]),
        // Partitions count like disks.
        (all(), vec!["sda1", "sdb", "sdc"]),
        // The text that Rook passes on for useAllDevices.
        (filter("all"), vec!["sda1", "sdb", "sdc"]),
        // A pattern is searched for anywhere in the name, not matched with the whole of it.
        (filter("^sd[ab]"), vec!["sda1", "sdb"]),
        (filter("^sda$"), vec![]),
        (filter("b"), vec!["sdb"]),
        // A filter takes kernel names, not paths.
        (filter("by-id"), vec![]),
        (filter("/dev/sdb"), vec![]),
        // A path filter takes paths: every link, and the device's own.
        (path_filter("^/dev/disk/by-path/pci-sdc$"), vec!["sdc"]),
        (path_filter("^/dev/disk/by-id/ata-sd[bc]"), vec!["sdb", "sdc"]),
        (path_filter("^/dev/sdb$"), vec!["sdb"]),
        (path_filter("^sdb"), vec![]),
        // A device is named by kernel name, by path, or by any link in full.
        (devices(&["sdb"]), vec!["sdb"]),
        (devices(&["/dev/sdb"]), vec!["sdb"]),
        (devices(&["/dev/disk/by-id/ata-sdb", "/dev/disk/by-path/pci-sdc"]), vec!["sdb", "sdc"]),
        (devices(&["sda1"]), vec!["sda1"]),
        // A name is no pattern.
        (devices(&["sd."]), vec![]),
        (devices(&["sd"]), vec![]),
        (devices(&["disk/by-id/ata-sdb"]), vec![]),
        // An empty text is no filter.
        (DeviceSelection { filter: Some(String::new()), ..all() }, vec!["sda1", "sdb", "sdc"]),
        (DeviceSelection { path_filter: Some(String::new()), ..all() }, vec!["sda1", "sdb", "sdc"]),
    ] {
        assert_eq!(Case::of(selection.clone(), &shelf()).new_osds(), expected, "{selection:?}");
    }
}

#[test]
fn devices_precede_filters_and_filters_precede_all_devices() {
    let everything = DeviceSelection {
        filter: Some("sdb".to_owned()),
        path_filter: Some("pci-sdc".to_owned()),
        all: Some(true),
        ..devices(&["sda1"])
    };
    let without_devices = DeviceSelection { devices: Vec::new(), ..everything.clone() };
    let without_filter = DeviceSelection { filter: None, ..without_devices.clone() };
    let without_paths = DeviceSelection { path_filter: None, ..without_filter.clone() };
    for (selection, expected) in [
        (everything, vec!["sda1"]),
        (without_devices, vec!["sdb"]),
        (without_filter, vec!["sdc"]),
        (without_paths, vec!["sda1", "sdb", "sdc"]),
    ] {
        assert_eq!(Case::of(selection.clone(), &shelf()).new_osds(), expected, "{selection:?}");
    }
}

#[test]
fn selection_field_that_a_node_does_not_set_is_the_clusters() {
    for (own, cluster, expected) in [
        (filter("sdb"), all(), vec!["sdb"]),
        (DeviceSelection::default(), filter("sdc"), vec!["sdc"]),
        (devices(&["sdb"]), devices(&["sdc"]), vec!["sdb"]),
        (filter("sdb"), filter("sdc"), vec!["sdb"]),
        (path_filter("pci-sdb"), path_filter("pci-sdc"), vec!["sdb"]),
        (DeviceSelection { all: Some(false), ..DeviceSelection::default() }, all(), vec![]),
        (
            all(),
            DeviceSelection { all: Some(false), ..DeviceSelection::default() },
            vec!["sda1", "sdb", "sdc"],
        ),
        // Field by field, not the whole selection: the cluster's filter takes precedence over the node's
        // useAllDevices.
        (all(), filter("sdc"), vec!["sdc"]),
        (filter("sdb"), devices(&["sdc"]), vec!["sdc"]),
    ] {
        let case = Case::named(own.clone(), cluster.clone(), &shelf());
        assert_eq!(case.new_osds(), expected, "{own:?} {cluster:?}");
    }
}

#[test]
fn selection_field_without_effect_is_reported() {
    let case = Case::named(filter("sdb"), devices(&["sdc"]), &shelf());
    assert_eq!(
        case.problems(),
        ["spec.storage.nodes[h1].deviceFilter has no effect: devices is set too, and Rook uses devices"]
    );
    let all_with_filter = Case::named(all(), filter("sdc"), &shelf());
    assert_eq!(
        all_with_filter.problems(),
        [
            "spec.storage.nodes[h1].useAllDevices has no effect: deviceFilter is set too, and Rook uses deviceFilter"
        ]
    );
    assert_eq!(Case::named(filter("sdb"), all(), &shelf()).problems(), Vec::<String>::new());
}

#[test]
fn named_nodes_have_no_effect_with_use_all_nodes() {
    let case = Case::of(filter("sdb"), &shelf()).with(|case| {
        case.storage().nodes = vec![entry("h1", devices(&["sdc"])), entry("h2", devices(&["sdd"]))];
    });
    assert_eq!(case.new_osds(), ["sdb"]);
    check!(&case.problems()[..], [only] if only.starts_with("spec.storage.nodes[h1] has no effect: useAllNodes is true"));
    // An entry with only a name has nothing that could be lost.
    let bare = case.with(|case| case.storage().nodes = vec![entry("h1", DeviceSelection::default())]);
    assert_eq!(bare.problems(), Vec::<String>::new());
}

#[test]
fn node_that_is_not_named_gets_no_osd() {
    let case = Case::of(all(), &shelf()).with(|case| {
        case.storage().all_nodes = false;
        case.storage().nodes = vec![entry("h2", DeviceSelection::default())];
    });
    assert_eq!(case.new_osds(), Vec::<String>::new());
    check!(case.verdict("sdb"), Verdict::NotSelected);
}

#[test]
fn node_is_matched_by_hostname_or_name_and_first_entry_counts() {
    let case = Case::named(filter("sdb"), DeviceSelection::default(), &shelf());
    let by_hostname = case.clone().with(|case| {
        case.node().hostname = "short".to_owned();
        case.storage().nodes = vec![entry("short", filter("sdc")), entry("h1", filter("sdb"))];
    });
    assert_eq!(by_hostname.new_osds(), ["sdc"]);
    let by_name = case.with(|case| case.node().hostname = "short".to_owned());
    assert_eq!(by_name.new_osds(), ["sdb"]);
}

#[test]
fn device_filter_that_is_invalid_selects_nothing_as_reported() {
    for (selection, what) in
        [(filter("sd["), "deviceFilter `sd[`"), (path_filter("("), "devicePathFilter `(`")]
    {
        let case = Case::of(selection, &shelf());
        assert_eq!(case.new_osds(), Vec::<String>::new());
        check!(&case.problems()[..], [only] if only.starts_with(&format!("{what} is not a valid regular expression")));
    }
}

#[test]
fn named_device_missing_or_in_use_is_reported_and_holds_up_none() {
    let disks = [free("sdb"), mounted("sdc")];
    let case = Case::of(devices(&["sdb", "sdc", "sdx", "/dev/disk/by-id/ata-sdy"]), &disks);
    assert_eq!(case.new_osds(), ["sdb"]);
    assert_eq!(
        case.problems(),
        [
            "sdx is named in devices, but was not found",
            "/dev/disk/by-id/ata-sdy is named in devices, but was not found",
            "sdc cannot become an OSD: mounted at /srv",
        ]
    );
    check!(case.verdict("sdc"), Verdict::Rejected(why) if why == "mounted at /srv");
    let by_link = Case::of(devices(&["/dev/disk/by-id/ata-sdc"]), &disks);
    assert_eq!(by_link.problems(), ["/dev/disk/by-id/ata-sdc (sdc) cannot become an OSD: mounted at /srv"]);
    let nameless = Case::of(devices(&[""]), &disks);
    assert_eq!(nameless.problems(), ["an entry of devices has neither name nor fullpath"]);
}

#[test]
fn named_device_of_this_cluster_is_never_a_problem() {
    let case = Case::of(devices(&["sdb"]), &[ours("sdb", OsdId(3))]);
    assert_eq!(case.problems(), Vec::<String>::new());
    check!(case.verdict("sdb"), Verdict::Ours { osd: Some(OsdId(3)), .. });
    // Whether or not it is selected; its id is looked up in the list of OSDs.
    let unasked = Case::of(DeviceSelection::default(), &[ours("sdb", OsdId(3))]).with(|case| {
        case.inventory.disks[0].state = DiskState::Ours { fsid: fsid(OsdId(3)), osd: None };
        case.inventory.osds = vec![listed(OsdId(2), None), listed(OsdId(3), None)];
    });
    check!(unasked.verdict("sdb"), Verdict::Ours { osd: Some(OsdId(3)), .. });
}

#[test]
fn filtered_disk_in_use_is_rejected_without_a_problem() {
    for why in [
        Rejection::ReadOnly,
        Rejection::TooSmall { bytes: GIB },
        Rejection::InUse { by: vec!["dm-0".to_owned()] },
        Rejection::ForeignCeph { cluster: None },
        Rejection::Lvm,
        Rejection::Luks,
        Rejection::Signature { kind: "ext4".to_owned() },
        Rejection::Data { what: "first MiB".to_owned() },
        Rejection::NoStableName,
    ] {
        let case = Case::of(all(), &[rejected("sdb", why.clone()), free("sdc")]);
        assert_eq!(case.new_osds(), ["sdc"], "{why:?}");
        assert_eq!(case.problems(), Vec::<String>::new(), "{why:?}");
        check!(case.verdict("sdb"), Verdict::Rejected(text) if *text == why.to_string());
        // A disk that is not selected is not judged.
        check!(Case::of(filter("sdc"), &[rejected("sdb", why)]).verdict("sdb"), Verdict::NotSelected);
    }
}

#[test]
fn rbd_device_is_never_an_available_disk() {
    let case = Case::of(all(), &[free("rbd0"), free("rbd1p1"), free("rbdisk")]);
    assert_eq!(case.new_osds(), ["rbdisk"]);
    check!(case.verdict("rbd0"), Verdict::Rejected(_));
    check!(&Case::of(devices(&["rbd0"]), &[free("rbd0")]).problems()[..], [_]);
}

#[test]
fn disk_with_a_tombstone_is_available_and_retains_its_record() {
    let state = DiskState::Tombstone {
        osd: OsdId(4),
        old: fsid(OsdId(4)),
        record: RecordId("r-1".to_owned()),
        signature: None,
    };
    let case = Case::of(filter("sdb"), &[DiskSeen { state: state.clone(), ..free("sdb") }]);
    assert_eq!(case.only().tombstone, Some((OsdId(4), fsid(OsdId(4)), RecordId("r-1".to_owned()))));
    let unasked = Case::of(filter("sdc"), &[DiskSeen { state, ..free("sdb") }, free("sdc")]);
    assert_eq!(unasked.only().tombstone, None);
}

#[test]
fn disks_with_a_common_identity_are_all_rejected() {
    let same_wwn = DiskSeen {
        identity: DeviceIdentity { wwn: free("sdb").identity.wwn, ..free("sdc").identity },
        ..free("sdc")
    };
    let same_name = DiskSeen {
        identity: DeviceIdentity { wwn: free("sdc").identity.wwn, ..free("sdb").identity },
        ..free("sdc")
    };
    for other in [same_wwn, same_name] {
        let case = Case::of(all(), &[free("sdb"), other, free("sdd")]);
        assert_eq!(case.new_osds(), ["sdd"]);
        check!(&case.problems()[..], [only] if only.starts_with("sdb, sdc cannot become an OSD: several disks are"));
    }
}

#[test]
fn available_disk_has_its_stable_name_and_identity() {
    let available = Case::of(all(), &[free("sdb")]).only();
    assert_eq!(available.stable, "/dev/disk/by-id/ata-sdb");
    assert_eq!(available.device, free("sdb").identity);
    assert!(!available.on_file);
}

#[test]
fn osd_on_a_file_ignores_all_other_disks_and_settings() {
    let (node, no_databases) = (NodeName("h1".to_owned()), DatabasesAsked::new());
    let mut case = Case::of(devices(&["sdz"]), &[free("sdb"), free(FILE)]).with(|case| {
        case.storage().config = DeviceConfig { osds_per_device: Some(2), ..metadata("sdb") };
        case.inventory.capability.raw_osd_id = false;
    });
    let processed = provision::process(&node, &case.inventory, &no_databases, &case.seen, true);
    let available_disks = available_disks(&processed);
    assert_eq!(processed.problems, Vec::<String>::new());
    assert_eq!(available_disks.len(), 1);
    assert!(available_disks[0].on_file && available_disks[0].name == FILE && available_disks[0].db.is_none());
    assert_eq!(available_disks[0].layout.mode, Mode::Raw);

    case.inventory.disks = vec![ours(FILE, OsdId(1))];
    let processed = provision::process(&node, &case.inventory, &no_databases, &case.seen, true);
    check!(&processed.disks[0].1, Verdict::Ours { osd: Some(OsdId(1)), .. });

    case.inventory.disks = vec![rejected(FILE, Rejection::Data { what: "first MiB".to_owned() })];
    let processed = provision::process(&node, &case.inventory, &no_databases, &case.seen, true);
    check!(&processed.disks[0].1, Verdict::Rejected(_));
    check!(&processed.problems[..], [only] if only.starts_with("the file for its OSD cannot be used"));
}

#[test]
fn disk_verdict_has_a_code_and_a_sentence() {
    let case = Case::of(
        devices(&["sdb", "sdc", "sdd"]),
        &[free("sdb"), mounted("sdc"), ours("sdd", OsdId(3)), free("sde")],
    );
    let described: Vec<_> =
        case.process().disks.iter().map(|(_, verdict)| (verdict.code(), verdict.to_string())).collect();
    let expected = [
        ("New", "becomes an OSD, bluestore raw"),
        ("Rejected", "mounted at /srv"),
        ("Ours", "osd.3 of this cluster"),
        ("NotSelected", "not selected"),
    ];
    assert_eq!(described, expected.map(|(word, text)| (word, text.to_owned())));
}
