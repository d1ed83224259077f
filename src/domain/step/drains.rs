//! How many OSDs a drain of a node may take down while one of ours is stopped: none. Rook's PodDisruptionBudget counts an OSD whose
//! Deployment is at 0 as none that is missing. See `docs/adr/0021-drains-wait-for-us.md`.

use super::INTENT_MINUTES;
use crate::domain::act::Act;
use crate::domain::guard::{Guard, holds};
use crate::domain::ledger::{FormerBudget, Ledger, Record};
use crate::domain::next::{Next, Saving};
use crate::domain::observation::{Observation, OsdBudget};
use crate::domain::phase;

/// Seconds that the budget has to be as somebody else wrote it before it is limited again. Each write of Rook's makes it look once
/// more, and then it writes over who answered meanwhile: up to 3.2 s after its first write; an answer after 2 s and more stayed in
/// 16 of 16 tries (1.20.6).
const QUIET_SECONDS: i64 = 5;

/// Minutes that the pod of a finished OSD has to be ready: probes ask each 10 s. One that never is does not keep drains off for good.
const READY_MINUTES: i64 = 1;

/// What is next about the budget, whatever phase an OSD is in: at 0 while one is past its stop; as it was once none is, nor is
/// about to be stopped.
pub fn next(ledger: &Ledger, seen: &Observation) -> Option<Next> {
    let is_any = |is: fn(&Record, &Observation) -> bool| {
        let at_work = |record: &&Record| !record.closing || is_getting_ready(record, seen);
        let mut open = ledger.in_flight().filter(|record| record.stop_intended_at.is_some()).filter(at_work);
        open.any(|record| is(record, seen))
    };
    if is_any(is_past_stop) {
        return limit(ledger, seen)
            .filter(|next| !(matches!(next, Next::Do(_)) && is_written_just_now(ledger, seen)));
    }
    if is_any(is_about_to_stop) { None } else { put_back(ledger, seen) }
}

/// What is next until no OSD may be evicted; none where that is so, or where no budget is there.
///
/// What it was is saved before each time that it is limited, with the generation on which that is to be done: who decided before that
/// save that nothing is left to put back can't write it down any more.
pub(super) fn limit(ledger: &Ledger, seen: &Observation) -> Option<Next> {
    let found = seen.kube.osd_budget.as_ref()?;
    let (saved, last) = (&ledger.run.budget, &ledger.run.last_budget);
    if found.max_unavailable == 0 {
        // By a runner that was frozen before it did it, and which was taken for nobody meanwhile.
        let late = last.as_ref().filter(|last| saved.is_none() && is_ours(found, last))?;
        return Some(save(Some(late.clone()), ledger, Saving::Budget));
    }
    if !holds(Guard::BudgetSavedFirst, saved.as_ref().is_some_and(|was| is_as_saved(found, was))) {
        let OsdBudget { max_unavailable, generation, .. } = *found;
        let now = FormerBudget { max_unavailable, generation: Some(generation), saved_at: Some(seen.at) };
        return Some(save(Some(now), ledger, Saving::Budget));
    }
    Some(write(found, 0))
}

/// What is next until it is as it was. What somebody else wrote since, or took away, is theirs.
fn put_back(ledger: &Ledger, seen: &Observation) -> Option<Next> {
    let (saved, last) = (&ledger.run.budget, &ledger.run.last_budget);
    let was = saved.as_ref().or(last.as_ref())?;
    if let Some(found) = seen.kube.osd_budget.as_ref().filter(|found| is_ours(found, was)) {
        return Some(write(found, was.max_unavailable));
    }
    saved.is_some().then(|| save(None, ledger, Saving::BudgetBack))
}

/// A finished OSD whose Deployment has no ready pod yet. Put back now, the budget would wake Rook, which leaves such an OSD out of it
/// and restarts it for its own words: for seconds another one could be evicted beside it (seen with 1.20.6).
pub(super) fn is_getting_ready(record: &Record, seen: &Observation) -> bool {
    let closing = Saving::Closing.word();
    let since = record.milestones.iter().rev().find(|(what, _)| what == closing).map(|(_, at)| *at);
    let is_recent = since.is_some_and(|at| (seen.at - at).num_minutes() < READY_MINUTES);
    let daemon = seen.kube.daemons.get(&record.osd);
    record.closing && is_recent && daemon.is_some_and(|daemon| daemon.replicas > 0 && !daemon.rolled_out)
}

/// Nobody has written it since it was saved, we neither.
fn is_as_saved(found: &OsdBudget, was: &FormerBudget) -> bool {
    was.max_unavailable == found.max_unavailable && was.generation == Some(found.generation)
}

/// Written by somebody else after our stop, and saved as it is since. Rook does so while an OSD has no Deployment, or is up and
/// fills: each write of its own makes it look again (`pdbPredicate`), until one finds that nothing has changed.
fn is_written_just_now(ledger: &Ledger, seen: &Observation) -> bool {
    let saved = ledger.run.budget.as_ref().and_then(|was| was.saved_at);
    saved.is_some_and(|at| (seen.at - at).num_seconds() < QUIET_SECONDS)
}

/// It is at 0 by us, and nobody has written it since.
fn is_ours(found: &OsdBudget, was: &FormerBudget) -> bool {
    let is_next = was.generation.is_none_or(|generation| found.generation == generation + 1);
    found.max_unavailable == 0 && was.max_unavailable > 0 && is_next
}

fn is_past_stop(record: &Record, seen: &Observation) -> bool {
    !phase::facts(record, true, seen).before_stop()
}

/// An intent that has become old is meant anew before anything is done: meanwhile drains have their turn.
fn is_about_to_stop(record: &Record, seen: &Observation) -> bool {
    let is_recent = record.stop_intended_at.is_some_and(|at| (seen.at - at).num_minutes() < INTENT_MINUTES);
    is_recent && record.turned_back.is_none()
}

fn write(found: &OsdBudget, max_unavailable: u32) -> Next {
    let resource_version = found.resource_version.clone();
    Next::Do(Act::LimitDrains { resource_version, max_unavailable })
}

/// What it was, or that it is as it was: then what is forgotten stays the last that there was.
fn save(budget: Option<FormerBudget>, ledger: &Ledger, why: Saving) -> Next {
    let mut ledger = ledger.clone();
    ledger.run.last_budget =
        std::mem::replace(&mut ledger.run.budget, budget).filter(|_| ledger.run.budget.is_none());
    Next::Save { ledger, osd: None, why }
}
