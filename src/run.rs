//! The only loop, and the only sleep. A turn looks at everything, decides, does one thing, tells it, and forgets it:
//! starting is resuming.

use std::time::Duration;

use chrono::TimeDelta;

use crate::domain::act::{Act, CephAct};
use crate::domain::ledger::Ledger;
use crate::domain::next::{Halt, Next, Summary};
use crate::domain::osd::OsdId;
use crate::domain::plan;
use crate::domain::policy::Policy;
use crate::ports::{
    Clock, Cluster, Failure, Lease, LedgerStore, LoadError, Reporter, Saved, Severity, Tenure,
};
use crate::report::Event;

/// Between two looks while waiting: one poll of Ceph a second at most.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause: the status that people read is to be ten seconds old at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A pause is so small a part of the time in which nothing was done. An OSD that fills for hours is not worth a dump of all PGs
/// each second; and it is seen late by a thirtieth of its time at most.
const PARTS: i32 = 30;

/// After a look or an act that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(3);

/// Failures one after the other, for want of a right while an OSD is stopped, after which its `noout` is lifted: 15 minutes. Ceph's own
/// default for an OSD that is down is 10 (`mon_osd_down_out_interval`).
const NOOUT_PATIENCE: u32 = 300;

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
    /// An act was refused, and waiting alone does not help.
    #[error("{0}")]
    Act(Failure),
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

impl<C: Cluster, L: LedgerStore, T: Lease, K: Clock, A: Reporter> Ports<C, L, T, K, A> {
    /// Runs until the end.
    pub async fn run(&mut self, policy: &Policy) -> Result<End, RunError> {
        let mut blind = 0;
        let mut done_at = self.clock.now();
        // As far as the last ledger says that was read.
        let mut stopped = Vec::new();
        loop {
            match self.turn(policy, &mut stopped).await {
                Ok(Iteration::Again) => (blind, done_at) = (0, self.clock.now()),
                Ok(Iteration::Pause) => {
                    blind = 0;
                    let idle = self.clock.now() - done_at;
                    self.clock.sleep(pause(idle)).await;
                }
                Ok(Iteration::End(end)) => return Ok(end),
                Err(error) => {
                    blind += 1;
                    // One that ends would leave the OSD down, and nobody would know when the right is back.
                    let waits = severity(&error) == Severity::Denied && !stopped.is_empty();
                    self.report_failure(&error, if waits { &stopped } else { &[] }).await;
                    if !waits && (blind >= PATIENCE || severity(&error) != Severity::Passing) {
                        return Err(error);
                    }
                    if waits && blind == NOOUT_PATIENCE {
                        self.let_ceph_heal(&stopped).await;
                    }
                    self.clock.sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
    }

    /// An act that was refused has been told already, unless it is waited for.
    async fn report_failure(&mut self, error: &RunError, waiting: &[Stopped]) {
        let osds: Vec<String> = waiting.iter().map(|stopped| stopped.osd.to_string()).collect();
        let text = match (error, osds.is_empty()) {
            (RunError::Act(_), true) => return,
            (RunError::Observe(_) | RunError::Ledger(_), true) => error.to_string(),
            (_, false) => format!(
                "{error}; {} is stopped for its migration: waiting until this is allowed",
                osds.join(", ")
            ),
        };
        self.audience.report(Event::Blind(&text)).await;
    }

    /// Lifts `noout` of OSDs that wait for a right for too long, if it was not set by others: Ceph may heal without them.
    async fn let_ceph_heal(&mut self, stopped: &[Stopped]) {
        for one in stopped.iter().filter(|one| one.noout_is_ours) {
            let act = Act::Ceph(CephAct::UnsetOsdFlags { osd: one.osd, noout: true, noin: false });
            match self.cluster.act(&act).await {
                Ok(()) => self.audience.report(Event::Done(&act)).await,
                Err(failure) => {
                    self.audience.report(Event::NotDone { act: &act, why: &failure.message }).await;
                }
            }
        }
    }

    async fn turn(&mut self, policy: &Policy, stopped: &mut Vec<Stopped>) -> Result<Iteration, RunError> {
        match self.lease.acquire().await.map_err(RunError::Observe)? {
            Tenure::Mine => {}
            Tenure::Wait(why) => {
                self.audience.report(Event::Lease(&why)).await;
                return Ok(Iteration::Pause);
            }
            Tenure::Other(why) => {
                self.audience.report(Event::Lease(&why)).await;
                return Ok(Iteration::End(End::LeftToOther));
            }
        }
        let (ledger, version) = self.store.load().await.map_err(RunError::Ledger)?;
        *stopped = stopped_of(&ledger);
        let crash_loop = plan::crash_loop(policy, &ledger);
        let ask = |seen: &_| plan::questions(policy, &ledger, seen);
        let seen = match (self.cluster.observe(ask).await, &crash_loop) {
            (Ok(seen), _) => seen,
            (Err(_), Some(halt)) => return Ok(self.halted(halt.clone()).await),
            (Err(failure), None) => return Err(RunError::Observe(failure)),
        };
        let next = match crash_loop {
            Some(halt) => plan::before_halt(Next::Halt(halt), &ledger, &seen),
            None => plan::plan(policy, &ledger, &seen),
        };
        match next {
            Next::Save { ledger: new, osd, why } => {
                #[cfg(feature = "failpoint")]
                crate::failpoint::pause_at(&format!("save-{}", why.word()));
                if let Some(closed) =
                    osd.filter(|osd| !new.records.contains_key(osd)).and_then(|osd| ledger.records.get(&osd))
                {
                    self.store.close(closed).await.map_err(RunError::Observe)?;
                }
                match self.store.save(&new, version).await.map_err(RunError::Observe)? {
                    Saved::Stored => {
                        self.audience.report(Event::Saved { osd, why: &why, ledger: &new }).await;
                    }
                    Saved::Conflict => self.audience.report(Event::Conflict).await,
                }
                Ok(Iteration::Again)
            }
            Next::Do(act) => {
                #[cfg(feature = "failpoint")]
                crate::failpoint::pause_before("", &act);
                self.act(act).await
            }
            Next::Wait(wait) => {
                self.audience.report(Event::Waiting { wait: &wait, ledger: &ledger, seen: &seen }).await;
                Ok(Iteration::Pause)
            }
            Next::Finished(summary) => {
                self.audience.report(Event::Finished(&summary)).await;
                Ok(Iteration::End(End::Finished(summary)))
            }
            Next::Halt(halt) => Ok(self.halted(halt).await),
        }
    }

    async fn halted(&mut self, halt: Halt) -> Iteration {
        self.audience.report(Event::Halted(&halt)).await;
        Iteration::End(End::Halted(halt))
    }

    async fn act(&mut self, act: Act) -> Result<Iteration, RunError> {
        match self.cluster.act(&act).await {
            Ok(()) => {
                self.audience.report(Event::Done(&act)).await;
                Ok(Iteration::Again)
            }
            // Never tried again here: the next look decides.
            Err(failure) => {
                self.audience.report(Event::NotDone { act: &act, why: &failure.message }).await;
                match failure.severity {
                    Severity::Passing => Ok(Iteration::Pause),
                    Severity::Denied | Severity::NeedsPerson => Err(RunError::Act(failure)),
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
enum Iteration {
    Again,
    Pause,
    End(End),
}

/// An OSD that is stopped for its migration, or may be.
struct Stopped {
    osd: OsdId,
    noout_is_ours: bool,
}

fn stopped_of(ledger: &Ledger) -> Vec<Stopped> {
    let open = ledger.in_flight().filter(|record| record.stop_intended_at.is_some() && !record.closing);
    open.map(|record| Stopped { osd: record.osd, noout_is_ours: record.flags_to_lift(true, true).0 })
        .collect()
}

fn severity(error: &RunError) -> Severity {
    match error {
        RunError::Observe(failure)
        | RunError::Act(failure)
        | RunError::Ledger(LoadError::Failed(failure)) => failure.severity,
        RunError::Ledger(LoadError::Unreadable(_)) => Severity::NeedsPerson,
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
