//! Declaration of new OSDs: nodes, disks and layout (`spec.storage`), and where OSDs may run
//! (`spec.placement`). Values are as declared, nothing is resolved yet.

use std::collections::{BTreeMap, BTreeSet};

use super::device_set::DeviceSet;
use super::osd::Weight;

/// `spec.storage` and `spec.placement`, as far as they concern new OSDs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Storage {
    /// `useAllNodes`
    pub all_nodes: bool,
    /// `nodes[]`, in the order declared. Without `useAllNodes` only these nodes get new OSDs.
    pub nodes: Vec<StorageNode>,
    /// Device selection of the cluster, for each node without one of its own.
    pub selection: DeviceSelection,
    /// `config`, for the whole cluster.
    pub config: DeviceConfig,
    /// `config.crushRoot`. `default` if it is empty.
    pub crush_root: String,
    /// `storageClassDeviceSets[]`, in the order declared.
    pub sets: Vec<DeviceSet>,
    /// Paths of `directories[]`, also those of single nodes: Rook up to 1.2 creates OSDs in them.
    pub directories: BTreeSet<String>,
    /// `placement.all` and `placement.osd`, merged as Rook merges them.
    pub placement: Placement,
}

/// Requests and limits of a container, by resource (`cpu`, `memory`), as Kubernetes quantities.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Resources {
    /// `requests`
    pub requests: BTreeMap<String, String>,
    /// `limits`
    pub limits: BTreeMap<String, String>,
}

/// One of `spec.storage.nodes`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StorageNode {
    /// `name`: label `kubernetes.io/hostname` of the node.
    pub name: String,
    /// Device selection of the node.
    pub selection: DeviceSelection,
    /// `config` of the node.
    pub config: DeviceConfig,
}

/// Selection of a node's disks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DeviceSelection {
    /// `useAllDevices`
    pub all: Option<bool>,
    /// `deviceFilter`: a regular expression for kernel names.
    pub filter: Option<String>,
    /// `devicePathFilter`: a regular expression for full paths, links included.
    pub path_filter: Option<String>,
    /// `devices[]`
    pub devices: Vec<NamedDevice>,
}

/// One of `devices[]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NamedDevice {
    /// `name` (kernel name, or a path below `/dev`) or `fullpath`.
    pub name: String,
    /// `config` of the device.
    pub config: DeviceConfig,
}

/// `config` of cluster, node or device, in which a value of none is inherited.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DeviceConfig {
    /// `metadataDevice`
    pub metadata_device: Option<String>,
    /// `databaseSizeMB`
    pub database_size_mb: Option<u64>,
    /// `walSizeMB`
    pub wal_size_mb: Option<u64>,
    /// `osdsPerDevice`
    pub osds_per_device: Option<u32>,
    /// `deviceClass`
    pub device_class: Option<String>,
    /// `encryptedDevice`
    pub encrypted: Option<bool>,
    /// `initialWeight`, in CRUSH weight.
    pub initial_weight: Option<Weight>,
    /// Unreadable values, as a sentence each: no OSD is created with such a configuration.
    pub unreadable: Vec<String>,
}

/// Rules for the nodes that OSDs may run on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Placement {
    /// `nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`: one of them must
    /// match. All nodes if empty.
    pub terms: Vec<NodeTerm>,
    /// `tolerations`
    pub tolerations: Vec<Toleration>,
}

/// A node selector term: all of its requirements must match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeTerm {
    /// `matchExpressions`
    pub labels: Vec<Requirement>,
    /// `matchFields`; only `metadata.name` exists.
    pub fields: Vec<Requirement>,
}

/// A requirement of a node selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Requirement {
    /// `key`
    pub key: String,
    /// `operator`: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`. Any other operator matches no node.
    pub operator: String,
    /// `values`
    pub values: Vec<String>,
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// `key`
    pub key: String,
    /// `value`. Empty if the taint has none.
    pub value: String,
    /// `effect`: `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
}

/// A toleration of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Toleration {
    /// `key`. An empty key with `Exists` tolerates every taint.
    pub key: String,
    /// `operator`: `Equal` (also if empty) or `Exists`.
    pub operator: String,
    /// `value`
    pub value: String,
    /// `effect`. Empty means all effects.
    pub effect: String,
    /// `tolerationSeconds`
    pub seconds: Option<i64>,
}

/// Labels of a node, as placement and CRUSH location use them.
pub type Labels = BTreeMap<String, String>;
