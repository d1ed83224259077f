//! Jobs, pods and ConfigMaps of osd-migrate, by what they belong to.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::domain::inspection::{NodeReport, RecordId};
use crate::domain::observation::KeyOwner;
use crate::domain::osd::OsdId;
use crate::k8s::names::{OSD, PART, Part, RECORD, job_of_key_owner};
use crate::k8s::nodes::inventory_job::{self, InventoryJobSeen};
use crate::k8s::nodes::job_state::{self, JobFacts, PodFacts};
use crate::k8s::nodes::node_job::{self, JobSeen, PodSeen, ReportSeen};

/// One of our Jobs on a node.
#[derive(Clone)]
pub(crate) enum OurJob {
    Node(Result<JobSeen, String>),
    Inventory(JobFacts),
}

/// A pod of such a Job.
#[derive(Clone)]
pub(crate) enum OurPod {
    Node(PodSeen),
    Inventory(PodFacts),
}

fn is_inventory(meta: &ObjectMeta) -> bool {
    meta.labels.as_ref().and_then(|l| l.get(PART)).is_some_and(|part| part == Part::Inventory.as_str())
}

pub(crate) fn our_job(job: &Job) -> OurJob {
    if is_inventory(&job.metadata) {
        OurJob::Inventory(job_state::job(job))
    } else {
        OurJob::Node(node_job::job_seen(job))
    }
}

pub(crate) fn our_pod(pod: &Pod) -> Option<OurPod> {
    if is_inventory(&pod.metadata) {
        job_state::pod(pod).map(OurPod::Inventory)
    } else {
        node_job::pod_seen(pod).map(OurPod::Node)
    }
}

/// Adds a report, and returns what its agent left on the host, for people.
fn taken(reports: &mut BTreeMap<String, NodeReport>, job: String, report: NodeReport) -> Vec<String> {
    let left = report.left.iter().map(|left| format!("{}: {left}", report.osd)).collect();
    reports.insert(job, report);
    left
}

/// Separates Jobs of records from Jobs of inventories.
pub(crate) fn jobs_apart(jobs: Vec<OurJob>) -> (Vec<Result<JobSeen, String>>, Vec<JobFacts>) {
    let (mut of_records, mut of_inventories) = (Vec::new(), Vec::new());
    for job in jobs {
        match job {
            OurJob::Node(job) => of_records.push(job),
            OurJob::Inventory(job) => of_inventories.push(job),
        }
    }
    (of_records, of_inventories)
}

/// Separates pods of records from pods of inventories.
pub(crate) fn pods_apart(pods: Vec<OurPod>) -> (Vec<PodSeen>, Vec<PodFacts>) {
    let (mut of_records, mut of_inventories) = (Vec::new(), Vec::new());
    for pod in pods {
        match pod {
            OurPod::Node(pod) => of_records.push(pod),
            OurPod::Inventory(pod) => of_inventories.push(pod),
        }
    }
    (of_records, of_inventories)
}

/// Contents of the ConfigMaps of osd-migrate.
#[derive(Default)]
pub(crate) struct Maps {
    pub(crate) reports: BTreeMap<String, NodeReport>,
    pub(crate) heartbeats: BTreeMap<String, DateTime<Utc>>,
    pub(crate) backups: BTreeMap<OsdId, RecordId>,
    pub(crate) inventories: Vec<Result<InventoryJobSeen, String>>,
    pub(crate) keys: BTreeMap<String, KeyOwner>,
    pub(crate) leftovers: BTreeMap<RecordId, BTreeSet<String>>,
    pub(crate) notes: Vec<String>,
}

impl Maps {
    pub(crate) fn add(&mut self, map: OwnedMap) {
        match map {
            OwnedMap::Backup { osd, record } => drop(self.backups.insert(osd, record)),
            OwnedMap::Report { job, record, seen } => {
                self.leaves(record, &job);
                self.heartbeats.extend(seen.heartbeat.map(|at| (job.clone(), at)));
                match seen.report {
                    Some(Ok(report)) => self.notes.extend(taken(&mut self.reports, job, report)),
                    Some(Err(why)) => {
                        self.notes.push(format!("configmap/{job}: its report cannot be read: {why}"));
                    }
                    None => {}
                }
            }
            OwnedMap::Key { name, job, owner } => {
                self.leaves(owner.record.clone(), &name);
                self.keys.insert(job, owner);
            }
            OwnedMap::Inventory(inventory) => self.inventories.push(*inventory),
            OwnedMap::Other { name, record } => self.leaves(record, &name),
        }
    }

    fn leaves(&mut self, record: RecordId, name: &str) {
        self.leftovers.entry(record).or_default().insert(format!("ConfigMap/{name}"));
    }
}

/// A ConfigMap that belongs to a record or an inventory.
#[derive(Clone)]
pub(crate) enum OwnedMap {
    Backup { osd: OsdId, record: RecordId },
    Report { job: String, record: RecordId, seen: Box<ReportSeen> },
    Key { name: String, job: String, owner: KeyOwner },
    Inventory(Box<Result<InventoryJobSeen, String>>),
    Other { name: String, record: RecordId },
}

pub(crate) fn owned_map(map: ConfigMap) -> OwnedMap {
    if is_inventory(&map.metadata) {
        return OwnedMap::Inventory(Box::new(inventory_job::map_seen(map)));
    }
    let name = map.metadata.name.unwrap_or_default();
    let labels = map.metadata.labels.unwrap_or_default();
    let record = map.metadata.annotations.unwrap_or_default().remove(RECORD);
    let record = RecordId(record.or_else(|| labels.get(RECORD).cloned()).unwrap_or_default());
    let part = labels.get(PART).map_or("", String::as_str);
    let osd = labels.get(OSD).and_then(|osd| osd.parse().ok());
    let of_key = job_of_key_owner(&name).filter(|_| part == Part::Key.as_str());
    if let Some(job) = of_key.map(str::to_owned) {
        let uid = map.metadata.uid.unwrap_or_default();
        return OwnedMap::Key { name, job, owner: KeyOwner { uid, record } };
    }
    match osd {
        Some(osd) if part == Part::Backup.as_str() => OwnedMap::Backup { osd, record },
        Some(_) if part == Part::Report.as_str() => OwnedMap::Report {
            job: name,
            record,
            seen: Box::new(node_job::report_seen(&map.data.unwrap_or_default())),
        },
        Some(_) | None => OwnedMap::Other { name, record },
    }
}
