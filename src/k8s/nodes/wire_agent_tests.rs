//! The exact requests for node Jobs.

use serde_json::{Value, json};

use crate::k8s::names;
use crate::k8s::nodes::node_job;
use crate::k8s::osd::render_osd;
use crate::k8s::tolerations;
use crate::k8s::wire::{Exchange, FIND, deployment, list, on, play, refusal};
use crate::k8s::{Agent, K8s, Key, NodePod};

const BACKUP: &str = "GET /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-osd-12";

/// Returns a script for each answer that is success: the object with the uid `u` is deleted, or is absent.
fn deletions(delete: &str, why: &'static str) -> [Vec<Exchange>; 2] {
    let check = move |body: Value| {
        assert_eq!(body["propagationPolicy"], "Background", "{why}");
        assert_eq!(body["preconditions"], json!({"uid": "u"}));
    };
    [(200, json!({"kind": "Status", "status": "Success"})), (404, refusal(404, "NotFound"))]
        .map(|(status, answer)| vec![on(delete, status, answer).with(check)])
}

#[tokio::test]
async fn node_job_is_deleted_by_uid_with_its_pods() {
    let delete = "DELETE /apis/batch/v1/namespaces/rook-ceph/jobs/osd-migrate-inspect-3-r1-1?";
    for script in deletions(delete, "else its pods stay") {
        play(script, async |k8s| k8s.drop_agent("osd-migrate-inspect-3-r1-1", "u").await).await.unwrap();
    }
}

#[tokio::test]
async fn agent_report_key_and_job_are_created_in_sequence() {
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
        pod: NodePod {
            image: "ceph:16",
            data_dir: "/var/lib/rook",
            declaration: &render_osd::tests::declaration(),
            own: &own,
        },
        bootstrap_key: &key,
    };
    play(script, async |k8s| k8s.create_agent(&agent).await).await.unwrap();
}

#[tokio::test]
async fn key_is_deleted_by_uid_of_its_owner_and_nothing_else_is() {
    let delete = "DELETE /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-rebuild-3-r1-1-key?";
    for script in deletions(delete, "the garbage collector deletes the Secret") {
        play(script, async |k8s| k8s.delete_key("osd-migrate-rebuild-3-r1-1", "u").await).await.unwrap();
    }
}

#[tokio::test]
async fn agent_without_osd_deployment_tolerates_its_nodes_taints() {
    let storage = json!([{"key": "storage", "operator": "Exists"}]);
    let placement = tolerations::parse(Some(&storage));
    let node =
        json!({"metadata": {"name": "h1"}, "spec": {"taints": [{"key": "late", "effect": "NoExecute"}]}});
    let script = vec![
        on(&FIND.replace("%3D3", "%3D12"), 200, list(&[])),
        on(BACKUP, 404, refusal(404, "NotFound")),
        on("GET /api/v1/nodes/h1", 200, node),
    ];
    let osd_pod = async |k8s: &K8s| {
        let request = node_job::tests::request();
        k8s.osd_pod_template(request.osd, false, &request.node, &placement).await
    };
    let late = json!({"key": "late", "operator": "Equal", "effect": "NoExecute"});
    let expected = json!({"tolerations": [storage[0], late]});
    assert_eq!(play(script, osd_pod).await.unwrap(), expected);
}

#[tokio::test]
async fn agent_of_new_osd_on_pvcs_gets_the_rights_of_another() {
    let of_host = json!({"metadata": {"name": "rook-ceph-osd-1"}, "spec": {"template": {"spec": {}}}});
    let mapper = json!([{"name": "blkdevmapper", "securityContext": {"privileged": true}}]);
    let on_pvc = json!({"metadata": {"name": "rook-ceph-osd-2"},
        "spec": {"template": {"spec": {"initContainers": mapper}}}});
    let all = FIND.replace("ceph-osd-id%3D3", "ceph.rook.io%2Fpvc");
    assert_ne!(all, FIND);
    let script = vec![
        on(&FIND.replace("%3D3", "%3D12"), 200, list(&[])),
        on(BACKUP, 404, refusal(404, "NotFound")),
        on("GET /api/v1/nodes/h1", 200, json!({"metadata": {"name": "h1"}})),
        on(&all, 200, list(&[of_host, on_pvc])),
    ];
    let osd_pod = async |k8s: &K8s| {
        let request = node_job::tests::request();
        k8s.osd_pod_template(request.osd, true, &request.node, &[]).await
    };
    assert_eq!(play(script, osd_pod).await.unwrap(), json!({"tolerations": [], "initContainers": mapper}));
}
