//! Adds tolerations to OSDs whose node got a taint later: the taint would prevent them from starting.

use super::rest::Rest;
use crate::domain::act::{Act, DataPrecondition, KubeAct};
use crate::domain::gate::{self, Gate};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{Daemon, SlotState};
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::provision;
use crate::domain::step::MAX_RESTARTS;
use crate::domain::storage::Toleration;
use crate::domain::view::View;

/// Returns the OSD for which `ok-to-stop` must be asked.
pub(super) fn asks(view: View<'_>) -> Option<OsdId> {
    candidate(view).map(|(osd, ..)| osd)
}

/// Adds a toleration to the next OSD that needs one.
///
/// While that waits, the rules below may act: a new OSD may clear what prevents a restart, for example PGs
/// that have too few OSDs.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    match restart(view) {
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
/// once.
fn restart(view: View<'_>) -> Option<Next> {
    let Some((osd, daemon, node, add)) = candidate(view) else { return coming_back(view) };
    let is_up = view.slot(osd).is_some_and(|slot| slot.up);
    let gates = [
        gate::begin(view),
        if is_up { gate::before_restart(osd, node, view.our_fence(), view.seen) } else { Gate::Open },
    ];
    for gate in gates {
        match gate {
            Gate::Open => {}
            Gate::Shut(reason) | Gate::Unknown(reason) => {
                return Some(Next::Wait(Wait::Gate { osd, reason }));
            }
        }
    }
    Some(Next::Do(Act::Kube(KubeAct::Tolerate {
        osd,
        deployment: daemon.uid.clone(),
        generation: daemon.generation,
        add,
        precondition: is_up.then_some(DataPrecondition::AllClean),
    })))
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

type Candidate<'a> = (OsdId, &'a Daemon, &'a NodeName, Vec<Toleration>);

fn candidate(view: View<'_>) -> Option<Candidate<'_>> {
    view.seen.kube.daemons.iter().find_map(|(osd, daemon)| {
        let name = daemon.node.as_ref()?;
        let add = provision::missing_tolerations(&daemon.tolerations, view.node(name)?);
        let is_ours_to_change = daemon.managed_externally.is_none()
            && !view.ledger.records.contains_key(osd)
            && gate::not_ambiguous(*osd, view.seen) == Gate::Open;
        (is_ours_to_change && !add.is_empty()).then_some((*osd, daemon, name, add))
    })
}
