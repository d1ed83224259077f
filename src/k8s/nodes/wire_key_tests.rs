//! The exact requests for an agent with the key of an OSD on a PVC.

use serde_json::{Value, json};

use crate::domain::inspection::NodeRequest;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{Layout, Mode, ObjectStore};
use crate::k8s::nodes::node_job;
use crate::k8s::osd::render_osd;
use crate::k8s::wire::{Exchange, FIND, deployment, list, on, play, refusal};
use crate::k8s::{Agent, K8s, K8sError, Key, NodePod};

const SECRETS: &str = "POST /api/v1/namespaces/rook-ceph/secrets?&fieldManager=osd-migrate";
const MAPS: &str = "POST /api/v1/namespaces/rook-ceph/configmaps?&fieldManager=osd-migrate";
const JOBS: &str = "POST /apis/batch/v1/namespaces/rook-ceph/jobs?&fieldManager=osd-migrate";
const KEY: &str = "rook-ceph-osd-encryption-key-set1-data-0a";

fn on_pvc(encrypted: bool) -> NodeRequest {
    let target = Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted };
    NodeRequest {
        pvcs: Some(PerPvc::of_data("set1-data-0a".to_owned())),
        target,
        ..node_job::tests::request()
    }
}

async fn create(script: Vec<Exchange>, request: &NodeRequest) -> Result<(), K8sError> {
    let (own, key) = (node_job::tests::own(), Key::new("AQ=="));
    let declaration = render_osd::tests::declaration();
    let pod = NodePod { image: "ceph:16", data_dir: "/var/lib/rook", declaration: &declaration, own: &own };
    let agent = Agent { request, pod, bootstrap_key: &key };
    play(script, async |k8s: &K8s| k8s.create_agent(&agent).await).await
}

/// Returns the requests for every agent, which follow that for the key.
fn of_every_agent() -> Vec<Exchange> {
    let map = |uid: &str| json!({"metadata": {"name": "m", "uid": uid}});
    vec![
        on(&FIND.replace("%3D3", "%3D12"), 200, list(&[deployment()])),
        on(MAPS, 201, map("report")),
        on(MAPS, 201, map("key")),
        on(SECRETS, 201, json!({"metadata": {"name": "s"}})).with(|body| {
            assert!(body["stringData"].get("ceph.keyring").is_some(), "the one of the agent: {body}");
        }),
        on(JOBS, 201, json!({"metadata": {"name": "j"}})).with(|body| {
            assert!(body.to_string().contains("\"claimName\":\"set1-data-0a\""), "{body}");
        }),
    ]
}

fn check(body: &Value) {
    let metadata = &body["metadata"];
    assert_eq!((&metadata["name"], &metadata["labels"]), (&json!(KEY), &json!({"pvc_name": "set1-data-0a"})));
    let owner = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster", "name": "my-cluster", "uid": "c-uid",
        "controller": true, "blockOwnerDeletion": true});
    assert_eq!(metadata["ownerReferences"], json!([owner]));
    assert_eq!((&body["type"], body.get("immutable")), (&json!("kubernetes.io/rook"), None));
    let [(name, key)] = body["stringData"].as_object().unwrap().iter().collect::<Vec<_>>()[..] else {
        panic!()
    };
    assert_eq!((name.as_str(), key.as_str().map(str::len)), ("dmcrypt-key", Some(172)));
}

/// Proves that an existing key is neither read nor written: the server fails at any other request.
#[tokio::test]
async fn pvc_key_is_created_before_the_agent_and_an_existing_one_stays() {
    for (status, answer) in [(201, json!({"metadata": {"name": KEY}})), (409, refusal(409, "AlreadyExists"))]
    {
        let mut script = vec![on(SECRETS, status, answer).with(|body| check(&body))];
        script.extend(of_every_agent());
        create(script, &on_pvc(true)).await.unwrap();
    }
}

/// Checks that a lost key of an encrypted OSD is not replaced, and that its agent starts without the Secret.
#[tokio::test]
async fn lost_key_of_an_encrypted_osd_is_not_replaced() {
    let mut script = of_every_agent();
    let jobs = script.pop().unwrap();
    script.push(jobs.with(|body| assert!(body.to_string().contains("\"optional\":true"), "{body}")));
    create(script, &NodeRequest { is_encrypted: true, ..on_pvc(true) }).await.unwrap();
}

#[tokio::test]
async fn agent_is_not_created_if_its_pvc_key_could_not_be() {
    let script = vec![on(SECRETS, 403, refusal(403, "Forbidden"))];
    assert!(matches!(create(script, &on_pvc(true)).await, Err(K8sError::Forbidden { .. })));
    let long = NodeRequest { pvcs: Some(PerPvc::of_data("p".repeat(226))), ..on_pvc(true) };
    let error = create(Vec::new(), &long).await.unwrap_err().to_string();
    assert!(error.contains("a name of 255 characters"), "{error}");
}

#[tokio::test]
async fn agent_of_an_osd_that_is_to_be_plain_creates_no_key() {
    create(of_every_agent(), &on_pvc(false)).await.unwrap();
}
