//! Observations about one OSD while a run works on it.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::Confirmation;
use crate::domain::inspection::RecordId;

/// Maximum number of notes: a course is stored with the status, together with up to 63 others.
const NOTES: usize = 6;

/// Maximum characters of a note.
const TEXT: usize = 300;

/// Maximum number of Jobs that are listed.
const JOBS: usize = 8;

/// Observations about one OSD, in addition to its record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Course {
    /// Record of the OSD; none as long as the run waits to begin with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordId>,
    /// Whether a run has to work on the OSD: it is neither done nor quarantined.
    #[serde(default)]
    pub is_open: bool,
    /// Confirmation of the run that began with the OSD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// Jobs that worked on the OSD.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<String>,
    /// Number of pods that worked on the OSD.
    #[serde(default)]
    pub pods: u32,
    /// Milliseconds of each wait since the record was created, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, i64>,
    /// Milliseconds of each wait before the record was created, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits_before: BTreeMap<String, i64>,
    /// The most bytes that were left to backfill.
    #[serde(default)]
    pub most_bytes: u64,
    /// Bytes that are left to backfill.
    #[serde(default)]
    pub left_bytes: u64,
    /// Reasons of failures and of stops that were reverted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A remarkable event, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Time of the event.
    pub at: DateTime<Utc>,
    /// Code of the event.
    pub code: String,
    /// Reason.
    pub why: String,
}

impl Course {
    /// Adds the time of a wait.
    pub(super) fn waited(&mut self, code: &str, time: TimeDelta) {
        let waits = if self.record.is_some() { &mut self.waits } else { &mut self.waits_before };
        *waits.entry(code.to_owned()).or_default() += time.num_milliseconds().max(0);
    }

    /// Takes up how many bytes a backfill has left.
    pub(super) fn backfills(&mut self, left_bytes: u64) {
        self.most_bytes = self.most_bytes.max(left_bytes);
        self.left_bytes = left_bytes;
    }

    /// Adds a note, and drops the oldest one if there are too many.
    pub(super) fn note(&mut self, at: DateTime<Utc>, code: &str, why: &str) {
        let why = why.chars().take(TEXT).collect();
        self.notes.push(Note { at, code: code.to_owned(), why });
        let surplus = self.notes.len().saturating_sub(NOTES);
        self.notes.drain(..surplus);
    }

    /// Adds a pod of a Job that works on the OSD.
    pub(super) fn is_taken_up_by(&mut self, job: &str) {
        self.pods = self.pods.saturating_add(1);
        if self.jobs.last().is_none_or(|last| last != job) && self.jobs.len() < JOBS {
            self.jobs.push(job.to_owned());
        }
    }

    /// Returns the bytes that were moved onto the OSD.
    pub fn moved_bytes(&self) -> u64 {
        self.most_bytes.saturating_sub(self.left_bytes)
    }
}
