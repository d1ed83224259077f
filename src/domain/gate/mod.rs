//! What must hold before an act, asked on a fresh view. Reasons are data: they are what `status` shows.

mod begin;
mod reason;

pub use begin::{FAILURE_BUDGET, begin, budget, held, is_cancelled};
pub use reason::{HOW_TO_CONFIRM, Reason};

use std::collections::{BTreeMap, BTreeSet};

use super::act::Spare;
use super::guard::{Guard, holds, is_out};
use super::ledger::Record;
use super::observation::{Ceph, Observation, OkToStop, Pg, Pool, Slot, SlotState};
use super::osd::{Epoch, NodeName, OsdId, PgId};

/// Whether an act may be done now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Yes.
    Open,
    /// No.
    Shut(Reason),
    /// The view is not fresh enough to tell: wait, and turn nothing back.
    Unknown(Reason),
}

impl Gate {
    /// In a test build a gate whose guard was taken out is open.
    #[must_use]
    pub fn guarded(self) -> Self {
        match &self {
            Self::Shut(reason) | Self::Unknown(reason) if reason.guard().is_some_and(is_out) => Self::Open,
            Self::Open | Self::Shut(_) | Self::Unknown(_) => self,
        }
    }
}

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

/// Gate before an OSD is recorded and before it is stopped: nothing lacks, Ceph agrees, one loss more is survivable.
pub fn before_stop(osd: OsdId, node: &NodeName, our_fence: Option<&str>, seen: &Observation) -> Gate {
    first_not_open([
        // What no waiting mends goes first: such an OSD is told apart, whatever else is the matter.
        redundancy(&pgs_of(osd, seen), seen),
        before_any_stop(our_fence, seen),
        before_this_stop(osd, node, seen),
    ])
}

/// The part of it that is the same for every OSD.
pub fn before_any_stop(our_fence: Option<&str>, seen: &Observation) -> Gate {
    first_not_open([
        surroundings(our_fence, seen),
        not_odd(seen),
        mon_quorum(seen),
        // All PGs are to be clean, so of all of them it must be known.
        fresh(|_| true, &seen.ceph),
        all_clean(&seen.ceph),
    ])
}

/// The part of it that is this OSD's own, redundancy apart.
pub fn before_this_stop(osd: OsdId, node: &NodeName, seen: &Observation) -> Gate {
    first_not_open([node_ready(node, seen), not_cordoned(node, seen), ok_to_stop(osd, seen)])
}

/// Gate before Destroy and Rebuild of an OSD that we stopped: what lacks is its copy and no other.
pub fn after_stop(record: &Record, our_fence: Option<&str>, seen: &Observation) -> Gate {
    // What is known of the data goes first: it may need a person, who is not called for what passes by itself.
    first_not_open([
        only_ours_lacks(record.osd, &record.pgs, &seen.ceph),
        enough_room(record, seen),
        // PGs that are gone since (a pool was deleted, PGs merged) concern nobody any more.
        fresh(|pg| record.pgs.contains(pg), &seen.ceph),
        surroundings(our_fence, seen),
        node_ready(&record.node, seen),
    ])
}

/// Gate before a free disk is made an OSD, asked before it is recorded and again before its node agent is made: nothing of
/// Rook's is at work, the cluster is clean but for PGs that lack OSDs to lie on, its node is there. Nothing is stopped and
/// nothing given up, so neither redundancy nor fullness is asked: a new OSD is the cure for both.
pub fn before_new(node: &NodeName, our_fence: Option<&str>, seen: &Observation) -> Gate {
    first_not_open([
        before_adopt(node, our_fence, seen),
        flag_in_the_way(&FLAGS_FOR_NEW, seen),
        fresh(|_| true, &seen.ceph),
        all_clean_or_starving(&seen.ceph),
    ])
}

/// Gate before an OSD is started that is finished, down, and started by nothing: the same, but for the data, which it brings.
pub fn before_adopt(node: &NodeName, our_fence: Option<&str>, seen: &Observation) -> Gate {
    first_not_open([
        rook_and_release(our_fence, seen),
        not_odd(seen),
        mon_quorum(seen),
        node_ready(node, seen),
        not_cordoned(node, seen),
    ])
}

/// Gate before an OSD is restarted as it is: nothing is given up, so one loss more need not be survivable. Every other
/// Deployment must have come to rest: right after its change an OSD is still up, and its PGs look clean.
pub fn before_restart(osd: OsdId, node: &NodeName, our_fence: Option<&str>, seen: &Observation) -> Gate {
    let rolling = seen.kube.daemons.iter().find(|(_, daemon)| !daemon.rolled_out);
    first_not_open([
        before_any_stop(our_fence, seen),
        before_this_stop(osd, node, seen),
        rolling.map_or(Gate::Open, |(osd, _)| Gate::Unknown(Reason::Rolling { osd: *osd })),
    ])
}

/// Gate of an act right before it is done: what it needs of the data.
pub fn spare(spare: &Spare, ceph: &Ceph) -> Gate {
    match spare {
        Spare::AllClean => first_not_open([fresh(|_| true, ceph), all_clean(ceph)]),
        Spare::OnlyLacking { osd, pgs } => {
            first_not_open([only_ours_lacks(*osd, pgs, ceph), fresh(|pg| pgs.contains(pg), ceph)])
        }
    }
}

/// The first gate that is not open. A shut one goes before an unknown one: what is known to be wrong decides.
fn first_not_open<const N: usize>(gates: [Gate; N]) -> Gate {
    let mut first = Gate::Open;
    for gate in gates.map(Gate::guarded) {
        match (&first, &gate) {
            (Gate::Shut(_), _) | (_, Gate::Open) | (Gate::Unknown(_), Gate::Unknown(_)) => {}
            (Gate::Open | Gate::Unknown(_), Gate::Shut(_)) | (Gate::Open, Gate::Unknown(_)) => first = gate,
        }
    }
    first
}

fn shut_if(condition: bool, reason: impl FnOnce() -> Reason) -> Gate {
    if condition { Gate::Shut(reason()) } else { Gate::Open }
}

/// Health codes under which no copy is given up, however clean the PGs are.
const FULL: [&str; 7] = [
    "OSD_FULL",
    "OSD_NEARFULL",
    "OSD_BACKFILLFULL",
    "POOL_FULL",
    "POOL_NEAR_FULL",
    "POOL_BACKFILLFULL",
    "PG_BACKFILL_FULL",
];

/// Flags of the whole osdmap under which no OSD can be migrated: a stopped one is not marked down, a new one not up; its
/// data does not come back; nobody can read or write. Others are no hindrance: `noout` and `noin` are what we set on the
/// OSD ourselves, scrubbing is Ceph's own, and `norebalance` holds up no PG that lacks a copy (`PrimaryLogPG`:
/// `start_recovery_ops` asks `is_degraded`), and all that we move belongs to such.
const FLAGS: [&str; 8] = ["nodown", "noup", "norecover", "nobackfill", "pause", "pauserd", "pausewr", "full"];

/// Flags under which no OSD can be added: it would not come up or not in, or its data would not come.
const FLAGS_FOR_NEW: [&str; 8] =
    ["noup", "noin", "norecover", "nobackfill", "norebalance", "pause", "pauserd", "pausewr"];

/// Whether a flag of the whole osdmap stands in the way.
pub fn flags(seen: &Observation) -> Gate {
    flag_in_the_way(&FLAGS, seen)
}

fn flag_in_the_way(flags: &[&str], seen: &Observation) -> Gate {
    let flag = flags.iter().find(|flag| seen.ceph.flags.contains(**flag));
    flag.map_or(Gate::Open, |flag| Gate::Shut(Reason::Flag { flag: (*flag).to_owned() }))
}

/// Everything around the PGs: Rook, space, flags, upgrades.
fn surroundings(our_fence: Option<&str>, seen: &Observation) -> Gate {
    let full = FULL.iter().find(|code| seen.ceph.health.contains(**code));
    first_not_open([
        rook_and_release(our_fence, seen),
        full.map_or(Gate::Open, |code| Gate::Shut(Reason::Full { code: (*code).to_owned() })),
        flags(seen),
    ])
}

/// Rook is out of the way, and no upgrade goes on.
fn rook_and_release(our_fence: Option<&str>, seen: &Observation) -> Gate {
    let kube = &seen.kube;
    let foreign_fence = kube.fence.as_deref().filter(|value| Some(*value) != our_fence);
    first_not_open([
        shut_if(kube.declaration.external, || Reason::External),
        shut_if(kube.declaration.removes_out_osds, || Reason::RemovesOutOsds),
        operator_gate(seen),
        foreign_fence
            .map_or(Gate::Open, |value| Gate::Shut(Reason::FencedByOthers { value: value.to_owned() })),
        kube.rook_prepares
            .first()
            .map_or(Gate::Open, |job| Gate::Shut(Reason::RookPrepares { job: job.clone() })),
        kube.draining_failure_domain
            .as_ref()
            .map_or(Gate::Open, |domain| Gate::Shut(Reason::Draining { domain: domain.clone() })),
        shut_if(seen.ceph.mixed_versions, || Reason::Upgrading),
    ])
}

fn node_ready(node: &NodeName, seen: &Observation) -> Gate {
    match seen.kube.nodes.get(node) {
        Some(found) if found.ready => Gate::Open,
        Some(_) | None => Gate::Unknown(Reason::NodeNotReady { node: node.clone() }),
    }
}

/// Asked before Stop only: the pod that would start the OSD again, old or new, would find no node. After it there is nothing
/// better to do than to go on.
fn not_cordoned(node: &NodeName, seen: &Observation) -> Gate {
    let cordoned = seen.kube.nodes.get(node).is_some_and(|found| found.cordoned);
    shut_if(cordoned, || Reason::NodeCordoned { node: node.clone() })
}

fn not_odd(seen: &Observation) -> Gate {
    let odd = seen.kube.oddities.first();
    odd.map_or(Gate::Open, |what| Gate::Shut(Reason::Odd { what: what.clone() }))
}

/// All mons of the monmap are in quorum. (The mons raise `MON_DOWN` when one is not; that they answer at all shows that a
/// majority is.)
///
/// Asked before Stop only: who has lost one mon may lose the quorum with the next, and then nobody can bring an OSD back
/// that is down for the work. An OSD that is down already is finished all the same: that takes minutes, and a mon that
/// restarts must not make an OSD go down and up.
fn mon_quorum(seen: &Observation) -> Gate {
    shut_if(seen.ceph.health.contains("MON_DOWN"), || Reason::MonDown)
}

/// An operator with no replicas wanted and no pod left does nothing: it is out of the way.
fn operator_gate(seen: &Observation) -> Gate {
    match &seen.kube.operator {
        Some(operator) if operator.replicas > 0 || operator.pods > 0 => {
            Gate::Shut(Reason::OperatorRuns { name: operator.name.clone() })
        }
        Some(_) | None => Gate::Open,
    }
}

/// Statistics that are complete and younger than the last change of the OSDs concerned.
///
/// An unchanged PG does not report again, so the epoch of the map itself says nothing (`ceph-lab.md` 3: the statistics
/// lag the map by up to 7 s).
fn fresh(is_concerned: impl Fn(&PgId) -> bool, ceph: &Ceph) -> Gate {
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

fn all_clean(ceph: &Ceph) -> Gate {
    clean_but_for(|_| false, ceph)
}

fn all_clean_or_starving(ceph: &Ceph) -> Gate {
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

fn ok_to_stop(osd: OsdId, seen: &Observation) -> Gate {
    match seen.ceph.ok_to_stop.get(&BTreeSet::from([osd])) {
        Some(OkToStop { ok: true, .. }) => Gate::Open,
        Some(OkToStop { ok: false, bad_pgs }) => Gate::Shut(Reason::NotOkToStop { bad_pgs: *bad_pgs }),
        None => Gate::Unknown(Reason::NotAsked),
    }
}

/// States through which a PG passes within seconds of a change of its OSDs; they neither allow nor forbid.
/// `wait` and `laggy`: reads wait until a lease of the OSDs of before has run out, or was renewed.
const PASSING: [&str; 8] =
    ["peering", "activating", "stale", "unknown", "creating", "remapped", "wait", "laggy"];

/// Every unclean PG was served by the stopped OSD, and lacks its copy alone.
fn only_ours_lacks(stopped: OsdId, pgs: &BTreeSet<PgId>, ceph: &Ceph) -> Gate {
    let mut unknown = Gate::Open;
    for (id, pg) in ceph.pgs.iter().filter(|(_, pg)| !is_clean(pg)) {
        let state = state_text(pg);
        let passing = pg.state.iter().any(|word| PASSING.contains(&word.as_str()));
        let expected = ceph.pools.get(&pg.pool).map_or(u32::MAX, |pool| pool.size.saturating_sub(1));
        let others = pg.acting.iter().filter(|osd| **osd != stopped).count();
        let complete = others as u64 >= u64::from(expected) && pg.degraded <= pg.objects;
        let quiet = pg.state.iter().all(|word| {
            HEALTHY.contains(&word.as_str()) || matches!(word.as_str(), "undersized" | "degraded")
        });
        if passing {
            unknown = Gate::Unknown(Reason::Peering { pg: id.clone(), state });
        } else if !(pgs.contains(id) && complete && quiet) {
            return Gate::Shut(Reason::OtherCopyLacks { pg: id.clone(), state });
        }
    }
    unknown
}

/// What the old OSD holds, and a tenth more, must fit below the nearfull line of the new one. While it serves, what it holds
/// now counts; then what it held at Stop.
pub fn enough_room(record: &Record, seen: &Observation) -> Gate {
    let old = seen.ceph.slots.get(&record.osd).filter(|slot| slot.fsid == Some(record.old));
    let now = old.filter(|slot| slot.up).and_then(|slot| slot.used_bytes);
    let used = now.or(record.used_bytes).or_else(|| old?.used_bytes);
    let (Some(evidence), Some(used)) = (&record.evidence, used) else {
        return Gate::Unknown(Reason::RoomUnknown).guarded();
    };
    let usable = evidence.usable_bytes / 10_000 * u64::from(seen.ceph.nearfull_ratio);
    let needed = used / 10 * 11;
    shut_if(usable < needed, || Reason::TooSmall { usable, needed }).guarded()
}
