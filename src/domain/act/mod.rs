//! The acts: each names what it expects to find. An adapter that finds something else does nothing and says so (P6).
//!
//! There is one enum per target, so that an act that goes to the wrong adapter does not compile.

mod ceph;
mod kubernetes;
mod node;
mod precondition;

use serde::Serialize;

pub use ceph::CephAct;
pub use kubernetes::{Deploy, Fresh, KubeAct};
pub use node::NodeAct;
pub use precondition::DataPrecondition;

/// One effect on the cluster, by who is asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Act {
    /// A command to Ceph.
    Ceph(CephAct),
    /// An object of Kubernetes is changed.
    Kube(KubeAct),
    /// The Job of an agent on a node is created or deleted.
    Node(NodeAct),
}
