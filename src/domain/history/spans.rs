//! Phases of an OSD with their times, from the milestones of its record.

use chrono::{DateTime, TimeDelta, Utc};

use super::Entry;

/// Stage of a migration, as people think of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Stage {
    /// A Job on the node proves which disk it is.
    Inspect,
    /// The disk is proven: the OSD serves until the gates are open.
    Ready,
    /// The OSD is stopped.
    Stop,
    /// The old OSD is destroyed, and the new one is created on the disk.
    Recreate,
    /// The new OSD starts.
    Start,
    /// Data is moved onto the new OSD.
    Backfill,
    /// An old directory is removed.
    CleanUp,
    /// The OSD is quarantined.
    Quarantine,
}

impl Stage {
    /// Returns the name of the stage.
    pub fn code(self) -> &'static str {
        self.into()
    }

    /// Returns the stage that a milestone begins; none if it begins no other one.
    fn after(milestone: &str) -> Option<Self> {
        Some(match milestone {
            "record" | "inspect" => Self::Inspect,
            "proof" | "revert-stop" => Self::Ready,
            "stop" => Self::Stop,
            "down" | "rebuild" | "restore-slot" => Self::Recreate,
            "new" | "left-to-rook" => Self::Start,
            "up" => Self::Backfill,
            "clear" => Self::CleanUp,
            "quarantine" => Self::Quarantine,
            _ => return None,
        })
    }
}

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
    let mut spans: Vec<Span> = Vec::new();
    for (code, at) in &entry.milestones {
        let Some(stage) = Stage::after(code).filter(|_| *at < end) else { continue };
        match spans.last_mut() {
            Some(last) if last.stage == stage => {}
            Some(last) => {
                last.to = *at;
                spans.push(Span { stage, from: *at, to: end });
            }
            None => spans.push(Span { stage, from: *at, to: end }),
        }
    }
    spans
}
