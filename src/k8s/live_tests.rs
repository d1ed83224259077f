//! Against a real API server: what no script of answers can prove. Ignored unless asked for, as it needs a KUBECONFIG with
//! the contexts `admin`, `runner` and `node` (tokens of the two ServiceAccounts of job/rbac.yaml), the namespace
//! rook-ceph with those Roles, and a CephCluster there. What the runner does here is done with the runner's own Role.
//!
//! `cargo test --lib live -- --ignored --test-threads=1`

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::observation::Kube;
use crate::domain::osd::{NodeName, OsdId};

pub(super) const NODE: &str = "live-node";

pub(super) async fn client(context: &str) -> K8s {
    let _already = rustls::crypto::ring::default_provider().install_default();
    K8s::connect(Place::new("rook-ceph"), Some(context)).await.unwrap()
}

pub(super) async fn raw(
    k8s: &K8s,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, kube::Error> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let bytes = body.map(|b| serde_json::to_vec(b).unwrap()).unwrap_or_default();
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind).body(bytes);
    k8s.client.request(request.unwrap()).await
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/rook-ceph/deployments";
pub(super) const PODS: &str = "/api/v1/namespaces/rook-ceph/pods";

fn legacy(osd: u32, selector: &Value) -> Value {
    let labels = json!({"app": "rook-ceph-osd", "ceph-osd-id": osd.to_string(), "rook_cluster": "rook-ceph"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": format!("rook-ceph-osd-{osd}"), "labels": labels},
        "spec": {"selector": {"matchLabels": selector}, "template": {"metadata": {"labels": labels}, "spec": {
            "nodeSelector": {"kubernetes.io/hostname": NODE},
            "containers": [{"name": "osd", "image": "ceph:old",
                "command": ["bash", "-c", "exec ceph-osd --osd-uuid 1f0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b11"]}]}}}})
}

fn rook_selector(osd: u32) -> Value {
    json!({"app": "rook-ceph-osd", "ceph-osd-id": osd.to_string(), "rook_cluster": "rook-ceph"})
}

/// A node that no kubelet looks after: pods can be bound to it and stay as they are.
pub(super) async fn fake_node(admin: &K8s) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE,
        "labels": {"kubernetes.io/hostname": NODE}}});
    let _there = raw(admin, "POST", "/api/v1/nodes", Some(&node)).await;
}

pub(super) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..150 {
        if let Some(found) = look().await {
            return found;
        }
        #[expect(clippy::disallowed_methods, reason = "a real server takes its time")]
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{what}: not within 30 s");
}

fn daemon(kube: &Kube, osd: u32) -> &crate::domain::observation::Daemon {
    &kube.daemons[&OsdId(osd)]
}

#[tokio::test]
#[ignore = "needs a real API server"]
async fn live_ledger_is_compared_and_swapped() {
    let runner = client("runner").await;
    let data = |value: &str| [("run".to_owned(), value.to_owned())].into();
    let first = match runner.load().await.unwrap() {
        Some((_, version)) => runner.save(data("first"), Some(&version)).await.unwrap(),
        None => runner.save(data("first"), None).await.unwrap(),
    };
    assert!(matches!(runner.save(data("again"), None).await, Err(K8sError::Conflict { .. })));
    let second = runner.save(data("second"), Some(&first)).await.unwrap();
    assert!(matches!(runner.save(data("stale"), Some(&first)).await, Err(K8sError::Conflict { .. })));
    assert_eq!(runner.load().await.unwrap(), Some((data("second"), second)));
    let line = format!("{{\"at\":\"{}\"}}", std::process::id());
    for _ in 0..2 {
        runner.append_history(&line).await.unwrap();
    }
    let shard: ConfigMap = runner.kind::<ConfigMap>().get("osd-migrate-history-0").await.unwrap();
    assert_eq!(shard.data.unwrap()["lines"].matches(&line).count(), 1);
    for text in ["{}", "{\"a\":1}"] {
        runner.write_status(text).await.unwrap();
        assert_eq!(runner.read_status().await.unwrap().as_deref(), Some(text));
    }
}

pub(super) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_000_000, 0).unwrap()
}

fn holder(job: &str, pod: &str, pod_uid: &str) -> Holder {
    Holder {
        job_uid: format!("{job}-uid"),
        pod_uid: pod_uid.to_owned(),
        pod: pod.to_owned(),
        job: job.to_owned(),
    }
}

async fn pod(admin: &K8s, name: &str, node: Option<&str>) -> String {
    let _gone = raw(admin, "DELETE", &format!("{PODS}/{name}?gracePeriodSeconds=0"), None).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
    let made = raw(admin, "POST", PODS, Some(&pod)).await.unwrap();
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[tokio::test]
#[ignore = "needs a real API server"]
async fn live_lease_changes_hands_only_when_its_holder_is_gone() {
    let (admin, runner) = (client("admin").await, client("runner").await);
    let lease = "/apis/coordination.k8s.io/v1/namespaces/rook-ceph/leases/osd-migrate";
    let _gone = raw(&admin, "DELETE", lease, None).await;
    let ghost = holder("a", "no-such-pod", "u");
    let LeaseOutcome::Mine(held) = runner.acquire(&ghost, now()).await.unwrap() else {
        panic!("it was free")
    };
    let soon = now() + chrono::TimeDelta::seconds(1);
    let renewed = runner.renew(&held, &ghost, soon).await.unwrap();
    assert!(matches!(runner.renew(&held, &ghost, soon).await, Err(K8sError::Conflict { .. })), "stale");
    let LeaseOutcome::Mine(_) = runner.acquire(&ghost, now()).await.unwrap() else { panic!("still mine") };
    drop(renewed);

    let live = holder("b", "live-pod", &pod(&admin, "live-pod", None).await);
    assert!(matches!(runner.acquire(&live, now()).await.unwrap(), LeaseOutcome::TakenOver { .. }));
    let next = holder("c", "other", "x");
    let outcome = runner.acquire(&next, now()).await.unwrap();
    assert_eq!(outcome, LeaseOutcome::HeldByLiveJob { job: "b".to_owned(), pod: "live-pod".to_owned() });
    let later = now() + chrono::TimeDelta::minutes(10);
    assert!(matches!(runner.acquire(&next, later).await.unwrap(), LeaseOutcome::WaitForOldPod { .. }));
    let held = until("the old pod is gone", async || match runner.acquire(&next, later).await.unwrap() {
        LeaseOutcome::TakenOver { held, .. } => Some(held),
        LeaseOutcome::Mine(_)
        | LeaseOutcome::HeldByLiveJob { .. }
        | LeaseOutcome::WaitForOldPod { .. }
        | LeaseOutcome::OldRunnerNodeLost { .. } => None,
    });
    runner.release(&held.await).await.unwrap();

    fake_node(&admin).await;
    let stuck = holder("d", "stuck-pod", &pod(&admin, "stuck-pod", Some(NODE)).await);
    assert!(
        matches!(runner.acquire(&stuck, now()).await.unwrap(), LeaseOutcome::Mine(_)),
        "it was given back"
    );
    let outcome = runner.acquire(&next, later).await.unwrap();
    assert!(matches!(outcome, LeaseOutcome::OldRunnerNodeLost { .. }), "{outcome:?}");
    let _gone = raw(&admin, "DELETE", &format!("{PODS}/stuck-pod?gracePeriodSeconds=0"), None).await;
    let _gone = raw(&admin, "DELETE", lease, None).await;
}

async fn fresh_deployment(admin: &K8s, osd: u32, selector: &Value) {
    let path = format!("{DEPLOYMENTS}/rook-ceph-osd-{osd}");
    let _gone = raw(admin, "DELETE", &path, None).await;
    let _gone =
        raw(admin, "DELETE", &format!("/api/v1/namespaces/rook-ceph/configmaps/osd-migrate-osd-{osd}"), None)
            .await;
    let legacy = legacy(osd, selector);
    until("the old Deployment is gone", async || raw(admin, "POST", DEPLOYMENTS, Some(&legacy)).await.ok())
        .await;
}

fn deploy(osd: u32, record: &RecordId) -> crate::domain::act::Deploy {
    crate::domain::act::Deploy {
        osd: OsdId(osd),
        record: record.clone(),
        node: NodeName(NODE.to_owned()),
        ..render_osd::tests::deploy()
    }
}

#[tokio::test]
#[ignore = "needs a real API server"]
async fn live_deployment_is_stopped_restarted_and_brought_back() {
    let (admin, runner) = (client("admin").await, client("runner").await);
    fake_node(&admin).await;
    let (osd, record) = (OsdId(3), RecordId("live-1".to_owned()));
    fresh_deployment(&admin, 3, &rook_selector(3)).await;
    let seen = until("the Deployment is settled", async || {
        let kube = runner.observe().await.unwrap();
        (!daemon(&kube, 3).pods.is_empty()).then_some(kube)
    });
    let seen = daemon(&seen.await, 3).clone();
    assert!(!seen.activates && seen.fsid.is_some() && seen.replicas == 1);
    runner.keep(osd, &record, &seen.uid).await.unwrap();
    runner.keep(osd, &record, &seen.uid).await.unwrap();
    let other = RecordId("live-2".to_owned());
    assert!(matches!(runner.keep(osd, &other, &seen.uid).await, Err(K8sError::Unexpected { .. })));

    // The server itself refuses a PUT of an object that changed meanwhile.
    let deployments = runner.untyped(&ApiResource::erase::<Deployment>(&()));
    let stale = deployments.list("ceph-osd-id=3", Some).await.unwrap().remove(0);
    let poke = json!({"metadata": {"annotations": {"poke": std::process::id().to_string()}}});
    raw(&admin, "PATCH", &format!("{DEPLOYMENTS}/rook-ceph-osd-3"), Some(&poke)).await.unwrap();
    assert!(matches!(deployments.replace("rook-ceph-osd-3", &stale).await, Err(K8sError::Conflict { .. })));
    let result = runner.stop(osd, &record, &seen.uid, &seen.resource_version).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");

    stop(&runner, 3, &record).await;
    runner.restart(osd, &record).await.unwrap();
    runner.restart(osd, &record).await.unwrap();
    assert_eq!(daemon(&runner.observe().await.unwrap(), 3).stopped_by, None);
    stop(&runner, 3, &record).await;
    let declaration = runner.observe().await.unwrap().declaration;
    let cluster = "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap();
    let deploy = deploy(3, &record);
    for _ in 0..2 {
        assert_eq!(runner.deploy(&deploy, &declaration, &cluster).await.unwrap(), Deployed::Done);
    }
    let new = daemon(&runner.observe().await.unwrap(), 3).clone();
    assert_eq!((new.uid.as_str(), new.fsid, new.activates), (seen.uid.as_str(), Some(deploy.fsid), true));
    assert_eq!((new.replicas, new.stopped_by), (1, None));

    // Somebody deletes it: it comes back from the kept copy.
    raw(&admin, "DELETE", &format!("{DEPLOYMENTS}/rook-ceph-osd-3"), None).await.unwrap();
    until("it is deleted", async || {
        (!runner.observe().await.unwrap().daemons.contains_key(&osd)).then_some(())
    })
    .await;
    runner.restart(osd, &record).await.unwrap();
    assert_eq!(daemon(&runner.observe().await.unwrap(), 3).fsid, seen.fsid);
    runner.sweep(osd, &record).await.unwrap();
    assert!(runner.observe().await.unwrap().kept.is_empty());
    raw(&admin, "DELETE", &format!("{DEPLOYMENTS}/rook-ceph-osd-3"), None).await.unwrap();
}

async fn stop(runner: &K8s, osd: u32, record: &RecordId) {
    // Its controller writes the status whenever it likes: look, stop, and look again where that came between.
    until("it is stopped", async || {
        let seen = daemon(&runner.observe().await.unwrap(), osd).clone();
        runner.stop(OsdId(osd), record, &seen.uid, &seen.resource_version).await.ok()
    })
    .await;
    let kube = runner.observe().await.unwrap();
    assert_eq!((daemon(&kube, osd).replicas, daemon(&kube, osd).stopped_by.as_ref()), (0, Some(record)));
}

#[tokio::test]
#[ignore = "needs a real API server"]
async fn live_deployment_with_another_selector_is_replaced() {
    let (admin, runner) = (client("admin").await, client("runner").await);
    fake_node(&admin).await;
    let record = RecordId("live-4".to_owned());
    fresh_deployment(&admin, 4, &json!({"app": "rook-ceph-osd", "ceph-osd-id": "4"})).await;
    let kube = runner.observe().await.unwrap();
    runner.keep(OsdId(4), &record, &daemon(&kube, 4).uid).await.unwrap();
    stop(&runner, 4, &record).await;
    let cluster = "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap();
    let deploy = deploy(4, &record);
    let step = async || runner.deploy(&deploy, &kube.declaration, &cluster).await.unwrap();
    assert_eq!(step().await, Deployed::Deleting);
    until("it is made again", async || (step().await == Deployed::Done).then_some(())).await;
    let new = daemon(&runner.observe().await.unwrap(), 4).clone();
    assert_eq!((new.fsid, new.replicas), (Some(deploy.fsid), 1));
    assert_ne!(new.uid, daemon(&kube, 4).uid);
    runner.sweep(OsdId(4), &record).await.unwrap();
    raw(&admin, "DELETE", &format!("{DEPLOYMENTS}/rook-ceph-osd-4"), None).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a real API server"]
async fn live_rendered_objects_have_only_fields_that_exist() {
    let admin = client("admin").await;
    let (declaration, request, own) =
        (render_osd::tests::declaration(), node_job::tests::request(), node_job::tests::own());
    let cluster = "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap();
    let frame =
        render_osd::Frame { namespace: "rook-ceph", cluster, declaration: &declaration, hostname: "h1" };
    let deployment =
        render_osd::render(&deploy(77, &request.record), &legacy(77, &rook_selector(77)), &frame);
    let osd_pod = deployment.pointer("/spec/template/spec").unwrap();
    let job = node_job::build(&node_job::Blueprint {
        request: &request,
        image: "ceph:16",
        data_dir: "/var/lib/rook",
        host_network: true,
        own: &own,
        osd_pod,
    });
    for (path, object) in [(DEPLOYMENTS, &deployment), ("/apis/batch/v1/namespaces/rook-ceph/jobs", &job)] {
        let strict = format!("{path}?fieldValidation=Strict&dryRun=All");
        let made = raw(&admin, "POST", &strict, Some(object)).await;
        assert!(made.is_ok(), "{made:?}");
    }
}

#[tokio::test]
#[ignore = "needs a real API server"]
async fn live_fence_is_put_once_and_taken_off_only_with_our_value() {
    let runner = client("runner").await;
    let fence = async || runner.observe().await.unwrap().fence;
    assert_eq!(fence().await, None, "begin without a fence");
    let before = runner.ceph_cluster().await.unwrap();
    runner.fence("osd-migrate-1").await.unwrap();
    runner.fence("osd-migrate-1").await.unwrap();
    assert_eq!(fence().await.as_deref(), Some("osd-migrate-1"));
    assert!(matches!(runner.fence("osd-migrate-2").await, Err(K8sError::Unexpected { .. })));
    assert!(matches!(runner.unfence("osd-migrate-2").await, Err(K8sError::Unexpected { .. })));
    // What a runner sends that was frozen between its look and its patch: the server refuses it.
    let name = before.metadata.name.clone().unwrap();
    let late = ceph_cluster::tests::patches(&before, "osd-migrate-2");
    for patch in late {
        let result = runner.ceph_clusters().json_patch(&name, &patch).await;
        assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
    }
    assert_eq!(fence().await.as_deref(), Some("osd-migrate-1"));
    runner.unfence("osd-migrate-1").await.unwrap();
    runner.unfence("osd-migrate-1").await.unwrap();
    assert_eq!(fence().await, None);
}

#[tokio::test]
#[ignore = "needs a real API server"]
async fn live_forbidden_says_verb_and_resource() {
    let node = client("node").await;
    let error = node.observe().await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, K8sError::Forbidden { .. }), "{text}");
    assert!(
        text.contains("lacks the verb `list` on `") && text.contains("kubectl auth can-i list "),
        "{text}"
    );
    let error = client("runner").await.kind::<Secret>().get("other").await.unwrap_err().to_string();
    assert!(error.contains("kubectl auth can-i get secrets/other -n rook-ceph"), "{error}");
}

#[tokio::test]
#[ignore = "needs a real API server"]
async fn live_event_and_mon_access_with_the_runners_role() {
    let runner = client("runner").await;
    let declaration = runner.observe().await.unwrap().declaration;
    let about = About::cluster(&declaration);
    runner.try_publish(&about, EventType::Normal, "OsdMigrated", "osd.3 is migrated", now()).await.ok();
    let again =
        runner.try_publish(&about, EventType::Normal, "OsdMigrated", "osd.3 is migrated", now()).await;
    assert!(matches!(again, Err(K8sError::AlreadyExists(_))), "{again:?}");
    let access = runner.mon_access().await.unwrap();
    assert_eq!(access.mon_host, "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]");
}
