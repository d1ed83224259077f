//! OSDs in directories: on which free disk of its node each id is made anew.

use std::collections::{BTreeMap, BTreeSet};

use super::{Way, available, candidates, database, disks, nodes, record_of};
use crate::domain::classify::Class;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::inventory::DiskSeen;
use crate::domain::ledger::{Ledger, Record, Strategy};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{Inventory, Observation};
use crate::domain::osd::{DbDevice, DeviceIdentity, Kind, Layout, NodeName, OsdId, Weight};
use crate::domain::policy::Policy;
use crate::domain::provision::{self, AvailableDisk, Verdict};

/// The disk that an OSD's id is made anew on, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Onto {
    /// Who it is.
    pub device: DeviceIdentity,
    /// What the OSD becomes there.
    pub layout: Layout,
    /// The device that its database goes to, where it is another.
    pub db: Option<DbDevice>,
    /// Its CRUSH weight before and after, where it follows the size.
    pub weight: Option<(Weight, Weight)>,
}

/// Begins with an OSD in a directory: a look at its node's disks where this run has none, else its record. `Err`: why not.
pub(super) fn next(
    policy: &Policy,
    ledger: &Ledger,
    (osd, class, node): (OsdId, Class, NodeName),
    seen: &Observation,
) -> Result<Next, Reason> {
    let (work, inventory) = match nodes::known(policy, ledger, &node, seen) {
        nodes::KnownDisks::Disks(work, inventory) => (work, inventory),
        nodes::KnownDisks::Next(next) => return Ok(next),
        nodes::KnownDisks::Done(_) => return Err(needs_device(osd, &node, seen)),
        nodes::KnownDisks::Never(why) => return Err(Reason::DisksNotInspected { node, why: Some(why) }),
    };
    let processed = available::process(policy, &node, inventory, seen);
    let onto =
        match choose(osd, &node, available::available_disks(ledger, &node, Some(work), &processed), seen) {
            Ok(onto) => onto,
            // Ceph knows it a moment later.
            Err(reason @ Reason::UsageUnknown) => return Ok(Next::Wait(Wait::Gate { osd, reason })),
            Err(reason) => return Err(reason),
        };
    let path = seen.kube.daemons.get(&osd).and_then(|daemon| daemon.data_dir.clone());
    let way = path.map(|path| Way {
        strategy: Strategy::Directory { path, onto: onto.device },
        target: onto.layout,
        db: onto.db,
        weight: onto.weight.map(|(_, weight)| weight),
    });
    let next = way.and_then(|way| record_of(osd, class, node, way, ledger, seen));
    Ok(next.unwrap_or(Next::Wait(Wait::FreshView)))
}

/// The smallest that is large enough for what the OSD holds: a larger one is left for who needs it.
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

/// A whole disk with a name that outlives a reboot, and nothing on it: not even a tombstone, which the proof of a free disk does
/// not know here.
fn can_take(disk: &DiskSeen, available: &AvailableDisk) -> bool {
    disk.parent.is_none()
        && !available.device.by_id.is_empty()
        && !available.on_file
        && available.tombstone.is_none()
}

/// Whether the disk of a record is still one that its node's look found free, that the owner selects to become the same, and that
/// is large enough for what the OSD holds by now.
pub(super) fn is_selected(policy: &Policy, ledger: &Ledger, record: &Record, seen: &Observation) -> bool {
    let Strategy::Directory { onto, .. } = &record.strategy else { return false };
    let slot = seen.ceph.slots.get(&record.osd);
    let used = slot.and_then(|slot| slot.used_bytes).or(record.used_bytes);
    let is_it = |disk: &DiskSeen, available: &AvailableDisk| {
        can_take(disk, available)
            && onto.is_same_as(&available.device)
            && available.layout == record.target
            && available.db == record.db
            && used.is_none_or(|used| gate::room(onto.size_bytes, used, seen) == Gate::Open)
    };
    let found = ledger.nodes.get(&record.node).and_then(|work| {
        let inventory = available::inventory(&record.node, work, seen)?;
        let processed = available::process(policy, &record.node, inventory, seen);
        Some(processed.disks.iter().any(|(disk, verdict)| match verdict {
            Verdict::New(available) => !work.left.contains_key(&available.stable) && is_it(disk, available),
            Verdict::Ours { .. } | Verdict::NotSelected | Verdict::Rejected(_) => false,
        }))
    });
    found.unwrap_or(false)
}

/// Nodes whose disks a `plan --inventory` is asked for: those that would get new OSDs, and those with an OSD that needs another disk:
/// for itself, or for its database.
pub fn inspected(policy: &Policy, seen: &Observation) -> BTreeSet<NodeName> {
    let new = provision::nodes(seen, policy.store_on_file).chosen.into_iter().filter(|_| policy.makes_new());
    let candidates = candidates(policy, &Ledger::default(), seen);
    let in_directories = candidates.iter().filter_map(|(osd, class)| {
        let node = seen.kube.daemons.get(osd)?.node.clone()?;
        class.migrates().is_some_and(Kind::in_directory).then_some(node)
    });
    new.chain(in_directories).chain(database::inspected(&candidates, seen)).collect()
}

/// What would become of each OSD in a directory, from the youngest look at each node that there is: one after the other, none on
/// the disk of another.
pub fn of_each(
    policy: &Policy,
    ledger: &Ledger,
    seen: &Observation,
) -> BTreeMap<OsdId, Result<Onto, Reason>> {
    let inventories = disks::youngest(seen);
    let mut taken: Vec<DeviceIdentity> = Vec::new();
    let mut found = BTreeMap::new();
    for (osd, class) in candidates(policy, ledger, seen) {
        let node = seen.kube.daemons.get(&osd).and_then(|daemon| daemon.node.as_ref());
        let Some(node) = node.filter(|_| class.migrates().is_some_and(Kind::in_directory)) else {
            continue;
        };
        let job = inventories.get(node).copied();
        let inventory = job.and_then(|job| job.report.as_ref()?.inventory.as_ref());
        let is_about = |job: &Inventory| {
            ledger.nodes.get(node).filter(|work| work.run == job.run && work.inventory == job.number)
        };
        let onto = match inventory {
            None => Err(Reason::DisksNotInspected { node: node.clone(), why: None }),
            Some(inventory) => {
                let processed = available::process(policy, node, inventory, seen);
                let available = available::available_disks(ledger, node, job.and_then(is_about), &processed);
                choose(osd, node, available.filter(|(_, available)| !taken.contains(&available.device)), seen)
            }
        };
        taken.extend(onto.iter().map(|onto| onto.device.clone()));
        found.insert(osd, onto);
    }
    found
}
