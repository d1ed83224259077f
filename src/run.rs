//! The only loop, and the only sleep. A turn looks at everything, decides, does one thing, tells it, and forgets it:
//! starting is resuming.

use std::time::Duration;

use chrono::TimeDelta;

use crate::domain::act::Act;
use crate::domain::next::{Halt, Next, Summary};
use crate::domain::plan;
use crate::domain::policy::Policy;
use crate::ports::{
    Audience, Clock, Cluster, Failure, Lease, LedgerStore, LoadError, Saved, Severity, Tenure,
};
use crate::report::Event;

/// Between two looks while waiting: one poll of Ceph a second at most (design section 12).
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause: the status that people read is to be ten seconds old at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A pause is so small a part of the time in which nothing was done. An OSD that fills for hours is not worth a dump of all PGs
/// each second; and it is seen late by a thirtieth of its time at most.
const PARTS: i32 = 30;

/// After a look or an act that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(3);

/// Looks that may fail one after the other before the runner gives up and lets its Job start it anew: 5 minutes.
const PATIENCE: u32 = 100;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to do.
    Finished(Summary),
    /// A person is needed.
    Halted(Halt),
    /// A live runner of another Job is at work.
    LeftToOther,
}

/// Why a run could not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The world could not be looked at for too long, or not without a person's help.
    #[error("{0}")]
    Observe(Failure),
    /// The ledger can't be read or written.
    #[error("{0}")]
    Ledger(LoadError),
}

/// The world, as the loop needs it.
pub struct Ports<C, L, T, K, A> {
    /// Ceph and Kubernetes.
    pub cluster: C,
    /// The ledger.
    pub store: L,
    /// The Lease.
    pub lease: T,
    /// Time.
    pub clock: K,
    /// Who is told.
    pub audience: A,
}

impl<C: Cluster, L: LedgerStore, T: Lease, K: Clock, A: Audience> Ports<C, L, T, K, A> {
    /// Runs until the end.
    pub async fn run(&mut self, policy: &Policy) -> Result<End, RunError> {
        let mut blind = 0;
        let mut done_at = self.clock.now();
        loop {
            match self.turn(policy).await {
                Ok(Turn::Again) => (blind, done_at) = (0, self.clock.now()),
                Ok(Turn::Pause) => {
                    blind = 0;
                    let idle = self.clock.now() - done_at;
                    self.clock.sleep(pause(idle)).await;
                }
                Ok(Turn::End(end)) => return Ok(end),
                Err(error) => {
                    blind += 1;
                    self.audience.tell(Event::Blind(&error.to_string())).await;
                    if blind >= PATIENCE || !passes(&error) {
                        return Err(error);
                    }
                    self.clock.sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
    }

    async fn turn(&mut self, policy: &Policy) -> Result<Turn, RunError> {
        match self.lease.hold().await.map_err(RunError::Observe)? {
            Tenure::Mine => {}
            Tenure::Wait(why) => {
                self.audience.tell(Event::Lease(&why)).await;
                return Ok(Turn::Pause);
            }
            Tenure::Other(why) => {
                self.audience.tell(Event::Lease(&why)).await;
                return Ok(Turn::End(End::LeftToOther));
            }
        }
        let (ledger, version) = self.store.load().await.map_err(RunError::Ledger)?;
        if let Some(halt) = plan::in_vain(policy, &ledger) {
            return Ok(self.halted(halt).await);
        }
        let ask = |seen: &_| plan::questions(policy, &ledger, seen);
        let seen = self.cluster.observe(ask).await.map_err(RunError::Observe)?;
        match plan::plan(policy, &ledger, &seen) {
            Next::Save { ledger: new, osd, why } => {
                #[cfg(feature = "drill")]
                crate::drill::hold(&format!("save-{}", why.word()));
                if let Some(closed) =
                    osd.filter(|osd| !new.records.contains_key(osd)).and_then(|osd| ledger.records.get(&osd))
                {
                    self.store.close(closed).await.map_err(RunError::Observe)?;
                }
                match self.store.save(&new, version).await.map_err(RunError::Observe)? {
                    Saved::Stored => self.audience.tell(Event::Saved { osd, why: &why, ledger: &new }).await,
                    Saved::Conflict => self.audience.tell(Event::Conflict).await,
                }
                Ok(Turn::Again)
            }
            Next::Do(act) => {
                #[cfg(feature = "drill")]
                crate::drill::hold_before("", &act);
                self.act(act).await
            }
            Next::Wait(wait) => {
                self.audience.tell(Event::Waiting { wait: &wait, ledger: &ledger, seen: &seen }).await;
                Ok(Turn::Pause)
            }
            Next::Finished(summary) => {
                self.audience.tell(Event::Finished(&summary)).await;
                Ok(Turn::End(End::Finished(summary)))
            }
            Next::Halt(halt) => Ok(self.halted(halt).await),
        }
    }

    async fn halted(&mut self, halt: Halt) -> Turn {
        self.audience.tell(Event::Halted(&halt)).await;
        Turn::End(End::Halted(halt))
    }

    async fn act(&mut self, act: Act) -> Result<Turn, RunError> {
        match self.cluster.act(&act).await {
            Ok(()) => {
                self.audience.tell(Event::Done(&act)).await;
                Ok(Turn::Again)
            }
            // Never tried again here: the next look decides.
            Err(failure) => {
                self.audience.tell(Event::NotDone { act: &act, why: &failure.message }).await;
                match failure.severity {
                    Severity::Passing => Ok(Turn::Pause),
                    Severity::NeedsPerson => Err(RunError::Observe(failure)),
                }
            }
        }
    }
}

/// Until the next look, where nothing was done for so long.
fn pause(idle: TimeDelta) -> Duration {
    (idle / PARTS).to_std().unwrap_or_default().clamp(PAUSE, LONGEST_PAUSE)
}

/// What a turn came to.
enum Turn {
    Again,
    Pause,
    End(End),
}

fn passes(error: &RunError) -> bool {
    match error {
        RunError::Observe(failure) | RunError::Ledger(LoadError::Failed(failure)) => {
            failure.severity == Severity::Passing
        }
        RunError::Ledger(LoadError::Unreadable(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_with_the_time_in_which_nothing_was_done_up_to_five_seconds() {
        let after = |seconds| pause(TimeDelta::seconds(seconds)).as_millis();
        // Also where the clock was set back.
        assert_eq!([-9, 0, 30].map(after), [1000, 1000, 1000]);
        assert_eq!([90, 150, 100_000].map(after), [3000, 5000, 5000]);
    }
}
