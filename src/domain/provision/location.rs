//! Place of a new OSD in CRUSH.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::observation::Node;
use crate::domain::storage::Storage;

/// Labels of a node and the bucket types they name, from the host's parent up.
///
/// Order and labels: pkg/operator/ceph/cluster/osd/topology/topology.go, `allKubernetesTopologyLabelsOrdered`
/// (v1.20.6, the same since v1.14).
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

/// Returns the place in CRUSH of a new OSD of a node, bucket type to bucket name, as Rook places it.
///
/// The host is the label `kubernetes.io/hostname` (pkg/operator/ceph/cluster/osd/osd.go,
/// `GetLocationWithNode`, v1.20.6), the root is `config.crushRoot`. Of levels with the same value the lowest
/// counts, because names of buckets are unique (`extractTopologyFromLabels`, v1.20.6). Rook compares the
/// values as the labels have them. Here they are compared as CRUSH has them: `a.b` and `a-b` are one name
/// there.
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

/// Replaces dots with dashes (pkg/daemon/ceph/client/crush.go, `NormalizeCrushName`, v1.20.6).
fn crush_name(label: &str) -> String {
    label.replace('.', "-")
}
