//! The promises for OSDs on PersistentVolumeClaims.

use std::collections::BTreeSet;

use osd_migrate_core::domain::inspection::{Content, PieceLocation};
use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::osd::{OsdFsid, OsdId};
use osd_migrate_core::sim::{World, example};

use super::super::owner::Owner;
use super::super::state::State;
use super::Broken;

/// Checks P3: the devices that the agent or the pod of an OSD on PVCs would get are those with the OSD.
pub(super) fn off_its_pvc(before: &State, osd: OsdId, fsid: OsdFsid) -> Option<Broken> {
    let world = &before.world;
    let pvcs = before.ledger.records.get(&osd)?.pvcs.as_ref()?;
    let data = world.disk_of(fsid).map(|(disk, _)| (&pvcs.data.name, disk));
    let database = pvcs.db.as_ref().and_then(|pvc| Some((&pvc.name, world.databases.get(&fsid)?)));
    data.into_iter().chain(database).find_map(|(pvc, disk)| {
        (world.pvcs.disks.get(pvc) != Some(disk))
            .then(|| format!("P3: {osd} was destroyed or deployed, but its PVC {pvc} is on another disk"))
    })
}

/// Checks P3: when an OSD on PVCs is stopped, its database was found.
pub(super) fn unknown_part(world: &World, record: &Record) -> Option<Broken> {
    record.pvcs.as_ref()?;
    let disk = world.databases.get(&record.old)?;
    let pieces = record.evidence.iter().flat_map(|evidence| &evidence.auxiliary);
    let devices = pieces.filter_map(|piece| match &piece.place {
        PieceLocation::Pvc { device, .. } => Some(device),
        PieceLocation::Device(_) | PieceLocation::Volume { .. } => None,
    });
    let is_found = devices.into_iter().any(|device| *device == world.disks[disk].identity);
    (!is_found).then(|| format!("P3: {} was stopped, but its database on {disk} was not found", record.osd))
}

/// Checks P7: an encrypted OSD that stays encrypted can be started again with its key when it is stopped.
pub(super) fn without_its_key(world: &World, record: &Record) -> Option<Broken> {
    let pvc = &record.pvcs.as_ref().filter(|_| record.target.encrypted)?.data.name;
    let store = world.pvcs.stores.get(&record.old)?;
    (world.pvcs.keys.get(pvc) != Some(store))
        .then(|| format!("P7: {} was stopped, but no key of PVC {pvc} opens it", record.osd))
}

/// Checks P3: what is cleared on the device for a database is a part of this OSD, whose data is gone.
pub(super) fn part_cleared(
    world: &World,
    (disk, osd): (&str, OsdId),
    was: &Content,
    part: Option<OsdFsid>,
) -> Option<Broken> {
    let Some(fsid) = part else {
        return Some(format!("P3: {disk} was cleared for {osd}, but contains {was}"));
    };
    let is_issued = world.issued.iter().any(|((of, _), issued)| *of == osd && issued.contains(&fsid));
    if !is_issued && fsid != example::fsid(osd, 0) {
        return Some(format!("P3: {disk} was cleared for {osd}, but contains the database of OSD {fsid}"));
    }
    world
        .disk_of(fsid)
        .map(|(data, _)| format!("P3: {disk} was cleared, but the data of its OSD {fsid} is still on {data}"))
}

/// Checks P3: the key that opens a store on the PVC of an OSD is still in its Secret.
pub(super) fn key_replaced(before: &World, osd: OsdId, after: &World) -> Option<Broken> {
    let pvc = &before.pvcs.of.get(&osd)?.data;
    let key = before.pvcs.keys.get(pvc)?;
    let is_needed = before.pvcs.stores.iter().any(|(fsid, of)| of == key && before.disk_of(*fsid).is_some());
    (is_needed && after.pvcs.keys.get(pvc) != Some(key))
        .then(|| format!("P3: the key of {osd} was replaced, and nothing opens its device"))
}

/// Checks P3: no two Deployments, and no two records, use the same PVC.
pub(super) fn shared(state: &State) -> Option<Broken> {
    let on = state.world.kube.daemons.values().filter_map(|daemon| daemon.on_pvcs.as_ref());
    let named = on.flat_map(|on| [&on.data, &on.db, &on.wal]).flatten();
    let records = state.ledger.records.values().filter_map(|record| record.pvcs.as_ref());
    let recorded = records.flat_map(|pvcs| pvcs.iter().map(|(_, pvc)| &pvc.name));
    let pvc = twice(named).or_else(|| twice(recorded))?;
    Some(format!("P3: PVC {pvc} is used for two OSDs"))
}

/// Returns the first name that comes twice.
fn twice<'a>(mut names: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}

/// Returns whether a PVC of an OSD was recreated, and no longer leads to its disk.
pub(super) fn is_recreated(world: &World, osd: OsdId) -> bool {
    let disks = &world.pvcs.disks;
    let is_on = |pvc: &str, disk: &str| disks.get(pvc).is_none_or(|behind| behind == disk);
    let is_off =
        |data: &str| !is_on(data, &format!("disk-{}", osd.0)) || !is_on(example::DB_PVC, example::DB_DISK);
    world.pvcs.of.get(&osd).is_some_and(|pvcs| is_off(&pvcs.data))
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
