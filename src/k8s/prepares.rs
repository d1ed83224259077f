//! Jobs in which Rook prepares OSDs, and the node on which each of them works.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod as ApiPod, PodSpec};

use crate::domain::observation::{Node, RookPrepare};
use crate::domain::osd::NodeName;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::nodes::job_state;
use crate::k8s::osd::daemons;
use crate::k8s::pods;

/// Selector of the Jobs, and of their pods.
pub(super) const OF_PREPARES: &str = "app=rook-ceph-osd-prepare";

const HOSTNAME: &str = "kubernetes.io/hostname";

/// Label of a pod with the name of its Job. Kubernetes sets it beside `batch.kubernetes.io/job-name`.
const JOB_NAME: &str = "job-name";

/// Environment variables of a Job that destroys an OSD, for Rook's own migration: up to 1.20, and after it.
const MIGRATES: [&str; 2] = ["ROOK_REPLACE_OSD", "ROOK_MIGRATE_OSD"];

/// A Job that has not ended.
#[derive(Debug)]
pub(super) struct RunningJob {
    name: String,
    /// Node selector of its pods.
    selector: BTreeMap<String, String>,
    /// Whether the Job destroys an OSD.
    migrates: bool,
}

/// A pod that is not terminal.
#[derive(Debug)]
struct PreparePod {
    job: Option<String>,
    node: Option<NodeName>,
}

impl K8s {
    /// Returns the Jobs with their nodes.
    ///
    /// The pods are read only if there is such a Job.
    pub(super) async fn placed(
        &self,
        running: Vec<RunningJob>,
        nodes: &BTreeMap<NodeName, Node>,
    ) -> Result<Vec<RookPrepare>, K8sError> {
        if running.is_empty() {
            return Ok(Vec::new());
        }
        let pods = self.kind::<ApiPod>().list(OF_PREPARES, |pod| prepare_pod(&pod)).await?;
        let placed = |job: RunningJob| RookPrepare { node: node_of(&job, &pods, nodes), job: job.name };
        Ok(running.into_iter().map(placed).collect())
    }
}

/// Reads a Job; none if it has ended, or is being deleted or is suspended and has no pod any more.
pub(super) fn running_job(job: &Job) -> Option<RunningJob> {
    let is_suspended = job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
    let stays = !is_suspended && job.metadata.deletion_timestamp.is_none();
    // A pod works on until its grace period is over, or until its node answers again.
    let has_pods = job
        .status
        .as_ref()
        .is_some_and(|status| [status.active, status.terminating].into_iter().flatten().any(|pods| pods > 0));
    let is_running = job_state::ended(job).is_none() && (stays || has_pods);
    let of_pods = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    is_running.then(|| RunningJob {
        name: job.metadata.name.clone().unwrap_or_default(),
        selector: of_pods.and_then(|pods| pods.node_selector.clone()).unwrap_or_default(),
        migrates: of_pods.is_some_and(migrates),
    })
}

fn migrates(pods: &PodSpec) -> bool {
    let names = pods.containers.iter().flat_map(|container| container.env.iter().flatten());
    names.into_iter().any(|env| MIGRATES.contains(&env.name.as_str()))
}

fn prepare_pod(pod: &ApiPod) -> Option<PreparePod> {
    let job = pod.metadata.labels.as_ref().and_then(|labels| labels.get(JOB_NAME)).cloned();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).map(NodeName);
    (!pods::is_terminal(pod)).then_some(PreparePod { job, node })
}

/// Returns the only node that a Job concerns; `None` if that is not known, or if it concerns each node.
///
/// A Job for the disks of a node is pinned to it. A Job for a PVC runs where its pod is: while the pod is not
/// bound, that is not known. A Job that destroys an OSD takes a replica away, which concerns each node.
fn node_of(job: &RunningJob, pods: &[PreparePod], nodes: &BTreeMap<NodeName, Node>) -> Option<NodeName> {
    let is_its = |pod: &&PreparePod| pod.job.as_ref().is_none_or(|name| *name == job.name);
    let bound: BTreeSet<Option<&NodeName>> =
        pods.iter().filter(is_its).map(|pod| pod.node.as_ref()).collect();
    if job.migrates {
        return None;
    }
    if job.selector.is_empty() {
        let mut bound = bound.into_iter();
        return bound.next().flatten().filter(|_| bound.next().is_none()).cloned();
    }
    let node = selected(&job.selector, nodes)?;
    // A node whose labels were changed keeps the pods that it had.
    bound.into_iter().flatten().all(|bound| *bound == node).then_some(node)
}

/// Returns the only node that a selector selects.
///
/// A node that was deleted has the name of its OSDs' Deployments.
fn selected(selector: &BTreeMap<String, String>, nodes: &BTreeMap<NodeName, Node>) -> Option<NodeName> {
    let mut found = daemons::selected(selector, nodes);
    match (found.next(), found.next()) {
        (Some(node), None) => Some(node.clone()),
        (Some(_), Some(_)) => None,
        (None, _) => selector.get(HOSTNAME).cloned().map(NodeName),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::k8s::wire::{list, on, play};

    fn job(spec: &Value, status: &Value) -> Option<RunningJob> {
        let job = json!({"metadata": {"name": "prepare-x"}, "spec": {"template": {"spec": spec}},
            "status": status});
        running_job(&serde_json::from_value(job).unwrap())
    }

    fn pinned(label: &str, value: &str) -> RunningJob {
        job(&json!({"containers": [], "nodeSelector": {label: value}}), &json!({"active": 1})).unwrap()
    }

    fn on_pvc() -> RunningJob {
        job(&json!({"containers": []}), &json!({"active": 1})).unwrap()
    }

    fn pod(name: &str, node: Option<&str>, phase: &str) -> Option<PreparePod> {
        let pod = json!({"metadata": {"labels": {"job-name": name}}, "status": {"phase": phase},
            "spec": {"nodeName": node, "containers": []}});
        prepare_pod(&serde_json::from_value(pod).unwrap())
    }

    fn node(labels: &[(&str, &str)]) -> Node {
        Node {
            ready: true,
            cordoned: false,
            hostname: String::new(),
            labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            taints: Vec::new(),
        }
    }

    /// Returns two nodes whose names are not their hostnames, and two with the same hostname.
    fn nodes() -> BTreeMap<NodeName, Node> {
        let of = |name: &str, hostname: &str| {
            (NodeName(name.to_owned()), node(&[(HOSTNAME, hostname), ("site/host", name)]))
        };
        [of("n1", "h1"), of("n2", "h2"), of("n3", "same"), of("n4", "same")].into()
    }

    fn placed(job: &RunningJob, pods: &[Option<PreparePod>]) -> Option<String> {
        let of = |pod: &PreparePod| PreparePod { job: pod.job.clone(), node: pod.node.clone() };
        let pods: Vec<_> = pods.iter().flatten().map(of).collect();
        node_of(job, &pods, &nodes()).map(|node| node.0)
    }

    #[test]
    fn prepare_job_counts_only_while_it_is_running() {
        let is_running = |status: Value| job(&json!({"containers": []}), &status).is_some();
        assert!(is_running(json!({"active": 1})));
        assert!(!is_running(json!({"conditions": [{"type": "Complete", "status": "True"}]})));
    }

    #[test]
    fn prepare_job_that_is_deleted_counts_while_it_has_a_pod() {
        let is_running = |status: Value| {
            let times = json!({"name": "a", "deletionTimestamp": "2026-11-29T12:00:00Z"});
            let spec = json!({"template": {"spec": {"containers": []}}});
            let deleted = json!({"metadata": times, "spec": spec, "status": status});
            let suspended = json!({"metadata": {"name": "a"}, "status": status,
                "spec": {"suspend": true, "template": {"spec": {"containers": []}}}});
            [deleted, suspended].map(|job| running_job(&serde_json::from_value(job).unwrap()).is_some())
        };
        assert_eq!(is_running(json!({"active": 1})), [true, true]);
        assert_eq!(is_running(json!({"active": 0, "terminating": 1})), [true, true]);
        assert_eq!(is_running(json!({})), [false, false]);
    }

    #[test]
    fn prepare_job_of_a_node_concerns_the_node_with_its_label() {
        assert_eq!(placed(&pinned(HOSTNAME, "h1"), &[]).as_deref(), Some("n1"));
        assert_eq!(placed(&pinned("site/host", "n2"), &[]).as_deref(), Some("n2"));
        assert_eq!(placed(&pinned(HOSTNAME, "gone"), &[]).as_deref(), Some("gone"));
        assert_eq!(placed(&pinned("site/host", "gone"), &[]), None);
        assert_eq!(placed(&pinned(HOSTNAME, "same"), &[]), None, "two nodes");
    }

    #[test]
    fn prepare_job_whose_pod_is_on_another_node_concerns_each_node() {
        let job = pinned(HOSTNAME, "h1");
        let pods = |node| [pod("prepare-x", Some(node), "Running"), pod("prepare-y", Some("n2"), "Running")];
        assert_eq!(placed(&job, &pods("n1")).as_deref(), Some("n1"));
        assert_eq!(placed(&job, &pods("n2")), None);
        let pending = [pod("prepare-x", None, "Pending"), pod("prepare-x", Some("n2"), "Failed")];
        assert_eq!(placed(&job, &pending).as_deref(), Some("n1"));
    }

    #[test]
    fn prepare_job_of_a_pvc_concerns_the_node_of_its_pod() {
        let bound = |nodes: &[Option<&str>]| {
            let pods: Vec<_> = nodes.iter().map(|node| pod("prepare-x", *node, "Running")).collect();
            placed(&on_pvc(), &pods)
        };
        assert_eq!(bound(&[Some("n1")]).as_deref(), Some("n1"));
        assert_eq!(bound(&[Some("n1"), Some("n1")]).as_deref(), Some("n1"));
        for unknown in [[].as_slice(), &[None], &[None, Some("n1")], &[Some("n1"), Some("n2")]] {
            assert_eq!(bound(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn prepare_job_that_destroys_an_osd_concerns_each_node() {
        for name in MIGRATES {
            let env = json!([{"name": "ROOK_NODE_NAME"}, {"name": name, "value": "3"}]);
            let containers = json!([{"name": "provision", "env": env}]);
            let spec = json!({"containers": containers, "nodeSelector": {HOSTNAME: "h1"}});
            assert_eq!(placed(&job(&spec, &json!({"active": 1})).unwrap(), &[]), None, "{name}");
        }
    }

    #[test]
    fn prepare_jobs_of_rook_on_pvcs_are_pinned_to_no_node() {
        let fixture = include_str!("../../tests/suite/fixtures/pvc/16.2.15/prepare-jobs.json");
        let jobs: Vec<Value> = serde_json::from_str(fixture).unwrap();
        for mut job in jobs {
            job["status"] = json!({"active": 1});
            let job = running_job(&serde_json::from_value(job).unwrap()).unwrap();
            assert!(job.selector.is_empty() && !job.migrates, "{job:?}");
        }
    }

    #[tokio::test]
    async fn pods_of_prepare_jobs_are_read_only_if_there_is_a_job() {
        assert_eq!(play(vec![], async |k8s| k8s.placed(vec![], &nodes()).await).await.unwrap(), []);
        let pods =
            "GET /api/v1/namespaces/rook-ceph/pods?&labelSelector=app%3Drook-ceph-osd-prepare&limit=100";
        let script = vec![on(pods, 200, list(&[]))];
        let found = play(script, async |k8s| k8s.placed(vec![pinned(HOSTNAME, "h2")], &nodes()).await).await;
        let node = Some(NodeName("n2".to_owned()));
        assert_eq!(found.unwrap(), [RookPrepare { job: "prepare-x".to_owned(), node }]);
    }
}
