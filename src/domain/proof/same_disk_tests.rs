use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::osd::OsdId;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::proof::samples::{bluestore, cluster, device, fsid, request};

#[test]
fn disk_with_another_serial_number_is_another_disk() {
    let mut other = device();
    assert_eq!(same_device(&device(), &other), Ok(()));
    other.serial = Some("T".into());
    assert!(same_device(&device(), &other).unwrap_err().contains("found serial T, "));
}

fn unnamed(path: &str) -> DeviceIdentity {
    DeviceIdentity { by_id: [].into(), by_path: [path.to_owned()].into(), serial: None, ..device() }
}

#[test]
fn disk_without_serial_is_known_by_content_and_blank_by_path() {
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
fn disk_with_own_content_precedes_identical_blank_disks() {
    let stone =
        Content::Tombstone { cluster: cluster(1), osd: OsdId(1), old: fsid(1), record: RecordId("r".into()) };
    let other = Content::Other { what: "a signature of ext4".into() };
    let ours = |content: &&Content| **content != other;
    let of = |contents: &[&Content], is_only| {
        candidates(contents.to_vec(), is_only, |content| *content, ours).len()
    };
    assert_eq!(of(&[&Content::Blank, &stone, &other], false), 1);
    assert_eq!(of(&[&Content::Blank, &other], false), 1);
    assert_eq!(of(&[&Content::Blank, &Content::Blank], false), 2, "both match");
    assert_eq!((of(&[&other], false), of(&[&other], true)), (0, 1), "the only one is examined, and refused");
}

#[test]
fn blank_device_of_a_pvc_is_known_wherever_it_is_attached() {
    let on_host = request();
    let on_pvc = NodeRequest { pvcs: Some(PerPvc::of_data("set1-data-0a".to_owned())), ..request() };
    let (here, there) = (unnamed("pci-4"), unnamed("pci-5"));
    assert!(same_content_for(&on_host, &here, &there, &Content::Blank).is_err());
    assert_eq!(same_content_for(&on_pvc, &here, &there, &Content::Blank), Ok(()));
    // A name of one node may be unknown on another one.
    assert!(same_for(&on_host, &device(), &there).is_err());
    assert_eq!(same_for(&on_pvc, &device(), &there), Ok(()));
    let other = DeviceIdentity { serial: Some("T".into()), ..there };
    for content in [Content::Blank, Content::Other { what: "a signature of ext4".into() }] {
        assert!(same_content_for(&on_pvc, &device(), &other, &content).unwrap_err().contains('T'));
    }
    let larger = DeviceIdentity { size_bytes: here.size_bytes + 1, ..here.clone() };
    assert!(same_for(&on_host, &here, &larger).is_err());
    assert_eq!(same_for(&on_pvc, &here, &larger), Ok(()), "its PVC was resized");
    assert!(same_for(&on_pvc, &larger, &here).is_err());
}
