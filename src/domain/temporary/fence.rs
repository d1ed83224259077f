//! The fence: a label of the CephCluster that keeps Rook from reconciling it.

use crate::domain::act::{Act, KubeAct};
use crate::domain::gate::{self, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{FENCE, Record};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::view::View;

/// Returns the next step until the fence is in force; `None` once it is.
///
/// The fence is named after the record that it is first set for, and stays for the records after it.
pub(crate) fn change(record: &Record, view: View<'_>) -> Option<Next> {
    let ours = format!("{FENCE}{}", record.id);
    let value = view.our_fence().unwrap_or(&ours);
    let set = || {
        let (osd, record) = (record.osd, record.id.clone());
        Some(Next::Do(Act::Kube(KubeAct::Fence { osd, record, value: value.to_owned() })))
    };
    match view.seen.kube.fence.as_deref() {
        Some(seen) if seen == value => until_in_force(record, view, set),
        // The fence was removed: Rook's acknowledgement was for an earlier one.
        None if !passes(Guard::FenceSavedFirst, is_saved(view)) => {
            let mut ledger = view.ledger.clone();
            ledger.run.fence = Some(value.to_owned());
            (ledger.run.fence_after, ledger.run.fence_acknowledged) =
                (view.seen.kube.cluster_revision(), false);
            Some(Next::Save { ledger, osd: Some(record.osd), why: Saving::Fence })
        }
        None => set(),
        Some(_) if is_out(Guard::NotFencedExternally) => None,
        Some(other) => Some(Next::Wait(Wait::Gate {
            osd: record.osd,
            reason: Reason::FencedExternally { value: other.to_owned() },
        })),
    }
}

fn is_saved(view: View<'_>) -> bool {
    view.our_fence().is_some() && !view.ledger.run.fence_acknowledged
}

/// Returns the next step until a running Rook has acknowledged the fence, which is set.
fn until_in_force(record: &Record, view: View<'_>, set: impl FnOnce() -> Option<Next>) -> Option<Next> {
    match gate::fenced(&view.ledger.run, view.seen) {
        gate::Fenced::InForce => None,
        gate::Fenced::Unmarked => set(),
        gate::Fenced::Acknowledged => {
            let mut ledger = view.ledger.clone();
            ledger.run.fence_acknowledged = true;
            Some(Next::Save { ledger, osd: Some(record.osd), why: Saving::FenceAcknowledged })
        }
        gate::Fenced::NotAcknowledged(reason) => Some(Next::Wait(Wait::Gate { osd: record.osd, reason })),
    }
}

/// Returns the next step until the fence is removed and its entry cleared; `None` if that is done.
pub(crate) fn restore(view: View<'_>) -> Option<Next> {
    restore_late(view).or_else(|| view.our_fence().map(|value| take_down(value, view)))
}

/// Removes a fence that a frozen runner set again.
///
/// An older fence can't come back: a later one changed the CephCluster.
pub(crate) fn restore_late(view: View<'_>) -> Option<Next> {
    let run = &view.ledger.run;
    let is_late =
        |value: &&String| run.last_fence.as_ref() == Some(*value) && run.fence.as_ref() != Some(*value);
    let value = view.seen.kube.fence.as_ref().filter(is_late)?;
    Some(Next::Do(Act::Kube(KubeAct::Unfence { value: value.clone() })))
}

/// Removes the fence, then clears its entry.
pub(crate) fn take_down(value: &str, view: View<'_>) -> Next {
    if view.seen.kube.fence.as_deref() == Some(value) {
        return Next::Do(Act::Kube(KubeAct::Unfence { value: value.to_owned() }));
    }
    let mut ledger = view.ledger.clone();
    ledger.run.last_fence = ledger.run.fence.take();
    (ledger.run.fence_after, ledger.run.fence_acknowledged) = (None, false);
    Next::Save { ledger, osd: None, why: Saving::Unfenced }
}

/// Returns whether a fence of osd-migrate is set.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    let run = &view.ledger.run;
    let is_ours = |value: &String| [&run.fence, &run.last_fence].contains(&&Some(value.clone()));
    view.seen.kube.fence.as_ref().is_some_and(is_ours)
}
