use super::*;
use crate::domain::osd::Kind;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::proof::samples::{bluestore, cluster, evidence, filestore, fsid, label, request};

fn decided(examine: &DiskFinding) -> Verdict {
    verdict(&request(), &evidence(label(fsid(1))), &BTreeSet::from([fsid(7)]), examine)
}

#[test]
fn old_osd_is_wiped_only_if_every_trait_matches_its_proof() {
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
fn disk_under_a_misplaced_id_is_wiped_only_after_its_purge() {
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
fn blank_disk_is_reused_only_with_an_issued_fsid_as_proof() {
    let blank = DiskFinding::plain(Content::Blank, None);
    assert_eq!(decided(&blank), Verdict::WipeOurs);
    let unclaimed = verdict(&request(), &evidence(label(fsid(1))), &BTreeSet::new(), &blank);
    assert!(matches!(unclaimed, Verdict::Refuse(_)), "{unclaimed:?}");
}

#[test]
fn osd_of_an_issued_fsid_is_done_if_finished_else_wiped() {
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
fn tombstone_counts_only_for_its_own_cluster_osd_and_fsid() {
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
fn available_disk_is_taken_only_if_nothing_came_onto_it() {
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
fn signature_next_to_a_tombstone_of_another_record_is_refused() {
    let member = |osd: u32, old: u8, record: &str| {
        let (cluster, record) = (cluster(1), RecordId(record.into()));
        let content = Content::Tombstone { cluster, osd: OsdId(osd), old: fsid(old), record };
        let signature = Some("linux_raid_member".to_owned());
        DiskFinding { signature, ..DiskFinding::plain(content, None) }
    };
    let available = |stone| evidence(Proof::Available { tombstone: Some(stone) });
    let decided = |osd: u32, old: u8, record: &str| {
        let evidence = available((OsdId(osd), fsid(old), RecordId(record.into())));
        verdict(&request(), &evidence, &BTreeSet::new(), &member(osd, old, record))
    };
    let Verdict::Refuse(why) = decided(3, 3, "r") else { panic!() };
    assert!(why.ends_with(", and a signature of linux_raid_member"), "{why}");
    assert!(matches!(decided(1, 1, "earlier"), Verdict::Refuse(_)), "the id of a destroyed OSD");
    // The record's own tombstone: an interrupted rebuild leaves what it has not wiped yet.
    assert_eq!(decided(1, 1, &request().record.0), Verdict::WipeOurs);
    let old = evidence(label(fsid(1)));
    assert_eq!(verdict(&request(), &old, &BTreeSet::new(), &member(1, 1, "r1")), Verdict::WipeOurs);
}

#[test]
fn absent_slot_is_taken_only_for_an_available_disk() {
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
fn device_for_a_directory_osd_is_blank_and_its_slot_destroyed() {
    let directory = Proof::Directory {
        format: Kind::FilestoreDirectory,
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
fn held_luks_header_of_the_record_keeps_an_earlier_permission() {
    let (ours, misplaced) = (Verdict::WipeOurs, Verdict::WipeMisplaced(OsdId(7)));
    let plain = request();
    let mut encrypted = request();
    (encrypted.pvcs, encrypted.target.encrypted) = (Some(PerPvc::of_data("x".into())), true);
    for verdict in [&ours, &misplaced, &Verdict::WipeOld, &Verdict::TakeAvailable] {
        assert!(is_still(verdict, verdict, &plain) && is_still(verdict, verdict, &encrypted));
    }
    assert!(is_still(&misplaced, &ours, &encrypted), "the header is closed while its device is held");
    assert!(!is_still(&misplaced, &ours, &plain));
    assert!(!is_still(&Verdict::WipeOld, &ours, &encrypted), "the old OSD went away meanwhile");
    assert!(!is_still(&ours, &misplaced, &encrypted) && !is_still(&ours, &Verdict::Done, &encrypted));
}

#[test]
fn finished_encrypted_osd_on_a_pvc_is_done_without_its_slot() {
    let mut request = request();
    request.target.encrypted = true;
    assert_eq!(unless_unreadable(Verdict::Done, &request, Some("destroyed")), Verdict::WipeOurs);
    request.pvcs = Some(PerPvc::of_data("x".into()));
    assert_eq!(unless_unreadable(Verdict::Done, &request, Some("destroyed")), Verdict::Done);
}
