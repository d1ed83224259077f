//! Upmaps that are lost with the place in CRUSH, or when the OSD is marked out, and restored when it is up.
//!
//! They are not restored earlier: an upmap onto an OSD that is down would leave its PG without a replica that
//! another OSD has. They are restored only after a purge, or after osd-migrate marked the OSD out. Otherwise
//! the balancer or a person removed the upmap, and that decision stays.

use std::collections::BTreeSet;

use super::Step;
use crate::domain::act::{Act, CephAct};
use crate::domain::expect;
use crate::domain::gate;
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::{LostUpmaps, Record};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::osd::{PgId, Upmap};

/// Tries to restore upmaps.
///
/// The mons drop an upmap that no longer fits CRUSH in the epoch that brings it.
pub const MAX_UPMAP_TRIES: u32 = 5;

impl Step<'_> {
    /// Saves that upmaps were lost before the place is restored.
    ///
    /// After that, nothing shows the loss.
    pub(super) fn note_lost_upmaps(&self) -> Option<Next> {
        let record = self.record;
        let has_item = self.view.slot(record.osd).is_some_and(|slot| slot.crush.is_some());
        let fresh = Some(LostUpmaps::default());
        let is_noted = has_item || record.upmaps.is_empty() || record.lost_upmaps == fresh;
        (!passes(Guard::UpmapLossSavedFirst, is_noted))
            .then(|| self.save(Saving::UpmapsLost, |record| record.lost_upmaps = fresh))
    }

    /// Restores the upmaps once an epoch, so that an upmap that the mons drop does not delay the OSD's end.
    pub(super) fn restore_upmaps(&self) -> Option<Next> {
        let lost = self.record.lost_upmaps?;
        let missing = self.missing_upmaps();
        if missing.is_empty() {
            // The statistics lag: the affected PGs are known only when the statistics show them.
            let unheard = self.record.upmaps.iter().any(|upmap| self.is_unreported(upmap));
            return Some(if unheard { Next::Wait(Wait::FreshView) } else { self.done_with_upmaps(missing) });
        }
        let epoch = self.view.seen.ceph.epoch;
        if lost.tries > 0 && lost.epoch == epoch {
            let (osd, fsid) = (self.record.osd, self.slot_fsid()?);
            return Some(Next::Do(Act::Ceph(CephAct::RestoreUpmaps { osd, fsid, upmaps: missing })));
        }
        if lost.tries >= MAX_UPMAP_TRIES {
            return Some(self.done_with_upmaps(missing));
        }
        let next = Some(LostUpmaps { tries: lost.tries + 1, epoch });
        Some(self.save(Saving::Upmaps, |record| record.lost_upmaps = next))
    }

    fn done_with_upmaps(&self, left: Vec<Upmap>) -> Next {
        self.save(Saving::UpmapsDone { left }, |record| record.lost_upmaps = None)
    }

    fn missing_upmaps(&self) -> Vec<Upmap> {
        let pgs: BTreeSet<PgId> = self.record.upmaps.iter().map(|upmap| upmap.pg).collect();
        let gone = gate::gone(&pgs, self.view.seen);
        let (upmaps, ceph) = (&self.record.upmaps, &self.view.seen.ceph);
        let mut missing = expect::upmaps_to_restore(upmaps, &ceph.upmaps, &ceph.slots);
        missing.retain(|upmap| !gone.contains(&upmap.pg));
        missing
    }

    /// Returns whether the upmap is in the map, and its PG is not yet reported on an OSD that could serve it.
    fn is_unreported(&self, upmap: &Upmap) -> bool {
        let ceph = &self.view.seen.ceph;
        let serves = |osd| ceph.slots.get(osd).is_some_and(|slot| slot.up && slot.is_in);
        ceph.upmaps.contains(upmap)
            && ceph
                .pgs
                .get(&upmap.pg)
                .is_some_and(|pg| upmap.mappings.iter().any(|(_, to)| serves(to) && !pg.up.contains(to)))
    }
}

/// Notes that the mons have dropped the upmaps of an OSD that is out, or has CRUSH weight 0.
pub(super) fn note_dropped_upmaps(record: &mut Record) {
    if record.lost_upmaps.is_none() {
        record.lost_upmaps = (!record.upmaps.is_empty()).then(LostUpmaps::default);
    }
}
