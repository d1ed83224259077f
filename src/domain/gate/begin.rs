//! Gates before work on any OSD starts: a person's control, the time of day, clients, and earlier failures.

use std::collections::BTreeSet;

use super::answer::{Gate, first_not_open, shut_if};
use super::{Reason, latency, rook};
use crate::domain::guard::{Guard, is_out};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{Control, ControlKind, Observation};
use crate::domain::osd::OsdId;
use crate::domain::policy::Policy;
use crate::domain::view::View;

/// Returns the gate before work on an OSD starts.
pub fn begin(view: View<'_>) -> Gate {
    first_not_open([
        held(view),
        failure_limit(view.policy, view.ledger),
        rook::migrates_none(view),
        confirmed(view),
        latency::commit_latency(view),
    ])
}

/// Returns the gate that blocks a recorded OSD before its stop: a person's control, or the time of day.
///
/// After the stop this gate is not asked: a replica of the OSD's data is missing until the OSD is finished.
pub fn held(view: View<'_>) -> Gate {
    first_not_open([not_cancelled(view), not_paused(view.seen), window(view)])
}

fn control(kind: ControlKind, seen: &Observation) -> Option<&Control> {
    seen.kube.control.as_ref().filter(|control| control.kind == kind)
}

/// Returns whether a person cancelled, or this run only cleans up for an uninstall.
pub fn is_cancelled(view: View<'_>) -> bool {
    not_cancelled(view) != Gate::Open
}

fn not_cancelled(view: View<'_>) -> Gate {
    let since = control(ControlKind::Cancel, view.seen).map(|control| control.since);
    let since = since.or(view.policy.leaves.then_some(None));
    since.map_or(Gate::Open, |since| Gate::Shut(Reason::Cancelled { since }))
}

fn not_paused(seen: &Observation) -> Gate {
    let control = control(ControlKind::Pause, seen);
    control.map_or(Gate::Open, |control| Gate::Shut(Reason::Paused { since: control.since }))
}

fn window(view: View<'_>) -> Gate {
    shut_if(!view.policy.is_open_at(view.seen.at), || Reason::OutsideWindow {
        windows: view.policy.windows.clone(),
        opens_at: view.policy.windows.opens_after(view.seen.at),
    })
}

/// Returns the OSDs that failed after their stop.
///
/// An OSD that failed before its stop still serves. It is reported, and the run continues with the others.
fn failed_past_stop(ledger: &Ledger) -> BTreeSet<OsdId> {
    let counts = |record: &&Record| record.is_committed() || is_out(Guard::LimitPastStopOnly);
    ledger.quarantined().filter(counts).map(|record| record.osd).collect()
}

/// Returns the gate that is shut if more OSDs failed after their stop than the failure limit allows.
pub fn failure_limit(policy: &Policy, ledger: &Ledger) -> Gate {
    let quarantined = failed_past_stop(ledger);
    let allowed = usize::try_from(policy.limits.failures).unwrap_or(usize::MAX);
    shut_if(quarantined.len() > allowed, || Reason::FailureLimit { quarantined }).guarded()
}

fn confirmed(view: View<'_>) -> Gate {
    shut_if(!view.is_confirmed(), || Reason::NotConfirmed)
}
