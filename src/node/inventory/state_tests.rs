use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::osd::ObjectStore;
use crate::node::disk::devices::Partition;
use crate::node::disk::tombstone::Tombstone;
use crate::node::samples::bare_disk;

fn cluster(n: u8) -> ClusterFsid {
    format!("10000000-0000-0000-0000-0000000000{n:02}").parse().unwrap()
}

fn fsid(n: u8) -> OsdFsid {
    format!("00000000-0000-0000-0000-0000000000{n:02}").parse().unwrap()
}

fn disk() -> Disk {
    bare_disk(&["ata-1"], MIN_BYTES)
}

fn facts(marks: Marks) -> Facts {
    Facts { disk: disk(), mounted: None, volume: None, marks: Ok(marks), label: None, filestore: None }
}

fn part() -> Partition {
    Partition { index: 1, name: "sdb1".into(), node: "/dev/sdb1".into(), start: 2048, sectors: 10 }
}

fn known() -> KnownOsds {
    KnownOsds { cluster: cluster(1), ours: [(fsid(7), Some(OsdId(7)))].into(), volumes: Vec::new() }
}

fn label(osd_fsid: OsdFsid, in_cluster: Option<u8>) -> Label {
    Label {
        osd_fsid,
        whoami: in_cluster.map(|_| OsdId(1)),
        cluster: in_cluster.map(cluster),
        finished: true,
        activatable: true,
        part: "main".into(),
    }
}

fn labelled(label: Label) -> Facts {
    Facts { label: Some(Ok(label)), ..facts(Marks::Label) }
}

fn kind(kind: &str) -> Marks {
    Marks::Signed(Signature { kind: Some(kind.to_owned()), ..Signature::default() })
}

fn gpt() -> Marks {
    Marks::Signed(Signature { table: Some("gpt".to_owned()), ..Signature::default() })
}

fn marked() -> Marks {
    Marks::Signed(Signature {
        table: Some("gpt".to_owned()),
        table_id: Some("6f73646d-6967-8000-8000-000000000005".to_owned()),
        ..Signature::default()
    })
}

fn stone(of: u8) -> Marks {
    let record = RecordId("r".into());
    let stone = Tombstone { cluster: cluster(of), osd: OsdId(3), old: fsid(3), record };
    Marks::Tombstone(stone, Signature::default())
}

fn why(facts: &Facts) -> String {
    match judge(facts, &known()) {
        DiskState::Rejected { why } => why.to_string(),
        state @ (DiskState::Available | DiskState::Tombstone { .. } | DiskState::Ours { .. }) => {
            format!("{state:?}")
        }
    }
}

#[test]
fn disk_is_available_only_if_blank_large_enough_and_named() {
    assert_eq!(judge(&facts(Marks::None), &known()), DiskState::Available);
    let mut small = facts(Marks::None);
    small.disk.identity.size_bytes -= 1;
    assert_eq!(why(&small), "too small: 5119 MiB, but ceph-volume needs at least 5 GB");
    let mut unnamed = facts(Marks::None);
    unnamed.disk.identity.by_id.clear();
    assert!(why(&unnamed).contains("no name under /dev/disk/by-id"));
    unnamed.disk.identity.by_path = ["pci-0000:00:04.0".to_owned()].into();
    assert_eq!(judge(&unnamed, &known()), DiskState::Available);
    let mut partition = facts(Marks::None);
    partition.disk.parent = Some("sdb".into());
    assert!(
        why(&partition).contains("no name"),
        "without its uuid in the table it can't be distinguished from another"
    );
    partition.disk.identity.wwn = Some("partuuid-1".into());
    assert_eq!(judge(&partition, &known()), DiskState::Available);
}

#[test]
fn disk_rejection_names_the_content_of_the_disk() {
    for (marks, text) in [
        (kind("ext4"), "a signature of ext4"),
        (kind("LVM2_member"), "a physical volume of LVM"),
        (kind("crypto_LUKS"), "a LUKS header"),
        (gpt(), "a signature of gpt (a partition table)"),
        (
            marked(),
            "a signature of gpt, an empty partition table with which osd-migrate marked the disk when it \
             removed osd.5 (6f73646d-6967-8000-8000-000000000005)",
        ),
        (
            Marks::Signed(Signature { ambivalent: true, ..Signature::default() }),
            "a signature of several kinds that contradict each other",
        ),
        (Marks::Data { first: true }, "data without a signature: in the first MiB"),
        (Marks::Data { first: false }, "data without a signature: in the last MiB"),
        (
            Marks::LabelCopy(1 << 30),
            "data without a signature: a copy of a BlueStore label at byte 1073741824, none at the start",
        ),
        (stone(2), "an OSD of another cluster, 10000000-0000-0000-0000-000000000002"),
        (Marks::Label, "an OSD of an unknown cluster"),
    ] {
        assert_eq!(why(&facts(marks)), text);
    }
    assert_eq!(
        why(&labelled(label(fsid(1), Some(2)))),
        "an OSD of another cluster, 10000000-0000-0000-0000-000000000002"
    );
    assert_eq!(why(&labelled(label(fsid(1), None))), "an OSD of an unknown cluster");
    let volume = Facts { volume: Some("pv1".into()), ..facts(Marks::None) };
    assert_eq!(why(&volume), "PersistentVolume pv1");
    let unreadable = Facts { marks: Err("I/O error".into()), ..facts(Marks::None) };
    assert_eq!(why(&unreadable), "cannot be read: I/O error");
    let bad_label = Facts { label: Some(Err("no JSON".into())), ..facts(Marks::Label) };
    assert_eq!(why(&bad_label), "cannot be read: no JSON");
}

#[test]
fn disk_rejection_names_its_use_before_its_content() {
    let mut all = facts(kind("ext4"));
    all.disk.read_only = true;
    all.disk.holders = vec!["dm-0".into()];
    all.mounted = Some("/data".into());
    all.disk.partitions = vec![part(), part()];
    assert_eq!(why(&all), "read-only");
    all.disk.read_only = false;
    assert_eq!(why(&all), "in use by dm-0");
    all.disk.holders.clear();
    assert_eq!(why(&all), "mounted at /data");
    all.mounted = None;
    assert_eq!(why(&all), "has 2 partitions");
    all.disk.partitions.clear();
    assert_eq!(why(&all), "a signature of ext4");
}

#[test]
fn disk_is_ours_if_it_names_our_cluster_or_a_known_osd() {
    let ours = |facts: &Facts, known: &KnownOsds| match judge(facts, known) {
        DiskState::Ours { fsid, osd } => Some((fsid, osd)),
        DiskState::Available | DiskState::Tombstone { .. } | DiskState::Rejected { .. } => None,
    };
    assert_eq!(ours(&labelled(label(fsid(1), Some(1))), &known()), Some((fsid(1), Some(OsdId(1)))));
    assert_eq!(
        ours(&labelled(label(fsid(7), None)), &known()),
        Some((fsid(7), Some(OsdId(7)))),
        "its db, or a mkfs cut short"
    );
    assert_eq!(
        ours(&labelled(label(fsid(7), Some(2))), &known()),
        None,
        "a label that names another cluster"
    );
    let mut busy = labelled(label(fsid(1), Some(1)));
    busy.disk.read_only = true;
    busy.mounted = Some("/x".into());
    assert!(ours(&busy, &known()).is_some());
    let filestore = |of| Facts { filestore: Some((fsid(2), OsdId(2), cluster(of))), ..facts(gpt()) };
    assert_eq!(ours(&filestore(1), &known()), Some((fsid(2), Some(OsdId(2)))));
    assert_eq!(ours(&filestore(2), &known()), None);
    let mut with_volume = known();
    with_volume.volumes.push(LvmOsd {
        fsid: fsid(4),
        osd: OsdId(4),
        cluster: cluster(1),
        store: ObjectStore::bluestore(),
        encrypted: false,
        block_path: None,
        db_path: None,
        wal_path: None,
        db_disk: None,
        finished: None,
        devices: ["/dev/sdb".into()].into(),
    });
    assert_eq!(ours(&facts(kind("LVM2_member")), &with_volume), Some((fsid(4), Some(OsdId(4)))));
    with_volume.volumes[0].cluster = cluster(2);
    assert_eq!(
        judge(&facts(kind("LVM2_member")), &with_volume),
        DiskState::Rejected { why: Rejection::ForeignCeph { cluster: Some(cluster(2)) } }
    );
}

#[test]
fn unfinished_physical_volume_is_ours_by_its_uuid() {
    let begun = |uuid: &str| {
        facts(Marks::Signed(Signature {
            kind: Some("LVM2_member".to_owned()),
            uuid: Some(uuid.to_owned()),
            ..Signature::default()
        }))
    };
    let ours = begun("000000-0000-0000-0000-0000-0000-000007");
    assert_eq!(judge(&ours, &known()), DiskState::Ours { fsid: fsid(7), osd: Some(OsdId(7)) });
    assert_eq!(why(&begun("000000-0000-0000-0000-0000-0000-000008")), "a physical volume of LVM");
}

#[test]
fn own_tombstone_is_recognised_unless_the_disk_is_in_use() {
    let mut left = facts(stone(1));
    left.disk.partitions = vec![part()];
    assert!(matches!(judge(&left, &known()), DiskState::Tombstone { osd: OsdId(3), .. }));
    left.mounted = Some("/data".into());
    assert_eq!(why(&left), "mounted at /data");
    let Marks::Tombstone(stone, _) = stone(1) else { panic!() };
    let member = Signature { kind: Some("linux_raid_member".to_owned()), ..Signature::default() };
    let judged = judge(&facts(Marks::Tombstone(stone, member)), &known());
    assert!(
        matches!(&judged, DiskState::Tombstone { signature: Some(name), .. } if name == "linux_raid_member"),
        "{judged:?}"
    );
}

#[test]
fn tombstoned_disk_that_nothing_names_is_rejected() {
    let mut left = facts(stone(1));
    left.disk.identity.by_id.clear();
    assert_eq!(why(&left), "no name under /dev/disk/by-id or by-path");
    left.disk.identity.by_path = ["pci-1".to_owned()].into();
    assert!(matches!(judge(&left, &known()), DiskState::Tombstone { .. }));
}

#[test]
fn available_disk_is_rejected_if_in_use_or_by_ceph_volume() {
    let none: Option<&Vec<String>> = None;
    let usb = vec!["id_bus".to_owned()];
    let locked = vec!["locked".to_owned()];
    let rejected = |state: DiskState| match state {
        DiskState::Rejected { why } => why.to_string(),
        state @ (DiskState::Available | DiskState::Tombstone { .. } | DiskState::Ours { .. }) => {
            format!("{state:?}")
        }
    };
    assert_eq!(at_last(DiskState::Available, "sdb", Ok(false), none), DiskState::Available);
    assert_eq!(at_last(DiskState::Available, "sdb", Ok(false), Some(&locked)), DiskState::Available);
    assert_eq!(
        rejected(at_last(DiskState::Available, "sdb", Ok(false), Some(&usb))),
        "ceph-volume rejects it: id_bus"
    );
    assert!(rejected(at_last(DiskState::Available, "sdb", Ok(true), none)).contains("exclusively"));
    assert!(rejected(at_last(DiskState::Available, "sdb", Err("gone".into()), none)).contains("gone"));
    let stone = judge(&facts(stone(1)), &known());
    assert_eq!(at_last(stone.clone(), "sdb", Ok(false), Some(&usb)), stone);
}

#[test]
fn partition_is_judged_together_with_its_disk() {
    let ours = DiskState::Ours { fsid: fsid(1), osd: None };
    let rejected = || DiskState::Rejected { why: Rejection::Partitioned { count: 1 } };
    let by_itself = of_partition(&facts(gpt()), &rejected(), DiskState::Available);
    assert_eq!(by_itself, DiskState::Available);
    // Partitions that the kernel derives from a BlueStore label.
    let phantom = of_partition(&labelled(label(fsid(1), Some(1))), &ours, DiskState::Available);
    assert_eq!(phantom, ours);
    let of_foreign = of_partition(&labelled(label(fsid(1), Some(2))), &rejected(), DiskState::Available);
    assert!(matches!(of_foreign, DiskState::Rejected { why: Rejection::Data { .. } }));
    assert_eq!(of_partition(&facts(gpt()), &ours, rejected()), ours, "the journal of a Filestore of ours");
    assert_eq!(of_partition(&facts(gpt()), &ours, DiskState::Available), DiskState::Available);
}
