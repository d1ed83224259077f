//! Disks that are PersistentVolumes.
//!
//! Kubernetes assigns them to claims, so none of them becomes an OSD here, and an OSD on one is not started
//! as an OSD of the host.
//!
//! Rook runs OSDs on PersistentVolumeClaims in a form of its own.

use std::borrow::Cow;

use crate::domain::guard::{Guard, passes};
use crate::domain::inventory::{DiskSeen, DiskState, NodeInventory, OsdSeen, Rejection};
use crate::domain::observation::{LocalVolume, Observation, SlotState};
use crate::domain::osd::NodeName;

/// Bytes by which a volume may be smaller than its disk: provisioners round its capacity down to whole GiB
/// (sig-storage-local-static-provisioner, `roundDownCapacityPretty`).
const ROUNDED_OFF: u64 = 1 << 30;

/// Returns the inventory with each disk rejected that is a PersistentVolume, or may be one.
///
/// Disks that carry OSDs keep their state.
pub(super) fn without<'a>(
    inventory: &'a NodeInventory,
    node: &NodeName,
    seen: &Observation,
) -> Cow<'a, NodeInventory> {
    if on(node, seen).next().is_none() {
        return Cow::Borrowed(inventory);
    }
    let mut inventory = Cow::Borrowed(inventory);
    for at in 0..inventory.disks.len() {
        let Some(disk) = inventory.disks.get(at) else { continue };
        let is_available = matches!(disk.state, DiskState::Available | DiskState::Tombstone { .. });
        let Some(why) = rejection(disk, &inventory, node, seen).filter(|_| is_available) else { continue };
        if let Some(disk) = inventory.to_mut().disks.get_mut(at) {
            disk.state = DiskState::Rejected { why };
        }
    }
    inventory
}

/// Returns why an OSD that nothing starts is not started as an OSD of the host: a part of it is a
/// PersistentVolume, or may be one.
pub fn of_osd(
    osd: &OsdSeen,
    inventory: &NodeInventory,
    node: &NodeName,
    seen: &Observation,
) -> Option<Rejection> {
    let carries = |disk: &&DiskSeen| {
        matches!(&disk.state, DiskState::Ours { fsid, .. } if *fsid == osd.fsid)
            || osd.db_disk.as_ref() == Some(&disk.name)
    };
    inventory.disks.iter().filter(carries).find_map(|disk| rejection(disk, inventory, node, seen))
}

/// Returns a sentence for each OSD that is not started because it is on a PersistentVolume.
pub(super) fn problems<'a>(
    inventory: &'a NodeInventory,
    node: &'a NodeName,
    seen: &'a Observation,
) -> impl Iterator<Item = String> + 'a {
    let is_unstarted = |found: &&OsdSeen| {
        let slot = seen.ceph.slots.get(&found.osd);
        let is_it = slot.is_some_and(|slot| {
            slot.fsid == Some(found.fsid) && !slot.up && slot.state != SlotState::Destroyed
        });
        is_it && !seen.kube.daemons.contains_key(&found.osd)
    };
    inventory.osds.iter().filter(is_unstarted).filter_map(move |found| {
        let why = of_osd(found, inventory, node, seen)?;
        Some(format!(
            "{} has no Deployment, and osd-migrate does not create one, because its disk is {why}. Rook's \
             operator creates it when it runs",
            found.osd
        ))
    })
}

fn rejection(
    disk: &DiskSeen,
    inventory: &NodeInventory,
    node: &NodeName,
    seen: &Observation,
) -> Option<Rejection> {
    let found = on(node, seen)
        .find(|volume| is_on(volume, disk))
        .map(|volume| Rejection::PersistentVolume { name: volume.name.clone(), claim: volume.claim.clone() });
    let may_be = || {
        let hidden = on(node, seen).filter(|volume| volume.is_block && fits(volume, disk));
        let mut unknown = hidden.filter(|volume| !inventory.disks.iter().any(|disk| is_on(volume, disk)));
        unknown.next().map(|volume| match (volume.name.clone(), volume.path.clone()) {
            (name, Some(path)) => Rejection::MayBePersistentVolume { name, path },
            (name, None) => {
                Rejection::MayBeAttached { name, claim: volume.claim.clone().unwrap_or_default() }
            }
        })
    };
    let found = found.or_else(may_be);
    if passes(Guard::NoPersistentVolume, found.is_none()) { None } else { found }
}

/// Returns the volumes that are on the node, or may be.
fn on<'a>(node: &'a NodeName, seen: &'a Observation) -> impl Iterator<Item = &'a LocalVolume> {
    let hostname = seen.kube.nodes.get(node).map_or("", |node| node.hostname.as_str());
    seen.kube.local_volumes.iter().filter(move |volume| {
        volume.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node.0) || nodes.contains(hostname))
    })
}

/// Returns whether the volume's path refers to the disk, or to the disk that it is a partition of.
///
/// A path outside of `/dev` is a link that a provisioner created. Most provisioners name it like the device
/// or its name by id (OpenShift's Local Storage Operator does). Other links below `/dev` may have names that
/// several disks share (`/dev/slots/1`).
fn is_on(volume: &LocalVolume, disk: &DiskSeen) -> bool {
    let Some(path) = volume.path.as_deref().map(|path| path.trim_end_matches('/')) else { return false };
    if path.starts_with("/dev/") {
        let is_name = |name: &str| path.strip_prefix("/dev/") == Some(name);
        return is_name(&disk.name)
            || disk.parent.as_deref().is_some_and(is_name)
            || disk.links.contains(path);
    }
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let name = last(path);
    disk.name == name
        || disk.parent.as_ref() == Some(&name)
        || disk.links.iter().any(|link| link.starts_with("/dev/disk/") && last(link) == name)
}

fn fits(volume: &LocalVolume, disk: &DiskSeen) -> bool {
    let size = disk.identity.size_bytes;
    volume.bytes.is_none_or(|bytes| bytes <= size && size - bytes < ROUNDED_OFF)
}
