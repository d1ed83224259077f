//! OSDs in progress: the step of the first record that can do something.

use super::batch;
use super::nodes;
use super::removals;
use super::rest::Rest;
use super::unrequested;
use super::wanted::is_wanted;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::ledger::Record;
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{Observation, Slot, SlotState};
use crate::domain::phase;
use crate::domain::step::Step;
use crate::domain::temporary::operator;
use crate::domain::view::View;

/// Returns the step of the OSDs in progress; `None` if there are none.
///
/// While all of them wait, another new OSD may be started on the same node, unless a stopped OSD waits for an
/// orphaned agent. So may the removal of another OSD of a node that is removed as a whole, and the migration
/// of another OSD of the same host.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    match of_records(view) {
        None => rest.wait.take(),
        Some(next @ Next::Wait(_)) if rest.wait.is_none() => {
            let one_more = nodes::one_more_on_its_node(view)
                .or_else(|| removals::one_more_of_its_node(view))
                .or_else(|| batch::one_more(view));
            one_more.filter(|_| !halts(view)).or(Some(next))
        }
        Some(next) => Some(next),
    }
}

/// Returns the step of the first open record that can do something; otherwise the first wait.
///
/// An OSD whose last act failed has its turn after the others: it holds none of them up.
fn of_records(view: View<'_>) -> Option<Next> {
    let (mut wait, mut again) = (None, None);
    for record in view.ledger.in_flight() {
        match unrequested::inventory(record, view) {
            Some(next @ Next::Wait(_)) => {
                wait = wait.or(Some(next));
                continue;
            }
            Some(next) => return Some(next),
            None => {}
        }
        let next = of_record(record, view);
        match next {
            Next::Wait(_) => wait = wait.or(Some(next)),
            Next::Halt(_) => return Some(before_the_halt(view).unwrap_or(next)),
            Next::Do(_) if view.seen.failed.contains(record.osd) => again = again.or(Some(next)),
            Next::Save { .. } | Next::Do(_) | Next::Finished(_) => return Some(next),
        }
    }
    again.or(wait)
}

/// Returns the step of another OSD that is down for its migration, and goes on by itself: a run that ends
/// would leave it down.
///
/// Nothing else begins.
fn before_the_halt(view: View<'_>) -> Option<Next> {
    let is_down = |record: &&Record| {
        let is_stopped = record.is_committed() || phase::is_committed(record, view.seen);
        is_stopped && !operator::is_up_again(record, view.seen)
    };
    let (mut wait, mut again) = (None, None);
    for record in view.ledger.in_flight().filter(is_down) {
        let next = of_record(record, view);
        match &next {
            Next::Save { .. } => return Some(next),
            Next::Do(_) if !view.seen.failed.contains(record.osd) => return Some(next),
            Next::Do(_) if view.seen.failed.denied(record.osd).is_none() => again = again.or(Some(next)),
            Next::Wait(one) if has_a_limit(one, record, view) => wait = wait.or(Some(next)),
            Next::Do(_) | Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => {}
        }
    }
    again.or(wait)
}

/// Returns whether a stopped OSD is started again, or quarantined, when a wait takes too long.
fn has_a_limit(wait: &Wait, record: &Record, view: View<'_>) -> bool {
    // The stop of an OSD that still exists is reverted.
    let is_old = |slot: &Slot| slot.state == SlotState::Exists && slot.fsid == Some(record.old);
    let is_away = matches!(
        wait,
        Wait::Gate { reason: Reason::NodeNotReady { .. }, .. }
            | Wait::UnsafeToWipe { reason: Reason::NodeNotReady { .. } | Reason::ImageChanged { .. }, .. }
    );
    // These may last, and nothing reverts the stop meanwhile.
    let may_last = matches!(
        wait,
        Wait::Gate { reason: Reason::FenceNotAcknowledged { .. } | Reason::AmbiguousObjects { .. }, .. }
    );
    is_away || wait.has_a_limit() || (view.slot(record.osd).is_some_and(is_old) && !may_last)
}

/// Returns whether an OSD in progress needs a person: nothing else begins.
fn halts(view: View<'_>) -> bool {
    view.ledger.in_flight().any(|record| matches!(of_record(record, view), Next::Halt(_)))
}

/// Returns what each OSD in progress waits for, while the run waits.
///
/// The run waits for the first of them. The others may get their data back meanwhile.
pub fn waits(view: View<'_>) -> Vec<Wait> {
    let of_one = |record| match of_record(record, view) {
        Next::Wait(wait) => Some(wait),
        Next::Save { .. } | Next::Do(_) | Next::Finished(_) | Next::Halt(_) => None,
    };
    view.ledger.in_flight().filter_map(of_one).collect()
}

/// Returns the step of an open record, which may be held before it begins.
fn of_record(record: &Record, view: View<'_>) -> Next {
    let is_wanted = is_wanted(record, view);
    let step = Step::of(record, is_wanted, view);
    let held = gate::first_of([gate::held(view), waits_for_clients(record, view)]);
    let next = match held {
        Gate::Shut(reason) | Gate::Unknown(reason) if step.begins() => step.held(reason),
        Gate::Open | Gate::Shut(_) | Gate::Unknown(_) => without_operator(&step, view),
    };
    step.unless_twice(next)
}

/// Returns the gate of an OSD that is recorded beside others, and that nothing was done for yet: the next one
/// begins only while clients do not notice those that are down or get their data back.
fn waits_for_clients(record: &Record, view: View<'_>) -> Gate {
    let is_beside = || view.ledger.in_flight().any(|other| other.osd != record.osd && other.is_committed());
    let may_wait = record.stop_intended_at.is_none() && !record.is_committed() && is_beside();
    if may_wait { gate::commit_latency(view) } else { Gate::Open }
}

/// Returns the step of an open record.
///
/// If Rook's operator was restored while the OSD waited for its stop, the operator is first scaled to 0
/// again.
fn without_operator(step: &Step<'_>, view: View<'_>) -> Next {
    let next = step.next();
    let Next::Wait(Wait::Gate { reason, .. }) = &next else { return next };
    let gate = Gate::Shut(reason.clone());
    let is_open = |imagined: &Observation| {
        let next = Step::of(step.record, step.facts.wanted, view.imagining(imagined)).next();
        // The API server, and Ceph for a forecast, are asked last, after the operator is scaled down.
        let asks = |reason: &Reason| {
            matches!(
                reason,
                Reason::AdmissionUnknown { why: None, .. } | Reason::EmptyingUnknown { why: None, .. }
            )
        };
        !matches!(&next, Next::Wait(wait) if !matches!(wait, Wait::Gate { reason, .. } if asks(reason)))
    };
    let is_about_stop = step.begins();
    let away = is_about_stop.then(|| operator::change(&gate, is_open, view)).flatten();
    away.unwrap_or(next)
}
