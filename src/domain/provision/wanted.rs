//! Declared disks of one node and their layout.
//!
//! The rules are those of Rook (v1.20.6). `useAllNodes` makes `nodes[]` void, selection and config alike
//! (pkg/operator/ceph/cluster/osd/create.go, `startProvisioningOverNodes`). Otherwise each unset field of a
//! node is taken from the cluster, one by one, and so is each key of `config`
//! (pkg/apis/ceph.rook.io/v1/storage.go, `ResolveNode`). A key that a node sets to an empty value counts as
//! set.
//!
//! Of the resulting selection `devices` come first, then `deviceFilter`, then `devicePathFilter`, then
//! `useAllDevices`: the first one takes effect, and the others have none
//! (pkg/operator/ceph/cluster/osd/provision_spec.go, `provisionOSDContainer`).

use std::fmt;

use crate::domain::observation::{Node, Observation};
use crate::domain::osd::NodeName;
use crate::domain::storage::{DeviceConfig, DeviceSelection, NamedDevice, Storage, StorageNode};

/// Choice of a node's disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    /// No disks.
    Nothing,
    /// Named disks.
    Named(&'a [NamedDevice]),
    /// Disks whose kernel name matches.
    Filter(&'a str),
    /// Disks with a path that matches.
    PathFilter(&'a str),
    /// All disks.
    All,
}

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => {
                f.write_str("none on that node: name the disk in spec.storage, or set useAllDevices")
            }
            Self::Named(devices) => {
                let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
                write!(f, "those named in devices, currently {}", names.join(", "))
            }
            Self::Filter(filter) => write!(f, "deviceFilter {filter}"),
            Self::PathFilter(filter) => write!(f, "devicePathFilter {filter}"),
            Self::All => f.write_str("useAllDevices"),
        }
    }
}

/// Declaration for a node.
pub(super) struct Wanted<'a> {
    /// Choice of the node's disks.
    pub(super) choice: Choice<'a>,
    /// Layout of the disks, unless a device declares its own.
    pub(super) config: DeviceConfig,
    /// Declarations for this node that have no effect: sentences.
    pub(super) void: Vec<String>,
}

impl<'a> Wanted<'a> {
    /// Returns the named devices; empty if the disks are chosen otherwise.
    pub(super) fn named(&self) -> &'a [NamedDevice] {
        match self.choice {
            Choice::Named(devices) => devices,
            Choice::Nothing | Choice::Filter(_) | Choice::PathFilter(_) | Choice::All => &[],
        }
    }
}

/// Returns the node's entry in `nodes[]`: the first one that names the node by its label
/// `kubernetes.io/hostname` or by its name (pkg/operator/k8sutil/node.go, `rookNodeMatchesKubernetesNode`,
/// v1.20.6).
fn entry<'a>(node: &NodeName, seen: &'a Observation) -> Option<&'a StorageNode> {
    let hostname = seen.kube.nodes.get(node).map(|node_object| node_object.hostname.as_str());
    let means = |entry: &&StorageNode| entry.name == node.0 || Some(entry.name.as_str()) == hostname;
    seen.kube.declaration.storage.nodes.iter().find(means)
}

/// Returns the entries in `nodes[]` that may mean a node that no entry names: those that name no node, and
/// that a label of the node has as its value.
///
/// Rook compares them with the label that `ROOK_CUSTOM_HOSTNAME_LABEL` of its operator names
/// (pkg/operator/k8sutil/labels.go, `LabelHostname`, v1.20.6), and which label this is, is not known here. Of
/// a node whose object is missing, no label is known.
pub(super) fn entries_that_may_mean<'a>(
    node: &NodeName,
    seen: &'a Observation,
) -> impl Iterator<Item = &'a StorageNode> {
    let has_node = move |entry: &StorageNode| {
        let means = |(name, node): (&NodeName, &Node)| name.0 == entry.name || node.hostname == entry.name;
        seen.kube.nodes.iter().any(means)
    };
    let is_declared = is_asked_for(node, seen);
    let entries = seen.kube.declaration.storage.nodes.iter();
    let labels = seen.kube.nodes.get(node).map(|node| &node.labels);
    let has_label = move |entry: &StorageNode| {
        labels.is_none_or(|labels| labels.values().any(|value| *value == entry.name))
    };
    entries.filter(move |entry| !is_declared && !has_node(entry) && has_label(entry))
}

/// Returns whether the CephCluster declares anything for the node's disks.
pub(super) fn is_asked_for(node: &NodeName, seen: &Observation) -> bool {
    seen.kube.declaration.storage.all_nodes || entry(node, seen).is_some()
}

/// Returns the declaration for a node.
pub(super) fn on<'a>(node: &NodeName, seen: &'a Observation) -> Wanted<'a> {
    let storage = &seen.kube.declaration.storage;
    let nothing = Wanted { choice: Choice::Nothing, config: DeviceConfig::default(), void: Vec::new() };
    match (storage.all_nodes, entry(node, seen)) {
        (false, None) => nothing,
        (false, Some(entry)) => of_entry(entry, storage),
        (true, entry) => Wanted {
            choice: anywhere(storage),
            config: storage.config.clone(),
            void: entry.filter(|entry| says_something(entry)).map(ignored).into_iter().collect(),
        },
    }
}

/// Returns the choice for nodes that `nodes[]` does not name, with `useAllNodes`.
pub(super) fn anywhere(storage: &Storage) -> Choice<'_> {
    choice(&storage.selection, &storage.selection)
}

/// Returns the declaration of an entry of `nodes[]`.
pub(super) fn of_entry<'a>(entry: &'a StorageNode, storage: &'a Storage) -> Wanted<'a> {
    let choice = choice(&entry.selection, &storage.selection);
    let void = shadowed(entry, choice);
    Wanted { choice, config: over(&entry.config, &storage.config), void }
}

fn says_something(entry: &StorageNode) -> bool {
    entry.selection != DeviceSelection::default() || entry.config != DeviceConfig::default()
}

fn ignored(entry: &StorageNode) -> String {
    format!(
        "spec.storage.nodes[{}] has no effect: useAllNodes is true, so Rook uses the settings of \
         spec.storage for all nodes",
        entry.name
    )
}

/// Returns the choice, with `own` before `parent`, field by field.
fn choice<'a>(own: &'a DeviceSelection, parent: &'a DeviceSelection) -> Choice<'a> {
    let text = |own: &'a Option<String>, parent: &'a Option<String>| {
        let is_set = |text: &&String| !text.is_empty();
        own.as_ref().filter(is_set).or(parent.as_ref().filter(is_set))
    };
    let devices = if own.devices.is_empty() { &parent.devices } else { &own.devices };
    let filter = text(&own.filter, &parent.filter);
    let path_filter = text(&own.path_filter, &parent.path_filter);
    match (devices.as_slice(), filter, path_filter, own.all.or(parent.all)) {
        ([_, ..], ..) => Choice::Named(devices),
        // Rook passes `useAllDevices` on as this filter (pkg/operator/ceph/cluster/osd/provision_spec.go), so
        // it selects the same.
        ([], Some(filter), ..) if filter == "all" => Choice::All,
        ([], Some(filter), ..) => Choice::Filter(filter),
        ([], None, Some(filter), _) => Choice::PathFilter(filter),
        ([], None, None, Some(true)) => Choice::All,
        ([], None, None, Some(false) | None) => Choice::Nothing,
    }
}

/// Returns a sentence for each own declaration of a node that another one with precedence makes void.
fn shadowed(entry: &StorageNode, choice: Choice<'_>) -> Vec<String> {
    let own = &entry.selection;
    let (first, rank) = match choice {
        Choice::Named(_) => ("devices", 3),
        Choice::Filter(_) => ("deviceFilter", 2),
        Choice::PathFilter(_) => ("devicePathFilter", 1),
        Choice::All | Choice::Nothing => return Vec::new(),
    };
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    [
        ("deviceFilter", 2, is_set(&own.filter)),
        ("devicePathFilter", 1, is_set(&own.path_filter)),
        ("useAllDevices", 0, own.all == Some(true)),
    ]
    .into_iter()
    .filter(|(_, of, is_set)| *is_set && *of < rank)
    .map(|(what, ..)| {
        format!(
            "spec.storage.nodes[{}].{what} has no effect: {first} is set too, and Rook uses {first}",
            entry.name
        )
    })
    .collect()
}

/// Merges `own` over `parent`, key by key.
///
/// Unreadable values of both levels count.
fn over(own: &DeviceConfig, parent: &DeviceConfig) -> DeviceConfig {
    let text = |own: &Option<String>, parent: &Option<String>| own.clone().or_else(|| parent.clone());
    DeviceConfig {
        metadata_device: text(&own.metadata_device, &parent.metadata_device),
        database_size_mb: own.database_size_mb.or(parent.database_size_mb),
        wal_size_mb: own.wal_size_mb.or(parent.wal_size_mb),
        osds_per_device: own.osds_per_device.or(parent.osds_per_device),
        device_class: text(&own.device_class, &parent.device_class),
        encrypted: own.encrypted.or(parent.encrypted),
        initial_weight: own.initial_weight.or(parent.initial_weight),
        unreadable: [parent.unreadable.as_slice(), own.unreadable.as_slice()].concat(),
    }
}

/// Returns the config of one device, if `devices[]` names it.
///
/// Unlike a node, a device can't unset a value of its node by an empty value: Rook then uses the node's value
/// (pkg/daemon/ceph/osd/volume.go, `initializeDevicesLVMMode` and `appendDeviceClassArg`, v1.20.6).
///
/// Rook reads `encryptedDevice`, `walSizeMB` and `initialWeight` of a device nowhere (cmd/rook/ceph/osd.go,
/// `parseDevices`). Here they count like the other keys.
pub(super) fn of_device(device: Option<&NamedDevice>, node: &DeviceConfig) -> DeviceConfig {
    let Some(device) = device else { return node.clone() };
    let mut own = device.config.clone();
    own.metadata_device = own.metadata_device.filter(|name| !name.is_empty());
    own.device_class = own.device_class.filter(|class| !class.is_empty());
    own.database_size_mb = own.database_size_mb.filter(|size| *size > 0);
    own.wal_size_mb = own.wal_size_mb.filter(|size| *size > 0);
    own.osds_per_device = own.osds_per_device.filter(|count| *count > 0);
    over(&own, node)
}
