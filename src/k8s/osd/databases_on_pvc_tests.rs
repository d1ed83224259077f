//! Deployments of OSDs with database and log on PVCs of their own, compared with what Rook renders.

use serde_json::{Value, json};

use crate::domain::act::Deploy;
use crate::domain::osd::pvc::PerPvc;
use crate::k8s::osd::daemon;
use crate::k8s::osd::fields::{POD_SPEC, containers, field};
use crate::k8s::osd::osd_on_pvc::tests::{expected, old, on_pvcs, recorded, reshaped, without_script};
use crate::k8s::osd::pvc_shape::NoShape;
use crate::k8s::osd::rook_pvc_shapes::{DB, PVC, Part, RELEASES, Rook, Shape, WAL};
use crate::k8s::osd::rook_reads_back_tests::read_back;

/// Parts on PVCs of their own before the migration, and after it.
type Change = (&'static [Part], &'static [Part]);

/// All combinations in which no part is removed.
const CHANGES: [Change; 9] = [
    (&[], &[]),
    (&[], &[DB]),
    (&[], &[WAL]),
    (&[], &[DB, WAL]),
    (&[DB], &[DB]),
    (&[DB], &[DB, WAL]),
    (&[WAL], &[WAL]),
    (&[WAL], &[DB, WAL]),
    (&[DB, WAL], &[DB, WAL]),
];

/// Returns each release with each combination of parts.
fn cases() -> impl Iterator<Item = (Rook, Change)> {
    RELEASES.into_iter().flat_map(|rook| CHANGES.map(|change| (rook, change)))
}

fn with(rook: Rook, encrypted: bool, others: &'static [Part]) -> Shape {
    Shape { others, ..old(rook, encrypted) }
}

fn names(deployment: &Value) -> Vec<&str> {
    containers(deployment, "initContainers").filter_map(|c| field(c, "name")).collect()
}

#[test]
fn databases_are_added_as_each_rook_release_renders_them() {
    for ((rook, (before, after)), encrypted) in cases().flat_map(|case| [(case, false), (case, true)]) {
        let new = reshaped(&on_pvcs(encrypted, after), &with(rook, encrypted, before).deployment()).unwrap();
        let wanted = expected(with(rook, encrypted, after), encrypted);
        assert_eq!(new, wanted, "{rook:?}, encrypted: {encrypted}, {before:?} to {after:?}");
    }
}

#[test]
fn databases_become_encrypted_as_each_rook_release_renders_them() {
    for (rook, (before, after)) in cases() {
        let new = reshaped(&on_pvcs(true, after), &with(rook, false, before).deployment()).unwrap();
        let wanted = expected(with(rook, false, after), true);
        assert_eq!(without_script(new), without_script(wanted), "{rook:?}, {before:?} to {after:?}");
    }
}

#[test]
fn databases_become_plain_as_each_rook_release_renders_them() {
    for ((rook, (before, after)), vault) in cases().flat_map(|case| [(case, false), (case, true)]) {
        let found = Shape { vault, ..with(rook, true, before) };
        let new = reshaped(&on_pvcs(false, after), &found.deployment()).unwrap();
        assert_eq!(new, expected(with(rook, true, after), false), "{rook:?}, {before:?} to {after:?}");
    }
}

#[test]
fn databases_on_pvcs_are_as_before_after_encryption_and_back() {
    for (rook, (parts, _)) in cases() {
        let encrypted = reshaped(&on_pvcs(true, parts), &with(rook, false, parts).deployment()).unwrap();
        let back = reshaped(&on_pvcs(false, parts), &encrypted).unwrap();
        assert_eq!(back, expected(with(rook, false, parts), false), "{rook:?}, {parts:?}");
    }
}

#[test]
fn devices_of_an_osd_are_opened_by_their_own_names_with_one_key() {
    let new = reshaped(&on_pvcs(true, &[DB, WAL]), &with(Rook::V1_20, false, &[]).deployment()).unwrap();
    let order = [
        "blkdevmapper",
        "blkdevmapper-metadata",
        "blkdevmapper-wal",
        "encryption-open",
        "encryption-open-metadata",
        "encryption-open-wal",
        "blkdevmapper-encryption",
        "blkdevmapper-metadata-encryption",
        "blkdevmapper-wal-encryption",
        "encrypted-block-status",
        "expand-encrypted-bluefs",
        "activate",
    ];
    assert_eq!(names(&new).get(..order.len()), Some(&order[..]));
    let open =
        containers(&new, "initContainers").find(|c| field(c, "name") == Some("encryption-open-metadata"));
    let variables: Vec<_> =
        open.unwrap()["env"].as_array().unwrap().iter().map(|v| v["value"].as_str()).collect();
    let expected = [
        "set1-metadata-0b",
        "6a1b2c3d-0000-4000-8000-000000000001",
        "/etc/ceph/luks_key",
        "/var/lib/ceph/osd/ceph-3/block.db-tmp",
        "set1-metadata-0b-db-dmcrypt",
        "/dev/mapper/set1-metadata-0b-db-dmcrypt",
    ];
    assert_eq!(variables, expected.map(Some));
    assert_eq!(new.to_string().matches("rook-ceph-osd-encryption-key-").count(), 1);
}

/// Checks that Rook takes database and log from its device set: a path would be one of a host.
#[test]
fn rook_reads_back_no_path_of_a_database_on_a_pvc() {
    for (rook, (before, after)) in cases() {
        for (from, to) in [(false, false), (false, true), (true, false), (true, true)] {
            let new = reshaped(&on_pvcs(to, after), &with(rook, from, before).deployment()).unwrap();
            let read = read_back(&new).unwrap();
            assert_eq!((read.db_path.as_str(), read.wal_path.as_str()), ("", ""));
            assert_eq!((read.pvc.as_deref(), read.encrypted), (Some(PVC), to));
            let path = if to { format!("/dev/mapper/{PVC}-block-dmcrypt") } else { format!("/mnt/{PVC}") };
            assert_eq!(read.block_path, path);
            let found = daemon::parse(&new).unwrap().daemon.on_pvcs.unwrap();
            let wanted = on_pvcs(to, after).pvc_names().unwrap();
            assert_eq!((found.data, found.db, found.wal), (Some(wanted.data), wanted.db, wanted.wal));
        }
    }
}

const PLAIN: &str = include_str!("../../../tests/suite/fixtures/pvc/16.2.15/plain.deployment.json");
const DATABASE: &str = include_str!("../../../tests/suite/fixtures/pvc/16.2.15/database.deployment.json");

/// Compares captured OSDs, which differ in their names and in the database only.
#[test]
fn captured_osd_gets_a_database_as_the_captured_one_has_it() {
    let other = ["set1-data-077rxc", "\"set1\"", "ceph-3", "ceph-osd-3", "\"3\"", "\"h1\"", "host=h1"];
    let names = ["set2-data-09qvtc", "\"set2\"", "ceph-4", "ceph-osd-4", "\"4\"", "\"h2\"", "host=h2"];
    let renamed = other.iter().zip(names).fold(PLAIN.to_owned(), |text, (from, to)| text.replace(from, to));
    let found: Value = serde_json::from_str(&renamed).unwrap();
    let fsid = "8e95369d-9df1-44d6-b74d-e420bb4f0fd0".parse().unwrap();
    let db = Some("set2-metadata-0zrrqs".to_owned());
    let pvcs = PerPvc { db, ..PerPvc::of_data("set2-data-09qvtc".to_owned()) };
    let deploy = Deploy {
        osd: crate::domain::osd::OsdId(4),
        fsid,
        pvcs: Some(recorded(&pvcs)),
        ..on_pvcs(false, &[])
    };
    let captured: Value = serde_json::from_str(DATABASE).unwrap();
    let new = reshaped(&deploy, &found).unwrap();
    assert_eq!(new.pointer(POD_SPEC), captured.pointer(POD_SPEC));
    let with_it = reshaped(&deploy, &captured).unwrap();
    assert_eq!(with_it.pointer(POD_SPEC), captured.pointer(POD_SPEC), "it has it already");
    let encrypted = Deploy { layout: on_pvcs(true, &[]).layout, ..deploy.clone() };
    let back = reshaped(&deploy, &reshaped(&encrypted, &captured).unwrap()).unwrap();
    assert_eq!(back.pointer(POD_SPEC), captured.pointer(POD_SPEC));
}

#[test]
fn bridge_of_a_database_is_added_only_if_rook_gave_the_data_one() {
    let volumes = |change: &dyn Fn(&mut Value)| {
        let mut found = with(Rook::V1_20, false, &[]).deployment();
        change(found.pointer_mut(POD_SPEC).unwrap());
        let new = reshaped(&on_pvcs(false, &[DB]), &found).unwrap();
        let list = new.pointer(POD_SPEC).unwrap()["volumes"].as_array().unwrap().clone();
        list.into_iter()
            .filter(|v| field(v, "name").is_some_and(|n| n.starts_with(DB.pvc)))
            .collect::<Vec<_>>()
    };
    let volume = json!({"name": DB.pvc, "persistentVolumeClaim": {"claimName": DB.pvc}});
    let named = |name: &'static str| move |pod: &mut Value| pod["volumes"][2]["name"] = json!(name);
    assert_eq!(volumes(&named("of-a-person")), std::slice::from_ref(&volume));
    let elsewhere = |pod: &mut Value| pod["volumes"][2]["hostPath"]["path"] = json!("/mnt/shared");
    assert_eq!(volumes(&elsewhere), std::slice::from_ref(&volume));
    let in_memory = |pod: &mut Value| {
        pod["volumes"][2] = json!({"name": format!("{PVC}-bridge"), "emptyDir": {"medium": "Memory"}});
    };
    let bridge = json!({"name": format!("{}-bridge", DB.pvc), "emptyDir": {"medium": "Memory"}});
    assert_eq!(volumes(&in_memory), [volume, bridge]);
}

#[test]
fn deployment_with_another_database_than_the_osd_is_refused() {
    let refused = |others: &[Part], change: &dyn Fn(&mut Value)| {
        let mut found = with(Rook::V1_20, true, &[DB]).deployment();
        change(found.pointer_mut(POD_SPEC).unwrap());
        reshaped(&on_pvcs(true, others), &found).unwrap_err()
    };
    let unchanged = |_: &mut Value| {};
    assert_eq!(refused(&[], &unchanged), NoShape::SecondPvc("blkdevmapper-metadata".to_owned()));
    assert_eq!(refused(&[WAL], &unchanged), NoShape::SecondPvc("blkdevmapper-metadata".to_owned()));
    let other =
        |pod: &mut Value| pod["volumes"][3]["persistentVolumeClaim"]["claimName"] = json!("of-another");
    assert_eq!(refused(&[DB], &other), NoShape::OtherPvc(DB.pvc.to_owned()));
    let half = |pod: &mut Value| {
        pod["initContainers"]
            .as_array_mut()
            .unwrap()
            .retain(|c| field(c, "name") != Some("blkdevmapper-metadata"));
    };
    assert_eq!(refused(&[DB], &half), NoShape::OtherPvc(DB.pvc.to_owned()));
    assert_eq!(refused(&[], &half), NoShape::SecondPvc("encryption-open-metadata".to_owned()));
    let script = |pod: &mut Value| pod["initContainers"][2]["command"] = json!(["open-all"]);
    let no_path = NoShape::Text {
        container: "encryption-open".to_owned(),
        text: "/var/lib/ceph/osd/ceph-3/block-tmp".to_owned(),
    };
    assert_eq!(refused(&[DB, WAL], &script), no_path);
}
