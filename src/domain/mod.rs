//! Decides what to do next without touching anything: no async, no clock, no I/O, no environment, no
//! randomness, no logging.
//!
//! `tests/suite/purity.rs` reads these files and fails if one of them does otherwise.

pub mod act;
pub mod approval;
pub mod batch;
pub mod classify;
pub mod cluster_status;
pub mod commands;
pub mod device_set;
pub mod drift;
pub mod estimate;
pub mod expect;
pub mod fnv;
pub mod forecast;
pub mod gate;
pub mod guard;
pub mod history;
pub mod in_parallel;
pub mod inspection;
pub mod inventory;
pub mod ledger;
pub mod next;
pub mod node_osds;
pub mod observation;
pub mod osd;
pub mod pace;
pub mod pg_counts;
pub mod phase;
pub mod places;
pub mod plan;
pub mod policy;
pub mod preflight;
pub mod preview;
pub mod proof;
pub mod provision;
pub mod recovery;
pub mod release;
pub mod removal;
pub mod scrub;
pub mod shared;
pub mod stage;
pub mod stall;
pub mod step;
pub mod storage;
pub mod temporary;
pub mod undeclared;
pub mod units;
pub mod view;
pub mod windows;
