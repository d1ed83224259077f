//! Progress (P8): one sick part never holds up the healthy rest, and osd-migrate leaves no OSD down without a
//! way back.
//!
//! The checks use the true state: gates that the runner takes for shut do not count here.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use osd_migrate_core::domain::act::{Act, KubeAct};
use osd_migrate_core::domain::classify;
use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::next::{Halt, Next, Saving, Wait};
use osd_migrate_core::domain::observation::{Emptiable, Releases, Slot};
use osd_migrate_core::domain::osd::{Kind, OsdId};
use osd_migrate_core::domain::phase::is_committed;
use osd_migrate_core::domain::plan::Questions;
use osd_migrate_core::domain::policy::{Policy, RequireClean};
use osd_migrate_core::domain::step;
use osd_migrate_core::sim::{UnusualPg, World};

use super::{Broken, State, needed};

/// Minutes without a change of its record after which Ceph must be free to recover from an OSD that is down.
///
/// The rule says 15; a wait in `ending` lasts 3, and some iterations follow.
const QUIET_MINUTES: i64 = 25;

/// Hours after which Ceph must be free to recover from an OSD that is down, even if its record changes.
const DOWN_HOURS: i64 = 3;

/// Minutes between the first and the last attempt of a node agent before a stopped OSD is given up.
const TRIED_MINUTES: i64 = 5;

/// Flags of the whole osdmap that keep OSDs or data from coming back.
const FLAGS: [&str; 8] = ["nodown", "noup", "norecover", "nobackfill", "pause", "pauserd", "pausewr", "full"];

/// An OSD that is down with a `noout` that osd-migrate set.
struct Down {
    since: DateTime<Utc>,
    /// Time of the last change of the OSD's record.
    changed: DateTime<Utc>,
    record: Option<Record>,
}

/// State that is watched while a run continues without further faults.
#[derive(Default)]
pub(crate) struct Watch {
    /// OSDs that are down with a `noout` that osd-migrate set.
    down: BTreeMap<OsdId, Down>,
    /// Time since when osd-migrate has kept Rook's operator at 0 without a stopped OSD.
    set_aside: Option<DateTime<Utc>>,
}

impl Watch {
    /// Returns the promise that a state breaks after so many iterations of waiting.
    pub(crate) fn broken(&mut self, now: &State, decided: &Next) -> Option<Broken> {
        let at = now.world.at;
        let slack = TimeDelta::seconds(4 * now.pace);
        let down: Vec<OsdId> = down_with_noout(now).collect();
        self.down.retain(|osd, _| down.contains(osd));
        for osd in down {
            let record = now.ledger.records.get(&osd);
            let new = || Down { since: at, changed: at, record: record.cloned() };
            let down = self.down.entry(osd).or_insert_with(new);
            if down.record.as_ref() != record {
                (down.changed, down.record) = (at, record.cloned());
            }
            let is_quiet = at - down.changed > TimeDelta::minutes(QUIET_MINUTES) + slack;
            if is_quiet || at - down.since > TimeDelta::hours(DOWN_HOURS) + slack {
                return Some(format!("P8: {osd} stays down with noout, and Ceph may not heal without it"));
            }
        }
        if let Next::Wait(Wait::ActiveClean { osd, .. }) = decided
            && is_ours(now, *osd)
        {
            return Some(format!("P8: {osd} is up, and its noout stays while its data comes back"));
        }
        let operator = now.world.kube.operator.as_ref().filter(|operator| operator.replicas == 0);
        let is_aside = now.world.scaled_by_osd_migrate && operator.is_some() && !is_needed(now);
        self.set_aside = is_aside.then(|| self.set_aside.unwrap_or(at));
        let is_long = |since: DateTime<Utc>| at - since > TimeDelta::minutes(QUIET_MINUTES) + slack;
        let waits = matches!(decided, Next::Wait(_));
        let left = self.set_aside.filter(|since| waits && is_long(*since));
        left.map(|_| "P8: Rook's operator stays at 0 while nothing is done".to_owned())
    }
}

/// Returns whether Rook is kept off for an OSD that is committed (after its stop), or is being closed.
fn is_needed(state: &State) -> bool {
    let seen = state.world.observe(|_| Questions::default());
    state.ledger.in_flight().any(|record| record.closing || is_committed(record, &seen))
}

/// Returns whether `noout` is set on the OSD, by osd-migrate.
fn is_ours(state: &State, osd: OsdId) -> bool {
    let slot = state.world.ceph.slots.get(&osd);
    let record = state.ledger.records.get(&osd);
    slot.is_some_and(|slot| slot.noout) && record.is_some_and(|record| !record.former_flags.0)
}

fn down_with_noout(state: &State) -> impl Iterator<Item = OsdId> {
    let down = state.world.ceph.slots.iter().filter(|(_, slot)| !slot.up);
    down.map(|(osd, _)| *osd).filter(|osd| is_ours(state, *osd))
}

/// Returns the promise that is broken when a run ends, or waits for something that does not end by itself.
pub(crate) fn at_an_end(state: &State, decided: &Next, policy: &Policy) -> Option<Broken> {
    let ends = matches!(decided, Next::Finished(_) | Next::Halt(_));
    if let Some(osd) = down_with_noout(state).next().filter(|_| ends) {
        return Some(format!("P8: the run ends while {osd} is down with noout: Ceph can't heal"));
    }
    if let Next::Wait(Wait::Up { osd, .. }) = decided
        && let Some(record) = state.ledger.records.get(osd).filter(|record| !record.closing)
        && is_committed(record, &state.world.observe(|_| Questions::default()))
    {
        return Some(format!("P8: {osd} does not start, and the run waits for it without an end"));
    }
    if let Next::Wait(Wait::Down { osd }) = decided {
        return Some(format!("P8: the pod of {osd} does not end, and the run waits for it without an end"));
    }
    if let Next::Wait(Wait::ActiveClean { osd, .. }) = decided
        && is_filled(&state.world, *osd)
    {
        return Some(format!("P8: {osd} has all its data, and the run waits for it without an end"));
    }
    if let Some(broken) = super::batch::waits_for_quarantined(state, decided) {
        return Some(broken);
    }
    if let Next::Halt(Halt::UnsafeToWipe { osd, .. }) = decided
        && only_its_own_missing(state, *osd)
        && !super::pvcs::is_recreated(&state.world, *osd)
    {
        return Some(format!(
            "P8: no other replica of the PGs of {osd} is missing, and the run ends before its wipe"
        ));
    }
    let is_lost = matches!(decided, Next::Halt(Halt::LedgerLost { .. } | Halt::CrashLoop { .. }));
    if is_lost || !is_well(state, policy) {
        return None;
    }
    let osd = undone(state, policy).next()?;
    Some(format!("P8: nothing stands in the way of {osd}, and it is left undone"))
}

/// Returns whether every PG that the OSD served is complete on all other OSDs that CRUSH chose for it.
///
/// PGs of other OSDs do not matter: its old data has no replica of them, and the wipe waits for them.
fn only_its_own_missing(state: &State, osd: OsdId) -> bool {
    let world = &state.world;
    let Some(record) = state.ledger.records.get(&osd) else { return false };
    let served = world.placements.iter().filter(|(id, _)| record.pgs.contains(*id));
    served.into_iter().all(|(id, placement)| {
        let complete = world.complete_set(id);
        placement.peered && placement.home.iter().all(|home| *home == osd || complete.contains(home))
    })
}

/// Returns whether an OSD is up and has all its data, and no PG of it is unclean by more than what a scrub
/// found.
fn is_filled(world: &World, osd: OsdId) -> bool {
    let is_there = world.ceph.slots.get(&osd).is_some_and(|slot| slot.up && slot.is_in);
    let may_stay = |unusual: &UnusualPg| *unusual == UnusualPg::Inconsistent;
    let mut its = world.placements.iter().filter(|(_, placement)| placement.home.contains(&osd));
    is_there
        && its.all(|(id, placement)| {
            placement.peered
                && world.complete_set(id).len() == placement.home.len()
                && world.noise.unusual.get(id).is_none_or(may_stay)
        })
}

/// Returns the OSDs that are to be migrated, were not started, and whose own gates are open.
fn undone(state: &State, policy: &Policy) -> impl Iterator<Item = OsdId> {
    let seen = state.world.observe(|_| Questions::default());
    let classes = classify::classify(&seen).into_iter().filter_map(|(osd, class)| {
        let kind = class.migrates().filter(|kind| !Kind::in_directory(*kind));
        kind.map(|_| osd).filter(|osd| classify::database_of(*osd, &seen).is_none())
    });
    let found: Vec<OsdId> = classes
        .filter(|osd| {
            policy.names(*osd) && policy.has_in_plan(*osd) && !state.ledger.records.contains_key(osd)
        })
        .filter(|osd| !state.world.kube.requests.removals.contains_key(osd))
        .filter(|osd| state.ledger.refused(*osd, &policy.run).is_none())
        .filter(|osd| may_go(&state.world, *osd) == Some(true))
        .filter(|osd| state.world.noise.unusual.keys().all(|pg| !state.world.up_set(pg).contains(osd)))
        .chain(super::removal::undone(state, policy))
        .collect();
    found.into_iter()
}

/// Returns whether an OSD may be migrated.
///
/// The OSD serves, its node is available, its device is as expected, other OSDs can serve without it, and its
/// data fits.
fn may_go(world: &World, osd: OsdId) -> Option<bool> {
    let slot = world.ceph.slots.get(&osd)?;
    let daemon = world.kube.daemons.get(&osd)?;
    let node = world.kube.nodes.get(daemon.node.as_ref()?)?;
    let (_, disk) = world.disk_of(slot.fsid?)?;
    let fits = slot.used_bytes? / 10 * 11
        <= disk.identity.size_bytes / 10_000 * u64::from(world.ceph.nearfull_ratio);
    let precondition =
        world.placements.iter().filter(|(pg, _)| world.up_set(pg).contains(&osd)).all(|(pg, placement)| {
            let pool = &world.ceph.pools[&placement.pool];
            let others = world.complete_set(pg).into_iter().filter(|other| *other != osd).count();
            others >= pool.min_size as usize && others > needed(world, placement.pool)
        }) || matches!(world.emptiable(osd), Emptiable::Yes { .. });
    let serves = slot.up
        && slot.is_in
        && daemon.replicas > 0
        && daemon.rolled_out
        && daemon.managed_externally.is_none();
    let prepares = world.kube.rook_prepares.iter().any(|job| job.node == daemon.node);
    let is_ambiguous = world.kube.ambiguities.iter().any(|one| one.osds.contains(&osd));
    let is_there = node.ready && !node.cordoned && !prepares && Some(&disk.node) == daemon.node.as_ref();
    Some(
        !world.noise.refused.contains(&osd)
            && !is_ambiguous
            && serves
            && is_there
            && disk.proof.is_some()
            && disk.held_by.is_none()
            && fits
            && precondition,
    )
}

/// Returns whether nothing in the whole cluster blocks: no data is endangered, and no setting forbids it.
fn is_well(state: &State, policy: &Policy) -> bool {
    let World { ceph, kube, placements, noise, .. } = &state.world;
    let declaration = &kube.declaration;
    let is_whole = |(pg, placement): (_, &osd_migrate_core::sim::Placement)| {
        placement.peered && state.world.complete_set(pg).len() == placement.home.len()
    };
    let is_full =
        |code: &String| code.starts_with("OSD_") && code.contains("FULL") || code == "PG_BACKFILL_FULL";
    // A PG that is remapped for months blocks only its own OSDs, if the owner says so.
    let is_passed_over =
        |pg: &UnusualPg| policy.require_clean == RequireClean::Own && *pg == UnusualPg::Remapped;
    let data =
        placements.iter().all(is_whole) && noise.unusual.values().all(is_passed_over) && !noise.mgr_away;
    let cluster = !ceph.health.iter().any(|code| is_full(code) || code == "MON_DOWN")
        && !FLAGS.iter().any(|flag| ceph.flags.contains(*flag))
        && ceph.releases == Releases::One;
    let allowed = policy.is_confirmed(declaration)
        && policy.is_open_at(state.world.at)
        && !policy.only_new
        && kube.control.is_none()
        && !declaration.external
        && !declaration.removes_out_osds;
    let operator = kube.running_operator();
    let rook = operator.is_none_or(|operator| operator.honours_fence || policy.scales_operator)
        && kube.fence.as_deref() != Some("theirs")
        && kube.ambiguities.iter().all(|one| !one.osds.is_empty())
        && kube.rook_prepares.iter().all(|job| job.node.is_some())
        && kube.draining_failure_domain.is_none()
        && !state.world.rejects_pdbs;
    let seen = state.world.observe(|_| Questions::default());
    let failed = state.ledger.quarantined().filter(|record| is_committed(record, &seen)).count();
    let is_down = |slot: &Slot| !slot.up && slot.is_in;
    data && cluster && allowed && rook && failed < 2 && !ceph.slots.values().any(is_down)
}

/// Checks that no OSD is stopped whose new Deployment would be rejected.
pub(super) fn unadmitted(before: &State, next: &Next) -> Option<Broken> {
    let Next::Do(Act::Kube(KubeAct::Stop { osd, .. })) = next else { return None };
    let is_refused = before.world.noise.refused.contains(osd) && !before.thaws;
    is_refused.then(|| format!("P8: {osd} is stopped, and its new Deployment is not admitted"))
}

/// Checks that no stop is reverted, and no OSD given up, for a condition that passes by itself.
///
/// (A condition that is still unknown after minutes is a reason: a replica may be gone.)
pub(super) fn given_up(before: &State, next: &Next) -> Option<Broken> {
    let Next::Save { osd: Some(osd), why, .. } = next else { return None };
    let record = before.ledger.records.get(osd)?;
    match why {
        Saving::RevertStop { .. } => {
            let World { noise, .. } = &before.world;
            let passes = noise.unusual.values().any(|unusual| unusual.passes());
            let lacks = |pg| {
                let complete = before.world.complete_set(pg);
                let home = &before.world.placements[pg].home;
                home.iter().any(|home| home != osd && !complete.contains(home))
            };
            let is_safe = !before.world.placements.keys().any(lacks);
            let is_early = record
                .down_since
                .is_none_or(|since| before.world.at - since < TimeDelta::minutes(step::UNKNOWN_MINUTES));
            (passes && is_safe && is_early)
                .then(|| format!("P8: the stop of {osd} was reverted for what passes by itself"))
        }
        Saving::Quarantine { why } if why.contains("node agent failed") => {
            let jobs = before.world.kube.node_jobs.iter().filter(|job| job.record == record.id);
            let tries: Vec<_> =
                jobs.filter(|job| job.task == record.attempt.task).map(|job| job.created_at).collect();
            let seen = before.world.observe(|_| Questions::default());
            let span = *tries.iter().max()? - *tries.iter().min()?;
            let is_short = span < TimeDelta::minutes(TRIED_MINUTES) && is_committed(record, &seen);
            is_short.then(|| {
                format!("P8: {osd} was given up past its stop after {} s of trying", span.num_seconds())
            })
        }
        _ => None,
    }
}
