//! Time-dependent steps for an OSD that is down: saves when it went down after its stop and came up, ends its
//! `noout`, and handles one that osd-migrate did not stop.
//!
//! See `docs/development/adr/0025-progress.md`.

use chrono::{DateTime, TimeDelta, Utc};

use super::Step;
use crate::domain::guard::{Guard, is_out};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::temporary::{INTENT_MINUTES, flags};

impl Step<'_> {
    /// Returns the next time-dependent step; `None` if nothing is due.
    pub(super) fn watch_down(&self) -> Option<Next> {
        if self.facts.new {
            return None;
        }
        let record = self.record;
        let is_committed = record.stop_intended_at.is_some() && !self.facts.before_stop();
        let went_down = is_committed && (self.facts.stopped || !self.facts.up);
        let stays_down = record.down_since.is_some() && !self.facts.up;
        match record.down_since {
            None if went_down => {
                Some(self.save(Saving::Down, |record| record.down_since = Some(self.view.seen.at)))
            }
            Some(_) if !(went_down || stays_down) => Some(self.came_up()),
            Some(_) if self.down_for() >= self.view.policy.limits.noout => {
                flags::lift_noout(record, self.view)
            }
            Some(_) | None => None,
        }
    }

    /// Returns how long the OSD is down after its stop.
    pub(super) fn down_for(&self) -> TimeDelta {
        self.record.down_since.map_or_else(TimeDelta::zero, |since| self.view.seen.at - since)
    }

    /// Returns whether the daemon's time to start is over, counted from its start, from the last time that it
    /// went down, or from the start of this process, whichever is later.
    pub(super) fn is_late_to_start(&self) -> bool {
        let since = self.record.saved_at.max(self.record.down_since).max(self.view.policy.at_work_since);
        let limit = self.view.policy.limits.start + self.time_of_rook();
        since.is_some_and(|since| self.view.seen.at - since >= limit) && !is_out(Guard::StartHasALimit)
    }

    /// Handles an OSD that is down before its stop, or again after a reverted stop.
    ///
    /// After a revert osd-migrate has started it, and it is on its way.
    pub(super) fn not_our_stop(&self) -> Next {
        let osd = self.record.osd;
        let ours = self.record.stop_reverted.is_some();
        match self.view.daemon(osd).filter(|daemon| ours && daemon.replicas > 0) {
            Some(daemon) if self.is_late_to_start() => self.quarantine(self.late(daemon)),
            Some(daemon) => Next::Wait(Wait::Up { osd, trouble: daemon.trouble() }),
            // A Stop of osd-migrate may still be on its way.
            None if self.record.stop_intended_at.is_some_and(|at| !self.is_settled(at)) => {
                Next::Wait(Wait::NotOurStop { osd })
            }
            None if self.record.is_marked_out() => {
                let restored = self.record.stop_intended_at.and_then(|_| self.clear_stop_intent());
                restored.or_else(|| self.down_while_emptied()).unwrap_or_else(|| self.withdraw())
            }
            None => self.withdraw(),
        }
    }

    /// Returns whether no call from that time can still be on its way.
    fn is_settled(&self, at: DateTime<Utc>) -> bool {
        (self.view.seen.at - at).num_minutes() >= INTENT_MINUTES
    }

    /// Returns how often the containers of the OSD's pod were restarted.
    pub(super) fn restarts(&self) -> u32 {
        let daemon = self.view.daemon(self.record.osd);
        daemon.and_then(|daemon| daemon.pods.iter().map(|pod| pod.restarts).max()).unwrap_or(0)
    }

    /// Returns the restarts that count: after a `retry`, those since the OSD came up for the first time.
    ///
    /// Until then, only the time to start has a limit.
    pub(super) fn counted_restarts(&self) -> u32 {
        let restarts = self.restarts();
        match (self.record.retried, self.record.pod_restarts) {
            (false, _) => restarts,
            (true, None) => 0,
            // Another pod begins to count again.
            (true, Some(before)) => restarts.checked_sub(before).unwrap_or(restarts),
        }
    }

    fn came_up(&self) -> Next {
        let up_seen = self.up_seen();
        // While nothing could be observed, the run has lifted it without a save.
        let is_lifted = self.down_for() >= self.view.policy.limits.noout;
        let restarts = self.restarts();
        self.save(Saving::Up, |record| {
            record.down_since = None;
            record.note_restarts(restarts);
            // An old OSD that is removed is in, with CRUSH weight 0.
            if up_seen.is_some() && record.new.is_some() {
                record.note_in();
            }
            record.noout_lifted |= is_lifted;
            record.up_seen = up_seen.or(record.up_seen);
        })
    }
}
