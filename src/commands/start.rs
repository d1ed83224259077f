//! `start`: Helm's hook after an install or an upgrade.

use crate::exit::{Exit, not_seen};
use crate::k8s::{CRON_JOB, K8s, Started};
use crate::live::kube_failure;

/// Creates the Job of this revision after an install or an upgrade, and returns at once.
pub(super) async fn start(k8s: &K8s, revision: u32) -> Exit {
    match k8s.start_run(revision).await {
        Ok(Started::Made(job)) => {
            tracing::info!("job {job} was made from cronjob/{CRON_JOB}: kubectl logs --follow job/{job}");
            Exit::Finished
        }
        Ok(Started::Already(job)) => {
            tracing::info!("job {job} of this revision is there already: nothing was made");
            Exit::Finished
        }
        Err(error) => not_seen(&kube_failure(error)),
    }
}
