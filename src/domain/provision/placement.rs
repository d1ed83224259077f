//! Chooses the nodes that get new OSDs.
//!
//! `spec.placement` applies here, and to new OSDs only: an existing OSD stays.

use std::fmt;

use super::taints::{is_condition, is_tolerated};
use super::wanted::{self, Choice};
use crate::domain::observation::{Node, Observation};
use crate::domain::osd::NodeName;
use crate::domain::storage::{NodeTerm, Placement, Requirement, Taint};

/// Nodes that get new OSDs now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Nodes {
    /// Chosen nodes, in the order of the work.
    pub chosen: Vec<NodeName>,
    /// Nodes that are to get new OSDs and can't now, with the reason.
    ///
    /// With `useAllNodes` the list omits nodes that placement or taints exclude: that is how an owner selects
    /// nodes then.
    pub left_out: Vec<(String, String)>,
}

/// Reason why a node gets no new OSDs now.
enum Obstacle<'a> {
    Placement,
    Taint(&'a Taint),
    Cordoned,
    NotReady,
}

impl fmt::Display for Obstacle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placement => f.write_str("spec.placement (all, osd) does not allow it"),
            Self::Taint(Taint { key, value, effect }) if value.is_empty() => {
                write!(f, "its taint {key}:{effect} is not tolerated by spec.placement (all, osd)")
            }
            Self::Taint(Taint { key, value, effect }) => {
                write!(f, "its taint {key}={value}:{effect} is not tolerated by spec.placement (all, osd)")
            }
            Self::Cordoned => f.write_str("it is cordoned"),
            Self::NotReady => f.write_str("it is not Ready"),
        }
    }
}

/// Returns the nodes that get new OSDs now, and those that are to get them and can't.
///
/// Rook chooses them the same way (pkg/operator/ceph/cluster/osd/create.go, `startProvisioningOverNodes`, and
/// pkg/operator/k8sutil/node.go, `GetValidNodes`, v1.20.6): all nodes or the named ones that placement
/// allows, with every taint tolerated whatever its effect, not cordoned and Ready. `scheduleAlways` (v1.16
/// and later) is not honoured: an agent has to run on the node.
pub fn nodes(seen: &Observation, on_file: bool) -> Nodes {
    let storage = &seen.kube.declaration.storage;
    let mut nodes = Nodes::default();
    if storage.all_nodes {
        if on_file || wanted::anywhere(storage) != Choice::Nothing {
            all(seen, &mut nodes);
        }
    } else {
        named(seen, on_file, &mut nodes);
    }
    nodes
}

fn all(seen: &Observation, nodes: &mut Nodes) {
    for (name, node) in &seen.kube.nodes {
        match obstacle(name, node, &seen.kube.declaration.storage.placement) {
            None => nodes.chosen.push(name.clone()),
            Some(Obstacle::Placement) => {}
            Some(Obstacle::Taint(taint)) if !is_condition(taint) => {}
            Some(why) => nodes.left_out.push((name.to_string(), why.to_string())),
        }
    }
}

fn named(seen: &Observation, on_file: bool, nodes: &mut Nodes) {
    let storage = &seen.kube.declaration.storage;
    for entry in &storage.nodes {
        let is_meant =
            |(name, node): &(&NodeName, &Node)| node.hostname == entry.name || name.0 == entry.name;
        let mut leave_out = |why: String| nodes.left_out.push((entry.name.clone(), why));
        let Some((name, node)) = seen.kube.nodes.iter().find(is_meant) else {
            leave_out(
                "no node has this name or this label kubernetes.io/hostname. See: kubectl get nodes"
                    .to_owned(),
            );
            continue;
        };
        if !on_file && wanted::on(name, seen).choice == Choice::Nothing {
            leave_out(
                "no disks are selected: it has no devices, deviceFilter, devicePathFilter or useAllDevices"
                    .to_owned(),
            );
        } else if let Some(why) = obstacle(name, node, &storage.placement) {
            leave_out(why.to_string());
        } else if !nodes.chosen.contains(name) {
            nodes.chosen.push(name.clone());
        }
    }
}

fn obstacle<'a>(name: &NodeName, node: &'a Node, placement: &Placement) -> Option<Obstacle<'a>> {
    let is_allowed =
        placement.terms.is_empty() || placement.terms.iter().any(|term| term_matches(term, name, node));
    let barring = || node.taints.iter().filter(|taint| !is_tolerated(taint, &placement.tolerations));
    if !is_allowed {
        return Some(Obstacle::Placement);
    }
    if let Some(taint) = barring().find(|taint| !is_condition(taint)) {
        return Some(Obstacle::Taint(taint));
    }
    // These checks come before the taints that such states add to the node: their messages are clearer.
    if node.cordoned {
        return Some(Obstacle::Cordoned);
    }
    if !node.ready {
        return Some(Obstacle::NotReady);
    }
    barring().next().map(Obstacle::Taint)
}

/// Returns whether a term matches a node.
///
/// A term without any requirement matches no node, as in Kubernetes.
///
/// Rook evaluates `matchExpressions` only (`NodeMeetsAffinityTerms`, v1.20.6), but its pods carry the whole
/// term, so both are evaluated here.
fn term_matches(term: &NodeTerm, name: &NodeName, node: &Node) -> bool {
    let says_something = !term.labels.is_empty() || !term.fields.is_empty();
    let label = |key: &str| node.labels.get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(name.0.as_str());
    says_something
        && term.labels.iter().all(|requirement| matches(requirement, label(&requirement.key)))
        && term.fields.iter().all(|requirement| matches(requirement, field(&requirement.key)))
}

/// Evaluates Kubernetes' operators (apimachinery, pkg/labels/selector.go, `Requirement.Matches`).
fn matches(requirement: &Requirement, found: Option<&str>) -> bool {
    let is_listed = |found: &str| requirement.values.iter().any(|value| value == found);
    let compared = || {
        let number = |text: &str| text.parse::<i64>().ok();
        let [wanted] = requirement.values.as_slice() else { return None };
        Some(number(found?)?.cmp(&number(wanted)?))
    };
    match requirement.operator.as_str() {
        "In" => found.is_some_and(is_listed),
        "NotIn" => !found.is_some_and(is_listed),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}
