//! History of a run, from its events: the courses of its OSDs, and entries that could not be written.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::history::{Confirmation, Courses, Entry, Observed};
use crate::domain::ledger::Record;
use crate::report::Event;

/// History of a run, kept up to date with its events. It is stored with the status, and survives the pod.
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
    /// Takes up an event.
    pub fn add(&mut self, event: &Event<'_>, now: DateTime<Utc>) {
        let observed = match event {
            Event::Waiting { wait, ledger, .. } => Observed::Waits(wait, ledger),
            Event::Saved { osd, why, ledger } => Observed::Saved(*osd, why, ledger),
            Event::Conflict
            | Event::Done(_)
            | Event::NotDone { .. }
            | Event::Blind(_)
            | Event::Lease(_)
            | Event::Finished(_)
            | Event::Halted(_) => Observed::Else,
        };
        self.courses.observe(now, observed, &self.confirmation);
    }

    /// Returns the entries to write with a save: that of the record that the save closes, and those that could
    /// not be written before.
    pub fn entries(&self, closed: Option<&Record>) -> Vec<Entry> {
        let mut entries = self.unwritten.clone();
        entries.extend(closed.map(|record| Entry::of(record, self.courses.of(record))));
        entries
    }
}

/// Returns the warning about entries of the history that could not be written.
pub fn history_not_written(entries: &[Entry], why: &dyn std::fmt::Display) -> String {
    let osds: Vec<String> = entries.iter().map(|entry| entry.key.osd.to_string()).collect();
    format!(
        "the history of {} could not be written, and nothing waits for it: {why} [history-not-written]",
        osds.join(", ")
    )
}
