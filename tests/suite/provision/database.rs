//! Tests of `metadataDevice`.

use osd_migrate::domain::inspection::RecordId;
use osd_migrate::domain::storage::{DeviceConfig, DeviceSelection};

use super::*;
use crate::support::check;

/// Returns a case in which all disks are selected and `nvme0n1`, of `mib` MiB, is their metadata device.
fn shared(disks: &[&str], mib: u64) -> Case {
    let mut seen: Vec<DiskSeen> = disks.iter().map(|name| free(name)).collect();
    let mut nvme = free("nvme0n1");
    nvme.identity.size_bytes = mib << 20;
    seen.push(nvme);
    Case::of(all(), &seen).with(|case| case.storage().config = metadata("nvme0n1"))
}

fn device(case: &mut Case) -> &mut DiskSeen {
    case.inventory.disks.iter_mut().find(|disk| disk.name == "nvme0n1").unwrap()
}

/// Puts the databases of osd.1 and osd.2 on the device.
fn with_databases(case: &mut Case) {
    device(case).state = DiskState::Ours { fsid: fsid(OsdId(1)), osd: Some(OsdId(1)) };
    case.inventory.osds =
        vec![listed(OsdId(1), Some("nvme0n1")), listed(OsdId(2), Some("nvme0n1")), listed(OsdId(3), None)];
}

fn sizes(case: &Case) -> Vec<(String, Option<u64>)> {
    let size = |available: &AvailableDisk| (available.name.clone(), available.db.clone().unwrap().size_mib);
    available_disks(&case.process()).iter().map(size).collect()
}

fn asks(osd: u32, size_mib: Option<u64>) -> (OsdId, DatabaseAsked) {
    (OsdId(osd), DatabaseAsked { device: "nvme0n1".to_owned(), size_mib })
}

fn given(case: &Case) -> Vec<(OsdId, Option<u64>)> {
    let databases = case.process().databases;
    databases.into_iter().map(|(osd, db)| (osd, db.unwrap().size_mib)).collect()
}

#[test]
fn database_device_is_shared_by_existing_and_new_osds() {
    let two_and_a_new_one = shared(&["sdb"], 9_001).with(|case| {
        case.asked = [asks(4, None), asks(5, None)].into();
    });
    assert_eq!(given(&two_and_a_new_one), [(OsdId(4), Some(3_000)), (OsdId(5), Some(3_000))]);
    assert_eq!(sizes(&two_and_a_new_one), [("sdb".to_owned(), Some(3_000))]);
    // The first disk has its database; the inventory is a new one.
    let after_the_first = two_and_a_new_one.with(|case| {
        device(case).state = DiskState::Rejected { why: Rejection::Lvm };
        case.inventory.osds = vec![listed(OsdId(4), Some("nvme0n1"))];
        case.asked = [asks(5, None)].into();
    });
    assert_eq!(given(&after_the_first), [(OsdId(5), Some(3_000))]);
    assert_eq!(sizes(&after_the_first), [("sdb".to_owned(), Some(3_000))]);
    // A declared size is given, whether or not the OSD is alone on the device.
    let declared = shared(&[], 9_001).with(|case| case.asked = [asks(4, Some(4_096))].into());
    assert_eq!(given(&declared), [(OsdId(4), Some(4_096))]);
    let alone = shared(&[], 9_001).with(|case| case.asked = [asks(4, None)].into());
    assert_eq!(given(&alone), [(OsdId(4), None)]);
}

#[test]
fn existing_osd_reports_why_its_database_is_not_possible() {
    let why = |case: &Case| case.process().databases[&OsdId(4)].clone().unwrap_err();
    let small = shared(&[], 2_000).with(|case| case.asked = [asks(4, Some(4_096))].into());
    assert_eq!(why(&small), "there is not enough space for its database on nvme0n1");
    let formatted = shared(&[], 9_001).with(|case| {
        case.asked = [asks(4, None)].into();
        device(case).state = DiskState::Rejected { why: Rejection::Signature { kind: "xfs".to_owned() } };
    });
    assert_eq!(why(&formatted), "its metadataDevice nvme0n1 cannot be used: a signature of xfs");
    assert_eq!(formatted.new_osds(), Vec::<String>::new(), "it is reserved for databases");
}

#[test]
fn metadata_device_never_becomes_an_osd() {
    for name in ["nvme0n1", "/dev/nvme0n1", "/dev/disk/by-id/ata-nvme0n1"] {
        let case = shared(&["sdb"], 10_000).with(|case| case.storage().config = metadata(name));
        assert_eq!(case.new_osds(), ["sdb"], "{name}");
        check!(case.verdict("nvme0n1"), Verdict::Rejected(why) if why.contains("reserved for the databases"));
        assert_eq!(case.problems(), Vec::<String>::new(), "{name}");
    }
    // Nor a partition of it, nor one that only one device names.
    let partition = free_partition("nvme0n1p1", "nvme0n1");
    let part = Case::of(devices(&["sdb", "nvme0n1p1"]), &[free("sdb"), free("nvme0n1"), partition])
        .with(|case| case.storage().selection.devices[0].config = metadata("nvme0n1"));
    assert_eq!(part.new_osds(), ["sdb"]);
    let of_a_device = Case::of(devices(&["sdb", "nvme0n1"]), &[free("sdb"), free("nvme0n1")])
        .with(|case| case.storage().selection.devices[0].config = metadata("nvme0n1"));
    assert_eq!(of_a_device.new_osds(), ["sdb"]);
    // Selected by name as well: the owner's declaration contradicts itself.
    check!(&of_a_device.problems()[..], [only] if only.starts_with("nvme0n1 cannot become an OSD: it is reserved"));
    // A metadata device of another level that is not in effect does not count.
    let taken_back =
        Case::named(all(), DeviceSelection::default(), &[free("sdb"), free("nvme0n1")]).with(|case| {
            case.storage().config = metadata("nvme0n1");
            case.storage().nodes[0].config = metadata("");
        });
    assert_eq!(taken_back.new_osds(), ["sdb", "nvme0n1"]);
}

#[test]
fn unavailable_metadata_device_is_reported_and_blocks_its_osds() {
    let tombstone = DiskState::Tombstone {
        osd: OsdId(7),
        old: fsid(OsdId(7)),
        record: RecordId("r-1".to_owned()),
        signature: None,
    };
    let ours = |osd| DiskState::Ours { fsid: fsid(OsdId(1)), osd };
    let cases: [(Change<'_>, &str); 6] = [
        (
            &|case| case.inventory.disks.retain(|disk| disk.name != "nvme0n1"),
            "its metadataDevice nvme0n1 was not found",
        ),
        (
            &|case| {
                device(case).state =
                    DiskState::Rejected { why: Rejection::Signature { kind: "xfs".to_owned() } }
            },
            "its metadataDevice nvme0n1 cannot be used: a signature of xfs",
        ),
        (
            &|case| device(case).state = DiskState::Rejected { why: Rejection::Lvm },
            "its metadataDevice nvme0n1 cannot be used: a physical volume of LVM",
        ),
        (
            &|case| device(case).state = tombstone.clone(),
            "its metadataDevice nvme0n1 cannot be used: it is reserved for osd.7",
        ),
        (
            &|case| device(case).state = ours(Some(OsdId(1))),
            "its metadataDevice nvme0n1 cannot be used: it carries osd.1 of this cluster, and no databases",
        ),
        (
            &|case| device(case).parent = Some("nvme0".to_owned()),
            "its metadataDevice nvme0n1 is a partition: only whole disks are supported",
        ),
    ];
    for (change, why) in cases {
        let case = shared(&["sdb", "sdc"], 10_000).with(change);
        assert_eq!(case.new_osds(), Vec::<String>::new(), "{why}");
        assert_eq!(case.problems(), [format!("sdb, sdc cannot become an OSD: {why}")]);
    }
}

#[test]
fn missing_metadata_device_blocks_only_osds_that_want_it() {
    let case = Case::of(devices(&["sdb", "sdc"]), &[free("sdb"), free("sdc")])
        .with(|case| case.storage().selection.devices[0].config = metadata("nvme9n1"));
    assert_eq!(case.new_osds(), ["sdc"]);
}

#[test]
fn metadata_device_with_databases_of_this_cluster_is_shared() {
    for state in [
        DiskState::Ours { fsid: fsid(OsdId(1)), osd: Some(OsdId(1)) },
        DiskState::Rejected { why: Rejection::Lvm },
        DiskState::Rejected { why: Rejection::InUse { by: vec!["dm-1".to_owned()] } },
        DiskState::Rejected { why: Rejection::CephVolume { why: vec!["LVM detected".to_owned()] } },
    ] {
        let case =
            shared(&["sdb"], 10_000).with(with_databases).with(|case| device(case).state = state.clone());
        assert_eq!(case.new_osds(), ["sdb"], "{state:?}");
        // They do not explain data of another kind.
        let foreign = case.with(|case| device(case).state = mounted("nvme0n1").state);
        assert_eq!(foreign.new_osds(), Vec::<String>::new());
    }
    let of_another_cluster = shared(&["sdb"], 10_000).with(with_databases).with(|case| {
        let other = osd_migrate::domain::osd::ClusterFsid::new(uuid::Uuid::from_u128(0xbad)).unwrap();
        case.inventory.osds.iter_mut().for_each(|osd| osd.cluster = other);
    });
    assert_eq!(of_another_cluster.new_osds(), Vec::<String>::new());
}

#[test]
fn metadata_device_with_a_volume_group_of_this_cluster_is_shared() {
    for state in [
        DiskState::Ours { fsid: fsid(OsdId(9)), osd: Some(OsdId(9)) },
        DiskState::Rejected { why: Rejection::Lvm },
        DiskState::Rejected { why: Rejection::InUse { by: vec!["dm-1".to_owned()] } },
    ] {
        let group = |free_mib| {
            shared(&["sdb", "sdc"], 10_001).with(|case| {
                device(case).state = state.clone();
                case.inventory.database_groups = [("nvme0n1".to_owned(), free_mib)].into();
            })
        };
        // An empty group, and one with the database of an OSD that is gone.
        for (free_mib, share) in [(10_000, 5_000), (6_002, 3_000)] {
            assert_eq!(sizes(&group(free_mib)), ["sdb", "sdc"].map(|name| (name.to_owned(), Some(share))));
        }
        let full = group(0);
        assert_eq!(full.new_osds(), [""; 0]);
        assert_eq!(
            full.problems(),
            ["sdb, sdc cannot become an OSD: there is not enough space for its database on nvme0n1"]
        );
        let unnamed = group(10_000).with(|case| {
            let identity = &mut device(case).identity;
            (identity.serial, identity.wwn) = (None, None);
            identity.by_id.clear();
        });
        assert_eq!(unnamed.new_osds(), [""; 0]);
    }
}

#[test]
fn database_size_is_left_to_ceph_volume_or_shared_evenly() {
    assert_eq!(sizes(&shared(&["sdb"], 10_001)), [("sdb".to_owned(), None)]);
    // 10001 MiB, one of them LVM's: 2500 extents of 4 MiB, a third of them each.
    let three = sizes(&shared(&["sdb", "sdc", "sdd"], 10_001));
    assert_eq!(three, ["sdb", "sdc", "sdd"].map(|name| (name.to_owned(), Some(3332))));
    // Without that one the last extent is not complete.
    let two = sizes(&shared(&["sdb", "sdc"], 10_000));
    assert_eq!(two, ["sdb", "sdc"].map(|name| (name.to_owned(), Some(4996))));
}

#[test]
fn database_share_is_unchanged_if_some_osds_exist() {
    // Created at once: four share 10000 MiB. Now two exist and two are left.
    let case = shared(&["sdb", "sdc"], 10_001).with(with_databases);
    assert_eq!(sizes(&case), ["sdb", "sdc"].map(|name| (name.to_owned(), Some(2500))));
    assert_eq!(sizes(&shared(&["sda", "sdb", "sdc", "sdd"], 10_001))[0].1, Some(2500));
    // The last of three is not alone.
    assert_eq!(sizes(&shared(&["sdb"], 10_001).with(with_databases)), [("sdb".to_owned(), Some(3332))]);
}

#[test]
fn declared_database_sizes_are_given_while_there_is_room() {
    let declared = |mib| {
        shared(&["sdb", "sdc", "sdd"], 10_001).with(|case| case.storage().config.database_size_mb = Some(mib))
    };
    assert_eq!(sizes(&declared(3332)).len(), 3);
    let too_much = declared(4000);
    assert_eq!(sizes(&too_much), ["sdb", "sdc"].map(|name| (name.to_owned(), Some(4000))));
    assert_eq!(
        too_much.problems(),
        ["sdd cannot become an OSD: there is not enough space for its database on nvme0n1"]
    );
    // It is not known here how much is left alongside existing databases.
    assert_eq!(sizes(&declared(4000).with(with_databases)).len(), 3);
}

#[test]
fn databases_without_a_size_share_what_the_others_leave() {
    let case =
        Case::of(devices(&["sdb", "sdc", "sdd"]), &shared(&["sdb", "sdc", "sdd"], 10_001).inventory.disks)
            .with(|case| {
                case.storage().config = metadata("nvme0n1");
                case.storage().selection.devices[1].config =
                    DeviceConfig { database_size_mb: Some(4000), ..DeviceConfig::default() };
            });
    let expected = [("sdb", 3000), ("sdc", 4000), ("sdd", 3000)];
    assert_eq!(sizes(&case), expected.map(|(name, size)| (name.to_owned(), Some(size))));
    let full = case.with(|case| case.storage().selection.devices[1].config.database_size_mb = Some(10_000));
    assert_eq!(full.new_osds(), ["sdc"]);
    check!(&full.problems()[..], [only] if only.starts_with("sdb, sdd cannot become an OSD: there is not enough space"));
}
