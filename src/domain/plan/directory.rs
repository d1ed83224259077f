//! OSDs in directories: on which free disk of its node each id is made anew.

use std::collections::{BTreeMap, BTreeSet};

use super::{Way, candidates, database, disks, free, nodes, record_of};
use crate::domain::classify::Class;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::inventory::DiskSeen;
use crate::domain::ledger::{Door, Ledger, Record};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{Look, Observation};
use crate::domain::osd::{DbDevice, DeviceIdentity, Kind, Layout, NodeName, OsdId, Weight};
use crate::domain::policy::Policy;
use crate::domain::provision::{self, Vacancy, Verdict};

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
        nodes::Known::Disks(work, inventory) => (work, inventory),
        nodes::Known::Next(next) => return Ok(next),
        nodes::Known::Done(_) => return Err(needs_device(osd, &node, seen)),
        nodes::Known::Never(why) => return Err(Reason::NotLookedAt { node, why: Some(why) }),
    };
    let processed = free::process(policy, &node, inventory, seen);
    let onto = match choose(osd, &node, free::vacancies(ledger, &node, Some(work), &processed), seen) {
        Ok(onto) => onto,
        // Ceph knows it a moment later.
        Err(reason @ Reason::RoomUnknown) => return Ok(Next::Wait(Wait::Gate { osd, reason })),
        Err(reason) => return Err(reason),
    };
    let path = seen.kube.daemons.get(&osd).and_then(|daemon| daemon.data_dir.clone());
    let way = path.map(|path| Way {
        door: Door::Directory { path, onto: onto.device },
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
    free: impl Iterator<Item = (&'a DiskSeen, &'a Vacancy)>,
    seen: &Observation,
) -> Result<Onto, Reason> {
    let slot = seen.ceph.slots.get(&osd);
    let used = slot.and_then(|slot| slot.used_bytes).ok_or(Reason::RoomUnknown)?;
    let fits = |vacancy: &&Vacancy| gate::room(vacancy.device.size_bytes, used, seen) == Gate::Open;
    let whole = free.filter(|(disk, vacancy)| can_take(disk, vacancy)).map(|(_, vacancy)| vacancy);
    let smallest = whole.filter(fits).min_by_key(|vacancy| (vacancy.device.size_bytes, &vacancy.stable));
    let vacancy = smallest.ok_or_else(|| needs_device(osd, node, seen))?;
    let before = slot.and_then(|slot| slot.crush.as_ref()).map(|item| item.weight);
    let after = |before: Weight| (before, before.following(vacancy.device.size_bytes));
    Ok(Onto {
        device: vacancy.device.clone(),
        layout: vacancy.layout.clone(),
        db: vacancy.db.clone(),
        weight: before.map(after).filter(|(before, after)| before != after),
    })
}

fn needs_device(osd: OsdId, node: &NodeName, seen: &Observation) -> Reason {
    let used = seen.ceph.slots.get(&osd).and_then(|slot| slot.used_bytes).unwrap_or_default();
    let (bytes, selected) = (gate::least_room(used, seen), provision::selected(node, seen));
    Reason::NeedsDevice { node: node.clone(), bytes, selected }
}

/// A whole disk with a name that outlives a reboot, and nothing on it: not even a tombstone, which the proof of a free disk does
/// not know here.
fn can_take(disk: &DiskSeen, vacancy: &Vacancy) -> bool {
    disk.parent.is_none()
        && !vacancy.device.by_id.is_empty()
        && !vacancy.on_file
        && vacancy.tombstone.is_none()
}

/// Whether the disk of a record is still one that its node's look found free, that the owner selects to become the same, and that
/// is large enough for what the OSD holds by now.
pub(super) fn is_selected(policy: &Policy, ledger: &Ledger, record: &Record, seen: &Observation) -> bool {
    let Door::Directory { onto, .. } = &record.door else { return false };
    let slot = seen.ceph.slots.get(&record.osd);
    let used = slot.and_then(|slot| slot.used_bytes).or(record.used_bytes);
    let is_it = |disk: &DiskSeen, vacancy: &Vacancy| {
        can_take(disk, vacancy)
            && onto.is_same_as(&vacancy.device)
            && vacancy.layout == record.target
            && vacancy.db == record.db
            && used.is_none_or(|used| gate::room(onto.size_bytes, used, seen) == Gate::Open)
    };
    let found = ledger.nodes.get(&record.node).and_then(|work| {
        let inventory = free::inventory(&record.node, work, seen)?;
        let processed = free::process(policy, &record.node, inventory, seen);
        Some(processed.disks.iter().any(|(disk, verdict)| match verdict {
            Verdict::New(vacancy) => !work.left.contains_key(&vacancy.stable) && is_it(disk, vacancy),
            Verdict::Ours { .. } | Verdict::NotSelected | Verdict::Rejected(_) => false,
        }))
    });
    found.unwrap_or(false)
}

/// Nodes whose disks a `plan --look` is asked for: those that would get new OSDs, and those with an OSD that needs another disk:
/// for itself, or for its database.
pub fn looked_at(policy: &Policy, seen: &Observation) -> BTreeSet<NodeName> {
    let new = provision::nodes(seen, policy.store_on_file).chosen.into_iter().filter(|_| policy.makes_new());
    let candidates = candidates(policy, &Ledger::default(), seen);
    let in_directories = candidates.iter().filter_map(|(osd, class)| {
        let node = seen.kube.daemons.get(osd)?.node.clone()?;
        class.migrates().is_some_and(Kind::in_directory).then_some(node)
    });
    new.chain(in_directories).chain(database::looked_at(&candidates, seen)).collect()
}

/// What would become of each OSD in a directory, from the youngest look at each node that there is: one after the other, none on
/// the disk of another.
pub fn of_each(
    policy: &Policy,
    ledger: &Ledger,
    seen: &Observation,
) -> BTreeMap<OsdId, Result<Onto, Reason>> {
    let looks = disks::youngest(seen);
    let mut taken: Vec<DeviceIdentity> = Vec::new();
    let mut found = BTreeMap::new();
    for (osd, class) in candidates(policy, ledger, seen) {
        let node = seen.kube.daemons.get(&osd).and_then(|daemon| daemon.node.as_ref());
        let Some(node) = node.filter(|_| class.migrates().is_some_and(Kind::in_directory)) else {
            continue;
        };
        let look = looks.get(node).copied();
        let inventory = look.and_then(|look| look.report.as_ref()?.inventory.as_ref());
        let is_about = |look: &Look| {
            ledger.nodes.get(node).filter(|work| work.run == look.run && work.look == look.number)
        };
        let onto = match inventory {
            None => Err(Reason::NotLookedAt { node: node.clone(), why: None }),
            Some(inventory) => {
                let processed = free::process(policy, node, inventory, seen);
                let free = free::vacancies(ledger, node, look.and_then(is_about), &processed);
                choose(osd, node, free.filter(|(_, vacancy)| !taken.contains(&vacancy.device)), seen)
            }
        };
        taken.extend(onto.iter().map(|onto| onto.device.clone()));
        found.insert(osd, onto);
    }
    found
}
