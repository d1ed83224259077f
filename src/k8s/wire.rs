//! A server for tests: it expects the exact requests, verb, path and precondition, one after the other.

use std::sync::Arc;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::domain::act::Deploy;
use crate::domain::inspection::RecordId;
use crate::domain::policy::Declaration;
use crate::k8s::names::{self, STOPPED};
use crate::k8s::osd::render_osd;
use crate::k8s::{K8s, Place, Server};

/// One expected request, and its answer.
pub(crate) struct Exchange {
    request: String,
    body: Box<dyn FnOnce(Value) + Send>,
    status: u16,
    answer: Value,
}

pub(crate) fn on(request: &str, status: u16, answer: Value) -> Exchange {
    Exchange { request: request.to_owned(), body: Box::new(|_| {}), status, answer }
}

impl Exchange {
    pub(crate) fn with(mut self, body: impl FnOnce(Value) + Send + 'static) -> Self {
        self.body = Box::new(body);
        self
    }
}

/// Runs `call` in a pod, against a server that answers as scripted; fails when other, more or fewer requests
/// come.
pub(crate) async fn play<T>(script: Vec<Exchange>, call: impl AsyncFnOnce(&K8s) -> T) -> T {
    let pod = Server::in_cluster("https://kubernetes.default.svc", "rook-ceph");
    play_at(pod, script, async |k8s: &mut K8s| call(k8s).await).await
}

/// Runs `call` as [`play`] does, with this server and identity.
pub(crate) async fn play_at<T>(
    server: Server,
    script: Vec<Exchange>,
    call: impl AsyncFnOnce(&mut K8s) -> T,
) -> T {
    let expected = script.len();
    let (k8s, scripted) = served(script);
    let mut k8s = k8s.at(server);
    let result = call(&mut k8s).await;
    expect_end(scripted, &k8s, expected).await;
    result
}

/// Runs `call` as [`play`] does, with an access that it shares.
pub(crate) async fn play_shared<T>(script: Vec<Exchange>, call: impl AsyncFnOnce(Arc<K8s>) -> T) -> T {
    let expected = script.len();
    let (k8s, scripted) = served(script);
    let k8s = Arc::new(k8s);
    let result = call(Arc::clone(&k8s)).await;
    expect_end(scripted, &k8s, expected).await;
    result
}

/// Fails if the server still expects a request, or if one was not counted.
async fn expect_end(scripted: JoinHandle<impl Sized>, k8s: &K8s, expected: usize) {
    scripted.await.expect("the requests as scripted");
    assert_eq!(k8s.requests(), expected as u64, "every request is counted");
}

/// Returns the access to a server that answers as scripted, and the server.
fn served(script: Vec<Exchange>) -> (K8s, JoinHandle<impl Sized>) {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let k8s = K8s::with_client(Client::new(service, "rook-ceph"), Place::new("rook-ceph"));
    let server = tokio::spawn(async move {
        for exchange in script {
            let (request, respond) = handle.next_request().await.expect("a request");
            let kind = request.headers().get("content-type").map(|v| v.to_str().unwrap().to_owned());
            let line = format!("{} {}", request.method(), request.uri());
            let kind = kind.filter(|k| k.contains("patch")).map(|k| format!(" {k}")).unwrap_or_default();
            assert_eq!(format!("{line}{kind}"), exchange.request);
            let bytes = request.into_body().collect_bytes().await.unwrap();
            (exchange.body)(serde_json::from_slice(&bytes).unwrap_or(Value::Null));
            let body = Body::from(serde_json::to_vec(&exchange.answer).unwrap());
            respond.send_response(Response::builder().status(exchange.status).body(body).unwrap());
        }
        handle
    });
    (k8s, server)
}

/// Returns the access to a server that answers nothing: each request fails.
pub(crate) fn unreachable() -> Arc<K8s> {
    let (service, _) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    Arc::new(K8s::with_client(Client::new(service, "rook-ceph"), Place::new("rook-ceph")))
}

/// Returns the values that the Deployment of osd.3 is rendered from.
pub(crate) fn rendered() -> (Deploy, Declaration) {
    (render_osd::tests::deploy(), render_osd::tests::declaration())
}

pub(crate) fn refusal(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "text"})
}

pub(crate) fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

pub(crate) fn deployment() -> Value {
    json!({"metadata": {"name": "rook-ceph-osd-3", "namespace": "rook-ceph", "uid": "d-uid", "resourceVersion": "77", "generation": 5},
        "spec": {"replicas": 1, "fieldOfTheFuture": true,
            "selector": {"matchLabels": {"app": "rook-ceph-osd", "ceph-osd-id": "3", "rook_cluster": "rook-ceph"}}}})
}

pub(crate) fn stopped_deployment() -> Value {
    let mut object = deployment();
    object["spec"]["replicas"] = json!(0);
    object["metadata"]["annotations"] = json!({STOPPED: "r1"});
    object
}

/// Returns the read of the backup that exists while record `record` is open.
pub(crate) fn backups(record: &str) -> Exchange {
    on(
        BACKUP,
        200,
        json!({"metadata": {"name": "osd-migrate-osd-3", "annotations": {names::RECORD: record}}}),
    )
}

pub(crate) fn record() -> RecordId {
    RecordId("r1".to_owned())
}

pub(crate) const FIND: &str = "GET /apis/apps/v1/namespaces/rook-ceph/deployments?&labelSelector=app%3Drook-ceph-osd%2Cceph-osd-id%3D3&limit=100";

pub(crate) const PODS: &str =
    "GET /api/v1/namespaces/rook-ceph/pods?&labelSelector=app%3Drook-ceph-osd%2Cceph-osd-id%3D3&limit=100";

pub(crate) const PUT: &str =
    "PUT /apis/apps/v1/namespaces/rook-ceph/deployments/rook-ceph-osd-3?&fieldManager=osd-migrate";

pub(crate) const BACKUP: &str = "GET /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-osd-3";

pub(crate) const CLUSTERS: &str = "GET /apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters?&limit=100";

pub(crate) const PATCH_CLUSTER: &str = "PATCH /apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/c?&fieldManager=osd-migrate application/json-patch+json";

pub(crate) fn cluster(labels: &Value) -> Value {
    json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
        "metadata": {"name": "c", "uid": "c-uid", "resourceVersion": "8", "labels": labels}})
}
