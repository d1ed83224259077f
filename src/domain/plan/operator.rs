//! Rook's operator that knows no fence: scaled to 0 for as long as OSDs are migrated, where its owner lets us. See
//! `docs/development/adr/0018-beside-a-running-rook.md`.

use std::collections::BTreeSet;

use crate::domain::act::{Act, KubeAct};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{Ledger, Record, ScaledOperator};
use crate::domain::next::{Next, Saving};
use crate::domain::observation::{Observation, Operator};
use crate::domain::osd::OsdId;
use crate::domain::phase::is_committed;
use crate::domain::policy::Policy;

/// Minutes for which a run waits before Rook's operator is given back: scaling it for each wait of seconds would restart it all the time.
const WAIT_MINUTES: i64 = 3;

/// What is next to have it out of the way of an OSD that is to be begun; none where there is nothing for us to do.
///
/// `gate`: what holds it up; `without_it`: whether it could go on, were no operator there. It is not scaled for an OSD that something else keeps out.
pub(super) fn out_of_the_way(
    gate: &Gate,
    without_it: impl FnOnce(&Observation) -> bool,
    policy: &Policy,
    ledger: &Ledger,
    seen: &Observation,
) -> Option<Next> {
    let is_in_the_way = matches!(gate, Gate::Shut(Reason::OperatorRuns { .. })) && policy.scales_operator;
    // At 0 already, its pod is about to end: there is nothing to scale, and nothing to remember.
    let operator = seen.kube.operator.as_ref().filter(|operator| is_in_the_way && operator.replicas > 0)?;
    let mut imagined = seen.clone();
    imagined.kube.operator = Some(Operator { replicas: 0, pods: 0, ..operator.clone() });
    if !without_it(&imagined) {
        return None;
    }
    match &ledger.run.operator {
        None => Some(begin(operator, ledger, seen)),
        // Scaled up by somebody since it was saved: it is not fought over.
        Some(was) => {
            (is_it(operator, was) && operator.generation == was.generation).then(|| scale(operator, 0))
        }
    }
}

/// The operator is given back while a run waits and no OSD needs it away: a mon that dies, a stuck prepare Job or a half-done upgrade
/// may need Rook, and a backfill takes hours. It is scaled to 0 again before the next stop.
///
/// Not while Rook would begin with a migration of its own, nor while an OSD that failed past its stop is down: Rook would start it.
pub(super) fn given_back(next: Next, policy: &Policy, ledger: &Ledger, seen: &Observation) -> Next {
    let Some(was) = ledger.run.operator.as_ref().filter(|_| !is_out(Guard::OperatorRestored)) else {
        return next;
    };
    let is_wait = matches!(next, Next::Wait(_));
    let needs_it_away = |record: &Record| match record.quarantine {
        Some(_) => is_committed(record, seen),
        None => record.stop_intended_at.is_some() && !is_up_again(record, seen),
    };
    let last = ledger.in_flight().filter_map(|record| record.saved_at).chain(was.since).max();
    let is_long = last.is_none_or(|last| (seen.at - last).num_minutes() >= WAIT_MINUTES);
    let stays_away = !rook_would_migrate(policy, ledger, seen).is_empty();
    if is_wait && is_long && !stays_away && !ledger.records.values().any(needs_it_away) {
        return back(ledger, seen).unwrap_or(next);
    }
    next
}

/// The new OSD is up.
fn is_up_again(record: &Record, seen: &Observation) -> bool {
    let slot = seen.ceph.slots.get(&record.osd);
    record.new.is_some() && slot.is_some_and(|slot| slot.up && slot.fsid == record.new)
}

/// What is next to have it back as it was; none where we did not scale it. A runner that slept between its look at the ledger and its
/// act may have scaled it after that was forgotten: as it was then, and by nobody since.
pub(super) fn back(ledger: &Ledger, seen: &Observation) -> Option<Next> {
    let (saved, last) = (&ledger.run.operator, &ledger.run.last_operator);
    let was = saved.as_ref().or(last.as_ref())?;
    let ours = |operator: &&Operator| {
        operator.replicas == 0 && is_it(operator, was) && operator.generation == was.generation + 1
    };
    if let Some(operator) = seen.kube.operator.as_ref().filter(ours) {
        return Some(scale(operator, was.replicas));
    }
    saved.is_some().then(|| save(None, ledger, Saving::OperatorRestored))
}

/// As it is, saved first.
fn begin(operator: &Operator, ledger: &Ledger, seen: &Observation) -> Next {
    if !passes(Guard::OperatorSavedFirst, false) {
        let Operator { name, uid, replicas, generation, .. } = operator.clone();
        let was = ScaledOperator { name, replicas, uid: Some(uid), generation, since: Some(seen.at) };
        return save(Some(was), ledger, Saving::OperatorScaled);
    }
    scale(operator, 0)
}

/// Not another one, that was made anew.
fn is_it(found: &Operator, was: &ScaledOperator) -> bool {
    was.uid.as_ref().is_none_or(|uid| *uid == found.uid)
}

fn save(operator: Option<ScaledOperator>, ledger: &Ledger, why: Saving) -> Next {
    let mut ledger = ledger.clone();
    ledger.run.last_operator = std::mem::replace(&mut ledger.run.operator, operator);
    Next::Save { ledger, osd: None, why }
}

fn scale(operator: &Operator, replicas: u32) -> Next {
    let (name, uid, generation) = (operator.name.clone(), operator.uid.clone(), operator.generation);
    Next::Do(Act::Kube(KubeAct::ScaleOperator { name, uid, generation, replicas }))
}

/// OSDs that Rook would migrate itself once it is let go: so it is not. (Where we go, it is: its owner confirmed it.)
pub(super) fn rook_would_migrate(policy: &Policy, ledger: &Ledger, seen: &Observation) -> BTreeSet<OsdId> {
    let is_at_0 = ledger.run.operator.is_some() && seen.kube.running_operator().is_none();
    let is_fenced = ledger.run.fence.is_some() && gate::stays_fenced(seen);
    if (is_at_0 || is_fenced) && !policy.leaves {
        gate::left_to_rooks_migration(seen)
    } else {
        BTreeSet::new()
    }
}
