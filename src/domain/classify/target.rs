//! What an OSD that is there is to become: what its owner declares for its node and its device.

use super::{Refusal, kind};
use crate::domain::observation::{Daemon, Metadata, Observation, Slot};
use crate::domain::osd::{Kind, Layout, Mode};
use crate::domain::provision;

/// The layout that the owner wants of an OSD.
///
/// Raw is what Rook itself chooses from 1.4 on for a whole disk or partition without encryption, db, wal or several OSDs
/// (`design.md` section 3); the rest needs lvm.
pub(super) fn target(
    slot: &Slot,
    metadata: &Metadata,
    daemon: &Daemon,
    seen: &Observation,
) -> Result<Layout, Refusal> {
    let store = seen.kube.declaration.store.clone();
    // A directory's OSD names the disk of the host's system, and goes to another one.
    let kind = kind::of(slot, metadata, daemon);
    let stays = !kind.is_some_and(Kind::in_directory);
    let devices = if stays { metadata.devices.as_slice() } else { &[] };
    let config = match &daemon.node {
        Some(node) => provision::config_of(node, devices, seen),
        None => seen.kube.declaration.storage.config.clone(),
    };
    let not_yet = |what: String| Err(Refusal::NotBuiltYet(what));
    if let Some(why) = config.unreadable.first() {
        return not_yet(why.clone());
    }
    if let Some(count) = config.osds_per_device.filter(|count| *count > 1) {
        return not_yet(format!("a target with {count} OSDs on a device (osdsPerDevice)"));
    }
    if let Some(device) = config.metadata_device.filter(|name| !name.is_empty()) {
        return not_yet(format!("a target with its database on another device (metadataDevice {device})"));
    }
    // Of a node that was taken off the list nothing is declared: what is encrypted there is not to become plain for it.
    let is_declared = daemon.node.as_ref().is_none_or(|node| provision::is_declared(node, seen));
    let encrypted =
        if is_declared { config.encrypted == Some(true) } else { kind.is_some_and(Kind::is_encrypted) };
    let mode = if encrypted { Mode::Lvm } else { Mode::Raw };
    Ok(Layout { store, mode, encrypted })
}
