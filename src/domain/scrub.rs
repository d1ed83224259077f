//! Flags of the osdmap with which Ceph begins no scrub.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

const NOSCRUB: &str = "noscrub";
const NODEEP_SCRUB: &str = "nodeep-scrub";

/// The flags `noscrub` and `nodeep-scrub`, or one of them, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ScrubFlags {
    /// `noscrub`
    pub noscrub: bool,
    /// `nodeep-scrub`
    pub nodeep_scrub: bool,
}

impl ScrubFlags {
    /// Both flags.
    pub const BOTH: Self = Self { noscrub: true, nodeep_scrub: true };

    /// Returns those that are among the flags of an osdmap.
    pub fn among(flags: &BTreeSet<String>) -> Self {
        Self { noscrub: flags.contains(NOSCRUB), nodeep_scrub: flags.contains(NODEEP_SCRUB) }
    }

    /// Returns their names in the osdmap.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let noscrub = self.noscrub.then_some(NOSCRUB);
        noscrub.into_iter().chain(self.nodeep_scrub.then_some(NODEEP_SCRUB))
    }

    /// Returns those that are also among the others.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self {
            noscrub: self.noscrub && others.noscrub,
            nodeep_scrub: self.nodeep_scrub && others.nodeep_scrub,
        }
    }

    /// Returns those that are not among the others.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self {
            noscrub: self.noscrub && !others.noscrub,
            nodeep_scrub: self.nodeep_scrub && !others.nodeep_scrub,
        }
    }

    /// Returns whether it is none of them.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for ScrubFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(" and "))
    }
}
