use std::fs;
use std::path::Path;

use super::*;
use crate::domain::osd::OsdId;
use crate::node::disk::devices::Partition;
use crate::node::disk::tombstone::Tombstone;
use crate::node::pvc::samples::{DB, OLD_HEADER, db_on, evidence, header, label, new, put, with_db};
use crate::node::samples::host;
use crate::node::volumes::luks::header_uuid;

/// Returns what the database on a file with these bytes at its start carries.
async fn seen(request: &NodeRequest, bytes: &[u8]) -> PieceSeen {
    let root = tempfile::tempdir().unwrap();
    let db = db_on(&root.path().join("db"));
    put(&db.disk.node, 0, bytes);
    db.examine(&host(root.path()), request, &BTreeSet::new()).await.unwrap().seen
}

fn other(text: &str) -> PieceSeen {
    PieceSeen::Other(text.to_owned())
}

#[tokio::test]
async fn blank_database_device_and_foreign_bytes_are_distinguished() {
    let request = with_db(false);
    assert_eq!(seen(&request, b"").await, PieceSeen::Blank);
    assert_eq!(seen(&request, b"x").await, other("data without a signature"));
    let root = tempfile::tempdir().unwrap();
    let mut db = db_on(&root.path().join("db"));
    let node = db.disk.node.clone();
    db.disk.partitions.push(Partition { index: 1, name: "vdb1".into(), node, start: 8, sectors: 8 });
    let found = db.examine(&host(root.path()), &request, &BTreeSet::new()).await.unwrap();
    assert_eq!(found.seen, other("partitions"));
}

#[tokio::test]
async fn tombstone_on_a_database_counts_only_for_its_own_osd() {
    let request = with_db(false);
    let stone = |request: &NodeRequest| Tombstone::of(request).to_sector().unwrap();
    assert_eq!(seen(&request, &stone(&request)).await, PieceSeen::Ours);
    // The record may be an earlier one, whose ledger was lost.
    let earlier = NodeRequest { record: crate::domain::inspection::RecordId("0".into()), ..request.clone() };
    assert_eq!(seen(&request, &stone(&earlier)).await, PieceSeen::Ours);
    for foreign in
        [NodeRequest { osd: OsdId(7), ..request.clone() }, NodeRequest { old: new(), ..request.clone() }]
    {
        let found = seen(&request, &stone(&foreign)).await;
        assert!(matches!(&found, PieceSeen::Other(what) if what.starts_with("a tombstone for")), "{found:?}");
    }
}

#[tokio::test]
async fn closed_luks_header_of_a_database_is_known_by_its_uuid() {
    let (mut plain, mut encrypted) = (with_db(false), with_db(true));
    let root = tempfile::tempdir().unwrap();
    let db = db_on(&root.path().join("db"));
    for request in [&mut plain, &mut encrypted] {
        request.evidence = Some(evidence(request, &db, Some(OLD_HEADER)));
    }
    let ours = |role: Role| header(&header_uuid(&plain.record, role));
    assert_eq!(seen(&plain, &header(OLD_HEADER)).await, PieceSeen::Old);
    assert_eq!(seen(&encrypted, &header(OLD_HEADER)).await, PieceSeen::Old);
    assert_eq!(seen(&encrypted, &ours(Role::Db)).await, PieceSeen::Ours);
    // A record that does not encrypt writes no header, and each role has its own.
    for (request, bytes) in [(&plain, ours(Role::Db)), (&encrypted, ours(Role::Wal)), (&plain, header("u"))] {
        let found = seen(request, &bytes).await;
        assert!(matches!(&found, PieceSeen::Other(what) if what.ends_with(", not open")), "{found:?}");
    }
}

#[test]
fn label_of_a_database_is_the_old_one_or_has_an_issued_fsid() {
    let root = tempfile::tempdir().unwrap();
    let (db, request) = (db_on(&root.path().join("db")), with_db(false));
    let seen = |part: &str, fsid, issued: &[OsdFsid]| {
        db.labelled(&label(part, fsid), &request, &issued.iter().copied().collect())
    };
    assert_eq!(seen("bluefs db", request.old, &[]), PieceSeen::Old);
    assert_eq!(seen("bluefs db", new(), &[new()]), PieceSeen::Ours);
    for (part, fsid) in [("bluefs wal", request.old), ("main", request.old), ("bluefs db", new())] {
        assert_eq!(seen(part, fsid, &[]), other(&format!("`{part}` of OSD {fsid}")));
    }
}

/// Returns what the database carries while a mapping of that name is open on it.
async fn with_holder(root: &Path, request: &NodeRequest, mapping: &str, decrypts: &str) -> PieceSeen {
    let host = host(root);
    let folder = host.sys_block.join("dm-9/dm");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("name"), mapping).unwrap();
    fs::write(folder.join("uuid"), format!("CRYPT-LUKS2-{}-x", decrypts.replace('-', ""))).unwrap();
    let mut db = db_on(&root.join("db"));
    db.disk.holders = vec!["dm-9".to_owned()];
    db.examine(&host, request, &BTreeSet::new()).await.unwrap().seen
}

#[tokio::test]
async fn open_mapping_on_a_database_must_be_the_osds_own() {
    let root = tempfile::tempdir().unwrap();
    let db = db_on(&root.path().join("db"));
    let mut request = with_db(true);
    request.evidence = Some(evidence(&request, &db, Some(OLD_HEADER)));
    put(&db.disk.node, 0, &header(OLD_HEADER));
    let own = [
        format!("{DB}-db-dmcrypt"),
        format!("ceph-{}-vdb-db-dmcrypt", request.old),
        format!("{DB}-osd-migrate"),
    ];
    for own in own {
        assert_eq!(with_holder(root.path(), &request, &own, OLD_HEADER).await, PieceSeen::Old, "{own}");
    }
    let foreign = [
        ("luks-data".to_owned(), OLD_HEADER),
        (format!("{DB}-block-dmcrypt"), OLD_HEADER),
        (format!("{DB}-db-dmcrypt"), "00000000-0000-4000-8000-000000000000"),
    ];
    for (name, decrypts) in foreign {
        let found = with_holder(root.path(), &request, &name, decrypts).await;
        let text = format!("not the OSD's own: encryption ({name}, dm-9)");
        assert!(matches!(&found, PieceSeen::Other(what) if what.ends_with(&text)), "{name}: {found:?}");
    }
    // The mapping that an agent opened for its mkfs, before it was killed.
    let ours = header_uuid(&request.record, Role::Db);
    put(&db.disk.node, 0, &header(&ours));
    let name = format!("{DB}-db-dmcrypt");
    assert_eq!(with_holder(root.path(), &request, &name, &ours).await, PieceSeen::Ours);
    put(&db.disk.node, 0, &[0; 512]);
    let found = with_holder(root.path(), &request, &format!("{DB}-db-dmcrypt"), OLD_HEADER).await;
    assert!(matches!(found, PieceSeen::Other(_)), "a blank device has no mapping: {found:?}");
}
