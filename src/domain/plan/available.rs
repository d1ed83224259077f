//! Available disks of a node, as its inventory found them, and what was done with them since.

use super::approved::allows_disk;
use super::{former, new_osd};
use crate::domain::classify;
use crate::domain::guard::{Guard, passes};
use crate::domain::inventory::{DiskSeen, DiskState, NodeInventory, Rejection};
use crate::domain::ledger::{Ledger, NodeWork, Record};
use crate::domain::observation::{Inventory, Observation};
use crate::domain::osd::{DeviceIdentity, NodeName};
use crate::domain::provision::{self, Processed, Verdict};
use crate::domain::view::View;

/// Returns the inventory Job that a node's work refers to, if it exists.
pub(super) fn inventory_of<'a>(
    node: &NodeName,
    work: &NodeWork,
    seen: &'a Observation,
) -> Option<&'a Inventory> {
    let is_it = |job: &&Inventory| {
        job.node == *node && job.run == work.inventory_run() && job.number == work.inventory
    };
    seen.kube.inventories.values().find(is_it)
}

/// Returns the disks that this inventory found.
pub(super) fn inventory<'a>(
    node: &NodeName,
    work: &NodeWork,
    seen: &'a Observation,
) -> Option<&'a NodeInventory> {
    inventory_of(node, work, seen)?.report.as_ref()?.inventory.as_ref()
}

/// Returns what the disks of a node become, and which devices the databases of its existing OSDs go to.
pub(super) fn process(node: &NodeName, inventory: &NodeInventory, view: View<'_>) -> Processed {
    let asked = classify::databases_on(node, view.seen);
    let on_file = view.policy.store_on_file;
    let inventory = &without_reused(inventory, view.ledger);
    let mut processed = provision::process(node, inventory, &asked, view.seen, on_file);
    if !on_file {
        processed.problems.extend(former::problems(node, inventory, view));
    }
    processed
}

/// Returns the inventory in which a disk is rejected if it has a signature next to the tombstone of a closed
/// record.
///
/// An interrupted wipe of an open record leaves remains of its OSD. Of a closed one, nothing says whether the
/// signature is older than the tombstone: md and LVM keep the first sector of a disk.
fn without_reused(inventory: &NodeInventory, ledger: &Ledger) -> NodeInventory {
    let mut inventory = inventory.clone();
    for disk in &mut inventory.disks {
        let DiskState::Tombstone { osd, record, signature: Some(name), .. } = &disk.state else { continue };
        if !ledger.records.values().any(|open| open.id == *record) {
            let kind = format!("{name} next to osd-migrate's tombstone for {osd}");
            disk.state = DiskState::Rejected { why: Rejection::Signature { kind } };
        }
    }
    inventory
}

/// Returns whether a record concerns this device of a node.
///
/// If nothing names the device, its place counts too. Otherwise every available disk of that size would be
/// the disk of another record.
pub(super) fn is_about(record: &Record, node: &NodeName, device: &DeviceIdentity) -> bool {
    record.device().is_some_and(|recorded| {
        let is_there = || record.node == *node && recorded.is_in_place_of(device);
        recorded.is_same_as(device) && (recorded.is_named() || is_there())
    })
}

/// Returns the available, selected disks that are not dealt with: no open record concerns them, and no such
/// record was closed since the inventory.
pub(super) fn available_disks<'p>(
    ledger: &'p Ledger,
    node: &'p NodeName,
    work: Option<&'p NodeWork>,
    processed: &'p Processed,
) -> impl Iterator<Item = (&'p DiskSeen, &'p provision::AvailableDisk)> {
    let is_open = move |available: &provision::AvailableDisk| {
        ledger.records.values().any(|record| {
            let about = is_about(record, node, &available.device);
            let named = available.tombstone.as_ref().is_some_and(|(_, _, id)| *id == record.id);
            about || named
        })
    };
    processed
        .disks
        .iter()
        .filter_map(|(disk, verdict)| match verdict {
            Verdict::New(available) => Some((disk, &**available)),
            Verdict::Ours { .. } | Verdict::NotSelected | Verdict::Rejected(_) => None,
        })
        .filter(move |(_, available)| !work.is_some_and(|work| work.left.contains_key(&available.stable)))
        .filter(move |(_, available)| {
            let was_done = work.is_some_and(|work| work.done.contains(&available.stable));
            passes(Guard::DiskOnce, !(was_done || is_open(available)))
        })
}

/// Returns whether the inventory of the record's node still finds its disk available, and the owner still
/// selects it for the same OSD.
pub(super) fn is_selected(record: &Record, view: View<'_>) -> bool {
    let found = || {
        let work = view.ledger.nodes.get(&record.node)?;
        let inventory = inventory(&record.node, work, view.seen)?;
        let chosen = provision::nodes(view.seen, view.policy.store_on_file).chosen;
        let processed = process(&record.node, inventory, view);
        let is_it = |available: &provision::AvailableDisk| {
            is_about(record, &record.node, &available.device)
                && allows_disk(&record.node, available, view)
                && new_osd::strategy(available) == record.strategy
                && available.db == record.db
                && available.layout == record.target
        };
        let selected = processed.disks.iter().any(|(_, verdict)| match verdict {
            Verdict::New(available) => is_it(available),
            Verdict::Ours { .. } | Verdict::NotSelected | Verdict::Rejected(_) => false,
        });
        Some(chosen.contains(&record.node) && selected)
    };
    found().unwrap_or(false)
}
