//! The only loop, and the only sleep. An iteration observes everything, decides, does one thing, reports it,
//! and forgets it. Starting a run is therefore the same as resuming one.
//!
//! While a run waits, it observes a part (`docs/development/adr/0041-partial-observations.md`), soon after it
//! did something, and then less often (`pause.rs`). After a save of its own, it has the observation of that
//! save (`before.rs`).

use std::collections::BTreeSet;
use std::time::Duration;

use crate::before::{Before, Save};
use crate::domain::act::{Act, CephAct};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::next::{Halt, Next, Saving, Summary};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::plan;
use crate::domain::policy::Policy;
use crate::domain::view::View;
use crate::failures::{Failures, Part, Stopped};
use crate::pause::pause;
use crate::ports::{Clock, Cluster, Failure, Lease, LedgerStore, LoadError, Saved, Severity, Tenure};
use crate::report::{Event, Reporter};

/// Pause after an observation or an act that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(3);

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to do.
    Finished(Summary),
    /// A person is needed.
    Halted(Halt),
    /// A live runner of another Job is working.
    LeftToOther,
}

/// Reason why a run could not continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The cluster could not be observed for too long, or not without a person's help.
    #[error("{0}")]
    Observe(Failure),
    /// An act was refused, and waiting alone does not help.
    #[error("{0}")]
    Act(Failure, Part),
    /// The Lease cannot be acquired, or the ledger cannot be read: nothing was observed.
    #[error("{0}")]
    Ledger(LoadError),
}

/// Ports of a run.
pub struct Ports<C, L, T, K, A> {
    /// Ceph and Kubernetes.
    pub cluster: C,
    /// Ledger.
    pub store: L,
    /// Lease.
    pub lease: T,
    /// Clock.
    pub clock: K,
    /// Receiver of the events.
    pub audience: A,
}

impl<C: Cluster, L: LedgerStore, T: Lease, K: Clock, A: Reporter> Ports<C, L, T, K, A> {
    /// Runs until the end.
    pub async fn run(&mut self, policy: &Policy) -> Result<End, RunError> {
        let (mut failures, mut has_observed) = (Failures::default(), false);
        let (mut done_at, mut policy) = (self.clock.now(), policy.clone());
        // According to the last ledger that was read.
        let (mut stopped, mut before) = (None::<Vec<Stopped>>, Before::Other);
        loop {
            let began = self.clock.now();
            if !has_observed {
                policy.at_work_since = Some(began);
            }
            let iteration = self.iteration(&policy, &mut stopped, before).await;
            has_observed |= !matches!(iteration, Err(_) | Ok(Iteration::NotMine));
            before = Before::Other;
            if iteration.is_ok() {
                failures = Failures::none();
            }
            match iteration {
                Ok(Iteration::Saved(saved)) => (done_at, before) = (self.clock.now(), Before::Saved(saved)),
                Ok(Iteration::Outdated) => done_at = self.clock.now(),
                Ok(Iteration::Acted) => (done_at, before) = (self.clock.now(), Before::Acted),
                Ok(idle @ (Iteration::Waits | Iteration::NotDone | Iteration::NotMine)) => {
                    // Another runner has worked meanwhile: nothing is kept.
                    if !matches!(idle, Iteration::NotMine) {
                        before = Before::Waited;
                    }
                    let (now, is_refused) = (self.clock.now(), !matches!(idle, Iteration::Waits));
                    self.clock.sleep(pause(now - done_at, now - began, is_refused)).await;
                }
                Ok(Iteration::End(end)) => return Ok(end),
                Err(error) => {
                    let (severity, part) = kind(&error);
                    let tries_again = failures.tries_again(severity, part, stopped.as_deref());
                    let stopped = stopped.as_deref().unwrap_or_default();
                    let waits = severity == Severity::Denied;
                    self.report_failure(&error, if waits { stopped } else { &[] }).await;
                    // Without an API server, no other pod starts and lifts `noout` when it is due.
                    let is_cut_off = matches!(error, RunError::Ledger(_));
                    let is_end = !tries_again && (severity != Severity::Passing || is_cut_off);
                    let due = (self.clock.now(), policy.limits.noout);
                    // An act follows an observation: an OSD whose stop is only intended is up.
                    let is_concerned = |one: &&Stopped| one.is_down || is_end || part == Part::View;
                    for one in failures.to_heal(stopped, is_end, due).into_iter().filter(is_concerned) {
                        match self.let_ceph_heal(one).await {
                            None => failures.healed(one.osd),
                            // Probably no answer: each further OSD would wait for it as long.
                            Some(Severity::Passing) if !is_end => break,
                            Some(_) => {}
                        }
                    }
                    if !tries_again {
                        return Err(error);
                    }
                    self.clock.sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
    }

    /// Reports a failure.
    ///
    /// A refused act was reported already, and is reported again only if the run waits for it.
    async fn report_failure(&mut self, error: &RunError, waiting: &[Stopped]) {
        let is_any_down = waiting.iter().any(|stopped| stopped.is_down);
        let those = waiting.iter().filter(|stopped| stopped.is_down == is_any_down);
        let osds: Vec<String> = those.map(|stopped| stopped.osd.to_string()).collect();
        let text = match (error, osds.is_empty()) {
            (RunError::Act(..), true) => return,
            (RunError::Observe(_) | RunError::Ledger(_), true) => error.to_string(),
            (_, false) => format!(
                "{error}; {} is {} for its migration: waiting until this is allowed",
                osds.join(", "),
                if is_any_down { "stopped" } else { "about to be stopped" }
            ),
        };
        self.audience.report(Event::Blind(&text)).await;
    }

    /// Lifts `noout` of a stopped OSD, so that Ceph may recover without the OSD.
    ///
    /// Returns the severity of a failure.
    async fn let_ceph_heal(&mut self, stopped: &Stopped) -> Option<Severity> {
        let act = Act::Ceph(CephAct::UnsetOsdFlags { osd: stopped.osd, noout: true, noin: false });
        let done = self.cluster.act(&act).await;
        let event = match &done {
            Ok(()) => Event::Done(&act),
            Err(failure) => Event::NotDone { act: &act, why: &failure.message },
        };
        self.audience.report(event).await;
        done.err().map(|failure| failure.severity)
    }

    /// Loads, observes, decides, does one thing, and reports it.
    ///
    /// If the iteration before waited or acted, this one may find by a partial observation that the run waits
    /// now.
    async fn iteration(
        &mut self,
        policy: &Policy,
        stopped: &mut Option<Vec<Stopped>>,
        before: Before,
    ) -> Result<Iteration, RunError> {
        match self.lease.acquire().await.map_err(|failure| RunError::Ledger(failure.into()))? {
            Tenure::Mine => {}
            Tenure::Wait(why) => {
                self.audience.report(Event::Lease(&why)).await;
                return Ok(Iteration::NotMine);
            }
            Tenure::Other(why) => {
                self.audience.report(Event::Lease(&why)).await;
                return Ok(Iteration::End(End::LeftToOther));
            }
        }
        let keeps_ledger = before.keeps_ledger();
        if !keeps_ledger {
            self.store.forget();
        }
        let (ledger, version) = self.store.load().await.map_err(RunError::Ledger)?;
        *stopped = Some(Stopped::of(&ledger));
        if let Some(halt) = plan::crash_loop_unseen(policy, &ledger) {
            if keeps_ledger && self.is_outdated(&ledger).await? {
                return Ok(Iteration::Outdated);
            }
            return Ok(self.halted_unseen(halt, stopped.as_deref().unwrap_or_default()).await);
        }
        let halt = plan::crash_loop(policy, &ledger);
        let may_wait = matches!(before, Before::Waited | Before::Acted) && halt.is_none();
        if may_wait && let Some(decided) = self.decided_by_parts(policy, &ledger).await? {
            return self.carry_out(policy, (ledger, version), decided).await;
        }
        let decided = self.decided(policy, &ledger, before).await;
        let needs_stored = decided.as_ref().map_or(halt.is_some(), |(_, next)| !next.compares_ledger());
        if needs_stored && keeps_ledger && self.is_outdated(&ledger).await? {
            return Ok(Iteration::Outdated);
        }
        match (decided, halt) {
            (Ok(decided), _) => self.carry_out(policy, (ledger, version), decided).await,
            (Err(_), Some(halt)) => {
                Ok(self.halted_unseen(halt, stopped.as_deref().unwrap_or_default()).await)
            }
            (Err(failure), None) => Err(RunError::Observe(failure)),
        }
    }

    /// Observes, and decides.
    ///
    /// If the decision does not stand by OSDs as they were listed before, all are listed, and it is decided
    /// again.
    async fn decided(
        &mut self,
        policy: &Policy,
        ledger: &Ledger,
        before: Before,
    ) -> Result<(Observation, Next), Failure> {
        let ask = |seen: &_| plan::questions(policy, ledger, seen);
        let decide = |seen: &_| match plan::crash_loop(policy, ledger) {
            Some(halt) => plan::before_halt(Next::Halt(halt), View { policy, ledger, seen }),
            None => plan::plan(policy, ledger, seen),
        };
        let seen = match before.observation(ledger, self.clock.now()) {
            Some(same) => self.cluster.ask_again(same, ask).await?,
            None => self.cluster.observe(&in_progress(ledger), ask).await?,
        };
        let next = decide(&seen);
        if next.stands_by_list(ledger) || !self.cluster.forget_list() {
            return Ok((seen, next));
        }
        drop((seen, next)); // memory: a list of all follows
        let seen = self.cluster.observe(&in_progress(ledger), ask).await?;
        let next = decide(&seen);
        Ok((seen, next))
    }

    /// Does the one thing that was decided by an observation, and reports it.
    async fn carry_out(
        &mut self,
        policy: &Policy,
        (ledger, version): (Ledger, L::Version),
        (seen, next): (Observation, Next),
    ) -> Result<Iteration, RunError> {
        match next {
            Next::Save { ledger: new, osd, why } => self.save((ledger, version), (new, osd, why), seen).await,
            Next::Do(act) => {
                // The act reads all PGs again: those of a shared observation would be copied.
                drop(seen);
                #[cfg(feature = "failpoint")]
                crate::failpoint::pause_before("", &act);
                self.act(act).await
            }
            Next::Wait(wait) => {
                self.audience
                    .report(Event::Waiting { wait: &wait, policy, ledger: &ledger, seen: &seen })
                    .await;
                Ok(Iteration::Waits)
            }
            Next::Finished(summary) => {
                self.audience.report(Event::Finished(&summary)).await;
                Ok(Iteration::End(End::Finished(summary)))
            }
            Next::Halt(halt) => Ok(self.halted(halt).await),
        }
    }

    /// Returns whether another ledger is stored by now than the one that the store had kept.
    ///
    /// A wait, an end and a halt compare the ledger with nothing, unlike an act or a save.
    async fn is_outdated(&mut self, ledger: &Ledger) -> Result<bool, RunError> {
        if !self.store.forget() {
            return Ok(false);
        }
        let (stored, _) = self.store.load().await.map_err(RunError::Ledger)?;
        Ok(stored != *ledger)
    }

    /// Saves the ledger in place of the one that was loaded, and reports it.
    async fn save(
        &mut self,
        (ledger, version): (Ledger, L::Version),
        (new, osd, why): (Ledger, Option<OsdId>, Saving),
        seen: Observation,
    ) -> Result<Iteration, RunError> {
        #[cfg(feature = "failpoint")]
        crate::failpoint::pause_at(&format!("save-{}", why.code()));
        let closed = osd.filter(|osd| !new.records.contains_key(osd));
        self.write_history(closed.and_then(|osd| ledger.records.get(&osd))).await;
        match self.store.save(&new, version).await.map_err(RunError::Observe)? {
            Saved::Stored => {
                self.audience.report(Event::Saved { osd, why: &why, ledger: &new }).await;
                Ok(Iteration::Saved(Save::of(&ledger, new, seen)))
            }
            Saved::Conflict => {
                self.audience.report(Event::Conflict).await;
                Ok(Iteration::Outdated)
            }
        }
    }

    /// Observes partly, and decides.
    ///
    /// Returns none if the run may have to do something: only a complete observation decides that.
    async fn decided_by_parts(
        &mut self,
        policy: &Policy,
        ledger: &Ledger,
    ) -> Result<Option<(Observation, Next)>, RunError> {
        let ask = |seen: &_| plan::questions(policy, ledger, seen);
        let seen = self.cluster.observe_partly(&in_progress(ledger), ask).await.map_err(RunError::Observe)?;
        let decided = seen.map(|seen| {
            let next = plan::plan(policy, ledger, &seen);
            (seen, next)
        });
        Ok(decided.filter(|(_, next)| next.stands_by_parts()))
    }

    /// Writes the history of a record before the save that closes it: a kill between the two loses nothing.
    ///
    /// A failure holds up no migration: the entry is written with a later save.
    async fn write_history(&mut self, closed: Option<&Record>) {
        let entries = self.audience.entries(closed);
        if !entries.is_empty() {
            match self.store.append(&entries).await {
                Ok(Saved::Stored) => self.audience.written(entries, Ok(())).await,
                // The save that follows finds the same conflict, and reports it.
                Ok(Saved::Conflict) => {}
                Err(failure) => self.audience.written(entries, Err(failure)).await,
            }
        }
    }

    /// Halts without an observation, and lifts `noout` before: nothing else would.
    async fn halted_unseen(&mut self, halt: Halt, stopped: &[Stopped]) -> Iteration {
        for one in Stopped::with_our_noout(stopped) {
            self.let_ceph_heal(one).await;
        }
        self.halted(halt).await
    }

    async fn halted(&mut self, halt: Halt) -> Iteration {
        self.audience.report(Event::Halted(&halt)).await;
        Iteration::End(End::Halted(halt))
    }

    async fn act(&mut self, act: Act) -> Result<Iteration, RunError> {
        match self.cluster.act(&act).await {
            Ok(()) => {
                self.audience.report(Event::Done(&act)).await;
                Ok(Iteration::Acted)
            }
            // The act is never retried here: the next observation decides.
            Err(failure) => {
                self.audience.report(Event::NotDone { act: &act, why: &failure.message }).await;
                match failure.severity {
                    Severity::Passing => Ok(Iteration::NotDone),
                    Severity::Denied | Severity::WrongPlace | Severity::NeedsPerson => {
                        Err(RunError::Act(failure, Part::of(&act)))
                    }
                }
            }
        }
    }
}

/// Result of an iteration.
enum Iteration {
    /// It saved, with what the next iteration may use again.
    Saved(Option<Box<Save>>),
    /// Another process has saved since the ledger was loaded.
    Outdated,
    Acted,
    /// The decision was to wait.
    Waits,
    /// An act was refused.
    NotDone,
    /// Another runner has the Lease. Nothing was observed.
    NotMine,
    End(End),
}

fn in_progress(ledger: &Ledger) -> BTreeSet<OsdId> {
    ledger.records.keys().copied().collect()
}

/// Returns how severe an error is, and in which part of the iteration it occurred.
fn kind(error: &RunError) -> (Severity, Part) {
    match error {
        RunError::Act(failure, part) => (failure.severity, *part),
        RunError::Observe(failure) | RunError::Ledger(LoadError::Failed(failure)) => {
            (failure.severity, Part::View)
        }
        RunError::Ledger(LoadError::Unreadable(_)) => (Severity::NeedsPerson, Part::View),
    }
}
