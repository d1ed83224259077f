//! Target of an existing OSD: what its owner declares for its node and its device.

use super::{Refusal, kind};
use crate::domain::observation::{Daemon, Metadata, Observation, Slot};
use crate::domain::osd::{Kind, Layout, Mode};
use crate::domain::provision::{self, DatabaseAsked};
use crate::domain::storage::DeviceConfig;

/// Declared target of an OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) layout: Layout,
    /// Database on another device.
    pub(super) database: Option<DatabaseAsked>,
    /// Declared number of OSDs on the device.
    pub(super) per_device: Option<u32>,
}

impl Target {
    /// Returns the target, unless several OSDs are declared on the device: osd-migrate creates one only.
    pub(super) fn alone_on_its_device(self) -> Result<Self, Refusal> {
        match self.per_device.filter(|count| *count > 1) {
            Some(count) => {
                Err(Refusal::NotBuiltYet(format!("a target with {count} OSDs on a device (osdsPerDevice)")))
            }
            None => Ok(self),
        }
    }
}

/// Returns the target to which an OSD on disks of its host can be migrated.
pub(super) fn target(
    slot: &Slot,
    metadata: &Metadata,
    daemon: &Daemon,
    seen: &Observation,
) -> Result<Target, Refusal> {
    declared(slot, metadata, daemon, seen).and_then(Target::alone_on_its_device)
}

/// Returns the declared target of an OSD on disks of its host, with which an existing OSD is compared.
///
/// Rook itself chooses raw from 1.4 on for a whole disk or partition without encryption, db, wal or several
/// OSDs (ceph-volume raw). The rest needs lvm.
pub(super) fn declared(
    slot: &Slot,
    metadata: &Metadata,
    daemon: &Daemon,
    seen: &Observation,
) -> Result<Target, Refusal> {
    let store = seen.kube.declaration.store.clone();
    let kind = kind::of(slot, metadata, daemon);
    let config = config(kind, metadata, daemon, seen);
    let not_yet = |what: String| Err(Refusal::NotBuiltYet(what));
    if daemon.on_pvcs.is_some() {
        return not_yet("an OSD on a PVC".to_owned());
    }
    let may_mean = |node| Some((node, provision::entry_that_may_mean(node, seen)?));
    if let Some((node, entry)) = daemon.node.as_ref().and_then(may_mean) {
        return Err(Refusal::NodeUnclear { node: node.to_string(), entry: entry.to_owned() });
    }
    let in_place = daemon.node.as_ref().filter(|_| !kind.is_some_and(Kind::in_directory));
    if let Some(link) = in_place.and_then(|node| provision::unknown_link(node, metadata, seen)) {
        return not_yet(format!(
            "an OSD that may be on {link}, for which devices[] declares another layout than for the node (name \
             its disk by its kernel name)"
        ));
    }
    if let Some(why) = config.unreadable.first() {
        return not_yet(why.clone());
    }
    let database = provision::database_asked(&config);
    // A node that was removed from the list has no declarations: its encrypted OSDs are not to become
    // unencrypted for that.
    let is_declared = daemon.node.as_ref().is_none_or(|node| provision::is_declared(node, seen));
    let encrypted =
        if is_declared { config.encrypted == Some(true) } else { kind.is_some_and(Kind::is_encrypted) };
    if database.is_some() && !encrypted && is_node_encrypted(daemon, seen) {
        return not_yet(
            "an unencrypted OSD with a metadataDevice on a node with encryptedDevice, which Rook could not \
             start"
                .to_owned(),
        );
    }
    let mode = if encrypted || database.is_some() { Mode::Lvm } else { Mode::Raw };
    Ok(Target { layout: Layout { store, mode, encrypted }, database, per_device: config.osds_per_device })
}

fn config(kind: Option<Kind>, metadata: &Metadata, daemon: &Daemon, seen: &Observation) -> DeviceConfig {
    // An OSD in a directory names the disk of the host's system, and goes to another disk.
    let stays = !kind.is_some_and(Kind::in_directory);
    match &daemon.node {
        Some(node) => provision::config_of(node, stays.then_some(metadata), seen),
        None => seen.kube.declaration.storage.config.clone(),
    }
}

/// Returns whether the node declares encryption, or may declare it, whatever its device declares (see
/// `provision`: Rook reads the node's setting only).
pub fn is_node_encrypted(daemon: &Daemon, seen: &Observation) -> bool {
    let of_node = |node| {
        provision::config_of(node, None, seen).encrypted == Some(true)
            || provision::may_be_encrypted(node, seen)
    };
    daemon.node.as_ref().is_some_and(of_node)
}
