//! Taints and tolerations, as the scheduler and the kubelet evaluate them.

use crate::domain::observation::Node;
use crate::domain::storage::{Taint, Toleration};

/// Prefixes of taints that Kubernetes sets while a node is cordoned, not ready, short of a resource or not
/// set up yet, and removes afterwards.
///
/// Rook lists them one by one (pkg/operator/k8sutil/taints.go, `WellKnownTaints`, v1.20.6). A person sets
/// `out-of-service`, but it says that nothing may start on the node.
const CONDITIONS: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

/// Returns whether a taint comes and goes with its node's condition.
pub(super) fn is_condition(taint: &Taint) -> bool {
    CONDITIONS.iter().any(|prefix| taint.key.starts_with(prefix))
}

/// Returns whether a toleration covers a taint.
///
/// The rules are those of kubernetes, staging/src/k8s.io/api/core/v1/toleration.go, `ToleratesTaint`, v1.33:
/// the operators are `Equal`, which is the default, and `Exists`; any other operator covers nothing. A
/// toleration with `tolerationSeconds` covers the taint: the pod starts.
fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let is_meant = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    is_meant(&toleration.effect, &taint.effect)
        && is_meant(&toleration.key, &taint.key)
        && match toleration.operator.as_str() {
            "Exists" => true,
            "" | "Equal" => toleration.value == taint.value,
            _ => false,
        }
}

/// Returns whether one of the tolerations covers a taint.
pub(super) fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|toleration| covers(toleration, taint))
}

/// Returns the tolerations that an OSD is missing for taints of its node that prevent its pod from starting
/// (`NoSchedule`, `NoExecute`).
///
/// A taint that is added later then does not stop a node's OSDs. Taints that come and go with the node's
/// condition, including cordoning, get no toleration. A toleration with `tolerationSeconds` does not count
/// for an OSD: its pod would start, be evicted, and start again.
pub fn missing_tolerations(tolerations: &[Toleration], node: &Node) -> Vec<Toleration> {
    let keeps_away = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    let missing = node.taints.iter().filter(keeps_away);
    let lasting: Vec<Toleration> =
        tolerations.iter().filter(|found| found.seconds.is_none()).cloned().collect();
    let missing = missing.filter(|taint| !is_condition(taint) && !is_tolerated(taint, &lasting));
    missing
        .map(|taint| Toleration {
            key: taint.key.clone(),
            operator: "Equal".to_owned(),
            value: taint.value.clone(),
            effect: taint.effect.clone(),
            seconds: None,
        })
        .collect()
}
