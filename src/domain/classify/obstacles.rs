//! Obstacles to a migration that do not depend on where an OSD is.

use super::class::Refusal;
use super::release::keeps_ids;
use crate::domain::observation::{Daemon, Metadata};
use crate::domain::osd::ObjectStore;

/// Returns why an OSD can't be recreated with its id, whatever its target is.
pub(super) fn obstacle(metadata: &Metadata, daemon: &Daemon) -> Option<Refusal> {
    if let Some(what) = &daemon.managed_externally {
        return Some(Refusal::ManagedExternally(what.clone()));
    }
    (!keeps_ids(&metadata.ceph_version)).then(|| Refusal::TooOld(metadata.ceph_version.clone()))
}

/// Returns whether the wanted object store is one that the OSD can't be converted back to.
pub(super) fn is_no_way_back(metadata: &Metadata, wanted: &ObjectStore) -> bool {
    metadata.store.0 == "bluestore-rdr" && wanted.0 == "bluestore"
}
