//! Phases of an OSD with their times, from the milestones of its record.

use chrono::{DateTime, TimeDelta, Utc};

use super::Entry;
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
