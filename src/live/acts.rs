//! Acts by their target: what is checked again right before each act, and its call or command.

use std::sync::Arc;

use crate::ceph::{Ceph, CephError};
use crate::domain::act::{CephAct, Check, DataPrecondition, KubeAct, NodeAct};
use crate::live::adapter::Live;
use crate::live::failure::kube_failure;
use crate::ports::Failure;

impl Live {
    pub(super) async fn act_on_ceph(&mut self, act: &CephAct) -> Result<(), Failure> {
        for check in act.checks() {
            match check {
                Check::Open { osd, record } => {
                    self.k8s.expect_open(osd, record).await.map_err(kube_failure)?;
                }
                Check::Place { osd, weightless, accepted } => {
                    self.expect_place(osd, weightless, accepted).await?;
                    #[cfg(feature = "failpoint")]
                    crate::failpoint::pause_before("placed-", &crate::domain::act::Act::Ceph(act.clone()));
                }
            }
        }
        if let CephAct::Destroy { osd, stopped_for, precondition, .. } = act {
            if let Some(record) = stopped_for {
                self.k8s.expect_stopped(*osd, record).await.map_err(kube_failure)?;
            }
            self.still_allowed(precondition.as_ref()).await?;
        }
        if act.needs_same_ledger() {
            self.k8s.expect_ledger().await.map_err(kube_failure)?;
        }
        let done = command(self.session().await?, act).await;
        self.reopen(done)
    }

    pub(super) async fn act_on_kube(&mut self, act: &KubeAct) -> Result<(), Failure> {
        let k8s = Arc::clone(&self.k8s);
        let done = match act {
            KubeAct::Stop { osd, fsid, record, deployment, generation, accepted, emptied, up } => {
                let precondition = DataPrecondition::before_stop(*osd, accepted, *emptied);
                return self.stop(*osd, (*fsid, *up), record, (deployment, *generation), &precondition).await;
            }
            KubeAct::Deploy(deploy) => return self.deploy(deploy).await,
            KubeAct::Adopt(deploy) => return self.adopt(deploy).await,
            KubeAct::Tolerate { osd, deployment, generation, add, precondition } => {
                return self.tolerate(*osd, (deployment, *generation), add, precondition.as_ref()).await;
            }
            KubeAct::CreatePdb { osd, record } => return self.create_pdb(*osd, record).await,
            KubeAct::LimitDrains { uid, generation, max_unavailable } => {
                return self.limit_drains((uid, *generation), *max_unavailable).await;
            }
            KubeAct::BackUp { osd, record, deployment, generation } => {
                k8s.back_up(*osd, record, deployment, *generation).await
            }
            KubeAct::Fence { record, value } => {
                if let Some((osd, record)) = record {
                    k8s.expect_open(*osd, record).await.map_err(kube_failure)?;
                }
                k8s.fence(value).await
            }
            KubeAct::Unfence { value } => k8s.unfence(value).await,
            KubeAct::ScaleOperator { name, uid, generation, replicas } => {
                k8s.scale_operator(name, (uid, *generation), *replicas).await
            }
            KubeAct::DeletePdb { uid } => k8s.delete_pdb(uid).await,
            KubeAct::Restart { osd, record } => k8s.restart(*osd, record).await,
            KubeAct::DropDeployment { osd, record, deployment, generation } => {
                k8s.drop_deployment(*osd, record, deployment, *generation).await
            }
            KubeAct::DropRequest { osd, fsid } => k8s.drop_request(*osd, *fsid).await,
            KubeAct::CleanUp { osd, record } => k8s.clean_up(*osd, record).await,
        };
        done.map_err(kube_failure)
    }

    pub(super) async fn act_on_nodes(&mut self, act: &NodeAct) -> Result<(), Failure> {
        match act {
            NodeAct::Agent { request, image, data_dir, precondition } => {
                self.still_allowed(precondition.as_ref()).await?;
                self.make_agent(request, image, data_dir).await
            }
            NodeAct::Inventory { request, image, data_dir } => {
                self.create_inventory(request, image, data_dir).await
            }
            NodeAct::DropAgent { job, uid } => self.k8s.drop_agent(job, uid).await.map_err(kube_failure),
            NodeAct::DeleteKey { job, uid, .. } => self.k8s.delete_key(job, uid).await.map_err(kube_failure),
            NodeAct::DeleteInventoryJob { name, uid } => {
                self.k8s.delete_inventory_job(name, uid).await.map_err(kube_failure)
            }
        }
    }
}

/// Sends the command of an act.
async fn command(ceph: &Ceph, act: &CephAct) -> Result<(), CephError> {
    match act {
        CephAct::SetOsdFlags { osd, fsid, up, noout, noin, .. } => {
            ceph.set_osd_flags(*osd, (*fsid, *up), *noout, *noin).await
        }
        CephAct::SetNoScrub { flags } => ceph.set_scrub_flags(*flags, true).await,
        CephAct::UnsetNoScrub { flags } => ceph.set_scrub_flags(*flags, false).await,
        CephAct::SetFastRecovery { options } => ceph.set_recovery(options, true).await,
        CephAct::UnsetFastRecovery { options } => ceph.set_recovery(options, false).await,
        CephAct::Bootstrap { there } => ceph.set_bootstrap(*there).await,
        CephAct::UnsetOsdFlags { osd, noout, noin } => ceph.unset_osd_flags(*osd, *noout, *noin).await,
        CephAct::MarkOut { osd, fsid, up_from, .. } => ceph.mark_out(*osd, *fsid, *up_from).await,
        CephAct::DropWeight { osd, fsid, up_from, weight, .. } => {
            ceph.drop_weight(*osd, (*fsid, *up_from), *weight).await
        }
        CephAct::RestoreWeight { osd, fsid, weight } => ceph.restore_weight(*osd, *fsid, *weight).await,
        CephAct::Purge { osd, .. } => ceph.purge(*osd).await,
        CephAct::RemoveHost { osd, host, .. } => ceph.remove_host(*osd, host).await,
        CephAct::TakeIn { osd, fsid, reweight } => ceph.take_in(*osd, *fsid, *reweight).await,
        CephAct::Destroy { osd, fsid, .. } => ceph.destroy(*osd, *fsid).await,
        CephAct::Reregister { osd, issued } => ceph.reregister(*osd, *issued).await,
        CephAct::PurgeMisplaced { misplaced, fsid } => ceph.purge_misplaced(*misplaced, *fsid).await,
        CephAct::RestoreCrush { osd, item, former, reweight, primary_affinity } => {
            ceph.restore_crush(*osd, item, *former, *reweight, *primary_affinity).await
        }
        CephAct::RestoreUpmaps { osd, fsid, upmaps } => ceph.restore_upmaps(*osd, *fsid, upmaps).await,
    }
}
