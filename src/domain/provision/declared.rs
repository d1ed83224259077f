//! What the CephCluster declares for a node.

use std::collections::BTreeSet;

use super::select::{self, Selection, Selector};
use super::wanted::Choice;
use super::{DatabaseAsked, wanted};
use crate::domain::inspection::KernelDisk;
use crate::domain::inventory::NodeInventory;
use crate::domain::observation::{Metadata, Observation};
use crate::domain::osd::NodeName;
use crate::domain::storage::{DeviceConfig, NamedDevice};

/// Folder of the names of disks that survive a reboot.
const LINKS: &str = "/dev/disk/";

/// Beginnings of the names that the kernel gives to disks.
const KERNEL_NAMES: [&str; 13] =
    ["sd", "vd", "xvd", "hd", "nvme", "dm-", "md", "mmcblk", "loop", "nbd", "rbd", "dasd", "pmem"];

/// Folder of those that have the id of the disk.
const IDS: &str = "/dev/disk/by-id/";

/// Selection of the disks of a node.
pub struct Declared<'a> {
    choice: Choice<'a>,
    selector: Selector<'a>,
}

impl<'a> Declared<'a> {
    /// Returns what is declared for a node.
    ///
    /// `Err` is a sentence: a filter or another value can't be read.
    pub fn on(node: &NodeName, seen: &'a Observation) -> Result<Self, String> {
        let wanted = wanted::on(node, seen);
        if !wanted.config.unreadable.is_empty() {
            return Err(wanted.config.unreadable.join("; "));
        }
        let selector = Selector::new(wanted.choice)?;
        Ok(Self { choice: wanted.choice, selector })
    }

    /// Returns whether neither devices nor a filter is declared, nor `useAllDevices`.
    pub fn is_nothing(&self) -> bool {
        self.choice == Choice::Nothing
    }

    /// Returns whether all disks are selected.
    pub fn is_all(&self) -> bool {
        self.choice == Choice::All
    }

    /// Returns whether a disk with one of these names is selected: kernel names, or paths below `/dev`.
    pub fn selects_any(&self, names: &BTreeSet<String>) -> bool {
        let mut bare = names.iter().map(|name| name.strip_prefix("/dev/").unwrap_or(name));
        bare.any(|name| {
            let counts = !name.contains('/') || !matches!(self.choice, Choice::Filter(_));
            counts && !matches!(self.selector.selects(name, names), Selection::No)
        })
    }

    /// Returns whether kernel names (`sdb`) may select a disk: they change from boot to boot.
    pub fn uses_kernel_names(&self) -> bool {
        match self.choice {
            Choice::Nothing | Choice::All => false,
            Choice::Filter(_) => true,
            Choice::PathFilter(filter) => {
                !filter.trim_start_matches('^').starts_with(LINKS) || filter.contains('|')
            }
            Choice::Named(devices) => devices.iter().any(|device| !is_link(&device.name)),
        }
    }

    /// Returns a link in `devices[]`, or the filter of paths, that leads to no disk of the node: it may have
    /// led to any disk.
    ///
    /// Rules of udev give links anywhere below `/dev`.
    pub fn link_without_disk(&self, inventory: &NodeInventory) -> Option<String> {
        let filters_links = |filter: &str| {
            let begin = filter.trim_start_matches('^');
            !begin.starts_with(LINKS) && is_link(begin)
        };
        let is_asked = |disk| !matches!(self.selector.asks(disk), Selection::No);
        match self.choice {
            Choice::PathFilter(filter) if filters_links(filter) => {
                (!inventory.disks.iter().any(is_asked)).then(|| format!("devicePathFilter {filter}"))
            }
            Choice::Nothing | Choice::All | Choice::Filter(_) | Choice::PathFilter(_) => None,
            Choice::Named(devices) => {
                let is_lost = |device: &&NamedDevice| {
                    is_link(&device.name) && select::find(&device.name, inventory).is_none()
                };
                devices.iter().find(is_lost).map(|device| format!("{} in devices", device.name))
            }
        }
    }
}

/// Returns whether a path is that of a link below `/dev`, and not a name of the kernel.
fn is_link(path: &str) -> bool {
    path.strip_prefix("/dev/")
        .is_some_and(|name| name.contains('/') || !KERNEL_NAMES.iter().any(|kernel| name.starts_with(kernel)))
}

impl std::fmt::Display for Declared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.choice.fmt(f)
    }
}

/// Returns why the CephCluster as a whole declares no node or no disk; `None` if it declares some.
///
/// That is an error of its owner rather than the wish that all OSDs are removed.
pub fn declares_nothing(seen: &Observation) -> Option<NothingDeclared> {
    let storage = &seen.kube.declaration.storage;
    let mut of_nodes = storage.nodes.iter().map(|entry| wanted::of_entry(entry, storage).choice);
    match (storage.all_nodes, storage.nodes.is_empty()) {
        (true, _) => (wanted::anywhere(storage) == Choice::Nothing).then_some(NothingDeclared::NoDevices),
        (false, true) => Some(NothingDeclared::NoNodes),
        (false, false) => {
            of_nodes.all(|choice| choice == Choice::Nothing).then_some(NothingDeclared::NoDevices)
        }
    }
}

/// Part that the CephCluster leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NothingDeclared {
    /// `useAllNodes` is false, and `nodes` names none.
    NoNodes,
    /// `useAllDevices` is false, and there are neither devices nor a filter.
    NoDevices,
}

/// Returns the config that is declared for an existing OSD: that of its node, and of its device if the device
/// is named.
///
/// `disks`: what the OSD reported of its disks; `None` if only the node counts.
pub fn config_of(node: &NodeName, disks: Option<&Metadata>, seen: &Observation) -> DeviceConfig {
    let wanted = wanted::on(node, seen);
    let named = disks.and_then(|disks| wanted.named().iter().find(|named| names(named, disks)));
    wanted::of_device(named, &wanted.config)
}

/// Returns a link in `devices[]` that may lead to a disk of an OSD of which it is not known, and whose config
/// asks for another layout than that of the node.
///
/// Rook's documentation recommends such links. An OSD reports kernel names, ids and paths of its disks, but
/// not all links that lead to them.
pub fn unknown_link<'a>(node: &NodeName, disks: &Metadata, seen: &'a Observation) -> Option<&'a str> {
    let wanted = wanted::on(node, seen);
    if wanted.named().iter().any(|named| names(named, disks)) {
        return None;
    }
    let layout = |config: DeviceConfig| (config.encrypted.unwrap_or_default(), config.metadata_device);
    let of_node = layout(wanted.config.clone());
    // A path is that of a disk on each node, an id belongs to one disk.
    let is_others = |named: &NamedDevice| {
        let is_id = named.name.starts_with(IDS);
        let mut daemons = seen.kube.daemons.iter();
        daemons.any(|(osd, daemon)| {
            let disks = seen.ceph.slots.get(osd).and_then(|slot| slot.metadata.as_ref());
            (is_id || daemon.node.as_ref() == Some(node)) && disks.is_some_and(|disks| names(named, disks))
        })
    };
    let may_be_its = |named: &&NamedDevice| {
        named.name.starts_with(LINKS)
            && layout(wanted::of_device(Some(named), &wanted.config)) != of_node
            && !is_others(named)
    };
    wanted.named().iter().find(may_be_its).map(|named| named.name.as_str())
}

/// Returns whether an entry of `devices[]` names one of these disks: by its kernel name, or by a link that
/// ends with its id (`ata-MODEL_SERIAL`) or is its path.
fn names(named: &NamedDevice, disks: &Metadata) -> bool {
    let name = named.name.strip_prefix("/dev/").unwrap_or(&named.name);
    let is_link_to = |stable: &String| named.name == *stable || name.ends_with(stable);
    let by_link = named.name.starts_with(LINKS) && disks.stable_devices.iter().any(is_link_to);
    by_link || disks.devices.iter().any(|device| device == name)
}

/// Returns whether the CephCluster declares anything for a node's disks: it selects all nodes, or names this
/// node.
pub fn is_declared(node: &NodeName, seen: &Observation) -> bool {
    wanted::is_asked_for(node, seen)
}

/// Returns an entry of `spec.storage.nodes` that names no node, and may mean this one, which no entry names.
pub fn entry_that_may_mean<'a>(node: &NodeName, seen: &'a Observation) -> Option<&'a str> {
    wanted::entries_that_may_mean(node, seen).next().map(|entry| entry.name.as_str())
}

/// Returns whether an entry of `spec.storage.nodes` that may mean this node declares encryption.
pub fn may_be_encrypted(node: &NodeName, seen: &Observation) -> bool {
    let storage = &seen.kube.declaration.storage;
    let is_encrypted = |entry| wanted::of_entry(entry, storage).config.encrypted == Some(true);
    wanted::entries_that_may_mean(node, seen).any(is_encrypted)
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
