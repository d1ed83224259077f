//! Deployments, pods and the objects of a record, as the API server and a kubelet treat them (Kubernetes
//! 1.34).

use std::collections::BTreeSet;

use crate::domain::inspection::{NodeRequest, NodeTask, RecordId};
use crate::domain::observation::{Daemon, JobState, KeyOwner, NodeJob, Pod};
use crate::domain::osd::{Mode, NodeName, OsdFsid, OsdId};
use crate::sim::acts::{Done, refuse};
use crate::sim::world::{Effect, World};

/// Returns the name of a node Job, as `k8s::names` creates it.
pub(super) fn job_name(record: &RecordId, osd: OsdId, task: NodeTask, attempt: u32) -> String {
    format!("osd-migrate-{task}-{}-{record}-{attempt}", osd.0)
}

/// Returns the next text in a numbered sequence: `7` after `6`, `uid-0-2` after `uid-0-1`.
pub(super) fn after(text: &str) -> String {
    let (head, number) = text.rsplit_once('-').map_or(("", text), |(head, number)| (head, number));
    let next = number.parse::<u32>().unwrap_or(0) + 1;
    if head.is_empty() { next.to_string() } else { format!("{head}-{next}") }
}

impl World {
    /// Gives a written Deployment a new generation.
    pub(super) fn touch(&mut self, osd: OsdId) {
        if let Some(daemon) = self.kube.daemons.get_mut(&osd) {
            daemon.generation += 1;
        }
    }

    /// Sets the label `do-not-reconcile` of the CephCluster.
    pub(super) fn label(&mut self, value: Option<String>) {
        self.kube.fence = value;
        self.rook_wakes();
        self.kube.cluster_version = after(&self.kube.cluster_version);
    }

    /// Writes replicas and the annotation of osd-migrate in one PUT.
    pub(super) fn scale(&mut self, osd: OsdId, replicas: u32, stopped_by: Option<RecordId>) {
        if let Some(daemon) = self.kube.daemons.get_mut(&osd) {
            (daemon.replicas, daemon.stopped_by) = (replicas, stopped_by);
        }
        self.touch(osd);
    }

    /// Creates a Deployment.
    ///
    /// An existing one is replaced in place and keeps its uid.
    pub(super) fn write_deployment(
        &mut self,
        osd: OsdId,
        fsid: Option<OsdFsid>,
        node: &NodeName,
        activates: bool,
    ) {
        let old = self.kube.daemons.remove(&osd);
        let slot = self.ceph.slots.get(&osd).and_then(|slot| slot.fsid);
        let disk = slot.and_then(|fsid| self.disk_of(fsid)).map(|(_, disk)| disk).filter(|_| !activates);
        let data_dir = disk.and_then(crate::sim::world::Disk::directory).map(str::to_owned);
        let mounts_device = data_dir.is_none() && disk.is_some_and(crate::sim::world::Disk::is_mounted);
        let on_volumes =
            fsid.is_some_and(|fsid| self.dmcrypt.contains_key(&fsid) || self.databases.contains_key(&fsid));
        let mut daemon = Daemon {
            name: format!("rook-ceph-osd-{}", osd.0),
            uid: old.as_ref().map_or_else(|| format!("uid-{}-9", osd.0), |old| old.uid.clone()),
            generation: old.as_ref().map_or(1, |old| old.generation + 1),
            replicas: 1,
            stopped_by: None,
            fsid,
            node: Some(node.clone()),
            image: old.as_ref().map(|old| old.image.clone()).unwrap_or_default(),
            activates,
            mode: activates.then_some(if on_volumes { Mode::Lvm } else { Mode::Raw }),
            mounts_device,
            data_dir,
            on_pvcs: None,
            managed_externally: None,
            tolerations: self.kube.declaration.storage.placement.tolerations.clone(),
            opens_encryption: false,
            encrypted_to_rook: false,
            rolled_out: true,
            names_topology: true,
            replica_failure: None,
            pods: old.map(|old| old.pods).unwrap_or_default(),
        };
        self.shape_on_pvc(osd, &mut daemon);
        self.kube.daemons.insert(osd, daemon);
    }

    pub(super) fn pod_gone(&mut self, osd: OsdId) {
        let is_portable = self.is_portable(osd);
        if let Some(daemon) = self.kube.daemons.get_mut(&osd) {
            daemon.pods.clear();
            // No node is known of a Deployment that is pinned to none.
            daemon.node = daemon.node.take().filter(|_| !is_portable);
        }
    }

    pub(super) fn new_pod(&mut self, osd: OsdId) {
        let trouble = self.noise.pod_trouble(osd);
        let attached = self.attach_for_pod(osd);
        if let Some(daemon) = self.kube.daemons.get_mut(&osd) {
            daemon.node = attached.or_else(|| daemon.node.take());
            daemon.pods.push(Pod {
                name: format!("rook-ceph-osd-{}-a", osd.0),
                uid: format!("uid-pod-{}", osd.0),
                node: daemon.node.clone(),
                restarts: 0,
                trouble,
            });
        }
    }

    /// Creates a node Job, its Secret and its empty report.
    ///
    /// An existing Job of that name stays unchanged.
    pub(super) fn create_job(&mut self, request: &NodeRequest) {
        let name = job_name(&request.record, request.osd, request.task, request.attempt);
        if self.kube.node_jobs.iter().any(|job| job.name == name) {
            return;
        }
        self.kube.node_jobs.push(NodeJob {
            uid: format!("uid-{name}"),
            name: name.clone(),
            osd: request.osd,
            record: request.record.clone(),
            attempt: request.attempt,
            task: request.task,
            state: JobState::Waiting,
            created_at: self.at,
            heartbeat_at: None,
            trouble: None,
        });
        let report = format!("ConfigMap/{name}");
        self.kube.leftovers.entry(request.record.clone()).or_default().insert(report);
        let owner = KeyOwner { uid: format!("uid-key-{name}"), record: request.record.clone() };
        self.kube.keys.insert(name.clone(), owner);
        self.agents.insert(name, crate::sim::stage::Agent::new(request.clone()));
    }

    /// Deletes a Job and its pod; a process that was not started never will be.
    pub(super) fn drop_job(&mut self, name: &str) {
        self.kube.node_jobs.retain(|job| job.name != name);
        let not_started =
            self.agents.get(name).is_some_and(|agent| agent.stage == crate::sim::stage::Stage::Waiting);
        if not_started {
            self.agents.remove(name);
        }
    }

    /// Deletes the Secret with the key of a node Job, if its owner is the expected one.
    pub(super) fn delete_key(&mut self, osd: OsdId, job: &str, uid: &str) -> Done {
        if self.kube.keys.get(job).is_some_and(|owner| owner.uid != uid) {
            return refuse("the owner of the key was recreated");
        }
        self.kube.keys.remove(job);
        Ok(vec![Effect::Small(osd)])
    }

    /// Deletes everything that was created for a record.
    pub(super) fn clean_up(&mut self, osd: OsdId, record: &RecordId) {
        let jobs: BTreeSet<String> = self
            .kube
            .node_jobs
            .iter()
            .filter(|job| job.record == *record)
            .map(|job| job.name.clone())
            .collect();
        for job in &jobs {
            self.drop_job(job);
        }
        self.kube.reports.retain(|_, report| report.record != *record);
        self.kube.keys.retain(|_, owner| owner.record != *record);
        self.kube.leftovers.remove(record);
        if self.kube.backups.get(&osd) == Some(record) {
            self.kube.backups.remove(&osd);
        }
    }
}
