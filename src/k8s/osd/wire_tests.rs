//! The exact requests that stop an OSD, and those that start it again.

use serde_json::{Value, json};

use crate::domain::inspection::RecordId;
use crate::domain::osd::OsdId;
use crate::k8s::osd::daemon;
use crate::k8s::wire::{
    BACKUP, FIND, PODS, PUT, backups, deployment, list, on, play, record, refusal, stopped_deployment,
};
use crate::k8s::{FENCE, K8s, K8sError, STOPPED};

#[tokio::test]
async fn stop_is_one_put_of_the_observed_deployment() {
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
async fn stop_is_refused_if_the_deployment_changed_or_was_recreated() {
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
async fn stop_is_refused_for_a_closed_record() {
    for copy in [on(BACKUP, 404, refusal(404, "NotFound")), backups("r2")] {
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
async fn stop_proceeds_after_a_status_write_but_no_other_change() {
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
async fn stop_is_idempotent_and_a_conflict_is_reported() {
    let script = vec![on(FIND, 200, list(&[stopped_deployment()]))];
    play(script, async |k8s| k8s.stop(OsdId(3), &record(), "d-uid", 1).await).await.unwrap();
    let script =
        vec![on(FIND, 200, list(&[deployment()])), backups("r1"), on(PUT, 409, refusal(409, "Conflict"))];
    let result = play(script, async |k8s| k8s.stop(OsdId(3), &record(), "d-uid", 5).await).await;
    assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
}

#[tokio::test]
async fn restart_reverts_own_stop_and_no_external_one() {
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
async fn restart_recreates_a_deleted_deployment_from_its_backup() {
    let copy = json!({"metadata": {"name": "osd-migrate-osd-3", "annotations": {"osd-migrate.io/record": "r1"}},
        "data": {"deployment": deployment().to_string()}});
    let create = "POST /apis/apps/v1/namespaces/rook-ceph/deployments?&fieldManager=osd-migrate";
    let script = vec![
        on(FIND, 200, list(&[])),
        on(BACKUP, 200, copy.clone()),
        on(create, 201, deployment()).with(|body| {
            assert_eq!(body["metadata"]["name"], "rook-ceph-osd-3");
            assert!(
                body["metadata"].get("resourceVersion").is_none() && body["metadata"].get("uid").is_none()
            );
            assert_eq!(body["spec"]["replicas"], 1);
        }),
    ];
    play(script, async |k8s| k8s.restart(OsdId(3), &record()).await).await.unwrap();
    let script = vec![on(FIND, 200, list(&[])), on(BACKUP, 200, copy)];
    let other = RecordId("r2".to_owned());
    let result = play(script, async |k8s| k8s.restart(OsdId(3), &other).await).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
}

/// Covers pods of which the API server should have selected none.
#[tokio::test]
async fn stopped_osd_is_checked_by_its_own_pods_only() {
    let pod = |id: &str, phase: &str| {
        json!({"metadata": {"name": "p", "labels": {"app": "rook-ceph-osd", "ceph-osd-id": id}},
            "status": {"phase": phase}})
    };
    let with = async |pods: &[Value]| {
        let script = vec![on(FIND, 200, list(&[stopped_deployment()])), on(PODS, 200, list(pods))];
        play(script, async |k8s| k8s.expect_stopped(OsdId(3), &record()).await).await
    };
    with(&[]).await.unwrap();
    with(&[pod("4", "Running"), pod("3", "Succeeded")]).await.unwrap();
    let result = with(&[pod("4", "Running"), pod("3", "Running")]).await;
    assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
}
