//! Rook's operator: away, kept away by the fence, or in the way. See `docs/adr/0018-beside-a-running-rook.md`.

use super::{Gate, Reason, shut_if};
use crate::domain::guard::{Guard, holds};
use crate::domain::ledger::Run;
use crate::domain::observation::{Observation, Operator};

/// Open where no operator runs.
pub(super) fn is_away(seen: &Observation) -> Gate {
    let running = seen.kube.running_operator();
    running.map_or(Gate::Open, |operator| Gate::Shut(Reason::OperatorRuns { name: operator.name.clone() }))
}

/// Open where no operator runs, or one that the fence keeps off for as long as it is up, and that has nothing of its own to do
/// with what we leave once it is down.
pub(super) fn can_be_kept_off(seen: &Observation) -> Gate {
    let Some(operator) = seen.kube.running_operator().filter(|operator| operator.honours_fence) else {
        return is_away(seen);
    };
    shut_if(seen.kube.declaration.confirmed, || Reason::RookIsConfirmedToo { name: operator.name.clone() })
}

/// What the fence, which is up, comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fenced {
    /// It is in force, or nobody is there to be kept off.
    InForce,
    /// Rook was heard: this is to be remembered, for events are forgotten within the hour.
    Heard,
    /// Rook has not said yet that it honours it.
    NotHeard(Reason),
}

/// Whether a running operator is kept off by the fence that is up. Its reconciles of one CephCluster follow each other: one
/// that had read a version with the fence, and skipped it, began after every other one had ended.
pub fn fenced(run: &Run, seen: &Observation) -> Fenced {
    let Some(operator) = seen.kube.running_operator().filter(|operator| operator.honours_fence) else {
        return Fenced::InForce;
    };
    if holds(Guard::FenceHeard, run.fence_heard) {
        return Fenced::InForce;
    }
    let heard = seen.kube.skipped.zip(run.fence_after).is_some_and(|(skipped, after)| skipped > after);
    if heard { Fenced::Heard } else { not_heard(operator) }
}

fn not_heard(operator: &Operator) -> Fenced {
    Fenced::NotHeard(Reason::FenceNotHeard { name: operator.name.clone() })
}
