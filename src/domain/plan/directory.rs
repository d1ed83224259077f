//! OSDs in directories: chooses the available disk of its node on which each id is recreated.

use std::collections::{BTreeMap, BTreeSet};

use super::directory_disk::{self, Onto, can_take, choose, needs_device};
use super::existing_osd::{self, Candidate, Way};
use super::{available, candidates, database, nodes};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::inventory::DiskSeen;
use crate::domain::ledger::{Ledger, Record, Strategy};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::{Kind, NodeName, OsdId};
use crate::domain::policy::Policy;
use crate::domain::provision::{self, AvailableDisk, Verdict};
use crate::domain::view::View;

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
///
/// No pod starts on a node that is not Ready.
pub fn inspected(policy: &Policy, seen: &Observation) -> BTreeSet<NodeName> {
    let new = provision::nodes(seen, policy.store_on_file).chosen.into_iter().filter(|_| policy.makes_new());
    let candidates = candidates(View { policy, ledger: &Ledger::default(), seen });
    let in_directories = candidates.iter().filter_map(|(osd, class)| {
        let node = seen.kube.daemons.get(osd)?.node.clone()?;
        class.migrates().is_some_and(Kind::in_directory).then_some(node)
    });
    let all = new.chain(in_directories).chain(database::inspected(&candidates, seen));
    all.filter(|node| seen.kube.nodes.get(node).is_some_and(|node| node.ready)).collect()
}

/// Returns the disk that each OSD in a directory would get, by the latest inventory of each node.
pub fn of_each(view: View<'_>) -> BTreeMap<OsdId, Result<Onto, Reason>> {
    directory_disk::assigned(candidates(view), view)
}
