use super::*;
use crate::domain::act::{Fresh, SourceDeployment};
use crate::domain::osd::{CrushItem, Role};
use crate::domain::policy::Declaration;
use crate::k8s::osd::fields::env;
use crate::k8s::osd::osd_on_pvc::tests::{old, recorded};
use crate::k8s::osd::render_osd::tests::{declaration, deploy, frame};
use crate::k8s::osd::rook_pvc_shapes::{DB, PVC, Part, RELEASES, Rook, Shape, WAL};

const NEW_DATA: &str = "set1-data-1x";

/// Returns the start of a new OSD of the set on node h2.
pub(in crate::k8s::osd) fn new_osd(encrypted: bool, others: &[Part]) -> Deploy {
    let of = |part: Part, name: &str| others.contains(&part).then(|| name.to_owned());
    let pvcs =
        PerPvc { data: NEW_DATA.to_owned(), db: of(DB, "set1-metadata-1y"), wal: of(WAL, "set1-wal-1z") };
    let location =
        [("root", "default"), ("host", "h2")].map(|(kind, name)| (kind.to_owned(), name.to_owned()));
    let source = SourceDeployment { osd: OsdId(3), deployment: "d-uid".to_owned() };
    let base = deploy();
    let crush = CrushItem { location: location.into(), device_class: None, ..base.crush };
    Deploy {
        osd: OsdId(12),
        crush,
        layout: crate::domain::osd::Layout { encrypted, ..base.layout },
        fresh: Some(Fresh { replaces: None, source: Some(source) }),
        pvcs: Some(recorded(&pvcs)),
        ..base
    }
}

fn made(deploy: &Deploy, source: &Value) -> Result<Value, NoShape> {
    let declaration = Declaration { image: String::new(), ..declaration() };
    let on_h2 = Frame { hostname: "h2", ..frame(&declaration) };
    made_from(source, deploy, &deploy.pvc_names().unwrap(), &on_h2)
}

/// Returns the Deployment of the other OSD as the API server has it.
fn found(shape: Shape) -> Value {
    let mut found = shape.deployment();
    found["metadata"]["uid"] = json!("d-uid");
    found["metadata"]["resourceVersion"] = json!("77");
    found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("4");
    found["status"] = json!({"replicas": 1});
    found
}

/// Returns what the same release renders for the new OSD: all texts that name the other one are replaced.
fn expected(shape: Shape) -> Value {
    let fsid = shape.fsid.to_string();
    let pairs = [
        (PVC, NEW_DATA),
        (DB.pvc, "set1-metadata-1y"),
        (WAL.pvc, "set1-wal-1z"),
        ("ceph-3", "ceph-12"),
        ("rook-ceph-osd-3", "rook-ceph-osd-12"),
        ("\"3\"", "\"12\""),
        ("\"h1\"", "\"h2\""),
        ("host=h1", "host=h2"),
        (fsid.as_str(), "2b0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b22"),
    ];
    let text = pairs.iter().fold(shape.deployment().to_string(), |text, (from, to)| text.replace(from, to));
    let mut expected: Value = serde_json::from_str(&text).unwrap();
    for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
        let labels = expected.pointer_mut(labels).unwrap();
        labels["encrypted"] = json!(if shape.encrypted { "true" } else { "false" });
        labels["failure-domain"] = json!("h2");
    }
    expected["spec"]["template"]["metadata"]["annotations"] =
        json!({"cephx-status": r#"{"keyCephVersion":"Uninitialized"}"#});
    expected
}

#[test]
fn deployment_of_a_new_osd_on_a_pvc_is_as_its_rook_release_renders_it() {
    for (rook, encrypted) in RELEASES.into_iter().flat_map(|rook| [(rook, false), (rook, true)]) {
        for others in [&[][..], &[DB], &[DB, WAL]] {
            let shape = Shape {
                others: if others.is_empty() {
                    &[]
                } else if others.len() == 1 {
                    &[DB]
                } else {
                    &[DB, WAL]
                },
                ..old(rook, encrypted)
            };
            let new = made(&new_osd(encrypted, others), &found(shape)).unwrap();
            assert_eq!(new, expected(shape), "{rook:?} {encrypted}");
        }
    }
}

#[test]
fn captured_deployments_lend_their_shape_without_a_name_of_their_own() {
    for (text, encrypted, others) in [
        (include_str!("../../../tests/suite/fixtures/pvc/16.2.15/plain.deployment.json"), false, &[][..]),
        (include_str!("../../../tests/suite/fixtures/pvc/16.2.15/encrypted.deployment.json"), true, &[]),
        (include_str!("../../../tests/suite/fixtures/pvc/16.2.15/database.deployment.json"), false, &[DB]),
    ] {
        let source: Value = serde_json::from_str(text).unwrap();
        let parsed = daemon::parse(&source).unwrap();
        let encrypted = encrypted || parsed.daemon.opens_encryption;
        let deploy = new_osd(encrypted, others);
        let new = made(&deploy, &source).unwrap();
        let read = daemon::parse(&new).unwrap();
        assert_eq!((read.osd, read.daemon.fsid), (OsdId(12), Some(deploy.fsid)));
        assert_eq!(read.hostname.as_deref(), Some("h2"));
        let on = read.daemon.on_pvcs.unwrap();
        let pvcs = deploy.pvc_names().unwrap();
        assert_eq!((on.data, on.db, on.wal), (Some(pvcs.data.clone()), pvcs.db.clone(), None));
        assert_eq!(env(&new, "ROOK_OSD_ID"), Some("12"));
        let text = new.to_string();
        let on = parsed.daemon.on_pvcs.unwrap();
        let fsid = parsed.daemon.fsid.map(|fsid| fsid.to_string());
        for name in [on.data, on.db, fsid].into_iter().flatten() {
            assert!(!text.contains(&name), "{name} in {text}");
        }
        let id = parsed.osd.0;
        for name in [
            format!("ceph-{id}/"),
            format!("\"ceph-{id}\""),
            format!("rook-ceph-osd-{id}"),
            format!("osd.{id}\""),
        ] {
            assert!(!text.contains(&name), "{name} in {text}");
        }
        let path = crate::domain::osd::pvc::mapping_path(&pvcs.data, Role::Block);
        assert_eq!(text.contains(&path), encrypted);
    }
}

/// Checks that what a person ordered for the source is not ordered for the new OSD: a fence, a replacement.
#[test]
fn orders_for_another_osd_are_not_those_of_the_new_one() {
    let mut source = found(old(Rook::V1_20, false));
    let metadata = &mut source["metadata"];
    metadata["labels"]["ceph.rook.io/do-not-reconcile"] = json!("true");
    metadata["annotations"]["osd.rook.io/replace"] = json!("yes-really-replace-osd-3");
    metadata["annotations"]["example.com/team"] = json!("storage");
    let new = made(&new_osd(false, &[]), &source).unwrap();
    assert!(new["metadata"]["labels"].get("ceph.rook.io/do-not-reconcile").is_none());
    let annotations = &new["metadata"]["annotations"];
    assert_eq!(
        (annotations.get("osd.rook.io/replace"), &annotations["example.com/team"]),
        (None, &json!("storage"))
    );
}

#[test]
fn deployment_that_cannot_be_the_pattern_is_refused() {
    let shape = old(Rook::V1_20, false);
    let refused = |change: &dyn Fn(&mut Value), others: &[Part]| {
        let mut source = found(shape);
        change(&mut source);
        made(&new_osd(false, others), &source).unwrap_err()
    };
    let portable = found(Shape { portable: true, ..shape });
    assert_eq!(made(&new_osd(false, &[]), &portable), Err(NoShape::Portable));
    assert_eq!(refused(&|_| {}, &[DB]), NoShape::OtherParts);
    let no_node = |d: &mut Value| d["spec"]["template"]["spec"]["nodeSelector"] = json!({});
    assert_eq!(refused(&no_node, &[]), NoShape::Portable);
    let other_set = |d: &mut Value| d["metadata"]["labels"]["ceph.rook.io/DeviceSet"] = json!("set2");
    assert_eq!(refused(&other_set, &[]), NoShape::PvcName);
    let set = |d: &mut Value| d["metadata"]["labels"]["ceph.rook.io/DeviceSet"].take();
    let with_dot = |d: &mut Value| {
        let name = set(d).as_str().unwrap().to_owned();
        let text = d.to_string().replace(&format!("{name}-"), &format!("{name}-a-"));
        *d = serde_json::from_str(&text).unwrap();
        d["metadata"]["labels"]["ceph.rook.io/DeviceSet"] = json!(format!("{name}.a"));
    };
    let mut source = found(shape);
    with_dot(&mut source);
    assert!(made(&new_osd(false, &[]), &source).is_ok());
    let no_place =
        |d: &mut Value| d["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--id", "3"]);
    assert!(matches!(refused(&no_place, &[]), NoShape::Text { text, .. } if text == "--crush-location="));
    let no_copy = |d: &mut Value| {
        drop(d["spec"]["template"]["spec"]["initContainers"].as_array_mut().unwrap().remove(0));
    };
    assert_eq!(refused(&no_copy, &[]), NoShape::Container("blkdevmapper"));
}

#[test]
fn declared_device_class_and_settings_of_the_node_are_those_of_the_new_osd() {
    let mut source = found(old(Rook::V1_20, false));
    let config = json!({"name": "rook-config-override", "projected": {"sources": [{"configMap": {"name": "rook-config-override-h1"}}]}});
    source["spec"]["template"]["spec"]["volumes"][0] = config;
    let mut deploy = new_osd(false, &[]);
    deploy.crush.device_class = Some("ssd".to_owned());
    let new = made(&deploy, &source).unwrap();
    assert_eq!(label(&new, "device-class"), Some("ssd"));
    assert_eq!(env(&new, "ROOK_OSD_CRUSH_DEVICE_CLASS"), Some("ssd"));
    let map = new.pointer("/spec/template/spec/volumes/0/projected/sources/0/configMap/name");
    assert_eq!(map, Some(&json!("rook-config-override")));
}
