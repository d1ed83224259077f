//! Databases on another device (`metadataDevice`) that existing OSDs need when they are recreated.

use std::collections::BTreeMap;

use super::{class_of, database_of};
use crate::domain::observation::Observation;
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::provision::{DatabaseAsked, DatabasesAsked};

/// Returns the databases that the existing OSDs of a node need on its disks.
///
/// Every OSD that migrates counts, also if this run does not select it: room is reserved for each.
pub fn databases_on(node: &NodeName, seen: &Observation) -> DatabasesAsked {
    let daemons = seen.kube.daemons.iter().filter(|(_, daemon)| daemon.node.as_ref() == Some(node));
    daemons.filter_map(|(osd, _)| Some((*osd, asked_for(*osd, seen)?))).collect()
}

/// Returns the databases that existing OSDs need, for all nodes, in one pass over the OSDs.
pub fn databases_by_node(seen: &Observation) -> BTreeMap<&NodeName, DatabasesAsked> {
    let mut by_node: BTreeMap<&NodeName, DatabasesAsked> = BTreeMap::new();
    for (osd, daemon) in &seen.kube.daemons {
        if let (Some(node), Some(asked)) = (&daemon.node, asked_for(*osd, seen)) {
            by_node.entry(node).or_default().insert(*osd, asked);
        }
    }
    by_node
}

/// Returns the database that an OSD needs on another device, if it is migrated in place.
///
/// An OSD in a directory needs none here: the database belongs to the available disk that the OSD goes to.
fn asked_for(osd: OsdId, seen: &Observation) -> Option<DatabaseAsked> {
    let class = class_of(osd, seen.ceph.slots.get(&osd)?, seen);
    let asked = database_of(osd, seen)?;
    (!class.migrates()?.in_directory()).then_some(asked)
}
