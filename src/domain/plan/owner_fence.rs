//! The owner's fence: `fence` sets and removes it, and a run keeps it until the OSDs are as declared.

use std::collections::BTreeSet;

use super::rest::Rest;
use crate::domain::gate::{self, Gate, Reason, StoppedBy};
use crate::domain::ledger::Record;
use crate::domain::next::{FenceOutcome, Next, Summary, Wait};
use crate::domain::osd::OsdId;
use crate::domain::phase::is_committed;
use crate::domain::policy::FenceCommand;
use crate::domain::temporary::{fence, owner_fence};
use crate::domain::view::View;

/// Returns the step of `fence`, which does nothing else; in a run, the step that sets the owner's fence again
/// if it is missing.
pub(super) fn next(view: View<'_>, _: &mut Rest) -> Option<Next> {
    match view.policy.fence {
        Some(FenceCommand::Set { until }) => {
            fence::restore_late(view).or_else(|| Some(set(view, view.seen.at >= until)))
        }
        Some(FenceCommand::Remove) => Some(remove(view)),
        None => keep(view),
    }
}

/// Returns the next step until the fence is in force.
///
/// If its time is over, `fence` ends. The fence stays: a reconcile that began earlier may still end.
fn set(view: View<'_>, is_over: bool) -> Next {
    let order = view.ledger.run.fence_order.as_ref().filter(|_| view.our_fence().is_some());
    let next = match order {
        Some(order) => {
            let in_force = || ended(FenceOutcome::InForce { since: order.since });
            fence::change_for_owner(view).unwrap_or_else(in_force)
        }
        None => begin(view),
    };
    match next {
        Next::Wait(Wait::Fence { reason }) if is_over => ended(FenceOutcome::NotInForce { reason }),
        Next::Save { .. } | Next::Do(_) | Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => next,
    }
}

/// Saves the order if a running operator can be fenced, and no other client has fenced it.
fn begin(view: View<'_>) -> Next {
    let kube = &view.seen.kube;
    if let Some(was) = &view.ledger.run.operator {
        return ended(FenceOutcome::ScaledByRun { name: was.name.clone() });
    }
    match gate::can_be_fenced(&view.ledger.run, view.seen) {
        Gate::Open if kube.fenceable_operator().is_some() => {}
        Gate::Open => {
            let operator = kube.operator.as_ref().map(|operator| operator.name.clone());
            return ended(FenceOutcome::NotNeeded { operator });
        }
        Gate::Shut(reason @ Reason::OperatorRuns { ends: true, .. }) => {
            return Next::Wait(Wait::Fence { reason });
        }
        Gate::Shut(Reason::OperatorRuns { name, ends, .. }) => {
            let stopped_by = StoppedBy::PersonBeforeEdit;
            return ended(FenceOutcome::Refused { reason: Reason::OperatorRuns { name, stopped_by, ends } });
        }
        Gate::Shut(reason) | Gate::Unknown(reason) => return ended(FenceOutcome::Refused { reason }),
    }
    match kube.fence.as_deref().filter(|found| view.our_fence() != Some(found)) {
        Some(found) => {
            ended(FenceOutcome::Refused { reason: Reason::FencedExternally { value: found.to_owned() } })
        }
        None => owner_fence::save(view),
    }
}

/// Returns the next step until the fence is removed, unless a run or Rook would change OSDs then.
fn remove(view: View<'_>) -> Next {
    if let Some(late) = fence::restore_late(view) {
        return late;
    }
    if view.ledger.run.fence_order.is_none() {
        return ended(match view.our_fence() {
            Some(value) => FenceOutcome::OfRun { value: value.to_owned() },
            None => FenceOutcome::Removed,
        });
    }
    let is_in_progress = |record: &&Record| record.quarantine.is_none() || is_committed(record, view.seen);
    let osds: BTreeSet<OsdId> =
        view.ledger.records.values().filter(is_in_progress).map(|record| record.osd).collect();
    if !osds.is_empty() {
        return ended(FenceOutcome::InProgress { osds });
    }
    let osds = owner_fence::changed_by_rook(view.seen);
    if !osds.is_empty() {
        return ended(FenceOutcome::ChangedByRook { osds });
    }
    fence::take_down(view.our_fence().unwrap_or_default(), view)
}

/// Sets the owner's fence again if it is missing: `fence` was killed, or another client removed the label.
///
/// A run does not wait for Rook here: each OSD waits before its stop.
fn keep(view: View<'_>) -> Option<Next> {
    if view.policy.leaves || !owner_fence::stands(view) {
        return None;
    }
    fence::change_for_owner(view).filter(|next| !matches!(next, Next::Wait(_)))
}

fn ended(outcome: FenceOutcome) -> Next {
    Next::Finished(Summary { fence: Some(outcome), ..Summary::default() })
}
