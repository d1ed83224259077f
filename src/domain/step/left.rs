//! PGs and bytes that are left on an OSD that is emptied.

use std::collections::BTreeSet;

use super::Step;
use super::emptying::change;
use crate::domain::gate;
use crate::domain::ledger::Emptying;
use crate::domain::next::{Next, Saving};
use crate::domain::observation::Pg;
use crate::domain::osd::PgId;
use crate::domain::temporary::INTENT_MINUTES;

impl Step<'_> {
    /// Returns the PGs that are on the OSD, or that may be on it.
    ///
    /// A PG that peers does not name the OSD. Once the OSD was empty, such a PG peers for another reason.
    pub(super) fn pgs_left(&self, empty: &Emptying) -> BTreeSet<PgId> {
        let mut pgs = gate::pgs_of(self.record.osd, self.view.seen);
        if empty.emptied_at.is_none() {
            pgs.extend(gate::peering(&empty.pgs, &self.view.seen.ceph));
        }
        pgs
    }

    /// Saves that the OSD is empty, or that PGs are on it again; `None` if that is saved.
    pub(super) fn note_empty(&self, empty: &Emptying, pgs: &BTreeSet<PgId>, bytes: u64) -> Option<Next> {
        let now = self.view.seen.at;
        let (why, emptied_at) = match (pgs.is_empty(), empty.emptied_at) {
            (true, None) => (Saving::Emptied, Some(now)),
            (false, Some(_)) => (Saving::EmptyingProgress { bytes }, None),
            (true, Some(_)) | (false, None) => return None,
        };
        let (least, least_pgs) = (Some((bytes, now)), Some(pgs.len() as u64));
        Some(self.save(why, |record| {
            change(record.empty.as_mut(), |empty| {
                (empty.emptied_at, empty.least, empty.least_pgs) = (emptied_at, least, least_pgs);
            });
        }))
    }

    /// Restores what was prepared for the stop, if PGs are on the OSD again.
    ///
    /// Rook and drains would wait as long as their data moves.
    ///
    /// A Stop may still be on its way for a minute.
    pub(super) fn prepared_in_vain(&self, pgs: &BTreeSet<PgId>) -> Option<Next> {
        let intended_at = self.record.stop_intended_at.filter(|_| !pgs.is_empty())?;
        let is_over = (self.view.seen.at - intended_at).num_minutes() >= INTENT_MINUTES;
        if is_over { self.clear_stop_intent() } else { None }
    }

    /// Returns the bytes that these PGs have on the OSD, without what other OSDs have of them already.
    pub(super) fn bytes_left(&self, pgs: &BTreeSet<PgId>) -> u64 {
        let ceph = &self.view.seen.ceph;
        let of = |pg: &Pg| {
            let bytes = pg.bytes_on_each(&ceph.pools);
            // Until the PG has reported its move, all of it is left.
            let left = if pg.misplaced == 0 { pg.objects } else { pg.misplaced.min(pg.objects) };
            let left = u128::from(bytes) * u128::from(left);
            left.checked_div(u128::from(pg.objects)).and_then(|left| left.try_into().ok()).unwrap_or(bytes)
        };
        pgs.iter().filter_map(|pg| ceph.pgs.get(pg)).map(of).sum()
    }
}
