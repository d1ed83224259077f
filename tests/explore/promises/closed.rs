//! The promises about an OSD whose record is closed, or that is called done.

use osd_migrate_core::domain::classify::Class;
use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::osd::CrushItem;
use osd_migrate_core::sim::{UnusualPg, example};

use super::super::state::State;
use super::{Broken, class, emptying, removal};

/// Checks that a closed OSD is as it was before (P4), and that nothing of osd-migrate's is left on it (P9).
pub(super) fn closed(record: &Record, state: &State) -> Option<Broken> {
    let osd = record.osd;
    if let Some(broken) = removal::closed(record, state).filter(|_| record.is_removal()) {
        return Some(broken);
    }
    let Some(slot) = state.world.ceph.slots.get(&osd) else {
        return record.new.is_some().then(|| format!("P4: {osd} is gone"));
    };
    if slot.noout || slot.noin {
        return Some(format!("P9: {osd} keeps a flag that osd-migrate set"));
    }
    if record.new.is_none() && record.is_new() {
        return None; // given up before anything was done
    }
    if let Some(broken) = emptying::left_out(record, slot) {
        return Some(broken);
    }
    if record.new.is_none() {
        // Recreated externally before osd-migrate did anything: the OSD is not osd-migrate's.
        let ours = |fsid| state.world.issued.values().any(|issued| issued.contains(&fsid));
        let theirs = record.stop_intended_at.is_none() && !slot.fsid.is_some_and(ours);
        let whole = slot.fsid == Some(record.old) || theirs;
        return (!whole).then(|| format!("the record of {osd} was closed, but the OSD is not as before"));
    }
    // Out when it was recorded, or out now: its reweight is set externally.
    let meddled = !slot.is_in || record.reweight.0 == 0;
    if record.is_new() {
        let placed = slot.crush.as_ref().map(|item| &item.location) == Some(&record.crush.location);
        return (!placed).then(|| format!("the new {osd} is not where it belongs: {:?}", slot.crush));
    }
    let theirs = slot.crush.as_ref().is_some_and(|item| item.weight == example::THEIR_WEIGHT);
    let with_theirs = CrushItem { weight: example::THEIR_WEIGHT, ..record.crush.clone() };
    let expected = if theirs { &with_theirs } else { &record.crush };
    if slot.crush.as_ref() != Some(expected) {
        return Some(format!("P4: the place of {osd} is {:?}, it was {:?}", slot.crush, record.crush));
    }
    if slot.primary_affinity != record.primary_affinity || (slot.reweight != record.reweight && !meddled) {
        return Some(format!("P4: the reweight of {osd} is {}, it was {}", slot.reweight, record.reweight));
    }
    // The balancer may have given the PG another upmap; otherwise only a purge removes upmaps here.
    let has_one = |pg| state.world.ceph.upmaps.iter().any(|upmap| upmap.pg == pg);
    if let Some(lost) = record.upmaps.iter().find(|upmap| !has_one(upmap.pg)) {
        return Some(format!("P4: the upmap {lost} is gone"));
    }
    if state.world.marked_new.contains(&osd) {
        return Some(format!("P4: {osd} is still marked new: its next boot resets its reweight"));
    }
    None
}

/// Checks P10: an OSD is called done only when the cluster shows it.
pub(super) fn called_done(record: &Record, state: &State) -> Option<Broken> {
    let osd = record.osd;
    let Some(slot) = state.world.ceph.slots.get(&osd) else {
        return Some(format!("P10: {osd} was called done, and is gone"));
    };
    let world = &state.world;
    // The data of such a PG comes to a new OSD when other OSDs have space.
    let lacks_space = |pg| record.is_new() && world.noise.unusual.get(pg) == Some(&UnusualPg::TooFull);
    let mut its = world.placements.keys().filter(|pg| world.up_set(pg).contains(&osd));
    let whole = its.all(|pg| lacks_space(pg) || world.complete_set(pg).contains(&osd));
    if !slot.up || !whole {
        return Some(format!("P10: {osd} was called done before it had its data"));
    }
    (class(&state.world, osd) != Class::Conforming)
        .then(|| format!("P10: {osd} was called done, but does not conform"))
}
