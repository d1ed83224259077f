//! Node Jobs: the Job that runs an agent on a node, and its observed state. Builders and parsers are pure.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::domain::inspection::{Directory, NodeReport, NodeRequest, NodeTask, RecordId};
use crate::domain::observation::{JobState, NodeJob};
use crate::domain::osd::OsdId;
use crate::k8s::names::{ATTEMPT, OSD, Part, RECORD, TASK, attempt_labels, job_name, task};
use crate::k8s::nodes::agent_pod::{self, AgentPod, NodePod, Parent};
use crate::k8s::nodes::agent_pvc::AgentPvcs;
use crate::k8s::nodes::job_state::{self, JobFacts, PodFacts};

/// Key of the report in its ConfigMap.
pub(super) const REPORT: &str = "report";
/// Key of the last heartbeat in that ConfigMap.
pub(super) const HEARTBEAT: &str = "heartbeat";

/// Everything that a node Job is built from, in addition to the request.
pub(super) struct Blueprint<'a> {
    pub(super) request: &'a NodeRequest,
    /// Settings of its pod.
    pub(super) base: NodePod<'a>,
    /// Pod spec of the OSD's Deployment: the settings that let its pods onto that node let ours onto it, too.
    pub(super) osd_pod: &'a Value,
    /// uid of the report, which owns the Job.
    pub(super) report_uid: &'a str,
}

/// Builds the node Job.
///
/// Its name contains the saved attempt, so that creating it twice is `AlreadyExists`.
pub(super) fn build(blueprint: &Blueprint<'_>) -> Value {
    let &Blueprint { request, base, osd_pod, report_uid } = blueprint;
    let name = job_name(request);
    let directory = request.directory.as_ref().and_then(Directory::parent_and_name);
    let parent = directory.map(|(path, _)| Parent { path, read_only: request.task != NodeTask::Clear });
    let pod = AgentPod {
        node: &request.node,
        base,
        osd_pod,
        report: &name,
        part: "agent",
        ask: ("OSD_MIGRATE_REQUEST", serde_json::to_string(request).unwrap_or_default()),
        key_secret: Some(&name),
        parent,
        clears_remains: matches!(request.task, NodeTask::Rebuild | NodeTask::Wipe),
        pvcs: AgentPvcs::of(request),
    };
    let annotations = json!({RECORD: request.record.0});
    agent_pod::job(&pod, &attempt_labels(Part::NodeJob, request), &annotations, report_uid)
}

/// A node Job as listed.
#[derive(Clone)]
pub(crate) struct JobSeen {
    job: NodeJob,
    pub(super) facts: JobFacts,
}

/// A pod of a node Job as listed.
#[derive(Clone)]
pub(crate) struct PodSeen {
    job: NodeJob,
    pub(super) facts: PodFacts,
}

/// Report and heartbeat of an agent.
#[derive(Clone)]
pub(crate) struct ReportSeen {
    pub(crate) report: Option<Result<NodeReport, String>>,
    pub(crate) heartbeat: Option<DateTime<Utc>>,
}

/// Reads report and heartbeat from the agent's ConfigMap.
pub(crate) fn report_seen(data: &BTreeMap<String, String>) -> ReportSeen {
    let report = data.get(REPORT).filter(|text| !text.is_empty());
    ReportSeen {
        report: report.map(|text| serde_json::from_str(text).map_err(|e| e.to_string())),
        heartbeat: heartbeat(data),
    }
}

/// Returns the last heartbeat in the agent's ConfigMap.
pub(crate) fn heartbeat(data: &BTreeMap<String, String>) -> Option<DateTime<Utc>> {
    data.get(HEARTBEAT)?.parse().ok()
}

/// Reads a node Job; the error is a sentence for people.
pub(crate) fn job_seen(job: &Job) -> Result<JobSeen, String> {
    let meta = &job.metadata;
    let facts = job_state::job(job);
    let labels = meta.labels.clone().unwrap_or_default();
    let annotations = meta.annotations.clone().unwrap_or_default();
    let parsed =
        node_job(&facts.name, &labels, &annotations, job_state::created_at(meta)).ok_or_else(|| {
            format!("job/{} has labels of osd-migrate, but not those of a node Job", facts.name)
        })?;
    Ok(JobSeen { job: NodeJob { uid: facts.uid.clone(), ..parsed }, facts })
}

/// Reads a pod of a node Job; none if it is no such pod.
pub(crate) fn pod_seen(pod: &Pod) -> Option<PodSeen> {
    let meta = &pod.metadata;
    let facts = job_state::pod(pod)?;
    let labels = meta.labels.clone().unwrap_or_default();
    let annotations = meta.annotations.clone().unwrap_or_default();
    let parsed = node_job(&facts.job, &labels, &annotations, job_state::created_at(meta))?;
    let job = NodeJob { uid: facts.job_uid.clone(), trouble: facts.trouble.clone(), ..parsed };
    Some(PodSeen { job, facts })
}

/// Reads labels and annotations; the caller adds uid and state.
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

/// Returns Jobs with the state that their pods give them, oldest attempt first, and notes for people.
///
/// `has_report`: whether the report of a Job was read. A pod whose Job is gone counts as a running Job: the
/// name of a deleted Job can be used again at once, but its pod may still run.
pub(crate) fn assemble(
    jobs: Vec<Result<JobSeen, String>>,
    pods: Vec<PodSeen>,
    has_report: impl Fn(&str) -> bool,
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
                let pods_facts = pods.iter().map(|pod| &pod.facts);
                let state = job_state::state(&job.facts, has_report(&job.job.name), pods_facts);
                let trouble = pods.into_iter().find_map(|pod| pod.job.trouble).or(job.facts.refused);
                seen.push(NodeJob { state, trouble, ..job.job });
            }
            Err(note) => notes.push(note),
        }
    }
    for pods in of_job.into_values() {
        let alive = pods.into_iter().find(|pod| !pod.facts.terminal);
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

#[cfg(test)]
#[path = "node_job_tests.rs"]
pub(crate) mod tests;
