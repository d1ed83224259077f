//! Placement of PGs without certain OSDs, as Ceph's own code computes it.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::osd::{Epoch, OsdId, PgId};

/// Placement that changes without certain OSDs: with the CRUSH weight 0, or marked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Epoch of the osdmap.
    pub epoch: Epoch,
    /// OSDs that hold no PG then.
    pub without: BTreeSet<OsdId>,
    /// PGs whose up set changes, or has one of these OSDs then, too.
    pub moves: BTreeMap<PgId, Move>,
}

/// Up sets of a PG, without the holes of an erasure coded PG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// In the osdmap as it is.
    pub now: BTreeSet<OsdId>,
    /// In the changed osdmap.
    pub then: BTreeSet<OsdId>,
}

impl Move {
    /// Returns the OSDs that get the PG.
    pub fn to(&self) -> impl Iterator<Item = OsdId> {
        self.then.difference(&self.now).copied()
    }

    /// Returns the OSDs that the PG leaves.
    pub fn from(&self) -> impl Iterator<Item = OsdId> {
        self.now.difference(&self.then).copied()
    }
}
