//! Stored state that can't be observed once an OSD is stopped and its disk blank (`docs/concepts/ledger.md`).

mod bounds;
mod refusals;
mod stored;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::classify::Class;
use crate::domain::inspection::{Evidence, NodeTask, RecordId};
use crate::domain::osd::{
    CrushItem, DbDevice, DeviceIdentity, Epoch, Layout, NodeName, OsdFsid, OsdId, PgId, Upmap, Weight,
};

pub use refusals::Refusals;
pub use stored::Unreadable;

/// Format of the stored ledger: a newer one is a halt, never a best effort.
pub const FORMAT: u32 = 1;

/// Maximum number of OSDs in progress: 64 records of 8 KiB fit into a save of 900 KiB (ConfigMap: 1 MiB).
pub const MAX_OPEN: usize = 64;

/// Maximum number of records, quarantined too: one that failed before Stop (no PGs yet) takes 1 to 2 KiB.
pub const MAX_RECORDS: usize = 256;

/// Prefix of the value of osd-migrate's fence, followed by the record that the fence was set for.
pub const FENCE: &str = "osd-migrate-";

/// The whole ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ledger {
    /// State of the run as a whole.
    pub run: Run,
    /// Open records: in progress or quarantined.
    pub records: BTreeMap<OsdId, Record>,
    /// Progress of each node with its new OSDs, in the run that made the last inventory.
    pub nodes: BTreeMap<NodeName, NodeWork>,
}

/// Progress of a node with its new OSDs (Rook's words: `computingDiff`, `orchestrating`, `completed`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeWork {
    /// Status of the node.
    pub status: NodeStatus,
    /// Since when the node has this status.
    pub since: DateTime<Utc>,
    /// Message for people.
    pub message: String,
    /// The run that works on the node. Another run makes another inventory.
    pub run: String,
    /// The run that asked for the node's inventory, if it is an earlier one.
    pub inventoried_by: Option<String>,
    /// Number of the inventory, saved before its Job is created.
    pub inventory: u32,
    /// Inventories that failed one after the other.
    pub failures: u32,
    /// Disks that became OSDs in this run after the inventory, by their stable names.
    pub done: BTreeSet<String>,
    /// Disks that this run skips because they were not available after all, by stable name, with the finding.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<String, String>,
    /// Directories of OSDs recreated elsewhere that could not be removed in this run: reason by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
    /// OSDs of the node whose database can't be created on the device declared for it, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub databases: BTreeMap<OsdId, String>,
    /// Obstacles: named devices that are missing or in use, settings that can't be fulfilled.
    pub problems: Vec<String>,
}

impl NodeWork {
    /// Returns the run that asked for the node's inventory.
    pub fn inventory_run(&self) -> &str {
        self.inventoried_by.as_deref().unwrap_or(&self.run)
    }
}

/// Status of a node's new OSDs, see `NodeWork`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum NodeStatus {
    /// An inventory of the node's disks is in progress.
    ComputingDiff,
    /// The new OSDs of the node are being created.
    Orchestrating,
    /// Nothing is left to do.
    Completed,
}

/// Strategy by which an OSD gets onto its device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "kebab-case")]
pub enum Strategy {
    /// An existing OSD is destroyed and recreated on its own disk.
    #[default]
    InPlace,
    /// An OSD in a directory of the host is recreated, with the same id, on an available device of its node.
    /// The directory is removed when the new OSD is clean.
    Directory {
        /// The directory, as its Deployment mounts it.
        path: String,
        /// The available device.
        onto: DeviceIdentity,
    },
    /// An available disk becomes an OSD. Its id is absent, or its slot was left destroyed.
    New {
        /// Initial CRUSH weight, if the owner declares one. Otherwise the size decides.
        initial_weight: Option<Weight>,
        /// The store is a file of the node, for tests only.
        on_file: bool,
    },
}

/// State of the run as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Run {
    /// Number of records created so far. It makes the ids of records unique.
    pub serial: u32,
    /// Fence of osd-migrate, saved before it is set and cleared after it is removed.
    pub fence: Option<String>,
    /// resourceVersion of the CephCluster as observed without a fence, right before the fence was set.
    pub fence_after: Option<u64>,
    /// The running Rook operator acknowledged that fence on a later version: the fence is in force.
    pub fence_acknowledged: bool,
    /// Rook's operator as it was, saved before it is scaled to 0 and cleared after it is restored.
    pub operator: Option<ScaledOperator>,
    /// Operator that was last restored or forgotten: a frozen runner may still scale it to 0 after that.
    pub last_operator: Option<ScaledOperator>,
    /// OSDs' PodDisruptionBudget as it was, saved before it is limited to 0 and cleared after it is restored.
    pub pdb: Option<FormerPdb>,
    /// PodDisruptionBudget that was last restored: a frozen runner may still limit it after that.
    pub last_pdb: Option<FormerPdb>,
    /// Fence that was last removed: a frozen runner may set it again after that.
    pub last_fence: Option<String>,
    /// client.bootstrap-osd was missing: saved before osd-migrate creates the key, cleared after its removal.
    pub bootstrap: bool,
    /// Progress of the Job whose pods failed. None if the last save was by a Job's first pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Since when a Job waits only for OSDs blocked by their own state. Reset when work on an OSD starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipping: Option<Skipping>,
    /// OSDs that a Job does not start again because their new Deployment is not admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<Refusals>,
}

/// Since when a Job waits only for OSDs blocked by their own state: the node is cordoned or not Ready.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Skipping {
    /// uid of the Job. Another Job waits again.
    pub job: String,
    /// Since when it waits.
    pub since: DateTime<Utc>,
}

/// Last progress of a run, counted in pods of its Job that had failed by then.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Progress {
    /// uid of the Job.
    pub job: String,
    /// Pods of the Job that had failed by then.
    pub failed_pods: u32,
    /// Bytes left to backfill, if a pod waits for a backfill and nothing was saved since.
    pub left_bytes: Option<u64>,
}

impl Run {
    /// Returns whether osd-migrate changed something in the cluster that it has to restore.
    pub fn restores(&self) -> bool {
        self.fence.is_some() || self.operator.is_some() || self.pdb.is_some() || self.bootstrap
    }
}

/// Rook's operator as it was before osd-migrate scaled it to 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScaledOperator {
    /// namespace/name of its Deployment.
    pub name: String,
    /// Replicas wanted before.
    pub replicas: u32,
    /// uid of its Deployment: a recreated one is another. None in data of earlier versions.
    pub uid: Option<String>,
    /// Generation before: one more if osd-migrate scaled it and nothing changed it since.
    pub generation: i64,
    /// When it was saved, or when the last OSD was finished since. None in data of earlier versions.
    pub since: Option<DateTime<Utc>>,
}

/// PodDisruptionBudget of the OSDs before osd-migrate limited it to 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FormerPdb {
    /// Former `maxUnavailable`.
    pub max_unavailable: u32,
    /// uid: a recreated one is not osd-migrate's. None in data of earlier versions.
    pub uid: Option<String>,
    /// Generation before: one more if osd-migrate limited it and nothing wrote it since. None in format 3.
    pub generation: Option<i64>,
}

/// One OSD's migration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// Name of the record.
    pub id: RecordId,
    /// The OSD.
    pub osd: OsdId,
    /// Node that the OSD runs on.
    pub node: NodeName,
    /// Reason for the migration.
    pub class: Class,
    /// Strategy of the migration.
    pub strategy: Strategy,
    /// Layout that the OSD gets.
    pub target: Layout,
    /// Separate device that its database is created on. (An OSD with its own volume for it gets that again.)
    pub db: Option<DbDevice>,
    /// The fsid before Stop.
    pub old: OsdFsid,
    /// uid of the Deployment found.
    pub deployment: String,
    /// Place in CRUSH at the end of the migration.
    pub crush: CrushItem,
    /// Former CRUSH weight, if the new weight follows the size of another device.
    pub former_weight: Option<Weight>,
    /// In-weight.
    pub reweight: Weight,
    /// Primary affinity.
    pub primary_affinity: Weight,
    /// Upmaps that name the OSD.
    pub upmaps: Vec<Upmap>,
    /// Bytes used on the OSD.
    pub used_bytes: Option<u64>,
    /// Per-OSD flags before osd-migrate set them, updated with the intent to stop: (`noout`, `noin`).
    pub former_flags: (bool, bool),
    /// Proof that the device holds the OSD, from the first inspection.
    pub evidence: Option<Evidence>,
    /// PGs that the OSD served, saved right before Stop.
    pub pgs: BTreeSet<PgId>,
    /// Time of the first intent to stop since the record was created or its PGs changed, however long ago.
    pub stop_intended_at: Option<DateTime<Utc>>,
    /// Since when the OSD is observed as stopped, or as down after its stop. None while it is up.
    pub down_since: Option<DateTime<Utc>>,
    /// Its `noout` was lifted while it was down: Ceph may heal without it. The flag is not set again.
    pub noout_lifted: bool,
    /// Since when a gate blocks the OSD between the intent and the stop.
    pub blocked_since: Option<DateTime<Utc>>,
    /// Time of the last save of the record. None in data of earlier versions.
    pub saved_at: Option<DateTime<Utc>>,
    /// Number of reverted stops since the record was created or its OSD was retried.
    pub restarts: u32,
    /// Why the last stop was reverted. None as soon as another stop is intended.
    pub stop_reverted: Option<String>,
    /// Since when the state of the PGs blocks the wipe of the old data, while the slot is destroyed.
    pub wipe_blocked_since: Option<DateTime<Utc>>,
    /// The last attempt of a node agent, saved before its Job is created.
    pub attempt: Attempt,
    /// Issued fsids reported by agents so far.
    pub issued: BTreeSet<OsdFsid>,
    /// The fsid of the new OSD, saved before it is deployed.
    pub new: Option<OsdFsid>,
    /// Since when Rook is expected to create the Deployment.
    pub left_to_rook_since: Option<DateTime<Utc>>,
    /// For an OSD on an available disk: epoch in which it came up, and time of the first observation of it.
    pub up_seen: Option<(Epoch, DateTime<Utc>)>,
    /// History of saves: (`record`, time), (`proof`, time) ...
    pub milestones: Vec<(String, DateTime<Utc>)>,
    /// Upmaps lost by a purge with the CRUSH item, to restore when the OSD is up. None if none were lost.
    pub lost_upmaps: Option<LostUpmaps>,
    /// A person had it retried after a quarantine: earlier restarts of its pod do not count.
    pub retried: bool,
    /// The OSD is up, clean and as wanted: only the cleanup is left.
    pub closing: bool,
    /// The OSD failed and is quarantined.
    pub quarantine: Option<Quarantine>,
}

impl NodeStatus {
    /// Returns the status name, which Rook also uses for its nodes.
    pub fn code(self) -> &'static str {
        self.into()
    }
}

impl Record {
    /// Returns whether the record turns an available disk into an OSD.
    pub fn is_new(&self) -> bool {
        matches!(self.strategy, Strategy::New { .. })
    }

    /// Returns whether the record moves an OSD from a directory to an available disk.
    pub fn is_in_directory(&self) -> bool {
        matches!(self.strategy, Strategy::Directory { .. })
    }

    /// Returns whether the old OSD is stopped for the record, or the new OSD exists.
    pub fn is_committed(&self) -> bool {
        self.down_since.is_some() || self.new.is_some()
    }

    /// Returns the disk that the record reserves: no other OSD is created on it.
    pub fn device(&self) -> Option<&DeviceIdentity> {
        match &self.strategy {
            Strategy::Directory { onto, .. } => Some(onto),
            Strategy::InPlace | Strategy::New { .. } => {
                self.evidence.as_ref().map(|evidence| &evidence.device)
            }
        }
    }

    /// Returns whether the OSD moves to another disk: CRUSH may then move unpredictable other PGs to it.
    pub fn gets_others(&self) -> bool {
        self.is_new() || self.is_in_directory()
    }

    /// Returns the flags (`noout`, `noin`) that are set now and that osd-migrate has to lift.
    pub fn flags_to_lift(&self, noout: bool, noin: bool) -> (bool, bool) {
        let (had_noout, had_noin) = self.former_flags;
        // Before the intent to stop, osd-migrate set no flags: a flag seen then was set externally.
        let ours = self.stop_intended_at.is_some();
        (ours && noout && !had_noout, ours && noin && !had_noin)
    }
}

/// The last attempt of a node agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// Number of the attempt, part of the Job's name.
    pub number: u32,
    /// Task of the attempt.
    pub task: NodeTask,
    /// Attempts that failed since the first proof, or since a successful rebuild or restore-slot.
    pub failures: u32,
}

/// Progress of restoring lost upmaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LostUpmaps {
    /// Number of tries. The mons drop an upmap at once if it no longer fits CRUSH.
    pub tries: u32,
    /// Epoch of the last try's intent. If upmaps are missing in a later one, it failed or was never done.
    pub epoch: Epoch,
}

/// Reason for a quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Quarantine {
    /// Sentence for people.
    pub why: String,
    /// Since when the OSD is quarantined.
    pub since: DateTime<Utc>,
}

impl Ledger {
    /// Returns the records in progress.
    pub fn in_flight(&self) -> impl Iterator<Item = &Record> {
        self.records.values().filter(|record| record.quarantine.is_none())
    }

    /// Returns the quarantined records.
    pub fn quarantined(&self) -> impl Iterator<Item = &Record> {
        self.records.values().filter(|record| record.quarantine.is_some())
    }

    /// Returns the ledger with this record in place of the OSD's former one.
    #[must_use]
    pub fn with(&self, record: Record) -> Self {
        let mut ledger = self.clone();
        ledger.records.insert(record.osd, record);
        ledger
    }

    /// Returns the ledger without one record.
    #[must_use]
    pub fn without(&self, osd: OsdId) -> Self {
        let mut ledger = self.clone();
        ledger.records.remove(&osd);
        ledger
    }

    /// Returns the ledger with a quarantined OSD to be retried, or none if the OSD is not quarantined.
    pub fn retried(&self, osd: OsdId) -> Option<Self> {
        let mut record = self.records.get(&osd).filter(|record| record.quarantine.is_some())?.clone();
        record.quarantine = None;
        (record.restarts, record.stop_reverted, record.wipe_blocked_since) = (0, None, None);
        (record.blocked_since, record.retried) = (None, true);
        // A new attempt: the report of the failed one must not count again.
        record.attempt = Attempt { number: record.attempt.number + 1, task: NodeTask::Inspect, failures: 0 };
        Some(self.with(record))
    }
}
