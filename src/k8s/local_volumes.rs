//! PersistentVolumes on paths of nodes. Pure except for the list.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume};

use crate::domain::observation::{Kube, LocalVolume, OnPvcs};
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;

const HOSTNAME: &str = "kubernetes.io/hostname";
const NODE_NAME: &str = "metadata.name";

/// Suffixes of a quantity (apimachinery, pkg/api/resource/suffix.go) that capacities of disks have.
const UNITS: [(&str, u64); 10] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
];

impl K8s {
    /// Lists the PersistentVolumes that disks of nodes may be, if decisions about disks need them.
    ///
    /// These are all volumes on paths of nodes, and of those that a driver attaches, the block volumes of
    /// this namespace that no pod of an OSD uses. A volume in use has a holder on its node.
    pub(super) async fn local_volumes(&self, kube: &Kube) -> Result<Vec<LocalVolume>, K8sError> {
        if kube.inventories.is_empty() {
            return Ok(Vec::new());
        }
        let used = in_use(kube);
        let may_be_here = |volume: &LocalVolume| {
            let claim = || volume.claim.as_deref()?.strip_prefix(&self.place.namespace)?.strip_prefix('/');
            volume.path.is_some() || (volume.is_block && claim().is_some_and(|pvc| !used.contains(pvc)))
        };
        let volumes = self.cluster_kind::<PersistentVolume>();
        volumes.list("", |volume| local_volume(&volume).filter(may_be_here)).await
    }
}

/// Returns the PVCs that pods of OSDs use.
fn in_use(kube: &Kube) -> BTreeSet<&str> {
    let running = kube.daemons.values().filter(|daemon| !daemon.pods.is_empty());
    let named = running.filter_map(|daemon| daemon.on_pvcs.as_ref());
    named.flat_map(OnPvcs::names).collect()
}

fn local_volume(volume: &PersistentVolume) -> Option<LocalVolume> {
    let spec = volume.spec.as_ref()?;
    let path = spec.local.as_ref().map(|local| local.path.clone());
    let claim = spec
        .claim_ref
        .as_ref()
        .and_then(|claim| Some(format!("{}/{}", claim.namespace.as_deref()?, claim.name.as_deref()?)));
    Some(LocalVolume {
        name: volume.metadata.name.clone().unwrap_or_default(),
        path,
        claim,
        is_block: spec.volume_mode.as_deref() == Some("Block"),
        bytes: spec.capacity.as_ref().and_then(|all| bytes(&all.get("storage")?.0)),
        nodes: nodes_of(volume),
    })
}

/// Returns the nodes that a volume can be used on, by their names or host names; `None` if it names none.
pub(super) fn nodes_of(volume: &PersistentVolume) -> Option<BTreeSet<String>> {
    let required = volume.spec.as_ref()?.node_affinity.as_ref()?.required.as_ref()?;
    let terms: Option<Vec<_>> = required.node_selector_terms.iter().map(nodes).collect();
    Some(terms?.into_iter().flatten().collect())
}

/// Returns the nodes that a term names; none if it names none, so that the volume may be on any node.
fn nodes(term: &NodeSelectorTerm) -> Option<BTreeSet<String>> {
    let fields = term.match_fields.iter().flatten().filter(|field| field.key == NODE_NAME);
    let labels = term.match_expressions.iter().flatten().filter(|label| label.key == HOSTNAME);
    let named = fields.chain(labels).find(|requirement| requirement.operator == "In")?;
    Some(named.values.iter().flatten().cloned().collect())
}

fn bytes(quantity: &str) -> Option<u64> {
    let unit = UNITS.iter().find_map(|(suffix, factor)| Some((quantity.strip_suffix(suffix)?, *factor)));
    let (number, factor) = unit.unwrap_or((quantity, 1));
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn local_volume_is_read_with_path_pvc_size_and_nodes() {
        let terms = json!([{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]},
            {"key": HOSTNAME, "operator": "In", "values": ["h1"]}]},
            {"matchFields": [{"key": NODE_NAME, "operator": "In", "values": ["h2"]}]}]);
        let volume = json!({"metadata": {"name": "pv1"}, "spec": {"local": {"path": "/mnt/disks/a"}, "volumeMode": "Block",
            "capacity": {"storage": "10Gi"}, "claimRef": {"namespace": "rook-ceph", "name": "set1-data-0x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
        let found = local_volume(&serde_json::from_value(volume.clone()).unwrap()).unwrap();
        assert_eq!((found.name.as_str(), found.is_block), ("pv1", true));
        assert_eq!(found.path.as_deref(), Some("/mnt/disks/a"));
        assert_eq!((found.claim.as_deref(), found.bytes), (Some("rook-ceph/set1-data-0x"), Some(10 << 30)));
        assert_eq!(found.nodes, Some(["h1".to_owned(), "h2".to_owned()].into()));
        let mut anywhere = volume;
        anywhere["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][1] =
            json!({"matchExpressions": []});
        assert_eq!(local_volume(&serde_json::from_value(anywhere).unwrap()).unwrap().nodes, None);
        let other =
            json!({"metadata": {"name": "pv2"}, "spec": {"csi": {"driver": "d", "volumeHandle": "h"}}});
        assert_eq!(local_volume(&serde_json::from_value(other).unwrap()).unwrap().path, None);
    }

    #[test]
    fn volume_that_a_pod_of_an_osd_uses_is_in_use() {
        let mut kube = crate::sim::example::pvc_to_be_plain().kube;
        assert_eq!(in_use(&kube), [crate::sim::example::PVC].into());
        kube.daemons.get_mut(&crate::domain::osd::OsdId(0)).unwrap().pods.clear();
        assert_eq!(in_use(&kube), BTreeSet::new());
    }

    #[test]
    fn captured_local_volumes_have_node_disk_and_claim() {
        let text = include_str!("../../tests/suite/fixtures/pvc/16.2.15/volumes.json");
        let volumes: Vec<PersistentVolume> = serde_json::from_str(text).unwrap();
        let found: Vec<_> = volumes.iter().map(|volume| local_volume(volume).unwrap()).collect();
        let nodes = [("lab-pv-1", "h1"), ("lab-pv-2", "h2"), ("lab-pv-2db", "h2"), ("lab-pv-u1", "u1")];
        assert_eq!(found.len(), nodes.len());
        for (volume, (name, node)) in found.iter().zip(nodes) {
            assert_eq!(
                (volume.name.as_str(), volume.path.as_deref()),
                (name, Some(&*format!("/dev/disk/by-id/{name}")))
            );
            assert_eq!((volume.nodes.clone(), volume.bytes), (Some([node.to_owned()].into()), Some(6 << 30)));
            assert!(volume.is_block && volume.claim.as_deref().unwrap().starts_with("rook-ceph/set"));
        }
    }

    #[test]
    fn storage_quantity_that_can_not_be_parsed_is_unknown() {
        for (text, expected) in [
            ("5368709120", Some(5 << 30)),
            ("5Gi", Some(5 << 30)),
            ("6T", Some(6_000_000_000_000)),
            ("1.5Ti", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
