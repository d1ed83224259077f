use super::*;
use crate::domain::osd::OsdId;
use crate::node::disk::tombstone::Tombstone;
use crate::node::pvc::samples::{
    DB, OLD_HEADER, db_on, evidence, header, label, labelled, new, put, with_db,
};
use crate::node::samples::{bare_disk, host};

#[test]
fn parts_are_checked_only_for_a_finished_osd_under_its_own_id() {
    let request = with_db(false);
    let content = |osd_fsid, id: u32, finished| Content::Bluestore {
        osd_fsid,
        whoami: Some(OsdId(id)),
        cluster: Some(request.cluster),
        finished,
        activatable: true,
    };
    assert_eq!(new_of(&content(new(), request.osd.0, true), &request), Some(new()));
    for other in [
        content(new(), request.osd.0, false),
        content(request.old, request.osd.0, true),
        content(new(), 7, true),
        Tombstone::of(&request).into_content(),
        Content::Blank,
    ] {
        assert_eq!(new_of(&other, &request), None, "{other}");
    }
}

#[test]
fn part_that_is_small_read_only_or_shared_is_unfit() {
    let root = tempfile::tempdir().unwrap();
    let (mut db, plain, encrypted) = (db_on(&root.path().join("db")), with_db(false), with_db(true));
    let none = || std::iter::empty::<&Disk>();
    for (size, request, said) in [
        (64 << 20, &plain, None),
        ((64 << 20) - 1, &plain, Some("63 MiB, and at least 64 MiB")),
        (80 << 20, &encrypted, None),
        (79 << 20, &encrypted, Some("79 MiB, and at least 80 MiB")),
    ] {
        db.disk.identity.size_bytes = size;
        let said = said.map(|said| format!("PVC {DB} for its block.db has {said} are needed"));
        assert_eq!(db.is_fit(none(), request).err(), said);
    }
    db.disk.identity.size_bytes = 80 << 20;
    db.disk.read_only = true;
    let why = db.is_fit(none(), &plain).unwrap_err();
    assert_eq!(why, format!("PVC {DB} for its block.db is read-only"));
    (db.disk.read_only, db.disk.number) = (false, (8, 16));
    let data = bare_disk(&["ata-b"], 1);
    let why = db.is_fit(std::iter::once(&data), &plain).unwrap_err();
    assert!(why.ends_with("/dev/sdb (ata-b), which another PVC of the OSD also has"), "{why}");
    db.disk.number = (8, 32);
    assert_eq!(db.is_fit(std::iter::once(&data), &plain), Ok(()));
}

#[tokio::test]
async fn parts_of_the_old_osd_are_its_pieces_and_others_are_named() {
    let root = tempfile::tempdir().unwrap();
    let (host, data) = (host(root.path()), bare_disk(&[], 1));
    let db = db_on(&root.path().join("db"));
    let mut request = with_db(false);
    let recorded = evidence(&request, &db, Some(OLD_HEADER));
    request.evidence = Some(recorded.clone());
    let parts = [db.clone()];
    assert_eq!(of_old(&host, &request, &data, &parts).await.unwrap(), Ok(Vec::new()), "a blank device");
    put(&db.disk.node, 0, &header(OLD_HEADER));
    assert_eq!(of_old(&host, &request, &data, &parts).await.unwrap(), Ok(recorded.auxiliary));
    let foreign = NodeRequest { osd: OsdId(7), ..request.clone() };
    let stone = |request: &NodeRequest| Tombstone::of(request).to_sector().unwrap().to_vec();
    // Only what belongs to another owner is final: a mapping may be open at the next inspection.
    for (bytes, said, is_foreign) in [
        (header("u"), "LUKS u, not open", false),
        (labelled("u", "pvc_name=y"), "a LUKS header of pvc_name=y, not open: the device belongs", true),
        (stone(&request), "an unfinished part of the new OSD", false),
        (stone(&foreign), "a tombstone for osd.7", true),
        (b"x".to_vec(), "data without a signature", true),
    ] {
        put(&db.disk.node, 0, &[0; 4096]);
        put(&db.disk.node, 0, &bytes);
        let unclear = of_old(&host, &request, &data, &parts).await.unwrap().unwrap_err();
        let why = format!("PVC {DB} for its block.db carries {said}");
        assert!(unclear.why.starts_with(&why), "{unclear:?}");
        assert_eq!(unclear.is_foreign, is_foreign, "{unclear:?}");
        let proof = Some(recorded.proof.clone());
        let old = DiskFinding { proof, ..DiskFinding::plain(Content::Blank, Some(request.old)) };
        let found = complete_with(&host, &request, &data, old, &parts, None).await.unwrap();
        assert_eq!((found.foreign, found.proof), (is_foreign.then_some(unclear.why), None));
    }
}

#[tokio::test]
async fn part_of_the_new_osd_must_have_its_fsid_and_role() {
    let root = tempfile::tempdir().unwrap();
    let db = db_on(&root.path().join("db"));
    assert_eq!(db.has_label_of(Some(&label("bluefs db", new())), new()), Ok(()));
    let old = with_db(false).old;
    for (part, fsid) in [("bluefs wal", new()), ("main", new()), ("bluefs db", old)] {
        let why = db.has_label_of(Some(&label(part, fsid)), new()).unwrap_err();
        assert_eq!(why, format!("`{part}` of OSD {fsid}"));
    }
    assert!(db.has_label_of(None, new()).is_err());
    // A header that the record did not write is never opened, and none is expected if it does not encrypt.
    put(&db.disk.node, 0, &header(OLD_HEADER));
    for encrypted in [true, false] {
        let found = db.is_of_new(&host(root.path()), &with_db(encrypted), new()).await.unwrap();
        assert_eq!(found.unwrap_err(), "a signature of crypto_LUKS");
    }
    put(&db.disk.node, 0, &[0; 512]);
    let found = db.is_of_new(&host(root.path()), &with_db(false), new()).await.unwrap();
    assert_eq!(found.unwrap_err(), "nothing");
}

#[tokio::test]
async fn osd_without_other_pvcs_is_not_completed() {
    let root = tempfile::tempdir().unwrap();
    let mut request = with_db(false);
    let data = bare_disk(&[], 1);
    let proof = evidence(&request, &db_on(&root.path().join("db")), None).proof;
    let old = DiskFinding { proof: Some(proof), ..DiskFinding::plain(Content::Blank, Some(request.old)) };
    // The device of the database is not there.
    assert!(complete(&host(root.path()), &request, &data, old.clone()).await.is_err());
    // The data is neither the old OSD's nor of a finished new one: no part is read.
    let gone = DiskFinding::plain(Tombstone::of(&request).into_content(), Some(request.old));
    let found = complete(&host(root.path()), &request, &data, gone.clone()).await.unwrap();
    assert_eq!(found, gone);
    request.pvcs.as_mut().unwrap().db = None;
    let found = complete(&host(root.path()), &request, &data, old.clone()).await.unwrap();
    assert_eq!(found, old);
}
