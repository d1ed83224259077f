//! The exact requests of a runner that acts after another runner has saved.

use serde_json::{Value, json};

use crate::domain::inspection::RecordId;
use crate::domain::osd::OsdId;
use crate::k8s::nodes::node_job;
use crate::k8s::osd::render_osd;
use crate::k8s::wire::{Exchange, on, play, refusal};
use crate::k8s::{Agent, K8s, K8sError, Key, LEDGER, NodePod};

const LEDGER_GET: &str = "GET /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-ledger";
const FIND: &str = "GET /apis/apps/v1/namespaces/rook-ceph/deployments?&labelSelector=app%3Drook-ceph-osd%2Cceph-osd-id%3D12&limit=100";
const MAKE_MAP: &str = "POST /api/v1/namespaces/rook-ceph/configmaps?&fieldManager=osd-migrate";
const CLUSTERS: &str = "GET /apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters?&limit=100";

/// Returns the read of the ledger at version 5.
fn loaded() -> Exchange {
    on(LEDGER_GET, 200, json!({"metadata": {"name": LEDGER, "resourceVersion": "5"}, "data": {}}))
}

/// Returns the read of only the ledger's version.
fn is_at(version: &str) -> Exchange {
    let metadata = json!({"name": LEDGER, "resourceVersion": version});
    on(
        LEDGER_GET,
        200,
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}),
    )
}

fn deployments() -> Exchange {
    let found = json!({"metadata": {"name": "rook-ceph-osd-12", "uid": "d-uid", "resourceVersion": "77", "generation": 5}, "spec": {}});
    on(FIND, 200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [found]}))
}

fn created(name: &str) -> Exchange {
    on(MAKE_MAP, 201, json!({"metadata": {"name": name, "uid": "created"}}))
}

fn deleted(name: &str) -> Exchange {
    let request = format!("DELETE /api/v1/namespaces/rook-ceph/configmaps/{name}?");
    on(&request, 200, json!({"kind": "Status", "status": "Success"}))
        .with(|body: Value| assert_eq!(body["preconditions"], json!({"uid": "created"})))
}

fn is_refused(result: &Result<(), K8sError>) {
    assert!(matches!(result, Err(K8sError::Unexpected { what, .. }) if what.contains(LEDGER)), "{result:?}");
}

#[tokio::test]
async fn act_is_refused_if_the_ledger_has_changed() {
    let inventory = async |k8s: &K8s| {
        k8s.load().await.unwrap();
        k8s.expect_ledger().await
    };
    play(vec![loaded(), is_at("5")], inventory).await.unwrap();
    is_refused(&play(vec![loaded(), is_at("6")], inventory).await);
    let absent = || on(LEDGER_GET, 404, refusal(404, "NotFound"));
    play(vec![absent(), absent()], inventory).await.unwrap();
    is_refused(&play(vec![absent(), is_at("1")], inventory).await);
    is_refused(&play(vec![loaded(), absent()], inventory).await);
}

#[tokio::test]
async fn act_after_a_save_expects_the_saved_ledger() {
    let put = "PUT /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-ledger?&fieldManager=osd-migrate";
    let saved = || on(put, 200, json!({"metadata": {"name": LEDGER, "resourceVersion": "6"}, "data": {}}));
    let act = async |k8s: &K8s| {
        let (keys, version) = k8s.load().await.unwrap().unwrap();
        k8s.save(keys, Some(&version)).await.unwrap();
        k8s.expect_ledger().await
    };
    play(vec![loaded(), saved(), is_at("6")], act).await.unwrap();
    is_refused(&play(vec![loaded(), saved(), is_at("7")], act).await);
    // A save without an answer may have been done: the act was decided by the former ledger.
    let unanswered = async |k8s: &K8s| {
        let (keys, version) = k8s.load().await.unwrap().unwrap();
        assert!(k8s.save(keys, Some(&version)).await.is_err());
        k8s.expect_ledger().await
    };
    let failed = on(put, 500, refusal(500, "InternalError"));
    is_refused(&play(vec![loaded(), failed, is_at("6")], unanswered).await);
}

#[tokio::test]
async fn backup_and_report_of_a_frozen_runner_are_deleted() {
    let back_up = async |k8s: &K8s| {
        k8s.load().await.unwrap();
        k8s.back_up(OsdId(12), &RecordId("r1".to_owned()), "d-uid", 5).await
    };
    let backups = "osd-migrate-osd-12";
    play(vec![loaded(), deployments(), created(backups), is_at("5")], back_up).await.unwrap();
    is_refused(
        &play(vec![loaded(), deployments(), created(backups), is_at("6"), deleted(backups)], back_up).await,
    );

    let agent = async |k8s: &K8s| {
        k8s.load().await.unwrap();
        let (request, own, key) = (node_job::tests::request(), node_job::tests::own(), Key::new("AQ=="));
        let (request, own, bootstrap_key) = (&request, &own, &key);
        let (image, data_dir, declaration) = ("ceph:16", "/var/lib/rook", &render_osd::tests::declaration());
        let pod = NodePod { image, data_dir, declaration, own };
        k8s.create_agent(&Agent { request, pod, bootstrap_key }).await
    };
    let report = "osd-migrate-rebuild-12-r12-a7-2";
    // Neither the Secret nor the Job is created.
    is_refused(
        &play(vec![loaded(), deployments(), created(report), is_at("6"), deleted(report)], agent).await,
    );
}

#[tokio::test]
async fn fence_is_not_set_again_by_a_frozen_runner() {
    let cluster = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
        "metadata": {"name": "c", "uid": "c-uid", "resourceVersion": "8"}});
    let clusters =
        on(CLUSTERS, 200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [cluster]}));
    let fence = async |k8s: &K8s| {
        k8s.load().await.unwrap();
        k8s.fence("osd-migrate-1").await
    };
    is_refused(&play(vec![loaded(), clusters, is_at("6")], fence).await);
}
