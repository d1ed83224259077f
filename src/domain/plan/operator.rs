//! Rook's operator that knows no fence: scaled to 0 for as long as OSDs are migrated, where its owner lets us. See
//! `docs/adr/0018-beside-a-running-rook.md`.

use crate::domain::act::Act;
use crate::domain::gate::{Gate, Reason};
use crate::domain::guard::{Guard, holds};
use crate::domain::ledger::{Ledger, ScaledOperator};
use crate::domain::next::{Next, Saving};
use crate::domain::observation::{Observation, Operator};
use crate::domain::policy::Policy;

/// What is next to have it out of the way of an OSD that is to be begun; none where there is nothing for us to do.
///
/// `gate`: the OSD's own; `without_it`: the same, were no operator there. It is not scaled for an OSD that something else keeps out.
pub(super) fn out_of_the_way(
    gate: &Gate,
    without_it: impl FnOnce(&Observation) -> Gate,
    policy: &Policy,
    ledger: &Ledger,
    seen: &Observation,
) -> Option<Next> {
    let is_in_the_way = matches!(gate, Gate::Shut(Reason::OperatorRuns { .. })) && policy.scales_operator;
    // At 0 already, its pod is about to end: there is nothing to scale, and nothing to remember.
    let operator = seen.kube.operator.as_ref().filter(|operator| is_in_the_way && operator.replicas > 0)?;
    let mut imagined = seen.clone();
    imagined.kube.operator = Some(Operator { replicas: 0, pods: 0, ..operator.clone() });
    if without_it(&imagined) != Gate::Open {
        return None;
    }
    match &ledger.run.operator {
        None => Some(begin(operator, ledger)),
        // Scaled up by somebody since it was saved: it is not fought over.
        Some(was) => {
            (is_it(operator, was) && operator.generation == was.generation).then(|| scale(operator, 0))
        }
    }
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
    saved.is_some().then(|| save(None, ledger, Saving::OperatorBack))
}

/// As it is, saved first.
fn begin(operator: &Operator, ledger: &Ledger) -> Next {
    if !holds(Guard::OperatorSavedFirst, false) {
        let Operator { name, uid, replicas, generation, .. } = operator.clone();
        let was = ScaledOperator { name, replicas, uid: Some(uid), generation };
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
    Next::Do(Act::ScaleOperator { name, uid, generation, replicas })
}
