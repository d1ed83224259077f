//! Acts that create or delete the Job of a node agent.

use serde::Serialize;

use super::DataPrecondition;
use crate::domain::inspection::NodeRequest;
use crate::domain::inventory::InventoryRequest;
use crate::domain::osd::OsdId;

/// One effect on the Jobs of node agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NodeAct {
    /// Creates the node Job of a saved attempt. An existing one is success.
    #[strum(serialize = "create-agent")]
    Agent {
        /// The request for the agent.
        request: NodeRequest,
        /// Image that the agent runs in.
        image: String,
        /// The host folder `dataDirHostPath`.
        data_dir: String,
        /// The data precondition, if the agent is to wipe the old data.
        precondition: Option<DataPrecondition>,
    },
    /// Deletes a node Job whose container did not start.
    DropAgent {
        /// Name of the Job.
        job: String,
        /// expected uid
        uid: String,
    },
    /// Deletes the ConfigMap that owns the Secret with the key of a node Job. Kubernetes deletes the Secret
    /// with it.
    DeleteKey {
        /// The OSD.
        osd: OsdId,
        /// Name of the node Job.
        job: String,
        /// expected uid of the ConfigMap
        uid: String,
    },
    /// Creates the ConfigMap and the Job of an inventory of a node's disks. Existing ones are success.
    Inventory {
        /// The request for the agent.
        request: InventoryRequest,
        /// Image that the agent runs in.
        image: String,
        /// The host folder `dataDirHostPath`.
        data_dir: String,
    },
    /// Deletes the ConfigMap of an inventory that no node needs any more. Kubernetes deletes its Job with it.
    DeleteInventoryJob {
        /// Name of the ConfigMap and the Job.
        name: String,
        /// expected uid of the ConfigMap
        uid: String,
    },
}
