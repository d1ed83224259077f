//! SimCluster: Ceph, Kubernetes and the disks below them, simulated with observed semantics instead of
//! convenient ones.
//!
//! It serves both `rehearse` and the tests. A `World` is plain data: everything that is true at one instant.
//! It changes in two ways only: by an act of the runner (`acts`), and by what happens by itself or externally
//! (`happening`). Both are functions of the world alone. So a search can follow every order in which they may
//! come (`tests/suite/explore`), and a seeded schedule can play one order in virtual time (`ports`).
//!
//! | module | content | observed on |
//! | --- | --- | --- |
//! | `mon` | slots, keys, flags, CRUSH, upmaps: commands | 16.2.15, by `tests/suite/fixtures/fidelity` |
//! | `pgs` | location of data, statistics of the mgr, ok-to-stop, safe-to-destroy | 16.2.15 |
//! | `kube` | Deployments, pods, node Jobs and the objects of a record | Kubernetes 1.34 |
//! | `rook` | effects of a reconcile by Rook on OSDs | 1.20.6, and its sources |
//! | `agent` | node agent step by step, with the real proofs of `node::proof` | 16.2.15 |
//! | `stumble` | failures of ceph-volume inside the agent | 16.2.15 |
//! | `carried` | an agent's view of disks and directories | |
//! | `acts` | each act with the preconditions of `domain::expect`, like the adapters | |
//! | `noise` | persistent problems elsewhere: dead OSDs, cordoned or lost nodes, unusual PGs | |
//! | `happening` | happenings as data: time, statistics, daemons, agents; faults, Rook, people | |
//! | `change`, `faults` | effects of happenings | |
//! | `schedule`, `course` | virtual time | durations: lab, 16.2.15 on Kubernetes 1.34 |
//! | `ports` | ports of the loop in virtual time | |
//! | `new_osds` | inventories, tolerations, placement of data when an OSD is added | 16.2.15 |
//! | `example` | worlds that tests and `rehearse` start from | |

mod acts;
mod agent;
mod carried;
mod change;
pub mod course;
mod drains;
pub mod example;
mod faults;
pub mod happening;
mod kube;
mod mon;
mod new_osds;
mod noise;
mod pgs;
pub mod ports;
mod rook;
pub mod schedule;
mod stumble;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::domain::inspection::{Content, Proof, RecordId};
use crate::domain::observation::{Ceph, Kube, Observation};
use crate::domain::osd::{DeviceIdentity, NodeName, OsdFsid, OsdId, PgId, Weight};
use crate::domain::plan::Questions;

pub use acts::Read;
pub use agent::{Agent, Stage};
pub use happening::{Around, Happening};
pub use mon::MonError;
pub use noise::{Disturbance, Noise, UnusualPg};
pub use pgs::Placement;
pub use rook::Rook;
pub use stumble::Stumble;

/// State of everything at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// Current time.
    pub at: DateTime<Utc>,
    /// Answers of mons and mgr. `pgs` is what the mgr knows, which may be behind `placements`. `auth`
    /// contains every existing entity `osd.N`, `ok_to_stop` nothing.
    pub ceph: Ceph,
    /// Slots that the osdmap marks `new`: registered, and not yet booted without `noin`, reweighted or marked
    /// in.
    pub marked_new: BTreeSet<OsdId>,
    /// Reweight that an OSD had when it was marked out: `osd in` restores it.
    pub out_from: BTreeMap<OsdId, Weight>,
    /// Answers of the API server.
    pub kube: Kube,
    /// True location of the data.
    pub placements: BTreeMap<PgId, Placement>,
    /// Disks by a name that never changes in the simulation.
    pub disks: BTreeMap<String, Disk>,
    /// Node agents with a living process, by the name of their Job.
    pub agents: BTreeMap<String, Agent>,
    /// Issued fsids as recorded in the lock folders of the nodes.
    pub issued: BTreeMap<(OsdId, RecordId), BTreeSet<OsdFsid>>,
    /// Last attempt whose agent had the lock, as recorded in the lock folder.
    pub attempts: BTreeMap<(OsdId, RecordId), u32>,
    /// Encrypted stores, and whether the mons have their dm-crypt key.
    pub dmcrypt: BTreeMap<OsdFsid, bool>,
    /// Stores with a database on another disk, and the name of that disk.
    pub databases: BTreeMap<OsdFsid, String>,
    /// Daemons that temporarily cannot run.
    pub broken: BTreeSet<OsdId>,
    /// Whether a reconcile by Rook is in progress that saw no fence, or may start at any time.
    pub reconciling: bool,
    /// Whether osd-migrate was the last to scale Rook's operator.
    pub scaled_by_osd_migrate: bool,
    /// Whether Rook's drain controller is about to reconcile again.
    pub drains_due: bool,
    /// Counter of resourceVersions of Rook's PodDisruptionBudget, and of uids of that of osd-migrate.
    pub pdbs: u32,
    /// Whether the API server refuses to create a PodDisruptionBudget: a policy, a quota.
    pub rejects_pdbs: bool,
    /// Persistent problems elsewhere in the cluster.
    pub noise: Noise,
}

/// Disk of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Disk {
    /// Node of the disk.
    pub node: NodeName,
    /// Identity.
    pub identity: DeviceIdentity,
    /// Content.
    pub content: Content,
    /// Proof of the OSD on the disk, if it has a complete one.
    pub proof: Option<Proof>,
    /// Job of the agent that has the disk open exclusively.
    pub held_by: Option<String>,
    /// Whether the host has its own mapping on the disk (multipath, LUKS), which contains the OSD.
    pub mapped_by_host: bool,
}

impl Disk {
    fn new(node: NodeName, identity: DeviceIdentity, content: Content, proof: Option<Proof>) -> Self {
        Self { node, identity, content, proof, held_by: None, mapped_by_host: false }
    }

    /// Returns the host's directory on this disk that contains an OSD, if there is one.
    pub fn directory(&self) -> Option<&str> {
        match &self.proof {
            Some(Proof::Directory { path, .. }) => Some(path),
            Some(_) | None => None,
        }
    }

    /// Returns whether the disk is a PersistentVolume, by its name under `/dev/disk/by-id`.
    pub fn is_volume(&self, kube: &Kube) -> bool {
        let is_it = |path: &str| {
            path.strip_prefix("/dev/disk/by-id/").is_some_and(|name| self.identity.by_id.contains(name))
        };
        kube.local_volumes.iter().any(|volume| is_it(&volume.path))
    }

    /// Returns whether the OSD of the disk is on a mounted file system.
    fn is_mounted(&self) -> bool {
        matches!(self.content, Content::Osd { .. })
    }
}

/// Effect of an act or a happening that a promise may have to cover.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// osd-migrate scaled a Deployment to 0.
    Stopped(OsdId),
    /// A slot was destroyed.
    Destroyed(OsdId, OsdFsid),
    /// An id was removed from the osdmap, together with its CRUSH item.
    Purged(OsdId),
    /// An agent overwrote the content of a disk.
    Wiped {
        /// Disk.
        disk: String,
        /// Content before.
        was: Content,
        /// OSD that the agent worked on.
        osd: OsdId,
        /// Record that the agent worked on.
        record: RecordId,
    },
    /// An agent removed an OSD's directory.
    Cleared {
        /// Disk that contained the directory.
        disk: String,
        /// OSD that was in the directory.
        was: Content,
        /// OSD that the agent worked on.
        osd: OsdId,
        /// Record that the agent worked on.
        record: RecordId,
    },
    /// A new fsid was registered with the mons.
    Registered(OsdId, OsdFsid),
    /// The Deployment of an OSD was written in its new shape.
    Deployed(OsdId, OsdFsid),
    /// The Deployment of an OSD was deleted.
    Undeployed(OsdId),
    /// A node Job was created.
    AgentCreated(OsdId),
    /// A Deployment was changed so that its pod is recreated.
    Restarted(OsdId),
    /// osd-migrate wrote anything else: a flag, a label, a ConfigMap.
    Small(OsdId),
    /// The label on the CephCluster was written.
    Fence,
    /// Rook's operator was scaled to so many replicas.
    Operator(u32),
    /// The number of OSD pods that may be evicted at a time was written.
    Pdb(u32),
}

impl World {
    /// Returns the runner's observation: the same as the adapters would join, with the answers to its
    /// questions.
    pub fn observe(&self, ask: impl FnOnce(&Observation) -> Questions) -> Observation {
        let mut ceph = self.ceph.clone();
        ceph.auth.clear();
        ceph.bootstrap = None;
        let mut seen = Observation { at: self.at, ceph, kube: self.kube.clone() };
        let questions = ask(&seen);
        if let Some(deploy) = questions.admission {
            seen.kube.admission.insert(deploy.osd, self.noise.admission(deploy.osd));
        }
        for set in questions.ok_to_stop {
            let verdict = self.ok_to_stop(&set);
            seen.ceph.ok_to_stop.insert(set, verdict);
        }
        for osd in questions.auth {
            seen.ceph.auth.insert(osd, self.has_key(osd));
        }
        seen.ceph.bootstrap = self.ceph.bootstrap.filter(|_| questions.bootstrap);
        seen
    }

    /// Returns the disk with the OSD of this fsid, and its name.
    pub fn disk_of(&self, fsid: OsdFsid) -> Option<(&String, &Disk)> {
        self.disks.iter().find(|(_, disk)| fsid_on(&disk.content) == Some(fsid))
    }
}

/// Returns the fsid of the OSD whose store the content is.
pub fn fsid_on(content: &Content) -> Option<OsdFsid> {
    match content {
        Content::Bluestore { osd_fsid, .. } | Content::Osd { osd_fsid, .. } => Some(*osd_fsid),
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => None,
    }
}
