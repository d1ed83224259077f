//! Looks at the disks of a node: made, deleted, and seen again. They only read, so nothing of a record is asked for them.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, PropagationPolicy};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::domain::inventory::{LookReport, LookRequest};
use crate::domain::observation::{JobState, Look};
use crate::domain::osd::NodeName;
use crate::domain::policy::Declaration;

use super::agent::{there_already, typed};
use super::agent_pod::{self, AgentPod};
use super::job_state::{self, JobFacts, PodFacts};
use super::names::{NODE, NUMBER, RUN, look_labels, look_name};
use super::node_job::heartbeat;
use super::whoami::Own;
use super::{K8s, K8sError, look_report};

/// Everything a look is made from.
#[derive(Debug, Clone, Copy)]
pub struct LookJob<'a> {
    /// What it is told.
    pub request: &'a LookRequest,
    /// Image of Ceph that it runs in.
    pub image: &'a str,
    /// The host folder `dataDirHostPath`.
    pub data_dir: &'a str,
    /// What the CephCluster says of the pods that prepare OSDs.
    pub declaration: &'a Declaration,
    /// The runner's own pod.
    pub own: &'a Own,
}

impl K8s {
    /// Makes the empty report of a look, and its Job; what is there already stays. No Secret: it asks Ceph nothing.
    pub async fn create_look(&self, look: &LookJob<'_>) -> Result<(), K8sError> {
        let name = look_name(look.request);
        let report = self.make_report(&name, report(look.request)).await?;
        let job = build(look, &report.metadata.uid.unwrap_or_default());
        let jobs = self.untyped(&ApiResource::erase::<Job>(&()));
        there_already(jobs.create(&name, &typed::<DynamicObject>(&name, job)?).await)
    }

    /// Deletes a look, if its ConfigMap has this uid; Job and pod go with it. Gone already is success.
    pub async fn sweep_look(&self, name: &str, uid: &str) -> Result<(), K8sError> {
        self.kind::<ConfigMap>().delete(name, uid, PropagationPolicy::Background).await
    }
}

fn annotations(request: &LookRequest) -> Value {
    json!({NODE: request.node.0, RUN: request.run})
}

fn report(request: &LookRequest) -> Value {
    json!({
        "metadata": {
            "name": look_name(request),
            "labels": look_labels(request),
            "annotations": annotations(request),
        },
        "data": {},
    })
}

/// The Job. It tolerates every taint: whether new OSDs may come to this node is decided of what it sees, not by its start.
fn build(look: &LookJob<'_>, report_uid: &str) -> Value {
    let &LookJob { request, image, data_dir, declaration, own } = look;
    let pod = AgentPod {
        node: &request.node,
        image,
        data_dir,
        declaration,
        own,
        osd_pod: &json!({"tolerations": [{"operator": "Exists"}]}),
        report: &look_name(request),
        part: "look",
        ask: ("OSD_MIGRATE_LOOK", serde_json::to_string(request).unwrap_or_default()),
        key_secret: None,
        parent: None,
        clears_remains: false,
    };
    agent_pod::job(&pod, &look_labels(request), &annotations(request), report_uid)
}

/// A look's ConfigMap as listed.
pub(super) struct LookSeen {
    name: String,
    look: Look,
    unreadable: Option<String>,
}

/// Reads the ConfigMap of a look; the error is a sentence for people.
pub(super) fn map_seen(map: ConfigMap) -> Result<LookSeen, String> {
    let created_at = job_state::created_at(&map.metadata);
    let name = map.metadata.name.unwrap_or_default();
    let mut annotations = map.metadata.annotations.unwrap_or_default();
    let number = map.metadata.labels.as_ref().and_then(|l| l.get(NUMBER)?.parse().ok());
    let (Some(node), Some(run), Some(number)) = (annotations.remove(NODE), annotations.remove(RUN), number)
    else {
        return Err(format!("configmap/{name} has our label of a look, and does not say which"));
    };
    let data = map.data.unwrap_or_default();
    let binary = map.binary_data.unwrap_or_default();
    let gzip = binary.get(look_report::LOOK_GZ).map(|bytes| bytes.0.as_slice());
    let mut look = Look {
        uid: map.metadata.uid.unwrap_or_default(),
        node: NodeName(node),
        run,
        number,
        state: None,
        created_at,
        heartbeat_at: heartbeat(&data),
        trouble: None,
        report: None,
    };
    let unreadable = match look_report::unpack(data.get(look_report::LOOK).map(String::as_str), gzip) {
        None => None,
        Some(Err(why)) => Some(format!("configmap/{name}: its report can't be read: {why}")),
        Some(Ok(report)) if !is_of(&report, &look) => {
            Some(format!("configmap/{name}: its report is of another look; it is not believed"))
        }
        Some(Ok(report)) => {
            look.report = Some(report);
            None
        }
    };
    Ok(LookSeen { name, look, unreadable })
}

fn is_of(report: &LookReport, look: &Look) -> bool {
    report.run == look.run && report.number == look.number && report.node == look.node
}

/// Looks by name, with the state that their Jobs and pods give them; and notes for people. A Job or a pod whose ConfigMap is
/// gone is on its way out, too.
pub(super) fn assemble(
    maps: Vec<Result<LookSeen, String>>,
    jobs: &[JobFacts],
    pods: &[PodFacts],
) -> (BTreeMap<String, Look>, Vec<String>) {
    let (mut looks, mut notes) = (BTreeMap::new(), Vec::new());
    for map in maps {
        match map {
            Ok(LookSeen { name, look, unreadable }) => {
                notes.extend(unreadable);
                let seen = with_job(look, &name, jobs, pods);
                looks.insert(name, seen);
            }
            Err(note) => notes.push(note),
        }
    }
    (looks, notes)
}

fn with_job(look: Look, name: &str, jobs: &[JobFacts], pods: &[PodFacts]) -> Look {
    let of_map = |job: &&JobFacts| job.name == name && job.owner.as_ref() == Some(&look.uid);
    if let Some(job) = jobs.iter().find(of_map) {
        let pods = pods.iter().filter(|pod| pod.job_uid == job.uid);
        let state = job_state::state(job, pods.clone());
        Look { state: Some(state), trouble: pods.into_iter().find_map(|pod| pod.trouble.clone()), ..look }
    } else {
        let alive = pods.iter().any(|pod| pod.job == name && !pod.terminal);
        Look { state: alive.then_some(JobState::Running), ..look }
    }
}

#[cfg(test)]
#[path = "look_job_tests.rs"]
pub(crate) mod tests;
