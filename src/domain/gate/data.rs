//! What must hold of the data: that the statistics are fresh, which PGs are clean, and who can do without a copy.

use std::collections::{BTreeMap, BTreeSet};

use super::{Gate, Reason};
use crate::domain::guard::{Guard, holds};
use crate::domain::observation::{Ceph, Observation, Pg, Pool, Slot, SlotState};
use crate::domain::osd::{Epoch, OsdId, PgId};

/// States of a PG that need no waiting: Ceph scrubs and trims on its own.
const HEALTHY: [&str; 6] = ["active", "clean", "scrubbing", "deep", "snaptrim", "snaptrim_wait"];

/// Whether a PG is active+clean, scrubbing and trimming allowed.
pub fn is_clean(pg: &Pg) -> bool {
    pg.state.contains("active")
        && pg.state.contains("clean")
        && pg.state.iter().all(|state| HEALTHY.contains(&state.as_str()))
}

/// The state as Ceph prints it.
pub fn state_text(pg: &Pg) -> String {
    pg.state.iter().map(String::as_str).collect::<Vec<_>>().join("+")
}

/// PGs that the OSD is to hold or serves.
pub fn pgs_of(osd: OsdId, seen: &Observation) -> BTreeSet<PgId> {
    let holds = |pg: &Pg| pg.up.contains(&osd) || pg.acting.contains(&osd);
    seen.ceph.pgs.iter().filter(|(_, pg)| holds(pg)).map(|(id, _)| id.clone()).collect()
}

/// Statistics that are complete and younger than the last change of the OSDs concerned.
///
/// An unchanged PG does not report again, so the epoch of the map itself says nothing (`ceph-lab.md` 3: the statistics
/// lag the map by up to 7 s).
pub(super) fn fresh(is_concerned: impl Fn(&PgId) -> bool, ceph: &Ceph) -> Gate {
    let expected: u64 = ceph.pools.values().map(|pool| u64::from(pool.pg_num)).sum();
    let known = ceph.pgs.len();
    if known as u64 != expected {
        return Gate::Unknown(Reason::StatisticsIncomplete { known, expected });
    }
    let old = ceph.pgs.iter().filter(|(id, _)| is_concerned(id)).find_map(|(id, pg)| {
        let needed = last_change(pg, ceph);
        (pg.reported_epoch < needed).then(|| Reason::StatisticsOld {
            pg: id.clone(),
            reported: pg.reported_epoch,
            needed,
        })
    });
    old.map_or(Gate::Open, Gate::Unknown)
}

/// The last epoch in which an OSD of the PG's sets came up or went down.
fn last_change(pg: &Pg, ceph: &Ceph) -> Epoch {
    let change = |slot: &Slot| if slot.up { slot.up_from } else { slot.down_at };
    pg.up.union(&pg.acting).filter_map(|osd| ceph.slots.get(osd)).map(change).max().unwrap_or_default()
}

pub(super) fn all_clean(ceph: &Ceph) -> Gate {
    clean_but_for(|_| false, ceph)
}

pub(super) fn all_clean_or_starving(ceph: &Ceph) -> Gate {
    clean_but_for(|pg| lacks_osds(pg, ceph), ceph)
}

/// States in which a PG rests although it lacks copies.
const STARVING: [&str; 6] = ["active", "undersized", "degraded", "peered", "creating", "unknown"];

/// Whether a PG is not clean only because CRUSH finds fewer OSDs for it than it is to have copies: every OSD that is in is
/// up, all that it has are in it already, nothing is on its way. Waiting does not cure that, one more OSD may. (A new cluster
/// is like that until it has as many hosts as its pools have copies.)
pub fn lacks_osds(pg: &Pg, ceph: &Ceph) -> bool {
    let size = ceph.pools.get(&pg.pool).map_or(0, |pool| u64::from(pool.size));
    let all_up = ceph.slots.values().all(|slot| slot.up || !slot.is_in || slot.state != SlotState::Exists);
    let rests =
        pg.state.iter().all(|word| STARVING.contains(&word.as_str()) || HEALTHY.contains(&word.as_str()));
    (pg.up.len() as u64) < size && holds(Guard::OnlyStarves, pg.up == pg.acting && all_up && rests)
}

fn clean_but_for(excused: impl Fn(&Pg) -> bool, ceph: &Ceph) -> Gate {
    let unclean: Vec<_> = ceph.pgs.iter().filter(|(_, pg)| !is_clean(pg) && !excused(pg)).collect();
    let Some((id, pg)) = unclean.first() else {
        return Gate::Open;
    };
    let is_down = |slot: &Slot| !slot.up && slot.is_in && slot.state == SlotState::Exists;
    Gate::Shut(Reason::NotClean {
        count: unclean.len(),
        pg: (*id).clone(),
        state: state_text(pg),
        down: ceph.slots.iter().filter(|(_, slot)| is_down(slot)).map(|(osd, _)| *osd).collect(),
    })
}

/// With this OSD gone, one loss more must be survivable: two complete copies left, or one chunk more than the data needs.
pub fn leaves_redundancy(pool: &Pool) -> bool {
    let spare = match pool.data_chunks {
        None => pool.size >= 3,
        Some(data_chunks) => pool.size >= data_chunks.saturating_add(2),
    };
    holds(Guard::Redundancy, spare)
}

/// Whether every pool of these PGs can do without one OSD, and without one more.
pub fn redundancy(concerned: &BTreeSet<PgId>, seen: &Observation) -> Gate {
    let pools = concerned
        .iter()
        .filter_map(|pg| seen.ceph.pgs.get(pg))
        .filter_map(|pg| seen.ceph.pools.get(&pg.pool));
    let thin = pools.into_iter().find(|pool| !leaves_redundancy(pool));
    thin.map_or(Gate::Open, |pool| Gate::Shut(Reason::NoRedundancy { pool: pool.name.clone() }))
}

/// OSDs that hold a PG of a pool that can't do without one, each with its reason: one pass for all of them.
pub fn thin(seen: &Observation) -> BTreeMap<OsdId, Reason> {
    let mut found = BTreeMap::new();
    for pg in seen.ceph.pgs.values() {
        let Some(pool) = seen.ceph.pools.get(&pg.pool).filter(|pool| !leaves_redundancy(pool)) else {
            continue;
        };
        for osd in pg.up.union(&pg.acting) {
            found.entry(*osd).or_insert_with(|| Reason::NoRedundancy { pool: pool.name.clone() });
        }
    }
    found
}

/// PGs among these that are no more: their pool was deleted, or has fewer PGs now. Asked of the map, which is exact; the
/// statistics may just not know them yet.
pub fn gone(pgs: &BTreeSet<PgId>, seen: &Observation) -> BTreeSet<PgId> {
    let is_there = |pg: &PgId| {
        let (pool, number) = pg.0.split_once('.')?;
        let number = u32::from_str_radix(number, 16).ok()?;
        Some(seen.ceph.pools.get(&pool.parse().ok()?).is_some_and(|pool| number < pool.pg_num))
    };
    // A name that can't be read stays.
    pgs.iter().filter(|pg| is_there(pg) == Some(false)).cloned().collect()
}

/// States through which a PG passes within seconds of a change of its OSDs; they neither allow nor forbid.
/// `wait` and `laggy`: reads wait until a lease of the OSDs of before has run out, or was renewed.
const PASSING: [&str; 7] = ["peering", "activating", "stale", "unknown", "creating", "wait", "laggy"];

/// States of a PG that is to lie on other OSDs than those that act (`remapped`: an OSD was added, the balancer moved it). Those
/// that act have all of its objects: one that is to be filled does not act, and backfill begins when the others have recovered
/// (16.2.15, `PeeringState::calc_replicated_acting`). It may take hours, and takes nothing from any copy.
const MOVING: [&str; 4] = ["remapped", "backfilling", "backfill_wait", "forced_backfill"];

/// Whether an OSD is up and holds all that it is to hold: every PG that is to be on it is clean with it acting, or excused, and
/// has reported since it came up.
///
/// Right after the boot the statistics still show the sets from when it was down: no PG names it then. So the PGs that it held
/// `before` must have reported since as well, whatever sets they have now; but for those that CRUSH gave to others with its new
/// weight (`moves`): its boot is nothing to them, and they are clean where they are now.
pub fn is_filled(
    (osd, slot): (OsdId, &Slot),
    before: &BTreeSet<PgId>,
    moves: bool,
    excused: impl Fn(&Pg) -> bool,
    ceph: &Ceph,
) -> bool {
    let size = |pg: &Pg| ceph.pools.get(&pg.pool).map_or(0, |pool| u64::from(pool.size));
    let concerned = ceph.pgs.iter().filter(|(id, pg)| pg.up.contains(&osd) || before.contains(*id));
    slot.up
        && is_complete(ceph)
        && concerned.into_iter().all(|(_, pg)| {
            let is_here = pg.up.contains(&osd);
            let has_moved = moves && !is_here && pg.up.len() as u64 >= size(pg);
            let settled = if is_here {
                (is_clean(pg) || excused(pg)) && pg.acting.contains(&osd)
            } else {
                !moves || is_clean(pg)
            };
            holds(Guard::ReportedAtTheEnd, has_moved || pg.reported_epoch >= slot.up_from)
                && holds(Guard::CleanAtTheEnd, settled)
        })
}

/// A PG that an OSD held before, that CRUSH gave to others since, and that is not clean there.
pub fn moved_unclean<'a>(osd: OsdId, before: &BTreeSet<PgId>, ceph: &'a Ceph) -> Option<(&'a PgId, &'a Pg)> {
    let mut moved = ceph.pgs.iter().filter(|(id, pg)| before.contains(*id) && !pg.up.contains(&osd));
    moved.find(|(_, pg)| !is_clean(pg))
}

/// The mgr knows as many PGs as the pools have.
fn is_complete(ceph: &Ceph) -> bool {
    let expected: u64 = ceph.pools.values().map(|pool| u64::from(pool.pg_num)).sum();
    ceph.pgs.len() as u64 == expected
}

/// Every PG has all its copies but for that of the stopped OSD, where that one served it. Where they are to lie is another
/// matter: copies may be on their way.
pub(super) fn only_ours_lacks(stopped: OsdId, pgs: &BTreeSet<PgId>, ceph: &Ceph) -> Gate {
    let mut unknown = Gate::Open;
    for (id, pg) in ceph.pgs.iter().filter(|(_, pg)| !is_clean(pg)) {
        let state = state_text(pg);
        if pg.state.iter().any(|word| PASSING.contains(&word.as_str())) {
            unknown = Gate::Unknown(Reason::Peering { pg: id.clone(), state });
            continue;
        }
        let size = ceph.pools.get(&pg.pool).map_or(u32::MAX, |pool| pool.size);
        let others = pg.acting.iter().filter(|osd| **osd != stopped).count() as u64;
        let lacking = u64::from(size).saturating_sub(others);
        let complete =
            lacking <= u64::from(pgs.contains(id)) && pg.degraded <= lacking.saturating_mul(pg.objects);
        let (lacks, moves) = (lacking == 1, pg.state.contains("remapped"));
        let quiet = pg.state.contains("active")
            && pg.state.iter().map(String::as_str).all(|word| {
                HEALTHY.contains(&word)
                    || (lacks && matches!(word, "undersized" | "degraded"))
                    || (moves && MOVING.contains(&word))
            });
        if !(complete && quiet) {
            return Gate::Shut(Reason::OtherCopyLacks { pg: id.clone(), state });
        }
    }
    unknown
}
