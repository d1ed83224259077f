//! Lease, acquired for this pod.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::k8s::{Holder, K8s, K8sError, LeaseOutcome, Own};
use crate::live::clock::now;
use crate::live::failure::kube_failure;
use crate::ports::{Failure, Tenure};

/// Interval in which a runner with short iterations renews the Lease.
///
/// After 60 s without a renewal other runners may take it over: three renewals may fail. A renewal is two
/// requests, which were half of those of a run that waits with an interval of 5 s.
const RENEW_SECONDS: i64 = 15;

/// Lease, acquired for this pod.
pub struct PodLease {
    k8s: Arc<K8s>,
    me: Option<Holder>,
    held_at: DateTime<Utc>,
}

impl PodLease {
    /// Creates the Lease for this pod.
    ///
    /// Outside a Job it neither takes the Lease over nor keeps another runner out.
    pub fn new(k8s: Arc<K8s>, own: Option<&Own>) -> Self {
        Self { k8s, me: own.map(Holder::of), held_at: DateTime::UNIX_EPOCH }
    }
}

impl crate::ports::Lease for PodLease {
    async fn acquire(&mut self) -> Result<Tenure, Failure> {
        let Some(me) = &self.me else { return Ok(Tenure::Mine) };
        let now = now();
        if (now - self.held_at).num_seconds() < RENEW_SECONDS {
            return Ok(Tenure::Mine);
        }
        let outcome = match self.k8s.acquire(me, now).await {
            Ok(outcome) => outcome,
            Err(K8sError::Conflict { .. } | K8sError::AlreadyExists(_)) => {
                return Ok(Tenure::Wait(
                    "another pod acquired the Lease at the same time; trying again".to_owned(),
                ));
            }
            Err(error) => return Err(kube_failure(error)),
        };
        Ok(match outcome {
            LeaseOutcome::Mine | LeaseOutcome::TakenOver { .. } => {
                self.held_at = now;
                Tenure::Mine
            }
            LeaseOutcome::OwnedByLiveJob { job, pod } => Tenure::Other(format!(
                "Job {job} is already running (pod {pod}): leaving the work to that Job"
            )),
            LeaseOutcome::WaitForOldPod { pod, .. } => {
                Tenure::Wait(format!("waiting until pod {pod} of an earlier run has ended"))
            }
            LeaseOutcome::OldRunnerNodeLost { pod, node, command } => Tenure::Wait(format!(
                "pod {pod} of an earlier run may still be running on node {node}, which is not Ready. If the \
                 node is switched off, delete the pod: {command}"
            )),
        })
    }
}
