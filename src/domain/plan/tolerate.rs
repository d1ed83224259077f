//! Adds tolerations to OSDs whose node got a taint later: the taint would prevent them from starting.
//!
//! An OSD whose own gate is shut is skipped, as in `next_osd.rs`: its node may be cordoned for weeks.

use super::rest::{Rest, until_skipped};
use crate::domain::act::{Act, DataPrecondition, KubeAct};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{Daemon, SlotState};
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::provision;
use crate::domain::step::MAX_RESTARTS;
use crate::domain::storage::Toleration;
use crate::domain::view::View;

/// Returns the OSDs for which `ok-to-stop` must be asked: the first ones whose other gates are open.
pub(super) fn asked(view: View<'_>) -> Vec<OsdId> {
    /// OSDs asked in an iteration: while all PGs are clean, the first one nearly always passes.
    const AHEAD: usize = 8;
    let is_asked = |one: &&Candidate<'_>| one.gate(view) == Gate::Unknown(Reason::NotAsked);
    let found = candidates(view);
    let asked: Vec<OsdId> = found.iter().filter(is_asked).map(|one| one.osd).take(AHEAD).collect();
    let may_ask = !asked.is_empty() && for_all(view) == Gate::Open;
    if may_ask { asked } else { Vec::new() }
}

/// Adds a toleration to the next OSD that needs one.
///
/// While that waits, the rules below may act: a new OSD may clear what prevents a restart, for example PGs
/// that have too few OSDs.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    match restart(view, rest) {
        Some(done @ (Next::Save { .. } | Next::Do(_))) => Some(done),
        wait @ (Some(Next::Wait(_) | Next::Finished(_) | Next::Halt(_)) | None) => {
            rest.wait = wait;
            None
        }
    }
}

/// Returns the step for the next OSD that needs a toleration.
///
/// An OSD that is up restarts with it, so all gates of a stop are checked. An OSD that is down gets it at
/// once, before the others: they wait until its PGs are clean.
fn restart(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    let found = candidates(view);
    let Some(first) = found.first() else { return coming_back(view) };
    let common = if first.is_up { for_all(view) } else { gate::begin(view) };
    if let Gate::Shut(reason) | Gate::Unknown(reason) = common {
        return Some(Next::Wait(Wait::Gate { osd: first.osd, reason }));
    }
    let mut skipped = Vec::new();
    for one in found {
        match one.gate(view) {
            Gate::Open => return Some(one.tolerate()),
            Gate::Shut(reason) | Gate::Unknown(reason) => skipped.push((one.osd, reason)),
        }
    }
    let (osd, reason) = skipped.first().cloned()?;
    if let Some(next) = until_skipped(Next::Wait(Wait::Gate { osd, reason }), view) {
        return Some(next);
    }
    let without = |reason: Reason| format!("no toleration for a taint of its node was added: {reason}");
    rest.summary.skipped.extend(skipped.into_iter().map(|(osd, reason)| (osd, without(reason))));
    None
}

/// Returns the gate of a restart that is the same for all OSDs.
fn for_all(view: View<'_>) -> Gate {
    gate::first_of([gate::begin(view), gate::before_any_restart(view.our_fence(), view.seen)])
}

/// Waits until the last restarted OSD is back before the run finishes.
///
/// An OSD whose pod fails again and again, or that osd-migrate does not have to wait for, is not waited for.
fn coming_back(view: View<'_>) -> Option<Next> {
    let is_it = |(osd, daemon): &(&OsdId, &Daemon)| {
        let node = daemon.node.as_ref().and_then(|name| view.node(name));
        let is_tainted = node.is_some_and(|node| !provision::missing_tolerations(&[], node).is_empty());
        let serves = view.slot(**osd).is_some_and(|slot| slot.is_in && slot.state == SlotState::Exists);
        let starts = daemon.replicas > 0 && daemon.pods.iter().all(|pod| pod.restarts < MAX_RESTARTS);
        is_tainted && serves && starts && !daemon.rolled_out && !view.ledger.records.contains_key(osd)
    };
    let (osd, daemon) = view.seen.kube.daemons.iter().find(is_it)?;
    let trouble = daemon.pods.iter().find_map(|pod| pod.trouble.clone());
    Some(Next::Wait(Wait::Up { osd: *osd, trouble }))
}

/// An OSD that lacks a toleration.
struct Candidate<'a> {
    osd: OsdId,
    is_up: bool,
    daemon: &'a Daemon,
    node: &'a NodeName,
    add: Vec<Toleration>,
}

impl Candidate<'_> {
    /// Returns the gate that concerns this OSD only.
    fn gate(&self, view: View<'_>) -> Gate {
        if self.is_up { gate::before_this_stop(self.osd, self.node, view.seen) } else { Gate::Open }
    }

    fn tolerate(self) -> Next {
        Next::Do(Act::Kube(KubeAct::Tolerate {
            osd: self.osd,
            deployment: self.daemon.uid.clone(),
            generation: self.daemon.generation,
            add: self.add,
            precondition: self.is_up.then_some(DataPrecondition::AllClean),
        }))
    }
}

/// Returns the OSDs that lack a toleration: first those that are down.
fn candidates(view: View<'_>) -> Vec<Candidate<'_>> {
    let all = view.seen.kube.daemons.iter();
    let mut found: Vec<_> = all.filter_map(|(osd, daemon)| candidate(*osd, daemon, view)).collect();
    found.sort_by_key(|one| one.is_up);
    found
}

fn candidate<'a>(osd: OsdId, daemon: &'a Daemon, view: View<'a>) -> Option<Candidate<'a>> {
    let node = daemon.node.as_ref()?;
    let add = provision::missing_tolerations(&daemon.tolerations, view.node(node)?);
    let is_ours_to_change = !add.is_empty()
        && daemon.managed_externally.is_none()
        && !view.ledger.records.contains_key(&osd)
        && gate::not_ambiguous(osd, view.seen) == Gate::Open;
    let is_up = view.slot(osd).is_some_and(|slot| slot.up);
    is_ours_to_change.then_some(Candidate { osd, is_up, daemon, node, add })
}
