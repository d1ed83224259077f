//! Ports of the loop, except the reporter. `live` implements them with Ceph and Kubernetes, `sim` with a
//! simulated cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::act::Act;
use crate::domain::history::Entry;
use crate::domain::ledger::{Ledger, Unreadable};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::plan::Questions;

/// Severity of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The failure may pass: observe again.
    Passing,
    /// A permission is missing, or a policy denies the call. The permission may be granted again: a run does
    /// not leave a stopped OSD because of it.
    Denied,
    /// There is no such CephCluster, or no access is configured. Nothing was read or changed.
    WrongPlace,
    /// The failure does not pass by itself: a person must do something.
    NeedsPerson,
}

/// Observation, act or save that failed.
///
/// The sentence names the operation, the subject, and the command to type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Severity.
    pub severity: Severity,
    /// Sentence for people, with its code in brackets at the end.
    pub message: String,
}

impl Failure {
    /// Returns the sentence, if a right or a policy was in the way.
    pub fn denied(&self) -> Option<String> {
        (self.severity == Severity::Denied).then(|| self.message.clone())
    }
}

/// Ceph and Kubernetes together.
pub trait Cluster {
    /// Observes everything relevant.
    ///
    /// Deployments and pods of OSDs that are not in progress may be as an earlier observation had them, as
    /// long as no change of them is reported. `ask` returns the further questions that follow from a first
    /// observation.
    fn observe(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> impl Future<Output = Result<Observation, Failure>>;
    /// Lets the next observation list all OSDs, and returns whether the last one did not.
    fn forget_list(&mut self) -> bool {
        false
    }
    /// Asks the questions that follow from an observation again, because the ledger was saved since.
    fn ask_again(
        &mut self,
        seen: Observation,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> impl Future<Output = Result<Observation, Failure>>;
    /// Observes what changes while a run waits; the rest is of the last observation.
    ///
    /// A run may only wait by it. `in_progress`: OSDs of which nothing may be old. `None`: a complete
    /// observation is due.
    fn observe_partly(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> impl Future<Output = Result<Option<Observation>, Failure>>;
    /// Does one act.
    ///
    /// The answer is not interpreted: the next observation decides.
    fn act(&mut self, act: &Act) -> impl Future<Output = Result<(), Failure>>;
}

/// Result of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// The ledger is stored.
    Stored,
    /// Another process stored the ledger after it was loaded: nothing was written.
    Conflict,
}

/// Returns the failure of an act that was not done, and that may pass by itself.
pub fn passing(message: impl std::fmt::Display) -> Failure {
    Failure { severity: Severity::Passing, message: format!("{message} [not-done]") }
}

/// Reason why a ledger cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The ledger exists and cannot be used.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The ledger could not be read.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<LoadError> for Failure {
    /// Converts the error: an unreadable ledger stays so until a person has checked it.
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Failed(failure) => failure,
            LoadError::Unreadable(why) => {
                Self { severity: Severity::NeedsPerson, message: format!("{why} [{}]", why.code()) }
            }
        }
    }
}

/// Storage of the ledger.
pub trait LedgerStore {
    /// Stored version that was loaded: the precondition of the next save.
    type Version;
    /// Lets the next load read the ledger, and returns whether it would not have.
    ///
    /// A store may keep what it has loaded or saved, as long as it knows of no change: enough to wait by, and
    /// to decide acts and saves, which compare the version.
    fn forget(&mut self) -> bool {
        false
    }
    /// Loads the ledger; an absent one is empty.
    fn load(&mut self) -> impl Future<Output = Result<(Ledger, Self::Version), LoadError>>;
    /// Stores the ledger if nothing was stored after `version`.
    fn save(
        &mut self,
        ledger: &Ledger,
        version: Self::Version,
    ) -> impl Future<Output = Result<Saved, Failure>>;
    /// Appends entries to the history, unless another process stored the ledger after it was loaded.
    ///
    /// Repeating it adds no second line.
    fn append(&mut self, entries: &[Entry]) -> impl Future<Output = Result<Saved, Failure>>;
}

/// Whether this runner has the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenure {
    /// This runner has the Lease.
    Mine,
    /// Another runner may still be working; this runner waits for it.
    Wait(String),
    /// A live runner of another Job is working: exit.
    Other(String),
}

/// Lease.
///
/// It only avoids useless concurrency: safety comes from what each act expects to find.
pub trait Lease {
    /// Acquires, renews or takes over the Lease.
    fn acquire(&mut self) -> impl Future<Output = Result<Tenure, Failure>>;
}

/// Clock.
pub trait Clock {
    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;
    /// Waits.
    fn sleep(&mut self, time: Duration) -> impl Future<Output = ()>;
}
