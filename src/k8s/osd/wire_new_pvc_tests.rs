//! The exact requests that start a new OSD on a PVC.

use serde_json::{Value, json};

use crate::domain::act::{Deploy, Fresh};
use crate::domain::observation::Admission;
use crate::k8s::osd::new_on_pvc::tests::new_osd;
use crate::k8s::osd::osd_on_pvc::tests::old;
use crate::k8s::osd::render_osd::tests::declaration;
use crate::k8s::osd::rook_pvc_shapes::Rook;
use crate::k8s::wire::{CLUSTERS, Exchange, FIND, list, on, play, refusal};
use crate::k8s::{Deployed, K8s, K8sError};

const FSID: &str = "6a1b2c3d-0000-4000-8000-000000000001";
const CREATE: &str = "POST /apis/apps/v1/namespaces/rook-ceph/deployments?&fieldManager=osd-migrate";

fn source() -> Value {
    let mut deployment = old(Rook::V1_18, false).deployment();
    deployment["metadata"]["uid"] = json!("d-uid");
    deployment["metadata"]["generation"] = json!(5);
    deployment
}

fn node() -> Exchange {
    let node = json!({"metadata": {"name": "h2", "labels": {"kubernetes.io/hostname": "h2"}}});
    on("GET /api/v1/nodes/h1.example", 200, node)
}

fn owner() -> Exchange {
    let owner = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
        "metadata": {"name": "my-cluster", "uid": "c-uid"}, "spec": {}});
    on(CLUSTERS, 200, list(&[owner]))
}

/// Returns the request for the Deployment of the new OSD.
fn find_new(found: &[Value]) -> Exchange {
    on(&FIND.replace("%3D3&", "%3D12&"), 200, list(found))
}

fn assert_new(body: &Value) {
    assert_eq!(body["metadata"]["name"], "rook-ceph-osd-12");
    assert_eq!((body["metadata"].get("uid"), body.get("status")), (None, None));
    assert_eq!(body["spec"]["template"]["spec"]["nodeSelector"], json!({"kubernetes.io/hostname": "h2"}));
    assert_eq!(body["metadata"]["labels"]["ceph.rook.io/pvc"], "set1-data-1x");
}

async fn deploy(k8s: &K8s, deploy: &Deploy) -> Result<Deployed, K8sError> {
    k8s.deploy(deploy, &declaration(), &FSID.parse().unwrap()).await
}

#[tokio::test]
async fn new_osd_on_a_pvc_is_created_from_the_deployment_of_another() {
    let script = vec![
        node(),
        owner(),
        on(FIND, 200, list(&[source()])),
        find_new(&[]),
        on(CREATE, 201, source()).with(|body| assert_new(&body)),
    ];
    let new = new_osd(false, &[]);
    assert_eq!(play(script, async |k8s: &K8s| deploy(k8s, &new).await).await.unwrap(), Deployed::Done);
}

#[tokio::test]
async fn deployment_is_not_created_from_one_that_was_recreated() {
    let mut recreated = source();
    recreated["metadata"]["uid"] = json!("other");
    let new = new_osd(false, &[]);
    for found in [vec![recreated], vec![]] {
        let script = vec![node(), owner(), on(FIND, 200, list(&found))];
        let error = play(script, async |k8s: &K8s| deploy(k8s, &new).await).await.unwrap_err();
        assert!(matches!(error, K8sError::Unexpected { .. }), "{error}");
    }
    let without = Deploy { fresh: Some(Fresh { replaces: None, source: None }), ..new };
    let error = play(vec![], async |k8s: &K8s| deploy(k8s, &without).await).await.unwrap_err();
    assert!(error.to_string().contains("no Deployment of its device set"), "{error}");
}

#[tokio::test]
async fn dry_run_of_a_new_osd_on_a_pvc_says_why_it_cannot_be() {
    let dry = CREATE.replace('?', "?&dryRun=All");
    let new = new_osd(false, &[]);
    let admits = async |k8s: &K8s| k8s.admits(&new, None, &declaration(), &FSID.parse().unwrap()).await;
    let script = vec![
        node(),
        on(FIND, 200, list(&[source()])),
        find_new(&[]),
        on(&dry, 201, source()).with(|body| assert_new(&body)),
    ];
    assert_eq!(play(script, admits).await.unwrap(), Admission::Admitted);
    let mut portable = source();
    portable["metadata"]["labels"]["portable"] = json!("true");
    let script = vec![node(), on(FIND, 200, list(&[portable]))];
    let Admission::Refused(why) = play(script, admits).await.unwrap() else { panic!("it would be created") };
    assert!(
        why.contains("its pods are not pinned to a node, so osd-migrate cannot make the Deployment"),
        "{why}"
    );
    assert!(why.contains("kubectl -n rook-ceph get deployment rook-ceph-osd-3 -o yaml"), "{why}");
}

const PVC: &str = "GET /api/v1/namespaces/rook-ceph/persistentvolumeclaims/set1-data-1x";
const VOLUME: &str = "GET /api/v1/persistentvolumes/pv-of-set1-data-1x";

fn pvc(uid: &str) -> Exchange {
    let pvc = json!({"metadata": {"name": "set1-data-1x", "uid": uid},
        "spec": {"volumeName": "pv-of-set1-data-1x", "volumeMode": "Block"}});
    on(PVC, 200, pvc)
}

fn volume(uid: &str) -> Exchange {
    on(VOLUME, 200, json!({"metadata": {"name": "pv-of-set1-data-1x", "uid": uid}}))
}

#[tokio::test]
async fn pvc_is_read_with_its_volume_before_the_osd_is_started() {
    let recorded = new_osd(false, &[]).pvcs.unwrap();
    let check = async |script| play(script, async |k8s: &K8s| k8s.expect_pvcs(&recorded).await).await;
    let (ours, of_volume) = ("uid-of-set1-data-1x", "uid-of-pv-of-set1-data-1x");
    check(vec![pvc(ours), volume(of_volume)]).await.unwrap();
    let missing = |what: &str| on(what, 404, refusal(404, "NotFound"));
    for script in [
        vec![pvc("other"), volume(of_volume)],
        vec![pvc(ours), volume("other")],
        vec![pvc(ours), missing(VOLUME)],
        vec![missing(PVC)],
    ] {
        let error = check(script).await.unwrap_err();
        assert!(error.to_string().contains("no longer on PersistentVolume pv-of-set1-data-1x"), "{error}");
    }
}
