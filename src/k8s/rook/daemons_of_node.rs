//! Mons and mgrs on a node, for a person who removes the OSDs of the node. No decision depends on them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use crate::domain::osd::NodeName;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::pods;

/// Pods of mons and mgrs, by the label that Rook gives them (pkg/operator/ceph/cluster/mon/mon.go `AppName`,
/// mgr/mgr.go, v1.20.6).
const MONS_AND_MGRS: &str = "app in (rook-ceph-mon,rook-ceph-mgr)";

impl K8s {
    /// Returns the mons and mgrs on a node, as `mon.a`.
    pub async fn mons_and_mgrs(&self, node: &NodeName) -> Result<BTreeSet<String>, K8sError> {
        let found = self.kind::<Pod>().list(MONS_AND_MGRS, |pod| daemon_on(node, &pod)).await?;
        Ok(found.into_iter().collect())
    }
}

/// Returns the daemon of a pod that is bound to the node and has not ended.
///
/// The labels are those that Rook gives to all daemons of Ceph (pkg/operator/ceph/controller/spec.go,
/// `CephDaemonAppLabels`, v1.20.6).
fn daemon_on(node: &NodeName, pod: &Pod) -> Option<String> {
    let is_on_it = pod.spec.as_ref()?.node_name.as_ref() == Some(&node.0);
    let label = |key: &str| pod.metadata.labels.as_ref()?.get(key);
    let name = format!("{}.{}", label("ceph_daemon_type")?, label("ceph_daemon_id")?);
    (is_on_it && !pods::is_terminal(pod)).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::k8s::wire::{list, on, play};

    #[tokio::test]
    async fn mons_and_mgrs_of_a_node_are_named_once() {
        let pod = |kind: &str, id: &str, node: &str, phase: &str| -> Value {
            json!({"metadata": {"name": id, "labels": {"ceph_daemon_type": kind, "ceph_daemon_id": id}},
                "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase}})
        };
        let pods = [
            pod("mon", "a", "h3", "Running"),
            pod("mon", "a", "h3", "Running"),
            pod("mon", "b", "h2", "Running"),
            pod("mgr", "b", "h3", "Pending"),
            pod("mgr", "a", "h3", "Failed"),
            json!({"metadata": {"name": "x"}, "spec": {"nodeName": "h3", "containers": []}}),
        ];
        let path = "GET /api/v1/namespaces/rook-ceph/pods?&labelSelector=app+in+%28rook-ceph-mon%2Crook-ceph-mgr%29&limit=100";
        let node = NodeName("h3".to_owned());
        let script = vec![on(path, 200, list(&pods))];
        let found = play(script, async |k8s| k8s.mons_and_mgrs(&node).await).await.unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["mgr.b", "mon.a"]);
    }
}
