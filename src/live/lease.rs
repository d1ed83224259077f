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
    /// Whether a live run of another Job is waited for.
    waits: bool,
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
        Self { k8s, me: own.map(Holder::of), waits: false, times, renewal: JoinSet::new() }
    }

    /// Waits for a live run of another Job, if `waits`, and does not leave the work to it.
    ///
    /// A Job that resumes would otherwise count as complete, without the end of its own work.
    #[must_use]
    pub fn waiting(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// Releases the Lease at the end of a run, which may stay for its last scrape.
    ///
    /// A failure is only logged: other runners acquire the Lease when the pod has ended.
    pub async fn release(&mut self) {
        self.renewal = JoinSet::new();
        let Some(me) = &self.me else { return };
        match tokio::time::timeout(RENEWAL, self.k8s.release(me)).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => tracing::debug!("{error}"),
        }
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
            LeaseOutcome::OwnedByLiveJob { job, pod } if self.waits => {
                Tenure::Wait(format!("Job {job} is running (pod {pod}): waiting until it has ended"))
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::k8s::wire::{Exchange, on, play_shared};
    use crate::ports::Lease as _;

    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/rook-ceph/leases/osd-migrate";
    const OWN: &str = "j/p/m-x/m";
    const OTHER: &str = "other-job/old-pod/old-x/old";

    fn own_lease(k8s: Arc<K8s>) -> PodLease {
        let [job_uid, pod_uid, pod, job] = ["j", "p", "m-x", "m"].map(str::to_owned);
        PodLease { me: Some(Holder { job_uid, pod_uid, pod, job }), ..PodLease::new(k8s, None) }
    }

    fn lease(identity: &str) -> Value {
        json!({"metadata": {"name": "osd-migrate", "resourceVersion": "3"},
            "spec": {"holderIdentity": identity, "renewTime": "2099-01-01T00:00:00.000000Z"}})
    }

    fn get(identity: &str) -> Exchange {
        on(&format!("GET {LEASE}"), 200, lease(identity))
    }

    fn put(identity: &'static str) -> Exchange {
        let put = on(&format!("PUT {LEASE}?&fieldManager=osd-migrate"), 200, lease(identity));
        put.with(move |body| assert_eq!(body["spec"]["holderIdentity"], json!(identity)))
    }

    #[tokio::test]
    async fn resumed_job_waits_for_a_live_run_of_another_job() {
        let pod = json!({"metadata": {"name": "old-x", "uid": "old-pod"}, "spec": {"containers": []},
            "status": {"phase": "Running"}});
        let read = || on("GET /api/v1/namespaces/rook-ceph/pods/old-x", 200, pod.clone());
        let tenure = async |k8s: Arc<K8s>, waits| own_lease(k8s).waiting(waits).acquire().await.unwrap();
        let script = vec![get(OTHER), read(), get(OTHER), read()];
        let both = async |k8s: Arc<K8s>| (tenure(Arc::clone(&k8s), true).await, tenure(k8s, false).await);
        let (resumed, first) = play_shared(script, both).await;
        assert!(
            matches!(&resumed, Tenure::Wait(why) if why.starts_with("Job old is running")),
            "{resumed:?}"
        );
        assert!(matches!(first, Tenure::Other(_)));
    }

    #[tokio::test]
    async fn lease_is_released_and_no_longer_renewed_at_the_end() {
        let script = vec![get(""), put(OWN), get(OWN), put("")];
        let ends = async |k8s: Arc<K8s>| {
            let mut lease = own_lease(k8s);
            assert_eq!(lease.acquire().await, Ok(Tenure::Mine));
            assert_eq!(lease.renewal.len(), 1);
            lease.release().await;
            assert!(lease.renewal.is_empty());
        };
        play_shared(script, ends).await;
    }
}
