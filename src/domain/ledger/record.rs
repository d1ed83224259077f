//! Record of one OSD's migration.

use super::emptying::Emptying;
use super::recorded_pvc::RecordedPvc;
use crate::domain::classify::Class;
use crate::domain::inspection::{Evidence, NodeTask, RecordId};
use crate::domain::observation::{Slot, SlotState};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{
    CrushItem, DbDevice, DeviceIdentity, Epoch, Layout, NodeName, OsdFsid, OsdId, PgId, Upmap, Weight,
};
use crate::domain::removal::Removal;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
    /// An OSD is emptied, destroyed and purged.
    Removal(Removal),
}

/// Number of milestones before the last one: a migration has some 20, and a reverted stop ten more.
const MOST_MILESTONES: usize = 100;

/// Why the disk of a dead OSD is left as it is.
const LEFT_BY_DEAD: &str = "the OSD was down, so its disk was not read. If the disk is used again, make it blank first: \
                            ceph-volume lvm zap DEVICE, on its node in Ceph's image";

/// Why the directory of a dead OSD is left as it is.
const DIRECTORY_LEFT_BY_DEAD: &str =
    "the OSD was down, so its directory was not read. Delete it by hand if nothing in it is needed";

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
    /// PVCs that the OSD gets: the one that it is on, and those for database and log.
    ///
    /// `None` if the OSD is on a disk of its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvcs: Option<PerPvc<RecordedPvc>>,
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
    /// Emptying before the stop. `None` if the OSD is stopped with its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<Emptying>,
    /// PGs that the OSD served, saved right before Stop.
    pub pgs: BTreeSet<PgId>,
    /// Time of the first intent to stop since the record was created or its PGs changed, however long ago.
    pub stop_intended_at: Option<DateTime<Utc>>,
    /// Since when the OSD is observed as stopped, or as down after its stop. None while it is up.
    pub down_since: Option<DateTime<Utc>>,
    /// Its `noout` was lifted while it was down: Ceph may heal without it. The flag is not set again.
    pub noout_lifted: bool,
    /// Since when a gate blocks the stop of the OSD, or, once it is up and marked out, its end.
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
    /// Epoch in which the new OSD came up, and time of the first observation of it.
    pub up_seen: Option<(Epoch, DateTime<Utc>)>,
    /// History of saves: (`record`, time), (`proof`, time) ...
    pub milestones: Vec<(String, DateTime<Utc>)>,
    /// Upmaps lost by a purge with the CRUSH item, to restore when the OSD is up. None if none were lost.
    pub lost_upmaps: Option<LostUpmaps>,
    /// A person had it retried after a quarantine: earlier restarts of its pod do not count.
    pub retried: bool,
    /// Restarts of its pod when the OSD first came up after that: only more than these count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_restarts: Option<u32>,
    /// The OSD is up, clean and as wanted: only the cleanup is left.
    pub closing: bool,
    /// The OSD failed and is quarantined.
    pub quarantine: Option<Quarantine>,
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

    /// Returns how the OSD is removed; `None` if it is not.
    pub fn removal(&self) -> Option<&Removal> {
        match &self.strategy {
            Strategy::Removal(removal) => Some(removal),
            Strategy::InPlace | Strategy::Directory { .. } | Strategy::New { .. } => None,
        }
    }

    /// Returns whether the record removes an OSD together with all others of this node.
    pub fn leaves_with(&self, node: &NodeName) -> bool {
        self.node == *node && self.removal().is_some_and(|removal| removal.whole_node)
    }

    /// Returns whether the record removes an OSD.
    pub fn is_removal(&self) -> bool {
        self.removal().is_some()
    }

    /// Returns whether the record removes an OSD that was down when it was recorded.
    pub fn is_of_dead(&self) -> bool {
        self.removal().is_some_and(|removal| removal.dead)
    }

    /// Returns the fsid by which the dead OSD in the slot is removed; `None` if it is up, or another one.
    ///
    /// It is the old OSD, which was perhaps destroyed for the record, or the new one.
    pub fn dead_in(&self, slot: &Slot) -> Option<OsdFsid> {
        let is_old = |fsid: OsdFsid| !self.is_new() && fsid == self.old;
        let is_its = |fsid: &OsdFsid| is_old(*fsid) || self.is_registered_as(*fsid);
        match slot.fsid {
            _ if slot.up => None,
            Some(fsid) => Some(fsid).filter(is_its),
            None if slot.state == SlotState::Destroyed && !self.is_new() && self.is_committed() => {
                Some(self.old)
            }
            None => None,
        }
    }

    /// Returns whether the fsid is that of the new OSD, or one that an agent issued for it.
    pub fn is_registered_as(&self, fsid: OsdFsid) -> bool {
        self.new == Some(fsid) || self.issued.contains(&fsid)
    }

    /// Notes what was reached, at the time of the save.
    ///
    /// A repeated milestone replaces the last one: waiting for a lock must not make the record grow.
    pub fn note_milestone(&mut self, code: &str, at: DateTime<Utc>) {
        self.saved_at = Some(at);
        self.milestones.pop_if(|(last, _)| last == code);
        // An OSD that flaps for days must not fill the ledger.
        self.milestones.truncate(MOST_MILESTONES);
        self.milestones.push((code.to_owned(), at));
    }

    /// Notes that an OSD that was emptied gets data again: if a person takes it out later, it stays out.
    pub fn note_in(&mut self) {
        if let Some(empty) = &mut self.empty {
            empty.intended_at = None;
        }
    }

    /// Notes the restarts of the pod of an OSD that came up, if it is the first time after a `retry`.
    pub fn note_restarts(&mut self, restarts: u32) {
        if self.retried {
            self.pod_restarts.get_or_insert(restarts);
        }
    }

    /// Notes that the OSD that is removed is dead, and its data on other OSDs: its disk is left as it is.
    pub fn note_dead(&mut self, at: DateTime<Utc>) {
        if let Strategy::Removal(removal) = &mut self.strategy {
            let left = if removal.directory.is_some() { DIRECTORY_LEFT_BY_DEAD } else { LEFT_BY_DEAD };
            (removal.dead, removal.left) = (true, Some(left.to_owned()));
        }
        let empty = self.empty.get_or_insert_default();
        empty.intended_at.get_or_insert(at);
        empty.out_since.get_or_insert(at);
        (empty.least, empty.emptied_at, empty.went_down_at) = (Some((0, at)), Some(at), None);
    }

    /// Returns whether no data is placed on the OSD any more, by the way in which the record empties it:
    /// CRUSH weight 0 before a removal, so that the purge moves nothing, otherwise `out`.
    pub fn is_dropped(&self, slot: &Slot) -> bool {
        match self.removal() {
            Some(Removal { dead: true, .. }) => !slot.gets_data(),
            Some(Removal { dead: false, .. }) => !slot.has_weight(),
            None => !slot.is_in,
        }
    }

    /// Returns whether the old OSD is stopped for the record, or the new OSD exists.
    pub fn is_committed(&self) -> bool {
        self.down_since.is_some() || self.new.is_some()
    }

    /// Returns the directory of an OSD that is removed; `None` if it is on a disk, or not removed.
    pub fn removed_directory(&self) -> Option<&String> {
        self.removal().and_then(|removal| removal.directory.as_ref())
    }

    /// Returns the disk that the record reserves: no other OSD is created on it.
    pub fn device(&self) -> Option<&DeviceIdentity> {
        match &self.strategy {
            Strategy::Directory { onto, .. } => Some(onto),
            Strategy::Removal(Removal { directory: Some(_), .. }) => None,
            Strategy::InPlace | Strategy::New { .. } | Strategy::Removal(_) => {
                self.evidence.as_ref().map(|evidence| &evidence.device)
            }
        }
    }

    /// Returns whether the OSD moves to another disk: CRUSH may then move unpredictable other PGs to it.
    pub fn gets_others(&self) -> bool {
        self.is_new() || self.is_in_directory()
    }

    /// Returns whether it is unknown beforehand which PGs the new OSD gets: it is on another disk, or the old
    /// one was emptied.
    pub fn gets_any_pgs(&self) -> bool {
        self.gets_others() || self.empty.is_some()
    }

    /// Returns the PGs that the OSD held before its data was moved away or its daemon stopped.
    pub fn held_pgs(&self) -> &BTreeSet<PgId> {
        self.empty.as_ref().map_or(&self.pgs, |empty| &empty.pgs)
    }

    /// Returns whether osd-migrate may have marked the OSD out, or set its CRUSH weight to 0.
    pub fn is_marked_out(&self) -> bool {
        self.empty.as_ref().is_some_and(Emptying::is_intended)
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
    /// Why the attempt before did not start: its Job is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_started: Option<String>,
}

impl Attempt {
    /// Returns the attempt of this number to inspect the device, without failures.
    pub fn inspect(number: u32) -> Self {
        Self { number, task: NodeTask::Inspect, failures: 0, not_started: None }
    }
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
