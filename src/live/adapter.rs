//! Adapter of a real run: joins Ceph and Kubernetes into one observation, and passes each act to the adapter
//! it belongs to.
//!
//! It contains no rule about OSDs and no retry: the next iteration decides again about an act that failed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::ceph::{Ceph, Needs};
use crate::domain::act::{Act, DataPrecondition, Deploy, NodeAct};
use crate::domain::drift::Keys;
use crate::domain::expect;
use crate::domain::forecast::{Placement, Space};
use crate::domain::gate::Reason;
use crate::domain::inspection::{NodeRequest, RecordId};
use crate::domain::inventory::InventoryRequest;
use crate::domain::observation::{Age, FailedActs};
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};
use crate::domain::policy::Declaration;
use crate::domain::storage::Toleration;
use crate::k8s::{Agent, K8s, K8sError, Key, Lately, NewInventoryJob, NodePod, Own};
use crate::live::clock::now;
use crate::live::failure::kube_failure;
use crate::live::kept::Kept;
use crate::live::watches::Watches;
use crate::ports::{Failure, passing};

/// Time after which a rejected PodDisruptionBudget is tried again.
///
/// Its owner may have fixed the cause, and each try logs a line.
const REFUSED: TimeDelta = TimeDelta::minutes(5);

/// Time after which a PodDisruptionBudget is tried again that failed in another way.
///
/// A call may take 35 s, and the migration of a stopped OSD proceeds between two tries.
const FAILED: TimeDelta = TimeDelta::minutes(2);

/// Open session.
pub(super) struct Session {
    pub(super) ceph: Ceph,
    /// Whether it uses the key of Rook's Secret, because there is no usable user of osd-migrate. Such a
    /// session sends queries, and never acts.
    pub(super) borrowed: bool,
}

impl Session {
    pub(super) fn commands_sent(&self) -> u64 {
        self.ceph.commands_sent()
    }
}

/// Ceph and Kubernetes.
pub struct Live {
    pub(super) k8s: Arc<K8s>,
    /// Pod of this runner; node Jobs copy the agent from its image. None outside a pod, where only observing
    /// is possible.
    pub(super) own: Option<Arc<Own>>,
    pub(super) ceph: Option<Session>,
    pub(super) ceph_timeout: Duration,
    /// Capabilities that the user of osd-migrate needs for the acts of this process so far.
    pub(super) needs: Needs,
    /// Commands sent by closed sessions, for the statistics.
    pub(super) commands_before: u64,
    /// Declaration from the observation on which the current act was decided. It is what gets rendered.
    pub(super) declared: Option<(ClusterFsid, Declaration)>,
    /// Last observation, while the run waits, or after an act that keeps it.
    pub(super) kept: Option<Kept>,
    /// Age of the last complete observation since the last act.
    pub(super) age: Option<Age>,
    /// Deployment that the API server has admitted in a dry run since the last complete observation began.
    pub(super) admitted: Option<Deploy>,
    /// Answers that need not be read again.
    pub(super) lately: Lately,
    /// Watches of a run.
    pub(super) _watches: Option<Watches>,
    /// OSDs whose last acts failed.
    pub(super) failed: FailedActs,
    /// Time until which the PodDisruptionBudget of osd-migrate is not tried again, with the reason.
    pub(super) pdb_rejected: Option<(DateTime<Utc>, String)>,
}

impl Live {
    /// Creates an adapter without any connection: the first observation opens the session.
    pub fn new(k8s: Arc<K8s>, ceph_timeout: Duration) -> Self {
        Self {
            k8s,
            own: None,
            ceph: None,
            ceph_timeout,
            needs: Needs::default(),
            commands_before: 0,
            declared: None,
            kept: None,
            age: None,
            admitted: None,
            lately: Lately::default(),
            _watches: None,
            failed: FailedActs::default(),
            pdb_rejected: None,
        }
    }

    /// Returns the same adapter for a runner's pod, which can also create node Jobs.
    #[must_use]
    pub fn acting_as(self, own: Arc<Own>) -> Self {
        Self { own: Some(own), ..self }
    }

    /// Returns the same adapter, which watches what it reads while it waits.
    #[must_use]
    pub fn watching(self) -> Self {
        Self { _watches: Some(Watches::begin(&self.k8s)), ..self }
    }

    /// Returns the number of commands sent to Ceph so far.
    pub fn commands_sent(&self) -> u64 {
        self.commands_before + self.ceph.as_ref().map_or(0, Session::commands_sent)
    }

    /// Returns the keys that Ceph keeps.
    ///
    /// Only commands that print them request this, not every iteration.
    pub async fn keys(&mut self) -> Result<Keys, Failure> {
        let keys = self.session().await?.keys().await;
        self.reopen(keys)
    }

    /// Asks Ceph where it would place the PGs without these OSDs, and for the space on all OSDs.
    pub async fn forecast(&mut self, osds: &BTreeSet<OsdId>) -> Result<(Placement, Space), Failure> {
        let placement = self.session().await?.placement_without(osds).await;
        let placement = self.reopen(placement)?;
        let space = self.session().await?.space().await;
        Ok((placement, self.reopen(space)?))
    }

    /// Stops an OSD after `ok-to-stop` and a check of its slot, both just before the Deployment is scaled
    /// down (P2).
    pub(super) async fn stop(
        &mut self,
        osd: OsdId,
        (fsid, up): (OsdFsid, bool),
        record: &RecordId,
        (uid, generation): (&str, i64),
        precondition: &DataPrecondition,
    ) -> Result<(), Failure> {
        let verdict = self.session().await?.ok_to_stop(&BTreeSet::from([osd])).await;
        let verdict = self.reopen(verdict)?;
        let seen = self.observe_ceph().await?;
        if let Err(bad_pgs) = expect::to_stop_by_ceph(osd, &verdict, &seen) {
            return Err(passing(format!("{osd} was not stopped: {}", Reason::NotOkToStop { bad_pgs })));
        }
        if let Err(reason) = expect::precondition(precondition, &seen) {
            return Err(passing(format!("{osd} was not stopped: {reason}")));
        }
        if !expect::to_stop_as_seen(seen.slots.get(&osd), fsid, up) {
            let state = if up { "up" } else { "down" };
            return Err(passing(format!("{osd} was not stopped: it is no longer {state} with fsid {fsid}")));
        }
        self.k8s.stop(osd, record, uid, generation).await.map_err(kube_failure)
    }

    /// Checks the data precondition of an act again right before the act.
    pub(super) async fn still_allowed(
        &mut self,
        precondition: Option<&DataPrecondition>,
    ) -> Result<(), Failure> {
        let Some(precondition) = precondition else { return Ok(()) };
        let seen = self.observe_ceph().await?;
        expect::precondition(precondition, &seen)
            .map_err(|reason| passing(format!("nothing was destroyed or wiped: {reason}")))
    }

    pub(super) async fn make_agent(
        &mut self,
        request: &NodeRequest,
        image: &str,
        data_dir: &str,
    ) -> Result<(), Failure> {
        let (_, declaration) = self.declared()?;
        let own = self.runner()?;
        let key = self.session().await?.bootstrap_key().await;
        let key = self.reopen(key)?;
        let mon_host = self.k8s.mon_host().await.map_err(kube_failure)?;
        let request = NodeRequest { mon_host, ..request.clone() };
        let agent = Agent {
            request: &request,
            pod: NodePod { image, data_dir, declaration: &declaration, own: &own },
            bootstrap_key: &Key::new(key.expose()),
        };
        self.k8s.create_agent(&agent).await.map_err(kube_failure)
    }

    pub(super) async fn create_inventory(
        &self,
        request: &InventoryRequest,
        image: &str,
        data_dir: &str,
    ) -> Result<(), Failure> {
        let (_, declaration) = self.declared()?;
        let own = self.runner()?;
        let pod = NodePod { image, data_dir, declaration: &declaration, own: &own };
        let job = NewInventoryJob { request, pod };
        self.k8s.create_inventory_job(&job).await.map_err(kube_failure)
    }

    fn runner(&self) -> Result<Arc<Own>, Failure> {
        self.own.clone().ok_or_else(|| passing("only a runner in a Job can create node Jobs".to_owned()))
    }

    /// Does one step of restoring the Deployment.
    ///
    /// A Deployment that had to be deleted first is created by a later iteration.
    pub(super) async fn deploy(&mut self, deploy: &Deploy) -> Result<(), Failure> {
        let (fsid, declaration) = self.declared()?;
        if deploy.fresh.is_some() {
            self.expect_down(deploy).await?;
        }
        if let Some(pvcs) = &deploy.pvcs {
            self.k8s.expect_pvcs(pvcs).await.map_err(kube_failure)?;
        }
        self.k8s.deploy(deploy, &declaration, &fsid).await.map(drop).map_err(kube_failure)
    }

    /// Creates the Deployment of a finished OSD that nothing starts.
    pub(super) async fn adopt(&mut self, deploy: &Deploy) -> Result<(), Failure> {
        let (fsid, declaration) = self.declared()?;
        self.expect_down(deploy).await?;
        self.k8s.adopt(deploy, &declaration, &fsid).await.map(drop).map_err(kube_failure)
    }

    /// Reads the osdmap again before it starts an OSD that nothing else starts: the slot may belong to
    /// another OSD by now.
    async fn expect_down(&mut self, deploy: &Deploy) -> Result<(), Failure> {
        let seen = self.observe_ceph().await?;
        let Deploy { osd, fsid, .. } = deploy;
        if expect::to_start(seen.slots.get(osd), *fsid) {
            return Ok(());
        }
        Err(passing(format!("{osd} was not started: its slot no longer has fsid {fsid}, or the OSD is up")))
    }

    /// Adds tolerations to a Deployment.
    ///
    /// An OSD that is up restarts by it, so the same checks apply as before a stop (P2).
    pub(super) async fn tolerate(
        &mut self,
        osd: OsdId,
        expected: (&str, i64),
        add: &[Toleration],
        precondition: Option<&DataPrecondition>,
    ) -> Result<(), Failure> {
        let seen = self.observe_ceph().await?;
        let is_up = seen.slots.get(&osd).is_some_and(|slot| slot.up);
        let refused = |why: String| passing(format!("no tolerations were added to {osd}: {why}"));
        if !expect::to_tolerate(is_up, precondition.is_some()) {
            return Err(refused("the OSD came up since it was observed".to_owned()));
        }
        if is_up {
            expect::precondition(precondition.unwrap_or(&DataPrecondition::AllClean), &seen)
                .map_err(|why| refused(why.to_string()))?;
            let verdict = self.session().await?.ok_to_stop(&BTreeSet::from([osd])).await;
            let verdict = self.reopen(verdict)?;
            expect::to_stop_by_ceph(osd, &verdict, &seen)
                .map_err(|bad_pgs| refused(Reason::NotOkToStop { bad_pgs }.to_string()))?;
        }
        self.k8s.tolerate(osd, expected.0, expected.1, add).await.map_err(kube_failure)
    }

    /// Creates the PodDisruptionBudget.
    ///
    /// Later observations see a failure and the run tries again; the plan decides what the failure means.
    pub(super) async fn create_pdb(&mut self, osd: OsdId, record: &RecordId) -> Result<(), Failure> {
        self.k8s.expect_open(osd, record).await.map_err(kube_failure)?;
        let created = self.k8s.create_pdb().await;
        self.pdb_rejected =
            created.as_ref().err().map(|error| (now() + until_tried_again(error), error.to_string()));
        created.map_err(|error| passing(error.to_string()))
    }

    /// Changes Rook's PodDisruptionBudget.
    ///
    /// A policy may refuse the value 0. As for osd-migrate's own one, the plan decides what that means.
    pub(super) async fn limit_drains(
        &mut self,
        expected: (&str, i64),
        max_unavailable: u32,
    ) -> Result<(), Failure> {
        match self.k8s.limit_drains(expected, max_unavailable).await {
            Err(error @ (K8sError::Refused { .. } | K8sError::Forbidden { .. })) if max_unavailable == 0 => {
                self.pdb_rejected = Some((now() + until_tried_again(&error), error.to_string()));
                Err(passing(error.to_string()))
            }
            done => done.map_err(kube_failure),
        }
    }

    pub(super) fn declared(&self) -> Result<(ClusterFsid, Declaration), Failure> {
        self.declared.clone().ok_or_else(|| passing("the cluster was not observed yet".to_owned()))
    }
}

impl Live {
    pub(super) async fn act_as_expected(&mut self, act: &Act) -> Result<(), Failure> {
        let k8s = Arc::clone(&self.k8s);
        if let Err(error) = k8s.expect_ledger().await
            && !is_done_nevertheless(act, &error)
        {
            return Err(kube_failure(error));
        }
        if !matches!(act, Act::Node(NodeAct::Inventory { .. } | NodeAct::DeleteInventoryJob { .. })) {
            self.act_as_own_user(act).await?;
        }
        #[cfg(feature = "failpoint")]
        crate::failpoint::pause_before("late-", act);
        match act {
            Act::Ceph(act) => self.act_on_ceph(act).await,
            Act::Kube(act) => self.act_on_kube(act).await,
            Act::Node(act) => self.act_on_nodes(act).await,
        }
    }
}

/// Returns whether an act is done although this error shows no ledger.
///
/// Without the API server, or without the right to read the ledger, nothing else would let Ceph heal.
fn is_done_nevertheless(act: &Act, error: &K8sError) -> bool {
    act.only_lifts_noout() && !matches!(error, K8sError::Unexpected { .. })
}

fn until_tried_again(error: &K8sError) -> TimeDelta {
    if error.is_transient() { FAILED } else { REFUSED }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::act::CephAct;
    use crate::k8s::{Call, Server};

    fn call() -> Call {
        Call {
            verb: "create",
            resource: "poddisruptionbudgets.policy".to_owned(),
            name: None,
            namespace: Some("rook-ceph".to_owned()),
        }
    }

    fn unanswered() -> K8sError {
        let server = Arc::new(Server::in_cluster("https://10.96.0.1", "default"));
        K8sError::Timeout { call: call(), limit: Duration::from_secs(10), server }
    }

    #[test]
    fn noout_is_lifted_without_a_ledger_but_not_by_an_old_one() {
        let unset = |noin| Act::Ceph(CephAct::UnsetOsdFlags { osd: OsdId(3), noout: true, noin });
        let forbidden = K8sError::Forbidden { call: call(), message: "no".to_owned() };
        for error in [unanswered(), forbidden] {
            assert!(is_done_nevertheless(&unset(false), &error), "{error}");
            assert!(!is_done_nevertheless(&unset(true), &error), "{error}");
        }
        let saved = K8sError::Unexpected { what: "LEDGER".to_owned(), found: "SAVED".to_owned() };
        assert!(!is_done_nevertheless(&unset(false), &saved));
    }

    #[test]
    fn api_refusal_is_retried_later_than_an_unanswered_request() {
        let refused = K8sError::Forbidden { call: call(), message: "no".to_owned() };
        assert_eq!(until_tried_again(&refused), REFUSED);
        // A failing webhook also counts: code 500.
        let failed =
            K8sError::Other { call: call(), code: 500, message: "failed calling webhook".to_owned() };
        for error in [failed, unanswered()] {
            assert_eq!(until_tried_again(&error), FAILED, "{error}");
        }
    }
}
