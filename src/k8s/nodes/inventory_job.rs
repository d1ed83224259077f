//! Inventory Jobs for the disks of a node: create, delete, observe. They only read, so they depend on no
//! record.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, PropagationPolicy};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::domain::inventory::{InventoryReport, InventoryRequest};
use crate::domain::observation::{Inventory, JobState};
use crate::domain::osd::NodeName;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::{K8sError, there_already};
use crate::k8s::client::kind::typed;
use crate::k8s::names::{NODE, NUMBER, RUN, inventory_job_name, inventory_labels};
use crate::k8s::nodes::agent_pod::{self, AgentPod, NodePod};
use crate::k8s::nodes::inventory_report;
use crate::k8s::nodes::job_state::{self, JobFacts, PodFacts};
use crate::k8s::nodes::node_job::heartbeat;

/// Everything that an inventory Job is built from.
#[derive(Debug, Clone, Copy)]
pub struct NewInventoryJob<'a> {
    /// Request that the Job receives.
    pub request: &'a InventoryRequest,
    /// Settings of its pod.
    pub pod: NodePod<'a>,
}

impl K8s {
    /// Creates the empty report of an inventory, and its Job; existing objects stay unchanged.
    ///
    /// The Job has no Secret: it sends no requests to Ceph.
    pub async fn create_inventory_job(&self, inventory: &NewInventoryJob<'_>) -> Result<(), K8sError> {
        let name = inventory_job_name(inventory.request);
        let report = self.make_report(&name, report(inventory.request)).await?;
        let job = build(inventory, &report.metadata.uid.unwrap_or_default());
        let jobs = self.untyped(&ApiResource::erase::<Job>(&()));
        there_already(jobs.create(&name, &typed::<DynamicObject>(&name, job)?).await)
    }

    /// Deletes an inventory, if its ConfigMap has this uid; an inventory that is already deleted is success.
    ///
    /// The Job and its pod are deleted with the ConfigMap.
    pub async fn delete_inventory_job(&self, name: &str, uid: &str) -> Result<(), K8sError> {
        self.kind::<ConfigMap>().delete(name, uid, PropagationPolicy::Background).await
    }
}

fn annotations(request: &InventoryRequest) -> Value {
    json!({NODE: request.node.0, RUN: request.run})
}

fn report(request: &InventoryRequest) -> Value {
    json!({
        "metadata": {
            "name": inventory_job_name(request),
            "labels": inventory_labels(request),
            "annotations": annotations(request),
        },
        "data": {},
    })
}

/// Builds the Job.
///
/// The Job tolerates every taint. Its findings decide whether the node may get new OSDs, not whether the Job
/// could start.
fn build(inventory: &NewInventoryJob<'_>, report_uid: &str) -> Value {
    let &NewInventoryJob { request, pod: base } = inventory;
    let pod = AgentPod {
        node: &request.node,
        base,
        osd_pod: &json!({"tolerations": [{"operator": "Exists"}]}),
        report: &inventory_job_name(request),
        part: "inventory",
        ask: ("OSD_MIGRATE_INVENTORY", serde_json::to_string(request).unwrap_or_default()),
        key_secret: None,
        parent: None,
        clears_remains: false,
        pvcs: None,
    };
    agent_pod::job(&pod, &inventory_labels(request), &annotations(request), report_uid)
}

/// ConfigMap of an inventory as listed.
#[derive(Clone)]
pub(crate) struct InventoryJobSeen {
    name: String,
    inventory: Inventory,
    unreadable: Option<String>,
}

/// Reads the ConfigMap of an inventory; the error is a sentence for people.
pub(crate) fn map_seen(map: ConfigMap) -> Result<InventoryJobSeen, String> {
    let created_at = job_state::created_at(&map.metadata);
    let name = map.metadata.name.unwrap_or_default();
    let mut annotations = map.metadata.annotations.unwrap_or_default();
    let number = map.metadata.labels.as_ref().and_then(|l| l.get(NUMBER)?.parse().ok());
    let (Some(node), Some(run), Some(number)) = (annotations.remove(NODE), annotations.remove(RUN), number)
    else {
        return Err(format!(
            "configmap/{name} is labelled as an inventory, but names no node, run or number"
        ));
    };
    let data = map.data.unwrap_or_default();
    let binary = map.binary_data.unwrap_or_default();
    let gzip = binary.get(inventory_report::INVENTORY_GZ).map(|bytes| bytes.0.as_slice());
    let mut inventory = Inventory {
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
    let unreadable =
        match inventory_report::unpack(data.get(inventory_report::INVENTORY).map(String::as_str), gzip) {
            None => None,
            Some(Err(why)) => Some(format!("configmap/{name}: its report cannot be read: {why}")),
            Some(Ok(report)) if !is_of(&report, &inventory) => {
                Some(format!("configmap/{name}: its report belongs to another inventory and is ignored"))
            }
            Some(Ok(report)) => {
                inventory.report = Some(report);
                None
            }
        };
    Ok(InventoryJobSeen { name, inventory, unreadable })
}

fn is_of(report: &InventoryReport, inventory: &Inventory) -> bool {
    report.run == inventory.run && report.number == inventory.number && report.node == inventory.node
}

/// Returns inventories by name, with the state that their Jobs and pods give them, and notes for people.
///
/// If a ConfigMap is gone, its Job or pod is being deleted, too.
pub(crate) fn assemble(
    maps: Vec<Result<InventoryJobSeen, String>>,
    jobs: &[JobFacts],
    pods: &[PodFacts],
) -> (BTreeMap<String, Inventory>, Vec<String>) {
    let (mut inventories, mut notes) = (BTreeMap::new(), Vec::new());
    for map in maps {
        match map {
            Ok(InventoryJobSeen { name, inventory, unreadable }) => {
                notes.extend(unreadable);
                let seen = with_job(inventory, &name, jobs, pods);
                inventories.insert(name, seen);
            }
            Err(note) => notes.push(note),
        }
    }
    (inventories, notes)
}

fn with_job(inventory: Inventory, name: &str, jobs: &[JobFacts], pods: &[PodFacts]) -> Inventory {
    let of_map = |job: &&JobFacts| job.name == name && job.owner.as_ref() == Some(&inventory.uid);
    if let Some(job) = jobs.iter().find(of_map) {
        let pods = pods.iter().filter(|pod| pod.job_uid == job.uid);
        let state = job_state::state(job, inventory.report.is_some(), pods.clone());
        Inventory {
            state: Some(state),
            trouble: pods.into_iter().find_map(|pod| pod.trouble.clone()).or_else(|| job.refused.clone()),
            ..inventory
        }
    } else {
        let alive = pods.iter().any(|pod| pod.job == name && !pod.terminal);
        Inventory { state: alive.then_some(JobState::Running), ..inventory }
    }
}

#[cfg(test)]
#[path = "inventory_job_tests.rs"]
pub(crate) mod tests;
