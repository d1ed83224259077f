//! Statistics of the PGs, kept from one observation to the next. See
//! `docs/development/adr/0040-cheap-looks.md`.
//!
//! The complete statistics are read when something in them is needed that was not read before. Otherwise
//! states and OSDs of all PGs are read, and the complete statistics of those that are not active+clean.
//! What is kept of the others is exact, or errs on the careful side:
//!
//! | of a PG that is active+clean | kept |
//! | --- | --- |
//! | states, OSDs | as just read |
//! | degraded and misplaced replicas | 0: Ceph counts them only in PGs that are remapped, undersized or not clean (`PeeringState::update_calc_stats`, 16 to 20) |
//! | epoch of the last report | of an earlier report, so too low at most, which a gate takes for old statistics |
//! | objects and bytes | at most [`OBSERVATIONS`] old |

use std::collections::{BTreeMap, BTreeSet};

use crate::ceph::pg_dump::Brief;
use crate::domain::gate;
use crate::domain::observation::{Pg, Slot};
use crate::domain::osd::{OsdId, PgId};
use crate::domain::shared::Shared;

/// Number of observations after which all statistics are read again.
///
/// Waiting observations follow each other in 0.5 to 5 s, so that sizes are at most 15 minutes old. They
/// decide about space: how much an OSD gets when another one is emptied, which takes hours.
const OBSERVATIONS: u32 = 180;

/// Number of PGs whose complete statistics as a table have as many bytes as those of one PG as JSON: 2.3 to
/// 2.5 KB for each, and 0.4 to 0.5 KB (16.2, 18.2 and 20.2).
const JSON: usize = 5;

/// Statistics of the last observation.
#[derive(Debug)]
pub(super) struct Kept {
    pgs: Shared<BTreeMap<PgId, Pg>>,
    /// Observations since all of it was read.
    age: u32,
}

/// Statistics to read in addition to states and OSDs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The complete statistics of the PGs in these states; of none if there are none.
    InStates(BTreeSet<String>),
    /// The complete statistics of all PGs.
    All,
}

impl Kept {
    /// Keeps the complete statistics of all PGs.
    pub(super) fn new(pgs: Shared<BTreeMap<PgId, Pg>>) -> Self {
        Self { pgs, age: 0 }
    }

    /// Returns whether all statistics are due to be read again.
    pub(super) fn is_old(&self) -> bool {
        self.age >= OBSERVATIONS
    }

    /// Returns what has to be read in addition to these states.
    pub(super) fn missing(&self, now: &BTreeMap<PgId, Brief>) -> Missing {
        let is_unclean = |pg: &&Brief| gate::unclean_words(&pg.state).next().is_some();
        let unclean = now.values().filter(is_unclean).count();
        // PGs were created, split, merged or deleted; or the mgr has just started.
        if now.len() != self.pgs.len() || unclean > now.len() / JSON {
            return Missing::All;
        }
        let words = now.values().flat_map(|pg| gate::unclean_words(&pg.state));
        Missing::InStates(words.map(str::to_owned).collect())
    }

    /// Returns the statistics with these states, and those of `unclean` PGs; `None` if that is not enough.
    ///
    /// `slots` are of the map that was read before.
    pub(super) fn renewed(
        self,
        now: BTreeMap<PgId, Brief>,
        mut unclean: BTreeMap<PgId, Pg>,
        slots: &BTreeMap<OsdId, Slot>,
    ) -> Option<Self> {
        let Self { mut pgs, age } = self;
        for (id, Brief { state, up, acting }) in now {
            let kept = pgs.get_mut(&id)?;
            if let Some(read) = unclean.remove(&id) {
                *kept = read;
                continue;
            }
            (kept.state, kept.up, kept.acting) = (state, up, acting);
            (kept.degraded, kept.misplaced) = (0, 0);
            if !gate::is_clean(kept) || kept.reported_epoch < kept.last_change(slots) {
                return None;
            }
        }
        unclean.is_empty().then_some(Self { pgs, age: age + 1 })
    }

    /// Returns the statistics.
    pub(super) fn pgs(&self) -> Shared<BTreeMap<PgId, Pg>> {
        self.pgs.clone()
    }
}

#[cfg(test)]
#[path = "pg_statistics_tests.rs"]
mod tests;
