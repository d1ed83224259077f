//! Decides which available disks become OSDs, on which nodes, in which layout and at which place in CRUSH.
//!
//! Pure.

mod available;
mod database;
mod declared;
mod location;
mod placement;
mod process;
mod select;
mod taints;
mod verdict;
pub mod volumes;
mod wanted;

pub use declared::{
    Declared, NothingDeclared, config_of, database_asked, declares_nothing, entry_that_may_mean, is_declared,
    may_be_encrypted, selected, selects, unknown_link,
};
pub use location::location;
pub use placement::{Nodes, nodes};
pub use process::process;
pub use taints::missing_tolerations;
pub use verdict::{AvailableDisk, DatabaseAsked, DatabasesAsked, FILE, Processed, Verdict};
