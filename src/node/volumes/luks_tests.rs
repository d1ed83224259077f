//! Tests of names, keys and header files; those with a kernel's device-mapper are the lab's.

use super::*;
use crate::domain::inspection::{Evidence, Proof};
use crate::domain::osd::pvc::PerPvc;
use crate::node::samples::{bare_disk, host, request};

fn encrypted() -> NodeRequest {
    let mut request = request("n1");
    (request.pvcs, request.target.encrypted) = (Some(PerPvc::of_data("set1-data-0x".into())), true);
    request
}

#[test]
fn luks_header_uuid_is_the_same_for_a_record_in_every_version() {
    let record = RecordId("55ebe299-1".into());
    let uuid = header_uuid(&record, Role::Block);
    assert_eq!(uuid, "6ca20f02-d4e8-589a-a21c-3e34ad3a120d");
    assert_ne!(uuid, header_uuid(&RecordId("55ebe299-2".into()), Role::Block));
    let parts = [header_uuid(&record, Role::Db), header_uuid(&record, Role::Wal)];
    assert_eq!(parts, ["b6cadf46-5ea9-5e14-8489-03ca5099f320", "4c115d3d-cc2c-541a-b697-83ded5f2376a"]);
}

#[test]
fn luks_label_and_subsystem_are_as_a_header_shows_them() {
    assert_eq!(label_of("set1-data-0x"), "pvc_name=set1-data-0x");
    let long = label_of(&"p".repeat(60));
    assert_eq!((long.len(), long.starts_with("pvc_name=ppp")), (47, true));
    let cluster = request("n1").cluster;
    assert_eq!(subsystem_of(cluster), "ceph_fsid=5f382147-dc61-408c-ad68-8e6a2e37590b");
    assert!(subsystem_of(cluster).len() <= LABEL_CHARS);
}

#[test]
fn missing_or_empty_key_is_refused_with_the_name_of_its_secret() {
    let root = tempfile::tempdir().unwrap();
    let (host, request) = (host(root.path()), encrypted());
    let said = "Secret rook-ceph-osd-encryption-key-set1-data-0x has no usable key `dmcrypt-key`. Restore the \
                key: it is never replaced";
    assert_eq!(check_key(&host, &request).unwrap_err().to_string(), said);
    fs::write(&host.key, "").unwrap();
    assert_eq!(check_key(&host, &request).unwrap_err().to_string(), said);
    fs::write(&host.key, "key").unwrap();
    check_key(&host, &request).unwrap();
    let plain = NodeRequest { target: crate::node::samples::request("n1").target, ..request };
    fs::remove_file(&host.key).unwrap();
    check_key(&host, &plain).unwrap();
}

#[test]
fn key_that_opens_nothing_is_refused_and_other_errors_stay() {
    let ended = |code: i32| NodeError::Ended {
        command: "cryptsetup open".into(),
        status: std::os::unix::process::ExitStatusExt::from_raw(code << 8),
        last: "No key available with this passphrase.".into(),
    };
    let refused = of_opening(ended(2), "set1-data-0x");
    assert!(matches!(&refused, NodeError::Refused(why) if why.contains("encryption-key-set1-data-0x")));
    assert!(matches!(of_opening(ended(5), "set1-data-0x"), NodeError::Ended { .. }));
}

/// Checks that cryptsetup is asked about the key of an encrypted OSD only; with real headers, lab `pvc`.
#[tokio::test]
async fn key_of_an_encrypted_osd_is_tried_before_its_stop() {
    let root = tempfile::tempdir().unwrap();
    let (host, request) = (host(root.path()), encrypted());
    let disk = Disk { node: root.path().join("no-device"), ..bare_disk(&[], 1) };
    let of = |format| Content::Osd {
        format,
        osd_fsid: request.old,
        whoami: request.osd,
        cluster: request.cluster,
    };
    let fails = async |request: &NodeRequest, content: &Content| {
        check_key_of_old(&host, request, (&disk, content)).await.is_err()
    };
    assert!(fails(&request, &of(Kind::RawCrypt)).await, "it has no header");
    assert!(!fails(&request, &of(Kind::Raw)).await && !fails(&request, &Content::Blank).await);
    let (osd_fsid, whoami, cluster) = (request.old, request.osd, request.cluster);
    let proof = Proof::Luks { header: "h".into(), osd_fsid, whoami, cluster };
    let device = disk.identity.clone();
    let evidence = Some(Evidence { device, proof, usable_bytes: 1, auxiliary: Vec::new() });
    // A stopped OSD is recreated also if its key was lost meanwhile.
    assert!(!fails(&NodeRequest { evidence, ..request.clone() }, &of(Kind::RawCrypt)).await);
    let to_plain = NodeRequest { target: crate::node::samples::request("n1").target, ..request.clone() };
    assert!(!fails(&to_plain, &of(Kind::RawCrypt)).await);
}

#[test]
fn header_file_is_private_and_removed() {
    let root = tempfile::tempdir().unwrap();
    let file = HeaderFile::make(root.path()).unwrap();
    let meta = fs::metadata(&file.0).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions());
    assert_eq!((mode & 0o777, meta.len()), (0o600, HEADER_BYTES + ROOM_BYTES));
    assert_eq!(file.read().unwrap().len() as u64, HEADER_BYTES);
    drop(file);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}
