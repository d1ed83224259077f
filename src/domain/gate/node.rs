//! Gates of a node.

use super::answer::{Gate, first_not_open, shut_if};
use super::{Reason, rook};
use crate::domain::observation::Observation;
use crate::domain::osd::{NodeName, OsdId};

/// Returns the gate of one node: it is Ready and not cordoned.
pub fn of_node(node: &NodeName, seen: &Observation) -> Gate {
    first_not_open([node_ready(node, seen), not_cordoned(node, seen)])
}

/// Returns the gate of one node: it is Ready and not cordoned, and Rook is not preparing OSDs there.
pub(super) fn of_node_and_rook(node: &NodeName, seen: &Observation) -> Gate {
    first_not_open([of_node(node, seen), rook::prepares_none_on(Some(node), seen)])
}

pub(super) fn node_ready(node: &NodeName, seen: &Observation) -> Gate {
    match seen.kube.nodes.get(node) {
        Some(found) if found.ready => Gate::Open,
        Some(_) | None => Gate::Unknown(Reason::NodeNotReady { node: node.clone() }),
    }
}

/// Returns the gate that is shut while a pod of a dead OSD is bound to a node that does not answer.
///
/// Kubernetes keeps such a pod until the node answers, is deleted, or is declared out of service: until then
/// the daemon may still be running there.
pub fn node_answers(osd: OsdId, seen: &Observation) -> Gate {
    let is_lost = |node: &&NodeName| seen.kube.nodes.get(*node).is_some_and(|found| !found.ready);
    let pods = seen.kube.daemons.get(&osd).into_iter().flat_map(|daemon| &daemon.pods);
    let lost = pods.filter_map(|pod| pod.node.as_ref()).find(is_lost);
    lost.map_or(Gate::Open, |node| Gate::Unknown(Reason::NodeLost { osd, node: node.clone() }))
}

/// Returns the gate that is shut if the node is cordoned.
///
/// Asked before Stop only: the pod that would start the OSD again, old or new, would find no node. After Stop
/// the best choice is to continue.
pub(super) fn not_cordoned(node: &NodeName, seen: &Observation) -> Gate {
    let cordoned = seen.kube.nodes.get(node).is_some_and(|found| found.cordoned);
    shut_if(cordoned, || Reason::NodeCordoned { node: node.clone() })
}
