use super::*;
use crate::domain::osd::{Kind, OsdId};
use crate::domain::proof::samples::{cluster, evidence, filestore, fsid, label, request, volume};

fn owned(partitions: &[&str]) -> Vec<String> {
    partitions.iter().map(|uuid| (*uuid).to_owned()).collect()
}

#[test]
fn lv_is_the_recorded_one_by_uuids_header_and_staying_alone() {
    let recorded = volume("G", "V", Some("H"), true);
    let seen = |proof: &Proof| old_is_proven(&request(), &evidence(recorded.clone()), proof);
    assert_eq!(seen(&recorded), Ok(()));
    for (other, what) in [
        (volume("X", "V", Some("H"), true), "volume group"),
        (volume("G", "X", Some("H"), true), "volume: expected V"),
        (volume("G", "V", Some("X"), true), "LUKS header"),
        (volume("G", "V", None, true), "kind"),
        (volume("G", "V", Some("H"), false), "other volumes"),
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

#[test]
fn partitions_are_compared_again_under_exclusive_open() {
    let seen = |partitions: &[&str], fs_uuid: Option<&str>| Reread {
        partitions: owned(partitions),
        fs_uuid: fs_uuid.map(str::to_owned),
        labels: [].into(),
    };
    let right = ["d", "j"];
    assert_eq!(same_partitions(&filestore(), &seen(&right, Some("f"))), Ok(()));
    let why = same_partitions(&filestore(), &seen(&right, Some("g"))).unwrap_err();
    assert_eq!(why, "file system: expected f, found g");
    for other in [seen(&right, None), seen(&["d", "k"], Some("f")), seen(&["d", "j", "l"], Some("f"))] {
        assert!(same_partitions(&filestore(), &other).is_err(), "{other:?}");
    }
    assert!(same_partitions(&label(fsid(1)), &seen(&right, Some("f"))).is_err());
}

#[test]
fn labels_are_compared_again_under_exclusive_open() {
    let parts = [(Role::Block, "b".to_owned()), (Role::Db, "e".to_owned())];
    let recorded = Proof::Partitions {
        format: Kind::BluestorePartition,
        parts: parts.into(),
        fs_uuid: None,
        osd_fsid: fsid(1),
        whoami: OsdId(1),
        cluster: cluster(1),
    };
    let seen = |labels: &[(&str, OsdFsid)]| Reread {
        partitions: owned(&["b", "e"]),
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
