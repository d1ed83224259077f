//! Results of an iteration. Waits and halts are data, with the sentences for people next to them.

mod fence_outcome;
mod halt;
mod partial;
mod saving;
mod summary;
mod wait;

pub use fence_outcome::FenceOutcome;
pub use halt::{Halt, TAKEN_MINUTES};
pub use saving::{Saving, uncleared};
pub use summary::Summary;
pub use wait::Wait;

use super::act::Act;
use super::ledger::Ledger;
use super::osd::OsdId;

/// The single step of an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Next {
    /// Save of the ledger.
    Save {
        /// ledger to save
        ledger: Ledger,
        /// OSD whose record changed
        osd: Option<OsdId>,
        /// what changed
        why: Saving,
    },
    /// One act.
    Do(Act),
    /// A wait: no act is possible now.
    Wait(Wait),
    /// The end of the run: nothing is left to do.
    Finished(Summary),
    /// A halt: a person is needed.
    Halt(Halt),
}
