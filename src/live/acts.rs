//! Acts that are one call to Kubernetes, or one command to Ceph.

use crate::ceph::{Ceph, CephError};
use crate::domain::act::Act;
use crate::k8s::{K8s, K8sError};

/// The acts that only Kubernetes is asked for.
#[expect(clippy::wildcard_enum_match_arm, reason = "`act` names what comes here")]
pub(super) async fn act_on_kube(k8s: &K8s, act: &Act) -> Result<(), K8sError> {
    match act {
        Act::BackUp { osd, record, deployment, generation } => {
            k8s.keep(*osd, record, deployment, *generation).await
        }
        Act::DropAgent { job, uid } => k8s.drop_agent(job, uid).await,
        Act::DeleteKey { job, uid, .. } => k8s.delete_key(job, uid).await,
        Act::Fence { osd, record, value } => {
            k8s.expect_open(*osd, record).await?;
            k8s.fence(value).await
        }
        Act::Unfence { value } => k8s.unfence(value).await,
        Act::ScaleOperator { name, uid, generation, replicas } => {
            k8s.scale_operator(name, (uid, *generation), *replicas).await
        }
        Act::LimitDrains { uid, generation, max_unavailable } => {
            k8s.limit_drains((uid, *generation), *max_unavailable).await
        }
        Act::DeletePdb { uid } => k8s.delete_pdb(uid).await,
        Act::Restart { osd, record } => k8s.restart(*osd, record).await,
        Act::DropDeployment { osd, record, deployment, generation } => {
            k8s.drop_deployment(*osd, record, deployment, *generation).await
        }
        Act::CleanUp { osd, record } => k8s.clean_up(*osd, record).await,
        Act::DeleteInventoryJob { name, uid } => k8s.delete_inventory_job(name, uid).await,
        _ => Ok(()),
    }
}

/// The acts that are one command to Ceph.
pub(super) async fn act_on_ceph(ceph: &Ceph, act: &Act) -> Result<(), CephError> {
    match act {
        Act::SetOsdFlags { osd, fsid, up, noout, noin, .. } => {
            ceph.set_osd_flags(*osd, (*fsid, *up), *noout, *noin).await
        }
        Act::Bootstrap { there } => ceph.set_bootstrap(*there).await,
        Act::UnsetOsdFlags { osd, noout, noin } => ceph.unset_osd_flags(*osd, *noout, *noin).await,
        Act::TakeIn { osd, fsid, reweight } => ceph.take_in(*osd, *fsid, *reweight).await,
        Act::Destroy { osd, fsid, .. } => ceph.destroy(*osd, *fsid).await,
        Act::Reregister { osd, claim } => ceph.reregister(*osd, *claim).await,
        Act::PurgeMisplaced { misplaced, fsid } => ceph.purge_misplaced(*misplaced, *fsid).await,
        Act::RestoreCrush { osd, item, former, reweight, primary_affinity } => {
            ceph.restore_crush(*osd, item, *former, *reweight, *primary_affinity).await
        }
        Act::RestoreUpmaps { osd, fsid, upmaps } => ceph.restore_upmaps(*osd, *fsid, upmaps).await,
        Act::BackUp { .. }
        | Act::Agent { .. }
        | Act::DropAgent { .. }
        | Act::DeleteKey { .. }
        | Act::Fence { .. }
        | Act::Unfence { .. }
        | Act::ScaleOperator { .. }
        | Act::LimitDrains { .. }
        | Act::CreatePdb { .. }
        | Act::DeletePdb { .. }
        | Act::Stop { .. }
        | Act::Restart { .. }
        | Act::DropDeployment { .. }
        | Act::Deploy(_)
        | Act::Inventory { .. }
        | Act::DeleteInventoryJob { .. }
        | Act::Adopt(_)
        | Act::Tolerate { .. }
        | Act::CleanUp { .. } => Ok(()),
    }
}
