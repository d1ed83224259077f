//! How the program ends: the codes that the Job's `podFailurePolicy` knows.

use std::process::ExitCode;

use crate::domain::next::Summary;
use crate::ports::{Failure, LoadError, Severity};
use crate::run::{End, RunError};

/// What the exit code says; the Job's `podFailurePolicy` knows these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: nothing is left to do.
    Finished,
    /// 3: refused before any act.
    Refused,
    /// 10: a person is needed.
    Halted,
    /// 11: finished, but some OSDs were left alone.
    SomeLeftAlone,
    /// 1: try again.
    TryAgain,
    /// 130: a person or Kubernetes told it to end.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Finished => 0,
            Exit::TryAgain => 1,
            Exit::Refused => 3,
            Exit::Halted => 10,
            Exit::SomeLeftAlone => 11,
            Exit::Interrupted => 130,
        })
    }
}

/// Says why, and how it ends.
pub fn failed(why: &str, exit: Exit) -> Exit {
    tracing::error!("{why}");
    exit
}

fn severe(severity: Severity) -> Exit {
    match severity {
        Severity::Passing => Exit::TryAgain,
        Severity::NeedsPerson => Exit::Halted,
    }
}

/// A look that failed.
pub fn not_seen(failure: &Failure) -> Exit {
    failed(&failure.message, severe(failure.severity))
}

/// A ledger that could not be loaded.
pub fn not_loaded(error: &LoadError) -> Exit {
    not_seen(&error.clone().into())
}

/// The same for a run and for a rehearsal of one.
pub fn ended(end: Result<End, RunError>) -> Exit {
    match end {
        Ok(End::Finished(Summary { unconfirmed, .. })) if !unconfirmed.is_empty() => Exit::Refused,
        Ok(End::Finished(Summary { cancelled: true, quarantined, .. })) if quarantined.is_empty() => {
            Exit::Refused
        }
        Ok(End::Finished(Summary { quarantined, unseen_nodes, .. }))
            if !(quarantined.is_empty() && unseen_nodes.is_empty()) =>
        {
            Exit::SomeLeftAlone
        }
        Ok(End::Finished(_) | End::LeftToOther) => Exit::Finished,
        Ok(End::Halted(_)) => Exit::Halted,
        Err(RunError::Observe(failure)) => not_seen(&failure),
        Err(RunError::Ledger(error)) => not_loaded(&error),
    }
}
