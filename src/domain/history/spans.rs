//! Phases of an OSD with their times, from the milestones of its record.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Entry, Outcome};
use crate::domain::pace;
use crate::domain::stage::{Stage, passed};

/// Time that an OSD spent in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The stage.
    pub stage: Stage,
    /// Begin.
    pub from: DateTime<Utc>,
    /// End.
    pub to: DateTime<Utc>,
}

impl Span {
    /// Returns how long it lasted.
    pub fn time(&self) -> TimeDelta {
        self.to - self.from
    }
}

/// Returns the stages of an OSD in their order.
///
/// The last one ends at `now` if the OSD is not done.
pub fn spans(entry: &Entry, now: DateTime<Utc>) -> Vec<Span> {
    let end = entry.ended_at().unwrap_or(now);
    let begun = passed(&entry.milestones).into_iter().filter(|passed| passed.start < end);
    begun
        .map(|passed| Span {
            stage: passed.stage,
            from: passed.start,
            to: passed.end.unwrap_or(end).min(end),
        })
        .collect()
}

/// Returns the bytes per second at which data moved to or from OSDs that are done; `None` if it is not known.
///
/// Times of OSDs that were in progress in parallel count for each of them.
pub fn rate(entries: &[Entry]) -> Option<u64> {
    let is_done = |entry: &&Entry| matches!(entry.outcome, Outcome::Migrated | Outcome::Removed);
    let (mut bytes, mut moving) = (0_u64, TimeDelta::zero());
    for entry in entries.iter().filter(is_done) {
        let Some(end) = entry.ended_at() else { continue };
        let is_moving = |span: &Span| matches!(span.stage, Stage::Emptying | Stage::Backfill);
        bytes = bytes.saturating_add(entry.all_moved_bytes());
        moving += spans(entry, end).iter().filter(|span| is_moving(span)).map(Span::time).sum::<TimeDelta>();
    }
    pace::rate(bytes, moving)
}
