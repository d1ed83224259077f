//! The exact requests that set and remove the fence, also if the CephCluster was written meanwhile.

use serde_json::{Value, json};

use super::wire_tests::{CLUSTERS, PATCH_CLUSTER, cluster, list, on, play};
use super::*;

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
async fn fence_is_put_up_though_the_status_was_written_since_the_look() {
    let seen = cluster(&json!({"a": "b"}));
    let mut written = seen.clone();
    written["metadata"]["resourceVersion"] = json!("9");
    written["status"] = json!({"ceph": {"lastChecked": "2026-11-02T23:59:10Z"}});
    let script = vec![
        on(CLUSTERS, 200, list(&[seen])),
        on(CLUSTERS, 200, list(&[written])),
        on(PATCH_CLUSTER, 200, cluster(&json!({}))).with(put_on("9")),
    ];
    let look_and_fence = async |k8s: &K8s| {
        k8s.ceph_cluster().await?;
        k8s.fence("osd-migrate-1").await
    };
    play(script, look_and_fence).await.unwrap();
}

/// Covers a label that a person has set again by hand, without the version.
#[tokio::test]
async fn fence_of_ours_gets_the_version_that_it_is_on() {
    let script = vec![
        on(CLUSTERS, 200, list(&[cluster(&json!({FENCE: "osd-migrate-1"}))])),
        on(PATCH_CLUSTER, 200, cluster(&json!({}))).with(put_on("8")),
    ];
    play(script, async |k8s| k8s.fence("osd-migrate-1").await).await.unwrap();
}
