//! Jobs of commands that a person typed outside of the cluster: created from the CronJob with other
//! arguments, observed, followed by their log, and deleted if they only looked.

use futures_util::{AsyncBufReadExt, Stream};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DynamicObject, LogParams, PropagationPolicy};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::kind::typed;
use crate::k8s::names::{CREATED_BY, OURS};
use crate::k8s::own::run_job::{CRON_JOB, from_template};
use crate::k8s::pods;

/// Path of the containers in a Job.
const CONTAINERS: &str = "/spec/template/spec/containers";

/// Time in seconds after which Kubernetes deletes the ended Job of a command that only looked.
///
/// The command line deletes the Job itself. This is for a command line that was killed: an hour is enough to
/// read the log.
const TTL_OF_A_LOOK: u32 = 3600;

/// Retries of a command that only looks: a person waits for it, and can type it again.
const RETRIES_OF_A_LOOK: u32 = 1;

/// Label with the name of the release, which the chart sets.
const RELEASE: &str = "app.kubernetes.io/instance";

/// Environment variable with the width of a person's terminal.
const COLUMNS: &str = "COLUMNS";

/// A command that only looks: its output is for a person who waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the output, if a person sees it on a terminal.
    pub columns: Option<u16>,
}

/// CronJob whose template every Job has.
pub struct Template(DynamicObject);

impl Template {
    /// Returns the arguments of the CronJob's container: the settings of every run.
    pub fn arguments(&self) -> Vec<String> {
        let containers = self.0.data.pointer(&format!("/spec/jobTemplate{CONTAINERS}"));
        let ours = containers.and_then(Value::as_array).and_then(|all| all.iter().find(|c| is_ours(c)));
        let args = ours.and_then(|container| container.get("args")).and_then(Value::as_array);
        args.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Returns a Job of this template with a name and arguments.
    fn job(&self, name: &str, args: &[String], look: Option<Look>, user: Option<&str>) -> Value {
        let mut job = from_template(&self.0, name);
        if let Some(user) = user {
            insert(&mut job, "/metadata/annotations", CREATED_BY, json!(user));
        }
        let containers = job.pointer_mut(CONTAINERS).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|container| is_ours(container)) {
            insert(container, "", "args", json!(args));
            if let Some(columns) = look.and_then(|look| look.columns) {
                set_env(container, COLUMNS, &columns.to_string());
            }
        }
        if look.is_some() {
            // Without a controller, the Job does not count as one of the CronJob's Jobs, whose logs are kept.
            // Without an owner, Argo CD 2 would take it for an object that Git lacks, and delete it.
            insert(&mut job, "/metadata/ownerReferences/0", "controller", json!(false));
            insert(&mut job, "/spec", "backoffLimit", json!(RETRIES_OF_A_LOOK));
            insert(&mut job, "/spec", "ttlSecondsAfterFinished", json!(TTL_OF_A_LOOK));
        }
        job
    }
}

/// Sets an environment variable of a container.
fn set_env(container: &mut Value, name: &str, value: &str) {
    let old = container.get("env").and_then(Value::as_array).into_iter().flatten();
    let others = old.filter(|variable| variable.get("name").and_then(Value::as_str) != Some(name));
    let env: Vec<_> = others.cloned().chain([json!({ "name": name, "value": value })]).collect();
    insert(container, "", "env", json!(env));
}

fn is_ours(container: &Value) -> bool {
    container.get("name").and_then(Value::as_str) == Some(OURS)
}

/// Sets a field of the object at a path.
fn insert(object: &mut Value, path: &str, key: &str, value: Value) {
    if let Some(map) = object.pointer_mut(path).and_then(Value::as_object_mut) {
        map.insert(key.to_owned(), value);
    }
}

/// A Job that was created or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandJob {
    /// Name of the Job.
    pub name: String,
    /// uid of the Job.
    pub uid: String,
    /// Release of Helm that the template is part of, by its label.
    pub release: Option<String>,
}

impl CommandJob {
    fn of(name: &str, object: ObjectMeta) -> Self {
        let release = object.labels.and_then(|mut labels| labels.remove(RELEASE));
        Self { name: name.to_owned(), uid: object.uid.unwrap_or_default(), release }
    }
}

/// State of a Job and its pods.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobState {
    /// Whether the Job has ended, and then whether it completed.
    pub completed: Option<bool>,
    /// Pods of the Job, the oldest first.
    pub pods: Vec<JobPod>,
}

/// A pod of a Job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobPod {
    /// Name of the pod.
    pub name: String,
    /// Whether its main container has started: a log exists.
    pub has_begun: bool,
    /// Whether the pod has ended.
    pub has_ended: bool,
    /// Exit code of the program, if it ended.
    pub exit: Option<i32>,
    /// Reason why the pod waits or failed.
    pub trouble: Option<String>,
}

impl JobPod {
    fn of(pod: &Pod) -> Self {
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let ours = statuses.filter(|status| status.name == OURS).find_map(|status| status.state.as_ref());
        Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            has_begun: pods::has_begun(pod),
            has_ended: pods::is_terminal(pod),
            exit: ours.and_then(|state| state.terminated.as_ref()).map(|ended| ended.exit_code),
            trouble: pods::trouble(pod),
        }
    }
}

impl K8s {
    /// Reads the CronJob.
    ///
    /// The error says how to install it, if it does not exist.
    pub async fn template(&self) -> Result<Template, K8sError> {
        let found = self.untyped(&ApiResource::erase::<CronJob>(&())).get(CRON_JOB).await;
        match found {
            Ok(cron_job) => Ok(Template(cron_job)),
            Err(K8sError::NotFound(_)) => {
                Err(K8sError::NotInstalled { namespace: self.namespace().to_owned() })
            }
            Err(error) => Err(error),
        }
    }

    /// Creates the Job of a command, with a note of the user who typed it.
    pub async fn create_command_job(
        &self,
        template: &Template,
        name: &str,
        args: &[String],
        look: Option<Look>,
    ) -> Result<CommandJob, K8sError> {
        let user = self.user().await;
        let job = template.job(name, args, look, user.as_deref());
        let job = typed::<DynamicObject>(name, job)?;
        let created = self.untyped(&ApiResource::erase::<Job>(&())).create(name, &job).await?;
        Ok(CommandJob::of(name, created.metadata))
    }

    /// Returns the Job of this name.
    pub async fn find_command_job(&self, name: &str) -> Result<CommandJob, K8sError> {
        let job = self.kind::<Job>().get(name).await?;
        Ok(CommandJob::of(name, job.metadata))
    }

    /// Reads the state of a Job and of its pods; none if the Job was deleted.
    pub async fn job_state(&self, job: &CommandJob) -> Result<Option<JobState>, K8sError> {
        let found = self.run_job(&job.name).await?;
        let Some(found) = found.filter(|found| found.metadata.uid.as_ref() == Some(&job.uid)) else {
            return Ok(None);
        };
        let conditions = found.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ended = conditions.filter(|condition| condition.status == "True");
        let mut completed = ended.filter_map(|condition| match condition.type_.as_str() {
            "Complete" => Some(true),
            "Failed" => Some(false),
            _ => None,
        });
        let completed = completed.next_back();
        let selector = format!("batch.kubernetes.io/controller-uid={}", job.uid);
        let mut pods = self
            .kind::<Pod>()
            .list(&selector, |pod| Some((pod.metadata.creation_timestamp.clone(), JobPod::of(&pod))))
            .await?;
        pods.sort_by(|one, other| (&one.0, &one.1.name).cmp(&(&other.0, &other.1.name)));
        Ok(Some(JobState { completed, pods: pods.into_iter().map(|(_, pod)| pod).collect() }))
    }

    /// Opens the log of a pod of ours, to follow it.
    ///
    /// Each line begins with its time, as kubectl prints it with `--timestamps`. `since` is the time of the
    /// last line that was read. The server compares whole seconds, so lines come twice. The server may not
    /// answer before there is a line.
    pub async fn follow_log(
        &self,
        pod: &str,
        since: Option<&str>,
    ) -> Result<impl Stream<Item = std::io::Result<String>> + use<>, K8sError> {
        let params = LogParams {
            container: Some(OURS.to_owned()),
            follow: true,
            timestamps: true,
            since_time: since.and_then(|time| time.parse().ok()),
            ..LogParams::default()
        };
        Ok(self.kind::<Pod>().log(pod, &params).await?.lines())
    }

    /// Deletes the Job of a command that only looked, and its pods.
    pub async fn delete_command_job(&self, job: &CommandJob) -> Result<(), K8sError> {
        self.kind::<Job>().delete(&job.name, &job.uid, PropagationPolicy::Background).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::wire::{list, on, play, refusal};

    const CRONJOB: &str = "GET /apis/batch/v1/namespaces/rook-ceph/cronjobs/osd-migrate";
    const CREATE: &str = "POST /apis/batch/v1/namespaces/rook-ceph/jobs?&fieldManager=osd-migrate";
    const WHO: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews?&fieldManager=osd-migrate";
    const JOB: &str = "GET /apis/batch/v1/namespaces/rook-ceph/jobs/look";
    const PODS: &str = "GET /api/v1/namespaces/rook-ceph/pods?&labelSelector=batch.kubernetes.io%2Fcontroller-uid%3Dj&limit=100";

    fn cron_job() -> Value {
        let containers = json!([
            {"name": "sidecar", "args": ["x"]},
            {"name": "osd-migrate", "args": ["run", "--skip", "osd.3"], "env": [{"name": "POD_NAME"}]}]);
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "osd-migrate", "uid": "c"},
            "spec": {"jobTemplate": {"spec": {"backoffLimit": 1000, "template": {"spec": {"containers": containers}}}}}})
    }

    fn job(conditions: &Value) -> Value {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "look", "uid": "j"},
            "status": {"conditions": conditions}})
    }

    fn look() -> CommandJob {
        CommandJob { name: "look".to_owned(), uid: "j".to_owned(), release: None }
    }

    /// Creates a Job with two arguments, and returns the request.
    async fn created(kind: Option<Look>) -> Value {
        let (sender, receiver) = std::sync::mpsc::channel();
        let script = vec![
            on(CRONJOB, 200, cron_job()),
            on(
                WHO,
                201,
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
                "status": {"userInfo": {"username": "alice"}}}),
            ),
            on(CREATE, 201, job(&json!([]))).with(move |body| sender.send(body).unwrap()),
        ];
        let created = play(script, async |k8s| {
            let template = k8s.template().await.unwrap();
            assert_eq!(template.arguments(), ["run", "--skip", "osd.3"]);
            k8s.create_command_job(&template, "look", &["plan".to_owned()], kind).await
        });
        assert_eq!(created.await.unwrap(), look());
        receiver.recv().unwrap()
    }

    #[tokio::test]
    async fn command_job_has_the_template_and_its_own_arguments() {
        let run = created(None).await;
        let containers = &run["spec"]["template"]["spec"]["containers"];
        assert_eq!((&containers[0]["args"], &containers[1]["args"]), (&json!(["x"]), &json!(["plan"])));
        assert_eq!(containers[1]["env"][0]["name"], "POD_NAME");
        assert_eq!(
            (&run["spec"]["backoffLimit"], &run["metadata"]["ownerReferences"][0]["uid"]),
            (&json!(1000), &json!("c"))
        );
        assert!(run["spec"].get("ttlSecondsAfterFinished").is_none());
        assert_eq!(containers[1]["env"], json!([{"name": "POD_NAME"}]));
        assert_eq!(run["metadata"]["annotations"][CREATED_BY], "alice");
    }

    #[tokio::test]
    async fn job_that_only_looks_is_no_job_of_the_cronjob() {
        let look = created(Some(Look { columns: Some(80) })).await;
        let env = &look["spec"]["template"]["spec"]["containers"][1]["env"];
        assert_eq!(env, &json!([{"name": "POD_NAME"}, {"name": "COLUMNS", "value": "80"}]));
        let owner = &look["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&json!("c"), &json!(false)));
        let spec = &look["spec"];
        assert_eq!((&spec["backoffLimit"], &spec["ttlSecondsAfterFinished"]), (&json!(1), &json!(3600)));
    }

    #[tokio::test]
    async fn command_job_knows_the_release_of_its_chart() {
        let mut found = job(&json!([]));
        found["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "storage"});
        let found = play(vec![on(JOB, 200, found)], async |k8s| k8s.find_command_job("look").await);
        assert_eq!(found.await.unwrap().release.as_deref(), Some("storage"));
    }

    #[tokio::test]
    async fn missing_cronjob_is_reported_as_not_installed() {
        let script = vec![on(CRONJOB, 404, refusal(404, "NotFound"))];
        let error = play(script, async |k8s| k8s.template().await.map(drop)).await.unwrap_err();
        assert!(error.to_string().contains("helm install osd-migrate"), "{error}");
    }

    #[tokio::test]
    async fn job_state_has_the_pods_in_order_and_the_exit_code() {
        let pod = |name: &str, time: &str, state: Value| {
            json!({"metadata": {"name": name, "creationTimestamp": time}, "spec": {"containers": []}, "status": {
                "phase": "Failed", "containerStatuses": [{"name": "osd-migrate", "image": "i", "imageID": "",
                "ready": false, "restartCount": 0, "state": state}]}})
        };
        let ended = |code: i32| json!({"terminated": {"exitCode": code}});
        let pods = list(&[
            pod("look-2", "2026-03-01T03:00:09Z", ended(10)),
            pod("look-1", "2026-03-01T03:00:00Z", ended(1)),
        ]);
        let failed =
            json!([{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]);
        let script = vec![on(JOB, 200, job(&failed)), on(PODS, 200, pods)];
        let state = play(script, async |k8s| k8s.job_state(&look()).await).await.unwrap().unwrap();
        let seen: Vec<_> = state.pods.iter().map(|pod| (pod.name.as_str(), pod.exit)).collect();
        assert_eq!((state.completed, seen), (Some(false), vec![("look-1", Some(1)), ("look-2", Some(10))]));
    }

    #[tokio::test]
    async fn job_of_the_same_name_is_another_job() {
        let mut other = job(&json!([]));
        other["metadata"]["uid"] = json!("k");
        let script = vec![on(JOB, 200, other)];
        assert_eq!(play(script, async |k8s| k8s.job_state(&look()).await).await.unwrap(), None);
        let script = vec![on(JOB, 404, refusal(404, "NotFound"))];
        assert_eq!(play(script, async |k8s| k8s.job_state(&look()).await).await.unwrap(), None);
    }
}
