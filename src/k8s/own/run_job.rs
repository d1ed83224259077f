//! The Job of a run, created from the CronJob's template as `kubectl create job --from=cronjob/osd-migrate`
//! creates it.

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::DynamicObject;
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::kind::typed;
use crate::k8s::names::OURS;

/// Name of the CronJob whose template every run has.
pub const CRON_JOB: &str = "osd-migrate";

/// Result of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// The Job was created.
    Created(String),
    /// The Job existed already.
    Already(String),
}

impl K8s {
    /// Creates the Job for a revision of the release; only once, even if it is called again.
    pub async fn start_run(&self, revision: u32) -> Result<Started, K8sError> {
        let cron_job = self.untyped(&ApiResource::erase::<CronJob>(&())).get(CRON_JOB).await?;
        let name = format!("{OURS}-r{revision}");
        let jobs = self.untyped(&ApiResource::erase::<Job>(&()));
        match jobs.create(&name, &typed::<DynamicObject>(&name, from_template(&cron_job, &name))?).await {
            Ok(_) => Ok(Started::Created(name)),
            Err(K8sError::AlreadyExists(_)) => {
                let there = jobs.get(&name).await?;
                let owner = there.metadata.owner_references.iter().flatten().map(|owner| &owner.uid).next();
                if owner == cron_job.metadata.uid.as_ref() {
                    return Ok(Started::Already(name));
                }
                Err(K8sError::Unexpected {
                    what: format!("job/{name}"),
                    found: format!(
                        "it belongs to an earlier installation. Delete it: kubectl -n {} delete job {name}",
                        self.namespace()
                    ),
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the Job of a run, if it exists.
    pub(crate) async fn run_job(&self, job: &str) -> Result<Option<Job>, K8sError> {
        self.kind::<Job>().get_opt(job).await
    }
}

/// Returns a Job of the CronJob's template, as `kubectl create job --from` creates it.
pub(super) fn from_template(cron_job: &DynamicObject, name: &str) -> Value {
    let of_template = |path: &str| cron_job.data.pointer(&format!("/spec/jobTemplate/{path}"));
    let annotations = of_template("metadata/annotations").and_then(Value::as_object).cloned();
    let mut annotations = annotations.unwrap_or_default();
    annotations.insert("cronjob.kubernetes.io/instantiate".to_owned(), json!("manual"));
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": of_template("metadata/labels"),
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": cron_job.metadata.name,
                "uid": cron_job.metadata.uid, "controller": true,
            }],
        },
        "spec": of_template("spec"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::names::{SCHEDULED, is_scheduled};
    use crate::k8s::wire::{on, play, refusal};

    const GET: &str = "GET /apis/batch/v1/namespaces/rook-ceph/cronjobs/osd-migrate";
    const POST: &str = "POST /apis/batch/v1/namespaces/rook-ceph/jobs?&fieldManager=osd-migrate";
    const JOB: &str = "GET /apis/batch/v1/namespaces/rook-ceph/jobs/osd-migrate-r7";

    fn cron_job() -> Value {
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "osd-migrate", "uid": "c"},
            "spec": {"suspend": true, "jobTemplate": {
                "metadata": {"labels": {"osd-migrate.io/part": "run"}, "annotations": {"team": "storage"}},
                "spec": {"backoffLimit": 9, "fieldOfTheFuture": true}}}})
    }

    fn job(owner: &str) -> Value {
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "osd-migrate-r7", "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "osd-migrate", "uid": owner}]}})
    }

    #[tokio::test]
    async fn run_job_is_the_cronjob_template_named_by_the_revision() {
        let script = vec![
            on(GET, 200, cron_job()),
            on(POST, 201, job("c")).with(|body| {
                assert_eq!(body["metadata"]["name"], "osd-migrate-r7");
                assert_eq!(body["metadata"]["labels"]["osd-migrate.io/part"], "run");
                let annotations = json!({"team": "storage", "cronjob.kubernetes.io/instantiate": "manual"});
                assert_eq!(body["metadata"]["annotations"], annotations);
                assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "c");
                assert_eq!(body["spec"], json!({"backoffLimit": 9, "fieldOfTheFuture": true}));
            }),
        ];
        let started = play(script, async |k8s| k8s.start_run(7).await).await.unwrap();
        assert_eq!(started, Started::Created("osd-migrate-r7".to_owned()));
    }

    #[tokio::test]
    async fn run_job_start_is_idempotent_and_refuses_a_former_install() {
        let script = |owner| {
            vec![
                on(GET, 200, cron_job()),
                on(POST, 409, refusal(409, "AlreadyExists")),
                on(JOB, 200, job(owner)),
            ]
        };
        let started = play(script("c"), async |k8s| k8s.start_run(7).await).await.unwrap();
        assert_eq!(started, Started::Already("osd-migrate-r7".to_owned()));
        let result = play(script("former"), async |k8s| k8s.start_run(7).await).await;
        let says = |error: &K8sError| error.to_string().contains("delete job osd-migrate-r7");
        assert!(result.as_ref().is_err_and(says), "{result:?}");
    }

    #[tokio::test]
    async fn job_is_scheduled_only_with_the_annotation_of_the_schedule() {
        let with =
            |annotations: Value| json!({"metadata": {"name": "osd-migrate-r7", "annotations": annotations}});
        for (annotations, scheduled) in [
            (json!({SCHEDULED: "2026-03-01T03:00:00Z"}), true),
            (json!({"cronjob.kubernetes.io/instantiate": "manual"}), false),
        ] {
            let script = vec![on(JOB, 200, with(annotations))];
            let found = play(script, async |k8s| k8s.run_job("osd-migrate-r7").await).await;
            assert_eq!(found.unwrap().as_ref().map(is_scheduled), Some(scheduled));
        }
    }
}
