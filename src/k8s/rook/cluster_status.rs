//! The status of the CephCluster: phase, message and numbers of a migration, and the former phase and
//! message.
//!
//! The former values are in an annotation of the CephCluster, written before the status. So any run restores
//! them, also after a kill.

use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::cluster_status::ClusterStatus;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::rook::ceph_cluster::version_of;

/// Annotation with the phase and the message that the CephCluster had before.
const FORMER_STATUS: &str = "osd-migrate.io/former-status";

/// Phase while OSDs are migrated, one of Rook's.
const PROGRESSING: &str = "Progressing";
/// Beginning of our message, by which our phase is recognised.
const MESSAGE: &str = "osd-migrate: ";

/// Phase and message of a CephCluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Former {
    phase: Option<String>,
    message: Option<String>,
}

impl Former {
    /// Returns the present phase and message.
    fn of(cluster: &DynamicObject) -> Self {
        let text = |path| cluster.data.pointer(path).and_then(Value::as_str).map(str::to_owned);
        Self { phase: text("/status/phase"), message: text("/status/message") }
    }

    /// Returns whether osd-migrate wrote them.
    fn is_ours(&self) -> bool {
        let is_ours = |message: &String| message.starts_with(MESSAGE);
        self.phase.as_deref() == Some(PROGRESSING) && self.message.as_ref().is_some_and(is_ours)
    }
}

impl K8s {
    /// Writes the status of a migration, and saves the former phase and message before.
    ///
    /// `message` says what the run does. Each patch requires the version that was read: Rook's writes stay.
    pub async fn write_cluster_status(&self, status: &ClusterStatus, message: &str) -> Result<(), K8sError> {
        let mut cluster = self.ceph_cluster().await?;
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let former = Former::of(&cluster);
        if saved(&cluster).is_none() {
            let text = serde_json::to_string(&former).unwrap_or_default();
            let annotation = annotation_patch(&cluster, &Value::String(text));
            cluster = self.ceph_clusters().merge(&name, &annotation).await?;
        }
        let patch = status_patch(&cluster, status, message);
        self.ceph_clusters().merge_status(&name, &patch).await
    }

    /// Restores the phase and the message, if osd-migrate wrote the present ones.
    ///
    /// Then the former ones are forgotten.
    pub async fn restore_cluster_status(&self) -> Result<(), K8sError> {
        let cluster = self.ceph_cluster().await?;
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let Some(former) = saved(&cluster) else { return Ok(()) };
        if Former::of(&cluster).is_ours() {
            self.ceph_clusters().merge_status(&name, &restore_patch(&cluster, &former)).await?;
        }
        // Without a version: another write of the status changes nothing about the annotation.
        let forgotten = json!({"metadata": {"annotations": {FORMER_STATUS: null}}});
        self.ceph_clusters().merge(&name, &forgotten).await.map(drop)
    }
}

/// Returns the saved phase and message.
///
/// An unreadable annotation counts as an empty status: Rook writes it again.
fn saved(cluster: &DynamicObject) -> Option<Former> {
    let text = cluster.metadata.annotations.as_ref()?.get(FORMER_STATUS)?;
    Some(serde_json::from_str(text).unwrap_or(Former { phase: None, message: None }))
}

fn annotation_patch(cluster: &DynamicObject, value: &Value) -> Value {
    json!({"metadata": {"resourceVersion": version_of(cluster), "annotations": {FORMER_STATUS: value}}})
}

/// Builds the patch of the status.
///
/// A store that no OSD has any more is removed.
fn status_patch(cluster: &DynamicObject, status: &ClusterStatus, message: &str) -> Value {
    let there = cluster.data.pointer("/status/storage/osd/storeType").and_then(Value::as_object);
    let gone = there.into_iter().flat_map(|types| types.keys()).map(|store| (store.clone(), Value::Null));
    let now = status.store_types.iter().map(|(store, osds)| (store.clone(), json!(osds)));
    let store_types: serde_json::Map<_, _> = gone.chain(now).collect();
    json!({
        "metadata": {"resourceVersion": version_of(cluster)},
        "status": {
            "phase": PROGRESSING,
            "message": format!("{MESSAGE}{message}"),
            "storage": {"osd": {
                "storeType": store_types,
                "migrationStatus": {"pending": status.pending},
            }},
        },
    })
}

fn restore_patch(cluster: &DynamicObject, former: &Former) -> Value {
    json!({
        "metadata": {"resourceVersion": version_of(cluster)},
        "status": {
            "phase": former.phase,
            "message": former.message,
            "storage": {"osd": {"migrationStatus": null}},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::wire::{CLUSTERS, cluster, list, on, play};

    const PATCH: &str = "PATCH /apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/c?&fieldManager=osd-migrate application/merge-patch+json";
    const STATUS: &str = "PATCH /apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/c/status?&fieldManager=osd-migrate application/merge-patch+json";

    fn ready() -> Value {
        let mut cluster = cluster(&json!({}));
        cluster["status"] = json!({"phase": "Ready", "message": "Cluster created successfully",
            "storage": {"osd": {"storeType": {"filestore": 1, "bluestore": 2}}}});
        cluster
    }

    fn status() -> ClusterStatus {
        ClusterStatus { store_types: [("bluestore".to_owned(), 3)].into(), pending: 2 }
    }

    /// Returns the CephCluster after the former status was saved.
    fn with_former() -> Value {
        let mut cluster = ready();
        let former = json!({"phase": "Ready", "message": "Cluster created successfully"}).to_string();
        cluster["metadata"]["annotations"] = json!({FORMER_STATUS: former});
        cluster
    }

    #[tokio::test]
    async fn former_status_is_saved_before_the_first_write() {
        let script = vec![
            on(CLUSTERS, 200, list(&[ready()])),
            on(PATCH, 200, with_former()).with(|body| {
                let text = body["metadata"]["annotations"][FORMER_STATUS].as_str().unwrap().to_owned();
                let former: Former = serde_json::from_str(&text).unwrap();
                assert_eq!(former.phase.as_deref(), Some("Ready"));
                assert!(body["metadata"]["resourceVersion"].is_string());
            }),
            on(STATUS, 200, ready()).with(|body| {
                let status = &body["status"];
                assert_eq!((&status["phase"], &status["message"]), (&json!("Progressing"), &json!("osd-migrate: osd.3: backfill")));
                assert_eq!(
                    status["storage"]["osd"],
                    json!({"storeType": {"bluestore": 3, "filestore": null}, "migrationStatus": {"pending": 2}})
                );
            }),
        ];
        play(script, async |k8s| k8s.write_cluster_status(&status(), "osd.3: backfill").await).await.unwrap();
    }

    #[tokio::test]
    async fn former_status_is_kept_by_later_writes() {
        let script = vec![on(CLUSTERS, 200, list(&[with_former()])), on(STATUS, 200, ready())];
        play(script, async |k8s| k8s.write_cluster_status(&status(), "osd.3: backfill").await).await.unwrap();
    }

    #[tokio::test]
    async fn former_status_is_restored_at_the_end() {
        let mut ours = with_former();
        ours["status"]["phase"] = json!("Progressing");
        ours["status"]["message"] = json!("osd-migrate: osd.3: backfill");
        let script = vec![
            on(CLUSTERS, 200, list(&[ours])),
            on(STATUS, 200, ready()).with(|body| {
                assert_eq!(
                    (&body["status"]["phase"], &body["status"]["message"]),
                    (&json!("Ready"), &json!("Cluster created successfully"))
                );
                assert_eq!(body["status"]["storage"]["osd"]["migrationStatus"], Value::Null);
            }),
            on(PATCH, 200, ready()).with(|body| {
                assert_eq!(body, json!({"metadata": {"annotations": {FORMER_STATUS: null}}}));
            }),
        ];
        play(script, async |k8s| k8s.restore_cluster_status().await).await.unwrap();
    }

    #[tokio::test]
    async fn status_that_rook_wrote_meanwhile_stays() {
        let script = vec![on(CLUSTERS, 200, list(&[with_former()])), on(PATCH, 200, ready())];
        play(script, async |k8s| k8s.restore_cluster_status().await).await.unwrap();
        let script = vec![on(CLUSTERS, 200, list(&[ready()]))];
        play(script, async |k8s| k8s.restore_cluster_status().await).await.unwrap();
    }
}
