//! The promises for an OSD that is emptied before its stop.

use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::observation::Slot;
use osd_migrate_core::domain::osd::{OsdFsid, OsdId};

use super::super::state::State;
use super::Broken;

/// Checks an OSD that is marked out: its record is saved, no replica is missing, and its data has a place.
pub(super) fn marked_out(before: &State, osd: OsdId, after: &State) -> Option<Broken> {
    let world = &before.world;
    let slot = world.ceph.slots.get(&osd)?;
    // A runner that slept may act for a record that was closed since; its act is refused then.
    let record = before.ledger.records.get(&osd);
    let Some(record) = record.filter(|record| record.is_marked_out()) else {
        return Some(format!("P9: {osd} was marked out, and the ledger does not have the intent"));
    };
    if slot.fsid != Some(record.old) || !slot.up {
        return Some(format!("P6: {osd} was marked out, and is not the OSD of the record that serves"));
    }
    if record.is_removal() {
        if let Some(broken) = super::removal::dropped(before, record) {
            return Some(broken);
        }
    } else if slot.reweight != record.reweight {
        return Some(format!("P9: {osd} was marked out, and its in-weight is not in the ledger"));
    }
    // Copies on their way back to the OSD count where they are.
    let serves = |fsid: &OsdFsid| world.ceph.slots.values().any(|slot| slot.up && slot.fsid == Some(*fsid));
    let lacks = |placement: &osd_migrate_core::sim::Placement| {
        placement.complete.iter().filter(|fsid| serves(fsid)).count() < placement.home.len()
    };
    if world.placements.values().any(lacks) {
        return Some(format!("P2: {osd} was marked out while a replica is missing"));
    }
    let finds_too_few = |pg| after.world.crush_set(pg).len() < world.crush_set(pg).len();
    let no_place = world.placements.keys().any(finds_too_few) || world.noise.no_space;
    no_place.then(|| format!("P13: {osd} was marked out, and its data has no place"))
}

/// Checks that a closed OSD is not out, and has a CRUSH weight, if osd-migrate emptied it.
pub(super) fn left_out(record: &Record, slot: &Slot) -> Option<Broken> {
    let is_weightless = record.is_removal() && slot.crush.is_some() && !slot.has_weight();
    if record.is_marked_out() && is_weightless {
        return Some(format!("P9: {} keeps the CRUSH weight 0", record.osd));
    }
    let is_out = record.is_marked_out() && !record.is_removal() && !slot.is_in;
    is_out.then(|| format!("P9: {} stays marked out", record.osd))
}

/// Checks that a quarantined OSD that is up is not out because of osd-migrate.
pub(super) fn left_in_quarantine(state: &State) -> Option<Broken> {
    state.ledger.quarantined().find_map(|record| {
        let slot = state.world.ceph.slots.get(&record.osd).filter(|slot| slot.up)?;
        left_out(record, slot)
    })
}
