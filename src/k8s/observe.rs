//! Observation of the API server: the lists are requested in parallel, then one pure step combines them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod as ApiPod};
use kube::core::ApiResource;

use crate::domain::observation::{Kube, Listed, Node};
use crate::domain::osd::{NodeName, OsdFsid, OsdId};
use crate::domain::removal::Requests;
use crate::domain::shared::Shared;
use crate::k8s::changes::Group;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::lately::{Around, Deployments, Large, Lately, List, ListedBy, OfOsds, Small};
use crate::k8s::names::{OF_OSDS, OSD_ID, of_osd};
use crate::k8s::nodes::owned::{Maps, OurJob, OurPod, OwnedMap, jobs_apart, pods_apart};
use crate::k8s::nodes::{inventory_job, node_job};
use crate::k8s::osd::daemon;
use crate::k8s::osd::daemons::{OsdPod, daemons, osd_pod, parse_daemon};
use crate::k8s::prepares::{OF_PREPARES, RunningJob, running_job};
use crate::k8s::pvcs::{SeenPvcs, Volumes};
use crate::k8s::rook::ceph_cluster::{
    checked_by_rook, declaration, fence_of, fenced_at, image_of_rook, version_of,
};
use crate::k8s::short_pod::ShortPod;
use crate::k8s::tolerations;

/// Number of OSDs up to which a selector names them: as many as the objects of a page.
const NAMED: usize = 100;

const HOSTNAME: &str = "kubernetes.io/hostname";

impl K8s {
    /// Observes everything that an iteration decides on.
    pub async fn observe(&self) -> Result<Kube, K8sError> {
        self.observe_all(&BTreeSet::new(), &mut Lately::default(), DateTime::default()).await
    }

    /// Observes the same, and notes in `lately` what later observations need not read again.
    ///
    /// OSDs that are not in progress, and of which no watch has reported a change, are as they were listed.
    pub async fn observe_all(
        &self,
        in_progress: &BTreeSet<OsdId>,
        lately: &mut Lately,
        now: DateTime<Utc>,
    ) -> Result<Kube, K8sError> {
        let list = lately.list.take().filter(|list| list.listed.is_young(now));
        lately.forget();
        // Taken before anything is read: what changes during the read is read again.
        let changed = self.changes().take_osds();
        let known = list.zip(changed).map(|(list, changed)| {
            let read = &changed | &list.listed.read_each_time(in_progress);
            (list, read)
        });
        let known = known.filter(|(_, read)| read.len() <= NAMED);
        let marks = [Group::OsdDeployments, Group::OsdPods].map(|group| self.changes().mark(&[group]));
        let (machines, jobs) = (self.cluster_kind::<ApiNode>(), self.kind::<Job>());
        let read = tokio::try_join!(
            Box::pin(self.large_of(known.as_ref().map(|(_, read)| read))),
            machines.list("", |node| Some(named_node(&node))),
            jobs.list(OF_PREPARES, |job| running_job(&job)),
            Box::pin(self.small(&mut lately.small)),
        );
        let (large, nodes, prepares, small) = match read {
            Ok(read) => read,
            Err(error) => {
                lately.list = known.map(|(list, read)| self.put_back(list, &read));
                return Err(error);
            }
        };
        let nodes: BTreeMap<_, _> = nodes.into_iter().collect();
        let (large, known) = match known {
            Some((list, _)) if !list.by.has_hostnames_of(&nodes) => {
                drop(list);
                (self.large(OF_OSDS).await?, None)
            }
            known => (large, known),
        };
        if known.as_ref().is_some_and(|(_, read)| read == in_progress) {
            lately.in_progress = OfOsds::read(in_progress, marks, &large);
        }
        let of_operator = match &known {
            Some((list, _)) => list.by.operator_namespace.clone(),
            None => large.0.iter().flatten().find_map(|parsed| parsed.operator_namespace.clone()),
        };
        let are_labelled = large.0.iter().flatten().all(|parsed| parsed.is_labelled);
        let known_operator = known.as_ref().and_then(|(list, _)| list.by.operator.as_deref());
        let around = self.around(&mut lately.around, of_operator.clone(), known_operator).await?;
        let kube = self.joined(large, nodes, small, around)?;
        lately.is_by_list = known.is_some();
        let (kube, listed, volumes) = if let Some((list, read)) = known {
            let (kube, listed) = list.listed.complete(kube, &read);
            (kube, listed, list.volumes)
        } else {
            let listed = Listed::of(&kube, now);
            (kube, listed, Volumes::new())
        };
        let by = ListedBy::new(&kube, of_operator);
        // A request that fails below must not lose the PersistentVolumes.
        let list = |listed| List { listed, by, volumes: volumes.clone() };
        lately.list = listed.filter(|_| are_labelled).map(list);
        let (kube, volumes) = self.completed(kube, prepares, (in_progress, &volumes)).await?;
        if let Some(list) = &mut lately.list {
            list.volumes = volumes;
        }
        Ok(kube)
    }

    /// Observes what depends on the rest, and returns the PersistentVolumes of OSDs, too.
    async fn completed(
        &self,
        mut kube: Kube,
        prepares: Vec<RunningJob>,
        (in_progress, kept): (&BTreeSet<OsdId>, &Volumes),
    ) -> Result<(Kube, Volumes), K8sError> {
        kube.rook_prepares = self.placed(prepares, &kube.nodes).await?;
        if kube.fenceable_operator().is_some() && kube.fence.is_some() {
            kube.skipped = self.skipped_by_rook(&kube.declaration.name).await?;
        }
        let (local_volumes, SeenPvcs { pvcs, volumes, rotating, rotations }) =
            tokio::try_join!(self.local_volumes(&kube), self.on_pvcs(&kube, in_progress, kept))?;
        (kube.local_volumes, kube.pvcs) = (local_volumes.into(), pvcs.into());
        (kube.rotating, kube.rotations) = (rotating, rotations);
        Ok((kube, volumes))
    }

    /// Returns the list of all OSDs after a request failed: these OSDs are still to be read.
    ///
    /// Otherwise one request that fails would be followed by a list of all.
    fn put_back(&self, list: List, to_read: &BTreeSet<OsdId>) -> List {
        for osd in to_read {
            self.changes().note_osd(Some(*osd));
        }
        list
    }

    /// Observes what changes while a run waits; the rest is of an earlier observation.
    ///
    /// It reads no list that grows with the cluster: of the OSDs, only those in progress. What has not
    /// changed since it was read is not read again.
    pub async fn observe_partly(
        &self,
        earlier: Kube,
        in_progress: &BTreeSet<OsdId>,
        lately: &mut Lately,
    ) -> Result<Kube, K8sError> {
        let (large, small) = tokio::try_join!(
            Box::pin(self.in_progress(&mut lately.in_progress, in_progress)),
            Box::pin(self.small(&mut lately.small)),
        )?;
        let operator = earlier.operator.as_ref().map(|operator| operator.name.as_str());
        let of_operator = operator.and_then(|name| Some(name.split_once('/')?.0.to_owned()));
        let around = self.around(&mut lately.around, of_operator, operator).await?;
        let now = self.joined(large, (*earlier.nodes).clone(), small, around)?;
        // The list would be copied if it had a share of the OSDs while they change.
        let list = lately.list.take().map(|list| (list.listed.at(), list.by, list.volumes));
        let kube = now.completed_by(earlier, in_progress);
        lately.list =
            list.and_then(|(at, by, volumes)| Some(List { listed: Listed::of(&kube, at)?, by, volumes }));
        Ok(kube)
    }

    /// Lists Deployments and pods of the OSDs in progress.
    async fn in_progress(&self, last: &mut OfOsds, osds: &BTreeSet<OsdId>) -> Result<Large, K8sError> {
        if last.osds != *osds {
            *last = OfOsds { osds: osds.clone(), ..OfOsds::default() };
        }
        if osds.is_empty() {
            return Ok(Large::default());
        }
        let (selector, mark) = (of_osds(osds), |group| self.changes().mark(&[group]));
        tokio::try_join!(
            last.deployments.get(mark(Group::OsdDeployments), self.deployments(&selector)),
            last.pods.get(mark(Group::OsdPods), self.osd_pods(&selector)),
        )
    }

    /// Lists Deployments and pods of these OSDs, or of all.
    async fn large_of(&self, osds: Option<&BTreeSet<OsdId>>) -> Result<Large, K8sError> {
        match osds {
            Some(osds) if osds.is_empty() => Ok(Large::default()),
            Some(osds) => self.large(&of_osds(osds)).await,
            None => self.large(OF_OSDS).await,
        }
    }

    /// Lists Deployments and pods of OSDs.
    async fn large(&self, selector: &str) -> Result<Large, K8sError> {
        tokio::try_join!(self.deployments(selector), self.osd_pods(selector))
    }

    /// Lists Deployments of OSDs.
    async fn deployments(&self, selector: &str) -> Result<Deployments, K8sError> {
        let deployments = self.untyped(&ApiResource::erase::<Deployment>(&()));
        deployments.list_as(selector, |deployment| Some(parse_daemon(&deployment))).await
    }

    /// Lists pods of OSDs that are not terminal.
    async fn osd_pods(&self, selector: &str) -> Result<Vec<OsdPod>, K8sError> {
        self.kind::<ApiPod>().list_as(selector, |ShortPod(pod)| osd_pod(&pod)).await
    }

    /// Joins what was read.
    fn joined(
        &self,
        (daemons, osd_pods): Large,
        nodes: BTreeMap<NodeName, Node>,
        small: Small,
        around: Around,
    ) -> Result<Kube, K8sError> {
        let Small { cluster, jobs, job_pods, maps } = small;
        let lists = Lists { daemons, osd_pods, nodes, jobs, job_pods, maps: maps.of_agents };
        let (mut kube, remarks) = assemble(lists, declaration(&cluster)?);
        (kube.fence, kube.cluster_version, kube.fenced_at) =
            (fence_of(&cluster), version_of(&cluster), fenced_at(&cluster));
        (kube.operator, kube.osd_pdb, kube.own_pdb) = (around.operator, around.osd_pdb, around.own_pdb);
        (kube.rook_checked, kube.rook_image) = (checked_by_rook(&cluster), image_of_rook(&cluster));
        (kube.rook_migrated, kube.draining_failure_domain) = (maps.migrated, maps.draining);
        (kube.control, kube.requests) = (maps.control, maps.requests);
        for note in remarks {
            self.note_in_log(&note);
        }
        Ok(kube)
    }

    /// Returns the fsids that the Deployments of these OSDs start: a request for another one is void.
    pub async fn deployed_fsids(&self, osds: &BTreeSet<OsdId>) -> Result<BTreeMap<OsdId, OsdFsid>, K8sError> {
        // The names of many OSDs do not fit into the address of a request, which proxies limit to 8 KiB.
        let selector = if osds.len() <= NAMED { of_osds(osds) } else { OF_OSDS.to_owned() };
        let parsed = self.deployments(&selector).await?.into_iter().flatten();
        Ok(parsed.filter_map(|parsed| Some((parsed.osd, parsed.daemon.fsid?))).collect())
    }

    /// Returns whether the OSD has a pod that is not terminal, by the same filter as `observe`.
    ///
    /// The API server selects by the labels that `observe` reads, so that the list does not grow with the
    /// cluster. Rook writes the id without leading zeros, in pods and in the Deployment, which was found by
    /// the same selector.
    pub(super) async fn has_osd_pods(&self, osd: OsdId) -> Result<bool, K8sError> {
        let pods = self.osd_pods(&of_osd(osd)).await?;
        Ok(pods.into_iter().any(|pod| pod.osd == Some(osd)))
    }

    /// Reads a node that may be gone.
    pub(super) async fn node_object_opt(&self, node: &NodeName) -> Result<Option<Node>, K8sError> {
        let found = self.cluster_kind::<ApiNode>().get_opt(&node.0).await?;
        Ok(found.map(|found| named_node(&found).1))
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
    format!("{OF_OSDS},{OSD_ID} in ({})", ids.join(","))
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
    let (node_jobs, job_notes) =
        node_job::assemble(of_records, record_pods, |job| reports.contains_key(job), &heartbeats);
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
        rotations: BTreeMap::new(),
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

#[cfg(test)]
#[path = "observe_list_tests.rs"]
mod list_tests;
#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
