//! Our Deployments are read back as Rook's operator does at its next reconcile (master of 2026-08,
//! `getOSDInfo`, `getNodeOrPVCName`, and the disruption controller's labels). Rook regenerates the Deployment
//! from these fields and uses no others.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::domain::act::Deploy;
use crate::domain::osd::{Layout, Mode, ObjectStore};
use crate::k8s::osd::render_osd::render;
use crate::k8s::osd::render_osd::tests::{declaration, deploy, frame};

/// Values of an OSD that Rook has after it has read the OSD's Deployment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadBack {
    id: u32,
    pub(super) uuid: String,
    node: String,
    /// PVC of an OSD that is on one.
    pub(super) pvc: Option<String>,
    pub(super) block_path: String,
    pub(super) mode: String,
    pub(super) db_path: String,
    pub(super) wal_path: String,
    pub(super) class: String,
    pub(super) location: String,
    pub(super) store: String,
    pub(super) encrypted: bool,
    failure_domains: BTreeMap<String, String>,
    pub(super) key: String,
}

/// Reads a Deployment as Rook does.
///
/// An error is one of Rook's, too: with it the reconcile of all OSDs fails.
pub(super) fn read_back(deployment: &Value) -> Result<ReadBack, String> {
    let label = |key: &str| deployment["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
    let containers =
        deployment["spec"]["template"]["spec"]["containers"].as_array().ok_or("no containers")?;
    let osd = containers.iter().find(|c| c["name"] == "osd").ok_or("no container osd")?;
    let env = |keys: &[&str]| {
        // The last one wins, and one without a plain value reads as empty.
        let mut vars = osd["env"].as_array().into_iter().flatten();
        let found = vars.rfind(|v| keys.iter().any(|key| v["name"] == *key));
        found.and_then(|v| v["value"].as_str()).unwrap_or_default().to_owned()
    };
    let is_on_pvc =
        osd["env"].as_array().is_some_and(|vars| vars.iter().any(|v| v["name"] == "ROOK_PVC_BACKED_OSD"));
    let pvc = Some(label("ceph.rook.io/pvc")).filter(|_| is_on_pvc);
    let (uuid, block_path) = (env(&["ROOK_OSD_UUID"]), env(&["ROOK_BLOCK_PATH", "ROOK_LV_PATH"]));
    let node = deployment["spec"]["template"]["spec"]["nodeSelector"].as_object();
    let node = node.and_then(|labels| labels.get("kubernetes.io/hostname")).and_then(Value::as_str);
    let node = if is_on_pvc { node.unwrap_or_default() } else { node.ok_or("no node")? };
    let is_somewhere = if is_on_pvc { pvc.as_deref() != Some("") } else { env(&["ROOK_NODE_NAME"]) == node };
    if uuid.is_empty() || block_path.is_empty() || !is_somewhere {
        return Err(format!("required: uuid `{uuid}`, block path `{block_path}`, node `{node}`"));
    }
    let mut args = osd["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let location = args.find_map(|arg| arg.strip_prefix("--crush-location=")).ok_or("no location")?;
    let mode = Some(env(&["ROOK_CV_MODE"])).filter(|mode| !mode.is_empty());
    let labels = deployment["metadata"]["labels"].as_object().ok_or("no labels")?;
    let domain = |(key, value): (&String, &Value)| {
        Some((key.strip_prefix("topology-location-")?.to_owned(), value.as_str()?.to_owned()))
    };
    Ok(ReadBack {
        id: label("ceph-osd-id").parse().map_err(|_| "no id")?,
        node: node.to_owned(),
        pvc,
        encrypted: label("encrypted") == "true" || block_path.contains("-dmcrypt"),
        uuid,
        block_path,
        mode: mode.unwrap_or_else(|| "lvm".to_owned()),
        db_path: env(&["ROOK_METADATA_DEVICE"]),
        wal_path: env(&["ROOK_WAL_DEVICE"]),
        class: env(&["ROOK_OSD_DEVICE_CLASS"]),
        location: location.to_owned(),
        store: label("osd-store"),
        failure_domains: labels.iter().filter_map(domain).collect(),
        key: key(&deployment["spec"]["template"]["metadata"]["annotations"]["cephx-status"])?,
    })
}

/// Returns how Rook classifies the OSD's key: of unknown age, new, or of the recorded generation
/// (`getOSDInfo`, `UpdatedCephxStatus`, v1.20.6).
fn key(annotation: &Value) -> Result<String, String> {
    let status: Value = match annotation.as_str() {
        Some(text) => serde_json::from_str(text).map_err(|e| e.to_string())?,
        None => json!({}),
    };
    Ok(match (status["keyCephVersion"].as_str(), status["keyGeneration"].as_u64()) {
        (Some("Uninitialized"), _) => "new".to_owned(),
        (_, Some(generation)) => format!("of generation {generation}"),
        (_, None) => "of unknown age".to_owned(),
    })
}

fn rendered(deploy: &Deploy, old: &Value) -> Value {
    render(deploy, old, &frame(&declaration()))
}

fn layout(mode: Mode, encrypted: bool) -> Layout {
    Layout { store: ObjectStore::bluestore(), mode, encrypted }
}

fn expected(deploy: &Deploy) -> ReadBack {
    let place = [("root", "default"), ("host", "h1-example"), ("zone", "z1")];
    ReadBack {
        id: deploy.osd.0,
        uuid: deploy.fsid.to_string(),
        node: "h1.example".to_owned(),
        pvc: None,
        block_path: deploy.block_path.clone(),
        mode: if deploy.layout.mode == Mode::Raw { "raw" } else { "lvm" }.to_owned(),
        // Rook's next reconcile would change the Deployment again if it read them.
        db_path: String::new(),
        wal_path: String::new(),
        class: "hdd".to_owned(),
        location: "root=default host=h1-example zone=z1".to_owned(),
        store: "bluestore".to_owned(),
        encrypted: deploy.layout.encrypted,
        failure_domains: place.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        key: "new".to_owned(),
    }
}

/// Returns every shape that this version leaves: raw, on LVM alone, with database and log, encrypted.
fn shapes() -> [Deploy; 5] {
    let lvm = || Deploy {
        block_path: "/dev/ceph-vg/osd-block".to_owned(),
        layout: layout(Mode::Lvm, false),
        ..deploy()
    };
    let (db_path, wal_path) =
        (Some("/dev/ceph-db/osd-db".to_owned()), Some("/dev/ceph-db/osd-wal".to_owned()));
    [
        deploy(),
        lvm(),
        Deploy { db_path: db_path.clone(), ..lvm() },
        Deploy { db_path: db_path.clone(), wal_path, ..lvm() },
        Deploy { layout: layout(Mode::Lvm, true), db_path, ..lvm() },
    ]
}

/// Returns a Deployment as Rook 1.2 and before left it: with none of the fields that Rook reads today.
fn legacy() -> Value {
    json!({
        "metadata": {"name": "rook-ceph-osd-3", "labels": {"app": "rook-ceph-osd", "ceph-osd-id": "3"}},
        "spec": {"replicas": 0, "template": {"spec": {
            "nodeSelector": {"kubernetes.io/hostname": "h1.example"},
            "containers": [{"name": "osd", "image": "ceph:old", "command": ["ceph-osd"],
                "env": [{"name": "ROOK_OSD_STORE_TYPE", "value": "filestore"}, {"name": "ROOK_LV_PATH", "value": "/dev/gone"}],
                "args": ["--osd-data", "/var/lib/rook/osd3", "--osd-uuid", "1f0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b11"]}],
        }}},
    })
}

/// Returns a Deployment as a Rook left it that had rotated the OSD's key, which was destroyed with the OSD.
fn rotated() -> Value {
    let mut old = legacy();
    old["spec"]["template"]["metadata"]["annotations"] =
        json!({"cephx-status": r#"{"keyGeneration":3,"keyCephVersion":"20.2.4-0"}"#});
    assert_eq!(
        key(&old["spec"]["template"]["metadata"]["annotations"]["cephx-status"]),
        Ok("of generation 3".to_owned())
    );
    old
}

#[test]
fn rook_reads_back_every_field_whatever_was_deployed_before() {
    for deploy in shapes() {
        for old in [json!({}), legacy(), rendered(&shapes()[4], &json!({})), rotated()] {
            assert_eq!(read_back(&rendered(&deploy, &old)), Ok(expected(&deploy)), "after {old}");
        }
    }
}

/// Covers Deployments of Rook before 1.18 and of earlier osd-migrate versions, without a record of the key.
#[test]
fn cephx_key_without_a_recorded_status_is_not_read_as_new() {
    let mut silent = rendered(&deploy(), &json!({}));
    silent["spec"]["template"]["metadata"]["annotations"] = json!({});
    assert_eq!(read_back(&silent).unwrap().key, "of unknown age");
}

/// Proves that the reader is no stub: a modern Rook fails on legacy Deployments, which this version fixes.
#[test]
fn legacy_deployment_fails_when_rook_reads_it_back() {
    assert!(read_back(&legacy()).unwrap_err().starts_with("required: uuid ``"));
    let mut without_path = rendered(&deploy(), &json!({}));
    let vars =
        without_path.pointer_mut("/spec/template/spec/containers/0/env").unwrap().as_array_mut().unwrap();
    vars.retain(|v| v["name"] != "ROOK_BLOCK_PATH");
    assert!(read_back(&without_path).is_err());
}

/// Guards against old fields: Rook updates by a three-way diff with the state in this annotation, so a stale
/// state would bring them back.
#[test]
fn last_applied_annotation_of_rook_is_not_carried_over() {
    let mut old = legacy();
    old["metadata"]["annotations"] = json!({"banzaicloud.com/last-applied": "stale"});
    assert_eq!(
        rendered(&deploy(), &old).pointer("/metadata/annotations/banzaicloud.com~1last-applied"),
        None
    );
}
