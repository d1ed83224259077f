//! The promises for OSDs that are migrated in parallel.

use chrono::{DateTime, Utc};

use osd_migrate_core::domain::gate::Reason;
use osd_migrate_core::domain::ledger::{Record, Strategy};
use osd_migrate_core::domain::next::{Next, Wait};
use osd_migrate_core::domain::observation::Slot;
use osd_migrate_core::domain::osd::{OsdId, PgId};
use osd_migrate_core::domain::phase::is_committed;
use osd_migrate_core::domain::plan::Questions;
use osd_migrate_core::domain::policy::Policy;

use super::super::state::State;
use super::{Broken, domain_of, maps_to};

/// Time that a search notes for the kinds that were tried before it begins.
pub(crate) const TRIED_BEFORE: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn is_in_place(record: &Record) -> bool {
    matches!(record.strategy, Strategy::InPlace) && record.empty.is_none()
}

/// Checks an OSD that is recorded while others are in progress.
///
/// P1: they are of one failure domain, and no more than the run allows. One of the kind was finished alone
/// before.
pub(super) fn begun(before: &State, record: &Record, policy: &Policy) -> Option<Broken> {
    let world = &before.world;
    let beside: Vec<&Record> = before.ledger.in_flight().filter(|other| is_in_place(other)).collect();
    if beside.is_empty() || !is_in_place(record) {
        return None;
    }
    let domain = domain_of(world, record.osd);
    let is_finished = |osd| {
        let fsid = world.ceph.slots.get(osd).and_then(|slot| slot.fsid);
        let issued = world.issued.iter().filter(|((of, _), _)| of == osd);
        let is_ours = issued.into_iter().any(|(_, issued)| fsid.is_some_and(|fsid| issued.contains(&fsid)));
        is_ours && !before.ledger.records.contains_key(osd)
    };
    let tried = before.ledger.run.tried.as_ref();
    let is_tried = tried.is_some_and(|tried| tried.kinds.values().any(|at| *at == TRIED_BEFORE))
        || world.ceph.slots.keys().any(is_finished);
    let seen = world.observe(|_| Questions::default());
    let together: Option<u64> = beside.iter().copied().chain([record]).map(|record| record.used_bytes).sum();
    let of = |(osd, slot): (&OsdId, &Slot)| {
        let open = before.ledger.records.get(osd).and_then(|record| record.used_bytes);
        open.or(slot.used_bytes)
    };
    let of_all = seen.ceph.slots.iter().filter_map(of).sum();
    let is_allowed = policy.in_parallel.allows(beside.len() + 1, together.map(|together| (together, of_all)));
    let why = [
        (beside.iter().any(|other| domain_of(world, other.osd) != domain), "of another failure domain"),
        (!is_allowed, "although the run allows no more in parallel"),
        (!is_tried, "before one of its kind was finished alone"),
    ];
    let why = why.iter().find(|(passes, _)| *passes).map(|(_, why)| why)?;
    Some(format!("P1: {} was begun beside {} {why}", record.osd, beside[0].osd))
}

/// Checks P1 for a stop: no PG of the OSD lacks its replica on another OSD in progress.
pub(super) fn stopped(before: &State, osd: OsdId) -> Option<Broken> {
    let world = &before.world;
    let is_beside =
        |other: &&Record| other.osd != osd && is_in_place(other) && other.stop_intended_at.is_some();
    before.ledger.in_flight().filter(is_beside).find_map(|other| {
        let lacks = |pg: &&PgId| {
            maps_to(world, pg, osd)
                && maps_to(world, pg, other.osd)
                && !world.complete_set(pg).contains(&other.osd)
        };
        let pg = world.placements.keys().find(lacks)?;
        Some(format!("P1: {osd} was stopped while PG {pg} lacks its replica on {}", other.osd))
    })
}

/// Checks P8: an OSD that serves does not wait for PGs that lack only replicas of quarantined OSDs.
///
/// An OSD in progress would wait without end, since nothing need bring these replicas back. Without one, the
/// run waits for an hour and while Ceph heals, and halts then.
pub(super) fn waits_for_quarantined(state: &State, decided: &Next) -> Option<Broken> {
    let Next::Wait(Wait::Gate { osd, reason: Reason::NotClean { .. } }) = decided else { return None };
    let world = &state.world;
    let seen = world.observe(|_| Questions::default());
    let is_waiting =
        state.ledger.in_flight().any(|record| record.osd == *osd && !is_committed(record, &seen));
    let is_lost = |osd: &OsdId| {
        let is_down = world.ceph.slots.get(osd).is_none_or(|slot| !slot.up);
        is_down && state.ledger.quarantined().any(|record| record.osd == *osd)
    };
    let mut lacking = world.placements.iter().flat_map(|(pg, placement)| {
        let complete = world.complete_set(pg);
        placement.home.iter().filter(move |home| !complete.contains(home)).collect::<Vec<_>>()
    });
    let only_theirs = lacking.clone().next().is_some() && lacking.all(is_lost);
    (is_waiting && only_theirs).then(|| format!("P8: {osd} waits for replicas of quarantined OSDs"))
}
