//! Observation of the API server: the lists are requested in parallel, then one pure step combines them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node as ApiNode, Pod as ApiPod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use serde_json::Value;

use crate::domain::inspection::{NodeReport, RecordId};
use crate::domain::observation::{KeyOwner, Kube, Node};
use crate::domain::osd::{NodeName, OsdFsid, OsdId};
use crate::domain::removal::Requests;
use crate::domain::shared::Shared;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::names::{OF_AGENTS, OSD, PART, Part, RECORD, job_of_key_owner};
use crate::k8s::nodes::inventory_job::{self, InventoryJobSeen};
use crate::k8s::nodes::job_state::{self, JobFacts, PodFacts};
use crate::k8s::nodes::node_job::{self, JobSeen, PodSeen, ReportSeen};
use crate::k8s::osd::daemon;
use crate::k8s::osd::daemons::{OsdPod, daemons, osd_pod, parse_daemon};
use crate::k8s::own::control_map::{self, CONTROL};
use crate::k8s::own::requests_map::{self, REQUESTS};
use crate::k8s::rook::ceph_cluster::{
    checked_by_rook, declaration, fence_of, fenced_at, image_of_rook, version_of,
};
use crate::k8s::tolerations;

const HOSTNAME: &str = "kubernetes.io/hostname";

/// ConfigMap in which Rook records which OSD it migrates itself, from 1.16 on; the other one is of 1.13 to
/// 1.15.
const MIGRATION: &str = "osd-migration-config";
const REPLACEMENT: &str = "osd-replace-config";

impl K8s {
    /// Observes everything that an iteration decides on.
    pub async fn observe(&self) -> Result<Kube, K8sError> {
        // Twelve lists at the same time are a large future; it need not be on the stack of every caller.
        Box::pin(self.inventory()).await
    }

    async fn inventory(&self) -> Result<Kube, K8sError> {
        let deployments = self.untyped(&ApiResource::erase::<Deployment>(&()));
        let (pods, jobs, maps) = (self.kind::<ApiPod>(), self.kind::<Job>(), self.kind::<ConfigMap>());
        let machines = self.cluster_kind::<ApiNode>();
        let (
            cluster,
            daemons,
            osd_pods,
            nodes,
            job_list,
            job_pods,
            map_list,
            prepares,
            migration,
            replacement,
            pdb,
            control,
            requests,
        ) = tokio::try_join!(
            self.ceph_cluster(),
            deployments.list("app=rook-ceph-osd", |d| Some(parse_daemon(d))),
            pods.list("app=rook-ceph-osd", |pod| osd_pod(&pod)),
            machines.list("", |node| Some(named_node(&node))),
            jobs.list(OF_AGENTS, |job| Some(our_job(&job))),
            pods.list(OF_AGENTS, |pod| our_pod(&pod)),
            maps.list(OF_AGENTS, |map| Some(owned_map(map))),
            jobs.list("app=rook-ceph-osd-prepare", |job| running_prepare(&job)),
            maps.get_opt(MIGRATION),
            maps.get_opt(REPLACEMENT),
            maps.get_opt("rook-ceph-pdbstatemap"),
            maps.get_opt(CONTROL),
            maps.get_opt(REQUESTS),
        )?;
        let of_operator = daemons.iter().flatten().find_map(|p| p.operator_namespace.clone());
        let nodes = nodes.into_iter().collect();
        let lists = Lists { daemons, osd_pods, nodes, jobs: job_list, job_pods, maps: map_list };
        let (operator, osd_pdb, own_pdb) =
            tokio::try_join!(self.operator(of_operator), self.osd_pdb(), self.own_pdb())?;
        let (mut kube, ambiguities) = assemble(lists, declaration(&cluster)?);
        (kube.fence, kube.cluster_version, kube.fenced_at) =
            (fence_of(&cluster), version_of(&cluster), fenced_at(&cluster));
        (kube.operator, kube.osd_pdb, kube.own_pdb) = (operator, osd_pdb, own_pdb);
        (kube.rook_checked, kube.rook_image) = (checked_by_rook(&cluster), image_of_rook(&cluster));
        if kube.fenceable_operator().is_some() && kube.fence.is_some() {
            kube.skipped = self.skipped_by_rook(&kube.declaration.name).await?;
        }
        let (local_volumes, (pvcs, rotating)) =
            tokio::try_join!(self.local_volumes(!kube.inventories.is_empty()), self.on_pvcs(&kube))?;
        (kube.local_volumes, kube.pvcs, kube.rotating) = (local_volumes.into(), pvcs.into(), rotating);
        kube.rook_prepares = prepares;
        let migrated = [migration, replacement].into_iter().flatten();
        kube.rook_migrated = migrated.filter_map(migrated_by_rook).collect();
        (kube.draining_failure_domain, kube.control) =
            (pdb.and_then(draining), control.and_then(control_map::control));
        kube.requests = requests.as_ref().map(requests_map::requests).unwrap_or_default();
        for note in ambiguities {
            self.note_in_log(&note);
        }
        Ok(kube)
    }

    /// Returns the fsids that the Deployments of the OSDs start: a request for another one is void.
    pub async fn deployed_fsids(&self) -> Result<BTreeMap<OsdId, OsdFsid>, K8sError> {
        let deployments = self.untyped(&ApiResource::erase::<Deployment>(&()));
        let parsed = deployments.list("app=rook-ceph-osd", |d| Some(parse_daemon(d))).await?;
        let parsed = parsed.into_iter().flatten();
        Ok(parsed.filter_map(|parsed| Some((parsed.osd, parsed.daemon.fsid?))).collect())
    }

    /// Returns whether the OSD has a pod that is not terminal, by the same list and filter as `observe`.
    pub(super) async fn has_osd_pods(&self, osd: OsdId) -> Result<bool, K8sError> {
        let pods = self.kind::<ApiPod>().list("app=rook-ceph-osd", |pod| osd_pod(&pod)).await?;
        Ok(pods.into_iter().any(|pod| pod.osd == Some(osd)))
    }

    /// Reads a node.
    pub(super) async fn node_object(&self, node: &NodeName) -> Result<Node, K8sError> {
        let found = self.cluster_kind::<ApiNode>().get(&node.0).await?;
        Ok(named_node(&found).1)
    }
}

/// Contents of the lists, reduced page by page to the parts that are needed.
struct Lists {
    daemons: Vec<Result<daemon::Parsed, String>>,
    osd_pods: Vec<OsdPod>,
    nodes: BTreeMap<NodeName, Node>,
    jobs: Vec<OurJob>,
    job_pods: Vec<OurPod>,
    maps: Vec<OwnedMap>,
}

/// One of our Jobs on a node.
enum OurJob {
    Node(Result<JobSeen, String>),
    Inventory(JobFacts),
}

/// A pod of such a Job.
enum OurPod {
    Node(PodSeen),
    Inventory(PodFacts),
}

fn is_inventory(meta: &ObjectMeta) -> bool {
    meta.labels.as_ref().and_then(|l| l.get(PART)).is_some_and(|part| part == Part::Inventory.as_str())
}

fn our_job(job: &Job) -> OurJob {
    if is_inventory(&job.metadata) {
        OurJob::Inventory(job_state::job(job))
    } else {
        OurJob::Node(node_job::job_seen(job))
    }
}

fn our_pod(pod: &ApiPod) -> Option<OurPod> {
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
fn jobs_apart(jobs: Vec<OurJob>) -> (Vec<Result<JobSeen, String>>, Vec<JobFacts>) {
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
fn pods_apart(pods: Vec<OurPod>) -> (Vec<PodSeen>, Vec<PodFacts>) {
    let (mut of_records, mut of_inventories) = (Vec::new(), Vec::new());
    for pod in pods {
        match pod {
            OurPod::Node(pod) => of_records.push(pod),
            OurPod::Inventory(pod) => of_inventories.push(pod),
        }
    }
    (of_records, of_inventories)
}

/// What the ConfigMaps of osd-migrate contain.
#[derive(Default)]
struct Maps {
    reports: BTreeMap<String, NodeReport>,
    heartbeats: BTreeMap<String, DateTime<Utc>>,
    backups: BTreeMap<OsdId, RecordId>,
    inventories: Vec<Result<InventoryJobSeen, String>>,
    keys: BTreeMap<String, KeyOwner>,
    leftovers: BTreeMap<RecordId, BTreeSet<String>>,
    notes: Vec<String>,
}

impl Maps {
    fn add(&mut self, map: OwnedMap) {
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

/// Combines the lists into the observation, and returns notes for people with it.
fn assemble(lists: Lists, declaration: crate::domain::policy::Declaration) -> (Kube, Vec<String>) {
    let (daemons, ambiguities) = daemons(lists.daemons, lists.osd_pods, &lists.nodes);
    let mut maps = Maps::default();
    lists.maps.into_iter().for_each(|map| maps.add(map));
    let Maps { reports, heartbeats, backups, inventories, keys, leftovers, mut notes } = maps;
    let (of_records, of_inventories) = jobs_apart(lists.jobs);
    let (record_pods, inventory_pods) = pods_apart(lists.job_pods);
    let (node_jobs, job_notes) = node_job::assemble(of_records, record_pods, &heartbeats);
    let (inventories, inventory_notes) =
        inventory_job::assemble(inventories, &of_inventories, &inventory_pods);
    notes.extend(job_notes.into_iter().chain(inventory_notes));
    let kube = Kube {
        declaration: declaration.into(),
        fence: None,
        fenced_at: None,
        cluster_version: String::new(),
        operator: None,
        rook_checked: None,
        rook_image: None,
        osd_pdb: None,
        own_pdb: None,
        pdb_rejected: None,
        admission: BTreeMap::new(),
        requests: Requests::default(),
        skipped: None,
        daemons: daemons.into(),
        ambiguities,
        nodes: lists.nodes.into(),
        node_jobs: node_jobs.into(),
        reports: reports.into(),
        inventories: inventories.into(),
        backups,
        keys,
        leftovers,
        rook_prepares: Vec::new(),
        rook_migrated: BTreeSet::new(),
        draining_failure_domain: None,
        control: None,
        local_volumes: Shared::default(),
        pvcs: Shared::default(),
        rotating: BTreeSet::new(),
    };
    (kube, notes)
}

fn named_node(node: &ApiNode) -> (NodeName, Node) {
    let name = node.metadata.name.clone().unwrap_or_default();
    let hostname = node.metadata.labels.as_ref().and_then(|l| l.get(HOSTNAME)).unwrap_or(&name).clone();
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True");
    let cordoned = node.spec.as_ref().is_some_and(|s| s.unschedulable == Some(true));
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten()).map(tolerations::taint).collect();
    (NodeName(name), Node { ready, cordoned, hostname, labels, taints })
}

fn running_prepare(job: &Job) -> Option<String> {
    let running = job_state::ended(job).is_none() && job.metadata.deletion_timestamp.is_none();
    let suspended = job.spec.as_ref().is_some_and(|s| s.suspend == Some(true));
    (running && !suspended).then(|| job.metadata.name.clone().unwrap_or_default())
}

/// Returns the domain whose node is drained.
///
/// Rook, fenced or not, also names a domain with an OSD down while PGs are not clean, which may be an OSD
/// that osd-migrate has stopped. `set-no-out` distinguishes the two.
fn draining(map: ConfigMap) -> Option<String> {
    let mut data = map.data?;
    let is_only_down = data.get("set-no-out").is_some_and(|word| word != "true");
    data.remove("draining-failure-domain").filter(|domain| !domain.is_empty() && !is_only_down)
}

/// Returns the OSD that Rook's own migration took last: a number, or JSON with more
/// (`pkg/operator/ceph/cluster/osd/migrate.go`, `replace.go`).
fn migrated_by_rook(map: ConfigMap) -> Option<OsdId> {
    let data = map.data?;
    let of_config = || serde_json::from_str::<Value>(data.get("config")?).ok()?.get("id")?.as_u64();
    let id = data.get("osdID").and_then(|id| id.trim().parse().ok()).or_else(of_config)?;
    u32::try_from(id).ok().map(OsdId)
}

/// A ConfigMap that belongs to a record or an inventory.
enum OwnedMap {
    Backup { osd: OsdId, record: RecordId },
    Report { job: String, record: RecordId, seen: Box<ReportSeen> },
    Key { name: String, job: String, owner: KeyOwner },
    Inventory(Box<Result<InventoryJobSeen, String>>),
    Other { name: String, record: RecordId },
}

fn owned_map(map: ConfigMap) -> OwnedMap {
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

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
