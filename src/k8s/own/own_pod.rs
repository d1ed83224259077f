//! Our own pod: the image that contains our program, and the Job that the pod belongs to.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::time::from_jiff;
use crate::k8s::names::{CHART, COMPONENT, INSTALL, MANAGED_BY, NAME, OURS, PREFIX, is_scheduled};

/// Time after the start of a Job within which its first pod is created: the clocks of the controller and of
/// the API server may differ by seconds. A Job that a quota delays counts as one that resumes, and waits.
const FIRST_POD: TimeDelta = TimeDelta::minutes(1);

/// Values that the downward API gives a pod about itself, by environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEnv {
    /// Value of `POD_NAME`.
    pub name: String,
    /// Value of `POD_NAMESPACE`.
    pub namespace: String,
    /// Value of `POD_UID`.
    pub uid: String,
}

impl PodEnv {
    /// Reads the variables by `lookup`; the error names the one that is missing.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, K8sError> {
        let get = |key: &str| {
            let missing = || {
                K8sError::NoConfig(format!(
                    "environment variable {key} is not set: this command runs only in the pod of a Job"
                ))
            };
            lookup(key).filter(|value| !value.is_empty()).ok_or_else(missing)
        };
        Ok(Self { name: get("POD_NAME")?, namespace: get("POD_NAMESPACE")?, uid: get("POD_UID")? })
    }
}

/// Our own pod and Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Name of the pod.
    pub pod: String,
    /// uid of the pod.
    pub pod_uid: String,
    /// Node of the pod.
    pub node: Option<String>,
    /// Name of the Job; the pod's own name if no Job created it.
    pub job: String,
    /// uid of the Job; the pod's own uid if no Job created it.
    pub job_uid: String,
    /// True if the schedule created the Job, and not a person.
    pub scheduled: bool,
    /// Number of pods of the Job that failed before this one.
    pub failed_pods: u32,
    /// Whether the Job had a pod before this one, which may have worked, so that the Job may not leave its
    /// work to another one.
    pub resumes: bool,
    /// Image of the init container: it contains our program, and nothing of Ceph.
    pub image: String,
    /// `imagePullPolicy` of that image: the pods of agents use the same image with the same policy.
    pub pull_policy: Option<String>,
    /// Names of the Secrets that the image is pulled with.
    pub pull_secrets: Vec<String>,
    /// Labels and annotations that the owner added to the Job, and wants on the Jobs that it creates.
    pub more: More,
}

/// Labels and annotations that an owner adds to Jobs and their pods: for billing, for policies of the
/// cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct More {
    /// Labels of the Job.
    pub labels: BTreeMap<String, String>,
    /// Labels of the Job's pods.
    pub pod_labels: BTreeMap<String, String>,
    /// Annotations of the Job's pods.
    pub pod_annotations: BTreeMap<String, String>,
}

impl More {
    /// Reads the template of a run's Job, not its pod: admission adds labels and annotations to a pod that
    /// are for that pod only.
    pub(crate) fn of(job: &Job) -> Self {
        let template = job.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
        Self {
            labels: not_ours(job.metadata.labels.as_ref()),
            pod_labels: not_ours(template.and_then(|meta| meta.labels.as_ref())),
            pod_annotations: not_ours(template.and_then(|meta| meta.annotations.as_ref())),
        }
    }
}

/// Returns the entries that are neither ours nor added by the Job controller.
fn not_ours(all: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let is_ours = |key: &str| [NAME, MANAGED_BY, COMPONENT, CHART].contains(&key) || key.starts_with(PREFIX);
    let is_of_job =
        |key: &str| ["controller-uid", "job-name"].contains(&key) || key.starts_with("batch.kubernetes.io/");
    let backups = all.into_iter().flatten().filter(|(key, _)| !is_ours(key) && !is_of_job(key));
    backups.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl K8s {
    /// Reads our own pod and Job.
    pub async fn whoami(&self, env: &PodEnv) -> Result<Own, K8sError> {
        let pod = self.kind_in::<Pod>(&env.namespace).get(&env.name).await?;
        if pod.metadata.uid.as_ref() != Some(&env.uid) {
            let found = "it is another pod with the same name".to_owned();
            return Err(K8sError::Unexpected { what: format!("pod/{}", env.name), found });
        }
        let own = own(&pod).ok_or_else(|| K8sError::Malformed {
            what: format!("pod/{}", env.name),
            why: format!(
                "it has no init container {INSTALL}, whose image contains the program: create the Job from the \
                 CronJob {OURS} of the chart"
            ),
        })?;
        if own.job_uid == own.pod_uid {
            return Ok(own);
        }
        let job = self.run_job(&own.job).await?;
        Ok(Own {
            scheduled: job.as_ref().is_some_and(is_scheduled),
            failed_pods: job.as_ref().map_or(0, failed_pods),
            resumes: job.as_ref().is_some_and(|job| resumes(job, &pod)),
            more: job.as_ref().map(More::of).unwrap_or_default(),
            ..own
        })
    }
}

/// Returns the failed pods as the Job's controller counts them: it does not count a pod that the
/// `podFailurePolicy` ignores.
fn failed_pods(job: &Job) -> u32 {
    let failed = job.status.as_ref().and_then(|status| status.failed).unwrap_or_default();
    u32::try_from(failed).unwrap_or_default()
}

/// Returns whether the Job had another pod before.
///
/// A drained pod is no failed one, and its object is gone. The first pod of a Job is created when the Job
/// starts.
fn resumes(job: &Job, pod: &Pod) -> bool {
    let started = job.status.as_ref().and_then(|status| from_jiff(status.start_time.as_ref()?.0));
    let created = pod.metadata.creation_timestamp.as_ref().and_then(|time| from_jiff(time.0));
    let is_later = started.zip(created).is_some_and(|(started, created)| created - started > FIRST_POD);
    failed_pods(job) > 0 || is_later
}

fn own(pod: &Pod) -> Option<Own> {
    let spec = pod.spec.as_ref()?;
    let ours = spec.init_containers.iter().flatten().find(|c| c.name == INSTALL)?;
    let (name, uid) = (pod.metadata.name.clone()?, pod.metadata.uid.clone()?);
    let job = pod.metadata.owner_references.iter().flatten().find(|o| o.kind == "Job");
    let (job, job_uid) = job.map_or_else(|| (name.clone(), uid.clone()), |o| (o.name.clone(), o.uid.clone()));
    Some(Own {
        pod: name,
        pod_uid: uid,
        node: spec.node_name.clone(),
        job,
        job_uid,
        scheduled: false,
        failed_pods: 0,
        resumes: false,
        image: ours.image.clone()?,
        pull_policy: ours.image_pull_policy.clone(),
        pull_secrets: spec.image_pull_secrets.iter().flatten().map(|s| s.name.clone()).collect(),
        more: More::default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_pod_is_read_with_its_job_image_and_pull_secrets() {
        let pod = json!({
            "metadata": {"name": "m-x", "uid": "p", "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "m", "uid": "j", "controller": true}]},
            "spec": {"nodeName": "h1", "imagePullSecrets": [{"name": "s"}],
                "initContainers": [{"name": "side", "image": "x"},
                    {"name": "install", "image": "osd-migrate:1", "imagePullPolicy": "Always"}],
                "containers": [{"name": "osd-migrate", "image": "ceph:18"}]},
        });
        let seen = own(&serde_json::from_value(pod.clone()).unwrap()).unwrap();
        assert_eq!(
            (seen.job.as_str(), seen.job_uid.as_str(), seen.image.as_str()),
            ("m", "j", "osd-migrate:1")
        );
        assert_eq!((seen.pull_policy.as_deref(), seen.pull_secrets), (Some("Always"), vec!["s".to_owned()]));
        let mut without = pod;
        without["spec"]["initContainers"][1]["name"] = json!("other");
        assert_eq!(own(&serde_json::from_value(without).unwrap()), None, "only the program's own image");
    }

    #[test]
    fn job_resumes_with_a_pod_after_a_failed_or_drained_one() {
        let resumes = |failed: i32, created: &str| {
            let job =
                json!({"metadata": {}, "status": {"failed": failed, "startTime": "2026-11-21T10:00:00Z"}});
            let pod = json!({"metadata": {"creationTimestamp": created}});
            resumes(&serde_json::from_value(job).unwrap(), &serde_json::from_value(pod).unwrap())
        };
        assert!(!resumes(0, "2026-11-21T10:00:02Z"));
        assert!(resumes(1, "2026-11-21T10:00:20Z"));
        assert!(resumes(0, "2026-11-21T10:04:00Z"), "a drained pod does not count as failed");
        assert!(!super::resumes(&Job::default(), &Pod::default()));
    }

    #[test]
    fn job_labels_of_the_user_exclude_ours_and_the_controllers() {
        let job = json!({
            "metadata": {"name": "m", "labels": {"app.kubernetes.io/name": "osd-migrate", "osd-migrate.io/part": "run",
                "app.kubernetes.io/component": "run", "helm.sh/chart": "osd-migrate-1", "team": "storage"}},
            "spec": {"template": {"spec": {"containers": []}, "metadata": {
                "labels": {"app.kubernetes.io/name": "osd-migrate", "osd-migrate.io/part": "run", "job-name": "m",
                    "app.kubernetes.io/component": "run", "app.kubernetes.io/instance": "storage",
                    "controller-uid": "j", "batch.kubernetes.io/job-name": "m", "team": "storage", "cost-centre": "1"},
                "annotations": {"example.org/logs": "true"}}}},
        });
        let more = More::of(&serde_json::from_value(job).unwrap());
        let pairs =
            |all: &[(&str, &str)]| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let expected = More {
            labels: pairs(&[("team", "storage")]),
            pod_labels: pairs(&[
                ("app.kubernetes.io/instance", "storage"),
                ("team", "storage"),
                ("cost-centre", "1"),
            ]),
            pod_annotations: pairs(&[("example.org/logs", "true")]),
        };
        assert_eq!(more, expected);
    }

    #[test]
    fn pod_env_error_names_the_missing_variable() {
        let error = PodEnv::read(|key| (key == "POD_NAME").then(|| "x".to_owned())).unwrap_err();
        assert!(error.to_string().contains("POD_NAMESPACE"), "{error}");
    }
}
