//! A node Job's life against a real API server; its kubelet is played. How to run it: see `live_tests`.

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::live_tests::{NODE, PODS, client, fake_node, now, raw, until};
use super::*;
use crate::domain::inspection::{NodeReport, NodeTask, RecordId};
use crate::domain::observation::JobState;
use crate::domain::osd::{NodeName, OsdId};

#[tokio::test]
#[ignore = "needs a real API server"]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn live_node_job_goes_from_waiting_to_ended_and_leaves_nothing() {
    let (admin, runner, node) = (client("admin").await, client("runner").await, client("node").await);
    fake_node(&admin).await;
    let mut request = node_job::tests::request();
    request.node = NodeName(NODE.to_owned());
    request.record = RecordId(format!("live-{}", std::process::id()));
    let (own, key) = (node_job::tests::own(), Key::new("AQ=="));
    let agent = Agent {
        request: &request,
        image: "ceph:16",
        data_dir: "/var/lib/rook",
        host_network: false,
        bootstrap_key: &key,
        own: &own,
    };
    runner.create_agent(&agent).await.unwrap();
    runner.create_agent(&agent).await.unwrap();
    let name = job_name(&request);
    let seen = async || {
        let kube = runner.observe().await.unwrap();
        kube.node_jobs.into_iter().find(|job| job.name == name)
    };
    let first = seen().await.unwrap();
    assert_eq!((first.state, first.osd, first.attempt), (JobState::Waiting, OsdId(12), 2));
    assert_eq!((first.task, &first.record), (NodeTask::Rebuild, &request.record));

    let pod = until("its pod is there", async || {
        let list =
            raw(&admin, "GET", &format!("{PODS}?labelSelector=job-name%3D{name}"), None).await.unwrap();
        list["items"][0]["metadata"]["name"].as_str().map(str::to_owned)
    });
    let status_path = format!("{PODS}/{}/status", pod.await);
    let container = |state: Value| {
        json!([{"name": "agent", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": state}])
    };
    let play = async |phase: &str, state: Value| {
        let status = json!({"status": {"phase": phase, "containerStatuses": container(state)}});
        raw(&admin, "PATCH", &status_path, Some(&status)).await.unwrap();
    };
    play("Pending", json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}})).await;
    let waiting = seen().await.unwrap();
    assert_eq!(waiting.state, JobState::Waiting);
    assert_eq!(waiting.trouble.as_deref(), Some("container agent: ErrImagePull: no such image"));
    play("Running", json!({"running": {}})).await;
    assert_eq!(seen().await.unwrap().state, JobState::Running);

    // As the agent, with the agent's own Role.
    node.patch_heartbeat(&name, now()).await.unwrap();
    assert_eq!(seen().await.unwrap().heartbeat_at, Some(now()));
    let report = NodeReport {
        record: request.record.clone(),
        attempt: 2,
        osd: OsdId(12),
        task: NodeTask::Rebuild,
        began_at: now(),
        ended_at: now(),
        steps: vec![("prove".to_owned(), 3)],
        claims: [request.old].into(),
        inspection: None,
        problem: None,
    };
    node.patch_report(&name, &report).await.unwrap();
    let result = node.load().await;
    assert!(matches!(result, Err(K8sError::Forbidden { .. })), "{result:?}");

    play("Failed", json!({"terminated": {"exitCode": 1}})).await;
    let ended = until("the Job has ended", async || seen().await.filter(|job| job.state == JobState::Ended));
    assert_eq!(ended.await.uid, first.uid);
    let kube = runner.observe().await.unwrap();
    assert_eq!(kube.reports[&name], report);
    assert_eq!(kube.leftovers[&request.record], [format!("ConfigMap/{name}")].into());
    let secret = format!("/api/v1/namespaces/rook-ceph/secrets/{name}");
    assert!(raw(&admin, "GET", &secret, None).await.is_ok());
    let result = runner.kind::<Secret>().get(&name).await;
    assert!(matches!(result, Err(K8sError::Forbidden { .. })), "the runner can't read it back: {result:?}");
    assert!(matches!(runner.drop_agent(&name, "other-uid").await, Err(K8sError::Conflict { .. })));
    runner.sweep(OsdId(12), &request.record).await.unwrap();
    until("all is gone", async || {
        let kube = runner.observe().await.unwrap();
        let gone = kube.node_jobs.iter().all(|job| job.name != name)
            && !kube.leftovers.contains_key(&request.record);
        (gone && raw(&admin, "GET", &secret, None).await.is_err()).then_some(())
    })
    .await;
}
