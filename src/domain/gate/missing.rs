//! Replicas that are missing after a stop: only those on the OSDs that osd-migrate stopped may be.

use std::collections::BTreeSet;

use super::answer::first_of;
use super::clean::{FAULTY, HEALTHY, MOVING, has_all_replicas, is_clean, state_text};
use super::pg::{is_short, leaves_redundancy, old_statistics};
use super::{Gate, Reason};
use crate::domain::guard::{Guard, is_out};
use crate::domain::observation::{Ceph, Pg, Slot, SlotState};
use crate::domain::osd::{OsdId, PgId};
use crate::domain::policy::Missing;

/// States through which a PG passes within seconds of a change of its OSDs.
///
/// They neither allow nor forbid. `wait` and `laggy`: reads wait until a lease of the former OSDs has expired
/// or was renewed.
const PASSING: [&str; 7] = ["peering", "activating", "stale", "unknown", "creating", "wait", "laggy"];

/// States that end without help: merges, repairs, log recovery.
///
/// They end within seconds, or with a recovery of recent writes. A PG in these states that has its replicas
/// is not missing any, but it does not allow a wipe either, except for a repair elsewhere.
const ENDING: [&str; 7] =
    ["premerge", "peered", "repair", "recovering", "recovery_wait", "forced_recovery", "degraded"];

/// State of an unclean PG with respect to stopped OSDs.
enum Verdict {
    /// All replicas are available, except the one on a stopped OSD.
    Complete,
    /// The PG is on its way to another state.
    Passing,
    /// Another replica of the PG is missing, or may be.
    Missing,
}

/// Returns the gate that is open if no replica of any PG is missing; that of the stopped OSD does not count.
pub(super) fn none_missing(stopped: OsdId, ceph: &Ceph) -> Gate {
    only_these_missing((stopped, &BTreeSet::new()), &Missing::new(), ceph)
}

/// Returns the gate that is open if only replicas on stopped OSDs are missing, at most one of each PG.
///
/// Every PG has all its replicas, except the PGs that a stopped OSD served, which may be without that
/// replica. Placement does not matter: replicas may be moving.
///
/// So may the PGs that CRUSH places on a stopped OSD since its stop.
///
/// `beside`: PGs of the other OSDs of its batch that are stopped, or get their data back.
pub(super) fn only_ours_missing(
    (stopped, pgs): (OsdId, &BTreeSet<PgId>),
    beside: &Missing,
    ceph: &Ceph,
) -> Gate {
    let is_stopped = |osd: OsdId| osd == stopped || beside.contains_key(&osd);
    missing((stopped, pgs), beside, places_only_on_stopped(is_stopped, ceph), ceph)
}

/// Returns the same gate for an OSD that was emptied: no other PG is excused.
pub(super) fn only_these_missing(
    (stopped, pgs): (OsdId, &BTreeSet<PgId>),
    beside: &Missing,
    ceph: &Ceph,
) -> Gate {
    missing((stopped, pgs), beside, false, ceph)
}

fn missing(
    (stopped, pgs): (OsdId, &BTreeSet<PgId>),
    beside: &Missing,
    places_on_stopped: bool,
    ceph: &Ceph,
) -> Gate {
    let mut unknown = Gate::Open;
    let is_stopped = |osd: OsdId| osd == stopped || beside.contains_key(&osd);
    // PGs of the OSD come first: whether its data is kept matters only for them.
    let own = pgs.iter().filter_map(|id| ceph.pgs.get_key_value(id));
    let others = ceph.pgs.iter().filter(|(id, pg)| !is_clean(pg) && !pgs.contains(*id));
    for (id, pg) in own.chain(others).filter(|(_, pg)| !is_clean(pg)) {
        if !pgs.contains(id) && is_complete_with_others(stopped, pg, ceph) {
            continue;
        }
        let is_theirs = || beside.values().any(|pgs| pgs.contains(id));
        let may_lack = pgs.contains(id) || is_theirs();
        let mut verdict = without(is_stopped, may_lack, pg, ceph);
        let is_placed = || places_on_stopped && is_short(pg, ceph) && survives_one_more(pg, ceph);
        if matches!(verdict, Verdict::Missing) && !may_lack && is_placed() {
            verdict = without(is_stopped, true, pg, ceph);
            let old = old_statistics((id, pg), ceph).map_or(Gate::Open, Gate::Unknown);
            unknown = first_of([unknown, old]);
        }
        match verdict {
            Verdict::Complete => {}
            Verdict::Passing if unknown != Gate::Open => {}
            Verdict::Passing => {
                unknown = Gate::Unknown(Reason::Peering { pg: *id, state: state_text(pg) });
            }
            Verdict::Missing => {
                return Gate::Shut(Reason::OtherReplicaMissing { pg: *id, state: state_text(pg) });
            }
        }
    }
    unknown
}

/// Returns whether a PG can lack an OSD only because a stopped one is missing.
///
/// Every other OSD that gets data is up. If `pgp_num` of a pool changes or an upmap is removed, CRUSH places
/// PGs on the stopped OSD that it never served: they have their data on other OSDs, and wait for the rebuilt
/// one (observed: the first step of a merge, 2 s after a stop, 16.2.15). So do PGs of a split, or of a new
/// pool. An OSD that is out, or has no weight, gets no PG. But if the mons marked it out after its slot was
/// destroyed, a PG may find no other OSD.
fn places_only_on_stopped(is_stopped: impl Fn(OsdId) -> bool, ceph: &Ceph) -> bool {
    let is_missed = |slot: &Slot| match slot.state {
        SlotState::Destroyed => slot.has_weight(),
        SlotState::Exists | SlotState::New => slot.gets_data(),
    };
    let mut of_stopped = ceph.slots.iter().filter(|(osd, slot)| is_stopped(**osd) && !slot.up);
    let is_other_down = |(osd, slot): (&OsdId, &Slot)| !is_stopped(*osd) && !slot.up && slot.gets_data();
    of_stopped.any(|(_, slot)| is_missed(slot))
        && !ceph.slots.iter().any(is_other_down)
        && !is_out(Guard::PlacedSinceExcused)
}

/// Returns whether the pool of a PG was one whose OSDs may be stopped with their data.
fn survives_one_more(pg: &Pg, ceph: &Ceph) -> bool {
    ceph.pools.get(&pg.pool).is_some_and(leaves_redundancy)
}

/// Returns whether a PG that the stopped OSD did not serve has all its replicas, those on its batch included.
///
/// An OSD of the batch has filled the PG: an error that a scrub finds in it is no reason to revert a stop.
fn is_complete_with_others(stopped: OsdId, pg: &Pg, ceph: &Ceph) -> bool {
    has_all_replicas(pg, ceph) && matches!(without(|osd| osd == stopped, false, pg, ceph), Verdict::Complete)
}

/// Returns whether a PG lacks only its replica on a stopped OSD of a batch.
pub(super) fn lacks_only_theirs(missing: &Missing, (id, pg): (&PgId, &Pg), ceph: &Ceph) -> bool {
    let is_theirs = missing.values().any(|pgs| pgs.contains(id));
    is_theirs && matches!(without(|osd| missing.contains_key(&osd), true, pg, ceph), Verdict::Complete)
}

/// Returns the state of an unclean PG without the stopped OSDs, one of which may have a replica of it.
fn without(is_stopped: impl Fn(OsdId) -> bool, may_lack: bool, pg: &Pg, ceph: &Ceph) -> Verdict {
    let has = |words: &[&str]| pg.state.iter().any(|word| words.contains(&word.as_str()));
    if has(&PASSING) {
        return Verdict::Passing;
    }
    let size = ceph.pools.get(&pg.pool).map_or(u32::MAX, |pool| pool.size);
    let others = pg.acting.iter().filter(|osd| !is_stopped(**osd)).count() as u64;
    let lacking = u64::from(size).saturating_sub(others);
    let (one_missing, moves) = (lacking == 1, pg.state.contains("remapped"));
    let is_known = |word: &str, ending: bool| {
        HEALTHY.contains(&word)
            || (one_missing && matches!(word, "undersized" | "degraded"))
            || (moves && MOVING.contains(&word))
            // A repair reads a PG for up to hours, and it was accepted before the stop.
            || (!may_lack && (word == "repair" || FAULTY.contains(&word)))
            || (ending && ENDING.contains(&word))
    };
    let knows = |ending| pg.state.iter().all(|word| is_known(word, ending));
    if lacking > u64::from(may_lack) {
        return Verdict::Missing;
    }
    let is_complete = pg.degraded <= lacking.saturating_mul(pg.objects);
    if is_complete && pg.state.contains("active") && knows(false) {
        return Verdict::Complete;
    }
    let is_ending = has(&["premerge", "repair", "recovering", "recovery_wait", "forced_recovery"]);
    if is_ending && knows(true) && !is_out(Guard::PassingStatesWait) {
        Verdict::Passing
    } else {
        Verdict::Missing
    }
}
