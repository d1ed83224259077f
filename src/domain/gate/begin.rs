//! Gates before an OSD is begun, whichever it is: what people said, the time of day, and what failed already.

use std::collections::BTreeSet;

use super::{Gate, Reason, first_not_open, rook, shut_if};
use crate::domain::guard::{Guard, is_out};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{Control, ControlKind, Observation};
use crate::domain::osd::OsdId;
use crate::domain::policy::Policy;

/// Gate before an OSD is begun.
pub fn begin(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Gate {
    first_not_open([
        held(policy, seen),
        failure_limit(policy, ledger),
        rook::migrates_none(ledger, seen),
        confirmed(policy, seen),
    ])
}

/// What holds an OSD that was recorded and is not past Stop: a word of a person, or the time of day. Past Stop none of it is
/// asked: its data lacks a copy until it is finished.
pub fn held(policy: &Policy, seen: &Observation) -> Gate {
    first_not_open([not_cancelled(policy, seen), not_paused(seen), window(policy, seen)])
}

fn control(kind: ControlKind, seen: &Observation) -> Option<&Control> {
    seen.kube.control.as_ref().filter(|control| control.kind == kind)
}

/// Whether a person cancelled, or this run is there only to put away.
pub fn is_cancelled(policy: &Policy, seen: &Observation) -> bool {
    not_cancelled(policy, seen) != Gate::Open
}

fn not_cancelled(policy: &Policy, seen: &Observation) -> Gate {
    let since = control(ControlKind::Cancel, seen).map(|control| control.since);
    let since = since.or(policy.leaves.then_some(None));
    since.map_or(Gate::Open, |since| Gate::Shut(Reason::Cancelled { since }))
}

fn not_paused(seen: &Observation) -> Gate {
    let control = control(ControlKind::Pause, seen);
    control.map_or(Gate::Open, |control| Gate::Shut(Reason::Paused { since: control.since }))
}

fn window(policy: &Policy, seen: &Observation) -> Gate {
    shut_if(!policy.is_open_at(seen.at), || Reason::OutsideWindow {
        windows: policy.windows.clone(),
        opens_at: policy.opens_at(seen.at),
    })
}

/// OSDs that failed past their stop. One that failed before it serves as it did: it is reported, and the others go on.
fn failed_past_stop(ledger: &Ledger) -> BTreeSet<OsdId> {
    let counts = |record: &&Record| record.is_committed() || is_out(Guard::LimitPastStopOnly);
    ledger.quarantined().filter(counts).map(|record| record.osd).collect()
}

/// Not more OSDs failed past their stop than the failure limit allows.
pub fn failure_limit(policy: &Policy, ledger: &Ledger) -> Gate {
    let quarantined = failed_past_stop(ledger);
    let allowed = usize::try_from(policy.limits.failures).unwrap_or(usize::MAX);
    shut_if(quarantined.len() > allowed, || Reason::FailureLimit { quarantined }).guarded()
}

fn confirmed(policy: &Policy, seen: &Observation) -> Gate {
    shut_if(!policy.is_confirmed(&seen.kube.declaration), || Reason::NotConfirmed)
}
