//! Rotations of the keys of encrypted OSDs on PVCs, as Rook runs them: a CronJob for each OSD (Rook 1.11 and
//! later).
//!
//! A rotation writes to the LUKS header of the OSD's device. Source of names, labels and affinity:
//! pkg/operator/ceph/cluster/osd/key_rotation.go, v1.13.10 to v1.20.6.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::Pod;

use crate::domain::observation::Rotation;
use crate::domain::osd::OsdId;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::pods;

/// Label of the CronJobs and their pods.
const SELECTOR: &str = "app=rook-ceph-osd-key-rotation";
/// Beginning of the names of CronJobs and Jobs; the id of the OSD follows.
const NAME: &str = "rook-ceph-osd-key-rotation-";
/// Arguments of a rotation for the devices of database and log, in its pod (spec.go and config.go, v1.11.11
/// to v1.20.6).
const DB: &str = "/var/lib/ceph/osd/block.db-tmp";
const WAL: &str = "/var/lib/ceph/osd/block.wal-tmp";

impl K8s {
    /// Returns the OSDs whose keys are being rotated: a pod of the rotation is on a node and has not ended.
    ///
    /// Pods are listed, and not Jobs. A pod must be on the node of the OSD's pod, so a Job that starts while
    /// the OSD is stopped waits until the OSD is started again. A run that waits for the end of such a Job
    /// would never start the OSD.
    pub(crate) async fn rotations_running(&self) -> Result<BTreeSet<OsdId>, K8sError> {
        let running = self.kind::<Pod>().list(SELECTOR, |pod| rotating(&pod)).await?;
        Ok(running.into_iter().collect())
    }

    /// Returns the CronJobs that rotate the keys of OSDs, with the devices that they know of.
    ///
    /// Rook writes the devices into the CronJob when it reconciles. Kubernetes runs it also while Rook is
    /// fenced.
    pub(crate) async fn rotations(&self) -> Result<BTreeMap<OsdId, Rotation>, K8sError> {
        let found = self.kind::<CronJob>().list(SELECTOR, |cron| rotation(&cron)).await?;
        Ok(found.into_iter().collect())
    }
}

/// Reads a CronJob; none if its name is not one of Rook's.
fn rotation(cron: &CronJob) -> Option<(OsdId, Rotation)> {
    let osd = cron.metadata.name.as_ref()?.strip_prefix(NAME)?.parse().ok().map(OsdId)?;
    let pods = cron.spec.as_ref().and_then(|spec| spec.job_template.spec.as_ref()?.template.spec.as_ref());
    let containers = pods.into_iter().flat_map(|pods| &pods.containers);
    let arguments: Vec<&String> = containers.flat_map(|one| one.args.iter().flatten()).collect();
    let has = |device: &str| arguments.iter().any(|argument| *argument == device);
    Some((osd, Rotation { db: has(DB), wal: has(WAL) }))
}

/// Returns the OSD whose key a pod rotates; none if the pod waits for a node, or has ended.
fn rotating(pod: &Pod) -> Option<OsdId> {
    let is_on_node = pod.spec.as_ref()?.node_name.as_ref().is_some_and(|node| !node.is_empty());
    if !is_on_node || pods::is_terminal(pod) {
        return None;
    }
    of_affinity(pod).or_else(|| of_job(pod))
}

/// Returns the OSD whose pod must be on the same node.
fn of_affinity(pod: &Pod) -> Option<OsdId> {
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.pod_affinity.as_ref()?;
    let terms = affinity.required_during_scheduling_ignored_during_execution.iter().flatten();
    let mut labels = terms.filter_map(|term| term.label_selector.as_ref()?.match_labels.as_ref());
    let id = labels.find_map(|labels| labels.get("ceph-osd-id"))?.parse().ok()?;
    Some(OsdId(id))
}

/// Returns the OSD that the name of the pod's Job contains: the CronJob's name and a time.
fn of_job(pod: &Pod) -> Option<OsdId> {
    let owners = pod.metadata.owner_references.iter().flatten();
    let mut names = owners.filter(|owner| owner.kind == "Job").map(|owner| owner.name.as_str());
    let rest = names.find_map(|name| name.strip_prefix(NAME))?;
    Some(OsdId(rest.split('-').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::k8s::wire::{list, on, play};

    /// Returns the pod of a rotation of osd.3 in this phase, as a Job of its CronJob creates it.
    fn pod(phase: &str) -> Value {
        let labels = json!({"app": "rook-ceph-osd", "ceph-osd-id": "3", "rook_cluster": "rook-ceph"});
        let term = json!({"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"});
        json!({
            "metadata": {"name": "rook-ceph-osd-key-rotation-3-29401920-x7k2p",
                "labels": {"app": "rook-ceph-osd-key-rotation", "rook_cluster": "rook-ceph"},
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "rook-ceph-osd-key-rotation-3-29401920", "uid": "j"}]},
            "spec": {"nodeName": "h1", "containers": [],
                "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
            "status": {"phase": phase},
        })
    }

    fn read(pod: Value) -> Option<OsdId> {
        rotating(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn rotation_runs_while_its_pod_is_on_a_node_and_has_not_ended() {
        for phase in ["Pending", "Running", "Unknown"] {
            assert_eq!(read(pod(phase)), Some(OsdId(3)), "{phase}");
        }
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(read(pod(phase)), None, "{phase}");
        }
        let mut waits = pod("Pending");
        waits["spec"]["nodeName"] = Value::Null;
        assert_eq!(read(waits), None, "the OSD is stopped, and no node fits");
    }

    #[test]
    fn rotated_osd_is_that_of_the_affinity_or_of_the_job() {
        let mut by_hand = pod("Running");
        by_hand["metadata"]["ownerReferences"][0]["name"] = json!("rotate-now");
        assert_eq!(read(by_hand.clone()), Some(OsdId(3)));
        let mut without = pod("Running");
        without["spec"]["affinity"] = Value::Null;
        assert_eq!(read(without), Some(OsdId(3)));
        by_hand["spec"]["affinity"] = Value::Null;
        assert_eq!(read(by_hand), None);
    }

    #[tokio::test]
    async fn cron_jobs_of_rotations_say_which_devices_they_know() {
        let cron = |name: &str, devices: &[&str]| {
            let arguments = [&["key-management", "rotate-key", "set1-data-0a"], devices].concat();
            let pods = json!({"containers": [{"name": "rook-ceph-osd-key-rotation", "args": arguments}]});
            json!({"metadata": {"name": name}, "spec": {"schedule": "@weekly",
                "jobTemplate": {"spec": {"template": {"spec": pods}}}}})
        };
        let data = "/var/lib/ceph/osd/block-tmp";
        let crons = [
            cron("rook-ceph-osd-key-rotation-3", &[data]),
            cron("rook-ceph-osd-key-rotation-4", &[data, DB, WAL]),
            cron("of-a-person", &[data]),
        ];
        let request = "GET /apis/batch/v1/namespaces/rook-ceph/cronjobs?&labelSelector=app%3Drook-ceph-osd-key-rotation&limit=100";
        let script = vec![on(request, 200, list(&crons))];
        let found = play(script, async |k8s| k8s.rotations().await).await.unwrap();
        let of = |all| Rotation { db: all, wal: all };
        assert_eq!(found, [(OsdId(3), of(false)), (OsdId(4), of(true))].into());
    }

    #[tokio::test]
    async fn rotations_are_listed_by_the_label_of_their_pods() {
        let pods =
            "GET /api/v1/namespaces/rook-ceph/pods?&labelSelector=app%3Drook-ceph-osd-key-rotation&limit=100";
        let mut of_osd_4 = pod("Running");
        of_osd_4["spec"]["affinity"] = Value::Null;
        of_osd_4["metadata"]["ownerReferences"][0]["name"] = json!("rook-ceph-osd-key-rotation-4-29401920");
        let script = vec![on(pods, 200, list(&[pod("Succeeded"), pod("Running"), pod("Running"), of_osd_4]))];
        let running = play(script, async |k8s| k8s.rotations_running().await).await.unwrap();
        assert_eq!(running, [OsdId(3), OsdId(4)].into());
    }
}
