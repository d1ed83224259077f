//! Adds tolerations to OSDs whose node got a taint later: the taint would prevent them from starting.
//!
//! An OSD whose own gate is shut is skipped, as in `next_osd.rs`: its node may be cordoned for weeks. If the
//! gate of all restarts stays shut, all of them are: a PG may be inconsistent for weeks, too.

use chrono::{DateTime, Utc};

use super::rest::{Rest, lasts, save_begin, until_skipped, up_to_limit};
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
    let without = |reason: &str| format!("no toleration for a taint of its node was added: {reason}");
    rest.summary.skipped.extend(denied(view).map(|(osd, why)| (osd, without(why))));
    let found = candidates(view);
    let is_any = |up: bool| found.iter().any(|one| one.is_up == up);
    let of_up = if is_any(true) { for_all(view) } else { Gate::Open };
    let is_held = gate::held(view) != Gate::Open;
    let waited = lasts(view.ledger.run.waiting_to_restart.as_ref(), view);
    if waited.is_some() && (of_up == Gate::Open || is_held) {
        return Some(save_waiting(None, view));
    }
    if found.is_empty() {
        return coming_back(view);
    }
    let of_down = gate::begin(view);
    let are_down_blocked = is_any(false) && of_down != Gate::Open;
    let mut skipped = Vec::new();
    for one in found {
        let common = if one.is_up { &of_up } else { &of_down };
        let gate = if *common == Gate::Open { one.gate(view) } else { common.clone() };
        match gate {
            Gate::Open => return Some(one.tolerate()),
            Gate::Shut(reason) | Gate::Unknown(reason) => skipped.push((one.osd, reason)),
        }
    }
    let (osd, reason) = skipped.first().cloned()?;
    let wait = Next::Wait(Wait::Gate { osd, reason });
    let next = if are_down_blocked || is_held {
        Some(wait)
    } else if of_up == Gate::Open {
        until_skipped(wait, view)
    } else {
        up_to_limit(waited, || save_waiting(Some(view.seen.at), view), wait, view)
    };
    if next.is_none() {
        let skipped = skipped.into_iter().map(|(osd, reason)| (osd, without(&reason.to_string())));
        rest.summary.skipped.extend(skipped);
    }
    next
}

/// Saves since when this Job waits for the gate of all restarts.
///
/// Each restart shuts that gate for a while, so the time ends when the gate opens. A pause does not count.
fn save_waiting(since: Option<DateTime<Utc>>, view: View<'_>) -> Next {
    save_begin(since, |run| &mut run.waiting_to_restart, view)
}

/// Returns the gate of a restart that is the same for all OSDs.
fn for_all(view: View<'_>) -> Gate {
    gate::first_of([gate::begin(view), gate::before_any_restart(&view.ledger.run, view.seen)])
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

/// Returns the OSDs that lack a toleration: first those that are down, last those whose last acts failed.
fn candidates(view: View<'_>) -> Vec<Candidate<'_>> {
    let is_denied = |one: &Candidate<'_>| view.seen.failed.denied_last(one.osd).is_some();
    let mut found: Vec<_> = all(view).filter(|one| !is_denied(one)).collect();
    found.sort_by_key(|one| (view.seen.failed.contains(one.osd), one.is_up));
    found
}

/// Returns the OSDs whose toleration a right or a policy denied, and why: this run does not try again.
fn denied(view: View<'_>) -> impl Iterator<Item = (OsdId, &str)> {
    all(view).filter_map(move |one| Some((one.osd, view.seen.failed.denied_last(one.osd)?)))
}

fn all(view: View<'_>) -> impl Iterator<Item = Candidate<'_>> {
    view.seen.kube.daemons.iter().filter_map(move |(osd, daemon)| candidate(*osd, daemon, view))
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
