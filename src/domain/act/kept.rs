//! Acts after which a partial observation may show that the run waits
//! (`docs/development/adr/0041-partial-observations.md`), and acts after which all OSDs are listed again
//! (`docs/development/adr/0053-list-of-what-changed.md`).

use super::{Act, CephAct, KubeAct, NodeAct};

impl Act {
    /// Returns whether the parts of the last observation that a partial one does not read are kept after the
    /// act.
    ///
    /// They are, if a partial observation reads everything that the act changes, and if the run usually waits
    /// after it: before another act everything is observed anyway.
    pub fn keeps_observation(&self) -> bool {
        match self {
            Self::Ceph(act) => act.keeps_observation(),
            Self::Kube(act) => act.keeps_observation(),
            Self::Node(act) => act.keeps_observation(),
        }
    }

    /// Returns whether the act changes Deployments or pods of OSDs that may have no record afterwards.
    pub fn changes_other_osds(&self) -> bool {
        match self {
            Self::Kube(KubeAct::Adopt(_) | KubeAct::Tolerate { .. }) => true,
            Self::Kube(
                // OSDs in progress, which are read each time.
                KubeAct::DropDeployment { .. }
                | KubeAct::Stop { .. }
                | KubeAct::Restart { .. }
                | KubeAct::Deploy(_)
                // Objects of other kinds.
                | KubeAct::Fence { .. }
                | KubeAct::Unfence { .. }
                | KubeAct::ScaleOperator { .. }
                | KubeAct::DropRequest { .. }
                | KubeAct::BackUp { .. }
                | KubeAct::LimitDrains { .. }
                | KubeAct::CreatePdb { .. }
                | KubeAct::DeletePdb { .. }
                | KubeAct::CleanUp { .. },
            )
            | Self::Ceph(_)
            | Self::Node(_) => false,
        }
    }
}

impl CephAct {
    fn keeps_observation(&self) -> bool {
        match self {
            // The osdmap is read. But a save or another act follows each of these, and metadata, usage and
            // keys of slots that come or go are among what is kept.
            Self::Bootstrap { .. }
            | Self::SetNoScrub { .. }
            | Self::UnsetNoScrub { .. }
            | Self::SetFastRecovery { .. }
            | Self::UnsetFastRecovery { .. }
            | Self::SetOsdFlags { .. }
            | Self::UnsetOsdFlags { .. }
            | Self::TakeIn { .. }
            | Self::MarkOut { .. }
            | Self::DropWeight { .. }
            | Self::RestoreWeight { .. }
            | Self::Purge { .. }
            | Self::RemoveHost { .. }
            | Self::Destroy { .. }
            | Self::Reregister { .. }
            | Self::PurgeMisplaced { .. }
            | Self::RestoreCrush { .. }
            | Self::RestoreUpmaps { .. } => false,
        }
    }
}

impl KubeAct {
    fn keeps_observation(&self) -> bool {
        match self {
            // Deployment and pods of an OSD in progress, which are read.
            Self::Stop { .. } | Self::Restart { .. } => true,
            // A claim of a new OSD may be bound by now, and Rook may rotate its key.
            Self::Deploy(deploy) => deploy.pvcs.is_none(),
            // The fence and the operator decide what Rook skips.
            Self::Fence { .. }
            | Self::Unfence { .. }
            | Self::ScaleOperator { .. }
            // OSDs without a record are not read.
            | Self::Adopt(_)
            | Self::Tolerate { .. }
            // Rook creates what was dropped, or an OSD is gone.
            | Self::DropDeployment { .. }
            | Self::DropRequest { .. }
            // All of it is read, and the next step follows at once.
            | Self::BackUp { .. }
            | Self::LimitDrains { .. }
            | Self::CreatePdb { .. }
            | Self::DeletePdb { .. }
            | Self::CleanUp { .. } => false,
        }
    }
}

impl NodeAct {
    fn keeps_observation(&self) -> bool {
        match self {
            // Jobs and ConfigMaps of agents are read. The pod of an agent may bind its claims.
            Self::Agent { request, .. } => request.pvcs.is_none(),
            // Volumes of nodes are read while there is an inventory.
            Self::Inventory { .. }
            | Self::DeleteInventoryJob { .. }
            // The next step follows at once.
            | Self::DropAgent { .. }
            | Self::DeleteKey { .. } => false,
        }
    }
}
