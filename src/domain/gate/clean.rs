//! PG states that allow a stop: active+clean, and the states that the owner accepts in addition.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::guard::{Guard, passes};
use crate::domain::observation::{Ceph, Pg};
use crate::domain::osd::OsdId;
use crate::domain::policy::{Accepted, RequireClean};
use crate::domain::view::View;

/// PG states that need no waiting: Ceph scrubs and trims without help.
pub(super) const HEALTHY: [&str; 6] = ["active", "clean", "scrubbing", "deep", "snaptrim", "snaptrim_wait"];

/// States of a PG that is to be placed on OSDs other than the acting ones.
///
/// The PG is `remapped` because an OSD was added, or the balancer moved it. The acting OSDs have all objects
/// of the PG: an OSD that has to be backfilled is not acting, and backfill begins when the others have
/// recovered (16.2.15, `PeeringState::calc_replicated_acting`). The move may take hours, and removes nothing
/// from any replica.
pub(super) const MOVING: [&str; 4] = ["remapped", "backfilling", "backfill_wait", "forced_backfill"];

/// States of a PG that is not missing any replica: a scrub found that replicas differ, or trimming failed.
///
/// They stay until a person repairs the PG. On other OSDs, they say nothing about an OSD's own data.
pub(super) const FAULTY: [&str; 3] = ["inconsistent", "failed_repair", "snaptrim_error"];

/// States of a PG that waits for space on an OSD.
const LACKS_SPACE: [&str; 2] = [BACKFILL_TOO_FULL, "recovery_toofull"];

/// State of a PG that an OSD has no space to be backfilled with.
const BACKFILL_TOO_FULL: &str = "backfill_toofull";

/// States of a PG with unknown content, or with objects that are known to be unavailable for now.
const UNSOUND: [&str; 9] = [
    "down",
    "incomplete",
    "recovery_unfound",
    "backfill_unfound",
    "stale",
    "unknown",
    "creating",
    "peering",
    "activating",
];

/// State names of a PG, in the order in which Ceph prints them (`pg_state_string`, 16.2.15 to 20.2).
const ORDER: [&str; 32] = [
    "stale",
    "creating",
    "active",
    "activating",
    "clean",
    "recovery_wait",
    "recovery_toofull",
    "recovering",
    "forced_recovery",
    "down",
    "recovery_unfound",
    "backfill_unfound",
    "undersized",
    "degraded",
    "remapped",
    "premerge",
    "scrubbing",
    "deep",
    "inconsistent",
    "peering",
    "repair",
    "backfill_wait",
    "forced_backfill",
    "backfilling",
    "backfill_toofull",
    "incomplete",
    "peered",
    "snaptrim",
    "snaptrim_wait",
    "snaptrim_error",
    "failed_repair",
    "laggy",
];

/// Returns whether a PG is active+clean, scrubbing and trimming allowed.
pub fn is_clean(pg: &Pg) -> bool {
    is_clean_state(&pg.state)
}

/// Returns whether a state is active+clean, scrubbing and trimming allowed.
pub fn is_clean_state(state: &BTreeSet<String>) -> bool {
    state.contains("active") && state.contains("clean") && unclean_words(state).next().is_none()
}

/// Returns the words of a state that no PG has which is active+clean.
pub fn unclean_words(state: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    state.iter().map(String::as_str).filter(|word| !HEALTHY.contains(word))
}

/// Returns the state as Ceph prints it.
pub fn state_text(pg: &Pg) -> String {
    let known = ORDER.iter().copied().filter(|word| pg.state.contains(*word));
    let others = pg.state.iter().map(String::as_str).filter(|word| !ORDER.contains(word));
    known.chain(others).collect::<Vec<_>>().join("+")
}

/// Returns whether all replicas of a PG exist and are complete, wherever they are placed.
pub(super) fn has_all_replicas(pg: &Pg, ceph: &Ceph) -> bool {
    let size = ceph.pools.get(&pg.pool).map_or(u64::MAX, |pool| u64::from(pool.size));
    let is_sound = pg.state.iter().all(|word| !UNSOUND.contains(&word.as_str()));
    pg.acting.len() as u64 >= size && pg.degraded == 0 && is_sound
}

/// Returns the PG states that occur and that the owner accepts.
pub fn accepted(view: View<'_>) -> Accepted {
    let pattern = view.seen.kube.declaration.pg_healthy_regex.as_deref();
    // An expression that does not compile accepts nothing, as in Rook, which refuses the CephCluster for it.
    let Some(regex) = pattern.and_then(|pattern| regex::Regex::new(pattern).ok()) else {
        let any = view.policy.require_clean == RequireClean::Own;
        return Accepted { any, ..Accepted::default() };
    };
    let mut known: BTreeMap<&BTreeSet<String>, String> = BTreeMap::new();
    for pg in view.seen.ceph.pgs.values().filter(|pg| !is_clean(pg)) {
        known.entry(&pg.state).or_insert_with(|| state_text(pg));
    }
    let states = known.into_values().filter(|state| regex.is_match(state)).collect();
    Accepted { any: view.policy.require_clean == RequireClean::Own, states, ..Accepted::default() }
}

/// Returns whether the owner accepts an unclean PG that is placed elsewhere.
///
/// No replica of it may be missing.
pub(super) fn allows_elsewhere(accepted: &Accepted, pg: &Pg, ceph: &Ceph) -> bool {
    (accepted.any || accepted.states.contains(&state_text(pg))) && has_all_replicas(pg, ceph)
}

/// Returns whether a PG's state allows this OSD to be stopped.
///
/// If the PG shares the OSD, another replica must certainly be good: the PG may be moving, but in no other
/// unclean state.
pub(super) fn allows(accepted: &Accepted, osd: OsdId, pg: &Pg, ceph: &Ceph) -> bool {
    let shares = pg.is_on(osd);
    let moves = accepted.moving && passes(Guard::OnlyMoving, only_moves(pg) && has_all_replicas(pg, ceph));
    moves || is_clean(pg) || (allows_elsewhere(accepted, pg, ceph) && (!shares || only_moves(pg)))
}

/// Returns whether a PG is active and has only healthy or moving states.
pub(super) fn only_moves(pg: &Pg) -> bool {
    is_active_in(pg, &[&HEALTHY, &MOVING])
}

/// Returns whether a PG is active, and each word of its state is in one of these lists.
fn is_active_in(pg: &Pg, lists: &[&[&str]]) -> bool {
    let is_known = |word: &String| lists.iter().any(|list| list.contains(&word.as_str()));
    pg.state.contains("active") && pg.state.iter().all(is_known)
}

/// Returns whether a PG is active with all its replicas, and at most moves, or a scrub found an error in it.
///
/// That may last for months: a balancer never rests, and a person repairs.
pub fn is_whole(pg: &Pg, ceph: &Ceph) -> bool {
    is_active_in(pg, &[&HEALTHY, &MOVING, &FAULTY]) && has_all_replicas(pg, ceph)
}

/// Returns whether a PG serves, and waits until an OSD has space for it.
///
/// Waiting may not help, one more OSD does.
pub fn lacks_space(pg: &Pg) -> bool {
    let has = |words: &[&str]| pg.state.iter().any(|word| words.contains(&word.as_str()));
    pg.state.contains("active") && has(&LACKS_SPACE) && !has(&UNSOUND)
}

/// Returns whether a PG has all its replicas, and only waits until an OSD that it moves to has space for it.
///
/// The acting OSDs have all its objects meanwhile, as those of any PG that moves.
pub fn only_lacks_space_to_move(pg: &Pg, ceph: &Ceph) -> bool {
    let is_too_full = pg.state.contains(BACKFILL_TOO_FULL);
    is_too_full && is_active_in(pg, &[&HEALTHY, &MOVING, &[BACKFILL_TOO_FULL]]) && has_all_replicas(pg, ceph)
}

/// Returns whether a PG has all its replicas where they are to be, and is unclean only by what a scrub or
/// trimming found.
pub fn is_only_faulty(pg: &Pg, ceph: &Ceph) -> bool {
    let is_in_place = pg.state.contains("clean") && pg.up == pg.acting;
    is_in_place && is_active_in(pg, &[&HEALTHY, &FAULTY]) && has_all_replicas(pg, ceph)
}
