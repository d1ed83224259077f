//! The exact requests of inventories of the disks of nodes.

use serde_json::{Value, json};

use crate::k8s::nodes::inventory_job;
use crate::k8s::nodes::node_job;
use crate::k8s::osd::render_osd;
use crate::k8s::wire::{Exchange, on, play, refusal};
use crate::k8s::{K8s, K8sError, LEDGER, NewInventoryJob, NodePod, inventory_job_name};

const MAKE_MAP: &str = "POST /api/v1/namespaces/rook-ceph/configmaps?&fieldManager=osd-migrate";
const MAKE_JOB: &str = "POST /apis/batch/v1/namespaces/rook-ceph/jobs?&fieldManager=osd-migrate";
const LEDGER_GET: &str = "GET /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-ledger";

fn name() -> String {
    inventory_job_name(&inventory_job::tests::request())
}

fn map() -> Value {
    json!({"metadata": {"name": name(), "uid": "map"}})
}

async fn inventory(k8s: &K8s) -> Result<(), K8sError> {
    let (request, own) = (inventory_job::tests::request(), node_job::tests::own());
    let (request, own) = (&request, &own);
    let declaration = &render_osd::tests::declaration();
    let pod = NodePod { image: "ceph:16", data_dir: "/r", declaration, own };
    k8s.create_inventory_job(&NewInventoryJob { request, pod }).await
}

#[tokio::test]
async fn inventory_creates_an_empty_report_that_owns_its_job() {
    let created = on(MAKE_MAP, 201, map()).with(|body| {
        assert_eq!((&body["metadata"]["name"], &body["data"]), (&json!(name()), &json!({})));
        assert_eq!(body["metadata"]["annotations"]["osd-migrate.io/node"], "h1.example");
        assert_eq!(body["metadata"]["labels"]["osd-migrate.io/number"], "2");
        assert!(body["metadata"]["labels"].get("osd-migrate.io/record").is_none());
    });
    let job = on(MAKE_JOB, 201, json!({"metadata": {"name": name()}})).with(|body| {
        assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "map");
        assert_eq!(body["spec"]["template"]["spec"]["containers"][0]["image"], "ceph:16");
    });
    play(vec![created, job], inventory).await.unwrap();
}

#[tokio::test]
async fn inventory_that_already_exists_is_a_success() {
    let script = vec![
        on(MAKE_MAP, 409, refusal(409, "AlreadyExists")),
        on(&format!("GET /api/v1/namespaces/rook-ceph/configmaps/{}", name()), 200, map()),
        on(MAKE_JOB, 409, refusal(409, "AlreadyExists")),
    ];
    play(script, inventory).await.unwrap();
}

fn delete(uid: &'static str) -> Exchange {
    let request = format!("DELETE /api/v1/namespaces/rook-ceph/configmaps/{}?", name());
    on(&request, 200, json!({"kind": "Status", "status": "Success"})).with(move |body| {
        assert_eq!(body["preconditions"], json!({"uid": uid}));
        assert_eq!(body["propagationPolicy"], "Background", "its Job goes with it");
    })
}

#[tokio::test]
async fn inventory_of_a_frozen_runner_is_deleted_and_gets_no_job() {
    let ledger = |version: &str| {
        let metadata = json!({"name": LEDGER, "resourceVersion": version});
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata})
    };
    let late = async |k8s: &K8s| {
        k8s.load().await.unwrap();
        inventory(k8s).await
    };
    let script = vec![
        on(LEDGER_GET, 200, json!({"metadata": {"name": LEDGER, "resourceVersion": "5"}, "data": {}})),
        on(MAKE_MAP, 201, map()),
        on(LEDGER_GET, 200, ledger("6")),
        delete("map"),
    ];
    let result = play(script, late).await;
    assert!(matches!(&result, Err(K8sError::Unexpected { what, .. }) if what.contains(LEDGER)), "{result:?}");
}

#[tokio::test]
async fn inventory_is_deleted_by_uid_and_may_already_be_gone() {
    play(vec![delete("u")], async |k8s| k8s.delete_inventory_job(&name(), "u").await).await.unwrap();
    let request = format!("DELETE /api/v1/namespaces/rook-ceph/configmaps/{}?", name());
    let gone = vec![on(&request, 404, refusal(404, "NotFound"))];
    play(gone, async |k8s| k8s.delete_inventory_job(&name(), "u").await).await.unwrap();
    let other = vec![on(&request, 409, refusal(409, "Conflict"))];
    let result = play(other, async |k8s| k8s.delete_inventory_job(&name(), "u").await).await;
    assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
}
