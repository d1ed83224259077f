//! OSDs to migrate, in their order.

use super::approved::changed;
use super::order;
use super::removals;
use crate::domain::classify::{self, Class, Refusal};
use crate::domain::gate::{self, Gate, Own};
use crate::domain::osd::OsdId;
use crate::domain::policy::Empty;
use crate::domain::step::can_be_stopped_later;
use crate::domain::view::View;

/// Returns the OSDs to migrate, in order: one failure domain (host) after the other.
pub fn candidates(view: View<'_>) -> Vec<(OsdId, Class)> {
    candidates_among(view, |_| true)
}

/// Returns those of the OSDs to migrate that are meant, in order.
pub(super) fn candidates_among(view: View<'_>, is_meant: impl Fn(OsdId) -> bool) -> Vec<(OsdId, Class)> {
    let mut found = order::legacy(view, is_meant);
    found.retain(|(osd, _)| !removals::is_to_be_removed(*osd, view));
    found
}

/// Returns the OSDs that are never migrated because of their class, with the reason.
///
/// A destroyed slot without a record is not an OSD.
pub fn refused(view: View<'_>) -> Vec<(OsdId, Refusal)> {
    let of_class = |class| match class {
        Class::Refused(why) => Some(why).filter(|why| *why != Refusal::Orphan),
        Class::Conforming | Class::Legacy(_) | Class::Mismatched(_) | Class::Available => None,
    };
    let all = classify::classify(view.seen).into_iter();
    all.filter_map(|(osd, class)| Some((osd, of_class(class)?)))
        .filter(|(osd, _)| view.selects(*osd) && !view.ledger.records.contains_key(osd))
        .collect()
}

/// Returns the first candidates whose gates are open as far as the observation shows: Ceph is asked
/// `osd ok-to-stop` for them.
///
/// `refused`: whether the run refuses an OSD for another cause.
pub(super) fn asked(view: View<'_>, refused: impl Fn(OsdId) -> bool) -> Vec<OsdId> {
    /// Candidates asked in an iteration: the statistics predict the answers, so the first candidate nearly
    /// always passes.
    const AHEAD: usize = 8;
    let own = Own::of(&gate::accepted(view), view.seen);
    let is_open = |osd: &OsdId| {
        own.never(*osd).is_none()
            && !own.is_to_be_emptied(*osd, view.policy.empty)
            && may_begin(*osd, false, view)
            && view.node_of(*osd).is_some_and(|node| own.gate_predicted(*osd, node) == Gate::Open)
            && !refused(*osd)
    };
    candidates(view).into_iter().map(|(osd, _)| osd).filter(is_open).take(AHEAD).collect()
}

/// Returns the first candidate that is to be emptied: Ceph is asked whether it can be.
///
/// The question is expensive, so it is asked only if no other gate is shut.
///
/// `refused`: whether the run refuses an OSD for another cause.
pub(super) fn asked_to_be_emptied(view: View<'_>, refused: impl Fn(OsdId) -> bool) -> Option<OsdId> {
    if view.policy.empty == Empty::Never {
        return None;
    }
    let own = Own::of(&gate::accepted(view), view.seen);
    let first = to_be_emptied(&own, view).find(|osd| !refused(*osd))?;
    (for_all(&own, view) == Gate::Open).then_some(first)
}

/// Returns the first candidate that is to be emptied, as far as its own gates are open.
///
/// `plan` asks Ceph about it before a run may begin: a person confirms the run by what it costs.
pub fn first_to_be_emptied(own: &Own<'_>, view: View<'_>) -> Option<OsdId> {
    to_be_emptied(own, view).next()
}

/// Returns the candidates that are to be emptied, as far as their own gates are open.
fn to_be_emptied(own: &Own<'_>, view: View<'_>) -> impl Iterator<Item = OsdId> {
    let is_open = move |osd: &OsdId| {
        own.is_to_be_emptied(*osd, view.policy.empty)
            && may_begin(*osd, true, view)
            && view.node_of(*osd).is_some_and(|node| own.gate(*osd, node) == Gate::Open)
    };
    candidates(view).into_iter().map(|(osd, _)| osd).filter(is_open)
}

fn may_begin(osd: OsdId, empties: bool, view: View<'_>) -> bool {
    view.ledger.refused(osd, &view.policy.run).is_none()
        && can_be_stopped_later(osd, empties, view) == Gate::Open
        && changed(osd, view).is_none()
}

/// Returns the gate that applies to every OSD: controls set by people, failures, Rook, and the PGs.
pub(super) fn for_all(own: &Own<'_>, view: View<'_>) -> Gate {
    let around = gate::around_any_stop(&view.ledger.run, view.seen);
    // A permanent reason is reported even if nothing may be started now.
    if let Gate::Shut(reason) = &around
        && reason.is_permanent()
    {
        return around;
    }
    gate::first_of([gate::begin(view), gate::first_not_open([around, own.all().clone()])])
}
