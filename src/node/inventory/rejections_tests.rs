use super::*;
use crate::node::samples::{RELEASES, said};

macro_rules! captured {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/fixtures/inventory/", $name))
    };
}

#[test]
fn inventory_rejections_are_parsed_and_sorted_per_disk() {
    let found = rejected(serde_json::from_str(captured!("inventory.json")).unwrap());
    let of = |path: &str| found.get(Path::new(path)).map(|reasons| reasons.join(", "));
    // loop6 and loop9 contain data without a signature, which ceph-volume does not see.
    for free in ["/dev/loop0", "/dev/loop6", "/dev/loop9"] {
        assert_eq!(of(free), None, "{free}");
    }
    assert_eq!(of("/dev/loop3").as_deref(), Some("Has BlueStore device label, Has a FileSystem"));
    assert_eq!(of("/dev/loop4p1").as_deref(), Some("Has BlueStore device label, Has a FileSystem"));
    assert_eq!(of("/dev/loop10").as_deref(), Some("read-only"));
    let with_volumes = rejected(serde_json::from_str(captured!("inventory_lvm.json")).unwrap());
    let reasons = "Has a FileSystem, Insufficient space (<10 extents) on vgs, LVM detected";
    assert_eq!(with_volumes[Path::new("/dev/ubdb")].join(", "), reasons);
    assert_eq!(not_overruled("loop4p1", &[]), ["it reports no reason"]);
}

#[test]
fn ceph_volume_listings_agree_across_three_releases() {
    let answer = |release: &str, name: &str| said(release, &format!("{name}.json"));
    for (release, free, osds) in [
        ("16.2.15", ["/dev/loop0", "/dev/loop3"], ["/dev/loop10", "/dev/loop15"]),
        ("18.2.7", ["/dev/loop21", "/dev/loop27"], ["/dev/loop12", "/dev/loop16"]),
        ("20.2.4", ["/dev/loop15", "/dev/loop22"], ["/dev/loop0", "/dev/loop5"]),
    ] {
        let found = rejected(serde_json::from_str(&answer(release, "inventory")).unwrap());
        assert!(free.iter().all(|disk| !found.contains_key(Path::new(disk))), "{release}: {found:?}");
        for disk in osds {
            assert_eq!(
                found[Path::new(disk)],
                ["Has BlueStore device label", "Has a FileSystem"],
                "{release}"
            );
        }
        let listed = |name| with_main_device(serde_json::from_str(&answer(release, name)).unwrap()).len();
        // For an OSD with a `block.db`, 20.2.4 lists the db device alone.
        let with_db = usize::from(release != "20.2.4");
        let counts = ["raw-list", "raw-list-blank", "raw-list-db"].map(listed);
        assert_eq!(counts, [2, 0, with_db], "{release}");
        assert!(assembled(serde_json::from_str(&answer(release, "lvm-list-none")).unwrap()).is_empty());
    }
}

#[test]
fn lvm_osd_is_listed_alike_by_three_releases() {
    for release in RELEASES {
        let listed = serde_json::from_str(&said(release, "lvm-list.json")).unwrap();
        let osds = assembled(listed);
        let [osd] = osds.as_slice() else { panic!("{release}: {osds:?}") };
        assert_eq!((osd.osd, osd.encrypted, osd.devices.len()), (OsdId(7), false, 1), "{release}");
        assert_eq!((&osd.store, &osd.db_path), (&ObjectStore::bluestore(), &None), "{release}");
        let volume = format!("/dev/ceph-{0}/osd-block-{0}", osd.fsid);
        assert_eq!(osd.block_path.as_deref(), Some(volume.as_str()), "{release}");
    }
}

#[test]
fn overruled_rejections_are_the_only_ones_omitted() {
    let left = |name: &str, reasons: &[&str]| {
        not_overruled(name, &reasons.iter().map(|reason| (*reason).to_owned()).collect::<Vec<_>>())
    };
    let loops = "Device type is not acceptable. It should be raw device or partition";
    assert_eq!(left("sdb", &["locked", "Insufficient space (<5GB)"]), [""; 0]);
    assert_eq!(left("loop3", &[loops]), [""; 0]);
    assert_eq!(left("sdb", &[loops]), [loops]);
    for reason in
        ["id_bus", "removable", "Used by ceph-disk", "LVM detected", "Parent has BlueStore device label"]
    {
        assert_eq!(left("sdb", &["locked", reason]), [reason]);
    }
}

#[test]
fn raw_list_counts_only_with_the_main_device() {
    let of = |text: &str| with_main_device(serde_json::from_str(text).unwrap());
    let fsid = |text: &str| text.parse::<OsdFsid>().unwrap();
    let ours = fsid("0bd0d481-3b3e-4947-9302-6f06dfc19f48");
    assert_eq!(of(captured!("raw-list.json")), [ours, fsid("88888888-8888-4888-8888-888888888888")].into());
    assert_eq!(of(captured!("raw-list-partition.json")), [ours].into());
    assert_eq!(of(captured!("raw-list-blank.json")), [].into());
    let db_alone = r#"{"88888888-8888-4888-8888-888888888888": {"device_db": "/dev/loop3",
        "osd_uuid": "88888888-8888-4888-8888-888888888888"}}"#;
    assert_eq!(of(db_alone), [].into());
}

const LVM: &str = r#"{
    "3": [
        {"devices": ["/dev/ubdb"], "lv_name": "osd-block-1", "lv_path": "/dev/ceph-vg/osd-block-1", "type": "block",
         "path": "/dev/ceph-vg/osd-block-1", "vg_name": "ceph-vg",
         "tags": {"ceph.osd_fsid": "500fff8e-39ff-4d5f-a72f-3cd43f874c6b", "ceph.osd_id": "3", "ceph.encrypted": "1",
                  "ceph.cephx_lockbox_secret": "AQDkaCBpGd3pNBAAk0kgVbmbgP4CcbZ7pDk0Xw==", "ceph.type": "block",
                  "ceph.cluster_fsid": "5f382147-dc61-408c-ad68-8e6a2e37590b", "ceph.db_device": "/dev/dbvg/db1"}},
        {"devices": ["/dev/ubdc"], "path": "/dev/dbvg/db1", "type": "db",
         "tags": {"ceph.osd_fsid": "500fff8e-39ff-4d5f-a72f-3cd43f874c6b", "ceph.osd_id": "3",
                  "ceph.cluster_fsid": "5f382147-dc61-408c-ad68-8e6a2e37590b", "ceph.type": "db"}},
        {"path": "/dev/ubdd1", "tags": {"PARTUUID": "f76b1738-2c9a-4244-8217-3604b053e471"}, "type": "journal"},
        {"devices": ["/dev/ubde"], "path": "/dev/x/y", "type": "data",
         "tags": {"ceph.osd_fsid": "600fff8e-39ff-4d5f-a72f-3cd43f874c6b", "ceph.osd_id": "3",
                  "ceph.cluster_fsid": "6f382147-dc61-408c-ad68-8e6a2e37590b"}}
    ]
}"#;

#[test]
fn logical_volumes_are_grouped_into_osds_by_fsid() {
    let found = assembled(serde_json::from_str(LVM).unwrap());
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].osd, found[0].encrypted), (OsdId(3), true));
    assert_eq!(found[0].block_path.as_deref(), Some("/dev/ceph-vg/osd-block-1"));
    assert_eq!(found[0].db_path.as_deref(), Some("/dev/dbvg/db1"));
    assert!(found[0].is_on(Path::new("/dev/ubdb")) && found[0].is_on(Path::new("/dev/ubdc")));
    assert!(found[1].store.is_filestore() && !found[1].is_on(Path::new("/dev/ubdb")));
    assert!(assembled(serde_json::from_str(captured!("lvm-list-none.json")).unwrap()).is_empty());
}

#[test]
fn metadata_disk_shared_by_two_osds_belongs_to_both() {
    let found = assembled(serde_json::from_str(captured!("lvm_list.json")).unwrap());
    let of = |osd: u32| found.iter().find(|found| found.osd == OsdId(osd)).unwrap();
    for osd in [10, 11] {
        assert!(of(osd).is_on(Path::new("/dev/ubdg")) && !of(osd).encrypted);
        assert_eq!(of(osd).db_disk.as_deref(), Some("ubdg"));
        assert!(of(osd).block_path.as_deref().is_some_and(|path| path.starts_with("/dev/ceph-")));
    }
    assert!(of(20).encrypted && of(20).is_on(Path::new("/dev/ubdc")));
    assert!(!format!("{found:?}").contains("lockbox"));
}
