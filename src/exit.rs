//! Maps the end of a run to the exit codes that the Job's `podFailurePolicy` knows.

use std::process::ExitCode;

use crate::domain::next::{FenceOutcome, Summary};
use crate::domain::policy::Policy;
use crate::ports::{Failure, LoadError, Severity};
use crate::run::{End, RunError};

/// Exit code of the program.
///
/// The Job's `podFailurePolicy` knows these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: nothing is left to do.
    Finished,
    /// 2: wrong usage, as clap reports it, or no such CephCluster.
    WrongUsage,
    /// 3: refused before any act.
    Refused,
    /// 10: a person is needed.
    Halted,
    /// 11: finished, but some OSDs are quarantined.
    SomeQuarantined,
    /// 12: finished, but some OSDs were refused, or skipped for now.
    SomeNotMigrated,
    /// 1: try again.
    TryAgain,
    /// Exit code of the pod of a Job, if it is none of the others.
    OfJob(u8),
    /// 130: interrupted by a person or by Kubernetes.
    Interrupted,
    /// 141: the reader of the output has closed the pipe, as of a program that SIGPIPE ends.
    Unread,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Finished => 0,
            Exit::TryAgain => 1,
            Exit::WrongUsage => 2,
            Exit::Refused => 3,
            Exit::Halted => 10,
            Exit::SomeQuarantined => 11,
            Exit::SomeNotMigrated => 12,
            Exit::Interrupted => 130,
            Exit::Unread => 141,
            // A code that Kubernetes chose, such as 137.
            Exit::OfJob(killed) => killed,
        })
    }
}

impl Exit {
    /// Returns the exit code of a Job's pod.
    pub fn of_job(code: i32) -> Self {
        match code {
            0 => Self::Finished,
            1 => Self::TryAgain,
            2 => Self::WrongUsage,
            3 => Self::Refused,
            10 => Self::Halted,
            11 => Self::SomeQuarantined,
            12 => Self::SomeNotMigrated,
            130 => Self::Interrupted,
            other => Self::OfJob(u8::try_from(other).unwrap_or(u8::MAX)),
        }
    }
}

/// Logs the reason and returns the exit code.
pub fn failed(why: &str, exit: Exit) -> Exit {
    tracing::error!(code = code_of(why), "{why}");
    exit
}

/// Returns the code at the end of a message.
fn code_of(message: &str) -> Option<&str> {
    message.strip_suffix(']')?.rsplit_once(" [").map(|(_, code)| code)
}

fn severe(severity: Severity) -> Exit {
    match severity {
        Severity::Passing => Exit::TryAgain,
        Severity::WrongPlace => Exit::WrongUsage,
        Severity::Denied | Severity::NeedsPerson => Exit::Halted,
    }
}

/// Returns the exit code of an observation that failed.
pub fn not_seen(failure: &Failure) -> Exit {
    failed(&failure.message, severe(failure.severity))
}

/// Returns the exit code of a ledger that could not be loaded.
pub fn not_loaded(error: &LoadError) -> Exit {
    not_seen(&error.clone().into())
}

/// Returns the exit code of `fence`.
fn of_fence(outcome: &FenceOutcome) -> Exit {
    match outcome {
        FenceOutcome::InForce { .. }
        | FenceOutcome::NotNeeded { .. }
        | FenceOutcome::Removed
        | FenceOutcome::OfRun { .. } => Exit::Finished,
        FenceOutcome::NotInForce { .. } => Exit::Halted,
        FenceOutcome::Refused { .. }
        | FenceOutcome::ScaledByRun { .. }
        | FenceOutcome::InProgress { .. }
        | FenceOutcome::ChangedByRook { .. } => Exit::Refused,
    }
}

/// Returns whether a run that finished only needs a confirmation for the rest, which is no failure.
///
/// A confirmation that was removed during a run ends that run like a cancel. A run that a schedule started
/// never fails by it: nobody waits for its migrations.
pub fn needs_only_confirmation(summary: &Summary, was_confirmed: bool, is_scheduled: bool) -> bool {
    summary.needs_only_confirmation() && (is_scheduled || !was_confirmed)
}

/// Returns the exit code of a run with this policy.
///
/// A rehearsal of the same policy exits alike.
pub fn ended(end: Result<End, RunError>, policy: &Policy) -> Exit {
    match end {
        Ok(End::Finished(Summary { fence: Some(outcome), .. })) => of_fence(&outcome),
        Ok(End::Finished(Summary { unconfirmed, quarantined, unremoved, skipped, .. }))
            if !unconfirmed.is_empty()
                && quarantined.is_empty()
                && unremoved.is_empty()
                && skipped.is_empty() =>
        {
            Exit::Refused
        }
        Ok(End::Finished(Summary { cancelled: true, quarantined, .. })) if quarantined.is_empty() => {
            Exit::Refused
        }
        Ok(End::Finished(Summary { quarantined, unseen_nodes, .. }))
            if !(quarantined.is_empty() && unseen_nodes.is_empty()) =>
        {
            Exit::SomeQuarantined
        }
        Ok(End::Finished(Summary { cancelled: false, refused, skipped, unmatched, .. }))
            if !(skipped.is_empty()
                && unmatched.is_empty()
                && (refused.is_empty() || policy.allows_refused)) =>
        {
            Exit::SomeNotMigrated
        }
        Ok(End::Finished(_) | End::LeftToOther) => Exit::Finished,
        Ok(End::Halted(_)) => Exit::Halted,
        Err(RunError::Observe(failure) | RunError::Act(failure, _)) => not_seen(&failure),
        Err(RunError::Ledger(error)) => not_loaded(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::osd::OsdId;

    fn exit(summary: Summary, policy: &Policy) -> Exit {
        ended(Ok(End::Finished(summary)), policy)
    }

    #[test]
    fn code_of_an_error_is_a_field_of_its_log_line() {
        assert_eq!(code_of("no answer [from x]: refused [kube-unreachable]"), Some("kube-unreachable"));
        assert_eq!(code_of("no code"), None);
    }

    #[test]
    fn run_that_refused_or_skipped_osds_is_not_complete() {
        let one = || vec![(OsdId(3), "WHY".to_owned())];
        let (strict, allows) = (Policy::default(), Policy { allows_refused: true, ..Policy::default() });
        let refused = || Summary { refused: one(), ..Summary::default() };
        let skipped = || Summary { skipped: one(), ..Summary::default() };
        assert_eq!(exit(Summary::default(), &strict), Exit::Finished);
        assert_eq!(exit(refused(), &strict), Exit::SomeNotMigrated);
        assert_eq!(exit(refused(), &allows), Exit::Finished);
        // The next run retries OSDs that were skipped for now: the owner cannot have accepted that state
        // permanently.
        assert_eq!(exit(skipped(), &strict), Exit::SomeNotMigrated);
        assert_eq!(exit(skipped(), &allows), Exit::SomeNotMigrated);
        // A failure takes precedence.
        let failed = Summary { quarantined: one(), ..refused() };
        assert_eq!(exit(failed, &strict), Exit::SomeQuarantined);
        assert_eq!(exit(Summary { cancelled: true, ..refused() }, &strict), Exit::Refused);
    }

    #[test]
    fn missing_confirmation_fails_only_the_run_that_lost_it() {
        let summary = || Summary { unconfirmed: [OsdId(7)].into(), ..Summary::default() };
        assert!(needs_only_confirmation(&summary(), false, false), "it completed, removed or reported");
        assert!(needs_only_confirmation(&summary(), true, true), "a schedule started it");
        assert!(!needs_only_confirmation(&summary(), true, false));
        assert_eq!(exit(summary(), &Policy::default()), Exit::Refused);
        // Neither a missing OSD nor a removal waits for the confirmation (docs/reference/exit-codes.md).
        let unmatched = Summary { unmatched: ["osd.99 does not exist".to_owned()].into(), ..summary() };
        let (osd, refused) = (OsdId(5), vec![(OsdId(5), "WHY".to_owned())]);
        let unremoved = Summary { unremoved: [osd].into(), refused, ..summary() };
        for (summary, code) in [(unmatched, Exit::Refused), (unremoved, Exit::SomeNotMigrated)] {
            assert!(!needs_only_confirmation(&summary, false, true));
            assert_eq!(exit(summary, &Policy::default()), code);
        }
        // A failure takes precedence, as with a cancel.
        let failed = Summary { quarantined: vec![(OsdId(3), "WHY".to_owned())], ..summary() };
        assert!(!needs_only_confirmation(&failed, false, false));
        assert_eq!(exit(failed, &Policy::default()), Exit::SomeQuarantined);
    }
}
