//! The promises about drains: while osd-migrate has stopped an OSD, no other may be evicted; afterwards the
//! limit is restored.

use osd_migrate_core::domain::next::Halt;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::sim::World;

use super::super::state::State;
use super::Broken;

fn limit(world: &World) -> Option<u32> {
    world.kube.osd_pdb.as_ref().map(|pdb| pdb.max_unavailable)
}

fn are_drains_blocked(world: &World) -> bool {
    world.kube.own_pdb.is_some() || limit(world) == Some(0)
}

/// Checks P1: no other OSD can be evicted at the moment of a stop.
///
/// The rule also applies when the old OSD is given up and when the new one is deployed. (A runner that slept
/// right before the act has ensured that earlier.)
pub(super) fn limited(before: &State, osd: OsdId) -> Option<Broken> {
    let is_stopped = before.ledger.records.get(&osd).is_some_and(|record| record.stop_intended_at.is_some());
    let allows = is_stopped && !are_drains_blocked(&before.world) && !before.thaws;
    allows.then(|| format!("P1: {osd} is stopped, but a drain may evict another OSD meanwhile"))
}

/// Checks P1 for an OSD that is stopped already: it continues even if the cluster refuses to block drains.
pub(super) fn still_limited(before: &State, osd: OsdId) -> Option<Broken> {
    if before.world.rejects_pdbs { None } else { limited(before, osd) }
}

/// Checks a write of the limit.
///
/// P9: the former limit is saved before the limit is written. P6: only osd-migrate's own 0 is restored.
pub(super) fn written(before: &State, max_unavailable: u32) -> Option<Broken> {
    let run = &before.ledger.run;
    if max_unavailable == 0 {
        let is_known = run.pdb.is_some() || run.last_pdb.is_some();
        return (!is_known)
            .then(|| "P9: drains were limited, but the former limit is not in the ledger".to_owned());
    }
    let is_theirs = limit(&before.world) != Some(0);
    is_theirs.then(|| "P6: the limit that another client set was overwritten".to_owned())
}

/// Checks P9 at the end: no limit is left behind.
pub(crate) fn at_the_end(state: &State, begun: &World, faults: bool) -> Option<Broken> {
    let (now, before) = (limit(&state.world), limit(begun));
    if now == Some(0) || state.ledger.run.pdb.is_some() || state.world.kube.own_pdb.is_some() {
        let (saved, own) = (&state.ledger.run.pdb, &state.world.kube.own_pdb);
        return Some(format!("P9: drains stay limited: {now:?}, {saved:?}, own {own:?}"));
    }
    (!faults && now != before).then(|| format!("P9: the limit is {now:?}, it was {before:?}"))
}

/// Checks a halt: drains stay limited only for an OSD that is stopped and recorded in the ledger.
///
/// A lost ledger has no record to check.
pub(crate) fn at_a_halt(state: &State, halt: &Halt) -> Option<Broken> {
    let is_lost = matches!(halt, Halt::LedgerLost { .. });
    let mut open = state.ledger.in_flight();
    let own = state.world.kube.own_pdb.is_some();
    let is_ours = own || state.ledger.run.pdb.is_some();
    let is_kept = open.any(|record| record.stop_intended_at.is_some()) && is_ours;
    let is_left = is_ours || limit(&state.world) == Some(0);
    (is_left && !is_lost && !is_kept).then(|| "P9: drains stay limited, but no OSD is stopped".to_owned())
}
