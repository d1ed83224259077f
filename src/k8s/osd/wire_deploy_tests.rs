//! The exact requests that start an OSD, and those that leave it on its node.

use serde_json::{Value, json};

use crate::domain::act::{Deploy, Fresh};
use crate::domain::inspection::RecordId;
use crate::domain::observation::Admission;
use crate::domain::osd::{ClusterFsid, OsdId};
use crate::domain::policy::Declaration;
use crate::domain::storage::Toleration;
use crate::k8s::osd::render_osd;
use crate::k8s::wire::{
    BACKUP, CLUSTERS, Exchange, FIND, PODS, PUT, deployment, list, on, play, refusal, stopped_deployment,
};
use crate::k8s::{Deployed, K8s, K8sError};

async fn deploy(k8s: &K8s) -> Result<Deployed, K8sError> {
    let fsid = "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap();
    k8s.deploy(&render_osd::tests::deploy(), &render_osd::tests::declaration(), &fsid).await
}

#[tokio::test]
async fn deploy_replaces_the_stopped_deployment_by_one_put() {
    let node = json!({"metadata": {"name": "h1.example", "labels": {"kubernetes.io/hostname": "h1"}}});
    let script = vec![
        on("GET /api/v1/nodes/h1.example", 200, node),
        on(FIND, 200, list(&[stopped_deployment()])),
        on(PUT, 200, deployment()).with(|body| {
            assert_eq!(
                (&body["metadata"]["uid"], &body["metadata"]["resourceVersion"]),
                (&json!("d-uid"), &json!("77"))
            );
            assert_eq!(body["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"], "h1");
        }),
    ];
    assert_eq!(play(script, deploy).await.unwrap(), Deployed::Done);
}

#[tokio::test]
async fn deploy_deletes_by_uid_if_selector_differs_and_backup_exists() {
    let mut old = stopped_deployment();
    old["spec"]["selector"] = json!({"matchLabels": {"app": "rook-ceph-osd"}});
    let node = || on("GET /api/v1/nodes/h1.example", 200, json!({"metadata": {"name": "h1.example"}}));
    let backups = json!({"metadata": {"name": "osd-migrate-osd-3", "annotations": {"osd-migrate.io/record": "r1"}},
        "data": {"deployment": deployment().to_string()}});
    let delete = "DELETE /apis/apps/v1/namespaces/rook-ceph/deployments/rook-ceph-osd-3?";
    let script = vec![
        node(),
        on(FIND, 200, list(&[old.clone()])),
        on(BACKUP, 200, backups),
        on(delete, 200, old.clone()).with(|body| {
            assert_eq!(body["propagationPolicy"], "Foreground");
            assert_eq!(body["preconditions"], json!({"uid": "d-uid"}));
        }),
    ];
    assert_eq!(play(script, deploy).await.unwrap(), Deployed::Deleting);
    let script = vec![node(), on(FIND, 200, list(&[old])), on(BACKUP, 404, refusal(404, "NotFound"))];
    assert!(matches!(play(script, deploy).await, Err(K8sError::NotFound(_))));
}

#[tokio::test]
async fn deployment_that_is_being_deleted_is_no_success() {
    let node = json!({"metadata": {"name": "h1.example"}});
    let mut old = stopped_deployment();
    old["metadata"]["deletionTimestamp"] = json!("2024-03-04T12:00:00Z");
    let script = vec![on("GET /api/v1/nodes/h1.example", 200, node), on(FIND, 200, list(&[old.clone()]))];
    let recreated = play(script, deploy).await;
    let new = play(reads(&[old]), async |k8s| start(k8s, Some(("d-uid", 5))).await).await;
    for result in [recreated, new] {
        let Err(error @ K8sError::Unexpected { .. }) = result else { panic!("{result:?}") };
        let command = "kubectl -n rook-ceph get deployment rook-ceph-osd-3 -o yaml";
        assert!(error.to_string().contains(command), "{error}");
    }
}

#[tokio::test]
async fn old_deployment_is_dropped_only_if_unchanged_and_backed_up() {
    let drop = async |k8s: &K8s| k8s.drop_deployment(OsdId(3), &RecordId("r1".to_owned()), "d-uid", 5).await;
    let backups = |record: &str| {
        json!({"metadata": {"name": "osd-migrate-osd-3", "annotations": {"osd-migrate.io/record": record}},
            "data": {"deployment": deployment().to_string()}})
    };
    let find = |object: Value| on(FIND, 200, list(&[object]));
    let delete = "DELETE /apis/apps/v1/namespaces/rook-ceph/deployments/rook-ceph-osd-3?";
    let script = vec![
        on(BACKUP, 200, backups("r1")),
        find(stopped_deployment()),
        on(PODS, 200, list(&[])),
        on(delete, 200, stopped_deployment()).with(|body| {
            assert_eq!(body["preconditions"], json!({"uid": "d-uid", "resourceVersion": "77"}));
        }),
    ];
    play(script, drop).await.unwrap();
    // The cases are: no backup for this record; started since; written since.
    let mut changed = stopped_deployment();
    changed["metadata"]["generation"] = json!(6);
    for script in [
        vec![on(BACKUP, 200, backups("r2"))],
        vec![on(BACKUP, 200, backups("r1")), find(deployment()), on(PODS, 200, list(&[]))],
        vec![on(BACKUP, 200, backups("r1")), find(changed), on(PODS, 200, list(&[]))],
    ] {
        let result = play(script, drop).await;
        assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
    }
}

const CREATE: &str = "POST /apis/apps/v1/namespaces/rook-ceph/deployments?&fieldManager=osd-migrate";

fn exists(key: &str) -> Toleration {
    let operator = "Exists".to_owned();
    Toleration { key: key.to_owned(), operator, value: String::new(), effect: String::new(), seconds: None }
}

fn declared() -> (ClusterFsid, Declaration) {
    let mut declaration = render_osd::tests::declaration();
    declaration.storage.placement.tolerations = vec![exists("storage")];
    ("6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap(), declaration)
}

fn fresh(replaces: Option<(&str, i64)>) -> Deploy {
    let replaces = replaces.map(|(uid, generation)| (uid.to_owned(), generation));
    Deploy { fresh: Some(Fresh { replaces, source: None }), ..render_osd::tests::deploy() }
}

async fn start(k8s: &K8s, replaces: Option<(&str, i64)>) -> Result<Deployed, K8sError> {
    let (fsid, declaration) = declared();
    k8s.deploy(&fresh(replaces), &declaration, &fsid).await
}

/// Returns the reads before a write: node and CephCluster in parallel, the Deployment last.
fn reads(found: &[Value]) -> Vec<Exchange> {
    let node = json!({"metadata": {"name": "h1.example", "labels": {"kubernetes.io/hostname": "h1"}},
        "spec": {"taints": [{"key": "late", "effect": "NoSchedule"}, {"key": "storage", "effect": "NoSchedule"}]}});
    let owner = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
        "metadata": {"name": "my-cluster", "uid": "c-uid"},
        "spec": {"labels": {"osd": {"team": "storage"}}, "resources": {"osd": {"requests": {"cpu": "1"}}}}});
    vec![
        on("GET /api/v1/nodes/h1.example", 200, node),
        on(CLUSTERS, 200, list(&[owner])),
        on(FIND, 200, list(found)),
    ]
}

fn with(mut script: Vec<Exchange>, more: Exchange) -> Vec<Exchange> {
    script.push(more);
    script
}

#[tokio::test]
async fn new_osd_is_created_from_the_cephcluster_settings() {
    let create = on(CREATE, 201, deployment()).with(|body| {
        assert!(body["metadata"].get("uid").is_none() && body["metadata"].get("resourceVersion").is_none());
        assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "c-uid");
        assert_eq!(body["metadata"]["labels"]["team"], "storage");
        let pod = &body["spec"]["template"]["spec"];
        let late = json!({"key": "late", "operator": "Equal", "effect": "NoSchedule"});
        assert_eq!(pod["tolerations"], json!([{"key": "storage", "operator": "Exists"}, late]));
        assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/hostname": "h1"}));
        assert_eq!(pod["containers"][0]["resources"]["requests"]["cpu"], "1");
        assert!(pod.get("affinity").is_none());
    });
    let result = play(with(reads(&[]), create), async |k8s| start(k8s, None).await).await;
    assert_eq!(result.unwrap(), Deployed::Done);
}

#[tokio::test]
async fn new_osd_replaces_exactly_the_observed_deployment() {
    let put = on(PUT, 200, deployment()).with(|body| {
        assert_eq!(
            (&body["metadata"]["uid"], &body["metadata"]["resourceVersion"]),
            (&json!("d-uid"), &json!("77"))
        );
        assert!(body["spec"].get("fieldOfTheFuture").is_none(), "it is another OSD's");
    });
    let script = with(reads(&[deployment()]), put);
    let result = play(script, async |k8s| start(k8s, Some(("d-uid", 5))).await).await;
    assert_eq!(result.unwrap(), Deployed::Done);

    let mut old = deployment();
    old["spec"]["selector"] = json!({"matchLabels": {"app": "rook-ceph-osd"}});
    let delete = "DELETE /apis/apps/v1/namespaces/rook-ceph/deployments/rook-ceph-osd-3?";
    let delete =
        on(delete, 200, old.clone()).with(|body| assert_eq!(body["preconditions"], json!({"uid": "d-uid"})));
    let script = with(reads(&[old]), delete);
    let result = play(script, async |k8s| start(k8s, Some(("d-uid", 5))).await).await;
    assert_eq!(result.unwrap(), Deployed::Deleting);
}

#[tokio::test]
async fn new_osd_is_refused_if_its_deployment_is_not_as_observed() {
    let there = || vec![deployment()];
    for (found, replaces) in [
        (there(), None),
        (there(), Some(("d-uid", 4))),
        (there(), Some(("other", 5))),
        (Vec::new(), Some(("d-uid", 5))),
    ] {
        let result = play(reads(&found), async |k8s| start(k8s, replaces).await).await;
        assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{replaces:?}: {result:?}");
    }
    let (_, declaration) = declared();
    let mut recreated = declaration;
    recreated.uid = "older".to_owned();
    let mut script = reads(&[]);
    script.truncate(2);
    let result = play(script, async |k8s| k8s.deploy(&fresh(None), &recreated, &declared().0).await).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
}

fn starts_it() -> Value {
    let mut object = deployment();
    let env = json!([{"name": "ROOK_OSD_UUID", "value": render_osd::tests::deploy().fsid.to_string()}]);
    object["spec"]["template"] = json!({"spec": {"containers": [{"name": "osd", "env": env}]}});
    object
}

#[tokio::test]
async fn deployment_that_already_starts_the_osd_is_a_success() {
    let result = play(reads(&[starts_it()]), async |k8s| start(k8s, None).await).await;
    assert_eq!(result.unwrap(), Deployed::Done);
    let (fsid, declaration) = declared();
    let adopt = async |k8s: &K8s| k8s.adopt(&fresh(None), &declaration, &fsid).await;
    assert_eq!(play(reads(&[starts_it()]), adopt).await.unwrap(), Deployed::Done);
}

#[tokio::test]
async fn osd_is_adopted_only_if_it_has_no_deployment() {
    let (fsid, declaration) = declared();
    // An adoption ignores the Deployment that the act names for replacement.
    let adopt = async |k8s: &K8s| k8s.adopt(&fresh(Some(("d-uid", 5))), &declaration, &fsid).await;
    assert_eq!(play(with(reads(&[]), on(CREATE, 201, deployment())), adopt).await.unwrap(), Deployed::Done);
    let result = play(reads(&[deployment()]), adopt).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
    let raced = with(reads(&[]), on(CREATE, 409, refusal(409, "AlreadyExists")));
    assert!(matches!(play(raced, adopt).await, Err(K8sError::AlreadyExists(_))));
}

#[tokio::test]
async fn osd_that_no_deployment_could_start_is_refused() {
    let mut sealed = fresh(None);
    sealed.layout.encrypted = true;
    let (fsid, declaration) = declared();
    let result = play(Vec::new(), async |k8s| k8s.deploy(&sealed, &declaration, &fsid).await).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
}

#[tokio::test]
async fn tolerations_are_added_by_one_put_of_the_observed_deployment() {
    let mut there = deployment();
    there["spec"]["template"] = json!({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}});
    let put = on(PUT, 200, deployment()).with(|body| {
        assert_eq!(
            (&body["metadata"]["uid"], &body["metadata"]["resourceVersion"]),
            (&json!("d-uid"), &json!("77"))
        );
        let both = json!([{"key": "a", "operator": "Exists"}, {"key": "late", "operator": "Exists"}]);
        assert_eq!(body["spec"]["template"]["spec"]["tolerations"], both);
        assert_eq!((&body["spec"]["replicas"], &body["spec"]["fieldOfTheFuture"]), (&json!(1), &json!(true)));
    });
    let tolerate = async |k8s: &K8s, uid: &str, generation: i64, key: &str| {
        k8s.tolerate(OsdId(3), uid, generation, &[exists(key)]).await
    };
    let script = vec![on(FIND, 200, list(&[there.clone()])), put];
    play(script, async |k8s| tolerate(k8s, "d-uid", 5, "late").await).await.unwrap();
    let has_it = vec![on(FIND, 200, list(&[there.clone()]))];
    play(has_it, async |k8s| tolerate(k8s, "d-uid", 1, "a").await).await.unwrap();
    for (uid, generation) in [("other", 5), ("d-uid", 4)] {
        let script = vec![on(FIND, 200, list(&[there.clone()]))];
        let result = play(script, async |k8s| tolerate(k8s, uid, generation, "late").await).await;
        assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
    }
}

// ---- the dry run before a stop

const PUT_DRY: &str =
    "PUT /apis/apps/v1/namespaces/rook-ceph/deployments/rook-ceph-osd-3?&dryRun=All&fieldManager=osd-migrate";
const POST_DRY: &str =
    "POST /apis/apps/v1/namespaces/rook-ceph/deployments?&dryRun=All&fieldManager=osd-migrate";

/// Plays the dry run of the new Deployment in place of `found`; the API server gives this answer.
async fn admits(
    found: Value,
    request: &str,
    (status, reason, message): (u16, &str, &str),
) -> Result<Admission, K8sError> {
    let node = json!({"metadata": {"name": "h1.example", "labels": {"kubernetes.io/hostname": "h1"}}});
    let answer = if status < 300 {
        deployment()
    } else {
        json!({"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message})
    };
    let script = vec![
        on("GET /api/v1/nodes/h1.example", 200, node),
        on(FIND, 200, list(&[found])),
        on(request, status, answer).with(|body| {
            let metadata = &body["metadata"];
            assert!(metadata.get("uid").is_none() && metadata.get("resourceVersion").is_none(), "{metadata}");
            assert_eq!(body["spec"]["template"]["spec"]["initContainers"][0]["name"], "activate");
        }),
    ];
    let fsid = "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap();
    let (deploy, declaration) = (render_osd::tests::deploy(), render_osd::tests::declaration());
    play(script, async |k8s| k8s.admits(&deploy, None, &declaration, &fsid).await).await
}

#[tokio::test]
async fn dry_run_of_a_deployment_reports_the_admission_result() {
    let policy = "deployments.apps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' \
                  denied request: no";
    let refused = || Admission::Refused(policy.to_owned());
    let put = async |answer| admits(deployment(), PUT_DRY, answer).await;
    assert_eq!(put((200, "", "")).await.unwrap(), Admission::Admitted);
    assert_eq!(put((422, "Invalid", policy)).await.unwrap(), refused());
    assert!(matches!(put((422, "Invalid", "spec: Invalid value")).await.unwrap(), Admission::Refused(_)));
    // A webhook with side effects supports no dry run: its refusal, if any, appears when the OSD is deployed.
    let no_dry_run = (400, "BadRequest", "admission webhook \"v\" does not support dry run");
    assert_eq!(put(no_dry_run).await.unwrap(), Admission::Admitted);
    let down = "Internal error occurred: failed calling webhook \"v\": connection refused";
    assert!(matches!(put((500, "InternalError", down)).await.unwrap(), Admission::Unanswered(_)));
    // A missing right is an error, as in every other call.
    let right = "deployments.apps \"x\" is forbidden: User \"u\" cannot update resource";
    assert!(matches!(put((403, "Forbidden", right)).await, Err(K8sError::Forbidden { .. })));
}

#[tokio::test]
async fn dry_run_of_another_selector_is_a_create_under_the_same_name() {
    let post = async |answer| {
        let mut old = deployment();
        old["spec"]["selector"] = json!({"matchLabels": {"app": "rook-ceph-osd"}});
        admits(old, POST_DRY, answer).await.unwrap()
    };
    assert_eq!(post((409, "AlreadyExists", "it exists")).await, Admission::Admitted);
    let webhook = "admission webhook \"v\" denied the request: no";
    assert_eq!(post((403, "Forbidden", webhook)).await, Admission::Refused(webhook.to_owned()));
    let quota = "deployments.apps \"x\" is forbidden: exceeded quota: q, requested: count/deployments.apps=1";
    assert_eq!(post((403, "Forbidden", quota)).await, Admission::Admitted, "the present one goes first");
}
