use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::ledger::RecordedPvc;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{Layout, Mode, ObjectStore, OsdId};
use crate::domain::policy::Declaration;
use crate::k8s::osd::daemon;
use crate::k8s::osd::osd_object::stopped;
use crate::k8s::osd::render_osd::can_activate;
use crate::k8s::osd::render_osd::tests::{declaration, deploy, frame};
use crate::k8s::osd::rook_pvc_shapes::{DB, PVC, Part, RELEASES, Rook, Shape, WAL};
use crate::k8s::osd::rook_reads_back_tests::read_back;

const OLD: &str = "1f0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b11";

/// Returns the records of PVCs.
pub(in crate::k8s::osd) fn recorded(pvcs: &PerPvc<String>) -> PerPvc<RecordedPvc> {
    let of = |name: &String| RecordedPvc {
        name: name.clone(),
        uid: format!("uid-of-{name}"),
        volume: format!("pv-of-{name}"),
        volume_uid: format!("uid-of-pv-of-{name}"),
    };
    pvcs.map(of)
}

/// Returns the start of a recreated OSD with the fsid of `deploy`.
pub(in crate::k8s::osd) fn on_pvc(encrypted: bool) -> Deploy {
    let layout = Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted };
    Deploy { layout, pvcs: Some(recorded(&PerPvc::of_data(PVC.to_owned()))), ..deploy() }
}

/// Returns the start of a recreated OSD with database or log on PVCs of their own.
pub(in crate::k8s::osd) fn on_pvcs(encrypted: bool, others: &[Part]) -> Deploy {
    let pvc = |part: Part| others.contains(&part).then(|| part.pvc.to_owned());
    let pvcs = PerPvc { data: PVC.to_owned(), db: pvc(DB), wal: pvc(WAL) };
    Deploy { pvcs: Some(recorded(&pvcs)), ..on_pvc(encrypted) }
}

/// Returns the Deployment of the old OSD as a Rook release renders it.
pub(in crate::k8s::osd) fn old(rook: Rook, encrypted: bool) -> Shape {
    let fsid = OLD.parse().unwrap();
    Shape { rook, encrypted, vault: false, portable: false, mode: Mode::Raw, fsid, others: &[] }
}

/// Returns the Deployment that the same release renders for the recreated OSD, which has the label
/// `encrypted` from any release.
pub(in crate::k8s::osd) fn expected(old: Shape, encrypted: bool) -> Value {
    let mut expected = Shape { encrypted, mode: Mode::Raw, fsid: deploy().fsid, ..old }.deployment();
    for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
        let labels = expected.pointer_mut(labels).unwrap();
        labels["encrypted"] = json!(if encrypted { "true" } else { "false" });
    }
    expected["spec"]["template"]["metadata"]["annotations"] =
        json!({"cephx-status": r#"{"keyCephVersion":"Uninitialized"}"#});
    expected
}

/// Reshapes a Deployment as the API server returns it, stopped, without a declared image.
pub(in crate::k8s::osd) fn reshaped(deploy: &Deploy, found: &Value) -> Result<Value, NoShape> {
    let mut found = stopped(found.clone(), &RecordId("r1".to_owned()));
    found["metadata"]["uid"] = json!("d-uid");
    found["metadata"]["resourceVersion"] = json!("77");
    found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("4");
    found["status"] = json!({"replicas": 0});
    let declaration = Declaration { image: String::new(), ..declaration() };
    reshape(deploy, &deploy.pvc_names().unwrap(), &found, &frame(&declaration))
}

fn names(deployment: &Value) -> Vec<&str> {
    containers(deployment, "initContainers").filter_map(|c| field(c, "name")).collect()
}

/// Removes what differs from Rook: the script that opens a device, and its variables.
pub(in crate::k8s::osd) fn without_script(mut deployment: Value) -> Value {
    let opens = |c: &&mut Value| field(c, "name").is_some_and(|name| name.starts_with("encryption-open"));
    for container in all_mut(&mut deployment).filter(opens) {
        container["command"] = json!(["/bin/bash", "-c", "OPEN"]);
        container.as_object_mut().unwrap().remove("env");
    }
    deployment
}

#[test]
fn osd_on_pvc_becomes_encrypted_as_each_rook_release_renders_it() {
    for rook in RELEASES {
        let new = reshaped(&on_pvc(true), &old(rook, false).deployment()).unwrap();
        assert_eq!(without_script(new), without_script(expected(old(rook, false), true)), "{rook:?}");
    }
}

#[test]
fn osd_on_pvc_becomes_plain_as_each_rook_release_renders_it() {
    for rook in RELEASES {
        let new = reshaped(&on_pvc(false), &old(rook, true).deployment()).unwrap();
        assert_eq!(new, expected(old(rook, true), false), "{rook:?}");
    }
}

#[test]
fn osd_on_pvc_is_as_before_after_encryption_and_back() {
    for rook in RELEASES {
        let encrypted = reshaped(&on_pvc(true), &old(rook, false).deployment()).unwrap();
        let back = reshaped(&on_pvc(false), &encrypted).unwrap();
        assert_eq!(back, expected(old(rook, false), false), "{rook:?}");
    }
}

/// Covers a change of the store, and a Deployment that Rook changed before the OSD was migrated.
#[test]
fn osd_on_pvc_of_the_same_encryption_gets_only_new_values() {
    for (rook, encrypted) in RELEASES.into_iter().flat_map(|rook| [(rook, false), (rook, true)]) {
        let deploy = Deploy { store: "bluestore-rdr".to_owned(), ..on_pvc(encrypted) };
        let new = reshaped(&deploy, &old(rook, encrypted).deployment()).unwrap();
        let mut expected = expected(old(rook, encrypted), encrypted);
        expected["metadata"]["labels"]["osd-store"] = json!("bluestore-rdr");
        expected["spec"]["template"]["metadata"]["labels"]["osd-store"] = json!("bluestore-rdr");
        assert_eq!(new, expected, "{rook:?}, encrypted: {encrypted}");
    }
}

#[test]
fn osd_with_its_key_in_vault_loses_it_when_it_becomes_plain() {
    let old = Shape { vault: true, ..old(Rook::V1_20, true) };
    assert_eq!(reshaped(&on_pvc(false), &old.deployment()).unwrap(), expected(old, false));
}

#[test]
fn osd_with_its_key_in_vault_does_not_stay_encrypted() {
    let old = Shape { vault: true, ..old(Rook::V1_20, true) };
    assert_eq!(reshaped(&on_pvc(true), &old.deployment()), Err(NoShape::KeyInKms));
}

#[test]
fn portable_osd_keeps_its_affinity_to_the_topology() {
    let old = Shape { portable: true, ..old(Rook::V1_20, false) };
    let new = reshaped(&on_pvc(true), &old.deployment()).unwrap();
    assert_eq!(without_script(new.clone()), without_script(expected(old, true)));
    assert!(
        new.pointer("/spec/template/spec/affinity").is_some()
            && new.pointer("/spec/template/spec/nodeSelector").is_none()
    );
}

fn captured(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

const PLAIN: &str = include_str!("../../../tests/suite/fixtures/pvc/16.2.15/plain.deployment.json");
const ENCRYPTED: &str = include_str!("../../../tests/suite/fixtures/pvc/16.2.15/encrypted.deployment.json");

/// Returns the captured plain Deployment under the names of the encrypted one.
fn plain_under_other_names() -> Value {
    let names = [
        ("set1-data-077rxc", "set3-data-0r6h5b"),
        ("\"set1\"", "\"set3\""),
        ("ceph-3", "ceph-5"),
        ("ceph-osd-3", "ceph-osd-5"),
        ("\"3\"", "\"5\""),
        ("\"h1\"", "\"u1\""),
        ("host=h1", "host=u1"),
    ];
    captured(&names.iter().fold(PLAIN.to_owned(), |text, (from, to)| text.replace(from, to)))
}

/// Returns the start of the captured encrypted OSD, or of the same OSD without encryption.
fn of_captured(encrypted: bool) -> Deploy {
    let fsid = "d5a5911e-f627-441e-a4dc-3d40d07df4e3".parse().unwrap();
    Deploy {
        osd: OsdId(5),
        fsid,
        pvcs: Some(recorded(&PerPvc::of_data("set3-data-0r6h5b".to_owned()))),
        ..on_pvc(encrypted)
    }
}

/// Removes what the new Deployment does not get from the captured one.
fn comparable(deployment: Value) -> Value {
    let mut deployment = without_script(bare(deployment));
    deployment["metadata"]["annotations"] = json!({});
    deployment["spec"]["template"]["metadata"]["annotations"] =
        json!({"cephx-status": r#"{"keyCephVersion":"Uninitialized"}"#});
    deployment
}

#[test]
fn captured_plain_osd_becomes_the_captured_encrypted_one() {
    let new = reshaped(&of_captured(true), &plain_under_other_names()).unwrap();
    let open = init_container(&new, "encryption-open").unwrap();
    assert!(text(open, "/command/2").unwrap().contains("cryptsetup open"));
    let lab = captured(ENCRYPTED);
    let of_lab = |name: &str| env_of(init_container(&lab, "encryption-open").unwrap(), name);
    for name in [
        "ROOK_PVC_NAME",
        "ROOK_ENCRYPTION_KEY_FILE_PATH",
        "ROOK_ENCRYPTION_BLOCK_PATH",
        "ROOK_ENCRYPTION_DM_NAME",
        "ROOK_ENCRYPTION_DM_PATH",
    ] {
        assert_eq!(env_of(open, name), of_lab(name), "{name}");
        assert!(env_of(open, name).is_some());
    }
    assert_eq!(env_of(open, "ROOK_CEPH_FSID").as_deref(), Some("6a1b2c3d-0000-4000-8000-000000000001"));
    assert_eq!(comparable(new), comparable(lab));
}

fn env_of(container: &Value, name: &str) -> Option<String> {
    let list = container["env"].as_array()?;
    Some(list.iter().find(|v| v["name"] == name)?["value"].as_str()?.to_owned())
}

#[test]
fn captured_encrypted_osd_becomes_plain_again() {
    let new = reshaped(&of_captured(false), &captured(ENCRYPTED)).unwrap();
    let mut plain = comparable(plain_under_other_names());
    let osd = plain.pointer_mut("/spec/template/spec/containers/0").unwrap();
    set_variable(osd, "ROOK_OSD_UUID", "d5a5911e-f627-441e-a4dc-3d40d07df4e3");
    assert_eq!(comparable(new), plain);
}

#[test]
fn rook_reads_back_a_recreated_osd_on_a_pvc() {
    for (rook, from, to) in
        RELEASES.into_iter().flat_map(|rook| [(rook, false, true), (rook, true, false), (rook, true, true)])
    {
        let new = reshaped(&on_pvc(to), &old(rook, from).deployment()).unwrap();
        let read = read_back(&new).unwrap();
        let path = if to { format!("/dev/mapper/{PVC}-block-dmcrypt") } else { format!("/mnt/{PVC}") };
        assert_eq!(
            (read.uuid, read.block_path, read.mode.as_str()),
            (deploy().fsid.to_string(), path, "raw")
        );
        assert_eq!((read.pvc.as_deref(), read.encrypted, read.key.as_str()), (Some(PVC), to, "new"));
        assert_eq!((read.store.as_str(), read.class.as_str()), ("bluestore", "hdd"));
        assert_eq!(read.location, "root=default host=h1");
        let parsed = daemon::parse(&new).unwrap().daemon;
        assert_eq!((parsed.fsid, parsed.opens_encryption), (Some(deploy().fsid), to));
    }
}

#[test]
fn block_path_of_an_old_variable_is_not_read_back() {
    let mut found = old(Rook::V1_13, false).deployment();
    let env =
        found.pointer_mut("/spec/template/spec/containers/0/env").and_then(Value::as_array_mut).unwrap();
    env.push(json!({"name": "ROOK_LV_PATH", "value": "/dev/old"}));
    env.push(json!({"name": "ROOK_OSD_UUID", "value": OLD}));
    let read = read_back(&reshaped(&on_pvc(false), &found).unwrap()).unwrap();
    assert_eq!((read.block_path, read.uuid), (format!("/mnt/{PVC}"), deploy().fsid.to_string()));
}

#[test]
fn declared_image_replaces_that_of_the_osd_in_all_containers() {
    let mut found = old(Rook::V1_20, true).deployment();
    found["spec"]["template"]["spec"]["containers"][1]["image"] = json!("logs");
    let of_rook = json!({"name": "of-rook", "image": "rook"});
    found["spec"]["template"]["spec"]["initContainers"].as_array_mut().unwrap().push(of_rook);
    let new =
        reshape(&on_pvc(true), &PerPvc::of_data(PVC.to_owned()), &found, &frame(&declaration())).unwrap();
    let images: Vec<_> = containers(&new, "initContainers").map(|c| field(c, "image").unwrap()).collect();
    assert_eq!(images.iter().filter(|image| **image != "ceph:16.2.15").collect::<Vec<_>>(), [&"rook"]);
    let osd = new.pointer("/spec/template/spec/containers/0").unwrap();
    assert_eq!(
        (field(osd, "image"), env_of(osd, "CONTAINER_IMAGE").as_deref()),
        (Some("ceph:16.2.15"), Some("ceph:16.2.15"))
    );
    assert_eq!(text(&new, "/spec/template/spec/containers/1/image"), Some("logs"));
    let plain = reshape(
        &on_pvc(true),
        &PerPvc::of_data(PVC.to_owned()),
        &old(Rook::V1_13, false).deployment(),
        &frame(&declaration()),
    )
    .unwrap();
    assert!(!plain.to_string().contains("ceph:old"), "new containers are of the declared image, too");
}

#[test]
fn deployment_of_another_shape_is_refused_with_what_is_missing() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut found = old(Rook::V1_20, false).deployment();
        change(found.pointer_mut(POD_SPEC).unwrap());
        reshaped(&on_pvc(true), &found).unwrap_err()
    };
    let without = |name: &'static str| {
        move |pod: &mut Value| {
            pod["initContainers"].as_array_mut().unwrap().retain(|c| field(c, "name") != Some(name));
        }
    };
    assert_eq!(refused(&without("blkdevmapper")), NoShape::Container("blkdevmapper"));
    assert_eq!(refused(&without("activate")), NoShape::Container("activate"));
    let renamed = |pod: &mut Value| pod["containers"][0]["name"] = json!("daemon");
    assert_eq!(refused(&renamed), NoShape::Container("osd"));
    let other =
        |pod: &mut Value| pod["volumes"][1]["persistentVolumeClaim"]["claimName"] = json!("set1-data-0b");
    assert_eq!(refused(&other), NoShape::OtherPvc(PVC.to_owned()));
    let database = |pod: &mut Value| pod["initContainers"][2]["name"] = json!("blkdevmapper-metadata");
    assert_eq!(refused(&database), NoShape::SecondPvc("blkdevmapper-metadata".to_owned()));
    let script = |pod: &mut Value| pod["initContainers"][0]["command"] = json!(["copy-device"]);
    let no_path = NoShape::Text { container: "blkdevmapper".to_owned(), text: "/set1-data-0a".to_owned() };
    assert_eq!(refused(&script), no_path);
}

#[test]
fn encrypted_osd_on_a_pvc_can_be_activated_if_it_is_recreated() {
    assert_eq!(can_activate(&on_pvc(true)), Ok(()));
    assert!(can_activate(&Deploy { pvcs: None, ..on_pvc(true) }).is_err());
    let fresh = Some(crate::domain::act::Fresh { replaces: None, source: None });
    assert!(can_activate(&Deploy { fresh, ..on_pvc(false) }).is_err());
    let new = reshaped(&on_pvc(true), &old(Rook::V1_18, false).deployment()).unwrap();
    let order = [
        "blkdevmapper",
        "encryption-open",
        "blkdevmapper-encryption",
        "encrypted-block-status",
        "expand-encrypted-bluefs",
        "activate",
        "expand-bluefs",
        "cephx-keyring-update",
        "chown-container-data-dir",
    ];
    assert_eq!(names(&new), order);
}
