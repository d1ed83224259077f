//! Scales a Rook operator that does not support the fence to 0 during the migration, if its owner allows it.
//!
//! See `docs/development/adr/0018-alongside-a-running-rook.md`.

use std::collections::BTreeSet;

use crate::domain::act::{Act, KubeAct};
use crate::domain::gate::{self, Gate, Reason, StoppedBy};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{Ledger, Record, ScaledOperator};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::observation::{Observation, Operator};
use crate::domain::osd::OsdId;
use crate::domain::phase::is_committed;
use crate::domain::view::View;

/// Minutes that a run waits before Rook's operator is restored: scaling it for each wait of seconds would
/// restart it all the time.
const WAIT_MINUTES: i64 = 3;

/// Returns the next step to scale the operator down for an OSD that is to be started on; `None` if nothing is
/// to be done.
///
/// `gate` is the gate that blocks the OSD. `without_it` says whether the OSD could continue without the
/// operator. The operator is not scaled if something else blocks the OSD.
pub(crate) fn change(
    gate: &Gate,
    without_it: impl FnOnce(&Observation) -> bool,
    view: View<'_>,
) -> Option<Next> {
    let is_in_the_way =
        matches!(gate, Gate::Shut(Reason::OperatorRuns { .. })) && view.policy.scales_operator;
    // At 0 already, its pod is about to end. Nothing is to be scaled, and nothing is to be recorded.
    let operator =
        view.seen.kube.operator.as_ref().filter(|operator| is_in_the_way && operator.replicas > 0)?;
    let mut imagined = view.seen.clone();
    imagined.kube.operator = Some(Operator { replicas: 0, pods: 0, ..operator.clone() });
    // The ledger does not name it yet.
    imagined.kube.rook_checked = None;
    if !without_it(&imagined) {
        return None;
    }
    match &view.ledger.run.operator {
        None => Some(begin(operator, view)),
        // A run that ended without its own end left the entry, and its operator was scaled up since.
        Some(was) if !is_of_this_run(was, view) => Some(begin(operator, view)),
        // Another client scaled the operator up since it was saved. osd-migrate does not scale it down again.
        Some(was) => (was.is(operator) && operator.generation == was.generation).then(|| scale(operator, 0)),
    }
}

/// Restores the operator while a run waits and no OSD needs the operator scaled down.
///
/// A mon that dies, a stuck prepare Job or an unfinished upgrade may need Rook, and a backfill takes hours.
/// The operator is scaled to 0 again before the next stop.
///
/// It stays at 0 while Rook would start a migration of its own, and while an OSD that failed after its stop
/// is down: Rook would start that OSD.
pub(crate) fn during_a_wait(next: Next, view: View<'_>) -> Next {
    let Some(was) = view.ledger.run.operator.as_ref().filter(|_| !is_out(Guard::OperatorRestored)) else {
        return next;
    };
    let is_wait = matches!(next, Next::Wait(_));
    let needs_it_away = |record: &Record| match record.quarantine {
        Some(_) => is_committed(record, view.seen),
        None => record.stop_intended_at.is_some() && !is_up_again(record, view.seen),
    };
    let last = view.ledger.in_flight().filter_map(|record| record.saved_at).chain(was.since).max();
    let is_needed_away = view.ledger.records.values().any(needs_it_away);
    let is_at_0 = view.seen.kube.operator.as_ref().is_some_and(|operator| operator.replicas == 0);
    // It was to be restored, and was not, or an earlier run scaled it. This run needs it at 0 from now on: if
    // it is scaled up, a person has done that, and this run restores it whatever edits it meanwhile.
    if (was.restoring || !is_of_this_run(was, view)) && is_at_0 && is_needed_away && is_changed(view) {
        let job = Some(view.policy.run.clone());
        return save_entry(
            ScaledOperator { restoring: false, job, ..was.clone() },
            view,
            Saving::OperatorScaled,
        );
    }
    let is_long = last.is_none_or(|last| (view.seen.at - last).num_minutes() >= WAIT_MINUTES);
    let stays_away = !left_to_rook(view).is_empty();
    if is_wait && is_long && !stays_away && !is_needed_away {
        return restore_before(&next, view).unwrap_or(next);
    }
    next
}

/// Returns the next step to restore the operator before the run waits or ends; `None` if nothing is to be
/// done.
///
/// The entry of an operator that another client scaled up stays during a wait: without it, the run would
/// scale the operator down again after the wait.
pub(crate) fn restore_before(next: &Next, view: View<'_>) -> Option<Next> {
    let stays = matches!(next, Next::Wait(_)) && is_overridden(view);
    if stays { None } else { restore(view) }
}

/// Returns whether the new OSD is up.
pub(crate) fn is_up_again(record: &Record, seen: &Observation) -> bool {
    let slot = seen.ceph.slots.get(&record.osd);
    record.new.is_some() && slot.is_some_and(|slot| slot.up && slot.fsid == record.new)
}

/// Returns the next step to restore the operator; `None` if osd-migrate did not scale it.
///
/// That it is being restored is saved first: otherwise its replicas would look like those of another client.
///
/// A runner that was frozen between its read of the ledger and its act may have scaled the operator after the
/// entry was cleared. The last entry recognises that, if no other client wrote the operator since.
pub(crate) fn restore(view: View<'_>) -> Option<Next> {
    let (saved, last) = (&view.ledger.run.operator, &view.ledger.run.last_operator);
    let was = saved.as_ref().or(last.as_ref())?;
    let ours = |operator: &&Operator| is_ours(operator, was, view);
    if let Some(operator) = view.seen.kube.operator.as_ref().filter(ours) {
        let not_saved = saved.as_ref().filter(|was| !passes(Guard::OperatorRestoreSavedFirst, was.restoring));
        return Some(not_saved.map_or_else(
            || scale(operator, was.replicas),
            |was| {
                save_entry(ScaledOperator { restoring: true, ..was.clone() }, view, Saving::OperatorRestoring)
            },
        ));
    }
    saved.is_some().then(|| save(None, view.ledger, Saving::OperatorRestored))
}

/// Saves the operator as found, then scales it to 0.
fn begin(operator: &Operator, view: View<'_>) -> Next {
    if !passes(Guard::OperatorSavedFirst, false) {
        let Operator { name, uid, replicas, generation, .. } = operator.clone();
        let (uid, since, job) = (Some(uid), Some(view.seen.at), Some(view.policy.run.clone()));
        let was = ScaledOperator { name, replicas, uid, generation, since, job, restoring: false };
        return save(Some(was), view.ledger, Saving::OperatorScaled);
    }
    scale(operator, 0)
}

fn save(operator: Option<ScaledOperator>, ledger: &Ledger, why: Saving) -> Next {
    let mut ledger = ledger.clone();
    ledger.run.last_operator = std::mem::replace(&mut ledger.run.operator, operator);
    Next::Save { ledger, osd: None, why }
}

/// Saves what is known of the operator that is at 0.
fn save_entry(was: ScaledOperator, view: View<'_>, why: Saving) -> Next {
    let mut ledger = view.ledger.clone();
    ledger.run.operator = Some(was);
    Next::Save { ledger, osd: None, why }
}

fn scale(operator: &Operator, replicas: u32) -> Next {
    let (name, uid, generation) = (operator.name.clone(), operator.uid.clone(), operator.generation);
    Next::Do(Act::Kube(KubeAct::ScaleOperator { name, uid, generation, replicas }))
}

/// OSDs that a restored Rook would change itself.
#[derive(Default)]
pub(crate) struct LeftToRook {
    /// OSDs that Rook would migrate.
    pub(crate) migrated: BTreeSet<OsdId>,
    /// OSDs on PVCs that Rook would give another shape than their devices have.
    pub(crate) reshaped: BTreeSet<OsdId>,
}

impl LeftToRook {
    pub(crate) fn is_empty(&self) -> bool {
        self.migrated.is_empty() && self.reshaped.is_empty()
    }
}

/// Returns the OSDs that a restored Rook would change itself; while there are any, Rook stays stopped.
///
/// `uninstall` restores Rook nevertheless: its owner confirmed the migration.
pub(crate) fn left_to_rook(view: View<'_>) -> LeftToRook {
    let is_at_0 = view.ledger.run.operator.is_some() && view.seen.kube.running_operator().is_none();
    let run = &view.ledger.run;
    let is_fenced = run.fence.is_some() && gate::stays_fenced(run, view.seen);
    if (is_at_0 || is_fenced) && !view.policy.leaves {
        LeftToRook {
            migrated: gate::left_to_rooks_migration(view.seen),
            reshaped: gate::reshaped_by_rook(view.seen),
        }
    } else {
        LeftToRook::default()
    }
}

/// Returns whether the operator is at 0 because osd-migrate scaled it.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    let run = &view.ledger.run;
    let was = run.operator.as_ref().or(run.last_operator.as_ref());
    let ours = |was| view.seen.kube.operator.as_ref().is_some_and(|found| is_ours(found, was, view));
    was.is_some_and(ours)
}

/// Names the other client in a wait for an operator that was scaled up again during this run.
pub(crate) fn named_as_overridden(next: Next, view: View<'_>) -> Next {
    match next {
        Next::Wait(Wait::Gate { osd, reason: Reason::OperatorRuns { name, stopped_by, ends: false } })
            if stopped_by == StoppedBy::Flag && is_overridden(view) =>
        {
            let stopped_by = StoppedBy::PersonAgain;
            Next::Wait(Wait::Gate { osd, reason: Reason::OperatorRuns { name, stopped_by, ends: false } })
        }
        next @ (Next::Wait(_) | Next::Save { .. } | Next::Do(_) | Next::Finished(_) | Next::Halt(_)) => next,
    }
}

/// Returns whether another client scaled the operator up after this run had scaled it to 0.
///
/// The entry of a run that ended without its own end says nothing about the present run, and that of an
/// operator that is being restored names osd-migrate itself. One write since the entry was saved may be an
/// edit that came before osd-migrate scaled the operator.
fn is_overridden(view: View<'_>) -> bool {
    let is_scaled_up = |was: &ScaledOperator, found: &Operator| {
        found.replicas > 0
            && is_of_this_run(was, view)
            && was.is(found)
            && found.generation > was.generation + 1
            && !was.restoring
    };
    let was = view.ledger.run.operator.as_ref();
    was.zip(view.seen.kube.operator.as_ref()).is_some_and(|(was, found)| is_scaled_up(was, found))
}

/// Returns whether osd-migrate scaled the operator to 0, and no other client has scaled it since.
///
/// Any edit of its Deployment adds to the generation, also one of an annotation. So an operator that this run
/// saved, or restores, is osd-migrate's whatever its generation is, and to an uninstall every saved one. An
/// entry of another run is not enough: a person may have scaled the operator up and down since. Nor is a
/// cleared entry: the run of another CephCluster may have scaled the same operator.
fn is_ours(found: &Operator, was: &ScaledOperator, view: View<'_>) -> bool {
    let is_saved = view.ledger.run.operator.is_some();
    let is_known = is_saved && (was.restoring || view.policy.leaves || is_of_this_run(was, view));
    let is_as_written = found.generation == was.generation + 1;
    found.replicas == 0 && was.is(found) && (is_known || is_as_written)
}

fn is_of_this_run(was: &ScaledOperator, view: View<'_>) -> bool {
    was.job.as_ref() == Some(&view.policy.run)
}
