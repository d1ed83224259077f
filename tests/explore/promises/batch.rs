//! The promises for OSDs that are migrated in parallel.

use chrono::TimeDelta;

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

fn is_in_place(record: &Record) -> bool {
    matches!(record.strategy, Strategy::InPlace) && record.empty.is_none()
}

/// Checks an OSD that is recorded while others are in progress.
///
/// P1: they are of one failure domain, and no more than the run allows. One OSD of each of their kinds was
/// finished alone before, and has soaked.
pub(super) fn begun(before: &State, record: &Record, policy: &Policy) -> Option<Broken> {
    let world = &before.world;
    let beside: Vec<&Record> = before.ledger.in_flight().filter(|other| is_in_place(other)).collect();
    if beside.is_empty() || !is_in_place(record) {
        return None;
    }
    let domain = domain_of(world, record.osd);
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
    ];
    let why = why.iter().find(|(passes, _)| *passes).map(|(_, why)| (*why).to_owned());
    let is_untried = |one: &&Record| !is_tried(one, before, policy);
    let untried = beside.iter().copied().chain([record]).find(is_untried);
    let too_early = untried.map(|one| format!("before an OSD of the kind of {} was tried alone", one.osd));
    let why = why.or(too_early)?;
    Some(format!("P1: {} was begun beside {} {why}", record.osd, beside[0].osd))
}

/// Returns the kind of a migration: what the OSD is, and what it becomes.
///
/// It is written here once more: with another `batch::kind`, which mixes kinds, a promise must break.
fn kind(record: &Record) -> String {
    format!("{} to {}", record.class, record.target)
}

/// Returns whether an OSD of the kind of this one was finished, is up, and has soaked.
fn is_tried(record: &Record, state: &State, policy: &Policy) -> bool {
    let world = &state.world;
    let is_up = |osd: &OsdId| world.ceph.slots.get(osd).is_some_and(|slot| slot.up);
    state.ledger.run.tried.as_ref().filter(|tried| tried.job == policy.run).is_some_and(|tried| {
        let at = tried.kinds.get(&kind(record));
        let is_still_up = tried.osds.get(&kind(record)).is_none_or(is_up);
        is_still_up && at.is_some_and(|at| world.at - *at >= policy.limits.soak)
    })
}

/// Checks P1 for a save: the ledger notes a kind as tried by an OSD of the kind that is finished just now.
pub(super) fn noted(before: &State, after: &State) -> Option<Broken> {
    let was = before.ledger.run.tried.as_ref();
    let now = after.ledger.run.tried.as_ref()?;
    let is_known = |kind: &String, at| was.is_some_and(|was| was.kinds.get(kind) == Some(at));
    let is_finished = |osd: &OsdId, kind: &String| {
        let closed = before.ledger.records.get(osd).filter(|_| !after.ledger.records.contains_key(osd));
        let slot = before.world.ceph.slots.get(osd);
        closed.is_some_and(|record| {
            let is_new = record.new.is_some() && slot.is_some_and(|slot| slot.fsid == record.new);
            self::kind(record) == *kind && (is_new || before.thaws)
        })
    };
    let since = TimeDelta::seconds(before.pace);
    let wrong = now.kinds.iter().filter(|&(kind, at)| !is_known(kind, at)).find(|&(kind, at)| {
        let age = before.world.at - *at;
        let is_now = (TimeDelta::zero()..=since).contains(&age) || before.thaws;
        !is_now || !now.osds.get(kind).is_some_and(|osd| is_finished(osd, kind))
    });
    wrong.map(|(kind, _)| format!("P1: {kind} is noted as tried, and no OSD of this kind is finished now"))
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
