//! Removals: OSDs that people requested to be removed, and those that a switch of the run removes, one after
//! the other, before any migration.

use std::collections::BTreeSet;

use super::existing_osd::{self, Candidate, Way};
use super::rest::{Rest, until_skipped};
use super::unrequested;
use crate::domain::classify;
use crate::domain::gate::{self, Gate, Own, Reason};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::{Record, RefusedStep, Strategy};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::{Layout, Mode, ObjectStore, OsdId};
use crate::domain::removal::{Removal, RemovalRequest};
use crate::domain::step::can_be_stopped_later;
use crate::domain::temporary::operator;
use crate::domain::view::View;

/// Reason that a run without `--removals` gives for an OSD whose removal is requested.
const NOT_ENABLED: &str =
    "this run removes no OSDs. Set the value remove.enabled of the chart, or run with --removals";

/// Reason for an OSD without what its record stores.
const NOT_OBSERVED: &str = "its Deployment, its node or its location in CRUSH is not known";

/// Returns the OSDs whose removal is requested, in their order.
///
/// A request for another fsid than that of the slot is void.
pub fn requested(view: View<'_>) -> impl Iterator<Item = (OsdId, &RemovalRequest)> {
    let of_this = move |osd: OsdId, request: &RemovalRequest| {
        let slot = view.slot(osd);
        slot.is_some_and(|slot| passes(Guard::RequestStands, slot.fsid == Some(request.fsid)))
    };
    let all = view.seen.kube.requests.removals.iter().map(|(osd, request)| (*osd, request));
    all.filter(move |(osd, request)| of_this(*osd, request))
}

/// Returns whether an OSD is to be removed, by a request or by a switch of the run: it is not migrated.
pub(super) fn is_to_be_removed(osd: OsdId, view: View<'_>) -> bool {
    view.removal_request(osd).is_some() || unrequested::cause(osd, view).is_some()
}

/// Returns whether the request still stands as recorded, for a Deployment that is still the recorded one, and
/// the run selects the OSD.
pub(super) fn is_wanted(record: &Record, view: View<'_>) -> bool {
    let request = view.seen.kube.requests.of(record.osd, record.old);
    let is_as_recorded =
        |request: &RemovalRequest| record.removal().is_some_and(|removal| removal.is_as_in(request));
    // A dead OSD that is up again is removed as one that serves, with a new record.
    let revived = record.is_of_dead() && view.is_up(record.osd);
    let is_requested = passes(Guard::RequestStands, request.is_some_and(is_as_recorded));
    // As the migration of an OSD that the run leaves out. The request stays, and a later run begins again.
    let stands = (is_requested && view.selects_to_remove(record.osd)) || unrequested::stands(record, view);
    let is_same = view.daemon(record.osd).is_some_and(|daemon| {
        daemon.uid == record.deployment
            && daemon.managed_externally.is_none()
            && daemon.data_dir.as_ref() == record.removed_directory()
    });
    view.policy.finishes_removals() && !gate::is_cancelled(view) && stands && is_same && !revived
}

/// Returns the step for the next OSD to remove; `None` if there is none.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    let due: Vec<_> = due(view).collect();
    if due.is_empty() || view.policy.only_new || view.policy.leaves {
        return None;
    }
    if !view.policy.removes() {
        let refused = |osd| Reason::NotRemovable { osd, why: NOT_ENABLED.to_owned() }.to_string();
        rest.summary.unremoved.extend(due.iter().map(|(osd, _)| *osd));
        rest.summary.refused.extend(due.into_iter().map(|(osd, _)| (osd, refused(osd))));
        return None;
    }
    let own = Own::of(&gate::accepted(view), view.seen);
    let all = for_all(&own, view);
    if let Some(why) = view.ledger.full_of_quarantined() {
        rest.summary.unremoved.extend(due.iter().map(|(osd, _)| *osd));
        rest.summary.refused.extend(due.into_iter().map(|(osd, _)| (osd, why.clone())));
        return None;
    }
    for (osd, request) in due {
        match (of_one(osd, &request, &own, view), all.clone()) {
            (Gate::Shut(reason), _) | (Gate::Open, Gate::Shut(reason)) if reason.is_permanent() => {
                rest.summary.unremoved.insert(osd);
                rest.summary.refused.push((osd, reason.to_string()));
            }
            (Gate::Shut(reason) | Gate::Unknown(reason), _) => {
                rest.summary.skipped.push((osd, reason.to_string()));
                if gate::passes_by_itself(&reason, view.seen) {
                    rest.delayed.get_or_insert((osd, reason));
                }
            }
            (Gate::Open, Gate::Open) => {
                let next = match finds_place(osd, &request, view) {
                    Gate::Unknown(reason) => without_forecast(osd, reason, view, rest),
                    gate @ (Gate::Open | Gate::Shut(_)) => begin(osd, &request, gate, view).or_else(|| {
                        rest.summary.skipped.push((osd, NOT_OBSERVED.to_owned()));
                        None
                    }),
                };
                if next.is_some() {
                    return next;
                }
            }
            (Gate::Open, gate @ (Gate::Shut(_) | Gate::Unknown(_))) => {
                let next = wait_for_all(osd, &gate, view);
                if !matches!(next, Next::Wait(_)) {
                    return Some(next);
                }
                // Some reasons are those of removals alone, and migrations may begin (`norebalance`).
                rest.removal.get_or_insert(next);
                return None;
            }
        }
    }
    None
}

/// Returns the next OSD about whose removal Ceph is asked, with those that leave together with it.
pub(super) fn asked(view: View<'_>) -> BTreeSet<OsdId> {
    asked_of(view, |_| true)
}

/// Returns the next OSD about which Ceph is asked while others of its node are in progress.
pub(super) fn asked_beside(view: View<'_>) -> BTreeSet<OsdId> {
    asked_of(view, |request| is_of_a_node_in_progress(request, view))
}

fn asked_of(view: View<'_>, is_concerned: impl Fn(&RemovalRequest) -> bool) -> BTreeSet<OsdId> {
    let first = first_due(view, |request| !request.keep_id && is_concerned(request));
    first.map(|(osd, _)| gate::removed_together(osd, view)).unwrap_or_default()
}

/// Returns the first OSD whose gates are open, among those with such a request.
fn first_due(
    view: View<'_>,
    is_concerned: impl Fn(&RemovalRequest) -> bool,
) -> Option<(OsdId, RemovalRequest)> {
    let mut due = due(view).filter(|(_, request)| is_concerned(request)).peekable();
    if !view.policy.removes() || due.peek().is_none() {
        return None;
    }
    let own = Own::of(&gate::accepted(view), view.seen);
    if for_all(&own, view) != Gate::Open {
        return None;
    }
    due.find(|(osd, request)| of_one(*osd, request, &own, view) == Gate::Open)
}

/// Returns the record of another OSD of a node that is removed as a whole, while all its OSDs in progress
/// wait.
///
/// So they are emptied at the same time: each PG moves once.
pub(super) fn one_more_of_its_node(view: View<'_>) -> Option<Next> {
    let (osd, request) = first_due(view, |request| is_of_a_node_in_progress(request, view))?;
    let gate = finds_place(osd, &request, view);
    begin(osd, &request, gate, view).filter(|next| !matches!(next, Next::Wait(_)))
}

/// Returns whether the request is for an OSD of a node whose other OSDs are being removed.
fn is_of_a_node_in_progress(request: &RemovalRequest, view: View<'_>) -> bool {
    let is_its = |record: &Record| request.node.as_ref().is_some_and(|node| record.leaves_with(node));
    view.ledger.in_flight().any(is_its)
}

/// Returns the OSDs to remove that have no record, with the gate of each, and the one that comes next.
///
/// `in_progress`: an OSD that comes before them.
pub fn previews(
    own: &Own<'_>,
    in_progress: Option<OsdId>,
    view: View<'_>,
) -> (Vec<(OsdId, Gate)>, Option<OsdId>) {
    let mut first = in_progress;
    let all = for_all(own, view);
    let mut found = Vec::new();
    for (osd, request) in due(view) {
        let gate = match (view.policy.removes(), of_one(osd, &request, own, view), first) {
            (false, _, _) => Gate::Shut(Reason::NotRemovable { osd, why: NOT_ENABLED.to_owned() }),
            (true, Gate::Open, Some(before)) => Gate::Shut(Reason::Queued { osd: before }),
            (true, Gate::Open, None) => {
                let gate = gate::first_of([all.clone(), finds_place(osd, &request, view)]);
                // A run asks about this OSD before the others. One that can't be emptied holds up no other,
                // and neither does one whose removal must wait.
                first = (all == Gate::Open && !is_final(&gate)).then_some(osd);
                gate
            }
            (true, gate, _) => gate,
        };
        found.push((osd, gate));
    }
    (found, first)
}

/// Returns whether waiting does not open the gate, or the run has tried in vain.
fn is_final(gate: &Gate) -> bool {
    matches!(gate, Gate::Shut(reason) if reason.is_permanent())
}

/// Returns the OSDs to remove that have no record and are selected for this run.
fn due(view: View<'_>) -> impl Iterator<Item = (OsdId, RemovalRequest)> {
    let requested = requested(view).map(|(osd, request)| (osd, request.clone()));
    let others = unrequested::all(view).into_iter().map(|(osd, _, request)| (osd, request));
    let others = others.filter(move |(osd, _)| view.removal_request(*osd).is_none());
    let all = requested.chain(others);
    all.filter(move |(osd, _)| view.selects_to_remove(*osd) && !view.ledger.records.contains_key(osd))
}

/// Returns the OSDs that this run has yet to remove.
pub fn removals_due(view: View<'_>) -> impl Iterator<Item = OsdId> {
    due(view).map(|(osd, _)| osd).filter(move |_| view.policy.removes())
}

/// Returns the gate of one OSD.
fn of_one(osd: OsdId, request: &RemovalRequest, own: &Own<'_>, view: View<'_>) -> Gate {
    let refused = view.ledger.refused(osd, &view.policy.run).map_or(Gate::Open, |refused| {
        Gate::Shut(Reason::NotRemovable { osd, why: refused.why().to_owned() })
    });
    gate::first_of([
        gate::can_begin(osd, request.keep_id, view.seen),
        gate::fits_place(osd, request.disk, view.seen),
        refused,
        can_be_stopped_later(osd, !request.keep_id && view.is_up(osd), view),
        own.gate_of_removal(osd),
    ])
}

/// Returns the gate of the removal of any OSD.
fn for_all(own: &Own<'_>, view: View<'_>) -> Gate {
    gate::first_not_open([
        gate::held(view),
        gate::failure_limit(view.policy, view.ledger),
        gate::migrates_none(view),
        gate::commit_latency(view),
        gate::before_any_removal(&view.ledger.run, view.seen),
        own.all().clone(),
    ])
}

/// Returns the gate that is open if the data of the OSD finds a place.
///
/// An id that is kept stays in CRUSH: no data moves.
fn finds_place(osd: OsdId, request: &RemovalRequest, view: View<'_>) -> Gate {
    if request.keep_id { Gate::Open } else { gate::emptiable(osd, view.seen) }
}

/// Records the removal if Ceph has answered that the data finds a place.
fn begin(osd: OsdId, request: &RemovalRequest, finds_place: Gate, view: View<'_>) -> Option<Next> {
    let ledger = view.ledger;
    if !ledger.has_place() {
        return Some(Next::Wait(Wait::FreshView));
    }
    match finds_place {
        Gate::Open => record(osd, request, view),
        Gate::Shut(Reason::CannotBeEmptied { why, .. }) => Some(refuse(osd, why, view)),
        Gate::Shut(reason) | Gate::Unknown(reason) => Some(Next::Wait(Wait::Gate { osd, reason })),
    }
}

/// Lets other work begin while it is not known whether the data of the OSD finds a place.
///
/// When nothing else is left, the run waits up to a limit, and then refuses the OSD: Ceph is asked about one
/// OSD at a time, and the next one must not wait for this one without end.
fn without_forecast(osd: OsdId, reason: Reason, view: View<'_>, rest: &mut Rest) -> Option<Next> {
    let why = reason.to_string();
    let Some(next) = until_skipped(Next::Wait(Wait::Gate { osd, reason }), view) else {
        return Some(refuse(osd, why, view));
    };
    if matches!(next, Next::Wait(_)) {
        rest.removal.get_or_insert(next);
        return None;
    }
    Some(next)
}

/// Saves that this run does not remove the OSD, which its summary reports.
fn refuse(osd: OsdId, why: String, view: View<'_>) -> Next {
    let mut ledger = view.ledger.clone();
    ledger.note_refusal(osd, &view.policy.run, RefusedStep::Removal, &why);
    Next::Save { ledger, osd: Some(osd), why: Saving::NotEmptied { why } }
}

fn record(osd: OsdId, request: &RemovalRequest, view: View<'_>) -> Option<Next> {
    let slot = view.slot(osd)?;
    let raw = || Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted: false };
    let target = classify::target_of(osd, view.seen).unwrap_or_else(raw);
    let class = classify::class_of(osd, slot, view.seen);
    let node = view.node_of(osd)?.clone();
    let candidate = Candidate { osd, class, node, target: target.clone(), empties: true };
    let is_dead = !slot.up;
    let cause = if view.removal_request(osd).is_some() { None } else { unrequested::cause(osd, view) };
    let strategy = Strategy::Removal(Removal {
        cause: cause.unwrap_or_default(),
        dead: is_dead,
        directory: view.daemon(osd).and_then(|daemon| daemon.data_dir.clone()),
        ..Removal::by(request)
    });
    let next = existing_osd::record(candidate, Way { strategy, target, db: None, weight: None }, view)?;
    Some(if is_dead { as_dead(next, osd, view) } else { next })
}

/// Notes in the new record that its OSD is dead: nothing is inspected.
fn as_dead(next: Next, osd: OsdId, view: View<'_>) -> Next {
    let Next::Save { mut ledger, osd: of, why } = next else { return next };
    if let Some(record) = ledger.records.get_mut(&osd) {
        record.note_dead(view.seen.at);
        record.attempt.number = 0;
    }
    Next::Save { ledger, osd: of, why }
}

/// Waits: no OSD may be removed now.
///
/// An operator of Rook that is in the way is scaled to 0 if that is allowed.
fn wait_for_all(osd: OsdId, gate: &Gate, view: View<'_>) -> Next {
    let is_open = |imagined: &Observation| {
        let view = view.imagining(imagined);
        for_all(&Own::of(&gate::accepted(view), imagined), view) == Gate::Open
    };
    if let Some(next) = operator::change(gate, is_open, view) {
        return next;
    }
    match gate {
        Gate::Shut(reason) | Gate::Unknown(reason) => Next::Wait(Wait::Gate { osd, reason: reason.clone() }),
        Gate::Open => Next::Wait(Wait::FreshView),
    }
}
