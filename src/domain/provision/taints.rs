//! Taints and tolerations, as the scheduler and the kubelet read them.

use crate::domain::observation::Node;
use crate::domain::storage::{Taint, Toleration};

/// Prefixes of taints that Kubernetes puts on a node while it is cordoned, not ready, short of something or not set up yet: they go
/// with that. Rook lists them one by one (pkg/operator/k8sutil/taints.go, `WellKnownTaints`, v1.20.6). `out-of-service` is a
/// person's, but says of a node that nothing may start there.
const CONDITIONS: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

/// Whether a taint comes and goes with its node's condition.
pub(super) fn is_condition(taint: &Taint) -> bool {
    CONDITIONS.iter().any(|prefix| taint.key.starts_with(prefix))
}

/// Whether a toleration covers a taint (kubernetes, staging/src/k8s.io/api/core/v1/toleration.go, `ToleratesTaint`, v1.33: the
/// operators `Equal`, which is meant where none is written, and `Exists`; another one covers nothing). One for a time
/// (`tolerationSeconds`) covers: the pod starts.
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

/// Whether one of the tolerations covers a taint.
pub(super) fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|toleration| covers(toleration, taint))
}

/// Tolerations that an OSD lacks for taints of its node which keep its pod from starting (`NoSchedule`, `NoExecute`), so that a
/// taint that came later does not take a node's OSDs away. Not for those that come and go with the node's condition,
/// cordoning among them. One for a time (`tolerationSeconds`) is none for an OSD: its pod would start, be evicted, and start again.
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
