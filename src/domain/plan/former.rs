//! Disks with an OSD that is no longer in the cluster, such as one that was purged.
//!
//! They look like disks of the cluster, so nothing uses them.

use crate::domain::inventory::{DiskSeen, DiskState, NodeInventory, OsdSeen};
use crate::domain::ledger::Record;
use crate::domain::observation::{Slot, SlotState};
use crate::domain::osd::{Mode, NodeName, OsdFsid, OsdId};
use crate::domain::provision::{Declared, volumes};
use crate::domain::view::View;

/// Returns the former OSD of a disk in words; `None` if its OSD is in the cluster, or may be.
///
/// An OSD that was created again since the inventory uses the same disk: its metadata names the disk.
pub(super) fn former(
    disk: &DiskSeen,
    node: &NodeName,
    inventory: &NodeInventory,
    view: View<'_>,
) -> Option<String> {
    let (fsid, osd) = former_osd(disk, node, inventory, view)?;
    Some(match osd {
        Some(osd) => format!("the former OSD {fsid} ({osd}), which is not in the cluster"),
        None => format!("the former OSD {fsid}, which is not in the cluster"),
    })
}

/// Returns the problems of a node with former OSDs on selected disks, each with the way out.
pub(super) fn problems(node: &NodeName, inventory: &NodeInventory, view: View<'_>) -> Vec<String> {
    let Ok(declared) = Declared::on(node, view.seen) else { return Vec::new() };
    // Kubernetes assigns PersistentVolumes.
    let is_volume = |disk: &DiskSeen| {
        let osds = || inventory.osds.iter().filter(|osd| on(disk).is_some_and(|(fsid, _)| fsid == osd.fsid));
        osds().any(|osd| volumes::of_osd(osd, inventory, node, view.seen).is_some())
    };
    let is_selected = |disk: &&DiskSeen| {
        declared.selects_any(&disk.links.iter().cloned().chain([disk.name.clone()]).collect())
    };
    // Only the partition with the OSD may be wiped if the disk has partitions.
    let is_whole = |disk: &&DiskSeen| !inventory.disks.iter().any(|part| is_parent(disk, part));
    let problem = |disk: &DiskSeen| {
        let carried = former(disk, node, inventory, view)?;
        let (fsid, _) = on(disk)?;
        let way = way_out(disk, fsid, node, inventory);
        Some(format!("{} carries {carried}, and becomes no OSD. {way}", disk.name))
    };
    // The declaration is compared last: this is asked in each iteration.
    let disks = inventory.disks.iter().filter(|disk| on(disk).is_some()).filter(is_whole);
    disks.filter_map(|disk| problem(disk).filter(|_| is_selected(&disk) && !is_volume(disk))).collect()
}

/// Returns what to do with a disk: only an OSD that the inventory lists is known well enough for a command.
fn way_out(disk: &DiskSeen, fsid: OsdFsid, node: &NodeName, inventory: &NodeInventory) -> String {
    let zap = |what: String| {
        format!(
            "If its data is not needed, make it blank, on node {node} in Ceph's image: ceph-volume lvm zap {what}"
        )
    };
    match inventory.osds.iter().find(|osd| osd.fsid == fsid).map(|osd| osd.mode) {
        Some(Mode::Raw) => zap(disk.identity.stable_path().unwrap_or_else(|| format!("/dev/{}", disk.name))),
        Some(Mode::Lvm) => zap(format!("--destroy --osd-fsid {fsid}")),
        None => format!("See on node {node} in Ceph's image: ceph-volume lvm list"),
    }
}

fn on(disk: &DiskSeen) -> Option<(OsdFsid, Option<OsdId>)> {
    match &disk.state {
        DiskState::Ours { fsid, osd } => Some((*fsid, *osd)),
        DiskState::Available | DiskState::Tombstone { .. } | DiskState::Rejected { .. } => None,
    }
}

fn is_parent(disk: &DiskSeen, part: &DiskSeen) -> bool {
    part.parent.as_ref() == Some(&disk.name)
}

fn former_osd(
    disk: &DiskSeen,
    node: &NodeName,
    inventory: &NodeInventory,
    view: View<'_>,
) -> Option<(OsdFsid, Option<OsdId>)> {
    let (fsid, of_label) = on(disk)?;
    let osd = of_label.or_else(|| inventory.osds.iter().find(|osd| osd.fsid == fsid).map(|osd| osd.osd));
    let exists = |fsid| {
        let has_it = |slot: &Slot| slot.fsid == Some(fsid) && slot.state != SlotState::Destroyed;
        let by_id = osd.and_then(|osd| view.slot(osd)).is_some_and(has_it);
        by_id || view.seen.ceph.slots.values().any(has_it)
    };
    let is_of = |record: &Record| {
        let fsids = [Some(record.old), record.new];
        Some(record.osd) == osd
            || fsids.contains(&Some(fsid))
            || record.issued.contains(&fsid)
            || record.device().is_some_and(|device| device.is_same_as(&disk.identity))
    };
    if exists(fsid) || view.ledger.records.values().any(is_of) || is_used(disk, osd, node, view) {
        return None;
    }
    let names = [Some(&disk.name), disk.parent.as_ref()];
    let has_databases = |of: &OsdSeen| {
        of.fsid != fsid && of.db_disk.is_some() && names.contains(&of.db_disk.as_ref()) && exists(of.fsid)
    };
    (!inventory.osds.iter().any(has_databases)).then_some((fsid, osd))
}

/// Returns whether an existing OSD uses the disk, or may use it: that is not known before its first boot.
fn is_used(disk: &DiskSeen, osd: Option<OsdId>, node: &NodeName, view: View<'_>) -> bool {
    let hostname = view.node(node).map(|node| node.hostname.as_str());
    let name = disk.parent.as_ref().unwrap_or(&disk.name);
    let is_here = |id: OsdId, slot: &Slot| {
        let host = slot.metadata.as_ref().map(|metadata| metadata.hostname.as_str());
        let by_host = host.is_some_and(|host| host == node.0 || Some(host) == hostname);
        by_host || Some(id) == osd || view.node_of(id) == Some(node)
    };
    let uses = |slot: &Slot| {
        slot.metadata.as_ref().is_none_or(|metadata| {
            let is_link = |stable: &String| disk.links.iter().any(|link| link.ends_with(stable));
            metadata.devices.contains(name) || metadata.stable_devices.iter().any(is_link)
        })
    };
    let mut slots = view.seen.ceph.slots.iter().filter(|(_, slot)| slot.state != SlotState::Destroyed);
    slots.any(|(id, slot)| is_here(*id, slot) && uses(slot))
}
