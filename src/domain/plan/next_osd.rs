//! The next OSD to migrate.
//!
//! An OSD whose own gate is shut is skipped: one unhealthy OSD does not delay the healthy ones.

use super::approved::changed;
use super::candidates::{candidates, for_all};
use super::end::{end, waiting};
use super::existing_osd::{self, Candidate, Way};
use super::lacks_disk::lacks_its_disk;
use super::quarantined::stay_unclean;
use super::rest::Rest;
use super::{database, directory};
use crate::domain::classify;
use crate::domain::gate::{self, Gate, Own, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::RefusedStep;
use crate::domain::next::{Halt, Next, Saving, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::{Kind, OsdId};
use crate::domain::policy::Empty;
use crate::domain::step::can_be_stopped_later;
use crate::domain::temporary::operator;
use crate::domain::view::View;

/// An OSD that is not started on now, and the reason, which does not delay any other OSD.
struct Skipped {
    osd: OsdId,
    reason: Reason,
}

/// One pass over the candidates.
struct Pass<'a> {
    view: View<'a>,
    own: Own<'a>,
    /// Gate that applies to every OSD.
    all: Gate,
    rest: &'a mut Rest,
    skipped: Vec<Skipped>,
    /// First inventory of a node's disks that an OSD waits for.
    inventory: Option<Next>,
}

/// Returns the step for the next OSD to start on; `None` if none is left to start on, which the summary
/// explains.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    if view.policy.only_new {
        return None;
    }
    let found = candidates(view);
    if !passes(Guard::Confirmed, view.is_confirmed()) {
        rest.summary.unconfirmed = found.iter().map(|(osd, _)| *osd).collect();
        return None;
    }
    let own = Own::of(&gate::accepted(view), view.seen);
    let all = for_all(&own, view);
    let mut pass = Pass { view, own, all, rest, skipped: Vec::new(), inventory: None };
    for (osd, class) in found {
        let Some(candidate) = Candidate::of(osd, class, &pass.own, view) else { continue };
        if let Some(next) = pass.one(candidate) {
            return Some(next);
        }
    }
    pass.end()
}

impl Pass<'_> {
    /// Returns the next step for one candidate; `None` if the next candidate is to be examined.
    fn one(&mut self, candidate: Candidate) -> Option<Next> {
        let osd = candidate.osd;
        if let Some(reason) = self.own.never(osd).filter(|_| !candidate.empties) {
            match self.emptied_externally(osd) {
                Some(reason) => self.skipped.push(Skipped { osd, reason }),
                None => self.rest.summary.refused.push((osd, reason.to_string())),
            }
            return None;
        }
        if let Some(reason) = changed(osd, self.view) {
            self.rest.summary.refused.push((osd, reason.to_string()));
            return None;
        }
        let own = self.own.gate(osd, &candidate.node);
        // Ceph was not asked about an OSD that is refused for want of a disk.
        if self.all == Gate::Open && own == Gate::Open && lacks_its_disk(osd, self.view) {
            return self.begin(candidate);
        }
        // Ceph is asked for its consent only if all other gates are open.
        let own = match &self.all {
            Gate::Open if candidate.empties => gate::first_of([own, gate::emptiable(osd, self.view.seen)]),
            Gate::Open => self.own.gate_asked(osd, &candidate.node),
            Gate::Shut(_) | Gate::Unknown(_) => own,
        };
        let later = can_be_stopped_later(osd, candidate.empties, self.view);
        match (gate::first_of([self.refused(osd), later, own]), self.all.clone()) {
            (Gate::Shut(Reason::CannotBeEmptied { why, .. }), _) => self.cannot_be_emptied(osd, why),
            (Gate::Shut(reason) | Gate::Unknown(reason), _) => {
                self.skipped.push(Skipped { osd, reason });
                // A mutant waits for the first candidate as if there were no other.
                is_out(Guard::SkipsSickCandidate).then(|| self.wait())
            }
            (Gate::Open, Gate::Open) => self.begin(candidate),
            (Gate::Open, Gate::Shut(reason)) if reason.is_permanent() => {
                self.rest.summary.refused.push((osd, reason.to_string()));
                None
            }
            (Gate::Open, Gate::Shut(Reason::NotClean { .. })) if stay_unclean(self.view) => {
                let quarantined = std::mem::take(&mut self.rest.summary.quarantined);
                Some(end(self.view, Next::Halt(Halt::Quarantined { quarantined })))
            }
            (Gate::Open, gate @ (Gate::Shut(_) | Gate::Unknown(_))) => Some(self.wait_for_all(osd, &gate)),
        }
    }

    /// Returns what holds up an OSD that another client marked out: it is migrated when its data has left it.
    fn emptied_externally(&self, osd: OsdId) -> Option<Reason> {
        let is_out = self.view.slot(osd).is_some_and(|slot| !slot.is_in);
        let waits = is_out && self.view.policy.empty != Empty::Never;
        match waits.then(|| gate::emptied(osd, &self.view.seen.ceph))? {
            Gate::Shut(reason) => Some(reason),
            Gate::Open | Gate::Unknown(_) => None,
        }
    }

    /// Returns the gate of an OSD that this run has given up before its stop: the run does not start on the
    /// OSD again.
    fn refused(&self, osd: OsdId) -> Gate {
        let Some(refused) = self.view.ledger.refused(osd, &self.view.policy.run) else { return Gate::Open };
        let why = refused.why().to_owned();
        match refused.step {
            RefusedStep::Admission => Gate::Shut(Reason::AdmissionRefused { osd, why }),
            RefusedStep::Removal => Gate::Shut(Reason::NotRemovable { osd, why }),
            RefusedStep::Emptying => Gate::Shut(Reason::CannotBeEmptied { osd, why }),
            RefusedStep::Fence => {
                let operator = self.view.seen.kube.operator.as_ref();
                let name = operator.map_or(why, |operator| operator.name.clone());
                Gate::Shut(Reason::FenceNotAcknowledged { name })
            }
        }
        .guarded()
    }

    /// Notes that an OSD can't be emptied, so that Ceph is asked about the next one.
    fn cannot_be_emptied(&mut self, osd: OsdId, why: String) -> Option<Next> {
        let run = &self.view.policy.run;
        if self.view.ledger.refused(osd, run).is_some() {
            let reason = Reason::CannotBeEmptied { osd, why };
            self.rest.summary.refused.push((osd, reason.to_string()));
            return None;
        }
        let mut ledger = self.view.ledger.clone();
        ledger.note_refusal(osd, run, RefusedStep::Emptying, &why);
        Some(Next::Save { ledger, osd: Some(osd), why: Saving::NotEmptied { why } })
    }

    /// Starts on the OSD: all gates are open.
    fn begin(&mut self, candidate: Candidate) -> Option<Next> {
        let (osd, view, ledger) = (candidate.osd, self.view, self.view.ledger);
        if let Some(why) = ledger.full_of_quarantined() {
            self.rest.summary.refused.push((osd, why));
            return None;
        }
        if !ledger.has_place() {
            return Some(Next::Wait(Wait::FreshView));
        }
        let begun = if candidate.class.migrates().is_some_and(Kind::in_directory) {
            directory::next(candidate, view).map(Some)
        } else if classify::database_of(osd, view.seen).is_some() {
            database::next(candidate, view).map(Some)
        } else {
            let way = Way::in_place(candidate.target.clone());
            Ok(existing_osd::record(candidate, way, view))
        };
        match begun {
            // The disks of its node are being inventoried. Another OSD may be started on meanwhile.
            Ok(Some(wait @ Next::Wait(_))) => {
                self.inventory.get_or_insert(wait);
                None
            }
            Ok(next) => next,
            Err(reason) => {
                self.rest.summary.refused.push((osd, reason.to_string()));
                None
            }
        }
    }

    /// Waits: no OSD may be started on.
    fn wait_for_all(&self, osd: OsdId, gate: &Gate) -> Next {
        let without = |imagined: &Observation| {
            let view = self.view.imagining(imagined);
            for_all(&Own::of(&gate::accepted(view), imagined), view)
        };
        if let Some(next) = operator::change(gate, |imagined| without(imagined) == Gate::Open, self.view) {
            return next;
        }
        let (Gate::Shut(reason) | Gate::Unknown(reason)) = gate else {
            return Next::Wait(Wait::FreshView);
        };
        waiting(self.view, Next::Wait(Wait::Gate { osd, reason: reason.clone() }))
    }

    /// Ends the pass without a candidate.
    ///
    /// OSDs that their own state delays are waited for next (`delayed`).
    fn end(self) -> Option<Next> {
        if self.inventory.is_some() {
            return self.inventory;
        }
        let delayed = self.skipped.iter().find(|one| gate::passes_by_itself(&one.reason, self.view.seen));
        self.rest.delayed = self.rest.delayed.take().or(delayed.map(|one| (one.osd, one.reason.clone())));
        let skipped = self.skipped.iter().map(|one| (one.osd, one.reason.to_string()));
        self.rest.summary.skipped.extend(skipped);
        None
    }

    fn wait(&self) -> Next {
        let passing = self.skipped.iter().find(|one| gate::passes_by_itself(&one.reason, self.view.seen));
        match passing.or(self.skipped.first()) {
            Some(Skipped { osd, reason }) => Next::Wait(Wait::Gate { osd: *osd, reason: reason.clone() }),
            None => Next::Wait(Wait::FreshView),
        }
    }
}
