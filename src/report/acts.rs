//! Acts in words, for the log, the status and events.

use crate::domain::act::{Act, CephAct, KubeAct, NodeAct};

/// Returns what an act did, as one sentence.
pub fn words(act: &Act) -> String {
    match act {
        Act::Ceph(act) => of_ceph(act),
        Act::Kube(act) => of_kube(act),
        Act::Node(act) => of_node(act),
    }
}

fn of_ceph(act: &CephAct) -> String {
    match act {
        CephAct::Bootstrap { there: true } => "made client.bootstrap-osd".to_owned(),
        CephAct::Bootstrap { there: false } => "removed client.bootstrap-osd, which we had made".to_owned(),
        CephAct::SetOsdFlags { osd, noout, noin, .. } => {
            format!("{osd}: set {}", flags(*noout, *noin))
        }
        CephAct::UnsetOsdFlags { osd, noout, noin } => {
            format!("{osd}: lifted {}", flags(*noout, *noin))
        }
        CephAct::TakeIn { osd, reweight, .. } => {
            format!("{osd}: taken in again, reweight {reweight}")
        }
        CephAct::Destroy { osd, fsid, .. } => format!("{osd}: destroyed {fsid}"),
        CephAct::Reregister { osd, .. } => format!("{osd}: took its id back"),
        CephAct::PurgeMisplaced { misplaced, .. } => {
            format!("purged {misplaced}, which was made by mistake")
        }
        CephAct::RestoreCrush { osd, former: None, .. } => format!("{osd}: put back into CRUSH"),
        CephAct::RestoreCrush { osd, item, former: Some(former), .. } => {
            format!("{osd}: in CRUSH as recorded, with weight {}, which was {former}", item.weight)
        }
        CephAct::RestoreUpmaps { osd, upmaps, .. } => {
            let pgs: Vec<_> = upmaps.iter().map(|upmap| upmap.pg.to_string()).collect();
            format!("{osd}: put back the upmaps of PGs {}", pgs.join(", "))
        }
    }
}

fn of_kube(act: &KubeAct) -> String {
    match act {
        KubeAct::BackUp { osd, .. } => format!("{osd}: kept its Deployment"),
        KubeAct::Fence { value, .. } => {
            format!("fenced the CephCluster: do-not-reconcile={value}")
        }
        KubeAct::Unfence { value } => format!("lifted the fence {value}"),
        KubeAct::ScaleOperator { name, replicas, .. } => {
            format!("scaled Rook's operator {name} to {replicas}")
        }
        KubeAct::LimitDrains { max_unavailable, .. } => {
            format!("drains may evict {max_unavailable} OSDs at a time (PodDisruptionBudget rook-ceph-osd)")
        }
        KubeAct::CreatePdb { .. } => {
            "made PodDisruptionBudget osd-migrate-drains: no OSD may be evicted".to_owned()
        }
        KubeAct::DeletePdb { .. } => {
            "deleted PodDisruptionBudget osd-migrate-drains: drains have their turn".to_owned()
        }
        KubeAct::Stop { osd, .. } => format!("{osd}: stopped"),
        KubeAct::Restart { osd, .. } => format!("{osd}: started again as it was"),
        KubeAct::DropDeployment { osd, .. } => {
            format!("{osd}: deleted its old Deployment, for Rook to make one")
        }
        KubeAct::Deploy(deploy) => format!("{}: deployed {}", deploy.osd, deploy.fsid),
        KubeAct::CleanUp { osd, .. } => format!("{osd}: swept what was made for its record"),
        KubeAct::Adopt(deploy) => {
            format!("{}: deployed {}, which nothing started", deploy.osd, deploy.fsid)
        }
        KubeAct::Tolerate { osd, add, .. } => {
            let keys: Vec<_> = add.iter().map(|toleration| toleration.key.as_str()).collect();
            format!("{osd}: tolerates {} from now on", keys.join(", "))
        }
    }
}

fn of_node(act: &NodeAct) -> String {
    match act {
        NodeAct::Agent { request, .. } => {
            format!("{}: made Job for {}, attempt {}", request.osd, request.task, request.attempt)
        }
        NodeAct::DropAgent { job, .. } => format!("deleted Job {job}, which did not start"),
        NodeAct::DeleteKey { osd, job, .. } => {
            format!("{osd}: deleted the bootstrap-osd key of Job {job}")
        }
        NodeAct::Inventory { request, .. } => {
            format!("{}: made Job for a look at its disks, number {}", request.node, request.number)
        }
        NodeAct::DeleteInventoryJob { name, .. } => format!("swept the look {name}"),
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
