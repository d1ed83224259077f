//! Ends a run: the fence is removed and Rook's operator restored, or the rest is left for a person.

use std::collections::BTreeSet;

use super::approved::unmatched;
use super::candidates::refused;
use super::rest::Rest;
use super::{new_on_pvc, nodes};
use crate::domain::gate::{self, Gate};
use crate::domain::next::{Halt, Next, Summary};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::phase::is_committed;
use crate::domain::temporary::{self, fence, operator, owner_fence};
use crate::domain::view::View;

/// Ends a run that was cancelled: no OSD is started on.
pub(super) fn cancelled(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    rest.summary.cancelled = gate::is_cancelled(view);
    rest.summary.down = down(view);
    rest.summary.cancelled.then(|| end(view, Next::Finished(rest.take_summary())))
}

/// Halts a run in which too many OSDs failed after their stop.
pub(super) fn failure_limit(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    if gate::failure_limit(view.policy, view.ledger) == Gate::Open {
        return None;
    }
    let quarantined = rest.take_summary().quarantined;
    Some(end(view, Next::Halt(Halt::FailureLimit { quarantined })))
}

/// Restores Rook after the last OSD: its fence is removed, and its operator is scaled up.
///
/// A fence may be left from a run that died, so this is asked in each run.
pub(super) fn restore_rook(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    match end(view, Next::Finished(rest.take_summary())) {
        Next::Finished(summary) => {
            rest.summary = summary;
            None
        }
        next @ (Next::Save { .. } | Next::Do(_) | Next::Wait(_) | Next::Halt(_)) => Some(next),
    }
}

/// Finishes the run, or waits for what an earlier rule waits for.
pub(super) fn finish_run(view: View<'_>, rest: &mut Rest) -> Next {
    if let Some(wait) = rest.wait.take() {
        return wait;
    }
    let (problems, unseen_nodes) = (nodes::problems(view), nodes::unseen(view));
    let mut summary = rest.take_summary();
    summary.places.extend(new_on_pvc::problems(view));
    summary.down = down(view);
    Next::Finished(Summary { problems, unseen_nodes, ..summary })
}

/// Returns the number of OSDs that are down because of their migration.
fn down(view: View<'_>) -> usize {
    view.ledger.records.values().filter(|record| record.down_since.is_some()).count()
}

/// Ends the run.
///
/// At most the fence and the scaled-down Rook operator are left.
///
/// Both stay while a quarantined OSD is committed: Rook would start that OSD.
pub(super) fn end(view: View<'_>, last: Next) -> Next {
    let half_way: BTreeSet<OsdId> = view
        .ledger
        .records
        .values()
        .filter(|record| is_committed(record, view.seen))
        .map(|record| record.osd)
        .collect();
    if half_way.is_empty() {
        return finish(view, last);
    }
    let is_rook_away = view.ledger.run.fence.is_some() || view.ledger.run.operator.is_some();
    match last {
        Next::Finished(summary) if is_rook_away => Next::Finished(Summary { half_way, ..summary }),
        Next::Finished(_) | Next::Save { .. } | Next::Do(_) | Next::Wait(_) | Next::Halt(_) => last,
    }
}

/// Waits before anything begins.
///
/// A pause or a closed window may last, so everything that the end of a run restores is restored now too.
pub(super) fn waiting(view: View<'_>, wait: Next) -> Next {
    if gate::held(view) == Gate::Open { wait } else { end(view, wait) }
}

/// Ends the run if no OSD is committed.
fn finish(view: View<'_>, last: Next) -> Next {
    if let Some(stays) = fence::acknowledged_to_stay(view) {
        return stays;
    }
    let left = operator::left_to_rook(view);
    match (last, &view.ledger.run.fence) {
        (Next::Finished(summary), _) if !left.is_empty() => {
            let (withheld_from_rook, reshaped_by_rook) = (left.migrated, left.reshaped);
            Next::Finished(Summary { withheld_from_rook, reshaped_by_rook, ..summary })
        }
        (last, _) if !left.is_empty() => last,
        (last, Some(_)) if owner_fence::stands(view) && !view.policy.leaves => {
            operator::restore_before(&last, view).unwrap_or(last)
        }
        (_, Some(value)) => fence::take_down(value, view),
        (last, None) => {
            operator::restore_before(&last, view).unwrap_or_else(|| with_operator_at_0(last, view.seen))
        }
    }
}

/// Adds the OSDs that their class refuses to the summary at the end of a run.
///
/// A person can't migrate them either, and a run that could do nothing is not complete.
pub(super) fn with_refused(next: Next, view: View<'_>) -> Next {
    let Next::Finished(mut summary) = next else { return next };
    if !(view.policy.only_new || view.policy.leaves || view.policy.fence.is_some()) {
        let refused = refused(view).into_iter().map(|(osd, why)| (osd, why.to_string()));
        let known: BTreeSet<OsdId> =
            summary.refused.iter().chain(&summary.quarantined).map(|(osd, _)| *osd).collect();
        summary.refused.extend(refused.filter(|(osd, _)| !known.contains(osd)));
        summary.unmatched = unmatched(view);
    }
    Next::Finished(summary)
}

/// Adds what stays: CronJobs of the key rotation of OSDs that this run made unencrypted, and temporary
/// changes.
pub(super) fn with_what_stays(next: Next, view: View<'_>) -> Next {
    let Next::Finished(mut summary) = next else { return next };
    let saved = temporary::ALL.iter().filter(|one| (one.is_saved)(view.ledger));
    summary.changes = saved.map(|one| one.name).collect();
    summary.rotations_left = view.ledger.run.unencrypted_by(&view.policy.run);
    Next::Finished(summary)
}

/// Reports that Rook's operator, which the user scaled to 0, can be scaled up again.
fn with_operator_at_0(last: Next, seen: &Observation) -> Next {
    let Next::Finished(summary) = last else { return last };
    let at_0 = seen.kube.operator.as_ref().filter(|operator| operator.replicas == 0);
    let left_to_rook_at_0 = at_0.map(|_| gate::left_to_rooks_migration(seen)).unwrap_or_default();
    let reshaped_by_rook = at_0.map(|_| gate::reshaped_by_rook(seen)).unwrap_or_default();
    let operator_at_0 = at_0.filter(|_| reshaped_by_rook.is_empty()).map(|operator| operator.name.clone());
    Next::Finished(Summary { reshaped_by_rook, operator_at_0, left_to_rook_at_0, ..summary })
}
