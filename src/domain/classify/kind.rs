//! Kind of an OSD, by the metadata of its last boot and by how it is started.
//!
//! The kind is a hint that chooses what the node is asked for. The contents of the device decide
//! (`contradicts`).

use crate::domain::guard::{Guard, passes};
use crate::domain::observation::{Daemon, Metadata, Slot};
use crate::domain::osd::{Kind, Mode};

/// Returns the OSD's kind; `None` if its object store is not one of those that are migrated.
pub(super) fn of(slot: &Slot, metadata: &Metadata, daemon: &Daemon) -> Option<Kind> {
    if metadata.store.is_filestore() {
        return Some(filestore(metadata, daemon));
    }
    matches!(metadata.store.0.as_str(), "bluestore" | "bluestore-rdr")
        .then(|| bluestore(slot, metadata, daemon))
}

/// Returns the kind of a Filestore OSD.
///
/// A directory may be on a partition, that of the host's own system. So the Deployment decides: it mounts a
/// device or does not.
fn filestore(metadata: &Metadata, daemon: &Daemon) -> Kind {
    match (metadata.device_mapper && daemon.activates, daemon.mounts_device) {
        (true, _) => Kind::FilestoreLvm,
        (false, true) => Kind::FilestorePartition,
        (false, false) => Kind::FilestoreDirectory,
    }
}

/// Returns whether a raw OSD is on a device-mapper device that nothing shows to be its own encryption:
/// multipath, or LUKS that the host opens (crypttab, clevis).
///
/// `ceph-volume raw prepare --dmcrypt` leaves a key with the mons for each OSD that it encrypts (16.2.15;
/// main: devices/raw/prepare.py, `secrets['dmcrypt_key']`), although that key does not open its device.
pub(super) fn is_host_device(slot: &Slot, metadata: &Metadata, daemon: &Daemon) -> bool {
    let is_own_encryption = slot.dmcrypt_key || daemon.opens_encryption;
    metadata.device_mapper
        && daemon.mode == Some(Mode::Raw)
        && !passes(Guard::OnlyKnownEncryption, is_own_encryption)
}

fn bluestore(slot: &Slot, metadata: &Metadata, daemon: &Daemon) -> Kind {
    if metadata.on_file && !daemon.activates {
        return Kind::BluestoreDirectory;
    }
    if metadata.device_mapper {
        return match (daemon.mode, slot.dmcrypt_key) {
            (Some(Mode::Raw), _) if is_host_device(slot, metadata, daemon) => Kind::Raw,
            (Some(Mode::Raw), _) => Kind::RawCrypt,
            (Some(Mode::Lvm) | None, true) => Kind::LvmCrypt,
            (Some(Mode::Lvm) | None, false) => Kind::Lvm,
        };
    }
    match (daemon.activates, metadata.on_partition) {
        (true, _) => Kind::Raw,
        (false, true) => Kind::BluestorePartition,
        (false, false) => Kind::BluestoreByHand,
    }
}
