//! Pace of a run: what was moved, how fast, how long the rest takes, and whether it has stalled.
//!
//! Nothing decides by it: the clock never turns a wait into a failure.
//!
//! | file | content |
//! | --- | --- |
//! | `backfill` | backfill of one OSD, by its samples |
//! | `run_pace` | OSDs and bytes of the whole run |
//! | `span` | a time within bounds |

mod backfill;
mod run_pace;
mod span;

pub use backfill::{Backfill, STALLS_AFTER};
pub(super) use backfill::{rate, time_for};
pub(super) use run_pace::ASSUMED_OVERHEAD;
pub use run_pace::{Progress, Queue, RunPace};
pub use span::Span;
