//! Pods that the API server refuses (a LimitRange, a ResourceQuota, a webhook): their Job has none, and only
//! an event says why.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Event;

use crate::k8s::client::access::K8s;
use crate::k8s::nodes::job_state::{JobFacts, PodFacts};
use crate::k8s::nodes::owned::{OurJob, OurPod};
use crate::k8s::pods::said;

/// Reason of the event about a Job whose pod cannot be created (pkg/controller/controller_utils.go,
/// `FailedCreatePodReason`, Kubernetes 1.35).
const FAILED: &str = "FailedCreate";

impl K8s {
    /// Notes in each Job that has no pod why the API server refuses the pod.
    ///
    /// The events only explain a wait: an observation does not fail if they cannot be listed.
    pub(crate) async fn with_refusals(&self, mut jobs: Vec<OurJob>, pods: &[OurPod]) -> Vec<OurJob> {
        let with_pod: BTreeSet<&str> = pods.iter().map(|pod| pod_facts(pod).job_uid.as_str()).collect();
        let mut without: Vec<&mut JobFacts> = jobs
            .iter_mut()
            .filter_map(job_facts)
            .filter(|job| job.has_not_run() && !with_pod.contains(job.uid.as_str()))
            .collect();
        if without.is_empty() {
            return jobs;
        }
        let events = self.kind::<Event>();
        match events.list_where(&format!("involvedObject.kind=Job,reason={FAILED}"), refusal).await {
            Ok(mut found) => {
                found.sort();
                let last: BTreeMap<_, _> = found.into_iter().map(|(uid, _, why)| (uid, why)).collect();
                for job in &mut without {
                    job.refused = last.get(&job.uid).cloned();
                }
            }
            Err(error) => tracing::debug!(%error, "the events of Jobs without a pod cannot be listed"),
        }
        jobs
    }
}

fn job_facts(job: &mut OurJob) -> Option<&mut JobFacts> {
    match job {
        OurJob::Node(Ok(job)) => Some(&mut job.facts),
        OurJob::Node(Err(_)) => None,
        OurJob::Inventory(facts) => Some(facts),
    }
}

fn pod_facts(pod: &OurPod) -> &PodFacts {
    match pod {
        OurPod::Node(pod) => &pod.facts,
        OurPod::Inventory(facts) => facts,
    }
}

/// Returns the uid of the Job, when its pod was last refused, and why.
///
/// The name of the pod is left out: each attempt of the Job's controller has another one.
fn refusal(event: Event) -> Option<(String, Option<i64>, String)> {
    let message = event.message?;
    let why = message.split_once(" is forbidden: ").map_or(message.as_str(), |(_, why)| why);
    let at = event.last_timestamp.map(|time| time.0.as_second());
    Some((event.involved_object.uid?, at, said(FAILED, Some(why))))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::observation::{JobState, NodeJob};
    use crate::k8s::nodes::node_job;
    use crate::k8s::nodes::owned::{jobs_apart, our_job, our_pod, pods_apart};
    use crate::k8s::wire::{Exchange, list, on, play, refusal};

    const EVENTS: &str = "GET /api/v1/namespaces/rook-ceph/events?&fieldSelector=involvedObject.kind%3DJob%2Creason%3DFailedCreate&limit=100";
    const MESSAGE: &str = "Error creating: pods \"osd-migrate-inspect-3-r1-1-x7\" is forbidden: minimum cpu usage \
                           per Container is 10m, but request is 0";
    const WHY: &str = "FailedCreate: minimum cpu usage per Container is 10m, but request is 0";

    fn labels(uid: &str) -> Value {
        json!({"app.kubernetes.io/name": "osd-migrate", "osd-migrate.io/part": "node-job", "osd-migrate.io/osd": "3",
            "osd-migrate.io/attempt": "1", "osd-migrate.io/task": "inspect", "job-name": "j", "controller-uid": uid})
    }

    fn jobs(status: &Value) -> Vec<OurJob> {
        let job: Job =
            serde_json::from_value(json!({"metadata": {"name": "j", "uid": "u", "labels": labels("u"),
            "annotations": {"osd-migrate.io/record": "r1"}}, "status": status}))
            .unwrap();
        vec![our_job(&job)]
    }

    fn pods() -> Vec<OurPod> {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "labels": labels("u"),
            "annotations": {"osd-migrate.io/record": "r1"}}, "status": {"phase": "Pending"}}))
        .unwrap();
        vec![our_pod(&pod).unwrap()]
    }

    fn event(job: &str, at: &str, message: &str) -> Value {
        json!({"metadata": {"name": at}, "involvedObject": {"kind": "Job", "uid": job}, "reason": "FailedCreate",
            "message": message, "lastTimestamp": at})
    }

    /// Returns the Job as it is observed with these pods.
    async fn observed(script: Vec<Exchange>, jobs: Vec<OurJob>, pods: Vec<OurPod>) -> NodeJob {
        let jobs = play(script, async |k8s: &K8s| k8s.with_refusals(jobs, &pods).await).await;
        let (of_records, _) = jobs_apart(jobs);
        let (seen, notes) = node_job::assemble(of_records, pods_apart(pods).0, |_| false, &BTreeMap::new());
        assert_eq!((seen.len(), notes), (1, Vec::<String>::new()));
        seen.into_iter().next().unwrap()
    }

    #[tokio::test]
    async fn job_whose_pod_is_refused_names_the_latest_reason() {
        let events = list(&[
            event("u", "2026-11-29T12:00:40Z", MESSAGE),
            event(
                "u",
                "2026-11-29T12:00:10Z",
                "Error creating: Internal error occurred: failed calling webhook",
            ),
            event("other", "2026-11-29T12:01:00Z", "Error creating: quota"),
        ]);
        let job = observed(vec![on(EVENTS, 200, events)], jobs(&json!({})), Vec::new()).await;
        assert_eq!((job.state, job.trouble.as_deref()), (JobState::Waiting, Some(WHY)));
    }

    #[tokio::test]
    async fn events_are_listed_only_for_a_job_without_a_pod() {
        let with_pod = observed(Vec::new(), jobs(&json!({})), pods()).await;
        let over = jobs(&json!({"conditions": [{"type": "Failed", "status": "True"}]}));
        let over = observed(Vec::new(), over, Vec::new()).await;
        assert_eq!((with_pod.trouble, over.trouble), (None, None));
    }

    #[tokio::test]
    async fn observation_goes_on_without_the_right_to_list_events() {
        let script = vec![on(EVENTS, 403, refusal(403, "Forbidden"))];
        let job = observed(script, jobs(&json!({})), Vec::new()).await;
        assert_eq!((job.state, job.trouble), (JobState::Waiting, None));
    }
}
