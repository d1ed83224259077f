//! Acts that create or delete the Job of an agent on a node.

use serde::Serialize;

use super::DataPrecondition;
use crate::domain::inspection::NodeRequest;
use crate::domain::inventory::InventoryRequest;
use crate::domain::osd::OsdId;

/// One effect on the Jobs of node agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeAct {
    /// Creates the node Job of a saved attempt; an existing one is success.
    Agent {
        /// What the agent gets.
        request: NodeRequest,
        /// Image the agent runs in.
        image: String,
        /// The host folder `dataDirHostPath`.
        data_dir: String,
        /// What must hold, where the agent is to wipe the old data.
        precondition: Option<DataPrecondition>,
    },
    /// Deletes a node Job whose container did not start.
    DropAgent {
        /// Name of the Job.
        job: String,
        /// uid expected.
        uid: String,
    },
    /// Deletes the ConfigMap that owns the Secret with the key of a node Job; the Secret goes with it.
    DeleteKey {
        /// The OSD.
        osd: OsdId,
        /// Name of the node Job.
        job: String,
        /// uid of the ConfigMap expected.
        uid: String,
    },
    /// Creates the ConfigMap and the Job of an inventory of a node's disks. Existing ones are success.
    Inventory {
        /// What the agent gets.
        request: InventoryRequest,
        /// Image the agent runs in.
        image: String,
        /// The host folder `dataDirHostPath`.
        data_dir: String,
    },
    /// Deletes the ConfigMap of an inventory that no node needs any more; Kubernetes deletes its Job with it.
    DeleteInventoryJob {
        /// Name of its ConfigMap and Job.
        name: String,
        /// uid of the ConfigMap expected.
        uid: String,
    },
}
