//! A run whose pods end again and again without having got anywhere calls a person, long before its Job's `backoffLimit` is reached:
//! ten starts take an hour or two, a thousand take days, in which nobody is told.

use crate::domain::ledger::{Ledger, Progress};
use crate::domain::next::{Halt, Next, Saving, Wait};
use crate::domain::policy::Policy;

/// Starts of one Job that may come to nothing, one after the other. (With the pauses that Kubernetes makes between them, up to six
/// minutes, and the five minutes that a run looks in vain before it ends, more than an hour: whatever passes by itself has passed.)
pub const CRASH_LOOP: u32 = 10;

/// Whether the run has been started in vain so often that it is for a person to look. Needs nothing but the ledger: what lets no run get
/// anywhere may be that nothing else can be looked at.
pub fn crash_loop(policy: &Policy, ledger: &Ledger) -> Option<Halt> {
    let starts = policy.failed_pods.saturating_sub(of(policy, ledger).map_or(0, |known| known.failed_pods));
    (starts >= CRASH_LOOP).then(|| Halt::CrashLoop { job: policy.run.clone(), starts })
}

/// Each save is progress, and so is less data to come back than an earlier pod saw: that is noted in the ledger, by pods that
/// had predecessors.
pub(super) fn noted(next: Next, policy: &Policy, ledger: &Ledger) -> Next {
    let progress = |failed_pods, left_bytes| Progress { job: policy.run.clone(), failed_pods, left_bytes };
    match next {
        Next::Save { ledger: mut new, osd, why } => {
            new.run.progress = (policy.failed_pods > 0).then(|| progress(policy.failed_pods, None));
            Next::Save { ledger: new, osd, why }
        }
        Next::Wait(Wait::ActiveClean { osd, bytes, .. }) => {
            let known = of(policy, ledger);
            let before = known.map_or(0, |known| known.failed_pods);
            let failed_pods = match known.and_then(|known| known.left_bytes) {
                _ if policy.failed_pods <= before => return next,
                None => before,
                Some(left) if bytes < left => policy.failed_pods,
                Some(_) => return next,
            };
            let mut ledger = ledger.clone();
            ledger.run.progress = Some(progress(failed_pods, Some(bytes)));
            Next::Save { ledger, osd: Some(osd), why: Saving::Progress }
        }
        Next::Do(_) | Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => next,
    }
}

/// What the ledger knows of this Job. Of another one it says nothing: each begins with a count of its own.
fn of<'l>(policy: &Policy, ledger: &'l Ledger) -> Option<&'l Progress> {
    ledger.run.progress.as_ref().filter(|progress| progress.job == policy.run)
}
