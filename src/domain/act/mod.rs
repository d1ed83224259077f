//! Acts. Each act names what it expects to find. An adapter that finds something else does nothing and
//! reports it (P6).
//!
//! There is one enum per target, so that an act that goes to the wrong adapter does not compile.

mod ceph;
mod check;
mod kept;
mod kubernetes;
mod node;
mod precondition;
mod subject;

use serde::Serialize;

pub use ceph::CephAct;
pub use check::Check;
pub use kubernetes::{Deploy, Fresh, KubeAct, SourceDeployment};
pub use node::NodeAct;
pub use precondition::DataPrecondition;

/// One effect on the cluster, by target.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Act {
    /// A command to Ceph.
    Ceph(CephAct),
    /// A change of a Kubernetes object.
    Kube(KubeAct),
    /// Creation or deletion of a node agent's Job.
    Node(NodeAct),
}
