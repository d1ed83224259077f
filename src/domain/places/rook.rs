//! How Rook is let do what osd-migrate does not do for a device set.

use std::fmt;

use crate::domain::commands::{REMOVE_FENCE, scale_operator};
use crate::domain::view::View;

/// Action of a person after which Rook reconciles.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LetRook {
    /// The operator (namespace/name) is scaled to 0.
    ScaleUp(String),
    /// The owner ordered a fence (`osd-migrate fence`).
    RemoveFence,
    /// Another client fenced the CephCluster.
    RemoveLabel,
    /// The operator (namespace/name) is running.
    Wait(String),
    /// No operator is found.
    Start,
}

impl LetRook {
    /// Returns what keeps Rook from reconciling now.
    pub fn of(view: View<'_>) -> Self {
        let kube = &view.seen.kube;
        match (&kube.operator, &kube.fence) {
            (None, _) => Self::Start,
            (Some(operator), _) if !operator.runs() => Self::ScaleUp(operator.name.clone()),
            (Some(_), Some(_)) if view.ledger.run.fence_order.is_some() => Self::RemoveFence,
            (Some(_), Some(fence)) if view.our_fence() != Some(fence) => Self::RemoveLabel,
            (Some(operator), _) => Self::Wait(operator.name.clone()),
        }
    }
}

impl fmt::Display for LetRook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScaleUp(name) => write!(f, "Let Rook create it: {}", scale_operator(name, 1)),
            Self::RemoveFence => write!(f, "Let Rook create it: {REMOVE_FENCE}"),
            Self::RemoveLabel => f.write_str(
                "Let Rook create it, and remove the fence: kubectl -n NAMESPACE label cephcluster CEPHCLUSTER \
                 ceph.rook.io/do-not-reconcile-",
            ),
            Self::Wait(name) => {
                let (namespace, name) = name.split_once('/').unwrap_or_default();
                write!(
                    f,
                    "Rook's operator is running and creates it. See: kubectl -n {namespace} logs deployment/{name}"
                )
            }
            Self::Start => f.write_str(
                "Rook creates it, but its operator was not found. Start it, or name its namespace with \
                 --operator-namespace",
            ),
        }
    }
}
