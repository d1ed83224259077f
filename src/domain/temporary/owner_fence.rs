//! The fence that the owner ordered (`osd-migrate fence`) before an edit of the CephCluster.
//!
//! A run that comes before the edit finds nothing to migrate, and must not remove that fence. So the order
//! has a hash of what the CephCluster declared about the shape of OSDs: as long as that is the same, the edit
//! is still to come.

use std::collections::BTreeSet;
use std::iter;

use crate::domain::classify::{self, Class, Refusal};
use crate::domain::device_set::DeviceSet;
use crate::domain::fnv;
use crate::domain::gate;
use crate::domain::guard::{Guard, is_out};
use crate::domain::ledger::{FENCE, FenceOrder};
use crate::domain::next::{Next, Saving};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::policy::Declaration;
use crate::domain::storage::DeviceConfig;
use crate::domain::view::View;

/// Saves the owner's order.
///
/// A fence that a run has set already becomes the owner's, too.
pub(crate) fn save(view: View<'_>) -> Next {
    let mut ledger = view.ledger.clone();
    let run = &mut ledger.run;
    if run.fence.is_none() {
        run.serial += 1;
        run.fence = Some(format!("{FENCE}owner-{}", run.serial));
        (run.fence_after, run.fence_acknowledged) = (view.seen.kube.cluster_revision(), false);
    }
    let declared = shape_of(&view.seen.kube.declaration);
    run.fence_order = Some(FenceOrder { since: view.seen.at, declared });
    Next::Save { ledger, osd: None, why: Saving::FenceOrdered }
}

/// Returns whether the owner ordered the fence, and it is to stay.
///
/// It stays until the CephCluster was edited, and no OSD is left that differs or that Rook would change.
pub(crate) fn stands(view: View<'_>) -> bool {
    let order = view.ledger.run.fence_order.as_ref().filter(|_| !is_out(Guard::OwnersFenceStays));
    order.is_some_and(|order| !is_fulfilled(order, view.seen))
}

fn is_fulfilled(order: &FenceOrder, seen: &Observation) -> bool {
    let differs = || {
        let mut classes = classify::classes(seen.ceph.slots.iter(), seen);
        classes.any(|(_, class)| {
            matches!(class, Class::Mismatched(_) | Class::Refused(Refusal::NodeUnclear { .. }))
        })
    };
    order.declared != shape_of(&seen.kube.declaration) && changed_by_rook(seen).is_empty() && !differs()
}

/// Returns the OSDs that Rook would change itself without the fence.
pub(crate) fn changed_by_rook(seen: &Observation) -> BTreeSet<OsdId> {
    let mut changed = gate::reshaped_by_rook(seen);
    changed.extend(gate::left_to_rooks_migration(seen));
    changed
}

/// Returns a hash of what the CephCluster declares about the shape of OSDs: stores, encryption, databases.
///
/// Other fields may change while the fence waits for its edit. So may the confirmation, which an owner may
/// set in an edit of its own.
fn shape_of(declaration: &Declaration) -> String {
    let storage = &declaration.storage;
    let of_cluster = [declaration.store.0.clone(), shape_of_config(&storage.config)];
    let named = storage.nodes.iter().map(|node| (&node.name, shape_of_config(&node.config)));
    // A node that is added with the defaults gives no OSD another shape.
    let of_nodes =
        named.filter(|(_, shape)| !shape.trim().is_empty()).map(|(n, shape)| format!("{n} {shape}"));
    let selections = storage.nodes.iter().map(|node| (node.name.as_str(), &node.selection));
    let selections = iter::once(("", &storage.selection)).chain(selections);
    let devices =
        selections.flat_map(|(node, selection)| selection.devices.iter().map(move |one| (node, one)));
    let shaped = devices.map(|(node, one)| (node, &one.name, shape_of_config(&one.config)));
    let of_devices = shaped
        .filter(|(.., shape)| !shape.trim().is_empty())
        .map(|(node, name, shape)| format!("{node} {name} {shape}"));
    let of_set = |set: &DeviceSet| format!("{} {} {}", set.name, set.encrypted, set.templates.join(","));
    let of_sets = storage.sets.iter().map(of_set);
    let lines: Vec<_> = of_cluster.into_iter().chain(of_nodes).chain(of_devices).chain(of_sets).collect();
    format!("{:016x}", fnv::hash(lines.join("\n").as_bytes()))
}

/// Returns the fields of a configuration that shape OSDs; blank if none is set.
fn shape_of_config(config: &DeviceConfig) -> String {
    let encrypted = config.encrypted.map(|encrypted| encrypted.to_string()).unwrap_or_default();
    format!("{encrypted} {}", config.metadata_device.as_deref().unwrap_or_default())
}
