//! Tasks of the agent: each inspects first, under the lock, and does only what is left to do.
//!
//! | module | content |
//! | --- | --- |
//! | `task` | the task of a request, from lock to report |
//! | `inspect` | what carries the OSD, and its proof |
//! | `rebuild` | the destructive steps, in order, in one function |
//! | `wipe` | the wipe of the disk of a removed OSD |
//! | `clearing` | steps that a rebuild and a wipe have in common |
//! | `prove`, `verify` | what it proves before it writes, and what it reports |
//! | `restore_slot` | re-registers a finished OSD |
//! | `recorded`, `outcome` | the recorded disk found again; the result for the report |

mod clearing;
mod inspect;
mod outcome;
mod prove;
mod rebuild;
mod recorded;
mod restore_slot;
mod task;
mod verify;
mod wipe;

pub use task::agent;
