//! State of one of our Jobs, from its status and its pods together. Pure.

use chrono::{DateTime, Utc};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::domain::observation::JobState;
use crate::k8s::client::time::from_jiff;
use crate::k8s::pods;

/// A Job as listed.
#[derive(Clone)]
pub(crate) struct JobFacts {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// uid of the ConfigMap that owns the Job.
    pub(crate) owner: Option<String>,
    over: bool,
    /// True if the Job's controller has counted a pod that ended, so a container may have run.
    ran: bool,
    /// Reason why the Job has no pod, if the API server refuses it.
    pub(crate) refused: Option<String>,
}

impl JobFacts {
    /// Returns whether no pod of the Job has run, as far as the Job knows.
    pub(super) fn has_not_run(&self) -> bool {
        !self.over && !self.ran
    }
}

/// A pod of a Job as listed.
#[derive(Clone)]
pub(crate) struct PodFacts {
    /// Name of the pod's Job, which may be gone.
    pub(crate) job: String,
    /// uid of that Job.
    pub(crate) job_uid: String,
    pub(crate) terminal: bool,
    succeeded: bool,
    begun: bool,
    /// Reason why the pod waits or failed, for people.
    pub(crate) trouble: Option<String>,
}

/// Returns how a Job ended, if it did: its condition Complete or Failed.
///
/// Real servers announce the result earlier (`SuccessCriteriaMet`, `FailureTarget`), while pods still run.
pub(crate) fn ended(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let over =
        conditions.iter().find(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True");
    over.map(|c| c.type_.as_str())
}

/// Reads a Job.
pub(crate) fn job(job: &Job) -> JobFacts {
    let status = job.status.clone().unwrap_or_default();
    let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
    let ran = status.failed.unwrap_or(0) > 0
        || status.succeeded.unwrap_or(0) > 0
        || uncounted.failed.is_some_and(|u| !u.is_empty())
        || uncounted.succeeded.is_some_and(|u| !u.is_empty());
    let owners = job.metadata.owner_references.iter().flatten();
    JobFacts {
        name: job.metadata.name.clone().unwrap_or_default(),
        uid: job.metadata.uid.clone().unwrap_or_default(),
        owner: owners.into_iter().find(|o| o.kind == "ConfigMap").map(|o| o.uid.clone()),
        over: ended(job).is_some(),
        ran,
        refused: None,
    }
}

/// Reads a pod; none if it names no Job.
pub(crate) fn pod(pod: &Pod) -> Option<PodFacts> {
    let labels = pod.metadata.labels.as_ref()?;
    let label = |keys: [&str; 2]| keys.iter().find_map(|key| labels.get(*key)).cloned();
    Some(PodFacts {
        job: label(["batch.kubernetes.io/job-name", "job-name"])?,
        job_uid: label(["batch.kubernetes.io/controller-uid", "controller-uid"])?,
        terminal: pods::is_terminal(pod),
        succeeded: pods::has_succeeded(pod),
        begun: pods::has_begun(pod),
        trouble: pods::trouble(pod),
    })
}

/// Returns the state of a Job with these pods.
///
/// A Job with a pod that succeeded creates no other one: it has one completion. The Job's controller reports
/// the end some 3 s after the pod's. `has_report`: an agent that succeeded has reported before. Pods and
/// reports are listed at the same time, so without the report, the controller's word is waited for.
pub(crate) fn state<'a>(
    job: &JobFacts,
    has_report: bool,
    pods: impl Iterator<Item = &'a PodFacts> + Clone,
) -> JobState {
    let all_terminal = pods.clone().all(|pod| pod.terminal);
    let over = job.over || (has_report && pods.clone().any(|pod| pod.succeeded));
    let mut begun = pods.filter(|pod| pod.begun);
    if over && all_terminal {
        JobState::Ended
    } else if !job.over && begun.next().is_none() && !job.ran {
        JobState::Waiting
    } else {
        JobState::Running
    }
}

/// Returns when an object was created.
pub(super) fn created_at(meta: &ObjectMeta) -> DateTime<Utc> {
    meta.creation_timestamp.as_ref().and_then(|t| from_jiff(t.0)).unwrap_or_default()
}
