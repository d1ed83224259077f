//! Entry of one OSD in the history.

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

use super::{Confirmation, Course, Note};
use crate::domain::classify::Class;
use crate::domain::inspection::RecordId;
use crate::domain::ledger::{Record, Strategy};
use crate::domain::osd::{DeviceIdentity, Layout, NodeName, OsdFsid, OsdId};

/// Outcome of a migration.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Outcome {
    /// The OSD was recreated as declared, with the same id.
    Migrated,
    /// An available disk became an OSD.
    Created,
    /// The OSD was removed on request.
    Removed,
    /// The OSD failed and was quarantined.
    Quarantined,
    /// The record was given up before the OSD was stopped.
    Withdrawn,
    /// A run works on the OSD.
    InProgress,
}

impl Outcome {
    /// Returns the name of the outcome.
    pub fn code(self) -> &'static str {
        self.into()
    }

    /// Returns the outcome that a milestone stands for; none if the migration goes on after it.
    fn at(milestone: &str, is_new: bool) -> Option<Self> {
        match milestone {
            "closing" | "uncleared" if is_new => Some(Self::Created),
            "closing" | "uncleared" => Some(Self::Migrated),
            "removed" => Some(Self::Removed),
            "withdrawn" | "not-admitted" | "not-emptied" | "purged-externally" => Some(Self::Withdrawn),
            "quarantine" => Some(Self::Quarantined),
            _ => None,
        }
    }

    fn of(record: &Record) -> Self {
        if record.quarantine.is_some() {
            return Self::Quarantined;
        }
        let codes = record.milestones.iter().rev().map(|(code, _)| code.as_str());
        let mut ends = codes.filter(|_| record.closing).filter_map(|code| Self::at(code, record.is_new()));
        let end = ends.find(|end| *end != Self::Quarantined);
        end.unwrap_or(Self::InProgress)
    }
}

/// Identity of an entry: one record has one for each attempt after a quarantine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The OSD.
    pub osd: OsdId,
    /// Name of the record.
    pub id: RecordId,
    /// Number of the last attempt of a node agent.
    pub attempt: u32,
}

/// Disk of an OSD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Stable name.
    pub name: String,
    /// Serial number, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
}

impl From<&DeviceIdentity> for Disk {
    fn from(device: &DeviceIdentity) -> Self {
        Self { name: device.stable_name(), serial: device.serial.clone(), size_bytes: device.size_bytes }
    }
}

/// Entry of one OSD.
///
/// It takes about 1.1 kB: PGs, upmaps and proofs, which only a run needs, are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Identity of the entry.
    #[serde(flatten)]
    pub key: Key,
    /// Outcome of the migration.
    pub outcome: Outcome,
    /// Why the OSD was quarantined or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Node of the OSD.
    pub node: NodeName,
    /// Reason for the migration.
    pub class: Class,
    /// Layout that the OSD got.
    pub target: Layout,
    /// The OSD was removed, or is being removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removal: bool,
    /// Directory that the OSD was in before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Disk of the OSD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    /// Device of its database, if it is a separate one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The fsid before. None if an available disk became an OSD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<OsdFsid>,
    /// The fsid of the new OSD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<OsdFsid>,
    /// Bytes used on the OSD before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Bytes that moved away from the OSD before its stop. None if it was stopped with its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emptied_bytes: Option<u64>,
    /// Bytes that backfill moved onto the OSD.
    #[serde(default)]
    pub moved_bytes: u64,
    /// Number of reverted stops.
    #[serde(default)]
    pub restarts: u32,
    /// Saves of the record: (`record`, time), (`proof`, time) ...
    pub milestones: Vec<(String, DateTime<Utc>)>,
    /// Seconds of each wait since the record was created, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, i64>,
    /// Seconds of each wait before the record was created, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits_before: BTreeMap<String, i64>,
    /// Reasons of failures and of stops that were reverted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Confirmation of the run that began with the OSD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// Jobs that worked on the OSD.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<String>,
    /// Number of pods that worked on the OSD.
    #[serde(default)]
    pub pods: u32,
}

impl Entry {
    /// Returns whether the OSD was removed, or is being removed: lines of earlier versions say so only by
    /// their outcome.
    pub fn is_removal(&self) -> bool {
        self.removal || self.outcome == Outcome::Removed
    }

    /// Creates the entry of a record, with what was observed about it.
    pub fn of(record: &Record, course: Course) -> Self {
        let moved_bytes = course.moved_bytes();
        let directory = match &record.strategy {
            Strategy::Directory { path, .. } => Some(path.clone()),
            Strategy::Removal(removal) => removal.directory.clone(),
            Strategy::InPlace | Strategy::New { .. } => None,
        };
        let outcome = Outcome::of(record);
        let last_note = course.notes.last().map(|note| note.why.clone());
        let why = match outcome {
            Outcome::Quarantined => record.quarantine.as_ref().map(|quarantine| quarantine.why.clone()),
            Outcome::Withdrawn => last_note,
            Outcome::Removed => record.removal().and_then(|removal| removal.left.clone()),
            Outcome::Migrated | Outcome::Created | Outcome::InProgress => None,
        };
        Self {
            key: Key { osd: record.osd, id: record.id.clone(), attempt: record.attempt.number },
            outcome,
            why,
            node: record.node.clone(),
            class: record.class.clone(),
            target: record.target.clone(),
            removal: record.removal().is_some(),
            directory,
            disk: record.device().map(Disk::from),
            database: record.db.as_ref().map(|db| db.identity.stable_name()),
            old: (!record.is_new()).then_some(record.old),
            new: record.new,
            used_bytes: record.used_bytes,
            emptied_bytes: record
                .empty
                .as_ref()
                .filter(|empty| empty.emptied_at.is_some())
                .map(|empty| empty.bytes),
            moved_bytes,
            restarts: record.restarts,
            milestones: shortened(&record.milestones),
            waits: whole(&course.waits),
            waits_before: whole(&course.waits_before),
            notes: course
                .notes
                .into_iter()
                .map(|note| Note { at: note.at.trunc_subsecs(0), ..note })
                .collect(),
            confirmation: course.confirmation,
            jobs: course.jobs,
            pods: course.pods,
        }
    }

    /// Returns the bytes that were moved, away from the OSD and onto it.
    pub fn all_moved_bytes(&self) -> u64 {
        self.moved_bytes.saturating_add(self.emptied_bytes.unwrap_or(0))
    }

    /// Returns when the record was created.
    pub fn began_at(&self) -> Option<DateTime<Utc>> {
        self.milestones.first().map(|(_, at)| *at)
    }

    /// Returns when the OSD was done, or given up; none if it is not.
    pub fn ended_at(&self) -> Option<DateTime<Utc>> {
        let mut ends = self.milestones.iter().rev().filter(|_| self.outcome != Outcome::InProgress);
        ends.find(|(code, _)| Outcome::at(code, false).is_some()).map(|(_, at)| *at)
    }
}

/// Returns times to the millisecond: those of the ledger take a third more.
fn shortened(milestones: &[(String, DateTime<Utc>)]) -> Vec<(String, DateTime<Utc>)> {
    milestones.iter().map(|(code, at)| (code.clone(), at.trunc_subsecs(3))).collect()
}

/// Returns waits in seconds, without those of less than half a second.
fn whole(waits: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let seconds = waits.iter().map(|(code, millis)| (code.clone(), (millis + 500) / 1000));
    seconds.filter(|(_, seconds)| *seconds > 0).collect()
}
