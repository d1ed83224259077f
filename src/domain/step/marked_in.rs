//! The end of a record whose OSD was emptied and not stopped: the OSD gets its data again.

use chrono::{DateTime, Utc};

use super::Step;
use super::upmaps::note_dropped_upmaps;
use crate::domain::gate::{self, Reason};
use crate::domain::guard::{Guard, passes};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::phase::SlotFact;
use crate::domain::temporary::marked_out;

/// Seconds within which the statistics show that PGs return to an OSD that is in again.
///
/// Statistics lag by up to 7 s. PGs that the balancer has given to other OSDs never return.
const RETURN_SECONDS: i64 = 60;

impl Step<'_> {
    /// Marks the OSD in again before its record closes, and restores the upmaps that it lost thereby.
    pub(super) fn mark_in_first(&self) -> Option<Next> {
        if !marked_out::is_marked_out(self.record, self.view) {
            let serves = self.view.slot(self.record.osd).is_some_and(|slot| slot.up && slot.is_in);
            return serves.then(|| self.restore_upmaps()).flatten();
        }
        // A run that died right after the command has not seen what the command did.
        let is_seen = self.record.empty.as_ref().is_some_and(|empty| empty.out_since.is_some());
        if !is_seen && self.record.lost_upmaps.is_none() && !self.record.upmaps.is_empty() {
            return Some(self.save(Saving::UpmapsLost, note_dropped_upmaps));
        }
        let is_up = self.view.slot(self.record.osd).is_some_and(|slot| slot.up);
        if !is_up {
            return Some(
                self.quarantine("it went down while it was emptied, and is still marked out".to_owned()),
            );
        }
        let first = marked_out::waits_for(self.record, self.view);
        let waits =
            |first| Next::Wait(Wait::Gate { osd: self.record.osd, reason: Reason::Queued { osd: first } });
        first.map(waits).or_else(|| marked_out::restore_of(self.record, self.view))
    }

    /// Waits until the statistics show the PGs of an OSD that is in again, up to a limit.
    ///
    /// They show it empty before, so the next record of this OSD would stop it as one without PGs.
    pub(super) fn data_returns(&self) -> Option<Next> {
        let (record, seen) = (self.record, self.view.seen);
        let is_recent = |at: DateTime<Utc>| (0..RETURN_SECONDS).contains(&(seen.at - at).num_seconds());
        let is_in = self.facts.slot == SlotFact::Old
            && self.view.slot(record.osd).is_some_and(|slot| slot.up && slot.gets_data());
        let is_concerned = record.is_marked_out() && is_in && record.saved_at.is_some_and(is_recent);
        let empty = record.empty.as_ref().filter(|_| is_concerned)?;
        let now = gate::pgs_of(record.osd, seen);
        let gone = gate::gone(&empty.pgs, seen);
        let are_seen = empty.pgs.difference(&now).all(|pg| gone.contains(pg));
        (!passes(Guard::ReturnSeenFirst, are_seen)).then_some(Next::Wait(Wait::FreshView))
    }
}
