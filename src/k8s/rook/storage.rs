//! `spec.storage` and `spec.placement` of a CephCluster.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::device_set::{DATA, DeviceSet};
use crate::domain::osd::Weight;
use crate::domain::storage::{
    DeviceConfig, DeviceSelection, NamedDevice, NodeTerm, Placement, Requirement, Resources, Storage,
    StorageNode,
};
use crate::k8s::tolerations;

/// Reads what the CephCluster declares for new OSDs.
///
/// Keys and kinds: pkg/apis/ceph.rook.io/v1/types.go (`StorageScopeSpec`, `Node`, `Selection`, `Device`) and
/// pkg/operator/ceph/cluster/osd/config/config.go (`ToStoreConfig`), Rook v1.20.6.
pub(crate) fn declared(spec: &Value) -> Storage {
    let none = Value::Null;
    let storage = spec.get("storage").unwrap_or(&none);
    let crush_root = storage.pointer("/config/crushRoot").map(scalar).unwrap_or_default();
    let mut config = config_of(storage, "spec.storage");
    let all_nodes = boolean(storage, "useAllNodes", "spec.storage", &mut config.unreadable) == Some(true);
    let selection = selection(storage, "spec.storage", &mut config.unreadable);
    Storage {
        all_nodes,
        nodes: items(storage, "nodes").filter_map(node).collect(),
        selection,
        config,
        crush_root: if crush_root.is_empty() { "default".to_owned() } else { crush_root },
        sets: items(storage, "storageClassDeviceSets").map(set).collect(),
        directories: directories(storage),
        placement: placement(spec, storage),
    }
}

/// Reads the paths of `directories`, of the cluster and of its nodes (pkg/apis/rook.io/v1/types.go, v1.2.7).
fn directories(storage: &Value) -> BTreeSet<String> {
    let of = |place: &Value| {
        items(place, "directories").filter_map(|entry| text(entry, "path")).collect::<Vec<_>>()
    };
    let all = of(storage).into_iter().chain(items(storage, "nodes").flat_map(of));
    all.map(|path| path.trim_end_matches('/').to_owned()).collect()
}

/// Reads an entry of `storageClassDeviceSets`.
fn set(set: &Value) -> DeviceSet {
    let name_of = |template: &Value| template.pointer("/metadata/name").map(scalar).unwrap_or_default();
    let found = DeviceSet {
        name: text(set, "name").unwrap_or_default(),
        encrypted: set.get("encrypted").is_some_and(is_true),
        templates: items(set, "volumeClaimTemplates").map(name_of).collect(),
        count: set.get("count").and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok()),
        portable: set.get("portable").is_some_and(is_true),
        device_class: None,
    };
    // Rook reads the class from the template for the data only (`createDeviceSetPVCsForIndex`, deviceSet.go,
    // v1.20.6).
    let is_for_data = |template: &&Value| {
        let name = name_of(template);
        name == found.data_template() || (name.is_empty() && found.data_template() == DATA)
    };
    let class = items(set, "volumeClaimTemplates").find(is_for_data);
    let class = class.and_then(|template| template.pointer("/metadata/annotations/crushDeviceClass"));
    DeviceSet { device_class: class.map(scalar).filter(|class| !class.is_empty()), ..found }
}

/// Reads `requests` and `limits` of one kind of pod.
pub(crate) fn resources(declared: Option<&Value>) -> Resources {
    let quantities = |field: &str| {
        let all = declared.and_then(|of| of.get(field)?.as_object()).into_iter().flatten();
        all.map(|(name, quantity)| (name.clone(), scalar(quantity))).collect()
    };
    Resources { requests: quantities("requests"), limits: quantities("limits") }
}

/// Reads an entry of `nodes`; an entry without a name selects no node (Rook: "skipping node with a blank
/// name").
fn node(node: &Value) -> Option<StorageNode> {
    let name = text(node, "name").filter(|name| !name.is_empty())?;
    let at = format!("spec.storage.nodes[{name}]");
    let mut config = config_of(node, &at);
    let selection = selection(node, &at, &mut config.unreadable);
    Some(StorageNode { name, selection, config })
}

fn selection(holder: &Value, at: &str, unreadable: &mut Vec<String>) -> DeviceSelection {
    let device = |device: &Value| {
        // `fullpath` goes before `name` (pkg/operator/ceph/cluster/osd/provision_spec.go,
        // `provisionOSDContainer`, v1.20.6).
        let full_path = text(device, "fullpath").filter(|path| !path.is_empty());
        let name = full_path.or_else(|| text(device, "name")).unwrap_or_default();
        let config = config_of(device, &format!("{at}.devices[{name}]"));
        NamedDevice { name, config }
    };
    DeviceSelection {
        all: boolean(holder, "useAllDevices", at, unreadable),
        filter: text(holder, "deviceFilter"),
        path_filter: text(holder, "devicePathFilter"),
        devices: items(holder, "devices").map(device).collect(),
    }
}

/// Reads a `config`.
///
/// Rook ignores a value that it can't read. Here no OSD is created with such a `config`, because the intended
/// value is unknown. `primaryAffinity` is left to Rook, which sets it when it adopts the OSD.
fn config_of(holder: &Value, at: &str) -> DeviceConfig {
    let none = Value::Null;
    let config = holder.get("config").unwrap_or(&none);
    let at = format!("{at}.config");
    let mut unreadable = Vec::new();
    let database_size_mb = number(config, "databaseSizeMB", &at, &mut unreadable);
    let wal_size_mb = number(config, "walSizeMB", &at, &mut unreadable);
    let osds_per_device = number(config, "osdsPerDevice", &at, &mut unreadable);
    let encrypted = boolean(config, "encryptedDevice", &at, &mut unreadable);
    let weight = text(config, "initialWeight").filter(|weight| !weight.is_empty());
    let initial_weight = weight.and_then(|weight| {
        let decimal = weight.trim().parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight >= 0.0);
        if decimal.is_none() {
            unreadable.push(format!("{at}.initialWeight is `{weight}`, not a weight in TiB"));
        }
        decimal.map(Weight::from_decimal)
    });
    DeviceConfig {
        metadata_device: text(config, "metadataDevice"),
        database_size_mb,
        wal_size_mb,
        osds_per_device: osds_per_device.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        device_class: text(config, "deviceClass"),
        encrypted,
        initial_weight,
        unreadable,
    }
}

/// Returns a value as text, whether it is written as a string or not; null counts as absent.
fn text(holder: &Value, key: &str) -> Option<String> {
    holder.get(key).filter(|value| !value.is_null()).map(scalar)
}

/// Reads a whole number.
///
/// An empty value is 0: that is how a node overrides the value of the cluster.
fn number(holder: &Value, key: &str, at: &str, unreadable: &mut Vec<String>) -> Option<u64> {
    let value = text(holder, key)?;
    let parsed = if value.is_empty() { Some(0) } else { value.trim().parse().ok() };
    if parsed.is_none() {
        unreadable.push(format!("{at}.{key} is `{value}`, not a whole number"));
    }
    parsed
}

/// Reads `true` or `false`, as a YAML boolean or as a string.
///
/// An empty value is false.
fn boolean(holder: &Value, key: &str, at: &str, unreadable: &mut Vec<String>) -> Option<bool> {
    let value = text(holder, key)?;
    match value.trim() {
        "true" => Some(true),
        "false" | "" => Some(false),
        _ => {
            unreadable.push(format!("{at}.{key} is `{value}`, neither true nor false"));
            None
        }
    }
}

/// Combines `placement.all` and `placement.osd`.
///
/// Rook combines them in two ways. It chooses nodes by the affinity of `osd` alone, if `osd` has one
/// (pkg/apis/ceph.rook.io/v1/placement.go, `Merge`, v1.20.6). But the pods get both, so that the first term
/// of each must match (`mergeNodeAffinity`). With `onlyApplyOSDPlacement`, the pods get nothing of `all`
/// (pkg/operator/ceph/cluster/osd/spec.go, `applyAllPlacementIfNeeded`). A node is suitable for a new OSD
/// only if the OSD's pod can start there, so the pods' placement counts here.
fn placement(spec: &Value, storage: &Value) -> Placement {
    let none = Value::Null;
    let of = |key: &str| spec.get("placement").and_then(|placement| placement.get(key)).unwrap_or(&none);
    let (all, osd) = (of("all"), of("osd"));
    let osd_alone = storage.get("onlyApplyOSDPlacement").is_some_and(is_true);
    let has_affinity = osd.get("nodeAffinity").is_some_and(|affinity| !affinity.is_null());
    let terms = match (terms(all), terms(osd)) {
        (Some(all), Some(osd)) if !osd_alone => both(all, osd),
        (_, Some(osd)) => at_least_one(osd),
        (_, None) if osd_alone && has_affinity => Vec::new(),
        (Some(all), None) => at_least_one(all),
        (None, None) => Vec::new(),
    };
    let mut tolerations = tolerations::parse(osd.get("tolerations"));
    if !osd_alone {
        tolerations.extend(tolerations::parse(all.get("tolerations")));
    }
    Placement { terms, tolerations }
}

fn both(all: Vec<NodeTerm>, osd: Vec<NodeTerm>) -> Vec<NodeTerm> {
    match (all.first(), osd.first()) {
        (Some(first), Some(second)) => vec![NodeTerm {
            labels: [first.labels.as_slice(), &second.labels].concat(),
            fields: [first.fields.as_slice(), &second.fields].concat(),
        }],
        (Some(_), None) => all,
        (None, _) => at_least_one(osd),
    }
}

/// Returns the terms, or one empty term if the list is empty.
///
/// Terms that are given and empty match no node. If no terms are given at all, every node matches.
fn at_least_one(terms: Vec<NodeTerm>) -> Vec<NodeTerm> {
    if terms.is_empty() { vec![NodeTerm::default()] } else { terms }
}

fn terms(placement: &Value) -> Option<Vec<NodeTerm>> {
    let required = placement.pointer("/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution")?;
    let requirements = |term: &Value, key: &str| items(term, key).map(requirement).collect();
    let term = |term: &Value| NodeTerm {
        labels: requirements(term, "matchExpressions"),
        fields: requirements(term, "matchFields"),
    };
    required.is_object().then(|| items(required, "nodeSelectorTerms").map(term).collect())
}

fn requirement(requirement: &Value) -> Requirement {
    Requirement {
        key: text(requirement, "key").unwrap_or_default(),
        operator: text(requirement, "operator").unwrap_or_default(),
        values: items(requirement, "values").map(scalar).collect(),
    }
}

/// Returns whether a value is true: as a string, as in Rook's `config`, or as a bare YAML boolean.
pub(super) fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_str() == Some("true"))
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
