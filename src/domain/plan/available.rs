//! The free disks of a node, as a look found them, and what was done with them since.

use super::{database, new_osd};
use crate::domain::guard::{Guard, passes};
use crate::domain::inventory::{DiskSeen, NodeInventory};
use crate::domain::ledger::{Ledger, NodeWork, Record};
use crate::domain::observation::{Inventory, Observation};
use crate::domain::osd::{DeviceIdentity, NodeName};
use crate::domain::policy::Policy;
use crate::domain::provision::{self, Processed, Verdict};

/// The look that a node's work is about, of those that are there.
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

/// What it found.
pub(super) fn inventory<'a>(
    node: &NodeName,
    work: &NodeWork,
    seen: &'a Observation,
) -> Option<&'a NodeInventory> {
    inventory_of(node, work, seen)?.report.as_ref()?.inventory.as_ref()
}

/// What the disks of a node become, and where the databases of its OSDs that are there go.
pub(super) fn process(
    policy: &Policy,
    node: &NodeName,
    inventory: &NodeInventory,
    seen: &Observation,
) -> Processed {
    provision::process(node, inventory, &database::asked_on(node, seen), seen, policy.store_on_file)
}

/// Whether a record is about a device of a node. Of one that nothing names its place counts: else each free disk of that size would be
/// the one that another record is about.
pub(super) fn is_about(record: &Record, node: &NodeName, device: &DeviceIdentity) -> bool {
    record.device().is_some_and(|recorded| {
        let is_there = || record.node == *node && recorded.is_in_place_of(device);
        recorded.is_same_as(device) && (recorded.is_named() || is_there())
    })
}

/// Free and selected, and not dealt with: no open record is about it, and none was closed since the look.
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

/// Whether the disk of a record is still one that its node's look found free, and that the owner selects, to become the same.
pub(super) fn is_selected(policy: &Policy, ledger: &Ledger, record: &Record, seen: &Observation) -> bool {
    let found = || {
        let work = ledger.nodes.get(&record.node)?;
        let inventory = inventory(&record.node, work, seen)?;
        let chosen = provision::nodes(seen, policy.store_on_file).chosen;
        let processed = process(policy, &record.node, inventory, seen);
        let is_it = |available: &provision::AvailableDisk| {
            is_about(record, &record.node, &available.device)
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
