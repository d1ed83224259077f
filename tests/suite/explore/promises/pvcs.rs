//! The promises for OSDs on PersistentVolumeClaims.

use osd_migrate::domain::osd::{OsdFsid, OsdId};
use osd_migrate::sim::World;

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
