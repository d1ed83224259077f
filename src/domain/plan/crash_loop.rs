//! Halts a run whose pods end again and again without progress, long before its Job's `backoffLimit` is
//! reached.
//!
//! Ten starts take an hour or two. A thousand starts take days, in which no person learns of it.

use crate::domain::ledger::{Ledger, Progress};
use crate::domain::next::{Halt, Next, Saving, Wait};
use crate::domain::policy::Policy;
use crate::domain::view::View;

/// Consecutive starts of one Job that may make no progress.
///
/// Kubernetes pauses up to ten minutes between them (`MaxJobPodFailureBackOff` in its
/// pkg/controller/job/job_controller.go), and a run observes for five minutes without success before it ends.
/// Ten starts take more than an hour: a temporary fault has passed by then.
pub const CRASH_LOOP: u32 = 10;

/// Returns a halt if the run was started without progress so often that a person must investigate.
///
/// Needs only the ledger: the cause may be that nothing else can be observed.
pub fn crash_loop(policy: &Policy, ledger: &Ledger) -> Option<Halt> {
    let starts = policy.failed_pods.saturating_sub(of(policy, ledger).map_or(0, |known| known.failed_pods));
    (starts >= CRASH_LOOP).then(|| Halt::CrashLoop { job: policy.run.clone(), starts })
}

/// Returns a halt if a pod that was to halt did not come so far, so that this one must not observe first.
///
/// The observation itself may end the pod: it needs more memory than the pod has, or it panics.
pub fn crash_loop_unseen(policy: &Policy, ledger: &Ledger) -> Option<Halt> {
    crash_loop(policy, ledger)
        .filter(|halt| matches!(halt, Halt::CrashLoop { starts, .. } if *starts > CRASH_LOOP))
}

/// Records progress in the ledger.
///
/// Each save is progress. So is less data left to recover than an earlier pod saw, which a pod records if it
/// had predecessors.
pub(super) fn noted(next: Next, view: View<'_>) -> Next {
    let progress =
        |failed_pods, left_bytes| Progress { job: view.policy.run.clone(), failed_pods, left_bytes };
    match next {
        Next::Save { ledger: mut new, osd, why } => {
            // Without a failed pod there is nothing to note, and the entry of another Job, which may have
            // pods again, stays.
            if view.policy.failed_pods > 0 {
                new.run.progress = Some(progress(view.policy.failed_pods, None));
            }
            Next::Save { ledger: new, osd, why }
        }
        Next::Wait(Wait::ActiveClean { osd, bytes, .. }) => {
            let known = of(view.policy, view.ledger);
            let before = known.map_or(0, |known| known.failed_pods);
            let failed_pods = match known.and_then(|known| known.left_bytes) {
                _ if view.policy.failed_pods <= before => return next,
                None => before,
                Some(left) if bytes < left => view.policy.failed_pods,
                Some(_) => return next,
            };
            let mut ledger = view.ledger.clone();
            ledger.run.progress = Some(progress(failed_pods, Some(bytes)));
            Next::Save { ledger, osd: Some(osd), why: Saving::Progress }
        }
        Next::Do(_) | Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => next,
    }
}

/// Returns the ledger's progress entry of this Job.
///
/// An entry of another Job does not count: each Job has its own count.
fn of<'l>(policy: &Policy, ledger: &'l Ledger) -> Option<&'l Progress> {
    ledger.run.progress.as_ref().filter(|progress| progress.job == policy.run)
}
