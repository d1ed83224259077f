//! The exact requests that set and remove the fence, also if the CephCluster was written meanwhile.

use chrono::DateTime;
use serde_json::{Value, json};

use crate::k8s::wire::{CLUSTERS, PATCH_CLUSTER, cluster, list, on, play, refusal};
use crate::k8s::{EventType, FENCE, K8s, K8sError};

/// Asserts that the patch requires this version and no other, and records it.
fn put_on(version: &'static str) -> impl FnOnce(Value) + Send + 'static {
    move |body| {
        let at = "/metadata/annotations/osd-migrate.io~1fenced-at";
        assert_eq!(body[1], json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
        let last = json!({"op": "add", "path": at, "value": version});
        assert_eq!(body.as_array().unwrap().last(), Some(&last));
    }
}

/// Covers an observation older than the present version: Rook writes the CephCluster's status each minute.
#[tokio::test]
async fn fence_is_set_although_the_status_changed_meanwhile() {
    let seen = cluster(&json!({"a": "b"}));
    let mut written = seen.clone();
    written["metadata"]["resourceVersion"] = json!("9");
    written["status"] = json!({"ceph": {"lastChecked": "2026-11-02T23:59:10Z"}});
    let script = vec![
        on(CLUSTERS, 200, list(&[seen])),
        on(CLUSTERS, 200, list(&[written])),
        on(PATCH_CLUSTER, 200, cluster(&json!({}))).with(put_on("9")),
    ];
    let observe_and_fence = async |k8s: &K8s| {
        k8s.ceph_cluster().await?;
        k8s.fence("osd-migrate-1").await
    };
    play(script, observe_and_fence).await.unwrap();
}

/// Covers a label that a person has set again by hand, without the version.
#[tokio::test]
async fn own_fence_without_a_version_gets_the_current_version() {
    let script = vec![
        on(CLUSTERS, 200, list(&[cluster(&json!({FENCE: "osd-migrate-1"}))])),
        on(PATCH_CLUSTER, 200, cluster(&json!({}))).with(put_on("8")),
    ];
    play(script, async |k8s| k8s.fence("osd-migrate-1").await).await.unwrap();
}

#[tokio::test]
async fn fence_is_a_json_patch_that_tests_the_resource_version() {
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
async fn event_about_the_cluster_names_its_uid() {
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
async fn external_fence_is_neither_overwritten_nor_removed() {
    let theirs = || vec![on(CLUSTERS, 200, list(&[cluster(&json!({FENCE: "by-hand"}))]))];
    for result in [
        play(theirs(), async |k8s| k8s.fence("osd-migrate-1").await).await,
        play(theirs(), async |k8s| k8s.unfence("osd-migrate-1").await).await,
    ] {
        assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{result:?}");
    }
}

#[tokio::test]
async fn cephcluster_errors_distinguish_none_several_and_no_rook() {
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
async fn second_cephcluster_does_not_hide_the_one_that_was_read() {
    let first = cluster(&json!({}));
    let mut second = first.clone();
    second["metadata"]["name"] = json!("another");
    let name = first["metadata"]["name"].as_str().unwrap().to_owned();
    let script = vec![
        on(CLUSTERS, 200, list(std::slice::from_ref(&first))),
        on(CLUSTERS, 200, list(&[first, second])),
    ];
    let read_twice = async |k8s: &K8s| {
        k8s.ceph_cluster().await?;
        k8s.ceph_cluster().await
    };
    let found = play(script, read_twice).await.unwrap();
    assert_eq!(found.metadata.name, Some(name));
}

#[tokio::test]
async fn cephcluster_is_found_and_named_before_a_command() {
    let none = play(vec![on(CLUSTERS, 200, list(&[]))], async |k8s| k8s.find_cluster().await).await;
    let error = none.unwrap_err();
    assert!(error.to_string().contains("kubectl get cephclusters -A"), "{error}");
    let one = list(&[cluster(&json!({}))]);
    let names =
        play(vec![on(CLUSTERS, 200, one)], async |k8s| k8s.find_cluster().await.map(|()| k8s.names()));
    assert_eq!(names.await.unwrap().cluster.as_deref(), Some("c"));
}
