//! The promises for OSDs on PersistentVolumeClaims.

use osd_migrate::domain::osd::{OsdFsid, OsdId};
use osd_migrate::sim::World;

use super::super::owner::Owner;
use super::super::state::State;
use super::Broken;

/// Checks P3: the device that the agent or the pod of an OSD on a PVC would get is the one with the OSD.
pub(super) fn off_its_pvc(world: &World, osd: OsdId, fsid: OsdFsid) -> Option<Broken> {
    let pvc = world.pvcs.of.get(&osd)?;
    let (disk, _) = world.disk_of(fsid)?;
    (world.pvcs.disks.get(pvc) != Some(disk))
        .then(|| format!("P3: {osd} was destroyed or deployed, but its PVC {pvc} is on another disk"))
}

/// Checks P3: the key that opens a store on the PVC of an OSD is still in its Secret.
pub(super) fn key_replaced(before: &World, osd: OsdId, after: &World) -> Option<Broken> {
    let pvc = before.pvcs.of.get(&osd)?;
    let key = before.pvcs.keys.get(pvc)?;
    let is_needed = before.pvcs.stores.iter().any(|(fsid, of)| of == key && before.disk_of(*fsid).is_some());
    (is_needed && after.pvcs.keys.get(pvc) != Some(key))
        .then(|| format!("P3: the key of {osd} was replaced, and nothing opens its device"))
}

/// Returns whether the PVC of an OSD was recreated, and no longer leads to its disk.
pub(super) fn is_recreated(world: &World, osd: OsdId) -> bool {
    let disk = format!("disk-{}", osd.0);
    world.pvcs.of.get(&osd).is_some_and(|pvc| world.pvcs.disks.get(pvc) != Some(&disk))
}

/// Returns whether a Rook that is not fenced would start an OSD on a PVC in another shape than it has.
pub(super) fn rook_reshapes(state: &State) -> bool {
    let (world, kube) = (&state.world, &state.world.kube);
    let differs = |fsid: OsdFsid| {
        let is_encrypted = world.pvcs.stores.contains_key(&fsid);
        kube.declaration.storage.sets.iter().any(|set| set.encrypted != is_encrypted)
    };
    let mut slots = world.pvcs.of.keys().filter_map(|osd| world.ceph.slots.get(osd));
    let begins = kube.fenceable_operator().is_some() && !state.thaws;
    begins && slots.any(|slot| slot.up && slot.fsid.is_some_and(differs))
}

/// Checks P6: an owner who has read that the fence is in force may edit a device set at any time.
pub(super) fn unfenced(before: &State, after: &State) -> Option<Broken> {
    let has_read = (before.owner, after.owner) == (Owner::Fences, Owner::Fenced);
    if has_read && after.world.reconciling {
        return Some("P6: the owner has read that the fence is in force, and Rook reconciles".to_owned());
    }
    let is_unfenced = after.owner == Owner::Edited && after.world.kube.fence.is_none();
    (is_unfenced && rook_reshapes(after))
        .then(|| "P6: the owner edited a fenced CephCluster, and Rook reshapes OSDs".to_owned())
}

/// Checks P9: the fence of the owner is removed when the OSDs are as edited.
pub(super) fn still_fenced(state: &State) -> Option<Broken> {
    let is_left = state.owner == Owner::Edited && state.world.kube.fence.is_some();
    is_left.then(|| "P9: the OSDs are as edited, and the fence of the owner stays".to_owned())
}
