//! OSDs in directories: chooses the available disk of its node on which each id is recreated.

use std::collections::{BTreeMap, BTreeSet};

use super::existing_osd::{self, Candidate, Way};
use super::{available, candidates, database, disks, nodes};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::inventory::DiskSeen;
use crate::domain::ledger::{Ledger, Record, Strategy};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{Inventory, Observation};
use crate::domain::osd::{DbDevice, DeviceIdentity, Kind, Layout, NodeName, OsdId, Weight};
use crate::domain::policy::Policy;
use crate::domain::provision::{self, AvailableDisk, Verdict};
use crate::domain::view::View;

/// Disk on which an OSD's id is recreated, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Onto {
    /// Identity of the disk.
    pub device: DeviceIdentity,
    /// Layout of the recreated OSD.
    pub layout: Layout,
    /// Device of the OSD's database, if it is another device.
    pub db: Option<DbDevice>,
    /// CRUSH weight before and after, if the weight follows the size.
    pub weight: Option<(Weight, Weight)>,
}

/// Starts on an OSD in a directory: saves its record, or first inventories its node's disks if this run has
/// not.
///
/// `Err` is the reason why it can't.
pub(super) fn next(candidate: Candidate, view: View<'_>) -> Result<Next, Reason> {
    let (osd, node) = (candidate.osd, candidate.node.clone());
    let (work, inventory) = match nodes::known(&node, view) {
        nodes::KnownDisks::Disks(work, inventory) => (work, inventory),
        nodes::KnownDisks::Next(next) => return Ok(next),
        nodes::KnownDisks::Done(_) => return Err(needs_device(osd, &node, view.seen)),
        nodes::KnownDisks::Never(why) => return Err(Reason::DisksNotInspected { node, why: Some(why) }),
    };
    let processed = available::process(&node, inventory, view);
    let onto = match choose(
        osd,
        &node,
        available::available_disks(view.ledger, &node, Some(work), &processed),
        view.seen,
    ) {
        Ok(onto) => onto,
        // Ceph reports the usage a moment later.
        Err(reason @ Reason::UsageUnknown) => return Ok(Next::Wait(Wait::Gate { osd, reason })),
        Err(reason) => return Err(reason),
    };
    let path = view.daemon(osd).and_then(|daemon| daemon.data_dir.clone());
    let way = path.map(|path| Way {
        strategy: Strategy::Directory { path, onto: onto.device },
        target: onto.layout,
        db: onto.db,
        weight: onto.weight.map(|(_, weight)| weight),
    });
    let next = way.and_then(|way| existing_osd::record(candidate, way, view));
    Ok(next.unwrap_or(Next::Wait(Wait::FreshView)))
}

/// Returns the disk of its node that the OSD would get, or why there is none; `None` if this run does not know
/// the node's disks yet.
pub(super) fn known_disk(osd: OsdId, view: View<'_>) -> Option<Result<Onto, Reason>> {
    let node = view.node_of(osd)?;
    let nodes::KnownDisks::Disks(work, inventory) = nodes::known(node, view) else { return None };
    let processed = available::process(node, inventory, view);
    let disks = available::available_disks(view.ledger, node, Some(work), &processed);
    Some(choose(osd, node, disks, view.seen))
}

/// Chooses the smallest disk that is large enough for the OSD's data.
///
/// Larger disks are left for OSDs that need them.
fn choose<'a>(
    osd: OsdId,
    node: &NodeName,
    available: impl Iterator<Item = (&'a DiskSeen, &'a AvailableDisk)>,
    seen: &Observation,
) -> Result<Onto, Reason> {
    let slot = seen.ceph.slots.get(&osd);
    let used = slot.and_then(|slot| slot.used_bytes).ok_or(Reason::UsageUnknown)?;
    let fits = |available: &&AvailableDisk| gate::room(available.device.size_bytes, used, seen) == Gate::Open;
    let whole =
        available.filter(|(disk, available)| can_take(disk, available)).map(|(_, available)| available);
    let smallest =
        whole.filter(fits).min_by_key(|available| (available.device.size_bytes, &available.stable));
    let available = smallest.ok_or_else(|| needs_device(osd, node, seen))?;
    let before = slot.and_then(|slot| slot.crush.as_ref()).map(|item| item.weight);
    let after = |before: Weight| (before, before.following(available.device.size_bytes));
    Ok(Onto {
        device: available.device.clone(),
        layout: available.layout.clone(),
        db: available.db.clone(),
        weight: before.map(after).filter(|(before, after)| before != after),
    })
}

fn needs_device(osd: OsdId, node: &NodeName, seen: &Observation) -> Reason {
    let used = seen.ceph.slots.get(&osd).and_then(|slot| slot.used_bytes).unwrap_or_default();
    let (bytes, selected) = (gate::least_space(used, seen), provision::selected(node, seen));
    Reason::NeedsDevice { node: node.clone(), bytes, selected }
}

/// Returns whether the disk is a whole disk with a name that survives a reboot and with nothing on it.
///
/// A tombstone excludes the disk too: the proof that a disk is available does not accept tombstones here.
fn can_take(disk: &DiskSeen, available: &AvailableDisk) -> bool {
    disk.parent.is_none()
        && !available.device.by_id.is_empty()
        && !available.on_file
        && available.tombstone.is_none()
}

/// Returns whether the record's disk can still take the OSD: its node's inventory finds it available, the
/// owner selects it for the same layout, and it is large enough for the OSD's current data.
pub(super) fn is_selected(record: &Record, view: View<'_>) -> bool {
    let Strategy::Directory { onto, .. } = &record.strategy else { return false };
    let slot = view.slot(record.osd);
    let used = slot.and_then(|slot| slot.used_bytes).or(record.used_bytes);
    let is_it = |disk: &DiskSeen, available: &AvailableDisk| {
        can_take(disk, available)
            && onto.is_same_as(&available.device)
            && available.layout == record.target
            && available.db == record.db
            && used.is_none_or(|used| gate::room(onto.size_bytes, used, view.seen) == Gate::Open)
    };
    let found = view.ledger.nodes.get(&record.node).and_then(|work| {
        let inventory = available::inventory(&record.node, work, view.seen)?;
        let processed = available::process(&record.node, inventory, view);
        Some(processed.disks.iter().any(|(disk, verdict)| match verdict {
            Verdict::New(available) => !work.left.contains_key(&available.stable) && is_it(disk, available),
            Verdict::Ours { .. } | Verdict::NotSelected | Verdict::Rejected(_) => false,
        }))
    });
    found.unwrap_or(false)
}

/// Returns the nodes whose disks `plan --inventory` inspects: nodes that would get new OSDs, and nodes with
/// an OSD that needs another disk for itself or for its database.
pub fn inspected(policy: &Policy, seen: &Observation) -> BTreeSet<NodeName> {
    let new = provision::nodes(seen, policy.store_on_file).chosen.into_iter().filter(|_| policy.makes_new());
    let candidates = candidates(View { policy, ledger: &Ledger::default(), seen });
    let in_directories = candidates.iter().filter_map(|(osd, class)| {
        let node = seen.kube.daemons.get(osd)?.node.clone()?;
        class.migrates().is_some_and(Kind::in_directory).then_some(node)
    });
    new.chain(in_directories).chain(database::inspected(&candidates, seen)).collect()
}

/// Returns the disk that each OSD in a directory would get, by the latest inventory of each node.
///
/// OSDs are assigned one after the other, and no two get the same disk.
pub fn of_each(view: View<'_>) -> BTreeMap<OsdId, Result<Onto, Reason>> {
    let inventories = disks::youngest(view.seen);
    let mut taken: Vec<DeviceIdentity> = Vec::new();
    let mut found = BTreeMap::new();
    for (osd, class) in candidates(view) {
        let node = view.node_of(osd);
        let Some(node) = node.filter(|_| class.migrates().is_some_and(Kind::in_directory)) else {
            continue;
        };
        let job = inventories.get(node).copied();
        let inventory = job.and_then(|job| job.report.as_ref()?.inventory.as_ref());
        let is_about = |job: &Inventory| {
            view.ledger.nodes.get(node).filter(|work| work.run == job.run && work.inventory == job.number)
        };
        let onto = match inventory {
            None => Err(Reason::DisksNotInspected { node: node.clone(), why: None }),
            Some(inventory) => {
                let processed = available::process(node, inventory, view);
                let available =
                    available::available_disks(view.ledger, node, job.and_then(is_about), &processed);
                choose(
                    osd,
                    node,
                    available.filter(|(_, available)| !taken.contains(&available.device)),
                    view.seen,
                )
            }
        };
        taken.extend(onto.iter().map(|onto| onto.device.clone()));
        found.insert(osd, onto);
    }
    found
}
