//! Fence and flags while an OSD is down: set before each act, and again if another client removes them.

use chrono::{DateTime, TimeDelta, Utc};

use super::Step;
use crate::domain::act::Act;
use crate::domain::gate::{self, Reason};
use crate::domain::guard::{Guard, is_out};
use crate::domain::ledger::{Record, RefusedStep};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::phase::{self, DaemonFact, Phase};
use crate::domain::temporary::{fence, flags, operator, owner_fence};

/// Minutes that Rook has to acknowledge the fence before a stop.
///
/// A reconcile in progress takes minutes. One that waits for an OSD gives up after 20 (1.20.6,
/// `maxTimeForProcessingOSDs`).
const ACKNOWLEDGED_MINUTES: i64 = 30;

/// The same, if this run has given up another OSD for that, and Rook has acknowledged no fence since.
///
/// The fence of the OSD that was given up is removed, for which Rook begins a reconcile. That of a Rook that
/// works takes minutes.
const STILL_HANGS_MINUTES: i64 = 10;

impl Step<'_> {
    /// Returns the act once the fence is in force.
    ///
    /// The fence is first recorded, then set, one step an iteration, and checked again before every act from
    /// Stop to Deploy. Acts on an available disk need no fence: their gate requires that Rook is stopped.
    pub(super) fn fenced(&self, act: Act) -> Next {
        self.fence().unwrap_or(Next::Do(act))
    }

    /// Gives up an OSD for this run, before its stop, if Rook does not acknowledge the fence in time.
    ///
    /// Its flags and the fence are removed then. An empty OSD waits longer: its data would move back.
    pub(super) fn unless_rook_hangs(&self, next: Next) -> Next {
        let Next::Wait(Wait::Gate { reason: reason @ Reason::FenceNotAcknowledged { .. }, .. }) = &next
        else {
            return self.noting_fence(next);
        };
        let record = self.record;
        let Some(saved_at) = record.stop_intended_at.or(record.blocked_since).and(record.saved_at) else {
            return self.noting_fence(self.note_blocked());
        };
        if !self.is_fence_late(self.fence_wait_since().unwrap_or(saved_at)) {
            return next;
        }
        match &record.empty {
            Some(_) if self.has_waited_empty() => {
                self.noting_unfenced(self.not_emptied(&reason.to_string()), reason)
            }
            Some(_) => next,
            None => self.noting_unfenced(self.withdraw(), reason),
        }
    }

    /// Withdraws a record that a gate blocks, and gives up its OSD for this run, if Rook has not acknowledged
    /// the fence in time; `None` if it has more time.
    ///
    /// PGs that are not clean for some minutes after each intent must not make the run try for ever.
    pub(super) fn withdraw_unfenced(&self) -> Option<Next> {
        let reason = fence::unacknowledged(self.view)?;
        let is_late = self.is_fence_late(self.fence_wait_since()?);
        is_late.then(|| self.noting_unfenced(self.withdraw(), &reason))
    }

    /// Returns since when Rook has had time for a fence of this run, as far as that is noted.
    fn fence_wait_since(&self) -> Option<DateTime<Utc>> {
        let wait = self.view.ledger.run.fence_wait.as_ref();
        wait.filter(|wait| wait.job == self.view.policy.run).map(|wait| wait.since)
    }

    fn is_fence_late(&self, since: DateTime<Utc>) -> bool {
        // Rook, too, may have had no time while this process did not run.
        let since = self.view.policy.at_work_since.map_or(since, |began| began.max(since));
        let refusals = self.view.ledger.run.refusals_of(&self.view.policy.run);
        let hung = refusals.is_some_and(|known| known.rook_hangs);
        let limit = TimeDelta::minutes(if hung { STILL_HANGS_MINUTES } else { ACKNOWLEDGED_MINUTES });
        self.view.seen.at - since >= limit
    }

    /// Notes with a save before the stop that a fence is set that Rook has yet to acknowledge.
    ///
    /// It may be of another Job, or of the owner.
    fn noting_fence(&self, next: Next) -> Next {
        let Next::Save { mut ledger, osd, why } = next else { return next };
        if fence::unacknowledged(self.view).is_some() {
            ledger.run.note_fence(&self.view.policy.run, self.view.seen.at);
        }
        Next::Save { ledger, osd, why }
    }

    /// Notes with a save that gives up the OSD that Rook has not acknowledged the fence.
    fn noting_unfenced(&self, next: Next, reason: &Reason) -> Next {
        let Next::Save { mut ledger, osd, why: why @ (Saving::Withdrawn | Saving::NotEmptied { .. }) } = next
        else {
            return next;
        };
        let (run, now) = (&self.view.policy.run, self.view.seen.at);
        ledger.note_refusal(self.record.osd, run, RefusedStep::Fence, &reason.to_string());
        // The fence may be set for another OSD too, which has its own time from now on.
        ledger.run.note_fence(run, now);
        Next::Save { ledger, osd, why }
    }

    /// Sets the fence again if another client removed it while the OSD is down, whatever is waited for.
    ///
    /// An agent may be at work for minutes, and Rook may otherwise prepare the disk that it has just wiped.
    /// An OSD that is removed needs no fence once its Deployment is gone: the fence is removed then, and the
    /// acts before that set it.
    pub(super) fn fence_again(&self) -> Option<Next> {
        let is_for_removal = matches!(self.phase, Phase::Removing | Phase::Removed);
        let is_removed = is_for_removal && self.facts.daemon == DaemonFact::Gone;
        let is_down = !self.facts.before_stop() && !self.facts.up && !is_removed;
        let is_ours = is_down && self.record.left_to_rook_since.is_none();
        let is_gone = self.view.our_fence().is_some() && self.view.seen.kube.fence.is_none();
        let again = self.fence().filter(|_| is_ours && is_gone)?;
        Some(match again {
            Next::Save { ledger, osd, .. } => Next::Save { ledger, osd, why: Saving::FenceGone },
            Next::Do(_) | Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => again,
        })
    }

    /// Returns the next step until the fence is in force.
    pub(super) fn fence(&self) -> Option<Next> {
        let needs_none = self.facts.new || is_out(Guard::FencedFirst);
        if needs_none { None } else { fence::change(self.record, self.view) }
    }

    /// Sets the per-OSD flags for the migration if one is unset: a purge loses them, and people unset them.
    ///
    /// Without `noin` the first boot would reset the reweight. A new OSD gets none and is to come in at once.
    pub(super) fn set_osd_flags(&self) -> Option<Next> {
        let act = flags::change(self.record, self.view).filter(|_| !self.facts.new)?;
        Some(self.fenced(act))
    }

    pub(super) fn with_flags_set(&self, next: impl FnOnce() -> Next) -> Next {
        self.set_osd_flags().unwrap_or_else(next)
    }

    /// Removes the fence and clears its entry, if no other OSD needs it and Rook would not interfere.
    pub(super) fn unfence(&self) -> Option<Next> {
        let value = self.view.our_fence()?;
        if let Some(stays) = fence::acknowledged_to_stay(self.view) {
            return Some(stays);
        }
        if gate::stays_fenced(&self.view.ledger.run, self.view.seen) || owner_fence::stands(self.view) {
            return None;
        }
        (!self.rook_would_meet_others()).then(|| fence::take_down(value, self.view))
    }

    /// Returns whether another OSD is in progress and not up again, or quarantined after its stop.
    ///
    /// Rook would interfere. An OSD that is up gets its data back for hours, and Rook may work meanwhile. The
    /// fence is set again before the next stop.
    pub(super) fn rook_would_meet_others(&self) -> bool {
        let seen = self.view.seen;
        let is_half_way = |record: &Record| match record.quarantine {
            Some(_) => phase::is_committed(record, seen),
            None => !operator::is_up_again(record, seen),
        };
        self.view.ledger.records.values().any(|other| other.osd != self.record.osd && is_half_way(other))
    }
}
