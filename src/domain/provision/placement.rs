//! Which nodes.
use crate::domain::observation::{Node, Observation};
use crate::domain::osd::NodeName;
use crate::domain::storage::Toleration;

/// Nodes that get new OSDs now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Nodes {
    /// In the order of the work.
    pub chosen: Vec<NodeName>,
    /// Nodes that the owner names and that can't get one now, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// Nodes that get new OSDs now, and those that are meant to and can't.
pub fn nodes(_seen: &Observation, _on_file: bool) -> Nodes {
    Nodes::default()
}

/// Tolerations that an OSD needs for taints which would keep its pod from starting.
pub fn missing_tolerations(_tolerations: &[Toleration], _node: &Node) -> Vec<Toleration> {
    Vec::new()
}
