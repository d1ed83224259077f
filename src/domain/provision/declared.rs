//! What the CephCluster declares for a node.

use super::select::{Selection, Selector};
use super::{DatabaseAsked, wanted};
use crate::domain::inspection::KernelDisk;
use crate::domain::observation::Observation;
use crate::domain::osd::NodeName;
use crate::domain::storage::DeviceConfig;

/// Returns the config that is declared for an existing OSD: that of its node, and of its device if the device
/// is named.
///
/// `devices` are the kernel names of its disks, as its owner may name them.
pub fn config_of(node: &NodeName, devices: &[String], seen: &Observation) -> DeviceConfig {
    let wanted = wanted::on(node, seen);
    let named = wanted.named().iter().find(|named| {
        let name = named.name.strip_prefix("/dev/").unwrap_or(&named.name);
        devices.iter().any(|device| device == name)
    });
    wanted::of_device(named, &wanted.config)
}

/// Returns whether the CephCluster declares anything for a node's disks: it selects all nodes, or names this
/// node.
pub fn is_declared(node: &NodeName, seen: &Observation) -> bool {
    wanted::is_asked_for(node, seen)
}

/// Describes what is declared for a node's disks.
pub fn selected(node: &NodeName, seen: &Observation) -> String {
    wanted::on(node, seen).choice.to_string()
}

/// Returns what selects a disk of a node, in words; `None` if nothing does.
///
/// A filter that can't be parsed selects nothing.
pub fn selects(node: &NodeName, disk: &KernelDisk, seen: &Observation) -> Option<String> {
    let wanted = wanted::on(node, seen);
    let name = disk.node.strip_prefix("/dev/").unwrap_or(&disk.node);
    let selection = Selector::new(wanted.choice).ok()?.selects(name, &disk.links);
    match selection {
        Selection::No => None,
        Selection::WithOthers | Selection::ByName(_) => Some(wanted.choice.to_string()),
    }
}

/// Returns the database that a config requests.
pub fn database_asked(config: &DeviceConfig) -> Option<DatabaseAsked> {
    let device = config.metadata_device.clone().filter(|name| !name.is_empty())?;
    Some(DatabaseAsked { device, size_mib: config.database_size_mb.filter(|size| *size > 0) })
}
