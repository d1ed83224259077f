//! Observation of the API server: the lists are requested in parallel, then one pure step combines them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node as ApiNode, Pod as ApiPod};
use kube::api::DynamicObject;
use kube::core::ApiResource;
use serde_json::Value;

use crate::domain::observation::{Control, Kube, Node};
use crate::domain::osd::{NodeName, OsdFsid, OsdId};
use crate::domain::removal::Requests;
use crate::domain::shared::Shared;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::names::{OF_AGENTS, OF_OSDS, of_osd};
use crate::k8s::nodes::owned::{
    Maps, OurJob, OurPod, OwnedMap, jobs_apart, our_job, our_pod, owned_map, pods_apart,
};
use crate::k8s::nodes::{inventory_job, job_state, node_job};
use crate::k8s::osd::daemon;
use crate::k8s::osd::daemons::{OsdPod, daemons, osd_pod, parse_daemon};
use crate::k8s::own::control_map::{self, CONTROL};
use crate::k8s::own::requests_map::{self, REQUESTS};
use crate::k8s::rook::ceph_cluster::{
    checked_by_rook, declaration, fence_of, fenced_at, image_of_rook, version_of,
};
use crate::k8s::tolerations;

/// Number of OSDs up to which a selector names them: as many as the objects of a page.
const NAMED: usize = 100;

const HOSTNAME: &str = "kubernetes.io/hostname";

/// ConfigMap in which Rook records which OSD it migrates itself, from 1.16 on; the other one is of 1.13 to
/// 1.15.
const MIGRATION: &str = "osd-migration-config";
const REPLACEMENT: &str = "osd-replace-config";

impl K8s {
    /// Observes everything that an iteration decides on.
    pub async fn observe(&self) -> Result<Kube, K8sError> {
        let (machines, jobs) = (self.cluster_kind::<ApiNode>(), self.kind::<Job>());
        let (large, nodes, prepares, small) = tokio::try_join!(
            Box::pin(self.large(OF_OSDS)),
            machines.list("", |node| Some(named_node(&node))),
            jobs.list("app=rook-ceph-osd-prepare", |job| running_prepare(&job)),
            Box::pin(self.small()),
        )?;
        let of_operator = large.0.iter().flatten().find_map(|p| p.operator_namespace.clone());
        let mut kube = self.joined(large, nodes.into_iter().collect(), small, of_operator).await?;
        kube.rook_prepares = prepares;
        if kube.fenceable_operator().is_some() && kube.fence.is_some() {
            kube.skipped = self.skipped_by_rook(&kube.declaration.name).await?;
        }
        let (local_volumes, (pvcs, rotating)) =
            tokio::try_join!(self.local_volumes(&kube), self.on_pvcs(&kube))?;
        (kube.local_volumes, kube.pvcs, kube.rotating) = (local_volumes.into(), pvcs.into(), rotating);
        Ok(kube)
    }

    /// Observes what changes while a run waits; the rest is of an earlier observation.
    ///
    /// It reads no list that grows with the cluster: of the OSDs, only those in progress.
    pub async fn observe_partly(
        &self,
        earlier: Kube,
        in_progress: &BTreeSet<OsdId>,
    ) -> Result<Kube, K8sError> {
        let selector = of_osds(in_progress);
        let large =
            async { if in_progress.is_empty() { Ok(Large::default()) } else { self.large(&selector).await } };
        let (large, small) = tokio::try_join!(Box::pin(large), Box::pin(self.small()))?;
        let of_operator = earlier.operator.as_ref().and_then(|o| Some(o.name.split_once('/')?.0.to_owned()));
        let now = self.joined(large, (*earlier.nodes).clone(), small, of_operator).await?;
        Ok(now.completed_by(earlier, in_progress))
    }

    /// Lists Deployments and pods of OSDs.
    async fn large(&self, selector: &str) -> Result<Large, K8sError> {
        let deployments = self.untyped(&ApiResource::erase::<Deployment>(&()));
        let pods = self.kind::<ApiPod>();
        tokio::try_join!(
            deployments.list_as(selector, |deployment| Some(parse_daemon(&deployment))),
            pods.list(selector, |pod| osd_pod(&pod)),
        )
    }

    /// Reads everything whose size does not depend on the number of OSDs.
    async fn small(&self) -> Result<Small, K8sError> {
        let (pods, jobs, maps) = (self.kind::<ApiPod>(), self.kind::<Job>(), self.kind::<ConfigMap>());
        let (cluster, jobs, job_pods, of_agents, migration, replacement, pdb, control, requests) = tokio::try_join!(
            self.ceph_cluster(),
            jobs.list(OF_AGENTS, |job| Some(our_job(&job))),
            pods.list(OF_AGENTS, |pod| our_pod(&pod)),
            maps.list(OF_AGENTS, |map| Some(owned_map(map))),
            maps.get_opt(MIGRATION),
            maps.get_opt(REPLACEMENT),
            maps.get_opt("rook-ceph-pdbstatemap"),
            maps.get_opt(CONTROL),
            maps.get_opt(REQUESTS),
        )?;
        let migrated = [migration, replacement].into_iter().flatten();
        Ok(Small {
            cluster,
            jobs,
            job_pods,
            maps: of_agents,
            rook_migrated: migrated.filter_map(migrated_by_rook).collect(),
            draining: pdb.and_then(draining),
            control: control.and_then(control_map::control),
            requests: requests.as_ref().map(requests_map::requests).unwrap_or_default(),
        })
    }

    /// Joins what was listed, and reads operator and PodDisruptionBudgets.
    async fn joined(
        &self,
        (daemons, osd_pods): Large,
        nodes: BTreeMap<NodeName, Node>,
        small: Small,
        of_operator: Option<String>,
    ) -> Result<Kube, K8sError> {
        let (operator, osd_pdb, own_pdb) =
            tokio::try_join!(self.operator(of_operator), self.osd_pdb(), self.own_pdb())?;
        let Small { cluster, jobs, job_pods, maps, .. } = small;
        let lists = Lists { daemons, osd_pods, nodes, jobs, job_pods, maps };
        let (mut kube, remarks) = assemble(lists, declaration(&cluster)?);
        (kube.fence, kube.cluster_version, kube.fenced_at) =
            (fence_of(&cluster), version_of(&cluster), fenced_at(&cluster));
        (kube.operator, kube.osd_pdb, kube.own_pdb) = (operator, osd_pdb, own_pdb);
        (kube.rook_checked, kube.rook_image) = (checked_by_rook(&cluster), image_of_rook(&cluster));
        (kube.rook_migrated, kube.draining_failure_domain) = (small.rook_migrated, small.draining);
        (kube.control, kube.requests) = (small.control, small.requests);
        for note in remarks {
            self.note_in_log(&note);
        }
        Ok(kube)
    }

    /// Returns the fsids that the Deployments of these OSDs start: a request for another one is void.
    pub async fn deployed_fsids(&self, osds: &BTreeSet<OsdId>) -> Result<BTreeMap<OsdId, OsdFsid>, K8sError> {
        let deployments = self.untyped(&ApiResource::erase::<Deployment>(&()));
        // The names of many OSDs do not fit into the address of a request, which proxies limit to 8 KiB.
        let selector = if osds.len() <= NAMED { of_osds(osds) } else { OF_OSDS.to_owned() };
        let parsed = deployments.list_as(&selector, |deployment| Some(parse_daemon(&deployment))).await?;
        let parsed = parsed.into_iter().flatten();
        Ok(parsed.filter_map(|parsed| Some((parsed.osd, parsed.daemon.fsid?))).collect())
    }

    /// Returns whether the OSD has a pod that is not terminal, by the same filter as `observe`.
    ///
    /// The API server selects by the labels that `observe` reads, so that the list does not grow with the
    /// cluster. Rook writes the id without leading zeros, in pods and in the Deployment, which was found by
    /// the same selector.
    pub(super) async fn has_osd_pods(&self, osd: OsdId) -> Result<bool, K8sError> {
        let pods = self.kind::<ApiPod>().list(&of_osd(osd), |pod| osd_pod(&pod)).await?;
        Ok(pods.into_iter().any(|pod| pod.osd == Some(osd)))
    }

    /// Reads a node.
    pub(super) async fn node_object(&self, node: &NodeName) -> Result<Node, K8sError> {
        let found = self.cluster_kind::<ApiNode>().get(&node.0).await?;
        Ok(named_node(&found).1)
    }
}

/// Returns the selector of the Deployments and pods of these OSDs.
fn of_osds(osds: &BTreeSet<OsdId>) -> String {
    let ids: Vec<_> = osds.iter().map(|osd| osd.0.to_string()).collect();
    format!("{OF_OSDS},ceph-osd-id in ({})", ids.join(","))
}

/// Deployments and pods of OSDs.
type Large = (Vec<Result<daemon::Parsed, String>>, Vec<OsdPod>);

/// Contents of what is small in each cluster.
struct Small {
    cluster: DynamicObject,
    jobs: Vec<OurJob>,
    job_pods: Vec<OurPod>,
    maps: Vec<OwnedMap>,
    rook_migrated: BTreeSet<OsdId>,
    draining: Option<String>,
    control: Option<Control>,
    requests: Requests,
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

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
