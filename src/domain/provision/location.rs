//! Where in CRUSH a new OSD stands.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::observation::Node;
use crate::domain::storage::Storage;

/// Labels of a node and the bucket types they name, from the host's parent up.
///
/// Order and labels: pkg/operator/ceph/cluster/osd/topology/topology.go, `allKubernetesTopologyLabelsOrdered` (v1.20.6, the same since
/// v1.14).
const LEVELS: [(&str, &str); 9] = [
    ("topology.rook.io/chassis", "chassis"),
    ("topology.rook.io/rack", "rack"),
    ("topology.rook.io/row", "row"),
    ("topology.rook.io/pdu", "pdu"),
    ("topology.rook.io/pod", "pod"),
    ("topology.rook.io/room", "room"),
    ("topology.rook.io/datacenter", "datacenter"),
    ("topology.kubernetes.io/zone", "zone"),
    ("topology.kubernetes.io/region", "region"),
];

/// Where a new OSD of a node stands in CRUSH, bucket type to bucket name, as Rook places it.
///
/// The host is the label `kubernetes.io/hostname` (pkg/operator/ceph/cluster/osd/osd.go, `GetLocationWithNode`, v1.20.6), the root
/// `config.crushRoot`. Of levels with the same value the lowest counts, as names of buckets are unique
/// (`extractTopologyFromLabels`, v1.20.6). Rook compares the values as the labels have them, here they are compared as CRUSH has
/// them: `a.b` and `a-b` are one name there.
pub fn location(node: &Node, storage: &Storage) -> BTreeMap<String, String> {
    let root = if storage.crush_root.is_empty() { "default" } else { storage.crush_root.as_str() };
    let host = crush_name(&node.hostname);
    let mut taken = BTreeSet::from([host.clone()]);
    let mut location = BTreeMap::from([("root".to_owned(), root.to_owned()), ("host".to_owned(), host)]);
    for (label, bucket) in LEVELS {
        let value = node.labels.get(label).map(|value| crush_name(value)).unwrap_or_default();
        if !value.is_empty() && taken.insert(value.clone()) {
            location.insert(bucket.to_owned(), value);
        }
    }
    location
}

/// Dots become dashes (pkg/daemon/ceph/client/crush.go, `NormalizeCrushName`, v1.20.6).
fn crush_name(label: &str) -> String {
    label.replace('.', "-")
}
