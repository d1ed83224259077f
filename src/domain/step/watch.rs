//! Time-dependent steps for an OSD that is down after its stop: saves when it went down and came up, and ends
//! its `noout`.
//!
//! See `docs/development/adr/0025-progress.md`.

use chrono::TimeDelta;

use super::Step;
use crate::domain::guard::{Guard, is_out};
use crate::domain::next::{Next, Saving};
use crate::domain::temporary::flags;

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

    /// Returns whether the daemon's time to start is over, counted from its start or from the last time that
    /// it went down.
    pub(super) fn is_late_to_start(&self) -> bool {
        let since = self.record.saved_at.max(self.record.down_since);
        let limit = self.view.policy.limits.start + self.time_of_rook();
        since.is_some_and(|since| self.view.seen.at - since >= limit) && !is_out(Guard::StartHasALimit)
    }

    fn came_up(&self) -> Next {
        let up_seen = self.up_seen();
        self.save(Saving::Up, |record| {
            record.down_since = None;
            record.up_seen = up_seen.or(record.up_seen);
        })
    }
}
