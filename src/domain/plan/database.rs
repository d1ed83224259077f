//! Databases on another device (`metadataDevice`) for existing OSDs: which device, and which size.

use std::collections::{BTreeMap, BTreeSet};

use super::existing_osd::{self, Candidate, Way};
use super::{available, disks, nodes};
use crate::domain::classify::{self, Class};
use crate::domain::gate::Reason;
use crate::domain::inventory::NodeInventory;
use crate::domain::ledger::Record;
use crate::domain::next::{Next, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::{DbDevice, NodeName, OsdId};
use crate::domain::provision::{self, Processed};
use crate::domain::view::View;

/// Starts on an OSD that needs a database: saves its record, or first inventories its node's disks if this
/// run has not.
///
/// `Err` is the reason why it can't.
pub(super) fn next(candidate: Candidate, view: View<'_>) -> Result<Next, Reason> {
    let (osd, node) = (candidate.osd, candidate.node.clone());
    let inventory = match nodes::known(&node, view) {
        nodes::KnownDisks::Disks(_, inventory) => inventory,
        nodes::KnownDisks::Next(next) => return Ok(next),
        nodes::KnownDisks::Done(work) => {
            let why = work.databases.get(&osd).cloned();
            return Err(match why {
                Some(why) => Reason::NoDatabaseDevice { node, why },
                None => Reason::DisksNotInspected {
                    node,
                    why: Some("this run has already completed the node".to_owned()),
                },
            });
        }
        nodes::KnownDisks::Never(why) => return Err(Reason::DisksNotInspected { node, why: Some(why) }),
    };
    let db = given(osd, &node, inventory, view)?;
    let way = Way { db: Some(db), ..Way::in_place(candidate.target.clone()) };
    let next = existing_osd::record(candidate, way, view);
    Ok(next.unwrap_or(Next::Wait(Wait::FreshView)))
}

/// Returns the device for the OSD's database, or why there is none.
pub(super) fn given(
    osd: OsdId,
    node: &NodeName,
    inventory: &NodeInventory,
    view: View<'_>,
) -> Result<DbDevice, Reason> {
    let mut processed = available::process(node, inventory, view);
    let not_asked = || Err("a database on another device is no longer declared".to_owned());
    let found = processed.databases.remove(&osd).unwrap_or_else(not_asked);
    found.map_err(|why| Reason::NoDatabaseDevice { node: node.clone(), why })
}

/// Returns whether the record's database is still declared, on a device that its node's inventory found
/// usable.
pub(super) fn is_as_recorded(record: &Record, view: View<'_>) -> bool {
    let asked = classify::database_of(record.osd, view.seen);
    let (Some(recorded), Some(asked)) = (&record.db, &asked) else {
        return record.db.is_none() && asked.is_none() && !loses_its_own(record, view);
    };
    let found = view.ledger.nodes.get(&record.node).and_then(|work| {
        let inventory = available::inventory(&record.node, work, view.seen)?;
        given(record.osd, &record.node, inventory, view).ok()
    });
    found.is_some_and(|found| {
        let is_large = asked.size_mib.is_none() || asked.size_mib == recorded.size_mib;
        found.identity.is_same_as(&recorded.identity) && is_large
    })
}

/// Returns whether a database was declared after the proof of an OSD that has one which is not created again.
fn loses_its_own(record: &Record, view: View<'_>) -> bool {
    let lost = record.evidence.as_ref().and_then(|evidence| {
        classify::lost_database(record.osd, (evidence, &record.target), record.db.as_ref(), view.seen)
    });
    lost.is_some()
}

/// Returns the nodes whose disks must be inventoried for OSDs that need a database.
pub(super) fn inspected<'a>(
    candidates: &'a [(OsdId, Class)],
    seen: &'a Observation,
) -> impl Iterator<Item = NodeName> + 'a {
    let asks = |osd: &OsdId| classify::database_of(*osd, seen).is_some();
    candidates
        .iter()
        .filter(move |(osd, _)| asks(osd))
        .filter_map(|(osd, _)| seen.kube.daemons.get(osd)?.node.clone())
}

/// Returns which device the database of each such OSD would go to, by the latest inventory of each node.
pub fn of_each(view: View<'_>) -> BTreeMap<OsdId, Result<DbDevice, Reason>> {
    let inventories = disks::youngest(view.seen);
    let candidates: BTreeSet<OsdId> = super::candidates(view).into_iter().map(|(osd, _)| osd).collect();
    let mut found = BTreeMap::new();
    let asked_by_node = classify::databases_by_node(view.seen);
    for (node, asked) in asked_by_node.iter().filter(|(node, _)| view.seen.kube.nodes.contains_key(**node)) {
        let node: &NodeName = node;
        let inventory = inventories.get(node).and_then(|job| job.report.as_ref()?.inventory.as_ref());
        let processed: Option<Processed> = inventory.map(|inventory| {
            provision::process(node, inventory, asked, view.seen, view.policy.store_on_file)
        });
        for osd in asked.keys().filter(|osd| candidates.contains(osd)) {
            let db = match &processed {
                None => Err(Reason::DisksNotInspected { node: node.clone(), why: None }),
                Some(processed) => match processed.databases.get(osd) {
                    Some(Ok(db)) => Ok(db.clone()),
                    Some(Err(why)) => Err(Reason::NoDatabaseDevice { node: node.clone(), why: why.clone() }),
                    None => continue,
                },
            };
            found.insert(*osd, db);
        }
    }
    found
}
