//! How long an empty OSD waits for its stop before it gets its data back.

use chrono::TimeDelta;

use super::Step;
use super::emptying::{change, is_moving};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::observation::Pg;
use crate::domain::osd::OsdId;
use crate::domain::temporary::marked_out;

/// Minutes that an OSD without data waits at least for its stop.
///
/// It waits as long as it took to empty it, if that was longer: so the wait never costs more than the move.
pub const EMPTY_MINUTES: i64 = 60;

/// Minutes without a break in which a gate of its stop is not open, before an empty OSD is given up.
///
/// An OSD that has waited for days for a window must not get its data back because another one restarts.
const EMPTY_BLOCKED_MINUTES: i64 = 15;

/// Hours for which a dead OSD waits for its stop while data of other OSDs moves: in large clusters it always
/// does, and new OSDs wait, too.
const MOVES_HOURS: i64 = 24;

impl Step<'_> {
    /// Returns whether an empty OSD is given up: it has waited as long as is reasonable, and a gate of its
    /// stop has not been open for some time.
    ///
    /// A pause, or a closed window, gives up no OSD.
    pub(super) fn gives_up_empty(&self) -> bool {
        let blocked = self.record.blocked_since.map(|since| (self.view.seen.at - since).num_minutes());
        let is_blocked = blocked.is_some_and(|minutes| minutes >= EMPTY_BLOCKED_MINUTES);
        let is_late = is_blocked && self.has_waited_empty() && gate::held(self.view) == Gate::Open;
        is_late && !self.is_dead_behind_moves()
    }

    /// Returns whether the OSD died while osd-migrate emptied it, and only data of other OSDs still moves.
    ///
    /// Nothing moves back to it, so it would be quarantined. Meanwhile no other OSD could be stopped either.
    fn is_dead_behind_moves(&self) -> bool {
        let ceph = &self.view.seen.ceph;
        let emptied_at = self.record.empty.as_ref().and_then(|empty| empty.emptied_at);
        if emptied_at.is_none_or(|at| self.view.seen.at - at >= TimeDelta::hours(MOVES_HOURS)) {
            return false;
        }
        let moves = |pg: &Pg| ["backfilling", "backfill_wait"].iter().any(|word| pg.state.contains(*word));
        self.facts.dead
            && marked_out::is_marked_out(self.record, self.view)
            && gate::emptied(self.record.osd, ceph) == Gate::Open
            && ceph.pgs.values().any(moves)
    }

    /// Returns whether the OSD has waited for its stop, without data, as long as is reasonable.
    ///
    /// It waits for the OSDs that leave together with it, whose data still moves.
    pub(super) fn has_waited_empty(&self) -> bool {
        if self.siblings().any(|(record, slot)| is_moving(record, slot)) {
            return false;
        }
        let times = self.record.empty.as_ref().and_then(|empty| Some((empty.out_since?, empty.emptied_at?)));
        times.is_some_and(|(out, emptied)| {
            // A dead OSD got no data back since, and each run may try to remove it again.
            let took = if self.record.is_of_dead() { TimeDelta::zero() } else { emptied - out };
            let limit = TimeDelta::minutes(EMPTY_MINUTES).max(took);
            self.view.seen.at - emptied >= limit
        })
    }

    /// Saves that an OSD that was down while it was emptied is up; `None` if it was not.
    pub(super) fn up_again(&self) -> Option<Next> {
        self.record.empty.as_ref()?.went_down_at.filter(|_| self.facts.up)?;
        Some(self.save(Saving::Up, |record| {
            change(record.empty.as_mut(), |empty| empty.went_down_at = None);
        }))
    }

    /// Saves that no gate of its stop blocks an empty OSD any more; `None` if none did.
    pub(super) fn unblocked(&self) -> Option<Next> {
        self.record.blocked_since.filter(|_| self.record.is_marked_out())?;
        Some(self.save(Saving::Up, |record| record.blocked_since = None))
    }

    /// Waits behind another OSD: meanwhile, no gate is asked that could block an empty OSD.
    pub(super) fn queued(&self, first: OsdId) -> Next {
        let wait = Next::Wait(Wait::Gate { osd: self.record.osd, reason: Reason::Queued { osd: first } });
        let unblocked = || self.unblocked().filter(|_| self.record.stop_intended_at.is_none());
        self.up_again().or_else(unblocked).unwrap_or(wait)
    }

    /// Saves since when a gate of the stop of an empty OSD is not open, and then does what follows.
    pub(super) fn noting_blocked(&self, next: Next) -> Next {
        if self.record.blocked_since.is_some() { next } else { self.note_blocked() }
    }

    /// Saves that a gate blocks the OSD from now on.
    pub(super) fn note_blocked(&self) -> Next {
        self.save(Saving::Blocked, |record| record.blocked_since = Some(self.view.seen.at))
    }
}
