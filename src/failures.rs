//! Iterations that fail: how often a run tries again, and which OSDs it has stopped meanwhile.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::act::{Act, KubeAct};
use crate::domain::ledger::Ledger;
use crate::domain::osd::OsdId;
use crate::ports::Severity;

/// Consecutive failures after which the runner exits and its Job starts it again: 5 minutes, longer if each
/// of them waits for an answer.
const PATIENCE: u32 = 100;

/// Consecutive failures for a missing right that was there before, after which a run that has stopped no OSD
/// ends: one minute. As many acts that are denied one after the other end it, although it goes on without
/// the OSDs.
///
/// An API server that has just started refuses requests until it has read all roles. A run that has stopped
/// an OSD takes as many failures of observations that a person must fix: an object may be corrected soon.
pub(crate) const PATIENCE_FOR_A_RIGHT: u32 = 20;

/// Part of an iteration that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// An act, and the OSD that it is for.
    Act(Option<OsdId>),
    /// An act that starts or restarts this OSD: if it is denied, the run goes on without the OSD.
    Optional(OsdId),
    /// The Lease, the ledger or the observation.
    View,
}

impl Part {
    /// Returns the part of an iteration that this act is.
    pub(crate) fn of(act: &Act) -> Self {
        let is_optional = matches!(act, Act::Kube(KubeAct::Adopt(_) | KubeAct::Tolerate { .. }));
        act.osd().filter(|_| is_optional).map_or(Self::Act(act.osd()), Self::Optional)
    }
}

/// OSD that is or may be stopped for its migration.
pub(crate) struct Stopped {
    /// Id of the OSD.
    pub(crate) osd: OsdId,
    /// It is stopped. Otherwise it may be: its stop is intended.
    pub(crate) is_down: bool,
    noout_is_ours: bool,
    since: Option<DateTime<Utc>>,
}

impl Stopped {
    /// Returns the OSDs that are or may be stopped by this ledger.
    pub(crate) fn of(ledger: &Ledger) -> Vec<Self> {
        let open = ledger.in_flight().filter(|record| record.stop_intended_at.is_some() && !record.closing);
        open.map(|record| Self {
            osd: record.osd,
            is_down: record.is_committed(),
            noout_is_ours: record.flags_to_lift(true, true).0,
            // Without a time, it is up again.
            since: record.down_since.or(record.stop_intended_at.filter(|_| record.new.is_none())),
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
    pub(crate) has_succeeded: bool,
    healed: BTreeSet<OsdId>,
    /// OSDs whose acts failed for a reason that a person must fix.
    stuck: BTreeSet<OsdId>,
}

impl Failures {
    /// Returns no failures, after an iteration that did not fail.
    pub(crate) fn none() -> Self {
        Self { has_succeeded: true, ..Self::default() }
    }

    /// Counts a failure, and returns whether the run tries again.
    ///
    /// A runner that exits for a missing right would leave an OSD down, and nothing would notice when the
    /// right is granted again. One that exits for an OSD that needs a person would leave others down.
    /// `stopped` is `None` as long as no ledger was read: there may be some.
    pub(crate) fn tries_again(
        &mut self,
        severity: Severity,
        part: Part,
        stopped: Option<&[Stopped]>,
    ) -> bool {
        // An act follows an observation that did not fail.
        self.count = if matches!(part, Part::Act(_)) { 0 } else { self.count + 1 };
        match (severity, stopped) {
            (Severity::Passing, _) => self.count < PATIENCE,
            (Severity::Denied, None) => self.count < PATIENCE_FOR_A_RIGHT,
            (Severity::Denied, Some([])) => {
                // So many denied acts without another one in between lack a right of the whole run.
                let is_waited_for = match part {
                    Part::View => self.has_succeeded,
                    Part::Optional(_) => true,
                    Part::Act(_) => false,
                };
                is_waited_for && self.count < PATIENCE_FOR_A_RIGHT
            }
            (Severity::Denied, Some(_)) => true,
            (Severity::WrongPlace | Severity::NeedsPerson, None) => false,
            (Severity::WrongPlace | Severity::NeedsPerson, Some(stopped)) => self.tries_others(part, stopped),
        }
    }

    /// Returns whether a run goes on, after a failure that a person must fix, for OSDs that it has stopped.
    fn tries_others(&mut self, part: Part, stopped: &[Stopped]) -> bool {
        let mut down = stopped.iter().filter(|one| one.is_down);
        match part {
            Part::View => self.count < PATIENCE_FOR_A_RIGHT && down.next().is_some(),
            Part::Act(None) => false,
            Part::Act(Some(osd)) | Part::Optional(osd) => {
                self.stuck.insert(osd);
                down.any(|one| !self.stuck.contains(&one.osd))
            }
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
        let all = Stopped::with_our_noout(stopped).into_iter();
        all.filter(|one| !self.healed.contains(&one.osd)).filter(is_due).collect()
    }

    /// Notes that `noout` of an OSD was lifted.
    pub(crate) fn healed(&mut self, osd: OsdId) {
        self.healed.insert(osd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noout_of_each_stopped_osd_is_lifted_when_it_is_due() {
        let at = |minutes: i64| DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        let down =
            |osd, since, noout_is_ours| Stopped { osd: OsdId(osd), is_down: true, noout_is_ours, since };
        let stopped = [
            down(1, Some(at(0)), true),
            down(2, Some(at(6)), true),
            down(3, None, true),
            down(4, Some(at(0)), false),
        ];
        let mut failures = Failures::none();
        let due = |failures: &Failures, minutes, is_end| {
            let due = failures.to_heal(&stopped, is_end, (at(minutes), TimeDelta::minutes(15)));
            due.iter().map(|one| one.osd.0).collect::<Vec<_>>()
        };
        assert_eq!(due(&failures, 14, false), [0_u32; 0]);
        assert_eq!(due(&failures, 15, false), [1]);
        failures.healed(OsdId(1));
        assert_eq!(due(&failures, 20, false), [0_u32; 0]);
        assert_eq!(due(&failures, 21, false), [2]);
        assert_eq!(due(&failures, 21, true), [2, 3], "the run ends for a person");
    }

    #[test]
    fn missing_right_has_a_limit_if_no_osd_is_stopped() {
        let (mut first, mut later) = (Failures::default(), Failures::none());
        let tries = |failures: &mut Failures| {
            (0..100).take_while(|_| failures.tries_again(Severity::Denied, Part::View, Some(&[]))).count()
        };
        assert_eq!((tries(&mut first), tries(&mut later)), (0, 19));
        let mut unknown = Failures::default();
        let of_unknown =
            (0..100).take_while(|_| unknown.tries_again(Severity::Denied, Part::View, None)).count();
        assert_eq!(of_unknown, 19, "an OSD may be stopped");
        assert!(
            !Failures::none().tries_again(Severity::Denied, Part::Act(Some(OsdId(1))), Some(&[])),
            "an act is refused at once"
        );
        let stopped = [Stopped { osd: OsdId(1), is_down: true, noout_is_ours: true, since: None }];
        let mut waits = Failures::default();
        assert!((0..1000).all(|_| waits.tries_again(
            Severity::Denied,
            Part::Act(Some(OsdId(1))),
            Some(&stopped)
        )));
    }

    #[test]
    fn denied_act_of_one_osd_ends_no_run_and_many_in_a_row_do() {
        let mut failures = Failures::none();
        let mut denied =
            |osd: &u32| failures.tries_again(Severity::Denied, Part::Optional(OsdId(*osd)), Some(&[]));
        assert_eq!((0..100).take_while(&mut denied).count(), 19, "one OSD after the other");
        let needs_person = |part| Failures::none().tries_again(Severity::NeedsPerson, part, Some(&[]));
        assert!(!needs_person(Part::Optional(OsdId(1))));
    }

    #[test]
    fn osd_that_needs_a_person_ends_no_run_while_another_is_down() {
        let one = |osd, is_down| Stopped { osd: OsdId(osd), is_down, noout_is_ours: true, since: None };
        let stopped = [one(3, true), one(5, true), one(7, false)];
        let mut failures = Failures::none();
        let mut tries = |osd: Option<u32>| {
            failures.tries_again(Severity::NeedsPerson, Part::Act(osd.map(OsdId)), Some(&stopped))
        };
        assert!((0..1000).all(|_| tries(Some(3))), "osd.5 has its turn");
        assert!(!tries(Some(5)), "both need a person");
        assert!(!tries(None), "the act is of no OSD");
        let observations = |stopped: &[Stopped]| {
            let mut failures = Failures::none();
            let again = |_: &u32| failures.tries_again(Severity::NeedsPerson, Part::View, Some(stopped));
            (0..100).take_while(again).count()
        };
        assert_eq!((observations(&stopped), observations(&[one(7, false)])), (19, 0));
    }
}
