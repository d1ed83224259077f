//! In which way an OSD was made, by what it said at its last boot and by how it is started. A hint that chooses what its node is
//! asked for: what the device says decides (`contradicts`).

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

fn bluestore(slot: &Slot, metadata: &Metadata, daemon: &Daemon) -> Kind {
    if metadata.on_file && !daemon.activates {
        return Kind::BluestoreDirectory;
    }
    if metadata.device_mapper {
        // `raw prepare --dmcrypt` too leaves a key with the mons (16.2.15), though it is not the one that opens its device.
        return match (daemon.mode, slot.dmcrypt_key) {
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
