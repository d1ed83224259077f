//! Node Jobs: what is asked of the API to run an agent on a node, and what is seen of it. Builders and parsers are pure.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::domain::inspection::{NodeReport, NodeRequest, NodeTask, RecordId};
use crate::domain::observation::{JobState, NodeJob};
use crate::domain::osd::OsdId;

use super::names::{ATTEMPT, OSD, Part, RECORD, TASK, attempt_labels, job_name, task};
use super::whoami::Own;
use super::{from_jiff, pods};

/// Key of the report in its ConfigMap.
pub(super) const REPORT: &str = "report";
/// Key of the last heartbeat there.
pub(super) const HEARTBEAT: &str = "heartbeat";

/// ServiceAccount of the agents: it may patch ConfigMaps and nothing else.
const SERVICE_ACCOUNT: &str = "osd-migrate-node";

/// Where the host keeps the agents' locks and claims, below `dataDirHostPath`.
const HOST_FOLDER: &str = "osd-migrate";

/// What a node Job is built from, beside the request.
pub(super) struct Blueprint<'a> {
    pub(super) request: &'a NodeRequest,
    /// Ceph image that the agent runs in.
    pub(super) image: &'a str,
    /// The host's `dataDirHostPath`.
    pub(super) data_dir: &'a str,
    /// The cluster's daemons are on the host's network, so that is where the mons are reached.
    pub(super) host_network: bool,
    /// The runner's own pod: its image holds the agent.
    pub(super) own: &'a Own,
    /// Pod spec of the OSD's Deployment: what lets its pods onto that node lets ours.
    pub(super) osd_pod: &'a Value,
    /// uid of the report, which owns it.
    pub(super) report_uid: &'a str,
}

/// The report of that name owns it.
pub(super) fn owner(report: &str, uid: &str) -> Value {
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": report, "uid": uid}])
}

/// The node Job. Its name carries the saved attempt, so that making it twice is `AlreadyExists`.
pub(super) fn build(blueprint: &Blueprint<'_>) -> Value {
    let request = blueprint.request;
    let labels = attempt_labels(Part::NodeJob, request);
    // A side-car would keep the Job from ending; an autoscaler would end it in the middle.
    let mut pod_labels = labels.clone();
    pod_labels.insert("sidecar.istio.io/inject".to_owned(), "false".to_owned());
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(request),
            "labels": labels,
            "annotations": {RECORD: request.record.0},
            "ownerReferences": owner(&job_name(request), blueprint.report_uid),
        },
        "spec": {
            // One start only: whether to try again is the runner's to decide, after a look.
            "backoffLimit": 0,
            // A second pod must not start while the first may still write.
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": {
                    "labels": pod_labels,
                    "annotations": {
                        RECORD: request.record.0,
                        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                    },
                },
                "spec": pod(blueprint),
            },
        },
    })
}

fn pod(blueprint: &Blueprint<'_>) -> Value {
    let of_osd = |field: &str| blueprint.osd_pod.get(field).filter(|value| !value.is_null()).cloned();
    let mut secrets = blueprint.own.pull_secrets.clone();
    let theirs = of_osd("imagePullSecrets").and_then(|s| s.as_array().cloned()).unwrap_or_default();
    secrets.extend(theirs.iter().filter_map(|s| s.get("name")?.as_str()).map(str::to_owned));
    secrets.sort();
    secrets.dedup();
    let mut pod = json!({
        "restartPolicy": "Never",
        // A drain of the node lets the agent finish: a rebuild takes seconds to a few minutes.
        "terminationGracePeriodSeconds": 300,
        // By name: no scheduler, so no taint or full node keeps it away from the one place where the disk is.
        "nodeName": blueprint.request.node.0,
        "tolerations": of_osd("tolerations").unwrap_or_else(|| json!([])),
        "serviceAccountName": SERVICE_ACCOUNT,
        "enableServiceLinks": false,
        "hostNetwork": blueprint.host_network,
        "dnsPolicy": if blueprint.host_network { "ClusterFirstWithHostNet" } else { "ClusterFirst" },
        "imagePullSecrets": secrets.into_iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "initContainers": [install(&blueprint.own.image)],
        "containers": [agent(blueprint)],
        "volumes": volumes(blueprint),
    });
    if let (Some(class), Some(pod)) = (of_osd("priorityClassName"), pod.as_object_mut()) {
        pod.insert("priorityClassName".to_owned(), class);
    }
    pod
}

/// Copies our binary to where the container of Ceph's image finds it.
fn install(image: &str) -> Value {
    json!({
        "name": "install",
        "image": image,
        "command": ["/usr/local/bin/osd-migrate", "node", "install", "/opt/osd-migrate"],
        "volumeMounts": [{"name": "program", "mountPath": "/opt/osd-migrate"}],
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    })
}

fn agent(blueprint: &Blueprint<'_>) -> Value {
    let request = serde_json::to_string(blueprint.request).unwrap_or_default();
    json!({
        "name": "agent",
        "image": blueprint.image,
        "command": ["/opt/osd-migrate/osd-migrate", "node", "agent"],
        "env": [
            {"name": "OSD_MIGRATE_REQUEST", "value": request.replace("$(", "$$(")},
            {"name": "OSD_MIGRATE_REPORT", "value": job_name(blueprint.request)},
            {"name": "OSD_MIGRATE_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            // LVM and cryptsetup would wait for ever for the host's udevd, whose semaphores a pod does not share.
            {"name": "DM_DISABLE_UDEV", "value": "1"},
            {"name": "CEPH_VOLUME_SKIP_RESTORECON", "value": "1"},
        ],
        "securityContext": {"privileged": true, "runAsUser": 0},
        // Mounts are not passed on to the host: what the agent mounts to prove an OSD ends with it.
        "volumeMounts": [
            {"name": "program", "mountPath": "/opt/osd-migrate", "readOnly": true},
            {"name": "bootstrap-key", "mountPath": "/var/lib/ceph/bootstrap-osd", "readOnly": true},
            {"name": "state", "mountPath": "/var/lib/osd-migrate"},
            {"name": "devices", "mountPath": "/dev"},
            {"name": "run-udev", "mountPath": "/run/udev"},
        ],
    })
}

fn volumes(blueprint: &Blueprint<'_>) -> Value {
    let state = format!("{}/{HOST_FOLDER}", blueprint.data_dir.trim_end_matches('/'));
    json!([
        {"name": "program", "emptyDir": {}},
        {"name": "bootstrap-key", "secret": {"secretName": job_name(blueprint.request), "defaultMode": 256}},
        {"name": "state", "hostPath": {"path": state, "type": "DirectoryOrCreate"}},
        {"name": "devices", "hostPath": {"path": "/dev"}},
        {"name": "run-udev", "hostPath": {"path": "/run/udev"}},
    ])
}

/// A node Job as listed.
pub(super) struct JobSeen {
    job: NodeJob,
    over: bool,
    /// Its controller has counted a pod that ended: something ran.
    ran: bool,
}

/// A pod of a node Job as listed.
pub(super) struct PodSeen {
    job: NodeJob,
    terminal: bool,
    begun: bool,
}

/// What an agent wrote.
pub(super) struct ReportSeen {
    pub(super) report: Option<Result<NodeReport, String>>,
    pub(super) heartbeat: Option<DateTime<Utc>>,
}

/// Reads what an agent wrote into its ConfigMap.
pub(super) fn report_seen(data: &BTreeMap<String, String>) -> ReportSeen {
    let report = data.get(REPORT).filter(|text| !text.is_empty());
    ReportSeen {
        report: report.map(|text| serde_json::from_str(text).map_err(|e| e.to_string())),
        heartbeat: data.get(HEARTBEAT).and_then(|at| at.parse().ok()),
    }
}

/// Whether a Job is over, and how: its condition Complete or Failed. Real servers say earlier what it will be
/// (`SuccessCriteriaMet`, `FailureTarget`), while pods still run.
pub(super) fn ended(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let over =
        conditions.iter().find(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True");
    over.map(|c| c.type_.as_str())
}

/// Reads a node Job; the error is a sentence for people.
pub(super) fn job_seen(job: &Job) -> Result<JobSeen, String> {
    let meta = &job.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let labels = meta.labels.clone().unwrap_or_default();
    let annotations = meta.annotations.clone().unwrap_or_default();
    let created_at = meta.creation_timestamp.as_ref().and_then(|t| from_jiff(t.0)).unwrap_or_default();
    let parsed = node_job(&name, &labels, &annotations, created_at)
        .ok_or_else(|| format!("job/{name} has our labels, but not those of a node Job"))?;
    let status = job.status.clone().unwrap_or_default();
    let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
    let ran = status.failed.unwrap_or(0) > 0
        || status.succeeded.unwrap_or(0) > 0
        || uncounted.failed.is_some_and(|u| !u.is_empty())
        || uncounted.succeeded.is_some_and(|u| !u.is_empty());
    let uid = meta.uid.clone().unwrap_or_default();
    Ok(JobSeen { job: NodeJob { uid, ..parsed }, over: ended(job).is_some(), ran })
}

/// Reads a pod of a node Job; none where it is no such pod.
pub(super) fn pod_seen(pod: &Pod) -> Option<PodSeen> {
    let meta = &pod.metadata;
    let labels = meta.labels.clone().unwrap_or_default();
    let annotations = meta.annotations.clone().unwrap_or_default();
    let label = |keys: [&str; 2]| keys.iter().find_map(|key| labels.get(*key)).cloned();
    let name = label(["batch.kubernetes.io/job-name", "job-name"])?;
    let uid = label(["batch.kubernetes.io/controller-uid", "controller-uid"])?;
    let created_at = meta.creation_timestamp.as_ref().and_then(|t| from_jiff(t.0)).unwrap_or_default();
    let parsed = node_job(&name, &labels, &annotations, created_at)?;
    Some(PodSeen {
        job: NodeJob { uid, trouble: pods::trouble(pod), ..parsed },
        terminal: pods::is_terminal(pod),
        begun: pods::has_begun(pod),
    })
}

/// What labels and annotations say; uid and state come in later.
fn node_job(
    name: &str,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    created_at: DateTime<Utc>,
) -> Option<NodeJob> {
    let task: NodeTask = task(labels.get(TASK)?)?;
    Some(NodeJob {
        name: name.to_owned(),
        uid: String::new(),
        osd: OsdId(labels.get(OSD)?.parse().ok()?),
        record: RecordId(annotations.get(RECORD)?.clone()),
        attempt: labels.get(ATTEMPT)?.parse().ok()?,
        task,
        state: JobState::Waiting,
        created_at,
        heartbeat_at: None,
        trouble: None,
    })
}

/// Jobs with the state that their pods give them, oldest attempt first; and notes for people.
///
/// A pod whose Job is gone counts as a Job that runs: a deleted Job's name is free at once, its pod may live on.
pub(super) fn assemble(
    jobs: Vec<Result<JobSeen, String>>,
    pods: Vec<PodSeen>,
    heartbeats: &BTreeMap<String, DateTime<Utc>>,
) -> (Vec<NodeJob>, Vec<String>) {
    let mut notes = Vec::new();
    let mut of_job = BTreeMap::<String, Vec<PodSeen>>::new();
    for pod in pods {
        of_job.entry(pod.job.uid.clone()).or_default().push(pod);
    }
    let mut seen = Vec::new();
    for job in jobs {
        match job {
            Ok(job) => {
                let pods = of_job.remove(&job.job.uid).unwrap_or_default();
                let state = state(&job, &pods);
                let trouble = pods.into_iter().find_map(|pod| pod.job.trouble);
                seen.push(NodeJob { state, trouble, ..job.job });
            }
            Err(note) => notes.push(note),
        }
    }
    for pods in of_job.into_values() {
        let alive = pods.into_iter().find(|pod| !pod.terminal);
        seen.extend(alive.map(|pod| NodeJob { state: JobState::Running, ..pod.job }));
    }
    for job in &mut seen {
        job.heartbeat_at = heartbeats.get(&job.name).copied();
    }
    seen.sort_by(|a, b| {
        (a.created_at, a.osd, a.attempt, &a.name).cmp(&(b.created_at, b.osd, b.attempt, &b.name))
    });
    (seen, notes)
}

fn state(job: &JobSeen, pods: &[PodSeen]) -> JobState {
    let all_terminal = pods.iter().all(|pod| pod.terminal);
    let none_begun = pods.iter().all(|pod| !pod.begun);
    if job.over && all_terminal {
        JobState::Ended
    } else if !job.over && none_begun && !job.ran {
        JobState::Waiting
    } else {
        JobState::Running
    }
}

#[cfg(test)]
#[path = "node_job_tests.rs"]
pub(crate) mod tests;
