//! The available disk of its node that an OSD in a directory would get.

use std::collections::BTreeMap;

use super::{available, disks, nodes};
use crate::domain::classify::Class;
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::inventory::DiskSeen;
use crate::domain::observation::{Inventory, Observation};
use crate::domain::osd::{DbDevice, DeviceIdentity, Kind, Layout, NodeName, OsdId, Weight};
use crate::domain::provision::{self, AvailableDisk};
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

/// Returns the disk of its node that the OSD would get, or why there is none.
///
/// `None`: this run does not know the node's disks yet.
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
pub(super) fn choose<'a>(
    osd: OsdId,
    node: &NodeName,
    available: impl Iterator<Item = (&'a DiskSeen, &'a AvailableDisk)>,
    seen: &Observation,
) -> Result<Onto, Reason> {
    let slot = seen.ceph.slots.get(&osd);
    let used = gate::used_bytes(osd, seen).ok_or(Reason::UsageUnknown)?;
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

pub(super) fn needs_device(osd: OsdId, node: &NodeName, seen: &Observation) -> Reason {
    let used = seen.ceph.slots.get(&osd).and_then(|slot| slot.used_bytes).unwrap_or_default();
    let (bytes, selected) = (gate::least_space(used, seen), provision::selected(node, seen));
    Reason::NeedsDevice { node: node.clone(), bytes, selected }
}

/// Returns whether the disk is a whole disk with a name that survives a reboot and with nothing on it.
///
/// A tombstone excludes the disk too: the proof that a disk is available does not accept tombstones here.
pub(super) fn can_take(disk: &DiskSeen, available: &AvailableDisk) -> bool {
    disk.parent.is_none()
        && !available.device.by_id.is_empty()
        && !available.on_file
        && available.tombstone.is_none()
}

/// Returns the disk that each of these OSDs would get if it is in a directory.
///
/// The latest inventory of each node counts. OSDs are assigned one after the other, and no two get the same
/// disk.
pub(super) fn assigned(osds: Vec<(OsdId, Class)>, view: View<'_>) -> BTreeMap<OsdId, Result<Onto, Reason>> {
    let inventories = disks::youngest(view.seen);
    let mut taken: Vec<DeviceIdentity> = Vec::new();
    let mut found = BTreeMap::new();
    for (osd, class) in osds {
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
