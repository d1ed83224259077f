//! State of Kubernetes, as reported by the API server.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::ambiguity::Ambiguity;
use super::operator::{Operator, OsdPdb};
use super::pvc::{OnPvcs, Pvc, Rotation};
use crate::domain::inspection::{NodeReport, NodeTask, RecordId};
use crate::domain::inventory::InventoryReport;
use crate::domain::osd::{Mode, NodeName, OsdFsid, OsdId};
use crate::domain::policy::Declaration;
use crate::domain::removal::Requests;
use crate::domain::shared::Shared;
use crate::domain::storage::{Taint, Toleration};

/// State of Kubernetes, as reported by the API server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kube {
    /// Declaration of the owner, from the CephCluster.
    pub declaration: Shared<Declaration>,
    /// resourceVersion of the CephCluster.
    pub cluster_version: String,
    /// Value of the label `ceph.rook.io/do-not-reconcile` on the CephCluster, if set.
    pub fence: Option<String>,
    /// Annotation `osd-migrate.io/fenced-at` next to the label: the resourceVersion on which osd-migrate set
    /// the fence, and on no other.
    pub fenced_at: Option<u64>,
    /// Rook's operator, if its Deployment is found.
    pub operator: Option<Operator>,
    /// Time of Rook's last status of Ceph (`status.ceph.lastChecked` of the CephCluster), by Rook's clock.
    pub rook_checked: Option<DateTime<Utc>>,
    /// Image that Rook last inspected (`status.version.image` of the CephCluster) and upgrades Ceph with.
    pub rook_image: Option<String>,
    /// PodDisruptionBudget `rook-ceph-osd`, which lets nodes be drained while all OSDs are well, if it
    /// exists.
    pub osd_pdb: Option<OsdPdb>,
    /// uid of osd-migrate's PodDisruptionBudget `osd-migrate-drains`, which allows no OSD pod to be evicted,
    /// if it exists.
    pub own_pdb: Option<String>,
    /// Why the API server rejected osd-migrate's own PodDisruptionBudget a few minutes ago: missing rights, a
    /// quota, a policy.
    pub pdb_rejected: Option<String>,
    /// Answer of the API server to a dry run of the new OSD's Deployment (`dryRun=All`). Asked only for an
    /// OSD that is about to be stopped.
    pub admission: BTreeMap<OsdId, Admission>,
    /// Latest resourceVersion of the CephCluster at which Rook skipped it (event `ReconcileSkipped`, which
    /// names the version that the reconcile had read; Rook >= 1.19.2). Asked only while such an operator is
    /// running.
    pub skipped: Option<u64>,
    /// Deployments of OSDs, by the OSD that they declare.
    pub daemons: Shared<BTreeMap<OsdId, Daemon>>,
    /// Deployments and pods that do not belong to one OSD each.
    pub ambiguities: Vec<Ambiguity>,
    /// Nodes by name.
    pub nodes: Shared<BTreeMap<NodeName, Node>>,
    /// Node Jobs of osd-migrate, oldest attempt first.
    pub node_jobs: Shared<Vec<NodeJob>>,
    /// Reports of node agents, by the name of their Job.
    pub reports: Shared<BTreeMap<String, NodeReport>>,
    /// Inventories of nodes' disks, by the name of their Job, of this run and of earlier runs.
    pub inventories: Shared<BTreeMap<String, Inventory>>,
    /// OSDs with a backup of their Deployment in a ConfigMap, with the record that the backup is for.
    pub backups: BTreeMap<OsdId, RecordId>,
    /// Owners of the Secrets with the bootstrap-osd key, by the name of the node Job that the key is for.
    pub keys: BTreeMap<String, KeyOwner>,
    /// All other objects of osd-migrate that a closed record must not leave behind, by record: `Secret/name`,
    /// `ConfigMap/name`.
    pub leftovers: BTreeMap<RecordId, BTreeSet<String>>,
    /// Running Jobs that prepare OSDs for Rook (`app=rook-ceph-osd-prepare`).
    pub rook_prepares: Vec<RookPrepare>,
    /// OSDs that Rook's own migration last worked on (ConfigMaps `osd-migration-config`, Rook 1.16 to 1.20,
    /// and `osd-replace-config`, 1.13 to 1.15). The entries stay when the migration is done.
    pub rook_migrated: BTreeSet<OsdId>,
    /// PodDisruptionBudgets of Rook that name a failure domain as draining (ConfigMap
    /// `rook-ceph-pdbstatemap`).
    pub draining_failure_domain: Option<String>,
    /// Control that a person set by `pause` or `cancel`. None if no control is set.
    pub control: Option<Control>,
    /// Requests of people to remove OSDs.
    pub requests: Requests,
    /// PersistentVolumes on paths of nodes (`spec.local.path`). Asked only while an inventory of a node
    /// exists.
    pub local_volumes: Shared<Vec<LocalVolume>>,
    /// PersistentVolumeClaims by name. Asked only if an OSD is on one, or is declared to be.
    pub pvcs: Shared<BTreeMap<String, Pvc>>,
    /// OSDs whose encryption keys Rook is rotating. Asked only if an OSD on a PVC is encrypted.
    pub rotating: BTreeSet<OsdId>,
    /// CronJobs of Rook that rotate the keys of OSDs. Asked only if an encrypted OSD may get a database or a
    /// log.
    pub rotations: BTreeMap<OsdId, Rotation>,
}

/// A running Job that prepares OSDs for Rook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RookPrepare {
    /// Name of the Job.
    pub job: String,
    /// The only node that the Job concerns. None if that is not known, or if it concerns each node.
    pub node: Option<NodeName>,
}

/// Answer of the API server to a dry run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Admission {
    /// The object would be admitted, or a webhook without dry-run support keeps that unknown.
    Admitted,
    /// A policy, a webhook or a quota refuses the object, with this message.
    Refused(String),
    /// The API server gave no answer because a webhook does not respond, with the reason.
    Unanswered(String),
}

/// A PersistentVolume that a disk of a node may be: on a path (a link to a disk, a disk, or a folder), or
/// attached by a driver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalVolume {
    /// Name of the volume.
    pub name: String,
    /// `spec.local.path`; `None` if a driver attaches the volume to a node, as a device without a known name.
    pub path: Option<String>,
    /// PersistentVolumeClaim that the volume is bound to, `namespace/name`.
    pub claim: Option<String>,
    /// `volumeMode` is Block: a container gets the volume as a device.
    pub is_block: bool,
    /// Capacity of the volume. None if it can't be read.
    pub bytes: Option<u64>,
    /// Nodes of the volume, by name or label `kubernetes.io/hostname`. None if its node affinity names none.
    pub nodes: Option<BTreeSet<String>>,
}

/// Runner that acquired the Lease last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// Name of its Job.
    pub job: String,
    /// Name of its pod.
    pub pod: String,
    /// When it renewed the Lease last.
    pub renewed_at: Option<DateTime<Utc>>,
    /// Whether its pod exists and has not ended.
    pub has_pod: bool,
    /// Whether its pod exists, and renewed the Lease in time.
    pub is_alive: bool,
}

/// Control that a person set for the runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Control {
    /// Kind of the control.
    pub kind: ControlKind,
    /// Since when the control is set, if that is recorded.
    pub since: Option<DateTime<Utc>>,
}

/// Kind of a `Control`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlKind {
    /// Start no OSD and wait.
    Pause,
    /// Start no OSD and end.
    Cancel,
}

impl Kube {
    /// Returns whether a node Job of a record has not ended.
    pub fn has_agent_at_work(&self, record: &RecordId) -> bool {
        self.node_jobs.iter().any(|job| job.record == *record && job.state != JobState::Ended)
    }

    /// Returns Rook's operator, if it is running.
    pub fn running_operator(&self) -> Option<&Operator> {
        self.operator.as_ref().filter(|operator| operator.runs())
    }

    /// Returns Rook's running operator, if it leaves a fenced CephCluster alone.
    pub fn fenceable_operator(&self) -> Option<&Operator> {
        self.running_operator().filter(|operator| operator.honours_fence)
    }

    /// Returns `cluster_version` as a number.
    ///
    /// resourceVersions of one object grow. Kubernetes guarantees this since 1.35, and all API servers that
    /// store their objects in etcd always did it.
    pub fn cluster_revision(&self) -> Option<u64> {
        self.cluster_version.parse().ok()
    }
}

/// An OSD's Deployment and its pods.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Daemon {
    /// Name of the Deployment.
    pub name: String,
    /// uid of the Deployment.
    pub uid: String,
    /// `metadata.generation`. Each change of the spec or the annotations adds one, a change of the status
    /// adds none (`pkg/registry/apps/deployment/strategy.go`, `PrepareForUpdate`).
    pub generation: i64,
    /// Replicas wanted.
    pub replicas: u32,
    /// Record in the annotation `osd-migrate.io/stopped`, if set.
    pub stopped_by: Option<RecordId>,
    /// Fsid that the Deployment starts: env `ROOK_OSD_UUID`, or argument `--osd-uuid`.
    pub fsid: Option<OsdFsid>,
    /// Node of the label `kubernetes.io/hostname`, else of its pod, else the only one of its node selector.
    pub node: Option<NodeName>,
    /// Image of the `osd` container.
    pub image: String,
    /// The Deployment activates the OSD by ceph-volume: an init container `activate`, or env `ROOK_CV_MODE`,
    /// `ROOK_BLOCK_PATH` or `ROOK_LV_PATH`.
    pub activates: bool,
    /// Mode of ceph-volume, if the Deployment declares one: env `ROOK_CV_MODE`, or `ROOK_LV_PATH`, which
    /// implies lvm.
    pub mode: Option<Mode>,
    /// The Deployment mounts a device on the data folder: Rook 1.2's `filestore-device --source-path`, or a
    /// script that names a device.
    pub mounts_device: bool,
    /// Folder of the host that is the OSD's data folder, or lies above it: `--osd-data` seen through the
    /// hostPath volumes. None if ceph-volume activates the OSD.
    pub data_dir: Option<String>,
    /// PersistentVolumeClaims of the OSD (label `ceph.rook.io/pvc`, env `ROOK_PVC_BACKED_OSD`). None if the
    /// OSD is on disks of its host.
    pub on_pvcs: Option<OnPvcs>,
    /// The Deployment opens the encrypted device itself: an init container `encryption-open...` (Rook, OSDs
    /// on PVCs), or its block path is the mapping that `ceph-volume raw prepare --dmcrypt` creates
    /// (`ceph-FSID-...-dmcrypt`).
    pub opens_encryption: bool,
    /// Label `encrypted=true`: Rook's record of how it created the OSD. It follows the node's settings, and
    /// is not always true of the disk.
    pub encrypted_to_rook: bool,
    /// Sentence for people, if the Deployment has the label `ceph.rook.io/do-not-reconcile` or a replacement
    /// annotation of Rook's.
    pub managed_externally: Option<String>,
    /// Tolerations of the pods.
    pub tolerations: Vec<Toleration>,
    /// The controller has observed the last change, and every wanted replica runs it and is available.
    pub rolled_out: bool,
    /// The Deployment has labels `topology-location-*`. Rook's controller of PodDisruptionBudgets gives up on
    /// all OSDs while one Deployment has none (`getOSDFailureDomains`, clusterdisruption/osd.go, 1.20.6).
    pub names_topology: bool,
    /// Why no pod of the Deployment can be created: a quota, an admission policy (condition
    /// `ReplicaFailure`).
    pub replica_failure: Option<String>,
    /// Pods of the Deployment that still exist, except terminal ones.
    pub pods: Vec<Pod>,
}

impl Daemon {
    /// Returns why the pod does not run or can't be created.
    pub fn trouble(&self) -> Option<String> {
        self.pods.iter().find_map(|pod| pod.trouble.clone()).or_else(|| self.replica_failure.clone())
    }
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pod {
    /// Name of the pod.
    pub name: String,
    /// uid of the pod.
    pub uid: String,
    /// Node that the pod is bound to.
    pub node: Option<NodeName>,
    /// Restarts of the container, or init container, that restarted most often.
    pub restarts: u32,
    /// Why a container waits or last ended: `CrashLoopBackOff`, `ImagePullBackOff: ...`, `exit 1: ...`.
    pub trouble: Option<String>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Condition Ready is True.
    pub ready: bool,
    /// `spec.unschedulable`: the node is cordoned, no new pod is bound to it.
    pub cordoned: bool,
    /// Label `kubernetes.io/hostname`.
    pub hostname: String,
    /// Labels of the node, from which placement and CRUSH location follow.
    pub labels: BTreeMap<String, String>,
    /// Taints of the node.
    pub taints: Vec<Taint>,
}

/// The ConfigMap that owns the Secret with the key of a node Job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyOwner {
    /// uid of the ConfigMap.
    pub uid: String,
    /// The record that the Job was created for.
    pub record: RecordId,
}

/// State of a node Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// No container of the Job has started yet.
    Waiting,
    /// The agent of the Job runs, or may run.
    Running,
    /// Condition Complete or Failed is True, or a pod succeeded, and all remaining pods are terminal.
    Ended,
}

/// Inventory Job of a node's disks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// uid of the ConfigMap that owns the Job.
    pub uid: String,
    /// Node of the inventory.
    pub node: NodeName,
    /// Run that asked for the inventory.
    pub run: String,
    /// Number of the inventory.
    pub number: u32,
    /// State of the Job. None if only the ConfigMap exists.
    pub state: Option<JobState>,
    /// Time when the inventory was requested.
    pub created_at: DateTime<Utc>,
    /// Last heartbeat of the agent.
    pub heartbeat_at: Option<DateTime<Utc>>,
    /// Why the pod waits or failed, for people.
    pub trouble: Option<String>,
    /// Report of the agent.
    pub report: Option<InventoryReport>,
}

/// Node Job of osd-migrate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeJob {
    /// Name of the Job: `osd-migrate-<task>-<osd>-<record>-<attempt>`.
    pub name: String,
    /// uid of the Job.
    pub uid: String,
    /// OSD that the Job works on.
    pub osd: OsdId,
    /// Record that the Job was created for.
    pub record: RecordId,
    /// Number of the saved attempt.
    pub attempt: u32,
    /// Task of the agent.
    pub task: NodeTask,
    /// State of the Job.
    pub state: JobState,
    /// Time when the Job was created.
    pub created_at: DateTime<Utc>,
    /// Last heartbeat of the agent.
    pub heartbeat_at: Option<DateTime<Utc>>,
    /// Why the pod waits or failed, for people.
    pub trouble: Option<String>,
}
