//! State of the run as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::{FenceWait, LeftPvcs, Refusals};
use crate::domain::observation::Operator;
use crate::domain::osd::OsdId;
use crate::domain::recovery::RecoveryOptions;
use crate::domain::scrub::ScrubFlags;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// Prefix of the value of osd-migrate's fence, followed by the record that the fence was set for.
pub const FENCE: &str = "osd-migrate-";

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
    /// The owner ordered that fence before an edit of the CephCluster; cleared with the fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence_order: Option<FenceOrder>,
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
    /// noscrub and nodeep-scrub, as far as no other client had set them: saved before they are set, cleared
    /// after they are unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<NoScrub>,
    /// Options with which recovery is faster, as far as they had no value: saved before they are set, cleared
    /// after they are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<FastRecovery>,
    /// Progress of the Job whose pods failed. None if the last save was by a Job's first pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Since when a Job waits only for OSDs blocked by their own state. Reset when work on an OSD starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipping: Option<Skipping>,
    /// Since when a Job waits for a node on which a PVC is to become an OSD. Reset when work on an OSD
    /// starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for_node: Option<Skipping>,
    /// Time that Rook has had to acknowledge the fences of a Job. None once it has acknowledged one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence_wait: Option<FenceWait>,
    /// Since when a Job waits for the gate of all restarts for taints. Reset when work on an OSD starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_to_restart: Option<Skipping>,
    /// OSDs that a Job does not start again because their new Deployment is not admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<Refusals>,
    /// PVCs on which a Job creates no OSD, because their devices are not blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_pvcs: Option<LeftPvcs>,
    /// OSDs that a Job made unencrypted while Rook rotates keys: Rook leaves the CronJobs of their rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unencrypted: Option<OfJob>,
    /// OSDs that a Job removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<OfJob>,
    /// Kinds of migration that a Job has tried with one OSD, before it migrates several in parallel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
}

/// Kinds of migration that a Job has tried with one OSD.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tried {
    /// uid of the Job. Another Job tries again.
    pub job: String,
    /// By kind: when the first OSD of the kind was finished.
    pub kinds: BTreeMap<String, DateTime<Utc>>,
    /// By kind: the OSD that was finished then. Missing in data of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub osds: BTreeMap<String, OsdId>,
}

/// Flags `noscrub` and `nodeep-scrub` that are osd-migrate's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NoScrub {
    /// Those that no other client had set, and none has unset since.
    #[serde(flatten)]
    pub flags: ScrubFlags,
    /// They were observed as set. One that is missing after that was unset by another client.
    pub seen: bool,
}

/// Options of Ceph about recovery that are osd-migrate's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FastRecovery {
    /// Those that had no value, with the value that they get, and that no other client has changed since.
    pub options: RecoveryOptions,
    /// They were observed as set. One that is missing after that was removed by another client.
    pub seen: bool,
}

/// OSDs that a Job has finished.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OfJob {
    /// uid of the Job. Another Job reports only its own OSDs.
    pub job: String,
    /// The OSDs.
    pub osds: BTreeSet<OsdId>,
}

impl OfJob {
    /// Returns the OSDs of a Job.
    fn by(noted: Option<&Self>, job: &str) -> BTreeSet<OsdId> {
        noted.filter(|noted| noted.job == job).map(|noted| noted.osds.clone()).unwrap_or_default()
    }

    /// Returns the OSDs of a Job with one more.
    fn with(noted: Option<&Self>, osd: OsdId, job: &str) -> Self {
        let mut osds = Self::by(noted, job);
        osds.insert(osd);
        Self { job: job.to_owned(), osds }
    }
}

impl Run {
    /// Notes an OSD that a Job made unencrypted.
    pub fn note_unencrypted(&mut self, osd: OsdId, job: &str) {
        self.unencrypted = Some(OfJob::with(self.unencrypted.as_ref(), osd, job));
    }

    /// Returns the OSDs that a Job made unencrypted.
    pub fn unencrypted_by(&self, job: &str) -> BTreeSet<OsdId> {
        OfJob::by(self.unencrypted.as_ref(), job)
    }

    /// Notes an OSD that a Job removed.
    pub fn note_removed(&mut self, osd: OsdId, job: &str) {
        self.removed = Some(OfJob::with(self.removed.as_ref(), osd, job));
    }

    /// Notes an OSD that a Job finished as the one with which its kind is tried.
    pub fn note_tried(&mut self, kind: String, osd: OsdId, job: &str, at: DateTime<Utc>) {
        let known = self.tried.take().filter(|tried| tried.job == job);
        let mut tried = known.unwrap_or_else(|| Tried {
            job: job.to_owned(),
            kinds: BTreeMap::new(),
            osds: BTreeMap::new(),
        });
        tried.osds.insert(kind.clone(), osd);
        tried.kinds.insert(kind, at);
        self.tried = Some(tried);
    }

    /// Returns when a Job tried a kind, and with which OSD, if that is known; `None` if it has not tried it.
    pub fn tried_by(&self, job: &str, kind: &str) -> Option<(DateTime<Utc>, Option<OsdId>)> {
        let tried = self.tried.as_ref().filter(|tried| tried.job == job)?;
        Some((*tried.kinds.get(kind)?, tried.osds.get(kind).copied()))
    }

    /// Returns the OSDs that a Job removed.
    pub fn removed_by(&self, job: &str) -> BTreeSet<OsdId> {
        OfJob::by(self.removed.as_ref(), job)
    }
}

/// Order of the owner to fence the CephCluster before an edit of it (`osd-migrate fence`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FenceOrder {
    /// When the owner ordered the fence.
    pub since: DateTime<Utc>,
    /// Hash of what the CephCluster declared about the shape of OSDs then: the edit came when it differs.
    pub declared: String,
}

/// Since when a Job waits only for OSDs blocked by their own state: the node is cordoned or not Ready.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Skipping {
    /// uid of the Job. Another Job waits again.
    pub job: String,
    /// Since when it waits, later by the time for which a pause or a closed window held the run.
    pub since: DateTime<Utc>,
    /// When the run was held. None while it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_at: Option<DateTime<Utc>>,
}

impl Skipping {
    /// Returns the wait of a run that is held, or no longer held.
    #[must_use]
    pub fn held(&self, is_held: bool, at: DateTime<Utc>) -> Self {
        let lasted = self.held_at.map_or_else(TimeDelta::zero, |held_at| at - held_at);
        Self { since: self.since + lasted, held_at: is_held.then_some(at), job: self.job.clone() }
    }
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
    /// Returns what a Job refuses; `None` if it has refused nothing.
    pub fn refusals_of(&self, job: &str) -> Option<&Refusals> {
        self.refusals.as_ref().filter(|known| known.job == job)
    }

    /// Notes that a fence is set, or about to be set, that Rook has yet to acknowledge.
    pub fn note_fence(&mut self, job: &str, at: DateTime<Utc>) {
        self.fence_wait = Some(FenceWait::noted(self.fence_wait.take(), job, at));
    }

    /// Notes that the fence is removed: Rook has nothing to acknowledge from now on.
    pub fn note_unfenced(&mut self, at: DateTime<Utc>) {
        if let Some(wait) = &mut self.fence_wait {
            wait.note_removed(at);
        }
    }

    /// Notes that Rook has acknowledged a fence, or that it need not do so any more.
    pub fn forget_that_rook_hangs(&mut self) {
        self.fence_wait = None;
        if let Some(refusals) = &mut self.refusals {
            (refusals.rook_hangs, refusals.unfenced) = (false, 0);
        }
    }

    /// Returns whether osd-migrate changed something in the cluster that it has to restore.
    pub fn restores(&self) -> bool {
        let is_rook_changed = self.fence.is_some() || self.operator.is_some() || self.pdb.is_some();
        is_rook_changed || self.bootstrap || self.scrub.is_some() || self.recovery.is_some()
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
    /// uid of the Job that scaled it. None in data of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// It is scaled back from now on: the next one that scales it up is osd-migrate. Missing if it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restoring: bool,
}

impl ScaledOperator {
    /// Returns whether an operator is this one, and was not recreated.
    pub fn is(&self, found: &Operator) -> bool {
        self.uid.as_ref().is_none_or(|uid| *uid == found.uid)
    }
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
