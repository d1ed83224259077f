//! The fence: a label of the CephCluster that keeps Rook from reconciling it.

use crate::domain::act::{Act, KubeAct};
use crate::domain::gate::{self, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{FENCE, Record};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::osd::OsdId;
use crate::domain::view::View;

/// Record or person that needs the fence.
#[derive(Clone, Copy)]
enum NeededFor<'a> {
    /// A record, from its stop until its new OSD is up.
    Record(&'a Record),
    /// The owner, who is about to edit the CephCluster.
    Owner,
}

/// Returns the next step until the fence is in force; `None` once it is.
///
/// The fence is named after the record that it is first set for, and stays for the records after it.
pub(crate) fn change(record: &Record, view: View<'_>) -> Option<Next> {
    let ours = format!("{FENCE}{}", record.id);
    NeededFor::Record(record).change(view.our_fence().unwrap_or(&ours), view)
}

/// Returns the next step until the fence that the owner ordered is in force; `None` once it is.
///
/// The fence must be in the ledger.
pub(crate) fn change_for_owner(view: View<'_>) -> Option<Next> {
    NeededFor::Owner.change(view.our_fence()?, view)
}

impl NeededFor<'_> {
    fn change(self, value: &str, view: View<'_>) -> Option<Next> {
        match view.seen.kube.fence.as_deref() {
            Some(seen) if seen == value => self.until_in_force(value, view),
            // The fence is not saved yet, or was removed: Rook acknowledged an earlier one.
            None if !passes(Guard::FenceSavedFirst, is_saved(view)) => {
                let mut ledger = view.ledger.clone();
                ledger.run.fence = Some(value.to_owned());
                (ledger.run.fence_after, ledger.run.fence_acknowledged) =
                    (view.seen.kube.cluster_revision(), false);
                if view.seen.kube.fenceable_operator().is_some() {
                    ledger.run.note_fence(&view.policy.run, view.seen.at);
                }
                Some(Next::Save { ledger, osd: self.osd(), why: Saving::Fence })
            }
            None => Some(self.set(value)),
            Some(_) if is_out(Guard::NotFencedExternally) => None,
            Some(other) => Some(self.wait(Reason::FencedExternally { value: other.to_owned() })),
        }
    }

    /// Returns the next step until a running Rook has acknowledged the fence, which is set.
    fn until_in_force(self, value: &str, view: View<'_>) -> Option<Next> {
        match gate::fenced(&view.ledger.run, view.seen) {
            gate::Fenced::InForce => None,
            gate::Fenced::Unmarked => Some(self.set(value)),
            gate::Fenced::Acknowledged => Some(save_acknowledged(self.osd(), view)),
            gate::Fenced::NotAcknowledged(reason) => Some(self.wait(reason)),
        }
    }

    fn set(self, value: &str) -> Next {
        let record = match self {
            Self::Record(record) => Some((record.osd, record.id.clone())),
            Self::Owner => None,
        };
        Next::Do(Act::Kube(KubeAct::Fence { record, value: value.to_owned() }))
    }

    fn wait(self, reason: Reason) -> Next {
        Next::Wait(match self {
            Self::Record(record) => Wait::Gate { osd: record.osd, reason },
            Self::Owner => Wait::Fence { reason },
        })
    }

    fn osd(self) -> Option<OsdId> {
        match self {
            Self::Record(record) => Some(record.osd),
            Self::Owner => None,
        }
    }
}

/// Returns whether the ledger has the fence, and it was not set since.
///
/// A person who removes the label leaves the annotation. The fence is saved once more then, so that a frozen
/// runner can't save an acknowledgement that was for the removed label.
fn is_saved(view: View<'_>) -> bool {
    let run = &view.ledger.run;
    let was_set = run.fence_after.zip(view.seen.kube.fenced_at).is_some_and(|(after, at)| at >= after);
    view.our_fence().is_some() && !run.fence_acknowledged && !was_set
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

/// Removes the fence, then clears its entry, and with it the owner's order.
pub(crate) fn take_down(value: &str, view: View<'_>) -> Next {
    if view.seen.kube.fence.as_deref() == Some(value) {
        return Next::Do(Act::Kube(KubeAct::Unfence { value: value.to_owned() }));
    }
    let mut ledger = view.ledger.clone();
    ledger.run.last_fence = ledger.run.fence.take();
    (ledger.run.fence_after, ledger.run.fence_acknowledged) = (None, false);
    ledger.run.fence_order = None;
    ledger.run.note_unfenced(view.seen.at);
    Next::Save { ledger, osd: None, why: Saving::Unfenced }
}

/// Returns the next step if Rook has acknowledged the fence that osd-migrate has set, and that is not saved.
///
/// Rook's event about it is deleted after an hour, also while a pause or a closed window holds the run.
pub(crate) fn acknowledged(view: View<'_>) -> Option<Next> {
    view.our_fence().filter(|ours| view.seen.kube.fence.as_deref() == Some(*ours))?;
    let is_acknowledged = gate::fenced(&view.ledger.run, view.seen) == gate::Fenced::Acknowledged;
    is_acknowledged.then(|| save_acknowledged(None, view))
}

/// Returns the same step before a fence is removed that stays if Rook has acknowledged it.
pub(crate) fn acknowledged_to_stay(view: View<'_>) -> Option<Next> {
    acknowledged(view).filter(|_| gate::needs_lasting_fence(view.seen))
}

fn save_acknowledged(osd: Option<OsdId>, view: View<'_>) -> Next {
    let mut ledger = view.ledger.clone();
    ledger.run.fence_acknowledged = true;
    ledger.run.forget_that_rook_hangs();
    Next::Save { ledger, osd, why: Saving::FenceAcknowledged }
}

/// Returns why the fence that osd-migrate has set is not in force: a running Rook has yet to acknowledge it.
pub(crate) fn unacknowledged(view: View<'_>) -> Option<Reason> {
    view.our_fence().filter(|ours| view.seen.kube.fence.as_deref() == Some(*ours))?;
    match gate::fenced(&view.ledger.run, view.seen) {
        gate::Fenced::NotAcknowledged(reason) => Some(reason),
        gate::Fenced::InForce | gate::Fenced::Unmarked | gate::Fenced::Acknowledged => None,
    }
}

/// Returns whether a fence of osd-migrate is set.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    let run = &view.ledger.run;
    let is_ours = |value: &String| [&run.fence, &run.last_fence].contains(&&Some(value.clone()));
    view.seen.kube.fence.as_ref().is_some_and(is_ours)
}
