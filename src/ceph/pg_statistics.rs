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
//!
//! A partial observation reads only the unclean PGs, and of those that became clean since the lists of their
//! OSDs. Scrubs and OSDs of the others are then those of an observation before.

use std::collections::{BTreeMap, BTreeSet};

use crate::ceph::all_pgs::All;
use crate::ceph::pg_dump::Brief;
use crate::ceph::pg_ls_by_osd::Unread;
use crate::ceph::pg_stat::Counts;
use crate::domain::gate;
use crate::domain::observation::{Pg, Slot, last_change};
use crate::domain::osd::{Epoch, OsdId, PgId};
use crate::domain::shared::Shared;

/// Number of observations after which all statistics are read again.
///
/// Waiting observations follow each other in 0.5 to 5 s, so that sizes are at most 15 minutes old. They
/// decide about space: how much an OSD gets when another one is emptied, which takes hours.
const OBSERVATIONS: u32 = 180;

/// Number of PGs whose complete statistics as a table have as many bytes as those of one PG as JSON: 2.3 to
/// 2.5 KB for each, and 0.4 to 0.5 KB (16.2, 18.2 and 20.2).
const JSON: usize = 5;

/// Number of OSDs, at most, whose lists are read in place of the states of all PGs.
///
/// A list is a pass over all PGs in the mgr, as `pg ls` is, and the JSON of some 100 PGs. By what these take
/// alone (ADR 0040), states of all PGs take as long as five to seven lists.
const LISTS_FOR_STATES: usize = 4;

/// Number of OSDs, at most, whose lists are read in place of the statistics of all PGs, which take several
/// times as long as their states.
const LISTS_FOR_ALL: usize = 8;

/// Statistics of the last observation.
#[derive(Debug)]
pub(super) struct Kept {
    pgs: Shared<BTreeMap<PgId, Pg>>,
    /// Observations since all of it was read.
    age: u32,
    /// PGs that are not active+clean.
    unclean: BTreeSet<PgId>,
    /// Last start or end of any OSD, if each clean PG has reported since those of its own OSDs.
    reported: Option<Epoch>,
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
    ///
    /// `slots` are of the map that was read before.
    pub(super) fn new(pgs: Shared<BTreeMap<PgId, Pg>>, slots: &BTreeMap<OsdId, Slot>) -> Self {
        let (clean, unclean): (Vec<_>, Vec<_>) = pgs.iter().partition(|(_, pg)| gate::is_clean(pg));
        let have_reported = clean.iter().all(|(_, pg)| has_reported(pg, slots));
        let unclean = unclean.into_iter().map(|(id, _)| *id).collect();
        Self { pgs, age: 0, unclean, reported: have_reported.then(|| last_change(slots.keys(), slots)) }
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

    /// Returns the statistics with these states, and those of `unclean` PGs, and which PGs are still to be
    /// read; `None` if all have to be read.
    ///
    /// Still to be read are PGs that are clean and seem not to have reported since an OSD started, and those
    /// that are neither clean by these states nor in `unclean`. `slots` are of the map that was read before.
    pub(super) fn renewed(
        self,
        now: BTreeMap<PgId, Brief>,
        mut unclean: All,
        slots: &BTreeMap<OsdId, Slot>,
    ) -> Option<(Self, Unread)> {
        let Self { mut pgs, age, .. } = self;
        let (mut not_clean, mut behind) = (BTreeSet::new(), Vec::new());
        for (id, Brief { state, up, acting }) in now {
            let kept = pgs.get_mut(&id)?;
            if let Some(read) = unclean.remove(&id) {
                if !gate::is_clean(&read) {
                    not_clean.insert(id);
                }
                *kept = read;
                continue;
            }
            (kept.state, kept.up, kept.acting) = (state, up, acting);
            (kept.degraded, kept.misplaced) = (0, 0);
            if !gate::is_clean(kept) || !has_reported(kept, slots) {
                behind.push(id);
            }
        }
        if !unclean.is_empty() {
            return None;
        }
        let unread = unread(&pgs, behind, |pg| &pg.acting, slots, LISTS_FOR_ALL)?;
        let reported = Some(last_change(slots.keys(), slots));
        Some((Self { pgs, age: age + 1, unclean: not_clean, reported }, unread))
    }

    /// Takes the PGs that were still to be read, as the mgr has them.
    pub(super) fn with(mut self, read: All, slots: &BTreeMap<OsdId, Slot>) -> Self {
        for (id, pg) in &read {
            if !gate::is_clean(pg) {
                self.unclean.insert(*id);
            } else if !has_reported(pg, slots) {
                self.reported = None;
            }
        }
        self.pgs.extend(read);
        self
    }

    /// Returns whether the counts by state may suffice.
    ///
    /// They do not if a PG was created or deleted, if many PGs are unclean, or if an OSD started or ended
    /// after the clean PGs had reported.
    pub(super) fn may_suffice(&self, counts: &Counts, slots: &BTreeMap<OsdId, Slot>) -> bool {
        counts.all == self.pgs.len()
            && counts.unclean <= counts.all / JSON
            && self.reported == Some(last_change(slots.keys(), slots))
    }

    /// Returns which PGs became clean and are still to be read, if all others are `unclean`, or were clean
    /// before and are by the counts; `None` if states of all PGs have to be read.
    pub(super) fn became_clean(
        &self,
        counts: &Counts,
        unclean: &All,
        slots: &BTreeMap<OsdId, Slot>,
    ) -> Option<Unread> {
        let is_known = |(id, pg): (&PgId, &Pg)| self.pgs.contains_key(id) && !gate::is_clean(pg);
        if unclean.len() != counts.unclean || !unclean.iter().all(is_known) {
            return None;
        }
        let clean = self.unclean.iter().filter(|id| !unclean.contains_key(id)).copied().collect();
        // A PG that has got its data is served by the OSDs that should hold it.
        unread(&self.pgs, clean, |pg| &pg.up, slots, LISTS_FOR_STATES)
    }

    /// Takes the statistics of the unclean PGs, and of those that became clean, if these are clean and have
    /// reported.
    ///
    /// Returns whether it did.
    pub(super) fn takes(&mut self, unclean: All, clean: All, slots: &BTreeMap<OsdId, Slot>) -> bool {
        if !clean.values().all(|pg| gate::is_clean(pg) && has_reported(pg, slots)) {
            return false;
        }
        self.unclean = unclean.keys().copied().collect();
        // A change would copy all PGs if an observation still shares them.
        if !(unclean.is_empty() && clean.is_empty()) {
            self.pgs.extend(unclean.into_iter().chain(clean));
        }
        self.age += 1;
        true
    }

    /// Returns the statistics.
    pub(super) fn pgs(&self) -> Shared<BTreeMap<PgId, Pg>> {
        self.pgs.clone()
    }
}

/// Returns whether a PG has reported since its OSDs last came up or went down.
fn has_reported(pg: &Pg, slots: &BTreeMap<OsdId, Slot>) -> bool {
    pg.reported_epoch >= pg.last_change(slots)
}

/// Returns the PGs that are still to be read, and the OSDs to ask for them; `None` if these are more than
/// `most`, or if the PGs are so many that all are read.
///
/// `on` are the OSDs that may serve a PG.
fn unread(
    pgs: &All,
    ids: Vec<PgId>,
    on: fn(&Pg) -> &BTreeSet<OsdId>,
    slots: &BTreeMap<OsdId, Slot>,
    most: usize,
) -> Option<Unread> {
    if ids.len() > pgs.len() / JSON {
        return None;
    }
    let candidates = ids.into_iter().map(|id| Some((id, on(pgs.get(&id)?)))).collect::<Option<_>>()?;
    Unread::new(candidates, slots, most)
}

#[cfg(test)]
#[path = "pg_cluster_tests.rs"]
mod cluster;
#[cfg(test)]
#[path = "pg_statistics_tests.rs"]
mod tests;
