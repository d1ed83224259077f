use super::super::legacy::tests::entry;
use super::super::table::CEPH_DATA;
use super::*;
use crate::domain::inspection::{NodeTask, RecordId};
use crate::domain::osd::{ClusterFsid, Kind, Layout, Mode, NodeName, ObjectStore};
use crate::node::table::Entry;

fn fsid(n: u8) -> OsdFsid {
    format!("00000000-0000-0000-0000-0000000000{n:02}").parse().unwrap()
}

fn cluster(n: u8) -> ClusterFsid {
    format!("10000000-0000-0000-0000-0000000000{n:02}").parse().unwrap()
}

fn device() -> DeviceIdentity {
    DeviceIdentity {
        by_id: ["ata-1".to_owned()].into(),
        by_path: [].into(),
        serial: Some("S".into()),
        wwn: None,
        size_bytes: 1000,
    }
}

fn label(osd_fsid: OsdFsid) -> Proof {
    Proof::BluestoreLabel { osd_fsid, whoami: OsdId(1), cluster: cluster(1), activatable: false }
}

fn filestore() -> Proof {
    Proof::Partitions {
        made: Kind::FilestorePartition,
        parts: [(Role::Data, "d".to_owned()), (Role::Journal, "j".to_owned())].into(),
        fs_uuid: Some("f".into()),
        osd_fsid: fsid(1),
        whoami: OsdId(1),
        cluster: cluster(1),
    }
}

fn volume(group: &str, volume: &str, luks: Option<&str>, alone: bool) -> Proof {
    Proof::Volume {
        made: if luks.is_some() { Kind::LvmCrypt } else { Kind::Lvm },
        group: group.into(),
        volume: volume.into(),
        name: "g/v".into(),
        alone,
        luks: luks.map(str::to_owned),
        osd_fsid: fsid(1),
        whoami: OsdId(1),
        cluster: cluster(1),
    }
}

#[test]
fn a_volume_is_the_recorded_one_by_uuids_and_header_and_stays_alone() {
    let recorded = volume("G", "V", Some("H"), true);
    let seen = |proof: &Proof| old_is_proven(&request(), &evidence(recorded.clone()), proof);
    assert_eq!(seen(&recorded), Ok(()));
    for (other, what) in [
        (volume("X", "V", Some("H"), true), "volume group"),
        (volume("G", "X", Some("H"), true), "volume: expected V"),
        (volume("G", "V", Some("X"), true), "LUKS header"),
        (volume("G", "V", None, true), "kind"),
        (volume("G", "V", Some("H"), false), "not any more"),
    ] {
        assert!(seen(&other).unwrap_err().contains(what), "{what}");
    }
    // Neighbours that were removed since then do not weaken the proof.
    let shared = evidence(volume("G", "V", None, false));
    assert_eq!(old_is_proven(&request(), &shared, &volume("G", "V", None, true)), Ok(()));
    let luks = |header: &str| {
        let (osd_fsid, whoami, cluster) = (fsid(1), OsdId(1), cluster(1));
        Proof::Luks { header: header.into(), osd_fsid, whoami, cluster }
    };
    let disk = evidence(luks("H"));
    assert_eq!(old_is_proven(&request(), &disk, &luks("H")), Ok(()));
    assert!(old_is_proven(&request(), &disk, &luks("X")).is_err());
}

fn request() -> NodeRequest {
    NodeRequest {
        record: RecordId("r2".into()),
        attempt: 1,
        task: NodeTask::Rebuild,
        node: NodeName("n".into()),
        cluster: cluster(1),
        osd: OsdId(1),
        old: fsid(1),
        mon_host: String::new(),
        evidence: None,
        target: Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted: false },
        device_class: None,
        on_file: false,
        db: None,
        directory: None,
    }
}

fn evidence(proof: Proof) -> Evidence {
    Evidence { device: device(), proof, usable_bytes: 1000, auxiliary: Vec::new() }
}

fn bluestore(
    osd_fsid: OsdFsid,
    whoami: Option<u32>,
    in_cluster: Option<u8>,
    finished: bool,
    activatable: bool,
) -> DiskFinding {
    let (whoami, in_cluster) = (whoami.map(OsdId), in_cluster.map(cluster));
    let proof = match (finished, whoami, in_cluster) {
        (true, Some(whoami), Some(cluster)) => {
            Some(Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable })
        }
        _ => None,
    };
    let content = Content::Bluestore { osd_fsid, whoami, cluster: in_cluster, finished, activatable };
    DiskFinding { proof, ..DiskFinding::plain(content, Some(osd_fsid)) }
}

fn decided(examine: &DiskFinding) -> Verdict {
    verdict(&request(), &evidence(label(fsid(1))), &BTreeSet::from([fsid(7)]), examine)
}

#[test]
fn the_old_one_is_wiped_only_with_every_trait_of_its_proof() {
    assert_eq!(decided(&bluestore(fsid(1), Some(1), Some(1), true, false)), Verdict::WipeOld);
    for wrong in [
        bluestore(fsid(2), Some(1), Some(1), true, false),
        bluestore(fsid(1), Some(2), Some(1), true, false),
        bluestore(fsid(1), Some(1), Some(2), true, false),
        bluestore(fsid(1), Some(1), Some(1), true, true),
        bluestore(fsid(1), Some(1), Some(1), false, false),
        bluestore(fsid(1), None, Some(1), true, false),
    ] {
        assert!(matches!(decided(&wrong), Verdict::Refuse(_)), "{wrong:?}");
    }
    let Verdict::Refuse(why) = decided(&bluestore(fsid(1), Some(2), Some(1), true, false)) else { panic!() };
    assert_eq!(why, "OSD id on the disk: expected osd.1, found osd.2");
}

#[test]
fn evidence_of_another_osd_proves_nothing() {
    for (proof, part) in [(label(fsid(2)), "fsid"), (filestore(), "kind")] {
        let seen = label(fsid(2));
        let why = old_is_proven(&request(), &evidence(proof), &seen).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn a_claim_under_another_id_is_wiped_once_that_id_is_purged() {
    for finished in [true, false] {
        let verdict = decided(&bluestore(fsid(7), Some(2), Some(1), finished, finished));
        assert_eq!(verdict, Verdict::WipeMisplaced(OsdId(2)));
        assert!(misplaced_is_purged(&verdict, |_| false).is_ok());
        let why = misplaced_is_purged(&verdict, |id| id == OsdId(2)).unwrap_err();
        assert!(why.contains("osd.2") && why.contains("in use"), "{why}");
    }
    assert!(misplaced_is_purged(&Verdict::WipeOurs, |_| true).is_ok());
}

#[test]
fn a_blank_disk_is_taken_only_where_a_claim_shows_that_the_old_data_is_gone() {
    let blank = DiskFinding::plain(Content::Blank, None);
    assert_eq!(decided(&blank), Verdict::WipeOurs);
    let unclaimed = verdict(&request(), &evidence(label(fsid(1))), &BTreeSet::new(), &blank);
    assert!(matches!(unclaimed, Verdict::Refuse(_)), "{unclaimed:?}");
}

#[test]
fn a_claim_is_done_when_finished_and_wiped_when_not() {
    assert_eq!(decided(&bluestore(fsid(7), Some(1), Some(1), true, true)), Verdict::Done);
    assert_eq!(decided(&bluestore(fsid(7), None, None, false, false)), Verdict::WipeOurs);
    assert_eq!(decided(&bluestore(fsid(7), Some(1), Some(1), false, true)), Verdict::WipeOurs);
    for strange in [
        bluestore(fsid(7), Some(2), Some(2), true, true),
        bluestore(fsid(7), Some(2), None, true, true),
        bluestore(fsid(8), Some(2), Some(1), true, true),
        bluestore(fsid(7), Some(1), Some(2), false, true),
        bluestore(fsid(7), Some(1), Some(1), true, false),
        bluestore(fsid(8), None, None, false, false),
    ] {
        assert!(matches!(decided(&strange), Verdict::Refuse(_)), "{strange:?}");
    }
}

#[test]
fn only_our_own_tombstone_counts() {
    let stone = |c: u8, id: u32, old: u8, record: &str| DiskFinding {
        content: Content::Tombstone {
            cluster: cluster(c),
            osd: OsdId(id),
            old: fsid(old),
            record: RecordId(record.into()),
        },
        ..DiskFinding::plain(Content::Blank, None)
    };
    assert_eq!(decided(&stone(1, 1, 1, "r2")), Verdict::WipeOurs);
    assert_eq!(decided(&stone(1, 1, 1, "r1")), Verdict::WipeOurs, "an earlier record of the same OSD");
    for other in [stone(2, 1, 1, "r2"), stone(1, 2, 1, "r2"), stone(1, 1, 2, "r2")] {
        assert!(matches!(decided(&other), Verdict::Refuse(_)), "{other:?}");
    }
    for content in [
        Content::Other { what: "a signature of xfs".into() },
        Content::NotFound { inspected: "inspected no disk".into() },
    ] {
        assert!(matches!(decided(&DiskFinding::plain(content, None)), Verdict::Refuse(_)));
    }
}

#[test]
fn a_free_disk_is_taken_only_where_nothing_came_onto_it() {
    let stone = |id: u32, old: u8, record: &str| (OsdId(id), fsid(old), RecordId(record.into()));
    let examine = |content: Content| DiskFinding::plain(content, None);
    let buried = |of: u8, (osd, old, record): (OsdId, OsdFsid, RecordId)| {
        examine(Content::Tombstone { cluster: cluster(of), osd, old, record })
    };
    let decided = |tombstone: Option<_>, seen: &DiskFinding| {
        verdict(&request(), &evidence(Proof::Available { tombstone }), &BTreeSet::from([fsid(7)]), seen)
    };
    assert_eq!(decided(None, &examine(Content::Blank)), Verdict::TakeAvailable);
    assert_eq!(decided(Some(stone(3, 3, "r")), &buried(1, stone(3, 3, "r"))), Verdict::TakeAvailable);
    assert_eq!(
        decided(Some(stone(3, 3, "r")), &examine(Content::Blank)),
        Verdict::TakeAvailable,
        "its wipe came to its end"
    );
    assert_eq!(decided(None, &buried(1, stone(1, 1, "r9"))), Verdict::WipeOurs, "our own rebuild, cut short");
    assert_eq!(decided(None, &bluestore(fsid(7), None, None, false, false)), Verdict::WipeOurs);
    assert_eq!(decided(None, &bluestore(fsid(7), Some(1), Some(1), true, true)), Verdict::Done);
    for other in [
        bluestore(fsid(1), Some(1), Some(1), true, false),
        bluestore(fsid(8), None, None, false, false),
        examine(Content::Other { what: "a signature of ext4".into() }),
        examine(Content::NotFound { inspected: "inspected no disk".into() }),
        buried(1, stone(3, 3, "r")),
        buried(2, stone(1, 1, "r")),
    ] {
        assert!(matches!(decided(None, &other), Verdict::Refuse(_)), "{other:?}");
    }
    for other in [stone(3, 3, "q"), stone(3, 4, "r"), stone(4, 3, "r")] {
        let other = buried(1, other);
        assert!(matches!(decided(Some(stone(3, 3, "r")), &other), Verdict::Refuse(_)), "{other:?}");
    }
    assert!(matches!(decided(Some(stone(3, 3, "r")), &buried(2, stone(3, 3, "r"))), Verdict::Refuse(_)));
}

#[test]
fn an_id_that_is_nobodys_is_taken_only_for_a_free_disk() {
    let of = |proof| NodeRequest { evidence: Some(evidence(proof)), ..request() };
    let (old, new) = (of(label(fsid(1))), of(Proof::Available { tombstone: None }));
    for request in [&old, &new] {
        assert_eq!(slot_may_be_taken(request, Some("destroyed")), Ok(()));
        for status in ["up", "down"] {
            assert!(slot_may_be_taken(request, Some(status)).unwrap_err().contains(status));
        }
    }
    assert_eq!(slot_may_be_taken(&new, None), Ok(()));
    assert_eq!(
        slot_may_be_taken(&old, None).unwrap_err(),
        "the slot of osd.1: expected destroyed, found absent"
    );
}

#[test]
fn under_the_exclusive_open_the_partitions_are_compared_again() {
    let seen = |entries: &[Entry], fs_uuid: Option<&str>| Reread {
        entries: entries.to_vec(),
        fs_uuid: fs_uuid.map(str::to_owned),
        labels: [].into(),
    };
    let right = [entry(1, CEPH_DATA, "d", ""), entry(2, "x", "j", "")];
    assert_eq!(same_partitions(&filestore(), &seen(&right, Some("f"))), Ok(()));
    let other_journal = [right[0].clone(), entry(2, "x", "k", "")];
    let more = [right[0].clone(), right[1].clone(), entry(3, "x", "l", "")];
    let why = same_partitions(&filestore(), &seen(&right, Some("g"))).unwrap_err();
    assert_eq!(why, "file system: expected f, found g");
    for other in [seen(&right, None), seen(&other_journal, Some("f")), seen(&more, Some("f"))] {
        assert!(same_partitions(&filestore(), &other).is_err(), "{other:?}");
    }
    assert!(same_partitions(&label(fsid(1)), &seen(&right, Some("f"))).is_err());
}

#[test]
fn under_the_exclusive_open_every_label_must_still_be_the_old_osds() {
    let parts = [(Role::Block, "b".to_owned()), (Role::Db, "e".to_owned())];
    let recorded = Proof::Partitions {
        made: Kind::BluestorePartition,
        parts: parts.into(),
        fs_uuid: None,
        osd_fsid: fsid(1),
        whoami: OsdId(1),
        cluster: cluster(1),
    };
    let seen = |labels: &[(&str, OsdFsid)]| Reread {
        entries: vec![entry(1, "x", "b", ""), entry(2, "x", "e", "")],
        fs_uuid: None,
        labels: labels.iter().map(|(uuid, fsid)| ((*uuid).to_owned(), *fsid)).collect(),
    };
    assert_eq!(same_partitions(&recorded, &seen(&[("b", fsid(1)), ("e", fsid(1))])), Ok(()));
    let why = same_partitions(&recorded, &seen(&[("b", fsid(1))])).unwrap_err();
    assert!(
        why.starts_with("OSD in the label of block.db: expected") && why.ends_with("found none"),
        "{why}"
    );
    assert!(same_partitions(&recorded, &seen(&[("b", fsid(2)), ("e", fsid(1))])).is_err());
}

fn piece(role: Role, part: &str) -> Piece {
    let identity = DeviceIdentity {
        by_id: [].into(),
        by_path: [].into(),
        serial: None,
        wwn: Some(part.to_owned()),
        size_bytes: 7,
    };
    Piece { role, place: PieceLocation::Device(identity) }
}

#[test]
fn a_piece_that_is_not_as_recorded_stops_a_wipe_of_the_old_and_none_after_it() {
    let other = || PieceSeen::Other("a signature of xfs".to_owned());
    let decided =
        |verdict: Verdict, seen: PieceSeen| piece_is_to_be_cleared(&piece(Role::Db, "p"), &verdict, &seen);
    for (verdict, seen, cleared) in [
        (Verdict::WipeOld, PieceSeen::Old, true),
        (Verdict::WipeOld, PieceSeen::Blank, false),
        (Verdict::WipeOurs, PieceSeen::Old, true),
        (Verdict::WipeOurs, PieceSeen::Blank, false),
        (Verdict::WipeOurs, other(), false),
        (Verdict::WipeOurs, PieceSeen::Missing, false),
    ] {
        assert_eq!(decided(verdict, seen), Ok(cleared));
    }
    let why = decided(Verdict::WipeOld, other()).unwrap_err();
    assert!(why.contains("block.db") && why.ends_with("found a signature of xfs"), "{why}");
    assert!(decided(Verdict::WipeOld, PieceSeen::Missing).unwrap_err().contains("no such device"));
    for verdict in [Verdict::Done, Verdict::TakeAvailable, Verdict::Refuse(String::new())] {
        assert!(decided(verdict, PieceSeen::Old).is_err(), "nothing is cleared but for a wipe");
    }
}

#[test]
fn a_piece_that_was_not_recorded_is_named() {
    let recorded = [piece(Role::Db, "p"), piece(Role::Wal, "q")];
    assert_eq!(pieces_are_recorded(&recorded, &recorded[1..]), Ok(()));
    for other in [piece(Role::Db, "q"), piece(Role::Wal, "p"), piece(Role::Journal, "p")] {
        let why = pieces_are_recorded(&recorded, std::slice::from_ref(&other)).unwrap_err();
        assert!(why.starts_with(&format!("its {} is on", other.role)), "{why}");
    }
}

#[test]
fn the_device_for_an_osd_in_a_directory_must_be_blank_and_its_slot_destroyed() {
    let directory = Proof::Directory {
        made: Kind::FilestoreDirectory,
        path: "/srv/a/osd1".into(),
        osd_fsid: fsid(1),
        whoami: OsdId(1),
        cluster: cluster(1),
    };
    let evidence = evidence(directory);
    let decided = |seen: &DiskFinding| verdict(&request(), &evidence, &BTreeSet::from([fsid(7)]), seen);
    let stone = |old: u8| Content::Tombstone {
        cluster: cluster(1),
        osd: OsdId(1),
        old: fsid(old),
        record: RecordId("r".into()),
    };
    assert_eq!(decided(&DiskFinding::plain(Content::Blank, None)), Verdict::TakeAvailable);
    assert_eq!(decided(&DiskFinding::plain(stone(1), None)), Verdict::WipeOurs);
    assert_eq!(decided(&bluestore(fsid(7), None, None, false, false)), Verdict::WipeOurs);
    assert_eq!(decided(&bluestore(fsid(7), Some(1), Some(1), true, true)), Verdict::Done);
    for other in [
        DiskFinding::plain(stone(2), None),
        DiskFinding::other("a signature of xfs", None),
        bluestore(fsid(1), Some(1), Some(1), true, false),
        DiskFinding::plain(Content::NotFound { inspected: "inspected no disk".into() }, None),
    ] {
        assert!(matches!(decided(&other), Verdict::Refuse(_)), "{other:?}");
    }
    let request = NodeRequest { evidence: Some(evidence), ..request() };
    assert_eq!(slot_may_be_taken(&request, Some("destroyed")), Ok(()));
    assert!(slot_may_be_taken(&request, None).is_err(), "it has an id, which must be kept");
}

#[test]
fn a_disk_with_another_serial_number_is_another_disk() {
    let mut other = device();
    assert_eq!(same_device(&device(), &other), Ok(()));
    other.serial = Some("T".into());
    assert!(same_device(&device(), &other).unwrap_err().contains('T'));
}

fn unnamed(path: &str) -> DeviceIdentity {
    DeviceIdentity { by_id: [].into(), by_path: [path.to_owned()].into(), serial: None, ..device() }
}

#[test]
fn disk_without_serial_number_is_told_by_content_and_blank_by_place() {
    let (here, there) = (unnamed("pci-4"), unnamed("pci-5"));
    let old = bluestore(fsid(1), Some(1), Some(1), true, false).content;
    assert_eq!(same_disk(&here, &there, &old), Ok(()), "its label proves it, wherever it is");
    assert_eq!(same_disk(&here, &here, &Content::Blank), Ok(()));
    assert!(same_disk(&here, &there, &Content::Blank).unwrap_err().contains("pci-5"));
    let nowhere = DeviceIdentity { by_path: [].into(), ..here.clone() };
    assert!(same_disk(&nowhere, &nowhere, &Content::Blank).is_err());
    assert_eq!(same_disk(&device(), &device(), &Content::Blank), Ok(()));
    assert!(same_disk(&device(), &here, &old).is_err(), "nothing names it any more");
}

#[test]
fn disk_with_content_goes_before_blank_disks_that_look_alike() {
    let stone =
        Content::Tombstone { cluster: cluster(1), osd: OsdId(1), old: fsid(1), record: RecordId("r".into()) };
    let other = Content::Other { what: "a signature of ext4".into() };
    let ours = |content: &&Content| **content != other;
    let of = |contents: &[&Content], is_only| {
        candidates(contents.to_vec(), is_only, |content| *content, ours).len()
    };
    assert_eq!(of(&[&Content::Blank, &stone, &other], false), 1);
    assert_eq!(of(&[&Content::Blank, &other], false), 1);
    assert_eq!(of(&[&Content::Blank, &Content::Blank], false), 2, "nobody can tell which");
    assert_eq!((of(&[&other], false), of(&[&other], true)), (0, 1), "the only one is looked at, and refused");
}
