//! A run whose pods end again and again without having got anywhere calls a person, long before its Job's `backoffLimit` is reached:
//! ten starts take an hour or two, a thousand take days, in which nobody is told.

use crate::domain::ledger::{Ledger, Progress};
use crate::domain::next::{Halt, Next, Saving, Wait};
use crate::domain::policy::Policy;

/// Starts of one Job that may come to nothing, one after the other. (With the pauses that Kubernetes makes between them, up to six
/// minutes, and the five minutes that a run looks in vain before it ends, more than an hour: whatever passes by itself has passed.)
pub const STARTS_IN_VAIN: u32 = 10;

/// Whether the run has been started in vain so often that it is for a person to look. Needs nothing but the ledger: what lets no run get
/// anywhere may be that nothing else can be looked at.
pub fn in_vain(policy: &Policy, ledger: &Ledger) -> Option<Halt> {
    let starts = policy.failed_pods.saturating_sub(of(policy, ledger).failed_pods);
    (starts >= STARTS_IN_VAIN).then(|| Halt::StartsInVain { job: policy.run.clone(), starts })
}

/// Each save is progress, and so is less data to come back than an earlier pod saw: that is noted in the ledger, by pods that
/// had predecessors.
pub(super) fn noted(next: Next, policy: &Policy, ledger: &Ledger) -> Next {
    let failed_pods = policy.failed_pods;
    let known = of(policy, ledger);
    match next {
        Next::Save { ledger: mut new, osd, why } => {
            new.run.progress = (failed_pods > 0).then(|| Progress {
                job: policy.run.clone(),
                failed_pods,
                left_bytes: None,
            });
            Next::Save { ledger: new, osd, why }
        }
        Next::Wait(Wait::ActiveClean { osd, bytes, .. }) if failed_pods > known.failed_pods => {
            let noted = match known.left_bytes {
                None => Progress { left_bytes: Some(bytes), ..known },
                Some(left) if bytes < left => Progress { failed_pods, left_bytes: Some(bytes), ..known },
                Some(_) => return next,
            };
            let mut ledger = ledger.clone();
            ledger.run.progress = Some(noted);
            Next::Save { ledger, osd: Some(osd), why: Saving::Progress }
        }
        Next::Do(_) | Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => next,
    }
}

/// What the ledger knows of this Job. Of another one it says nothing: each begins with a count of its own.
fn of(policy: &Policy, ledger: &Ledger) -> Progress {
    let none = || Progress { job: policy.run.clone(), failed_pods: 0, left_bytes: None };
    ledger.run.progress.clone().filter(|progress| progress.job == policy.run).unwrap_or_else(none)
}
