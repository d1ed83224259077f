//! State machine of one OSD: the phase table (docs/concepts/how-it-works.md), as data.
//!
//! A phase is *observed*, never stored. `facts` reduces observation and record to a few facts, and each row
//! of `ROWS` says for which facts it applies. Rows exclude each other. `table_tests.rs` checks the
//! whole product of the facts, and fails if two rows apply or if a row is never reached.

mod facts;
mod phases;
mod rows;
mod seen;
#[cfg(test)]
mod table_tests;

pub use facts::{DaemonFact, DataFact, DiskFact, Facts, SlotFact};
pub use phases::Phase;
pub use rows::{ROWS, Row, phase};
pub use seen::{
    STATISTICS_SECONDS, attempt_report, facts, is_committed, is_created, is_marked_out_externally,
    is_stopped, issued_of, label_fsid, label_id, last_inspection, was_old_before,
};
