//! What the API server says.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::domain::inspection::{NodeReport, NodeTask, RecordId};
use crate::domain::inventory::InventoryReport;
use crate::domain::osd::{Mode, NodeName, OsdFsid, OsdId};
use crate::domain::policy::Declaration;
use crate::domain::storage::{Taint, Toleration};

/// What the API server says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kube {
    /// The CephCluster: what its owner declared.
    pub declaration: Declaration,
    /// Its resourceVersion.
    pub cluster_version: String,
    /// Label `ceph.rook.io/do-not-reconcile` on it, where it is there.
    pub fence: Option<String>,
    /// Our annotation beside it, `osd-migrate.io/fenced-at`: the resourceVersion on which our fence was put, and on no other.
    pub fenced_at: Option<u64>,
    /// Rook's operator, where its Deployment is found.
    pub operator: Option<Operator>,
    /// When Rook last said how Ceph is (`status.ceph.lastChecked` of the CephCluster), by its own clock.
    pub rook_checked: Option<DateTime<Utc>>,
    /// The image that Rook has looked at last (`status.version.image` of the CephCluster): with it it upgrades Ceph.
    pub rook_image: Option<String>,
    /// PodDisruptionBudget `rook-ceph-osd`, which lets nodes be drained while all is well, where it is there.
    pub osd_pdb: Option<OsdPdb>,
    /// uid of our own PodDisruptionBudget `osd-migrate-drains`, which lets no OSD's pod be evicted, where it is there.
    pub own_pdb: Option<String>,
    /// Why the API server did not let us make our own, a few minutes ago: no right, a quota, a policy.
    pub pdb_rejected: Option<String>,
    /// Whether the API server would admit the Deployment of the new OSD (`dryRun=All`). Asked only of an OSD that
    /// is about to be stopped.
    pub admission: BTreeMap<OsdId, Admission>,
    /// The latest resourceVersion of the CephCluster at which Rook said that it left it alone (event `ReconcileSkipped`, which
    /// names the version that the reconcile had read; Rook >= 1.20). Asked only while such an operator runs.
    pub skipped: Option<u64>,
    /// Deployments of OSDs, by the OSD they say they run.
    pub daemons: BTreeMap<OsdId, Daemon>,
    /// OSD Deployments or OSD ids that can't be told apart: two Deployments for one id, a label that is no number.
    pub ambiguities: Vec<String>,
    /// Nodes by name.
    pub nodes: BTreeMap<NodeName, Node>,
    /// Our node Jobs, oldest attempt first.
    pub node_jobs: Vec<NodeJob>,
    /// Reports of node agents, by the name of the Job they belong to.
    pub reports: BTreeMap<String, NodeReport>,
    /// Looks at the disks of nodes, by the name of their Job, of this run and of earlier ones.
    pub inventories: BTreeMap<String, Inventory>,
    /// OSDs whose Deployment is kept in a ConfigMap, with the record it was kept for.
    pub backups: BTreeMap<OsdId, RecordId>,
    /// Owners of the Secrets with the bootstrap-osd key, by the name of the node Job that the key is for.
    pub keys: BTreeMap<String, KeyOwner>,
    /// Everything else of ours that a closed record must not leave behind, by record: `Secret/name`, `ConfigMap/name`.
    pub leftovers: BTreeMap<RecordId, BTreeSet<String>>,
    /// Jobs that prepare OSDs for Rook and are running now (`app=rook-ceph-osd-prepare`).
    pub rook_prepares: Vec<String>,
    /// OSDs that Rook's own migration took last (ConfigMaps `osd-migration-config`, Rook 1.16 to 1.20, and `osd-replace-config`, 1.13
    /// to 1.15). They stay there when it is done.
    pub rook_migrated: BTreeSet<OsdId>,
    /// PodDisruptionBudgets of Rook that name a failure domain as draining (ConfigMap `rook-ceph-pdbstatemap`).
    pub draining_failure_domain: Option<String>,
    /// What a person told the runs to do, by `pause` or `cancel`; none where nothing stands.
    pub control: Option<Control>,
    /// PersistentVolumes on paths of nodes (`spec.local.path`). Asked only while an inventory of a node is there.
    pub local_volumes: Vec<LocalVolume>,
}

/// Answer of the API server to a dry run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Admission {
    /// The object would be admitted, or a webhook that takes no dry runs keeps that unknown.
    Admitted,
    /// A policy, a webhook or a quota refuses the object, with these words.
    Refused(String),
    /// The API server gave no answer: a webhook does not respond. Why.
    Unanswered(String),
}

/// A PersistentVolume on a path of a node: a link to a disk, a disk, or a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalVolume {
    /// Name.
    pub name: String,
    /// `spec.local.path`
    pub path: String,
    /// The claim that it is bound to, `namespace/name`.
    pub claim: Option<String>,
    /// `volumeMode` is Block: a container gets it as a device.
    pub is_block: bool,
    /// Its capacity; none if it can't be read.
    pub bytes: Option<u64>,
    /// Nodes that it is on, by name or label `kubernetes.io/hostname`; none if its node affinity names none.
    pub nodes: Option<BTreeSet<String>>,
}

/// What a person told the runs to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Control {
    /// What.
    pub kind: ControlKind,
    /// Since when, where it is said.
    pub since: Option<DateTime<Utc>>,
}

/// See `Control`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlKind {
    /// Begin nothing and wait.
    Pause,
    /// Begin nothing and end.
    Cancel,
}

/// Rook's operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operator {
    /// `namespace/name` of its Deployment.
    pub name: String,
    /// Image, for its version.
    pub image: String,
    /// `metadata.uid` of its Deployment; empty where there is none.
    pub uid: String,
    /// Replicas wanted.
    pub replicas: u32,
    /// Pods that are not gone.
    pub pods: u32,
    /// `metadata.generation` of its Deployment: one more with each change of what is wanted, by whomever.
    pub generation: i64,
    /// It leaves a CephCluster alone that carries the label `do-not-reconcile` (Rook >= 1.20, by the tag of its image).
    pub honours_fence: bool,
}

/// Rook's PodDisruptionBudget for OSDs. Rook, where it runs, writes and deletes it as it sees OSDs down.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OsdPdb {
    /// `spec.maxUnavailable`: OSD pods that may be evicted at a time. (Rook writes a number, 1, never a share.)
    pub max_unavailable: u32,
    /// OSDs that it does not count (`spec.selector`, `osd NotIn ...`), whatever it says: Rook leaves those out whose pod is not ready
    /// while all PGs are clean (1.20.6).
    pub left_out: BTreeSet<OsdId>,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`: one more with each change of what is wanted, by whomever.
    pub generation: i64,
}

impl Operator {
    /// Whether it does anything, or is about to: no replicas wanted and no pod left is none.
    pub fn runs(&self) -> bool {
        self.replicas > 0 || self.pods > 0
    }
}

impl Kube {
    /// Rook's operator, where one runs.
    pub fn running_operator(&self) -> Option<&Operator> {
        self.operator.as_ref().filter(|operator| operator.runs())
    }

    /// The same, if it leaves a CephCluster alone that is fenced.
    pub fn fenceable_operator(&self) -> Option<&Operator> {
        self.running_operator().filter(|operator| operator.honours_fence)
    }

    /// `cluster_version` as a number: resourceVersions of one object grow (Kubernetes says so since 1.35; all API servers that keep
    /// their objects in etcd always did).
    pub fn cluster_revision(&self) -> Option<u64> {
        self.cluster_version.parse().ok()
    }
}

/// An OSD's Deployment and its pods.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Daemon {
    /// Name of the Deployment.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// `metadata.generation`: one more with each change of what is wanted and of annotations, none with its status
    /// (`pkg/registry/apps/deployment/strategy.go`, `PrepareForUpdate`).
    pub generation: i64,
    /// Replicas wanted.
    pub replicas: u32,
    /// Our annotation `osd-migrate.io/stopped`, where it is there.
    pub stopped_by: Option<RecordId>,
    /// The fsid it starts: env `ROOK_OSD_UUID`, or argument `--osd-uuid`.
    pub fsid: Option<OsdFsid>,
    /// Node it is pinned to by `kubernetes.io/hostname`, else the node of its pod.
    pub node: Option<NodeName>,
    /// Image of the `osd` container.
    pub image: String,
    /// It activates the OSD by ceph-volume: an init container `activate`, or env `ROOK_CV_MODE`, `ROOK_BLOCK_PATH` or `ROOK_LV_PATH`.
    pub activates: bool,
    /// ceph-volume's mode, where it says one: env `ROOK_CV_MODE`, or `ROOK_LV_PATH`, which means lvm.
    pub mode: Option<Mode>,
    /// It mounts a device on the data folder: Rook 1.2's `filestore-device --source-path`, or a script that names a device.
    pub mounts_device: bool,
    /// Folder of the host that is the OSD's data folder, or lies above it: `--osd-data` seen through its hostPath volumes; none
    /// where ceph-volume activates it.
    pub data_dir: Option<String>,
    /// It is backed by a PersistentVolumeClaim (label `ceph.rook.io/pvc`, env `ROOK_PVC_BACKED_OSD`).
    pub pvc_backed: bool,
    /// It opens its encrypted device itself: an init container `encryption-open...` (Rook, OSDs on PVCs), or its block path is the
    /// mapping that `ceph-volume raw prepare --dmcrypt` makes (`ceph-FSID-...-dmcrypt`).
    pub opens_encryption: bool,
    /// Label `encrypted=true`: Rook's own word for how it made the OSD, true of the node's settings and not always of the disk.
    pub encrypted_to_rook: bool,
    /// Label `ceph.rook.io/do-not-reconcile` or a replacement annotation of Rook's is on it: text for people.
    pub managed_externally: Option<String>,
    /// Tolerations of its pods.
    pub tolerations: Vec<Toleration>,
    /// Its controller has seen its last change, and every replica wanted runs it and is available.
    pub rolled_out: bool,
    /// It has labels `topology-location-*`. Rook's controller of PodDisruptionBudgets gives up on all OSDs while one Deployment has
    /// none (`getOSDFailureDomains`, clusterdisruption/osd.go, 1.20.6).
    pub names_topology: bool,
    /// Why no pod of it can be created: a quota, an admission policy (condition `ReplicaFailure`).
    pub replica_failure: Option<String>,
    /// Its pods that are not gone, terminal ones left out.
    pub pods: Vec<Pod>,
}

impl Daemon {
    /// Returns what keeps its pod from running, or from being created.
    pub fn trouble(&self) -> Option<String> {
        self.pods.iter().find_map(|pod| pod.trouble.clone()).or_else(|| self.replica_failure.clone())
    }
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pod {
    /// Name.
    pub name: String,
    /// uid.
    pub uid: String,
    /// Node it is bound to.
    pub node: Option<NodeName>,
    /// Restarts of the container, or init container, that restarted most often.
    pub restarts: u32,
    /// Why a container waits or ended last: `CrashLoopBackOff`, `ImagePullBackOff: ...`, `exit 1: ...`.
    pub trouble: Option<String>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Condition Ready is True.
    pub ready: bool,
    /// `spec.unschedulable`: cordoned, no new pod is bound to it.
    pub cordoned: bool,
    /// Label `kubernetes.io/hostname`.
    pub hostname: String,
    /// Its labels: placement and CRUSH location are made of them.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
}

/// The ConfigMap that owns the Secret with the key of a node Job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyOwner {
    /// uid.
    pub uid: String,
    /// The record that the Job was created for.
    pub record: RecordId,
}

/// State of a node Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// No container of it has started yet.
    Waiting,
    /// Its agent runs, or may run.
    Running,
    /// Condition Complete or Failed is True and no pod of it is left that is not terminal.
    Ended,
}

/// A look at the disks of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// uid of its ConfigMap, to which the Job belongs.
    pub uid: String,
    /// The node.
    pub node: NodeName,
    /// The run that asked.
    pub run: String,
    /// Its number.
    pub number: u32,
    /// State of its Job; none where only the ConfigMap is there.
    pub state: Option<JobState>,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// The last heartbeat its agent wrote.
    pub heartbeat_at: Option<DateTime<Utc>>,
    /// Why its pod waits or failed, for people.
    pub trouble: Option<String>,
    /// What was seen.
    pub report: Option<InventoryReport>,
}

/// One of our node Jobs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeJob {
    /// Name: `osd-migrate-<task>-<osd>-<record>-<attempt>`.
    pub name: String,
    /// uid.
    pub uid: String,
    /// The OSD.
    pub osd: OsdId,
    /// The record it was made for.
    pub record: RecordId,
    /// The saved attempt.
    pub attempt: u32,
    /// What it does.
    pub task: NodeTask,
    /// State.
    pub state: JobState,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// The last heartbeat its agent wrote.
    pub heartbeat_at: Option<DateTime<Utc>>,
    /// Why its pod waits or failed, for people.
    pub trouble: Option<String>,
}
