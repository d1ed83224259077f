//! What the owner says of new OSDs: which nodes, which disks, how they are laid out (`spec.storage`), and where OSDs may run
//! (`spec.placement`). As declared, nothing resolved yet.

use std::collections::BTreeMap;

use super::osd::Weight;

/// `spec.storage` and `spec.placement`, as far as new OSDs ask them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Storage {
    /// `useAllNodes`
    pub all_nodes: bool,
    /// `nodes[]`, in the order declared. Without `useAllNodes` only these get new OSDs.
    pub nodes: Vec<StorageNode>,
    /// The selection that stands beside them, for each node that has none of its own.
    pub selection: DeviceSelection,
    /// `config`, for the whole cluster.
    pub config: DeviceConfig,
    /// `config.crushRoot`; `default` where it is empty.
    pub crush_root: String,
    /// `placement.all` and `placement.osd`, put together as Rook does.
    pub placement: Placement,
}

/// What a container asks for and may take, by resource (`cpu`, `memory`), in Kubernetes' own words for quantities.
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
    /// Its own selection.
    pub selection: DeviceSelection,
    /// Its own `config`.
    pub config: DeviceConfig,
}

/// Which disks of a node.
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
    /// Its own `config`.
    pub config: DeviceConfig,
}

/// `config` of cluster, node or device: what is none is inherited.
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
    /// What can't be read, in a sentence: nothing is made by it.
    pub unreadable: Vec<String>,
}

/// Where OSDs may run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Placement {
    /// `nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`: one of them must hold; all nodes where empty.
    pub terms: Vec<NodeTerm>,
    /// `tolerations`
    pub tolerations: Vec<Toleration>,
}

/// A node selector term: all of its requirements must hold.
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
    /// `operator`: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`; another one holds for no node.
    pub operator: String,
    /// `values`
    pub values: Vec<String>,
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// `key`
    pub key: String,
    /// `value`; empty where there is none.
    pub value: String,
    /// `effect`: `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
}

/// A toleration, as a pod has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Toleration {
    /// `key`; empty with `Exists` tolerates everything.
    pub key: String,
    /// `operator`: `Equal` (also where it is empty) or `Exists`.
    pub operator: String,
    /// `value`
    pub value: String,
    /// `effect`; empty means all.
    pub effect: String,
    /// `tolerationSeconds`
    pub seconds: Option<i64>,
}

/// Labels of a node, as placement and CRUSH location ask them.
pub type Labels = BTreeMap<String, String>;
