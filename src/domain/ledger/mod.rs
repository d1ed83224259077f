//! What is stored: only what cannot be seen again once an OSD is stopped and its disk is blank. See `docs/concepts/ledger.md`.

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

/// Format of what is stored. A newer one is a halt, never a best effort.
pub const FORMAT: u32 = 1;

/// Records in flight at most: 64 records of 8 KiB stay below the 900 KiB that a save may have (a ConfigMap holds 1 MiB).
pub const MAX_OPEN: usize = 64;

/// Records at most, quarantined ones included. One that failed before its stop takes 1 to 2 KiB: it knows no PGs yet.
pub const MAX_RECORDS: usize = 256;

/// What the value of our fence begins with; the record that it was put up for follows.
pub const FENCE: &str = "osd-migrate-";

/// The whole ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ledger {
    /// What concerns the run as a whole.
    pub run: Run,
    /// Open records: in flight or quarantined.
    pub records: BTreeMap<OsdId, Record>,
    /// How far each node is with its new OSDs, in the run that looked last.
    pub nodes: BTreeMap<NodeName, NodeWork>,
}

/// How far a node is with its new OSDs (in Rook's words: `computingDiff`, `orchestrating`, `completed`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeWork {
    /// Where it stands.
    pub status: NodeStatus,
    /// Since when.
    pub since: DateTime<Utc>,
    /// What there is to say, for people.
    pub message: String,
    /// The run that works on it: another run looks anew.
    pub run: String,
    /// The run that asked for its look, if it is an earlier one.
    pub inventoried_by: Option<String>,
    /// Number of its look, saved before its Job is made.
    pub inventory: u32,
    /// Looks that failed one after the other.
    pub failures: u32,
    /// Disks that became OSDs in this run, by their stable names: the look was before that.
    pub done: BTreeSet<String>,
    /// Disks that are left as they are in this run, by their stable names: they were not free after all. With what was found.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<String, String>,
    /// Directories of OSDs that were made anew elsewhere in this run, and could not be removed: by path, with why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
    /// OSDs of the node whose database can't be made on the device that is declared for it: why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub databases: BTreeMap<OsdId, String>,
    /// What stands in the way: named devices that are missing or in use, settings that can't be fulfilled.
    pub problems: Vec<String>,
}

impl NodeWork {
    /// Returns the run that asked for its look.
    pub fn inventory_run(&self) -> &str {
        self.inventoried_by.as_deref().unwrap_or(&self.run)
    }
}

/// See `NodeWork`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeStatus {
    /// Its disks are being looked at.
    ComputingDiff,
    /// Its new OSDs are being made.
    Orchestrating,
    /// Nothing is left to do.
    Completed,
}

/// By which door an OSD comes into the phase table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "kebab-case")]
pub enum Strategy {
    /// It is there: destroyed and made anew on its own disk.
    #[default]
    InPlace,
    /// It lies in a directory of the host: its id is made anew on a free device of its node, and the directory goes when the new
    /// one is clean.
    Directory {
        /// The directory, as its Deployment mounts it.
        path: String,
        /// The free device.
        onto: DeviceIdentity,
    },
    /// A free disk becomes an OSD: its id is absent, or its slot was left destroyed.
    New {
        /// CRUSH weight to begin with, where the owner declares one; else by size.
        initial_weight: Option<Weight>,
        /// Its store is a file of the node, for tests only.
        on_file: bool,
    },
}

/// What concerns the run as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Run {
    /// Records made so far; makes the ids of records unique.
    pub serial: u32,
    /// Our fence, from before it is put up until after it is taken down.
    pub fence: Option<String>,
    /// The resourceVersion of the CephCluster as it was looked at without a fence, right before ours was put up.
    pub fence_after: Option<u64>,
    /// Rook, which runs, said that it leaves such a later one alone: the fence is in force.
    pub fence_acknowledged: bool,
    /// Rook's operator as it was, from before we scale it to 0 until after it is back.
    pub operator: Option<ScaledOperator>,
    /// The one that was put back, or forgotten, last: a runner that was frozen while it scaled it may do so after that.
    pub last_operator: Option<ScaledOperator>,
    /// The OSDs' PodDisruptionBudget as it was, from before we limit it to 0 until after it is back.
    pub pdb: Option<FormerPdb>,
    /// The one that was put back last: a runner that was frozen while it limited it may do so after that.
    pub last_pdb: Option<FormerPdb>,
    /// The one that was taken down last: a runner that was frozen while it put it up may put it up again.
    pub last_fence: Option<String>,
    /// client.bootstrap-osd was not there: ours, from before it is made until after it is removed.
    pub bootstrap: bool,
    /// How far the Job got whose pods failed. None where the last save was by a Job's first pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Since when a Job waits for nothing but OSDs that their own state holds up. Reset with each OSD that is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipping: Option<Skipping>,
    /// OSDs that a Job does not begin again, as their new Deployment is not admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<Refusals>,
}

/// Since when a Job waits for nothing but OSDs that their own state holds up: a node that is cordoned or not Ready.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Skipping {
    /// uid of the Job: another one waits again.
    pub job: String,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// When a run got anywhere last, counted in pods of its Job that had failed by then.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Progress {
    /// uid of the Job.
    pub job: String,
    /// Its pods that had failed.
    pub failed_pods: u32,
    /// What was still to come back to an OSD that fills, where a pod waits for that and nothing was saved since.
    pub left_bytes: Option<u64>,
}

impl Run {
    /// Whether something in the cluster is not as it was, by us.
    pub fn restores(&self) -> bool {
        self.fence.is_some() || self.operator.is_some() || self.pdb.is_some() || self.bootstrap
    }
}

/// Rook's operator as it was before we scaled it to 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScaledOperator {
    /// namespace/name of its Deployment.
    pub name: String,
    /// Replicas that were wanted.
    pub replicas: u32,
    /// uid of its Deployment: one that was made anew since is not the one that we scaled. None in what earlier versions left behind.
    pub uid: Option<String>,
    /// Generation of its Deployment then: scaled by us, and touched by nobody since, it is one more.
    pub generation: i64,
    /// When it was saved, or when the last OSD was finished since. None in what earlier versions left behind.
    pub since: Option<DateTime<Utc>>,
}

/// The OSDs' PodDisruptionBudget before we limited it to 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FormerPdb {
    /// Its `maxUnavailable`.
    pub max_unavailable: u32,
    /// Its uid: one that was made anew since is not ours. None in what earlier versions left behind.
    pub uid: Option<String>,
    /// Its generation then: limited by us, and written by nobody since, it is one more. None in what format 3 left behind.
    pub generation: Option<i64>,
}

/// One OSD's migration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub id: RecordId,
    /// The OSD.
    pub osd: OsdId,
    /// Where it runs.
    pub node: NodeName,
    /// Why it is migrated.
    pub class: Class,
    /// By which door it came.
    pub strategy: Strategy,
    /// What it becomes.
    pub target: Layout,
    /// The device that its database is made on, where it is another. (One that has its own volume for it has that again.)
    pub db: Option<DbDevice>,
    /// The fsid before Stop.
    pub old: OsdFsid,
    /// uid of the Deployment found.
    pub deployment: String,
    /// Place in CRUSH, as it is to be in the end.
    pub crush: CrushItem,
    /// The CRUSH weight before, where another one follows the size of the device that its id is made anew on.
    pub former_weight: Option<Weight>,
    /// In-weight.
    pub reweight: Weight,
    /// Primary affinity.
    pub primary_affinity: Weight,
    /// Upmaps that name the OSD.
    pub upmaps: Vec<Upmap>,
    /// Bytes used on it.
    pub used_bytes: Option<u64>,
    /// Per-OSD flags as they were before ours, taken again with the intent to stop: (`noout`, `noin`).
    pub former_flags: (bool, bool),
    /// What proves that the device holds the OSD; from the first inspection.
    pub evidence: Option<Evidence>,
    /// PGs that the OSD served, saved right before Stop.
    pub pgs: BTreeSet<PgId>,
    /// When Stop was intended first since the record was made or its PGs changed. How long before the stop does not matter.
    pub stop_intended_at: Option<DateTime<Utc>>,
    /// Since when the OSD is seen stopped or down past its stop. None while it is up.
    pub down_since: Option<DateTime<Utc>>,
    /// Its `noout` was lifted while it was down: Ceph may heal without it. It is not set again.
    pub noout_lifted: bool,
    /// Since when a gate holds it up between the intent and the stop.
    pub blocked_since: Option<DateTime<Utc>>,
    /// When something was saved of it last. None in what earlier versions left behind.
    pub saved_at: Option<DateTime<Utc>>,
    /// Stops that were turned back, since the record was made or its OSD tried again.
    pub restarts: u32,
    /// Why the last stop was turned back; none from the moment that another is intended.
    pub stop_reverted: Option<String>,
    /// Since when the old data, its slot destroyed, may not be wiped for what is known of its PGs.
    pub wipe_blocked_since: Option<DateTime<Utc>>,
    /// The last attempt of a node agent, saved before its Job is made.
    pub attempt: Attempt,
    /// Claims reported by agents so far.
    pub issued: BTreeSet<OsdFsid>,
    /// The fsid of the new OSD, saved before it is deployed.
    pub new: Option<OsdFsid>,
    /// Since when its Deployment is left to Rook to make.
    pub left_to_rook_since: Option<DateTime<Utc>>,
    /// Of one that goes to a free disk: the epoch in which it came up, and when that was seen first.
    pub up_seen: Option<(Epoch, DateTime<Utc>)>,
    /// What was saved when, for the history: (`record`, time), (`proof`, time) ...
    pub milestones: Vec<(String, DateTime<Utc>)>,
    /// Upmaps that went with its CRUSH item, in a purge: they are to be put back once it is up. None where none were lost.
    pub lost_upmaps: Option<LostUpmaps>,
    /// A person let it be tried again after it was quarantined: restarts of its pod from before say nothing.
    pub retried: bool,
    /// The OSD is up, clean and as wanted: only cleaning up is left.
    pub closing: bool,
    /// It failed and is left alone.
    pub quarantine: Option<Quarantine>,
}

impl NodeStatus {
    /// Returns the word, which Rook writes of its nodes, too.
    pub fn word(self) -> &'static str {
        match self {
            Self::ComputingDiff => "computingDiff",
            Self::Orchestrating => "orchestrating",
            Self::Completed => "completed",
        }
    }
}

impl Record {
    /// A free disk becomes an OSD.
    pub fn is_new(&self) -> bool {
        matches!(self.strategy, Strategy::New { .. })
    }

    /// An OSD in a directory is made anew on a free disk.
    pub fn is_in_directory(&self) -> bool {
        matches!(self.strategy, Strategy::Directory { .. })
    }

    /// Returns whether its old OSD is stopped for it, or its new one exists.
    pub fn is_committed(&self) -> bool {
        self.down_since.is_some() || self.new.is_some()
    }

    /// The disk that the record holds: nothing else is made on it.
    pub fn device(&self) -> Option<&DeviceIdentity> {
        match &self.strategy {
            Strategy::Directory { onto, .. } => Some(onto),
            Strategy::InPlace | Strategy::New { .. } => {
                self.evidence.as_ref().map(|evidence| &evidence.device)
            }
        }
    }

    /// It goes to another disk: with its weight CRUSH may give other PGs to it than it had, which nobody can tell beforehand.
    pub fn gets_others(&self) -> bool {
        self.is_new() || self.is_in_directory()
    }

    /// Which of the OSD's flags (`noout`, `noin`) that are set now are ours to lift.
    pub fn flags_to_lift(&self, noout: bool, noin: bool) -> (bool, bool) {
        let (had_noout, had_noin) = self.former_flags;
        // Before Stop was intended nothing was hushed: a flag seen then is somebody else's.
        let ours = self.stop_intended_at.is_some();
        (ours && noout && !had_noout, ours && noin && !had_noin)
    }
}

/// The last attempt of a node agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number; part of the Job's name.
    pub number: u32,
    /// What it does.
    pub task: NodeTask,
    /// Attempts that failed since the first proof, or since a rebuild or restore-slot that went through.
    pub failures: u32,
}

/// How far it is with upmaps that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LostUpmaps {
    /// How often it was tried to put them back: the mons drop one at once that does not fit to CRUSH any more.
    pub tries: u32,
    /// The epoch in which the last try was intended. In a later one that shows them missing still, it was in vain, or never done.
    pub epoch: Epoch,
}

/// Why an OSD is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Quarantine {
    /// The sentence for people.
    pub why: String,
    /// Since when.
    pub since: DateTime<Utc>,
}

impl Ledger {
    /// Records that are being worked on.
    pub fn in_flight(&self) -> impl Iterator<Item = &Record> {
        self.records.values().filter(|record| record.quarantine.is_none())
    }

    /// Records that are left alone.
    pub fn quarantined(&self) -> impl Iterator<Item = &Record> {
        self.records.values().filter(|record| record.quarantine.is_some())
    }

    /// The ledger with one record put in the place of the one it has of that OSD.
    #[must_use]
    pub fn with(&self, record: Record) -> Self {
        let mut ledger = self.clone();
        ledger.records.insert(record.osd, record);
        ledger
    }

    /// The ledger without one record.
    #[must_use]
    pub fn without(&self, osd: OsdId) -> Self {
        let mut ledger = self.clone();
        ledger.records.remove(&osd);
        ledger
    }

    /// The ledger with an OSD that was left alone to be tried again; none where it was not left alone.
    pub fn retried(&self, osd: OsdId) -> Option<Self> {
        let mut record = self.records.get(&osd).filter(|record| record.quarantine.is_some())?.clone();
        record.quarantine = None;
        (record.restarts, record.stop_reverted, record.wipe_blocked_since) = (0, None, None);
        (record.blocked_since, record.retried) = (None, true);
        // A new attempt: the failed one's report must not count again.
        record.attempt = Attempt { number: record.attempt.number + 1, task: NodeTask::Inspect, failures: 0 };
        Some(self.with(record))
    }
}
