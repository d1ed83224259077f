//! The exact requests that start a recreated OSD on a PVC. None asks for its node, which may be gone.

use serde_json::{Value, json};

use crate::domain::observation::Admission;
use crate::domain::osd::Mode;
use crate::k8s::osd::osd_on_pvc::tests::{on_pvc, on_pvcs};
use crate::k8s::osd::render_osd::tests::declaration;
use crate::k8s::osd::rook_pvc_shapes::{DB, Rook, Shape};
use crate::k8s::wire::{BACKUP, FIND, PUT, list, on, play};
use crate::k8s::{Deployed, K8s, K8sError, STOPPED};

const FSID: &str = "6a1b2c3d-0000-4000-8000-000000000001";

/// Returns the Deployment of the old OSD as the API server has it: plain, stopped for record `r1`.
fn stopped() -> Value {
    let fsid = "1f0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b11".parse().unwrap();
    let shape = Shape {
        rook: Rook::V1_18,
        encrypted: false,
        vault: false,
        portable: false,
        mode: Mode::Raw,
        fsid,
        others: &[],
    };
    let mut deployment = shape.deployment();
    deployment["metadata"]["annotations"] = json!({STOPPED: "r1", "note": "of its owner"});
    deployment["metadata"]["uid"] = json!("d-uid");
    deployment["metadata"]["resourceVersion"] = json!("77");
    deployment["metadata"]["generation"] = json!(5);
    deployment["spec"]["replicas"] = json!(0);
    deployment
}

fn without_copy() -> Value {
    let mut found = stopped();
    found.pointer_mut("/spec/template/spec/initContainers").and_then(Value::as_array_mut).unwrap().remove(0);
    found
}

async fn deploy(k8s: &K8s) -> Result<Deployed, K8sError> {
    k8s.deploy(&on_pvc(true), &declaration(), &FSID.parse().unwrap()).await
}

/// Asserts what distinguishes the new Deployment from the found one, and from one of a disk of a node.
fn assert_reshaped(body: &Value) {
    assert_eq!(
        (&body["metadata"]["annotations"], &body["spec"]["replicas"]),
        (&json!({"note": "of its owner"}), &json!(1))
    );
    let pod = &body["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][1]["name"], "encryption-open");
    assert_eq!(pod["volumes"][1]["persistentVolumeClaim"]["claimName"], "set1-data-0a");
    assert!(!pod.to_string().contains("activate-osd"));
}

#[tokio::test]
async fn osd_on_pvc_is_deployed_by_one_put_of_the_found_object() {
    let script = vec![
        on(FIND, 200, list(&[stopped()])),
        on(PUT, 200, stopped()).with(|body| {
            assert_reshaped(&body);
            let metadata = &body["metadata"];
            assert_eq!((&metadata["uid"], &metadata["resourceVersion"]), (&json!("d-uid"), &json!("77")));
        }),
    ];
    assert_eq!(play(script, deploy).await.unwrap(), Deployed::Done);
}

#[tokio::test]
async fn osd_on_pvc_without_deployment_is_created_from_the_backup() {
    let backup = json!({"metadata": {"name": "osd-migrate-osd-3", "annotations": {"osd-migrate.io/record": "r1"}},
        "data": {"deployment": stopped().to_string()}});
    let create = "POST /apis/apps/v1/namespaces/rook-ceph/deployments?&fieldManager=osd-migrate";
    let script = vec![
        on(FIND, 200, list(&[])),
        on(BACKUP, 200, backup),
        on(create, 201, stopped()).with(|body| {
            assert_reshaped(&body);
            let metadata = &body["metadata"];
            assert_eq!((metadata.get("uid"), metadata.get("resourceVersion")), (None, None));
        }),
    ];
    assert_eq!(play(script, deploy).await.unwrap(), Deployed::Done);
}

#[tokio::test]
async fn osd_on_pvc_of_unknown_shape_is_not_written() {
    let script = vec![on(FIND, 200, list(&[without_copy()]))];
    let error = play(script, deploy).await.unwrap_err();
    assert!(matches!(error, K8sError::Malformed { .. }), "a person has to decide: {error}");
    let error = error.to_string();
    assert!(error.contains("it has no container `blkdevmapper`"), "{error}");
    assert!(error.contains("kubectl -n rook-ceph get deployment rook-ceph-osd-3 -o yaml"), "{error}");
}

#[tokio::test]
async fn dry_run_before_the_stop_is_of_the_reshaped_deployment() {
    let dry = "PUT /apis/apps/v1/namespaces/rook-ceph/deployments/rook-ceph-osd-3?&dryRun=All&fieldManager=osd-migrate";
    let script = vec![
        on(FIND, 200, list(&[stopped()])),
        on(dry, 200, stopped()).with(|body| {
            assert_reshaped(&body);
            assert_eq!((body["metadata"].get("uid"), body["metadata"].get("resourceVersion")), (None, None));
        }),
    ];
    let admits =
        async |k8s: &K8s| k8s.admits(&on_pvc(true), Some("h1"), &declaration(), &FSID.parse().unwrap()).await;
    assert_eq!(play(script, admits).await.unwrap(), Admission::Admitted);
    let script = vec![on(FIND, 200, list(&[without_copy()]))];
    let Admission::Refused(why) = play(script, admits).await.unwrap() else { panic!("it would be stopped") };
    assert!(why.contains("it has no container `blkdevmapper`"), "{why}");
}

#[tokio::test]
async fn database_on_a_pvc_is_in_the_dry_run_and_in_the_put() {
    fn expect_database(body: &Value) {
        let pod = &body["spec"]["template"]["spec"];
        let copying = &pod["initContainers"][1];
        assert_eq!(copying["name"], "blkdevmapper-metadata");
        assert_eq!(copying["volumeDevices"], json!([{"name": DB.pvc, "devicePath": "/set1-metadata-0b"}]));
        assert_eq!(pod["volumes"][3]["persistentVolumeClaim"]["claimName"], DB.pvc);
    }
    let dry = PUT.replace('?', "?&dryRun=All");
    let script = vec![
        on(FIND, 200, list(&[stopped()])),
        on(&dry, 200, stopped()).with(|body| expect_database(&body)),
        on(FIND, 200, list(&[stopped()])),
        on(PUT, 200, stopped()).with(|body| expect_database(&body)),
    ];
    let both = async |k8s: &K8s| {
        let (deploy, cluster) = (on_pvcs(false, &[DB]), FSID.parse().unwrap());
        (
            k8s.admits(&deploy, None, &declaration(), &cluster).await,
            k8s.deploy(&deploy, &declaration(), &cluster).await,
        )
    };
    let (admitted, deployed) = play(script, both).await;
    assert_eq!((admitted.unwrap(), deployed.unwrap()), (Admission::Admitted, Deployed::Done));
}
