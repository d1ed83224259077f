//! Fields of the CephCluster's status that Rook defines for a migration of OSDs.

use std::collections::BTreeMap;

use super::gate::{self, Fenced};
use super::plan::candidates;
use super::view::View;

/// Status of the CephCluster while OSDs are migrated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// `status.storage.osd.storeType`: number of OSDs by object store.
    pub store_types: BTreeMap<String, u32>,
    /// `status.storage.osd.migrationStatus.pending`: number of OSDs that are still to be migrated.
    pub pending: u32,
}

/// Returns the status to write; none if no OSD is in progress, or if a running Rook writes the status itself.
pub fn cluster_status(view: View<'_>) -> Option<ClusterStatus> {
    let in_progress = view.ledger.in_flight().filter(|record| !record.is_new()).count();
    let is_rook_away = match view.seen.kube.running_operator() {
        None => true,
        Some(_) => {
            view.our_fence().is_some()
                && view.seen.kube.fence.as_deref() == view.our_fence()
                && gate::fenced(&view.ledger.run, view.seen) == Fenced::InForce
        }
    };
    if in_progress == 0 || !is_rook_away {
        return None;
    }
    let mut store_types = BTreeMap::new();
    for metadata in view.seen.ceph.slots.values().filter_map(|slot| slot.metadata.as_ref()) {
        *store_types.entry(metadata.store.to_string()).or_default() += 1;
    }
    let pending = u32::try_from(in_progress + candidates(view).len()).unwrap_or(u32::MAX);
    Some(ClusterStatus { store_types, pending })
}
