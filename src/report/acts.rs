//! Sentences about acts, for the log, the status, events and the rehearsal.

use crate::domain::act::{Act, CephAct, KubeAct, NodeAct};
use crate::domain::inspection::NodeTask;

/// Returns the sentence about an act that succeeded.
pub(super) fn sentence(act: &Act) -> String {
    match act {
        Act::Ceph(act) => of_ceph(act),
        Act::Kube(act) => of_kube(act),
        Act::Node(act) => of_node(act),
    }
}

/// Returns whether an act only prepares or completes another one that is reported.
pub(super) fn is_detail(act: &Act) -> bool {
    matches!(
        act,
        Act::Kube(KubeAct::BackUp { .. } | KubeAct::CleanUp { .. })
            | Act::Ceph(CephAct::UnsetOsdFlags { .. })
            | Act::Node(
                NodeAct::DropAgent { .. } | NodeAct::DeleteKey { .. } | NodeAct::DeleteInventoryJob { .. }
            )
    )
}

fn of_ceph(act: &CephAct) -> String {
    match act {
        CephAct::Bootstrap { there: true } => "created the user client.bootstrap-osd".to_owned(),
        CephAct::Bootstrap { there: false } => {
            "deleted the user client.bootstrap-osd, which osd-migrate had created".to_owned()
        }
        CephAct::SetNoScrub { flags } => format!("set {flags}: Ceph begins no scrub of that kind"),
        CephAct::UnsetNoScrub { flags } => format!("unset {flags}: Ceph scrubs again"),
        CephAct::SetFastRecovery { options } => {
            format!("set {options} for all OSDs: recovery is faster, and takes more from clients")
        }
        CephAct::UnsetFastRecovery { options } => {
            format!("removed the values of {} for all OSDs: recovery is as before", options.names())
        }
        CephAct::SetOsdFlags { osd, noout, noin, .. } => format!("{osd}: set {}", flags(*noout, *noin)),
        CephAct::UnsetOsdFlags { osd, noout, noin } => format!("{osd}: unset {}", flags(*noout, *noin)),
        CephAct::MarkOut { osd, .. } => {
            format!("{osd}: marked out; it serves until its data is on other OSDs")
        }
        CephAct::DropWeight { osd, .. } => {
            format!("{osd}: set its CRUSH weight to 0; it serves until its data is on other OSDs")
        }
        CephAct::RestoreWeight { osd, weight, .. } => {
            format!("{osd}: restored its CRUSH weight {weight}")
        }
        CephAct::Purge { osd, .. } => format!("{osd}: purged its id, its key and its CRUSH item"),
        CephAct::RemoveHost { osd, host, .. } => {
            format!("{osd}: removed the CRUSH host {host}, which has no OSDs any more")
        }
        CephAct::TakeIn { osd, reweight, .. } => format!("{osd}: marked in again with reweight {reweight}"),
        CephAct::Destroy { osd, fsid, .. } => {
            format!("{osd}: destroyed (fsid {fsid}); its id, CRUSH location and weight are kept")
        }
        CephAct::Reregister { osd, .. } => format!("{osd}: registered its id again"),
        CephAct::PurgeMisplaced { misplaced, .. } => {
            format!("purged {misplaced}, which ceph-volume had created by mistake")
        }
        CephAct::RestoreCrush { osd, former: None, .. } => format!("{osd}: restored its CRUSH location"),
        CephAct::RestoreCrush { osd, item, former: Some(former), .. } => {
            format!("{osd}: changed its CRUSH weight from {former} to {}", item.weight)
        }
        CephAct::RestoreUpmaps { osd, upmaps, .. } => {
            let pgs: Vec<_> = upmaps.iter().map(|upmap| upmap.pg.to_string()).collect();
            format!("{osd}: restored the upmaps of PGs {}", pgs.join(", "))
        }
    }
}

fn of_kube(act: &KubeAct) -> String {
    match act {
        KubeAct::BackUp { osd, .. } => format!("{osd}: backed up its Deployment"),
        KubeAct::Fence { value, .. } => {
            format!("set the fence on the CephCluster (do-not-reconcile={value})")
        }
        KubeAct::Unfence { .. } => "removed the fence from the CephCluster".to_owned(),
        KubeAct::ScaleOperator { name, replicas: 0, .. } => {
            format!("scaled Rook's operator {name} to 0 during the migration")
        }
        KubeAct::ScaleOperator { name, replicas, .. } => {
            format!("scaled Rook's operator {name} back to {replicas}")
        }
        KubeAct::LimitDrains { max_unavailable, .. } => {
            format!("set maxUnavailable of PodDisruptionBudget rook-ceph-osd to {max_unavailable}")
        }
        KubeAct::CreatePdb { .. } => {
            "created PodDisruptionBudget osd-migrate-drains: no OSD may be evicted".to_owned()
        }
        KubeAct::DeletePdb { .. } => {
            "deleted PodDisruptionBudget osd-migrate-drains: OSDs may be evicted again".to_owned()
        }
        KubeAct::Stop { osd, emptied: true, .. } => format!("{osd}: stopped; no PG needs it"),
        KubeAct::Stop { osd, .. } => {
            format!("{osd}: stopped; its PGs have one replica less until its backfill is complete")
        }
        KubeAct::Restart { osd, .. } => format!("{osd}: started again, unchanged"),
        KubeAct::DropDeployment { osd, .. } => {
            format!("{osd}: deleted its old Deployment")
        }
        KubeAct::DropRequest { osd, .. } => format!("{osd}: deleted the request to remove it"),
        KubeAct::Deploy(deploy) => format!("{}: deployed the new OSD", deploy.osd),
        KubeAct::CleanUp { osd, .. } => format!("{osd}: deleted the objects of its record"),
        KubeAct::Adopt(deploy) => {
            format!("{}: created the missing Deployment (fsid {})", deploy.osd, deploy.fsid)
        }
        KubeAct::Tolerate { osd, add, .. } => {
            let keys: Vec<_> = add.iter().map(|toleration| toleration.key.as_str()).collect();
            format!("{osd}: added tolerations for {}", keys.join(", "))
        }
    }
}

fn of_node(act: &NodeAct) -> String {
    match act {
        NodeAct::Agent { request, .. } => {
            let what = match request.task {
                NodeTask::Inspect => "inspect its disk",
                NodeTask::Rebuild => "prove, wipe and prepare its disk",
                NodeTask::RestoreSlot => "restore the slot of its new OSD",
                NodeTask::Clear => "remove its old directory",
                NodeTask::Wipe => "prove and wipe its disk",
            };
            format!("{}: created a Job to {what} (attempt {})", request.osd, request.attempt)
        }
        NodeAct::DropAgent { job, .. } => format!("deleted Job {job}, which did not start"),
        NodeAct::DeleteKey { osd, job, .. } => {
            format!("{osd}: deleted the bootstrap-osd key of Job {job}")
        }
        NodeAct::Inventory { request, .. } => {
            format!("created a Job to inspect the disks of node {}", request.node)
        }
        NodeAct::DeleteInventoryJob { name, .. } => format!("deleted the inventory Job {name}"),
    }
}

fn flags(noout: bool, noin: bool) -> &'static str {
    match (noout, noin) {
        (true, true) => "noout and noin",
        (true, false) => "noout",
        (false, true) => "noin",
        (false, false) => "no flag",
    }
}
