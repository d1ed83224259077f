//! The Lease: at most one runner works. The Lease alone does not give safety. A second, frozen runner is
//! harmless because every act carries what it expects to find.
//!
//! The holder of the Lease is a pod of a Job. So whether it is alive is read from the API, not guessed from
//! the time alone.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PropagationPolicy;

use crate::domain::observation::Runner;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::time::{from_jiff, to_jiff};
use crate::k8s::names::{MANAGED_BY, NAME, OURS};
use crate::k8s::own::own_pod::Own;
use crate::k8s::pods;

/// Name of the Lease.
pub const LEASE: &str = "osd-migrate";

/// Time without a renewal after which the holder is asked to end.
///
/// It is long compared with the limit of a renewal, and short enough for a person to wait.
const LASTS: TimeDelta = TimeDelta::seconds(60);

/// Time without a renewal after which the Lease of a pod that is being deleted is taken over, although
/// nothing says that the pod has ended.
///
/// It is the time that Kubernetes itself gives an unreachable node before it deletes its pods (the default of
/// the admission plugin `DefaultTolerationSeconds`).
const LOST: TimeDelta = TimeDelta::minutes(5);

/// Holder of the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// uid of the holder's Job.
    pub job_uid: String,
    /// uid of the holder's pod.
    pub pod_uid: String,
    /// Name of the holder's pod.
    pub pod: String,
    /// Name of the holder's Job.
    pub job: String,
}

impl Holder {
    /// Returns this process as the holder.
    pub fn of(own: &Own) -> Self {
        let (job_uid, pod_uid) = (own.job_uid.clone(), own.pod_uid.clone());
        Self { job_uid, pod_uid, pod: own.pod.clone(), job: own.job.clone() }
    }

    fn identity(&self) -> String {
        format!("{}/{}/{}/{}", self.job_uid, self.pod_uid, self.pod, self.job)
    }

    fn parse(identity: &str) -> Option<Self> {
        let mut parts = identity.split('/').map(str::to_owned);
        let holder =
            Self { job_uid: parts.next()?, pod_uid: parts.next()?, pod: parts.next()?, job: parts.next()? };
        parts.next().is_none().then_some(holder)
    }
}

/// Result of an attempt to acquire the Lease.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseOutcome {
    /// The Lease had no holder, or was already ours.
    Mine,
    /// The former holder is gone, or was an earlier pod of our own Job.
    TakenOver {
        /// Former holder.
        from: String,
        /// The pod of the former holder exists, and it is not known whether the pod has ended.
        is_lost: bool,
    },
    /// Another Job is alive and works: do not interfere with it.
    OwnedByLiveJob {
        /// Name of the Job.
        job: String,
        /// Name of the Job's pod.
        pod: String,
    },
    /// The holder does not renew or is being deleted. A delete of its pod was requested, but the pod still
    /// exists: try again.
    WaitForOldPod {
        /// Name of the holder's pod.
        pod: String,
        /// Node of that pod.
        node: Option<String>,
    },
    /// The same, but the node of the holder's pod is not ready: it is not known whether the pod has ended.
    OldRunnerNodeLost {
        /// Name of the holder's pod.
        pod: String,
        /// Node of that pod.
        node: String,
        /// When the Lease can be taken over.
        until: DateTime<Utc>,
        /// Command to type once the node is known to be off, to continue at once.
        command: String,
    },
}

impl K8s {
    /// Tries to acquire the Lease, with at most one write.
    ///
    /// A conflict means another client was faster.
    pub async fn acquire(&self, me: &Holder, now: DateTime<Utc>) -> Result<LeaseOutcome, K8sError> {
        let leases = self.kind::<Lease>();
        let Some(lease) = leases.get_opt(LEASE).await? else {
            leases.create(LEASE, &written(Lease::default(), me, now)).await?;
            return Ok(LeaseOutcome::Mine);
        };
        let identity = lease.spec.as_ref().and_then(|s| s.holder_identity.clone()).unwrap_or_default();
        if identity.is_empty() || identity == me.identity() {
            return self.take(lease, me, now).await.map(|()| LeaseOutcome::Mine);
        }
        let expired = is_expired(&lease, now);
        let Some(holder) = Holder::parse(&identity) else {
            return if expired {
                let outcome = LeaseOutcome::TakenOver { from: identity, is_lost: false };
                self.take(lease, me, now).await.map(|()| outcome)
            } else {
                Ok(LeaseOutcome::OwnedByLiveJob { job: identity, pod: "unknown".to_owned() })
            };
        };
        let is_lost = match self.pod_of(&holder).await? {
            None => false,
            // A Job has at most one wanted pod, and that is now this one.
            Some(_) if holder.job_uid == me.job_uid => false,
            // The node of the pod is lost, or cannot end the pod. If the pod still runs, its acts are refused
            // (ADR 0011), and it ends as soon as the node is back.
            Some(pod) if is_deleted(&pod) && now > lost_at(&lease) => true,
            Some(pod) if !is_deleted(&pod) && !expired => {
                return Ok(LeaseOutcome::OwnedByLiveJob { job: holder.job, pod: holder.pod });
            }
            // It is being deleted already if its Job was deleted or its node is drained.
            Some(pod) => return self.end(pod, lost_at(&lease)).await,
        };
        let from = format!("pod {} of Job {}", holder.pod, holder.job);
        self.take(lease, me, now).await.map(|()| LeaseOutcome::TakenOver { from, is_lost })
    }

    /// Renews the Lease if this process holds it; returns whether it does.
    ///
    /// Nothing is taken over.
    pub async fn renew(&self, me: &Holder, now: DateTime<Utc>) -> Result<bool, K8sError> {
        let lease = self.kind::<Lease>().get(LEASE).await?;
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        if holder != Some(me.identity()) {
            return Ok(false);
        }
        self.take(lease, me, now).await.map(|()| true)
    }

    /// Releases the Lease if this process holds it: any runner may acquire it at once.
    pub async fn release(&self, me: &Holder) -> Result<(), K8sError> {
        let mut lease = self.kind::<Lease>().get(LEASE).await?;
        match &mut lease.spec {
            Some(spec) if spec.holder_identity == Some(me.identity()) => {
                spec.holder_identity = Some(String::new());
                // The version that was read is the precondition.
                self.kind::<Lease>().replace(LEASE, &lease).await.map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the runner that acquired the Lease last; none if no run ever started, if the last one released
    /// the Lease at its end, or if another program holds it.
    pub async fn runner(&self, now: DateTime<Utc>) -> Result<Option<Runner>, K8sError> {
        let lease = self.kind::<Lease>().get_opt(LEASE).await?;
        let holder = |lease: &Lease| Holder::parse(lease.spec.as_ref()?.holder_identity.as_ref()?);
        let Some((lease, holder)) = lease.and_then(|lease| holder(&lease).map(|holder| (lease, holder)))
        else {
            return Ok(None);
        };
        let has_pod = self.pod_of(&holder).await?.is_some();
        let is_alive = has_pod && !is_expired(&lease, now);
        let renewed_at = renewed_at(&lease);
        Ok(Some(Runner { job: holder.job, pod: holder.pod, renewed_at, has_pod, is_alive }))
    }

    /// Returns the pod of a holder, if it exists and has not ended.
    async fn pod_of(&self, holder: &Holder) -> Result<Option<Pod>, K8sError> {
        let pod = self.kind::<Pod>().get_opt(&holder.pod).await?;
        let is_it = |pod: &Pod| pod.metadata.uid.as_ref() == Some(&holder.pod_uid);
        Ok(pod.filter(|pod| is_it(pod) && !pods::is_terminal(pod)))
    }

    async fn take(&self, lease: Lease, me: &Holder, now: DateTime<Utc>) -> Result<(), K8sError> {
        self.kind::<Lease>().replace(LEASE, &written(lease, me, now)).await.map(drop)
    }

    /// Deletes the pod of the Lease's holder, with the pod's own grace period; never by force.
    async fn end(&self, pod: Pod, until: DateTime<Utc>) -> Result<LeaseOutcome, K8sError> {
        let is_deleted = is_deleted(&pod);
        let name = pod.metadata.name.unwrap_or_default();
        if !is_deleted {
            let uid = pod.metadata.uid.unwrap_or_default();
            self.kind::<Pod>().delete(&name, &uid, PropagationPolicy::Background).await?;
        }
        let node = pod.spec.and_then(|spec| spec.node_name);
        match node {
            Some(node) if !self.is_ready(&node).await? => {
                let command =
                    format!("kubectl -n {} delete pod {name} --force --grace-period=0", self.namespace());
                Ok(LeaseOutcome::OldRunnerNodeLost { pod: name, node, until, command })
            }
            node => Ok(LeaseOutcome::WaitForOldPod { pod: name, node }),
        }
    }

    async fn is_ready(&self, node: &str) -> Result<bool, K8sError> {
        let node = self.cluster_kind::<Node>().get_opt(node).await?;
        let conditions = node.and_then(|n| n.status).and_then(|s| s.conditions).unwrap_or_default();
        Ok(conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    }
}

fn renewed_at(lease: &Lease) -> Option<DateTime<Utc>> {
    lease.spec.as_ref().and_then(|s| s.renew_time.as_ref()).and_then(|t| from_jiff(t.0))
}

/// Returns when the Lease can be taken over from a pod that is being deleted.
fn lost_at(lease: &Lease) -> DateTime<Utc> {
    renewed_at(lease).unwrap_or(DateTime::UNIX_EPOCH) + LOST
}

fn is_deleted(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

fn is_expired(lease: &Lease, now: DateTime<Utc>) -> bool {
    let spec = lease.spec.as_ref();
    let lasts =
        spec.and_then(|s| s.lease_duration_seconds).map_or(LASTS, |secs| TimeDelta::seconds(secs.into()));
    renewed_at(lease).is_none_or(|at| now.signed_duration_since(at) > lasts)
}

/// Returns the Lease to write: all other fields, and the resourceVersion, stay unchanged.
fn written(mut lease: Lease, me: &Holder, now: DateTime<Utc>) -> Lease {
    lease.metadata.name = Some(LEASE.to_owned());
    let labels = lease.metadata.labels.get_or_insert_default();
    labels.insert(NAME.to_owned(), OURS.to_owned());
    labels.insert(MANAGED_BY.to_owned(), OURS.to_owned());
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    let identity = me.identity();
    if spec.holder_identity.as_ref() != Some(&identity) {
        spec.acquire_time = Some(MicroTime(to_jiff(now)));
        spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |n| n.saturating_add(1)));
        spec.holder_identity = Some(identity);
    }
    spec.lease_duration_seconds = i32::try_from(LASTS.num_seconds()).ok();
    spec.renew_time = Some(MicroTime(to_jiff(now)));
    lease
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
