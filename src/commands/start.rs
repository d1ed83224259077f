//! `start`: Helm's hook after an install or an upgrade.

use crate::exit::{Exit, not_seen};
use crate::k8s::{CRON_JOB, K8s, Started};
use crate::live::kube_failure;

/// Creates the Job of this revision after an install or an upgrade, and returns at once.
pub(super) async fn start(k8s: &K8s, revision: u32) -> Exit {
    match k8s.start_run(revision).await {
        Ok(Started::Created(job)) => {
            tracing::info!(
                "created Job {job} from CronJob {CRON_JOB}. See: until kubectl -n {} logs --follow job/{job}; do sleep 2; \
                 done",
                k8s.namespace()
            );
            Exit::Finished
        }
        Ok(Started::Already(job)) => {
            tracing::info!("Job {job} of this revision already exists: nothing was created");
            Exit::Finished
        }
        Err(error) => not_seen(&kube_failure(error)),
    }
}
