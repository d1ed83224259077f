//! History of a run: the courses of its OSDs, and entries that could not be written.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Confirmation, Courses, Entry, Observed};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::osd::OsdId;

/// Maximum number of entries that wait to be written: with 1.1 kB each they leave room in the status.
const UNWRITTEN: usize = 200;

/// History of a run, which is stored with the status and survives the pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunHistory {
    /// Courses of the OSDs.
    pub courses: Courses,
    /// Entries that could not be written: they are written with the next save.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwritten: Vec<Entry>,
    /// Confirmation of the run. A stored one is that of the last run.
    #[serde(default)]
    pub confirmation: Confirmation,
}

impl RunHistory {
    /// Takes up what the run reports at a time.
    pub fn observe(&mut self, at: DateTime<Utc>, observed: Observed<'_>) {
        self.courses.observe(at, observed, &self.confirmation);
    }

    /// Returns the entries to write with a save: that of the record that the save closes, and those that
    /// could not be written before.
    pub fn entries(&self, closed: Option<&Record>) -> Vec<Entry> {
        let mut entries = self.unwritten.clone();
        entries.extend(closed.map(|record| Entry::of(record, self.courses.of(record))));
        entries
    }

    /// Keeps entries that could not be written, and drops the oldest ones if there are too many.
    pub fn keep(&mut self, mut entries: Vec<Entry>) {
        let surplus = entries.len().saturating_sub(UNWRITTEN);
        entries.drain(..surplus);
        self.unwritten = entries;
    }

    /// Returns the entries of quarantined OSDs that are to be retried: their records will no longer say why
    /// they were quarantined.
    pub fn before_retry(&self, ledger: &Ledger, osds: &[OsdId]) -> Vec<Entry> {
        let records = ledger.quarantined().filter(|record| osds.contains(&record.osd));
        records.map(|record| Entry::of(record, self.courses.of(record))).collect()
    }
}
