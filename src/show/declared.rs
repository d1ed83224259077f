//! `plan`: a CephCluster that declares no node, or no disk.

use crate::domain::observation::Observation;
use crate::domain::provision;

/// Returns the remark that the CephCluster selects no disk at all although OSDs are on disks of nodes.
///
/// None if it selects some, or if all OSDs are on PVCs, which their device sets declare.
pub fn nothing_declared(seen: &Observation) -> Option<String> {
    let is_on_a_disk = seen.kube.daemons.values().any(|daemon| daemon.on_pvcs.is_none());
    let why = provision::declares_nothing(seen).filter(|_| is_on_a_disk)?;
    Some(format!(
        "In the CephCluster, {why}. No OSD is removed for that, and no disk becomes a new OSD. If this is an error: \
         kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::plan::Questions;
    use crate::domain::storage::{Storage, StorageNode};
    use crate::sim::example;

    #[test]
    fn plan_remarks_that_no_node_or_no_disk_is_declared() {
        let mut seen = example::two_replicas_with_a_spare_osd().observe(|_| Questions::default());
        seen.kube.declaration.storage = Storage::default();
        let said = nothing_declared(&seen).unwrap();
        assert!(said.contains("useAllNodes is false, and spec.storage.nodes names no node"), "{said}");
        assert!(said.contains("kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER"), "{said}");
        seen.kube.declaration.storage.nodes =
            vec![StorageNode { name: "h1".to_owned(), ..StorageNode::default() }];
        let said = nothing_declared(&seen).unwrap();
        assert!(said.contains("useAllDevices is false, and spec.storage has neither devices"), "{said}");
        seen.kube.declaration.storage.nodes[0].selection.filter = Some("sdb".to_owned());
        assert_eq!(nothing_declared(&seen), None);
        seen.kube.declaration.storage = Storage::default();
        seen.kube.daemons.clear();
        assert_eq!(nothing_declared(&seen), None, "no OSD is on a disk");
    }
}
