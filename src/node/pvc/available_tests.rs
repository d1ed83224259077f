use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{OsdFsid, OsdId};
use crate::node::disk::devices::Partition;
use crate::node::disk::tombstone::Tombstone;
use crate::node::pvc::samples::{DB, db_on, new, put, with_db};
use crate::node::samples::{bare_disk, host};

const GIB: u64 = 1 << 30;

fn data() -> Disk {
    bare_disk(&["ata-b"], 6 * GIB)
}

async fn found(data: &Disk, content: &Content, parts: &[Part<'_>]) -> Result<Evidence, String> {
    let root = tempfile::tempdir().unwrap();
    let examine = DiskFinding::plain(content.clone(), None);
    judged(&host(root.path()), &with_db(false), (data, &examine), parts).await.unwrap()
}

fn store(osd_fsid: OsdFsid) -> Content {
    let cluster = Some(with_db(false).cluster);
    Content::Bluestore { osd_fsid, whoami: Some(OsdId(7)), cluster, finished: true, activatable: true }
}

#[tokio::test]
async fn blank_device_is_the_evidence_of_a_new_osd_on_a_pvc() {
    let evidence = found(&data(), &Content::Blank, &[]).await.unwrap();
    assert_eq!(evidence.proof, Proof::Available { tombstone: None });
    assert_eq!((evidence.device, evidence.usable_bytes), (data().identity, 6 * GIB));
    let root = tempfile::tempdir().unwrap();
    let (host, request, data) = (host(root.path()), with_db(true), data());
    let blank = DiskFinding::plain(Content::Blank, None);
    let encrypted = judged(&host, &request, (&data, &blank), &[]);
    assert_eq!(encrypted.await.unwrap().unwrap().usable_bytes, 6 * GIB - luks::HEADER_BYTES);
}

#[tokio::test]
async fn tombstone_of_this_cluster_is_recorded_and_of_another_refused() {
    let request = with_db(false);
    let stone = (OsdId(5), request.old, RecordId("earlier".to_owned()));
    let of = |cluster| Content::Tombstone { cluster, osd: stone.0, old: stone.1, record: stone.2.clone() };
    let evidence = found(&data(), &of(request.cluster), &[]).await.unwrap();
    assert_eq!(evidence.proof, Proof::Available { tombstone: Some(stone.clone()) });
    let other = of("6f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap());
    assert!(found(&data(), &other, &[]).await.is_err());
    let signature = Some("linux_raid_member".to_owned());
    let member = DiskFinding { signature, ..DiskFinding::plain(of(request.cluster), None) };
    let root = tempfile::tempdir().unwrap();
    let member = judged(&host(root.path()), &request, (&data(), &member), &[]).await.unwrap();
    assert!(member.unwrap_err().ends_with(", and a signature of linux_raid_member"));
}

#[tokio::test]
async fn device_with_anything_on_it_is_no_place_for_a_new_osd() {
    let other = || Content::Other { what: "a LUKS header of pvc_name=x".to_owned() };
    for content in [store(new()), store(with_db(false).old), other()] {
        assert_eq!(found(&data(), &content, &[]).await.unwrap_err(), content.to_string());
    }
    let (name, node) = ("sdb1".to_owned(), "/dev/sdb1".into());
    let partition = Partition { index: 1, name, node, start: 8, sectors: 8 };
    for (disk, said) in [
        (Disk { read_only: true, ..data() }, "a read-only device"),
        (Disk { holders: vec!["dm-1".to_owned()], ..data() }, "a device in use by dm-1"),
        (Disk { partitions: vec![partition], ..data() }, "a device with partitions"),
        (bare_disk(&["ata-b"], 4 * GIB), "a device of 4096 MiB, too small for an OSD"),
        (bare_disk(&[], 6 * GIB), "a device without a serial number and without a stable path"),
    ] {
        assert_eq!(found(&disk, &Content::Blank, &[]).await.unwrap_err(), said);
    }
}

#[tokio::test]
async fn database_of_another_osd_keeps_its_device() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("db");
    let db = db_on(&path);
    assert!(found(&data(), &Content::Blank, std::slice::from_ref(&db)).await.is_ok());
    put(&path, 4096, b"something");
    let why = found(&data(), &Content::Blank, std::slice::from_ref(&db)).await.unwrap_err();
    assert!(why.starts_with(&format!("PVC {DB} for its block.db carries ")), "{why}");
    put(&path, 4096, &[0; 9]);
    put(&path, 0, &Tombstone::of(&with_db(false)).to_sector().unwrap());
    let why = found(&data(), &Content::Blank, std::slice::from_ref(&db)).await.unwrap_err();
    assert!(why.contains("carries"), "{why}");
}
