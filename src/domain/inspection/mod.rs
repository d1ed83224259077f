//! Contract between the runner and the node agent: requests and reports, as plain data.
//!
//! The request is passed in the environment of the node Job, the report in a ConfigMap. Neither contains a
//! secret: labels of devices contain keys, so only the fields named here leave the node.
//! Mount points in the agent's pod are part of the contract.

mod agent;
mod device;
mod record_id;

pub use agent::{
    Directory, KEY_MOUNT, NodeProblem, NodeReport, NodeRequest, NodeTask, PARENT_MOUNT, PVC_MOUNT,
    ROOK_MOUNT, pvc_node,
};
pub use device::{
    Capability, Content, Evidence, Inspection, KernelDisk, Piece, PieceLocation, Proof, Volume,
};
pub use record_id::RecordId;
