//! Pace of a run: what was moved, how fast, how long the rest takes, and whether it has stalled.
//!
//! Nothing decides by it: the clock never turns a wait into a failure.
//!
//! | file | content |
//! | --- | --- |
//! | `backfill` | backfill of one OSD, by its samples |
//! | `run_pace` | OSDs and bytes of the whole run |
//! | `stall` | cause of a stall |

mod backfill;
mod run_pace;
mod stall;

pub use backfill::{Backfill, STALLS_AFTER};
pub use run_pace::{Progress, Queue, RunPace, Span};
pub use stall::cause;
