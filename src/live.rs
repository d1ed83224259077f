//! The real world: joins Ceph and Kubernetes into one observation, and hands each act to the one it belongs to.
//! No rule about OSDs is here, and no retry: an act that failed is decided anew by the next turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::ceph::{Ceph, CephError, Connection, Secret};
use crate::domain::act::{Act, Deploy, Spare};
use crate::domain::expect;
use crate::domain::inspection::{NodeRequest, RecordId};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{self, Kube, Observation};
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};
use crate::domain::plan::Questions;
use crate::domain::policy::Declaration;
use crate::k8s::{Agent, Holder, K8s, K8sError, Key, LeaseOutcome, Own, ResourceVersion};
use crate::ports::{Clock, Cluster, Failure, LedgerStore, LoadError, Saved, Severity, Tenure};

/// Ceph and Kubernetes.
pub struct Live {
    k8s: Arc<K8s>,
    /// Our own pod: whose image node Jobs copy the agent from. None outside a pod, where only looking is possible.
    own: Option<Arc<Own>>,
    ceph: Option<Ceph>,
    ceph_timeout: Duration,
    /// Commands of sessions that are closed, for the figures.
    commands_before: u64,
    /// What the look said that an act was decided on: what is rendered is what was decided.
    declared: Option<(ClusterFsid, Declaration)>,
}

impl Live {
    /// Opens nothing yet: the first look does.
    pub fn new(k8s: Arc<K8s>, ceph_timeout: Duration) -> Self {
        Self { k8s, own: None, ceph: None, ceph_timeout, commands_before: 0, declared: None }
    }

    /// The same for a runner's pod, which can make node Jobs too.
    #[must_use]
    pub fn acting_as(self, own: Arc<Own>) -> Self {
        Self { own: Some(own), ..self }
    }

    /// Commands sent to Ceph so far.
    pub fn commands_sent(&self) -> u64 {
        self.commands_before + self.ceph.as_ref().map_or(0, Ceph::commands_sent)
    }

    /// The session with Ceph, opened where there is none: with the mons and the key that Kubernetes names now, since mons
    /// move and keys are rotated.
    async fn session(&mut self) -> Result<&Ceph, Failure> {
        if self.ceph.is_none() {
            let access = self.k8s.mon_access().await.map_err(kube_failure)?;
            let connection = Connection {
                mon_host: access.mon_host,
                user: access.user,
                key: Secret::new(access.key.reveal().to_owned()),
                fsid: access.fsid,
                namespace: self.k8s.namespace().to_owned(),
                timeout: self.ceph_timeout,
            };
            self.ceph = Some(Ceph::connect(connection).await.map_err(ceph_failure)?);
        }
        self.ceph.as_ref().ok_or_else(|| passing("the session with Ceph is closed".to_owned()))
    }

    /// After an error of Ceph the session is opened anew: cheap (20 ms), and right after a failover of the mons.
    fn reopen<T>(&mut self, result: Result<T, CephError>) -> Result<T, Failure> {
        result.map_err(|error| {
            if !error.is_unexpected() {
                self.commands_before = self.commands_sent();
                self.ceph = None;
            }
            ceph_failure(error)
        })
    }

    async fn look_at_ceph(&mut self) -> Result<observation::Ceph, Failure> {
        let seen = self.session().await?.observe().await;
        self.reopen(seen)
    }

    /// Asks about single OSDs.
    async fn ask(&mut self, questions: &Questions, ceph: &mut observation::Ceph) -> Result<(), Failure> {
        for set in &questions.ok_to_stop {
            let verdict = self.session().await?.ok_to_stop(set).await;
            ceph.ok_to_stop.insert(set.clone(), self.reopen(verdict)?);
        }
        for osd in &questions.auth {
            let has = self.session().await?.has_auth(*osd).await;
            ceph.auth.insert(*osd, self.reopen(has)?);
        }
        Ok(())
    }

    /// `ok-to-stop` is asked, and the slot looked at, just before the Deployment is stopped (P2).
    async fn stop(
        &mut self,
        osd: OsdId,
        fsid: OsdFsid,
        record: &RecordId,
        uid: &str,
        version: &str,
    ) -> Result<(), Failure> {
        let verdict = self.session().await?.ok_to_stop(&BTreeSet::from([osd])).await;
        let verdict = self.reopen(verdict)?;
        if !expect::to_stop_by_ceph(&verdict) {
            return Err(passing(format!(
                "{osd} was not stopped: ok-to-stop refuses, {} PGs would stop serving",
                verdict.bad_pgs
            )));
        }
        let seen = self.look_at_ceph().await?;
        if let Err(reason) = expect::spare(&Spare::AllClean, &seen) {
            return Err(passing(format!("{osd} was not stopped: {reason}")));
        }
        if !expect::to_stop_up(seen.slots.get(&osd), fsid) {
            return Err(passing(format!("{osd} was not stopped: it is not up with {fsid} any more")));
        }
        self.k8s.stop(osd, record, uid, version).await.map_err(kube_failure)
    }

    /// What an act needs of the data is asked again right before it.
    async fn still_spare(&mut self, spare: Option<&Spare>) -> Result<(), Failure> {
        let Some(spare) = spare else { return Ok(()) };
        let seen = self.look_at_ceph().await?;
        expect::spare(spare, &seen).map_err(|reason| passing(format!("nothing was given up: {reason}")))
    }

    async fn make_agent(
        &mut self,
        request: &NodeRequest,
        image: &str,
        data_dir: &str,
    ) -> Result<(), Failure> {
        let (_, declaration) = self.declared()?;
        let own = self
            .own
            .clone()
            .ok_or_else(|| passing("node Jobs can be made by a runner in a Job only".to_owned()))?;
        let key = self.session().await?.bootstrap_key().await;
        let key = self.reopen(key)?;
        let mon_host = self.k8s.mon_access().await.map_err(kube_failure)?.mon_host;
        let request = NodeRequest { mon_host, ..request.clone() };
        let agent = Agent {
            request: &request,
            image,
            data_dir,
            host_network: declaration.host_network,
            bootstrap_key: &Key::new(key.expose()),
            own: &own,
        };
        self.k8s.create_agent(&agent).await.map_err(kube_failure)
    }

    /// One step of bringing the Deployment back; a Deployment that had to be deleted first is made by a later turn.
    async fn deploy(&mut self, deploy: &Deploy) -> Result<(), Failure> {
        let (fsid, declaration) = self.declared()?;
        self.k8s.deploy(deploy, &declaration, &fsid).await.map(drop).map_err(kube_failure)
    }

    fn declared(&self) -> Result<(ClusterFsid, Declaration), Failure> {
        self.declared.clone().ok_or_else(|| passing("nothing was looked at yet".to_owned()))
    }
}

impl Cluster for Live {
    async fn observe(&mut self, ask: impl FnOnce(&Observation) -> Questions) -> Result<Observation, Failure> {
        let kube: Kube = self.k8s.observe().await.map_err(kube_failure)?;
        let ceph = self.look_at_ceph().await?;
        self.declared = Some((ceph.fsid, kube.declaration.clone()));
        let mut seen = Observation { at: now(), ceph, kube };
        let questions = ask(&seen);
        self.ask(&questions, &mut seen.ceph).await?;
        Ok(seen)
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        let k8s = Arc::clone(&self.k8s);
        k8s.expect_ledger().await.map_err(kube_failure)?;
        #[cfg(feature = "drill")]
        crate::drill::hold_before("late-", act);
        match act {
            Act::Keep { osd, record, deployment, resource_version } => {
                k8s.keep(*osd, record, deployment, resource_version).await.map_err(kube_failure)
            }
            Act::Agent { request, image, data_dir, spare } => {
                self.still_spare(spare.as_ref()).await?;
                self.make_agent(request, image, data_dir).await
            }
            Act::DropAgent { job, uid } => k8s.drop_agent(job, uid).await.map_err(kube_failure),
            Act::Fence { osd, record, value, resource_version } => {
                k8s.expect_open(*osd, record).await.map_err(kube_failure)?;
                k8s.fence(value, resource_version).await.map_err(kube_failure)
            }
            Act::Unfence { value } => k8s.unfence(value).await.map_err(kube_failure),
            Act::Stop { osd, fsid, record, deployment, resource_version } => {
                self.stop(*osd, *fsid, record, deployment, resource_version).await
            }
            Act::Look { .. } | Act::SweepLook { .. } | Act::Adopt(_) | Act::Tolerate { .. } => {
                Err(passing("not yet".to_owned()))
            }
            Act::Restart { osd, record } => k8s.restart(*osd, record).await.map_err(kube_failure),
            Act::Deploy(deploy) => self.deploy(deploy).await,
            Act::Sweep { osd, record } => k8s.sweep(*osd, record).await.map_err(kube_failure),
            Act::Hush { osd, record, .. } => {
                k8s.expect_open(*osd, record).await.map_err(kube_failure)?;
                let done = act_on_ceph(self.session().await?, act).await;
                self.reopen(done)
            }
            Act::Destroy { osd, stopped_for, spare, .. } => {
                if let Some(record) = stopped_for {
                    k8s.expect_stopped(*osd, record).await.map_err(kube_failure)?;
                }
                self.still_spare(spare.as_ref()).await?;
                let done = act_on_ceph(self.session().await?, act).await;
                self.reopen(done)
            }
            Act::Unhush { .. } | Act::Reclaim { .. } | Act::PurgeStray { .. } | Act::RestoreCrush { .. } => {
                let done = act_on_ceph(self.session().await?, act).await;
                self.reopen(done)
            }
        }
    }
}

/// The acts that are one command to Ceph.
async fn act_on_ceph(ceph: &Ceph, act: &Act) -> Result<(), CephError> {
    match act {
        Act::Hush { osd, fsid, up, noout, noin, .. } => ceph.hush(*osd, (*fsid, *up), *noout, *noin).await,
        Act::Unhush { osd, noout, noin } => ceph.unhush(*osd, *noout, *noin).await,
        Act::Destroy { osd, fsid, .. } => ceph.destroy(*osd, *fsid).await,
        Act::Reclaim { osd, claim } => ceph.reclaim(*osd, *claim).await,
        Act::PurgeStray { stray, fsid } => ceph.purge_stray(*stray, *fsid).await,
        Act::RestoreCrush { osd, item, reweight, primary_affinity } => {
            ceph.restore_crush(*osd, item, *reweight, *primary_affinity).await
        }
        Act::Keep { .. }
        | Act::Agent { .. }
        | Act::DropAgent { .. }
        | Act::Fence { .. }
        | Act::Unfence { .. }
        | Act::Stop { .. }
        | Act::Restart { .. }
        | Act::Deploy(_)
        | Act::Look { .. }
        | Act::SweepLook { .. }
        | Act::Adopt(_)
        | Act::Tolerate { .. }
        | Act::Sweep { .. } => Ok(()),
    }
}

fn passing(message: String) -> Failure {
    Failure { severity: Severity::Passing, message }
}

/// How an error of Ceph is to be taken.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
pub fn ceph_failure(error: CephError) -> Failure {
    let severity = if error.needs_person() { Severity::NeedsPerson } else { Severity::Passing };
    Failure { severity, message: error.to_string() }
}

/// How an error of Kubernetes is to be taken.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
pub fn kube_failure(error: K8sError) -> Failure {
    let severity = match &error {
        K8sError::Forbidden { .. }
        | K8sError::NoRook
        | K8sError::NoCephCluster { .. }
        | K8sError::SeveralCephClusters { .. }
        | K8sError::Malformed { .. }
        | K8sError::TooBig { .. }
        | K8sError::NoConfig(_) => Severity::NeedsPerson,
        K8sError::NotFound(_)
        | K8sError::AlreadyExists(_)
        | K8sError::Conflict { .. }
        | K8sError::Timeout { .. }
        | K8sError::Unreachable { .. }
        | K8sError::Unexpected { .. }
        | K8sError::Other { .. } => Severity::Passing,
    };
    Failure { severity, message: error.to_string() }
}

/// The ledger in its ConfigMap.
pub struct Ledgers(pub Arc<K8s>);

impl LedgerStore for Ledgers {
    type Version = Option<ResourceVersion>;

    async fn load(&mut self) -> Result<(Ledger, Self::Version), LoadError> {
        let stored = self.0.load().await.map_err(kube_failure)?;
        let (keys, version) = stored.map_or((BTreeMap::new(), None), |(keys, version)| (keys, Some(version)));
        Ok((Ledger::from_keys(&keys)?, version))
    }

    async fn save(&mut self, ledger: &Ledger, version: Self::Version) -> Result<Saved, Failure> {
        let keys = ledger
            .to_keys()
            .map_err(|error| passing(format!("the ledger can't be written as JSON: {error}")))?;
        match self.0.save(keys, version.as_ref()).await {
            Ok(_) => Ok(Saved::Stored),
            Err(K8sError::Conflict { .. } | K8sError::AlreadyExists(_)) => Ok(Saved::Conflict),
            Err(error) => Err(kube_failure(error)),
        }
    }

    async fn close(&mut self, record: &Record) -> Result<(), Failure> {
        self.0.expect_ledger().await.map_err(kube_failure)?;
        let line = serde_json::to_string(record).map_err(|error| passing(error.to_string()))?;
        self.0.append_history(&line).await.map_err(kube_failure)
    }
}

/// A Lease is renewed so often, by a runner whose turns are short; others may take it after 60 s.
const RENEW_SECONDS: i64 = 5;

/// The Lease, held for this pod.
pub struct PodLease {
    k8s: Arc<K8s>,
    me: Option<Holder>,
    held_at: DateTime<Utc>,
}

impl PodLease {
    /// For this pod; outside a Job nobody can take over and nobody is kept out.
    pub fn new(k8s: Arc<K8s>, own: Option<&Own>) -> Self {
        Self { k8s, me: own.map(Holder::of), held_at: DateTime::UNIX_EPOCH }
    }
}

impl crate::ports::Lease for PodLease {
    async fn hold(&mut self) -> Result<Tenure, Failure> {
        let Some(me) = &self.me else { return Ok(Tenure::Mine) };
        let now = now();
        if (now - self.held_at).num_seconds() < RENEW_SECONDS {
            return Ok(Tenure::Mine);
        }
        let outcome = match self.k8s.acquire(me, now).await {
            Ok(outcome) => outcome,
            Err(K8sError::Conflict { .. } | K8sError::AlreadyExists(_)) => {
                return Ok(Tenure::Wait(
                    "somebody else took the Lease at the same time; looking again".to_owned(),
                ));
            }
            Err(error) => return Err(kube_failure(error)),
        };
        Ok(match outcome {
            LeaseOutcome::Mine | LeaseOutcome::TakenOver { .. } => {
                self.held_at = now;
                Tenure::Mine
            }
            LeaseOutcome::HeldByLiveJob { job, pod } => {
                Tenure::Other(format!("Job {job} is at work (pod {pod}): leaving it to that one"))
            }
            LeaseOutcome::WaitForOldPod { pod, .. } => {
                Tenure::Wait(format!("pod {pod} of an earlier run is ending; waiting until it is gone"))
            }
            LeaseOutcome::OldRunnerNodeLost { pod, node, command } => Tenure::Wait(format!(
                "pod {pod} of an earlier run may still work on node {node}, which does not answer. If that node is off: {command}"
            )),
        })
    }
}

/// The machine's clock.
pub struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> DateTime<Utc> {
        now()
    }

    async fn sleep(&mut self, time: Duration) {
        pause(time).await;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one sleep: the runner's, through its port, and the agent's heartbeat"
)]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

#[expect(clippy::disallowed_methods, reason = "the one clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}
