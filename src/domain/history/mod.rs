//! History of the OSDs: what a report shows about each, long after its record is closed.
//!
//! Nothing decides by it. An entry is made of the record, which the ledger keeps, and of the course, which a
//! run observes and stores with the status.
//!
//! | file | content |
//! | --- | --- |
//! | `confirmation` | how a run was confirmed, and by whom |
//! | `course` | what is observed about one OSD: waits, bytes, notes |
//! | `courses` | how the courses grow with what a run reports |
//! | `entry` | entry of one OSD |
//! | `run` | courses of a run, and entries that could not be written |
//! | `lines` | entries as lines of text |
//! | `spans` | phases of an OSD with their times, and the rate of them |
//! | `account` | all entries together, with sums |

mod account;
mod confirmation;
mod course;
mod courses;
mod entry;
mod lines;
mod run;
mod spans;

pub use account::{Account, Confirmed, Row, Sums};
pub use confirmation::{Confirmation, ConfirmedBy};
pub use course::{Course, Note};
pub use courses::{Courses, NO_RUN, Observed};
pub use entry::{Disk, Entry, Key, Outcome};
pub use lines::{missing, read};
pub use run::RunHistory;
pub use spans::{Span, rate, spans};
