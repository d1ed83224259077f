//! Conditions on the data: fresh statistics, clean PGs, and pools that can lose one replica.

use std::collections::{BTreeMap, BTreeSet};

use super::clean::{
    HEALTHY, allows, has_all_replicas, is_clean, is_whole, lacks_space, only_moves, state_text,
};
use super::missing::lacks_only_theirs;
use super::pg::{is_short, leaves_redundancy, old_statistics};
use super::{Gate, Reason};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::Record;
use crate::domain::observation::{Ceph, Observation, Pg, Slot, SlotState};
use crate::domain::osd::{OsdId, PgId};
use crate::domain::policy::Accepted;

/// Returns the PGs that are to be placed on the OSD, or that the OSD serves.
pub fn pgs_of(osd: OsdId, seen: &Observation) -> BTreeSet<PgId> {
    seen.ceph.pgs.iter().filter(|(_, pg)| pg.is_on(osd)).map(|(id, _)| *id).collect()
}

/// Returns the gate that is open if the mgr knows as many PGs as the pools have.
pub fn all_known(ceph: &Ceph) -> Gate {
    let expected: u64 = ceph.pools.values().map(|pool| u64::from(pool.pg_num)).sum();
    let known = ceph.pgs.len();
    if known as u64 == expected {
        Gate::Open
    } else {
        Gate::Unknown(Reason::StatisticsIncomplete { known, expected })
    }
}

/// Returns the gate that is open if the statistics are complete and fresh.
///
/// Fresh statistics are younger than the last change of the OSDs concerned.
///
/// An unchanged PG does not report again, so the epoch of the map itself says nothing (seen on 16.2.15: the
/// statistics lag the map by up to 7 s).
pub(super) fn fresh(is_concerned: impl Fn(&PgId) -> bool, ceph: &Ceph) -> Gate {
    let known = all_known(ceph);
    if known != Gate::Open {
        return known;
    }
    let mut concerned = ceph.pgs.iter().filter(|(id, _)| is_concerned(id));
    concerned.find_map(|pg| old_statistics(pg, ceph)).map_or(Gate::Open, Gate::Unknown)
}

/// Returns the gate that is open if the statistics are complete and, with `of_all`, fresh for every PG.
pub(super) fn complete_and_fresh(of_all: bool, ceph: &Ceph) -> Gate {
    fresh(|_| of_all, ceph)
}

/// Returns why it is unknown whether a PG allows a stop of one of its OSDs, if it is unknown.
///
/// Either the statistics of the PG are old (asked only if not all PGs have to be fresh), or its pool merges
/// PGs.
pub(super) fn why_unknown(asks_fresh: bool, id: &PgId, pg: &Pg, ceph: &Ceph) -> Option<Gate> {
    if let Some(reason) = asks_fresh.then(|| old_statistics((id, pg), ceph)).flatten() {
        return Some(Gate::Unknown(reason));
    }
    let pool = ceph.pools.get(&pg.pool).filter(|pool| pool.merges)?;
    Some(Gate::Unknown(Reason::Merging { pool: pool.name.clone() }))
}

/// Returns the gate that is shut while a PG forbids a stop of this OSD.
pub(super) fn clean_for(osd: OsdId, accepted: &Accepted, ceph: &Ceph) -> Gate {
    let is_elsewhere = |pg: &Pg| passes(Guard::BatchNoCommonPg, !pg.is_on(osd));
    let is_of_batch =
        |id: &PgId, pg: &Pg| is_elsewhere(pg) && lacks_only_theirs(&accepted.missing, (id, pg), ceph);
    clean_but_for(|id, pg| allows(accepted, osd, pg, ceph) || is_of_batch(id, pg), ceph)
}

/// Returns the gate that is unknown while a pool of these PGs merges PGs.
///
/// A merging PG is not active for a time, and a stop during that time keeps it inactive.
pub(super) fn not_merging(concerned: &BTreeSet<PgId>, seen: &Observation) -> Gate {
    let pools =
        concerned.iter().filter_map(|pg| seen.ceph.pgs.get(pg)).map(|pg| pg.pool).collect::<BTreeSet<_>>();
    let merging = pools.iter().filter_map(|pool| seen.ceph.pools.get(pool)).find(|pool| pool.merges);
    merging.map_or(Gate::Open, |pool| Gate::Unknown(Reason::Merging { pool: pool.name.clone() }))
}

pub(super) fn all_clean(ceph: &Ceph) -> Gate {
    clean_but_for(|_, _| false, ceph)
}

/// Returns the gate that is shut while a PG lacks a replica that it gets without a new OSD.
pub(super) fn none_recovers(ceph: &Ceph) -> Gate {
    clean_but_for(|_, pg| is_whole(pg, ceph) || lacks_space(pg) || is_short_of_osds(pg, ceph), ceph)
}

/// States in which a PG stays although replicas are missing.
const SHORT_OF_OSDS: [&str; 6] = ["active", "undersized", "degraded", "peered", "creating", "unknown"];

/// Returns whether a PG is not clean only because CRUSH finds fewer OSDs for it than its pool's size.
///
/// Every OSD that gets data is up, the PG acts on all the OSDs that it has, and no data is moving. Waiting
/// does not help, one more OSD may. (A new cluster is in this state until it has as many hosts as its pools
/// have replicas.)
pub fn is_short_of_osds(pg: &Pg, ceph: &Ceph) -> bool {
    is_short_without(|_| false, pg, ceph)
}

/// Returns whether a PG is not clean only because CRUSH finds fewer OSDs for it than its pool's size, or
/// places it on an OSD that is away.
pub fn is_short_without(is_away: impl Fn(OsdId) -> bool, pg: &Pg, ceph: &Ceph) -> bool {
    let serves = |slot: &Slot| slot.up || !slot.gets_data() || slot.state != SlotState::Exists;
    let all_up = || ceph.slots.iter().all(|(osd, slot)| serves(slot) || is_away(*osd));
    let rests = pg
        .state
        .iter()
        .all(|word| SHORT_OF_OSDS.contains(&word.as_str()) || HEALTHY.contains(&word.as_str()));
    is_short(pg, ceph) && passes(Guard::OnlyShortOfOsds, pg.up == pg.acting && rests && all_up())
}

fn clean_but_for(excused: impl Fn(&PgId, &Pg) -> bool, ceph: &Ceph) -> Gate {
    let unclean: Vec<_> = ceph.pgs.iter().filter(|(id, pg)| !is_clean(pg) && !excused(id, pg)).collect();
    not_clean(&unclean, ceph)
}

/// Returns the gate that is shut if there are such PGs.
pub(super) fn not_clean(unclean: &[(&PgId, &Pg)], ceph: &Ceph) -> Gate {
    let Some(&(id, pg)) = unclean.first() else {
        return Gate::Open;
    };
    let is_down = |slot: &Slot| !slot.up && slot.is_in && slot.state == SlotState::Exists;
    Gate::Shut(Reason::NotClean {
        count: unclean.len(),
        pg: *id,
        state: state_text(pg),
        down: ceph.slots.iter().filter(|(_, slot)| is_down(slot)).map(|(osd, _)| *osd).collect(),
    })
}

/// Returns the gate that is open if every pool of these PGs can lose one OSD, and one more.
pub(super) fn redundancy(concerned: &BTreeSet<PgId>, seen: &Observation) -> Gate {
    let pools = concerned
        .iter()
        .filter_map(|pg| seen.ceph.pgs.get(pg))
        .filter_map(|pg| seen.ceph.pools.get(&pg.pool));
    let without_redundancy = pools.into_iter().find(|pool| !leaves_redundancy(pool));
    without_redundancy.map_or(Gate::Open, |pool| Gate::Shut(Reason::NoRedundancy { pool: pool.name.clone() }))
}

/// Returns the OSDs with PGs of a pool with insufficient redundancy, each with its reason.
///
/// An OSD has a PG if it serves the PG or is to hold it. Reads all PGs once, for all OSDs.
pub fn without_redundancy(seen: &Observation) -> BTreeMap<OsdId, Reason> {
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

/// Returns the OSDs that can't be stopped now, with the number of PGs that would stop serving.
///
/// Computes from the statistics what `osd ok-to-stop` computes (16.2.15, `DaemonServer`), in one pass for all
/// OSDs.
pub(super) fn unstoppable(ceph: &Ceph) -> BTreeMap<OsdId, u32> {
    let mut found = BTreeMap::new();
    for pg in ceph.pgs.values().filter(|pg| !serves_without_one(pg, ceph)) {
        pg.acting.iter().for_each(|osd| *found.entry(*osd).or_default() += 1);
    }
    found
}

/// Returns the number of PGs that would stop serving without this OSD, as `unstoppable` computes it for all.
pub fn unavailable_without(osd: OsdId, ceph: &Ceph) -> u32 {
    let needs = |pg: &&Pg| pg.acting.contains(&osd) && !serves_without_one(pg, ceph);
    u32::try_from(ceph.pgs.values().filter(needs).count()).unwrap_or(u32::MAX)
}

/// Returns whether a PG goes on serving if any one of its OSDs stops.
fn serves_without_one(pg: &Pg, ceph: &Ceph) -> bool {
    let min_size = ceph.pools.get(&pg.pool).map_or(u64::MAX, |pool| u64::from(pool.min_size));
    pg.state.contains("active") && pg.acting.len() as u64 > min_size
}

/// Returns the PGs among these that no longer exist: their pool was deleted, or has fewer PGs now.
///
/// The answer comes from the map, which is exact. The statistics may just not have these PGs yet.
pub fn gone(pgs: &BTreeSet<PgId>, seen: &Observation) -> BTreeSet<PgId> {
    let is_there = |pg: &PgId| seen.ceph.pools.get(&pg.pool).is_some_and(|pool| pg.number < pool.pg_num);
    pgs.iter().copied().filter(|pg| !is_there(pg)).collect()
}

/// Returns whether an OSD is up and has all data that it is to hold.
///
/// Every PG that is to be on the OSD is clean with the OSD acting, or only moves between other OSDs (a
/// balancer never rests), or is excused. Every such PG has also reported since the OSD came up.
///
/// Right after the boot the statistics still show the sets from the time when the OSD was down, and no PG
/// names it. So the PGs that the OSD held `before` must have reported since as well, if they are short of an
/// OSD. Those that CRUSH moved to other OSDs need no new report: the boot does not concern them. With
/// `moves`, they must be clean where they are now.
pub fn is_filled(
    (osd, slot): (OsdId, &Slot),
    before: &BTreeSet<PgId>,
    moves: bool,
    excused: impl Fn(&Pg) -> bool,
    ceph: &Ceph,
) -> bool {
    let has_all = |pg: &Pg| has_all_replicas(pg, ceph) && only_moves(pg);
    let concerned = ceph.pgs.iter().filter(|(id, pg)| pg.up.contains(&osd) || before.contains(*id));
    slot.up
        && all_known(ceph) == Gate::Open
        && concerned.into_iter().all(|(_, pg)| {
            let is_here = pg.up.contains(&osd);
            let has_moved = !is_here && !is_short(pg, ceph);
            let settled = if is_here {
                ((is_clean(pg) || has_all(pg)) && pg.acting.contains(&osd)) || excused(pg)
            } else {
                !moves || is_clean(pg)
            };
            passes(Guard::ReportedAtTheEnd, has_moved || pg.reported_epoch >= slot.up_from)
                && passes(Guard::CleanAtTheEnd, settled)
        })
}

/// Returns a PG that an OSD held before, that CRUSH moved to other OSDs since, and that is not clean there.
pub fn moved_unclean<'a>(osd: OsdId, before: &BTreeSet<PgId>, ceph: &'a Ceph) -> Option<(&'a PgId, &'a Pg)> {
    let mut held = before.iter().filter_map(|id| ceph.pgs.get_key_value(id));
    held.find(|(_, pg)| !pg.up.contains(&osd) && !is_clean(pg))
}

/// Returns the PGs that may be without their replica on the stopped OSD: those that it served.
///
/// An OSD that was emptied served none: a replica that is missing is another one. If another client marks it
/// in after it was destroyed, the PGs that it held map to it again.
pub fn served(record: &Record, ceph: &Ceph) -> BTreeSet<PgId> {
    if record.empty.is_some() {
        let gets = |slot: &&Slot| slot.is_in && slot.fsid != Some(record.old);
        let slot = ceph.slots.get(&record.osd).filter(gets);
        return slot.map(|_| record.held_pgs().clone()).unwrap_or_default();
    }
    record.pgs.clone()
}
