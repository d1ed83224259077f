//! SimCluster: Ceph, Kubernetes and the disks below them, simulated with the semantics that were seen, not with convenient ones.
//!
//! It serves `rehearse` and the tests alike. A `World` is plain data: everything that is true at one instant. It changes in
//! two ways only: by an act of the runner (`acts`), and by what happens by itself or by others (`happening`). Both are
//! functions of the world alone, so that a search can follow every order in which they may come (`tests/suite/explore`),
//! and a seeded schedule can play one of them in virtual time (`ports`).
//!
//! | module | what | seen on |
//! | --- | --- | --- |
//! | `mon` | slots of the osdmap, keys, flags, CRUSH items, upmaps: the commands we send | 16.2.15, by the scripts of `tests/suite/fixtures/fidelity` |
//! | `pgs` | where data lies, what the mgr knows of it, ok-to-stop, safe-to-destroy | 16.2.15 |
//! | `kube` | Deployments, pods, node Jobs and what belongs to a record | Kubernetes 1.34 |
//! | `rook` | what a reconcile of Rook's does to OSDs | 1.20.6, and its sources |
//! | `agent` | the node agent step by step, with the real proofs of `node::proof` | 16.2.15 |
//! | `stumble` | ceph-volume's ways to fail inside it | 16.2.15 |
//! | `carried` | what an agent sees of disks and directories | |
//! | `acts` | each act with the preconditions of `domain::expect`, as the adapters have them | |
//! | `noise` | what is wrong elsewhere and stays so: dead OSDs, cordoned or lost nodes, odd PGs | |
//! | `happening`, `change`, `faults` | time, statistics, daemons, agents; faults, Rook and people: as data, and what they come to | |
//! | `schedule`, `course`, `ports` | virtual time, and the ports of the loop in it | durations: lab, 16.2.15 on Kubernetes 1.34 |
//! | `new_osds` | looks at a node's disks, tolerations, where data goes when one more OSD is there | 16.2.15 |
//! | `example` | the worlds that tests and `rehearse` start from | |

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

/// Everything that is true at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// Now.
    pub at: DateTime<Utc>,
    /// What mons and mgr would answer; `pgs` is what the mgr knows, which may be behind `placements`. `auth` holds every
    /// entity `osd.N` there is, `ok_to_stop` nothing.
    pub ceph: Ceph,
    /// Slots that the osdmap marks `new`: claimed and not yet booted without `noin`, reweighted or marked in.
    pub marked_new: BTreeSet<OsdId>,
    /// The reweight that an OSD had when it was marked out: `osd in` gives it back.
    pub out_from: BTreeMap<OsdId, Weight>,
    /// What the API server would answer.
    pub kube: Kube,
    /// Where the data really is.
    pub placements: BTreeMap<PgId, Placement>,
    /// Disks by a name that never changes here.
    pub disks: BTreeMap<String, Disk>,
    /// Node agents whose process lives, by the name of their Job.
    pub agents: BTreeMap<String, Agent>,
    /// Claims as written in the lock folders of the nodes.
    pub issued: BTreeMap<(OsdId, RecordId), BTreeSet<OsdFsid>>,
    /// The last attempt whose agent had the lock, as written there.
    pub attempts: BTreeMap<(OsdId, RecordId), u32>,
    /// Encrypted stores, and whether the mons have what opens them.
    pub dmcrypt: BTreeMap<OsdFsid, bool>,
    /// Stores whose database lies on another disk, and the name of that.
    pub databases: BTreeMap<OsdFsid, String>,
    /// Daemons that can't run for now.
    pub broken: BTreeSet<OsdId>,
    /// Rook is in the middle of a reconcile that saw no fence, or may begin one at any time.
    pub reconciling: bool,
    /// We scaled Rook's operator last, and nobody else since.
    pub scaled_by_osd_migrate: bool,
    /// Rook's controller of drains is about to look once more.
    pub drains_due: bool,
    /// resourceVersions that Rook's PodDisruptionBudget has had, and uids that ours had.
    pub pdbs: u32,
    /// The API server refuses to make one: a policy, a quota.
    pub rejects_pdbs: bool,
    /// What is wrong elsewhere, and stays so.
    pub noise: Noise,
}

/// A disk of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Disk {
    /// Where it is plugged in.
    pub node: NodeName,
    /// Who it is.
    pub identity: DeviceIdentity,
    /// What it carries.
    pub content: Content,
    /// What proves the OSD on it, where it carries a whole one.
    pub proof: Option<Proof>,
    /// The agent's Job that has it open exclusively.
    pub held_by: Option<String>,
    /// The host has a mapping of its own on it (multipath, LUKS), on which the OSD lies.
    pub mapped_by_host: bool,
}

impl Disk {
    fn new(node: NodeName, identity: DeviceIdentity, content: Content, proof: Option<Proof>) -> Self {
        Self { node, identity, content, proof, held_by: None, mapped_by_host: false }
    }

    /// The directory of the host that lies on it, where an OSD is in one.
    pub fn directory(&self) -> Option<&str> {
        match &self.proof {
            Some(Proof::Directory { path, .. }) => Some(path),
            Some(_) | None => None,
        }
    }

    /// It is a PersistentVolume, by its name under `/dev/disk/by-id`.
    pub fn is_volume(&self, kube: &Kube) -> bool {
        let is_it = |path: &str| {
            path.strip_prefix("/dev/disk/by-id/").is_some_and(|name| self.identity.by_id.contains(name))
        };
        kube.local_volumes.iter().any(|volume| is_it(&volume.path))
    }

    /// Its OSD is on a file system that is mounted.
    fn is_mounted(&self) -> bool {
        matches!(self.content, Content::Osd { .. })
    }
}

/// What an act or a happening did that somebody may have to answer for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// A Deployment was taken to 0 by us.
    Stopped(OsdId),
    /// A slot was destroyed.
    Destroyed(OsdId, OsdFsid),
    /// An id was taken out of the osdmap, and with it its CRUSH item.
    Purged(OsdId),
    /// An agent wrote over what a disk carried.
    Wiped {
        /// The disk.
        disk: String,
        /// What it carried.
        was: Content,
        /// For which OSD.
        osd: OsdId,
        /// For which record.
        record: RecordId,
    },
    /// An agent removed an OSD's directory.
    Cleared {
        /// The disk below it.
        disk: String,
        /// The OSD that was in it.
        was: Content,
        /// For which OSD.
        osd: OsdId,
        /// For which record.
        record: RecordId,
    },
    /// A new fsid was taken to the mons.
    Registered(OsdId, OsdFsid),
    /// The Deployment of an OSD was written in its new shape.
    Deployed(OsdId, OsdFsid),
    /// The Deployment of an OSD was deleted.
    Undeployed(OsdId),
    /// A node Job was made.
    AgentCreated(OsdId),
    /// A Deployment was changed so that its pod is made anew.
    Restarted(OsdId),
    /// Anything else of ours: a flag, a label, a ConfigMap.
    Small(OsdId),
    /// The label on the CephCluster.
    Fence,
    /// Rook's operator has so many replicas.
    Operator(u32),
    /// So many OSD pods may be evicted at a time.
    Pdb(u32),
}

impl World {
    /// What the runner sees: the same as the adapters would put together, and the answers to its questions.
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

    /// The disk that an OSD of this fsid lies on, and its name.
    pub fn disk_of(&self, fsid: OsdFsid) -> Option<(&String, &Disk)> {
        self.disks.iter().find(|(_, disk)| fsid_on(&disk.content) == Some(fsid))
    }
}

/// The OSD whose store a content is.
pub fn fsid_on(content: &Content) -> Option<OsdFsid> {
    match content {
        Content::Bluestore { osd_fsid, .. } | Content::Osd { osd_fsid, .. } => Some(*osd_fsid),
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => None,
    }
}
