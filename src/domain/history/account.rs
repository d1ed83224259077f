//! All entries together, each OSD once, with sums.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::{Confirmation, Courses, Entry, Key, Outcome, Span, spans};
use crate::domain::inspection::RecordId;
use crate::domain::ledger::Ledger;
use crate::domain::osd::OsdId;

/// One migration of one OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Last entry.
    pub entry: Entry,
    /// Entries before, each of a quarantine after which the OSD was retried.
    pub earlier: Vec<Entry>,
    /// Stages with their times.
    pub spans: Vec<Span>,
    /// Time from the record to the end, or until now.
    pub took: TimeDelta,
}

/// Sums over all rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sums {
    /// Number of OSDs by outcome.
    pub outcomes: BTreeMap<Outcome, usize>,
    /// Bytes that were moved.
    pub moved_bytes: u64,
    /// Seconds of each wait, by code.
    pub waits: BTreeMap<String, i64>,
    /// Time of the first record, and of the last end.
    pub period: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// A confirmation, and the OSDs that a run began with under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    /// The confirmation; none if it is not known.
    pub confirmation: Option<Confirmation>,
    /// The OSDs.
    pub osds: BTreeSet<OsdId>,
    /// Time of the first record.
    pub began_at: Option<DateTime<Utc>>,
}

/// Account of all migrations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// Migrations in the order in which they began.
    pub rows: Vec<Row>,
}

impl Account {
    /// Creates the account of the history, and of the records that are still in the ledger.
    ///
    /// A record that is in the history and in the ledger is about to be closed: it counts once.
    pub fn of(history: Vec<Entry>, ledger: &Ledger, courses: &Courses, now: DateTime<Utc>) -> Self {
        let open = ledger.records.values().map(|record| Entry::of(record, courses.of(record)));
        let mut by_key: BTreeMap<Key, Entry> = BTreeMap::new();
        for entry in history.into_iter().chain(open) {
            by_key.entry(entry.key.clone()).or_insert(entry);
        }
        let mut by_record: BTreeMap<(OsdId, RecordId), Vec<Entry>> = BTreeMap::new();
        for (key, entry) in by_key {
            by_record.entry((key.osd, key.id)).or_default().push(entry);
        }
        let mut rows: Vec<Row> =
            by_record.into_values().filter_map(|entries| Row::of(entries, now)).collect();
        rows.sort_by_key(|row| (row.entry.began_at(), row.entry.key.osd));
        Self { rows }
    }

    /// Returns the sums.
    pub fn sums(&self, now: DateTime<Utc>) -> Sums {
        let mut sums = Sums::default();
        for Row { entry, .. } in &self.rows {
            *sums.outcomes.entry(entry.outcome).or_default() += 1;
            sums.moved_bytes = sums.moved_bytes.saturating_add(entry.all_moved_bytes());
            for (code, seconds) in &entry.waits {
                *sums.waits.entry(code.clone()).or_default() += seconds;
            }
            let Some(began) = entry.began_at() else { continue };
            let ended = entry.ended_at().unwrap_or(now);
            let (first, last) = sums.period.unwrap_or((began, ended));
            sums.period = Some((first.min(began), last.max(ended)));
        }
        sums
    }

    /// Returns the confirmations in the order in which runs began with them.
    pub fn confirmations(&self) -> Vec<Confirmed> {
        let mut found: Vec<Confirmed> = Vec::new();
        for Row { entry, .. } in &self.rows {
            let known = found.iter_mut().find(|known| known.confirmation == entry.confirmation);
            if let Some(known) = known {
                known.osds.insert(entry.key.osd);
                continue;
            }
            found.push(Confirmed {
                confirmation: entry.confirmation.clone(),
                osds: [entry.key.osd].into(),
                began_at: entry.began_at(),
            });
        }
        found
    }
}

impl Row {
    /// Creates the row of the entries of one record, the last of which counts.
    fn of(mut entries: Vec<Entry>, now: DateTime<Utc>) -> Option<Self> {
        let entry = entries.pop()?;
        let spans = spans(&entry, now);
        let end = entry.ended_at().unwrap_or(now);
        let took = entry.began_at().map_or(TimeDelta::zero(), |began| end - began);
        Some(Self { entry, earlier: entries, spans, took })
    }
}
