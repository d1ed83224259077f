//! Stored state that can't be observed once an OSD is stopped and its disk blank (`docs/concepts/ledger.md`).

mod bounds;
mod emptying;
mod fence_wait;
mod left_pvcs;
mod nodes;
mod record;
mod recorded_pvc;
mod refusals;
mod run;
mod stored;
mod whole;

pub use emptying::Emptying;
pub use fence_wait::FenceWait;
pub use left_pvcs::{LeftPvc, LeftPvcs};
pub use nodes::{NodeStatus, NodeWork};
pub use record::{Attempt, LostUpmaps, Quarantine, Record, Strategy};
pub use recorded_pvc::RecordedPvc;
pub use refusals::{Refusals, Refused, RefusedStep};
pub use run::{
    FENCE, FastRecovery, FenceOrder, FormerPdb, NoScrub, OfJob, Progress, Run, ScaledOperator, Skipping,
    Tried,
};
pub use stored::Unreadable;
pub use whole::{FORMAT, Ledger, MAX_OPEN, MAX_RECORDS};
