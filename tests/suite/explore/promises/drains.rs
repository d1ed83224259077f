//! The promises about drains: while an OSD is stopped by us no other may be evicted, and afterwards it is as it was.

use osd_migrate::domain::next::Halt;
use osd_migrate::sim::World;

use super::super::state::State;
use super::Broken;

fn limit(world: &World) -> Option<u32> {
    world.kube.osd_budget.as_ref().map(|budget| budget.max_unavailable)
}

/// P1: nothing lets another OSD be evicted at the moment of a stop. (A runner that slept right before it has seen to that earlier.)
pub(super) fn limited(before: &State) -> Option<Broken> {
    let allows = limit(&before.world).is_some_and(|limit| limit > 0) && !before.thaws;
    allows.then(|| "P1: an OSD was stopped, and a drain may take another one meanwhile".to_owned())
}

/// P9: it is known how it was before it is written. P6: nobody's but our own 0 is taken back.
pub(super) fn written(before: &State, max_unavailable: u32) -> Option<Broken> {
    let run = &before.ledger.run;
    if max_unavailable == 0 {
        let is_known = run.budget.is_some() || run.last_budget.is_some();
        return (!is_known)
            .then(|| "P9: drains were limited, and the ledger does not know how it was".to_owned());
    }
    let is_theirs = limit(&before.world) != Some(0);
    is_theirs.then(|| "P6: a budget that somebody else wrote was written over".to_owned())
}

/// P9: what is left behind.
pub(crate) fn at_the_end(state: &State, begun: &World, faults: bool) -> Option<Broken> {
    let (now, before) = (limit(&state.world), limit(begun));
    if now == Some(0) || state.ledger.run.budget.is_some() {
        return Some(format!("P9: drains stay limited: {now:?}, {:?}", state.ledger.run.budget));
    }
    (!faults && now != before).then(|| format!("P9: the budget is {now:?}, it was {before:?}"))
}

/// At a halt: only for an OSD that is past its stop, and in the ledger. One that was lost says nothing of it.
pub(crate) fn at_a_halt(state: &State, halt: &Halt) -> Option<Broken> {
    let is_lost = matches!(halt, Halt::LedgerLost { .. });
    let mut open = state.ledger.in_flight();
    let is_kept = open.any(|record| record.stop_intended_at.is_some()) && state.ledger.run.budget.is_some();
    let is_left = limit(&state.world) == Some(0) || state.ledger.run.budget.is_some();
    (is_left && !is_lost && !is_kept).then(|| "P9: drains stay limited, and no OSD is stopped".to_owned())
}
