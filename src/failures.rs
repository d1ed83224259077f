//! Iterations that fail: how often a run tries again, and which OSDs it has stopped meanwhile.

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::ledger::Ledger;
use crate::domain::osd::OsdId;
use crate::ports::Severity;

/// Consecutive failures after which the runner exits and its Job starts it again: 5 minutes.
const PATIENCE: u32 = 100;

/// Consecutive failures for a missing right that was there before, after which a run that has stopped no OSD
/// ends: one minute.
///
/// An API server that has just started refuses requests until it has read all roles.
const PATIENCE_FOR_A_RIGHT: u32 = 20;

/// OSD that is or may be stopped for its migration.
pub(crate) struct Stopped {
    /// Id of the OSD.
    pub(crate) osd: OsdId,
    noout_is_ours: bool,
    since: Option<DateTime<Utc>>,
}

impl Stopped {
    /// Returns the OSDs that are or may be stopped by this ledger.
    pub(crate) fn of(ledger: &Ledger) -> Vec<Self> {
        let open = ledger.in_flight().filter(|record| record.stop_intended_at.is_some() && !record.closing);
        open.map(|record| Self {
            osd: record.osd,
            noout_is_ours: record.flags_to_lift(true, true).0,
            since: record.down_since.or(record.stop_intended_at),
        })
        .collect()
    }

    /// Returns those whose `noout` osd-migrate has set, or may have set.
    pub(crate) fn with_our_noout(stopped: &[Self]) -> Vec<&Self> {
        stopped.iter().filter(|one| one.noout_is_ours).collect()
    }
}

/// Failures since the last iteration that did not fail.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: u32,
    /// An iteration of this process did not fail.
    has_succeeded: bool,
    is_noout_lifted: bool,
}

impl Failures {
    /// Returns no failures, after an iteration that did not fail.
    pub(crate) fn none() -> Self {
        Self { has_succeeded: true, ..Self::default() }
    }

    /// Counts a failure, and returns whether the run tries again.
    ///
    /// A runner that exits for a missing right would leave an OSD down, and nothing would notice when the
    /// right is granted again.
    pub(crate) fn tries_again(&mut self, severity: Severity, of_act: bool, stopped: &[Stopped]) -> bool {
        self.count += 1;
        match severity {
            Severity::Passing => self.count < PATIENCE,
            Severity::Denied if !stopped.is_empty() => true,
            Severity::Denied => !of_act && self.has_succeeded && self.count < PATIENCE_FOR_A_RIGHT,
            Severity::WrongPlace | Severity::NeedsPerson => false,
        }
    }

    /// Returns the OSDs whose `noout` is to be lifted now, unless it was set externally: those that have been
    /// stopped for so long, and all if the run ends for a person.
    ///
    /// Without an observation nothing else lifts it, and without a mgr none is possible.
    pub(crate) fn to_heal<'a>(
        &self,
        stopped: &'a [Stopped],
        is_end: bool,
        (now, limit): (DateTime<Utc>, TimeDelta),
    ) -> Vec<&'a Stopped> {
        let is_due = |one: &&Stopped| is_end || one.since.is_some_and(|since| now - since >= limit);
        let all = Stopped::with_our_noout(stopped).into_iter().filter(|_| !self.is_noout_lifted);
        all.filter(is_due).collect()
    }

    /// Notes that `noout` was lifted.
    pub(crate) fn healed(&mut self) {
        self.is_noout_lifted = true;
    }
}
