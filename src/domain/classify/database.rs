//! Databases on another device (`metadataDevice`) that existing OSDs need when they are recreated.

use std::collections::BTreeMap;

use super::decide::declares_database;
use super::{class_of, database_of};
use crate::domain::inspection::{Evidence, Piece, PieceLocation};
use crate::domain::observation::Observation;
use crate::domain::osd::{DbDevice, Layout, Mode, NodeName, OsdId, Role};
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

/// Returns why an OSD that is recreated on LVM would lose its database or log for ever, although a database
/// on another device is declared for it; none if it would not.
///
/// `db`: the device that its new database is assigned to. A partition or a disk that is no volume is cleared,
/// and never created again.
pub fn lost_database(
    osd: OsdId,
    (evidence, wanted): (&Evidence, &Layout),
    db: Option<&DbDevice>,
    seen: &Observation,
) -> Option<String> {
    if wanted.mode != Mode::Lvm || db.is_some() || !declares_database(osd, seen) {
        return None;
    }
    let on_device = |piece: &Piece| match &piece.place {
        PieceLocation::Device(device) if matches!(piece.role, Role::Db | Role::Wal) => {
            Some((piece.role, device.stable_name()))
        }
        PieceLocation::Device(_) | PieceLocation::Volume { .. } | PieceLocation::Pvc { .. } => None,
    };
    let (role, device) = evidence.auxiliary.iter().find_map(on_device)?;
    Some(format!(
        "its {role} on {device} would be cleared and not created again, although a metadataDevice is declared for the \
         OSD. To have its database with its data, declare no metadataDevice for its disk; to leave the OSD as it is: \
         --skip {osd}"
    ))
}
