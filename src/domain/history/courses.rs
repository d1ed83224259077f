//! How the courses of all OSDs grow with what a run reports.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{Confirmation, Course};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::next::{Saving, Wait};
use crate::domain::osd::OsdId;

/// Code of the time in which no run was at work: its pod had ended, and the next one had not started.
pub const NO_RUN: &str = "no-run";

/// Maximum number of OSDs without a record that are kept: a run asks a few OSDs whether it may begin.
const WITHOUT_RECORD: usize = 32;

/// Report of a run, as far as the history needs it.
#[derive(Debug, Clone)]
pub enum Observed<'a> {
    /// The run waits: for the first of these, and OSDs in progress for the others.
    Waits(Vec<Wait>, &'a Ledger),
    /// The ledger was saved.
    Saved(Option<OsdId>, &'a Saving, &'a Ledger),
    /// The run did something else, or tried to.
    Else,
}

/// Courses of the OSDs that a run works on, or waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Courses {
    /// Course by OSD.
    #[serde(default)]
    osds: BTreeMap<OsdId, Course>,
    /// Waits in progress: the code of each, and the OSD that it concerns; none if it concerns all.
    #[serde(default)]
    waiting: Vec<(String, Option<OsdId>)>,
    /// Time of the last event.
    #[serde(default)]
    at: Option<DateTime<Utc>>,
    /// Whether this process has observed an event.
    #[serde(skip)]
    has_begun: bool,
    /// Time since the last event of the former process.
    #[serde(skip)]
    gap: Option<TimeDelta>,
}

impl Courses {
    /// Returns the course of an OSD; an empty one if nothing is known.
    pub fn of(&self, record: &Record) -> Course {
        let known = self.osds.get(&record.osd).filter(|course| course.record.as_ref() == Some(&record.id));
        known.cloned().unwrap_or_default()
    }

    /// Takes up what a run with a confirmation reports at a time.
    pub fn observe(&mut self, at: DateTime<Utc>, observed: Observed<'_>, confirmation: &Confirmation) {
        self.pass(at);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        match observed {
            Observed::Waits(waits, ledger) => {
                self.follow(ledger, confirmation, is_first);
                self.waiting.clear();
                for wait in &waits {
                    self.waits(wait);
                }
            }
            Observed::Saved(osd, why, ledger) => {
                // A new record continues the waits before it, so it is known before the others.
                self.follow(ledger, confirmation, is_first);
                if let Some(course) = osd.and_then(|osd| self.osds.get_mut(&osd)) {
                    note(course, at, why);
                }
                self.waiting.clear();
            }
            Observed::Else => {
                self.waiting.clear();
                // A later event has the ledger that names the OSDs in progress.
                self.has_begun = !is_first;
            }
        }
    }

    /// Counts the time since the last event.
    fn pass(&mut self, at: DateTime<Utc>) {
        let time = self.at.map_or(TimeDelta::zero(), |before| at - before);
        self.at = Some(at);
        if !self.has_begun {
            // A wait of the former process did not end with that process, but its duration is not known.
            self.waiting.clear();
            self.gap = Some(self.gap.unwrap_or_default() + time);
            return;
        }
        for (code, osd) in &self.waiting {
            let is_meant = |of: &OsdId, course: &Course| match osd {
                Some(osd) => of == osd && (course.record.is_none() || course.is_open),
                None => course.is_open,
            };
            let meant = self.osds.iter_mut().filter(|(of, course)| is_meant(of, course));
            meant.for_each(|(_, course)| course.waited(code, time));
        }
    }

    /// Adds records that are new, and forgets those that are closed.
    ///
    /// The time without a run counts for those that were in progress.
    fn follow(&mut self, ledger: &Ledger, confirmation: &Confirmation, is_first: bool) {
        self.osds.retain(|osd, course| {
            course.record.is_none()
                || ledger.records.get(osd).is_some_and(|record| course.record.as_ref() == Some(&record.id))
        });
        for record in ledger.records.values() {
            let course = self.osds.entry(record.osd).or_default();
            let is_new = course.record.is_none();
            // After the closing, only the cleanup is left, and nothing waits for it.
            course.is_open = record.quarantine.is_none() && !record.closing;
            if is_new {
                course.record = Some(record.id.clone());
                course.confirmation = Some(confirmation.clone());
            } else if let Some(gap) = self.gap.filter(|_| course.is_open) {
                course.waited(NO_RUN, gap);
            }
            if course.is_open && (is_new || is_first) {
                course.is_taken_up_by(&confirmation.job);
            }
        }
        self.gap = None;
        let surplus = self.osds.values().filter(|course| course.record.is_none()).count();
        let mut surplus = surplus.saturating_sub(WITHOUT_RECORD);
        self.osds.retain(|_, course| {
            let drops = surplus > 0 && course.record.is_none();
            surplus -= usize::from(drops);
            !drops
        });
    }

    fn waits(&mut self, wait: &Wait) {
        if let Wait::ActiveClean { osd, bytes, .. } = wait
            && let Some(course) = self.osds.get_mut(osd)
        {
            course.backfills(*bytes);
        }
        if let Some(osd) = wait.osd() {
            self.osds.entry(osd).or_default();
        }
        self.waiting.push((wait.code().to_owned(), wait.osd()));
    }
}

/// Notes the reason of a save that is not part of the usual course.
#[expect(clippy::wildcard_enum_match_arm, reason = "few saves are notes")]
fn note(course: &mut Course, at: DateTime<Utc>, why: &Saving) {
    match why {
        Saving::Quarantine { why: text }
        | Saving::RevertStop { why: text }
        | Saving::NotAdmitted { why: text }
        | Saving::NotEmptied { why: text }
        | Saving::Uncleared { why: text, .. }
        | Saving::Attempt { after: Some(text), .. } => course.note(at, why.code(), text),
        Saving::Closing => course.left_bytes = 0,
        _ => {}
    }
}
