//! In which way an OSD was made, by what it said at its last boot and by how it is started. A hint that chooses what its node is
//! asked for: what the device says decides (`contradicts`).

use crate::domain::guard::{Guard, passes};
use crate::domain::observation::{Daemon, Metadata, Slot};
use crate::domain::osd::{Kind, Mode};

/// None where its object store is not one of those that are migrated.
pub(super) fn of(slot: &Slot, metadata: &Metadata, daemon: &Daemon) -> Option<Kind> {
    if metadata.store.is_filestore() {
        return Some(filestore(metadata, daemon));
    }
    matches!(metadata.store.0.as_str(), "bluestore" | "bluestore-rdr")
        .then(|| bluestore(slot, metadata, daemon))
}

/// A directory may lie on a partition, that of the host's own system: what tells is whether its Deployment mounts a device.
fn filestore(metadata: &Metadata, daemon: &Daemon) -> Kind {
    match (metadata.device_mapper && daemon.activates, daemon.mounts_device) {
        (true, _) => Kind::FilestoreLvm,
        (false, true) => Kind::FilestorePartition,
        (false, false) => Kind::FilestoreDirectory,
    }
}

/// A raw OSD on a device-mapper device that nothing shows to be its own encryption: multipath, or LUKS that the host opens (crypttab,
/// clevis). `ceph-volume raw prepare --dmcrypt` leaves a key with the mons for each OSD that it encrypts (16.2.15; main:
/// devices/raw/prepare.py, `secrets['dmcrypt_key']`), though it is not the one that opens its device.
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
