//! The disks to which a PersistentVolume refers: none of them becomes an OSD.

use osd_migrate::domain::observation::LocalVolume;

use super::*;

fn with_volume(path: &str) -> Case {
    Case::of(all(), &[free("sdb"), free("sdc"), free_partition("sdd1", "sdd")]).with(|case| {
        case.seen.kube.local_volumes.push(LocalVolume {
            name: "pv1".to_owned(),
            path: Some(path.to_owned()),
            claim: Some("rook-ceph/set1-data-0x".to_owned()),
            is_block: true,
            bytes: Some(100 * GIB),
            nodes: Some(["h1".to_owned()].into()),
        });
    })
}

#[test]
fn persistent_volume_becomes_no_osd_however_it_is_named() {
    assert_eq!(with_volume("/dev/sdx").with(|case| case.seen.kube.local_volumes.clear()).new_osds().len(), 3);
    for path in [
        "/dev/sdb",
        "/dev/disk/by-id/ata-sdb",
        "/dev/disk/by-path/pci-sdb",
        "/mnt/local/ata-sdb",
        "/mnt/disks/sdb/",
    ] {
        let case = with_volume(path);
        assert_eq!(case.new_osds(), ["sdc", "sdd1"], "{path}");
        assert_eq!(
            case.verdict("sdb").to_string(),
            "PersistentVolume pv1, bound to PersistentVolumeClaim rook-ceph/set1-data-0x"
        );
    }
    assert_eq!(with_volume("/dev/sdd").new_osds(), ["sdb", "sdc"], "a partition of it");
}

#[test]
fn unmatched_persistent_volume_blocks_disks_of_its_size() {
    let case = with_volume("/mnt/disks/vol1");
    assert_eq!(case.new_osds(), [""; 0]);
    assert!(case.verdict("sdb").to_string().starts_with("perhaps PersistentVolume pv1"));
    let smaller = |case: &mut Case| case.seen.kube.local_volumes[0].bytes = Some(98 * GIB);
    assert_eq!(case.clone().with(smaller).new_osds().len(), 3);
    let folder = |case: &mut Case| case.seen.kube.local_volumes[0].is_block = false;
    assert_eq!(case.with(folder).new_osds().len(), 3);
}

#[test]
fn database_is_not_put_on_a_persistent_volume() {
    let case = with_volume("/dev/sdc").with(|case| {
        case.storage().config = metadata("sdc");
        case.storage().selection = devices(&["sdb"]);
    });
    assert_eq!(case.new_osds(), [""; 0]);
    assert!(case.problems().iter().any(|why| why.contains("PersistentVolume pv1")), "{:?}", case.problems());
}
