//! Gates of a node.

use super::Reason;
use super::answer::{Gate, first_not_open, shut_if};
use crate::domain::observation::Observation;
use crate::domain::osd::NodeName;

/// Returns the gate of one node: it is Ready and not cordoned.
pub fn of_node(node: &NodeName, seen: &Observation) -> Gate {
    first_not_open([node_ready(node, seen), not_cordoned(node, seen)])
}

pub(super) fn node_ready(node: &NodeName, seen: &Observation) -> Gate {
    match seen.kube.nodes.get(node) {
        Some(found) if found.ready => Gate::Open,
        Some(_) | None => Gate::Unknown(Reason::NodeNotReady { node: node.clone() }),
    }
}

/// Returns the gate that is shut if the node is cordoned.
///
/// Asked before Stop only: the pod that would start the OSD again, old or new, would find no node. After Stop
/// the best choice is to continue.
pub(super) fn not_cordoned(node: &NodeName, seen: &Observation) -> Gate {
    let cordoned = seen.kube.nodes.get(node).is_some_and(|found| found.cordoned);
    shut_if(cordoned, || Reason::NodeCordoned { node: node.clone() })
}
