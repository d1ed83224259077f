//! Acts of the runner on the simulated world. The preconditions are those of `domain::expect`, which the
//! adapters check too.

use std::collections::BTreeSet;

use crate::domain::act::{Act, CephAct, Check, DataPrecondition, Deploy, KubeAct, NodeAct};
use crate::domain::expect;
use crate::domain::guard::{Guard, passes};
use crate::domain::inspection::{NodeRequest, RecordId};
use crate::domain::observation::Emptiable;
use crate::domain::osd::{NodeName, OsdFsid, OsdId};
use crate::sim::world::{Effect, World};

/// State that an act reads before it reads the ledger.
///
/// It writes on that version, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Read {
    cluster: String,
}

impl Read {
    /// Drops the exact version: only whether it is the current one matters.
    pub fn flatten(&mut self, present: &str) {
        let flat = if self.cluster == present { "" } else { "former" };
        flat.clone_into(&mut self.cluster);
    }
}

/// Effects of an act, or the sentence with which it was refused.
pub(super) type Done = Result<Vec<Effect>, String>;

pub(super) fn refuse<T>(why: &str) -> Result<T, String> {
    Err(why.to_owned())
}

/// Returns the checks of an act before its command is sent.
pub(super) fn checks(act: &Act) -> Vec<Check<'_>> {
    match act {
        Act::Ceph(act) => act.checks(),
        Act::Kube(_) | Act::Node(_) => Vec::new(),
    }
}

impl World {
    /// Does one act completely.
    pub fn act(&mut self, act: &Act) -> Done {
        self.act_until(act, usize::MAX)
    }

    /// Does one act and dies after so many of its writes: an act of several writes can be interrupted between
    /// them.
    pub fn act_until(&mut self, act: &Act, writes: usize) -> Done {
        let read = self.read();
        self.act_as_read(act, writes, &read)
    }

    /// Reads the state that an act reads before it reads the ledger (ADR 0024).
    pub fn read(&self) -> Read {
        Read { cluster: self.kube.cluster_version.clone() }
    }

    /// Does one act that read the world earlier: the runner may have been suspended in between.
    pub fn act_as_read(&mut self, act: &Act, writes: usize, read: &Read) -> Done {
        for check in checks(act) {
            self.check(check)?;
        }
        self.act_checked(act, writes, read)
    }

    /// Checks what an act on Ceph asks for before its command is sent.
    pub(super) fn check(&self, check: Check<'_>) -> Result<(), String> {
        match check {
            Check::Open { osd, record } => self.expect_open(osd, record),
            Check::Place { osd, weightless, accepted } => {
                self.still_allowed(Some(&DataPrecondition::CleanFor { osd, accepted: accepted.clone() }))?;
                let answer = weightless.map_or_else(|| self.emptiable(osd), |osds| self.removable(osds));
                let has_place = matches!(answer, Emptiable::Yes { .. });
                if passes(Guard::RecheckPlace, has_place) { Ok(()) } else { refuse("its data has no place") }
            }
        }
    }

    /// Does one act whose checks have passed.
    #[expect(clippy::too_many_lines, reason = "one arm for each act")]
    pub(super) fn act_checked(&mut self, act: &Act, writes: usize, read: &Read) -> Done {
        match act {
            Act::Kube(KubeAct::BackUp { osd, record, deployment, generation }) => {
                self.keep(*osd, record, deployment, *generation)
            }
            Act::Node(NodeAct::Agent { request, precondition, .. }) => {
                self.create_agent(request, precondition.as_ref())
            }
            Act::Ceph(CephAct::Bootstrap { there }) => {
                self.ceph.bootstrap = Some(*there);
                Ok(Vec::new())
            }
            Act::Node(NodeAct::DropAgent { job, uid }) => self.drop_agent(job, uid),
            Act::Node(NodeAct::DeleteKey { osd, job, uid }) => self.delete_key(*osd, job, uid),
            Act::Kube(
                KubeAct::Fence { .. }
                | KubeAct::Unfence { .. }
                | KubeAct::ScaleOperator { .. }
                | KubeAct::LimitDrains { .. }
                | KubeAct::CreatePdb { .. }
                | KubeAct::DeletePdb { .. },
            ) => self.block_drains(act, read),
            Act::Ceph(CephAct::SetNoScrub { flags }) => Ok(self.scrub_flags(*flags, true, writes)),
            Act::Ceph(CephAct::UnsetNoScrub { flags }) => Ok(self.scrub_flags(*flags, false, writes)),
            Act::Ceph(CephAct::SetFastRecovery { options }) => {
                Ok(self.recovery_options(options, true, writes))
            }
            Act::Ceph(CephAct::UnsetFastRecovery { options }) => {
                Ok(self.recovery_options(options, false, writes))
            }
            Act::Ceph(CephAct::SetOsdFlags { osd, fsid, up, record: _, noout, noin }) => {
                self.set_osd_flags(*osd, (*fsid, *up), (*noout, *noin))
            }
            Act::Ceph(CephAct::UnsetOsdFlags { osd, noout, noin }) => {
                self.unset_osd_flags(*osd, (*noout, *noin), writes);
                Ok(vec![Effect::Small(*osd)])
            }
            Act::Kube(KubeAct::Stop { osd, fsid, record, deployment, generation, accepted, emptied, up }) => {
                let precondition = DataPrecondition::before_stop(*osd, accepted, *emptied);
                self.stop(*osd, (*fsid, *up), record, (deployment, *generation), &precondition)
            }
            Act::Ceph(CephAct::MarkOut { osd, fsid, up_from, .. }) => self.mark_out(*osd, *fsid, *up_from),
            Act::Ceph(CephAct::DropWeight { osd, fsid, up_from, weight, .. }) => {
                self.drop_weight(*osd, *fsid, *up_from, *weight)
            }
            Act::Ceph(CephAct::RestoreWeight { osd, fsid, weight }) => {
                if !expect::to_restore_weight(self.ceph.slots.get(osd), *fsid) {
                    return refuse("it is not up with that fsid and CRUSH weight 0");
                }
                self.crush_reweight(*osd, *weight);
                Ok(vec![Effect::Small(*osd)])
            }
            Act::Ceph(CephAct::Purge { osd, .. }) => self.purge(*osd),
            Act::Ceph(CephAct::RemoveHost { osd, host, .. }) => self.remove_host(*osd, host),
            Act::Kube(KubeAct::DropRequest { osd, fsid }) => {
                if self.kube.requests.of(*osd, *fsid).is_some() {
                    self.kube.requests.removals.remove(osd);
                }
                Ok(vec![Effect::Small(*osd)])
            }
            Act::Ceph(CephAct::TakeIn { osd, fsid, reweight }) => {
                if !expect::to_take_in(self.ceph.slots.get(osd), *fsid) {
                    return refuse("it is not up and out with that fsid");
                }
                self.osd_reweight(*osd, *reweight);
                self.repeer(*osd);
                Ok(vec![Effect::Small(*osd)])
            }
            Act::Kube(KubeAct::Restart { osd, record }) => self.restart(*osd, record),
            Act::Ceph(CephAct::Destroy { osd, fsid, stopped_for, precondition }) => {
                if let Some(record) = stopped_for {
                    self.still_at_rest(*osd, record)?;
                }
                self.still_allowed(precondition.as_ref())?;
                self.destroy(*osd, *fsid)
            }
            Act::Ceph(CephAct::Reregister { osd, issued }) => self.reregister(*osd, *issued),
            Act::Ceph(CephAct::PurgeMisplaced { misplaced, fsid }) => self.purge_misplaced(*misplaced, *fsid),
            Act::Ceph(CephAct::RestoreCrush { osd, item, former, reweight, primary_affinity }) => {
                self.restore_crush(*osd, (item, *former), (*reweight, *primary_affinity), writes)
            }
            Act::Ceph(CephAct::RestoreUpmaps { osd, fsid, upmaps }) => {
                self.restore_upmaps(*osd, *fsid, upmaps, writes)
            }
            Act::Kube(KubeAct::DropDeployment { osd, record, deployment, generation }) => {
                self.drop_deployment(*osd, record, deployment, *generation)
            }
            Act::Kube(KubeAct::Deploy(deploy)) => self.deploy(deploy),
            Act::Node(NodeAct::Inventory { request, .. }) => {
                self.create_inventory(request);
                Ok(Vec::new())
            }
            Act::Node(NodeAct::DeleteInventoryJob { name, uid }) => self.delete_inventory_job(name, uid),
            Act::Kube(KubeAct::Adopt(deploy)) => self.deploy_fresh(deploy, None),
            Act::Kube(KubeAct::Tolerate { osd, deployment, generation, add, precondition }) => {
                self.tolerate(*osd, (deployment, *generation), add, precondition.is_some())
            }
            Act::Kube(KubeAct::CleanUp { osd, record }) => {
                self.clean_up(*osd, record);
                Ok(vec![Effect::Small(*osd)])
            }
        }
    }

    fn still_at_rest(&self, osd: OsdId, record: &RecordId) -> Result<(), String> {
        let Some(daemon) = self.kube.daemons.get(&osd) else { return refuse("it has no Deployment") };
        let has_pods = !daemon.pods.is_empty();
        if expect::at_rest(daemon.stopped_by.as_ref(), daemon.replicas, has_pods, record) {
            return Ok(());
        }
        refuse("it is no longer stopped for this record")
    }

    pub(super) fn still_allowed(&self, precondition: Option<&DataPrecondition>) -> Result<(), String> {
        precondition.map_or(Ok(()), |precondition| {
            expect::precondition(precondition, &self.ceph).map_err(|reason| reason.to_string())
        })
    }

    fn keep(&mut self, osd: OsdId, record: &RecordId, uid: &str, generation: i64) -> Done {
        let Some(daemon) = self.kube.daemons.get(&osd) else { return refuse("it has no Deployment") };
        if !expect::same_deployment(&daemon.uid, uid) {
            return refuse("the Deployment was recreated");
        }
        if !expect::unchanged_deployment(daemon.generation, generation) {
            return refuse("the Deployment changed since it was observed");
        }
        self.kube.backups.insert(osd, record.clone());
        Ok(vec![Effect::Small(osd)])
    }

    fn drop_deployment(&mut self, osd: OsdId, record: &RecordId, uid: &str, generation: i64) -> Done {
        if self.kube.backups.get(&osd) != Some(record) {
            return refuse("it has no backup");
        }
        self.still_at_rest(osd, record)?;
        let Some(daemon) = self.kube.daemons.get(&osd) else { return Ok(Vec::new()) };
        if !expect::same_deployment(&daemon.uid, uid)
            || !expect::unchanged_deployment(daemon.generation, generation)
        {
            return refuse("the Deployment changed since it was observed");
        }
        self.kube.daemons.remove(&osd);
        Ok(vec![Effect::Undeployed(osd)])
    }

    fn drop_agent(&mut self, job: &str, uid: &str) -> Done {
        let found = self.kube.node_jobs.iter().find(|found| found.name == job);
        let Some(found) = found else { return Ok(Vec::new()) };
        if found.uid != uid {
            return refuse("the Job was recreated");
        }
        let osd = found.osd;
        self.drop_job(job);
        Ok(vec![Effect::Small(osd)])
    }

    pub(super) fn expect_open(&self, osd: OsdId, record: &RecordId) -> Result<(), String> {
        let stopped_by = self.kube.daemons.get(&osd).and_then(|daemon| daemon.stopped_by.as_ref());
        if expect::open_record(self.kube.backups.get(&osd), stopped_by, record) {
            return Ok(());
        }
        refuse("the record is closed")
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "`act` names what comes here")]
    fn block_drains(&mut self, act: &Act, read: &Read) -> Done {
        match act {
            Act::Kube(KubeAct::Fence { record, value }) => self.fence(record.as_ref(), value, read),
            Act::Kube(KubeAct::Unfence { value }) => self.unfence(value),
            Act::Kube(KubeAct::ScaleOperator { uid, generation, replicas, .. }) => {
                self.scale_operator((uid, *generation), *replicas)
            }
            Act::Kube(KubeAct::LimitDrains { uid, generation, max_unavailable }) => {
                self.limit_drains((uid, *generation), *max_unavailable)
            }
            Act::Kube(KubeAct::CreatePdb { osd, record }) => self.create_pdb(*osd, record),
            Act::Kube(KubeAct::DeletePdb { uid }) => self.delete_pdb(uid),
            _ => Ok(Vec::new()),
        }
    }

    fn fence(&mut self, record: Option<&(OsdId, RecordId)>, value: &str, read: &Read) -> Done {
        if let Some((osd, record)) = record {
            self.expect_open(*osd, record)?;
        }
        let is_ours = self.kube.fence.as_deref() == Some(value);
        if !is_ours && !expect::no_fence(self.kube.fence.as_deref()) {
            return refuse("another fence is set");
        }
        if !expect::unchanged_cluster(&self.kube.cluster_version, &read.cluster) {
            return refuse("the CephCluster changed since it was read");
        }
        self.kube.fenced_at = self.kube.cluster_revision();
        self.label(Some(value.to_owned()));
        Ok(vec![Effect::Fence])
    }

    fn create_agent(&mut self, request: &NodeRequest, precondition: Option<&DataPrecondition>) -> Done {
        if self.ceph.bootstrap != Some(true) {
            return refuse("there is no client.bootstrap-osd");
        }
        self.still_allowed(precondition)?;
        self.create_osd_key(request);
        self.create_job(request);
        Ok(vec![Effect::AgentCreated(request.osd)])
    }

    fn unfence(&mut self, value: &str) -> Done {
        if self.kube.fence.is_none() {
            return Ok(Vec::new());
        }
        if !expect::our_fence(self.kube.fence.as_deref(), value) {
            return refuse("osd-migrate did not set the fence");
        }
        self.kube.fenced_at = None;
        self.label(None);
        Ok(vec![Effect::Fence])
    }

    fn scale_operator(&mut self, expected: (&str, i64), replicas: u32) -> Done {
        let found = self.kube.operator.as_ref().map(|operator| (operator.uid.as_str(), operator.generation));
        if !expect::unchanged_operator(found.unwrap_or_default(), expected) {
            return refuse("the operator changed since it was observed");
        }
        self.run_operator(replicas);
        self.scaled_by_osd_migrate = true;
        Ok(vec![Effect::Operator(replicas)])
    }

    fn stop(
        &mut self,
        osd: OsdId,
        (fsid, up): (OsdFsid, bool),
        record: &RecordId,
        version: (&str, i64),
        precondition: &DataPrecondition,
    ) -> Done {
        let verdict = self.ok_to_stop(&BTreeSet::from([osd]));
        if expect::to_stop_by_ceph(osd, &verdict, &self.ceph).is_err() {
            return refuse("ok-to-stop refuses");
        }
        self.still_allowed(Some(precondition))?;
        if !expect::to_stop_as_seen(self.ceph.slots.get(&osd), fsid, up) {
            return refuse("it is no longer up, or down, with that fsid");
        }
        let Some(daemon) = self.kube.daemons.get(&osd) else { return refuse("it has no Deployment") };
        if !expect::same_deployment(&daemon.uid, version.0) {
            return refuse("the Deployment was recreated");
        }
        if !expect::unchanged_deployment(daemon.generation, version.1) {
            return refuse("the Deployment changed since it was observed");
        }
        self.expect_open(osd, record)?;
        self.scale(osd, 0, Some(record.clone()));
        Ok(vec![Effect::Stopped(osd)])
    }

    fn restart(&mut self, osd: OsdId, record: &RecordId) -> Done {
        let Some(daemon) = self.kube.daemons.get(&osd) else {
            if self.kube.backups.get(&osd) != Some(record) {
                return refuse("its Deployment has no backup for this record");
            }
            let Some((fsid, node)) = self.backed_up_as(osd) else { return refuse("there is no backup") };
            self.write_deployment(osd, fsid, &node, false);
            return Ok(vec![Effect::Small(osd)]);
        };
        if daemon.stopped_by.is_none() && daemon.replicas > 0 {
            return Ok(Vec::new());
        }
        if daemon.stopped_by.as_ref() != Some(record) {
            return refuse("it was not stopped for this record");
        }
        self.scale(osd, 1, None);
        Ok(vec![Effect::Small(osd)])
    }

    /// Returns what the backed-up Deployment started: the old OSD, on the node of its disk.
    fn backed_up_as(&self, osd: OsdId) -> Option<(Option<OsdFsid>, NodeName)> {
        let location = &self.ceph.slots.get(&osd)?.crush.as_ref()?.location;
        let node = NodeName(location.get("host")?.clone());
        Some((None, node))
    }

    fn deploy(&mut self, deploy: &Deploy) -> Done {
        if let Some(fresh) = &deploy.fresh {
            return self.deploy_fresh(deploy, Some(fresh));
        }
        let osd = deploy.osd;
        match self.kube.daemons.get(&osd) {
            None if self.kube.backups.get(&osd) != Some(&deploy.record) => {
                return refuse("its Deployment has no backup for this record");
            }
            None => {}
            Some(daemon) if daemon.stopped_by.is_none() && daemon.fsid == Some(deploy.fsid) => {
                return Ok(Vec::new());
            }
            Some(_) => self.expect_open(osd, &deploy.record)?,
        }
        if self.noise.refused.contains(&osd) {
            return refuse("a policy refuses it");
        }
        self.expect_pvcs(deploy)?;
        self.take_pvcs(deploy);
        self.write_deployment(osd, Some(deploy.fsid), &deploy.node, true);
        Ok(vec![Effect::Deployed(osd, deploy.fsid)])
    }
}
