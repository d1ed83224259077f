//! Lease, acquired for this pod.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::task::JoinSet;

use crate::k8s::{Holder, K8s, K8sError, LeaseOutcome, Own};
use crate::live::clock::{now, pause};
use crate::live::failure::kube_failure;
use crate::ports::{Failure, Tenure};

/// Interval in which the Lease is renewed, in the background.
///
/// After 60 s without a renewal other runners may take it over: one renewal may hang, and another one fail. A
/// renewal is two requests, which were half of those of a run that waits with an interval of 5 s.
const RENEWED_EVERY: Duration = Duration::from_secs(15);

/// Time limit of a renewal: the next one must come before the Lease expires.
const RENEWAL: Duration = Duration::from_secs(10);

/// Time without a renewal after which an iteration renews the Lease itself, or finds that it is lost.
const LATE: TimeDelta = TimeDelta::seconds(30);

/// Longest iteration for which the Lease is renewed: two forecasts of at most 10 min each, and the lists of a
/// large cluster (`src/ceph/osdmaptool.rs`). A run that hangs longer leaves the work to another one.
const LONGEST: TimeDelta = TimeDelta::minutes(30);

/// Lease, acquired for this pod.
pub struct PodLease {
    k8s: Arc<K8s>,
    me: Option<Holder>,
    times: Arc<Mutex<Times>>,
    renewal: JoinSet<()>,
}

/// When the Lease was renewed, and when the last iteration began.
#[derive(Debug, Clone, Copy)]
struct Times {
    held: DateTime<Utc>,
    iterated: DateTime<Utc>,
}

impl PodLease {
    /// Creates the Lease for this pod.
    ///
    /// Outside a Job it neither takes the Lease over nor keeps another runner out.
    pub fn new(k8s: Arc<K8s>, own: Option<&Own>) -> Self {
        let times = Times { held: DateTime::UNIX_EPOCH, iterated: DateTime::UNIX_EPOCH };
        let times = Arc::new(Mutex::new(times));
        Self { k8s, me: own.map(Holder::of), times, renewal: JoinSet::new() }
    }

    /// Renews the Lease from now on, in the background.
    fn held(&mut self, me: Holder, now: DateTime<Utc>) -> Tenure {
        locked(&self.times).held = now;
        self.renewal = JoinSet::new();
        self.renewal.spawn(renew(Arc::clone(&self.k8s), me, Arc::clone(&self.times)));
        Tenure::Mine
    }
}

fn locked(times: &Mutex<Times>) -> MutexGuard<'_, Times> {
    times.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Renews the Lease until it is lost, or an iteration takes too long.
async fn renew(k8s: Arc<K8s>, me: Holder, times: Arc<Mutex<Times>>) {
    loop {
        pause(RENEWED_EVERY).await;
        if now() - locked(&times).iterated > LONGEST {
            return;
        }
        let at = now();
        match tokio::time::timeout(RENEWAL, k8s.renew(&me, at)).await {
            Ok(Ok(true)) => locked(&times).held = at,
            Ok(Ok(false)) => return,
            Ok(Err(error)) => tracing::debug!("{error}"),
            Err(_) => {}
        }
    }
}

impl crate::ports::Lease for PodLease {
    async fn acquire(&mut self) -> Result<Tenure, Failure> {
        let Some(me) = &self.me else { return Ok(Tenure::Mine) };
        let now = now();
        let held = {
            let mut times = locked(&self.times);
            times.iterated = now;
            times.held
        };
        if now - held < LATE {
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
            LeaseOutcome::Mine => self.held(me.clone(), now),
            LeaseOutcome::TakenOver { from, is_lost } => {
                if is_lost {
                    tracing::warn!("acquired the Lease of {from}");
                }
                self.held(me.clone(), now)
            }
            LeaseOutcome::OwnedByLiveJob { job, pod } => Tenure::Other(format!(
                "Job {job} is already running (pod {pod}): leaving the work to that Job"
            )),
            LeaseOutcome::WaitForOldPod { pod, .. } => {
                Tenure::Wait(format!("waiting until pod {pod} of an earlier run has ended"))
            }
            LeaseOutcome::OldRunnerNodeLost { pod, node, until, command } => Tenure::Wait(format!(
                "node {node} of pod {pod} of an earlier run is not Ready: waiting until {}. To continue at \
                 once, if the node is switched off: {command}",
                until.format("%H:%M:%SZ")
            )),
        })
    }
}
