//! Code of an act, the OSD that it concerns, and what else it needs.

use super::{Act, CephAct, KubeAct, NodeAct};
use crate::domain::osd::OsdId;

impl Act {
    /// Returns the code, for the log.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Ceph(act) => act.into(),
            Self::Kube(act) => act.into(),
            Self::Node(act) => act.into(),
        }
    }

    /// Returns the OSD that the act concerns; none if it concerns the whole run or a node.
    pub fn osd(&self) -> Option<OsdId> {
        match self {
            Self::Ceph(
                CephAct::SetOsdFlags { osd, .. }
                | CephAct::UnsetOsdFlags { osd, .. }
                | CephAct::TakeIn { osd, .. }
                | CephAct::MarkOut { osd, .. }
                | CephAct::DropWeight { osd, .. }
                | CephAct::RestoreWeight { osd, .. }
                | CephAct::Purge { osd, .. }
                | CephAct::RemoveHost { osd, .. }
                | CephAct::Destroy { osd, .. }
                | CephAct::Reregister { osd, .. }
                | CephAct::RestoreCrush { osd, .. }
                | CephAct::RestoreUpmaps { osd, .. },
            )
            | Self::Kube(
                KubeAct::BackUp { osd, .. }
                | KubeAct::Stop { osd, .. }
                | KubeAct::Restart { osd, .. }
                | KubeAct::DropDeployment { osd, .. }
                | KubeAct::DropRequest { osd, .. }
                | KubeAct::Tolerate { osd, .. }
                | KubeAct::CleanUp { osd, .. },
            )
            | Self::Node(NodeAct::DeleteKey { osd, .. }) => Some(*osd),
            Self::Kube(KubeAct::Deploy(deploy) | KubeAct::Adopt(deploy)) => Some(deploy.osd),
            Self::Node(NodeAct::Agent { request, .. }) => Some(request.osd),
            Self::Ceph(
                CephAct::Bootstrap { .. }
                | CephAct::SetNoScrub { .. }
                | CephAct::UnsetNoScrub { .. }
                | CephAct::SetFastRecovery { .. }
                | CephAct::UnsetFastRecovery { .. }
                | CephAct::PurgeMisplaced { .. },
            )
            | Self::Kube(
                KubeAct::Fence { .. }
                | KubeAct::Unfence { .. }
                | KubeAct::ScaleOperator { .. }
                | KubeAct::LimitDrains { .. }
                | KubeAct::CreatePdb { .. }
                | KubeAct::DeletePdb { .. },
            )
            | Self::Node(
                NodeAct::DropAgent { .. } | NodeAct::Inventory { .. } | NodeAct::DeleteInventoryJob { .. },
            ) => None,
        }
    }

    /// Returns whether the act needs the OSD's only Deployment, or does what a second one must not see.
    ///
    /// The pod of a second Deployment may have the device open.
    pub fn needs_only_deployment(&self) -> bool {
        match self {
            Self::Ceph(act) => matches!(act, CephAct::Destroy { .. } | CephAct::Purge { .. }),
            Self::Kube(act) => match act {
                KubeAct::BackUp { .. }
                | KubeAct::Stop { .. }
                | KubeAct::Restart { .. }
                | KubeAct::DropDeployment { .. }
                | KubeAct::Deploy(_)
                | KubeAct::Adopt(_)
                | KubeAct::Tolerate { .. } => true,
                KubeAct::Fence { .. }
                | KubeAct::Unfence { .. }
                | KubeAct::ScaleOperator { .. }
                | KubeAct::LimitDrains { .. }
                | KubeAct::CreatePdb { .. }
                | KubeAct::DeletePdb { .. }
                | KubeAct::DropRequest { .. }
                | KubeAct::CleanUp { .. } => false,
            },
            Self::Node(act) => match act {
                NodeAct::Agent { .. } => true,
                NodeAct::DropAgent { .. }
                | NodeAct::DeleteKey { .. }
                | NodeAct::Inventory { .. }
                | NodeAct::DeleteInventoryJob { .. } => false,
            },
        }
    }

    /// Returns whether the act only lets Ceph heal without an OSD.
    ///
    /// Such an act is also done if the ledger cannot be read: it loses no data, and a runner that needs the
    /// flag sets it again.
    pub fn only_lifts_noout(&self) -> bool {
        matches!(self, Self::Ceph(CephAct::UnsetOsdFlags { noout: true, noin: false, .. }))
    }
}

impl CephAct {
    /// Returns whether only the ledger shows whose the change is, and nothing in Ceph does.
    ///
    /// The ledger is read again right before the command.
    pub fn needs_same_ledger(&self) -> bool {
        matches!(
            self,
            Self::SetNoScrub { .. }
                | Self::UnsetNoScrub { .. }
                | Self::SetFastRecovery { .. }
                | Self::UnsetFastRecovery { .. }
        )
    }
}
