//! The exact requests: verb, path, precondition. Each test plays the server, request by request.

use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::osd::OsdId;

/// One expected request, and its answer.
pub(super) struct Exchange {
    request: String,
    body: Box<dyn FnOnce(Value) + Send>,
    status: u16,
    answer: Value,
}

pub(super) fn on(request: &str, status: u16, answer: Value) -> Exchange {
    Exchange { request: request.to_owned(), body: Box::new(|_| {}), status, answer }
}

impl Exchange {
    pub(super) fn with(mut self, body: impl FnOnce(Value) + Send + 'static) -> Self {
        self.body = Box::new(body);
        self
    }
}

/// Runs `call` against a server that answers as scripted; fails when other, more or fewer requests come.
pub(super) async fn play<T>(script: Vec<Exchange>, call: impl AsyncFnOnce(&K8s) -> T) -> T {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let k8s = K8s::with_client(Client::new(service, "rook-ceph"), Place::new("rook-ceph"));
    let expected = script.len();
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
    let result = call(&k8s).await;
    server.await.expect("the requests as scripted");
    assert_eq!(k8s.requests(), expected as u64, "every request is counted");
    result
}

pub(super) fn refusal(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "text"})
}

pub(super) fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

pub(super) fn deployment() -> Value {
    json!({"metadata": {"name": "rook-ceph-osd-3", "namespace": "rook-ceph", "uid": "d-uid", "resourceVersion": "77", "generation": 5},
        "spec": {"replicas": 1, "fieldOfTheFuture": true,
            "selector": {"matchLabels": {"app": "rook-ceph-osd", "ceph-osd-id": "3", "rook_cluster": "rook-ceph"}}}})
}

pub(super) fn stopped_deployment() -> Value {
    let mut object = deployment();
    object["spec"]["replicas"] = json!(0);
    object["metadata"]["annotations"] = json!({STOPPED: "r1"});
    object
}

/// Returns the read of the backup that exists while record `record` is open.
fn backups(record: &str) -> Exchange {
    on(KEPT, 200, json!({"metadata": {"name": "osd-migrate-osd-3", "annotations": {names::RECORD: record}}}))
}

fn record() -> RecordId {
    RecordId("r1".to_owned())
}

pub(super) const FIND: &str = "GET /apis/apps/v1/namespaces/rook-ceph/deployments?&labelSelector=app%3Drook-ceph-osd%2Cceph-osd-id%3D3&limit=500";
pub(super) const PUT: &str =
    "PUT /apis/apps/v1/namespaces/rook-ceph/deployments/rook-ceph-osd-3?&fieldManager=osd-migrate";
pub(super) const KEPT: &str = "GET /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-osd-3";

#[tokio::test]
async fn stop_is_one_put_of_the_object_that_was_seen() {
    let script = vec![
        on(FIND, 200, list(&[deployment()])),
        backups("r1"),
        on(PUT, 200, stopped_deployment()).with(|body| {
            assert_eq!(body["metadata"]["uid"], "d-uid");
            assert_eq!(body["metadata"]["resourceVersion"], "77");
            assert_eq!(body["metadata"]["annotations"][STOPPED], "r1");
            assert_eq!((&body["kind"], &body["spec"]["replicas"]), (&json!("Deployment"), &json!(0)));
            assert_eq!(body["spec"]["fieldOfTheFuture"], true, "what this build does not know stays");
        }),
    ];
    play(script, async |k8s| k8s.stop(OsdId(3), &record(), "d-uid", 5).await).await.unwrap();
}

#[tokio::test]
async fn stop_does_nothing_to_an_object_that_changed_or_was_made_anew() {
    for (uid, generation) in [("d-uid", 4), ("other", 5)] {
        let script = vec![on(FIND, 200, list(&[deployment()]))];
        let result = play(script, async |k8s| k8s.stop(OsdId(3), &record(), uid, generation).await).await;
        assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
    }
    let two = vec![on(FIND, 200, list(&[deployment(), deployment()]))];
    let result = play(two, async |k8s| k8s.stop(OsdId(3), &record(), "d-uid", 5).await).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
}

/// Covers a runner that was frozen while another one closed that record, with or without a new record.
#[tokio::test]
async fn nothing_is_stopped_for_a_record_that_is_closed() {
    for copy in [on(KEPT, 404, refusal(404, "NotFound")), backups("r2")] {
        let seen = || on(FIND, 200, list(&[deployment()]));
        let script = vec![seen(), copy, seen()];
        let result = play(script, async |k8s| k8s.stop(OsdId(3), &record(), "d-uid", 5).await).await;
        assert!(
            matches!(&result, Err(K8sError::Unexpected { what, .. }) if what.contains("osd-3")),
            "{result:?}"
        );
    }
}

/// Covers a write of the status, which occurs whenever the Deployment's pod becomes ready or not.
#[tokio::test]
async fn stop_goes_on_if_only_the_status_was_written_since_the_look() {
    let seen = daemon::parse(&deployment()).unwrap().daemon;
    let mut written = deployment();
    written["metadata"]["resourceVersion"] = json!("99");
    written["status"] = json!({"readyReplicas": 1});
    let script = vec![
        on(FIND, 200, list(&[written])),
        backups("r1"),
        on(PUT, 200, stopped_deployment()).with(|body| assert_eq!(body["metadata"]["resourceVersion"], "99")),
    ];
    let stop = async |k8s: &K8s| k8s.stop(OsdId(3), &record(), &seen.uid, seen.generation).await;
    play(script, stop).await.unwrap();
    // A change of spec or annotations gives another generation.
    let mut changed = deployment();
    changed["metadata"]["generation"] = json!(6);
    let result = play(vec![on(FIND, 200, list(&[changed]))], stop).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
    // A label by which another client manages the OSD is not part of the generation.
    let mut held = deployment();
    held["metadata"]["labels"] = json!({FENCE: "true"});
    let result = play(vec![on(FIND, 200, list(&[held]))], stop).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
}

#[tokio::test]
async fn stop_again_is_done_already_and_a_conflict_is_told() {
    let script = vec![on(FIND, 200, list(&[stopped_deployment()]))];
    play(script, async |k8s| k8s.stop(OsdId(3), &record(), "d-uid", 1).await).await.unwrap();
    let script =
        vec![on(FIND, 200, list(&[deployment()])), backups("r1"), on(PUT, 409, refusal(409, "Conflict"))];
    let result = play(script, async |k8s| k8s.stop(OsdId(3), &record(), "d-uid", 5).await).await;
    assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
}

#[tokio::test]
async fn restart_undoes_our_stop_and_no_other() {
    let script = vec![
        on(FIND, 200, list(&[stopped_deployment()])),
        on(PUT, 200, deployment()).with(|body| {
            assert_eq!(
                (&body["spec"]["replicas"], &body["metadata"]["resourceVersion"]),
                (&json!(1), &json!("77"))
            );
            assert_eq!(body["metadata"].pointer("/annotations/osd-migrate.io~1stopped"), None);
        }),
    ];
    play(script, async |k8s| k8s.restart(OsdId(3), &record()).await).await.unwrap();
    let mut theirs = deployment();
    theirs["spec"]["replicas"] = json!(0);
    let script = vec![on(FIND, 200, list(&[theirs]))];
    let result = play(script, async |k8s| k8s.restart(OsdId(3), &record()).await).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
}

#[tokio::test]
async fn restart_makes_a_deleted_deployment_again_from_the_kept_copy() {
    let copy = json!({"metadata": {"name": "osd-migrate-osd-3", "annotations": {"osd-migrate.io/record": "r1"}},
        "data": {"deployment": deployment().to_string()}});
    let create = "POST /apis/apps/v1/namespaces/rook-ceph/deployments?&fieldManager=osd-migrate";
    let script = vec![
        on(FIND, 200, list(&[])),
        on(KEPT, 200, copy.clone()),
        on(create, 201, deployment()).with(|body| {
            assert_eq!(body["metadata"]["name"], "rook-ceph-osd-3");
            assert!(
                body["metadata"].get("resourceVersion").is_none() && body["metadata"].get("uid").is_none()
            );
            assert_eq!(body["spec"]["replicas"], 1);
        }),
    ];
    play(script, async |k8s| k8s.restart(OsdId(3), &record()).await).await.unwrap();
    let script = vec![on(FIND, 200, list(&[])), on(KEPT, 200, copy)];
    let other = RecordId("r2".to_owned());
    let result = play(script, async |k8s| k8s.restart(OsdId(3), &other).await).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
}

pub(super) const CLUSTERS: &str = "GET /apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters?&limit=500";
pub(super) const PATCH_CLUSTER: &str = "PATCH /apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/c?&fieldManager=osd-migrate application/json-patch+json";

pub(super) fn cluster(labels: &Value) -> Value {
    json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
        "metadata": {"name": "c", "uid": "c-uid", "resourceVersion": "8", "labels": labels}})
}

#[tokio::test]
async fn the_fence_is_a_json_patch_with_a_test() {
    let script = vec![
        on(CLUSTERS, 200, list(&[cluster(&json!({"a": "b"}))])),
        on(PATCH_CLUSTER, 200, cluster(&json!({}))).with(|body| {
            assert_eq!(body[1], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "8"}));
            assert_eq!(body[2]["op"], "add");
        }),
    ];
    play(script, async |k8s| k8s.fence("osd-migrate-1").await).await.unwrap();
    let script = vec![
        on(CLUSTERS, 200, list(&[cluster(&json!({}))])),
        on(PATCH_CLUSTER, 422, refusal(422, "Invalid")),
    ];
    let result = play(script, async |k8s| k8s.fence("osd-migrate-1").await).await;
    assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
}

#[tokio::test]
async fn an_event_about_the_cluster_names_it_with_its_uid() {
    let mut seen = cluster(&json!({}));
    seen["spec"] = json!({"dataDirHostPath": "/var/lib/rook"});
    let post = "POST /api/v1/namespaces/rook-ceph/events?&fieldManager=osd-migrate";
    let script = vec![
        on(CLUSTERS, 200, list(&[seen])),
        on(post, 201, json!({"metadata": {}, "involvedObject": {}})).with(|body| {
            let about = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster", "name": "c", "uid": "c-uid",
                "namespace": "rook-ceph"});
            assert_eq!((&body["involvedObject"], &body["reason"]), (&about, &json!("OsdMigrated")));
        }),
    ];
    play(script, async |k8s| {
        let about = k8s.about_cluster().await.unwrap();
        k8s.publish(&about, EventType::Normal, "OsdMigrated", "text", DateTime::UNIX_EPOCH).await;
    })
    .await;
}

#[tokio::test]
async fn a_fence_of_others_is_neither_taken_over_nor_taken_off() {
    let theirs = || vec![on(CLUSTERS, 200, list(&[cluster(&json!({FENCE: "by-hand"}))]))];
    for result in [
        play(theirs(), async |k8s| k8s.fence("osd-migrate-1").await).await,
        play(theirs(), async |k8s| k8s.unfence("osd-migrate-1").await).await,
    ] {
        assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
    }
}

#[tokio::test]
async fn a_cluster_without_rook_and_one_with_several_are_told_apart() {
    let result =
        play(vec![on(CLUSTERS, 404, json!("404 page not found"))], async |k8s| k8s.fence("x").await).await;
    assert!(matches!(result, Err(K8sError::NoRook)), "{result:?}");
    let result = play(vec![on(CLUSTERS, 200, list(&[]))], async |k8s| k8s.fence("x").await).await;
    assert!(matches!(result, Err(K8sError::NoCephCluster { .. })), "{result:?}");
    let two = list(&[cluster(&json!({})), cluster(&json!({}))]);
    let result = play(vec![on(CLUSTERS, 200, two)], async |k8s| k8s.fence("x").await).await;
    assert!(matches!(result, Err(K8sError::SeveralCephClusters { .. })), "{result:?}");
}

#[tokio::test]
async fn the_ledger_is_saved_against_the_version_that_was_read() {
    let put = "PUT /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-ledger?&fieldManager=osd-migrate";
    let post = "POST /api/v1/namespaces/rook-ceph/configmaps?&fieldManager=osd-migrate";
    let saved = || json!({"metadata": {"name": LEDGER, "resourceVersion": "6"}});
    let script =
        vec![on(put, 200, saved()).with(|body| assert_eq!(body["metadata"]["resourceVersion"], "5"))];
    let version = ResourceVersion("5".to_owned());
    let data = || [("run".to_owned(), "{}".to_owned())].into();
    let result = play(script, async |k8s| k8s.save(data(), Some(&version)).await).await;
    assert_eq!(result.unwrap(), ResourceVersion("6".to_owned()));
    let script = vec![on(post, 409, refusal(409, "AlreadyExists"))];
    let result = play(script, async |k8s| k8s.save(data(), None).await).await;
    assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
    let big = || [("osd.1".to_owned(), "x".repeat(900 * 1024))].into();
    let result = play(Vec::new(), async |k8s| k8s.save(big(), None).await).await;
    assert!(matches!(result, Err(K8sError::TooBig { .. })), "{result:?}");
}

#[tokio::test]
async fn a_node_job_is_deleted_with_its_pods_and_by_uid() {
    let delete = "DELETE /apis/batch/v1/namespaces/rook-ceph/jobs/osd-migrate-inspect-3-r1-1?";
    let check = |body: Value| {
        assert_eq!(body["propagationPolicy"], "Background", "else its pods stay");
        assert_eq!(body["preconditions"], json!({"uid": "u"}));
    };
    for (status, answer) in
        [(200, json!({"kind": "Status", "status": "Success"})), (404, refusal(404, "NotFound"))]
    {
        let script = vec![on(delete, status, answer).with(check)];
        play(script, async |k8s| k8s.drop_agent("osd-migrate-inspect-3-r1-1", "u").await).await.unwrap();
    }
}

#[tokio::test]
async fn an_agent_gets_report_key_and_job_in_this_order() {
    let (request, own, key) = (node_job::tests::request(), node_job::tests::own(), Key::new("AQ=="));
    let find = FIND.replace("%3D3", "%3D12");
    let post = |path: &str| format!("POST {path}?&fieldManager=osd-migrate");
    let name = "osd-migrate-rebuild-12-r12-a7-2";
    let script = vec![
        on(&find, 200, list(&[deployment()])),
        on(&post("/api/v1/namespaces/rook-ceph/configmaps"), 409, refusal(409, "AlreadyExists")),
        on(
            &format!("GET /api/v1/namespaces/rook-ceph/configmaps/{name}"),
            200,
            json!({"metadata": {"name": name, "uid": "report"}}),
        ),
        on(
            &post("/api/v1/namespaces/rook-ceph/configmaps"),
            201,
            json!({"metadata": {"name": format!("{name}-key"), "uid": "key"}}),
        )
        .with(move |body| {
            assert_eq!(body["metadata"]["name"], format!("{name}-key"));
            assert_eq!(body["metadata"]["labels"][names::PART], "key");
            assert_eq!(body["metadata"]["annotations"][names::RECORD], "r12-a7");
            assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "report");
            assert_eq!(body["data"], Value::Null, "the key is in the Secret alone");
        }),
        on(&post("/api/v1/namespaces/rook-ceph/secrets"), 201, json!({"metadata": {"name": name}})).with(
            |body| {
                assert_eq!(body["stringData"]["ceph.keyring"], "[client.bootstrap-osd]\n\tkey = AQ==\n");
                let owners = &body["metadata"]["ownerReferences"];
                assert_eq!((&owners[0]["uid"], &owners[1]), (&json!("key"), &Value::Null), "it alone");
            },
        ),
        on(&post("/apis/batch/v1/namespaces/rook-ceph/jobs"), 409, refusal(409, "AlreadyExists"))
            .with(|body| assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "report")),
    ];
    let agent = Agent {
        request: &request,
        image: "ceph:16",
        data_dir: "/var/lib/rook",
        declaration: &render_osd::tests::declaration(),
        bootstrap_key: &key,
        own: &own,
    };
    play(script, async |k8s| k8s.create_agent(&agent).await).await.unwrap();
}

#[tokio::test]
async fn key_is_deleted_by_uid_of_its_owner_and_nothing_else_is() {
    let delete = "DELETE /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-rebuild-3-r1-1-key?";
    let check = |body: Value| {
        assert_eq!(body["propagationPolicy"], "Background", "the garbage collector deletes the Secret");
        assert_eq!(body["preconditions"], json!({"uid": "u"}));
    };
    for (status, answer) in
        [(200, json!({"kind": "Status", "status": "Success"})), (404, refusal(404, "NotFound"))]
    {
        let script = vec![on(delete, status, answer).with(check)];
        play(script, async |k8s| k8s.delete_key("osd-migrate-rebuild-3-r1-1", "u").await).await.unwrap();
    }
}

#[tokio::test]
async fn an_agent_for_an_osd_that_has_no_deployment_yet_is_let_onto_its_node() {
    let storage = json!([{"key": "storage", "operator": "Exists"}]);
    let placement = tolerations::parse(Some(&storage));
    let node =
        json!({"metadata": {"name": "h1"}, "spec": {"taints": [{"key": "late", "effect": "NoExecute"}]}});
    let backups = "GET /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-osd-12";
    let script = vec![
        on(&FIND.replace("%3D3", "%3D12"), 200, list(&[])),
        on(backups, 404, refusal(404, "NotFound")),
        on("GET /api/v1/nodes/h1", 200, node),
    ];
    let osd_pod = async |k8s: &K8s| {
        let request = node_job::tests::request();
        k8s.osd_pod_template(request.osd, &request.node, &placement).await
    };
    let late = json!({"key": "late", "operator": "Equal", "effect": "NoExecute"});
    let expected = json!({"tolerations": [storage[0], late]});
    assert_eq!(play(script, osd_pod).await.unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_leaves_the_outcome_unknown() {
    let (service, _handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let k8s = K8s::with_client(Client::new(service, "rook-ceph"), Place::new("rook-ceph"));
    let result =
        tokio::time::timeout(Duration::from_secs(11), k8s.drop_agent("j", "u")).await.expect("the limit");
    assert!(
        matches!(&result, Err(error @ K8sError::Timeout { .. }) if error.is_outcome_unknown()),
        "{result:?}"
    );
}
