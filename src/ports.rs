//! What the loop needs of the world. `live.rs` fulfils it with Ceph and Kubernetes, the tests with a simulation.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::act::Act;
use crate::domain::ledger::{Ledger, Record, Unreadable};
use crate::domain::observation::Observation;
use crate::domain::plan::Questions;

/// How a failure is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It may pass: look again.
    Passing,
    /// A right is missing, or a policy is against it. It may be given back: an OSD that is stopped is not left for it.
    Denied,
    /// It does not pass by itself: a person must do something.
    NeedsPerson,
}

/// A look, an act or a save that failed. The sentence names operation and subject, and what to type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// How to take it.
    pub severity: Severity,
    /// The sentence.
    pub message: String,
}

/// Ceph and Kubernetes together.
pub trait Cluster {
    /// Looks at everything relevant. `ask` says, of what was seen, what else must be asked.
    fn observe(
        &mut self,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> impl Future<Output = Result<Observation, Failure>>;
    /// Does one act. What comes back is not interpreted: the next look is.
    fn act(&mut self, act: &Act) -> impl Future<Output = Result<(), Failure>>;
}

/// What became of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// It is stored.
    Stored,
    /// Somebody stored something since it was loaded: nothing was written.
    Conflict,
}

/// Why a ledger can't be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is there, and can't be used.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It could not be read.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<LoadError> for Failure {
    /// What can't be used stays so until a person has looked at it.
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Failed(failure) => failure,
            LoadError::Unreadable(why) => Self { severity: Severity::NeedsPerson, message: why.to_string() },
        }
    }
}

/// Where the ledger is kept.
pub trait LedgerStore {
    /// Which stored version was loaded: the precondition of the next save.
    type Version;
    /// Loads it; an absent one is empty.
    fn load(&mut self) -> impl Future<Output = Result<(Ledger, Self::Version), LoadError>>;
    /// Stores it if nobody stored since `version`.
    fn save(
        &mut self,
        ledger: &Ledger,
        version: Self::Version,
    ) -> impl Future<Output = Result<Saved, Failure>>;
    /// Appends a closed record to the history. Doing so twice leaves one line.
    fn close(&mut self, record: &Record) -> impl Future<Output = Result<(), Failure>>;
}

/// Whether this runner is the one that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenure {
    /// It is.
    Mine,
    /// Another one may still be at work; it is being waited for.
    Wait(String),
    /// A live runner of another Job is at work: leave.
    Other(String),
}

/// The Lease. Politeness only: safety lies in what each act expects to find.
pub trait Lease {
    /// Takes, keeps or takes over the Lease.
    fn acquire(&mut self) -> impl Future<Output = Result<Tenure, Failure>>;
}

/// Time.
pub trait Clock {
    /// Now.
    fn now(&self) -> DateTime<Utc>;
    /// Waits.
    fn sleep(&mut self, time: Duration) -> impl Future<Output = ()>;
}

/// Who is told what happens.
pub trait Reporter {
    /// Told of everything, as it happens. Never fails the run.
    fn report(&mut self, event: crate::report::Event<'_>) -> impl Future<Output = ()>;
}
