//! The world: everything that is true at one instant, as plain data.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::domain::inspection::{Content, Proof, RecordId};
use crate::domain::observation::{Ceph, FailedActs, Kube, Observation};
use crate::domain::osd::{DeviceIdentity, Epoch, NodeName, OsdFsid, OsdId, PgId, Weight};
use crate::domain::plan::Questions;
use crate::domain::shared::Shared;
use crate::sim::by_person::ByPerson;
use crate::sim::noise::Noise;
use crate::sim::pvcs::Pvcs;
use crate::sim::stage::Agent;

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
    pub placements: Shared<BTreeMap<PgId, Placement>>,
    /// Disks by a name that never changes in the simulation.
    pub disks: Shared<BTreeMap<String, Disk>>,
    /// Node agents with a living process, by the name of their Job.
    pub agents: Shared<BTreeMap<String, Agent>>,
    /// Issued fsids as recorded in the lock folders of the nodes.
    pub issued: Shared<BTreeMap<(OsdId, RecordId), BTreeSet<OsdFsid>>>,
    /// Last attempt whose agent had the lock, as recorded in the lock folder.
    pub attempts: BTreeMap<(OsdId, RecordId), u32>,
    /// Encrypted stores, and whether the mons have their dm-crypt key.
    pub dmcrypt: BTreeMap<OsdFsid, bool>,
    /// Stores with a database on another disk, and the name of that disk: its content stays blank.
    pub databases: BTreeMap<OsdFsid, String>,
    /// PersistentVolumeClaims.
    pub pvcs: Shared<Pvcs>,
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
    /// How people left what osd-migrate changes for a while.
    pub by_person: ByPerson,
    /// Persistent problems elsewhere in the cluster.
    pub noise: Shared<Noise>,
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
    pub(super) fn new(
        node: NodeName,
        identity: DeviceIdentity,
        content: Content,
        proof: Option<Proof>,
    ) -> Self {
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
        let fits = |bytes: Option<u64>| bytes == Some(self.identity.size_bytes);
        kube.local_volumes.iter().any(|volume| volume.path.as_deref().map_or(fits(volume.bytes), is_it))
    }

    /// Returns whether the OSD of the disk is on a mounted file system.
    pub(super) fn is_mounted(&self) -> bool {
        matches!(self.content, Content::Osd { .. })
    }
}

/// Effect of an act or a happening that a promise may have to cover.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// osd-migrate scaled a Deployment to 0.
    Stopped(OsdId),
    /// osd-migrate marked an OSD out, so that it is emptied.
    MarkedOut(OsdId),
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
    /// An agent cleared the disk for the database of an OSD.
    PartCleared {
        /// Disk.
        disk: String,
        /// Content before, if it was not a database.
        was: Content,
        /// Store whose database was on the disk.
        part: Option<OsdFsid>,
        /// OSD that the agent worked on.
        osd: OsdId,
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
        self.answered(self.unanswered(), ask)
    }

    /// Returns the observation without answers to questions.
    pub(super) fn unanswered(&self) -> Observation {
        let (ceph, mut kube) = (self.ceph.clone(), self.kube.clone());
        kube.rook_checked = self.checked_by_rook();
        Observation { at: self.at, ceph, kube, failed: FailedActs::default() }.unanswered()
    }

    /// Returns the observation with the answers to the questions that follow from it.
    pub fn answered(
        &self,
        mut seen: Observation,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Observation {
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
        for osd in questions.safe_to_destroy {
            seen.ceph.safe_to_destroy.insert(osd, self.safe_to_destroy(osd));
        }
        if let Some(osd) = questions.emptiable {
            seen.ceph.emptiable.insert(osd, self.emptiable(osd));
        }
        let removable = questions.removable;
        if !removable.is_empty() {
            let answer = self.removable(&removable);
            seen.ceph.emptiable.extend(removable.into_iter().map(|osd| (osd, answer.clone())));
        }
        seen.ceph.bootstrap = self.ceph.bootstrap.filter(|_| questions.bootstrap);
        seen.ceph.recovery = self.ceph.recovery.clone().filter(|_| questions.recovery);
        seen.ceph.commit_latency = self.ceph.commit_latency.clone().filter(|_| questions.commit_latency);
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

/// True state of one PG.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Pool of the PG.
    pub pool: u64,
    /// OSDs where CRUSH places the PG, one in each failure domain; the position is the shard of an EC pool.
    pub home: Vec<OsdId>,
    /// OSDs that CRUSH chooses next, in order, if one of `home` is out or gone.
    pub spare: Vec<OsdId>,
    /// Stores that have all of its objects at their newest version.
    pub complete: BTreeSet<OsdFsid>,
    /// Whether its OSDs have peered since one of them last came or went.
    pub peered: bool,
    /// Epoch in which its state last changed: its primary reports then.
    pub changed: Epoch,
    /// Number of objects.
    pub objects: u64,
    /// Bytes in one replica.
    pub bytes: u64,
}
