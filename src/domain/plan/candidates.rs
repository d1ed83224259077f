//! Chooses the OSD to migrate next.
//!
//! An OSD whose own gate is shut is skipped: one unhealthy OSD does not delay the healthy ones.

use super::end::{end, only_quarantined_missing};
use super::existing_osd::{self, Candidate, Way};
use super::{database, directory, operator};
use crate::domain::classify::{self, Class};
use crate::domain::gate::{self, Gate, Own, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{MAX_OPEN, MAX_RECORDS, Skipping};
use crate::domain::next::{Halt, Next, Saving, Summary, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::{Kind, OsdId};
use crate::domain::view::View;

/// Returns the OSDs to migrate, in order: one failure domain (host) after the other.
pub fn candidates(view: View<'_>) -> Vec<(OsdId, Class)> {
    let mut found: Vec<_> = classify::classify(view.seen)
        .into_iter()
        .filter(|(osd, class)| {
            class.migrates().is_some() && view.policy.selects(*osd) && !view.ledger.records.contains_key(osd)
        })
        .collect();
    found.sort_by_cached_key(|(osd, _)| (host_of(*osd, view.seen), *osd));
    found
}

/// Returns the OSD's host in CRUSH.
pub fn host_of(osd: OsdId, seen: &Observation) -> Option<String> {
    seen.ceph.slots.get(&osd)?.crush.as_ref()?.location.get("host").cloned()
}

/// Returns the first candidates whose gates are open as far as the observation shows: Ceph is asked
/// `osd ok-to-stop` for them.
pub(super) fn asked(view: View<'_>) -> impl Iterator<Item = OsdId> + use<> {
    /// Candidates asked in an iteration: the statistics predict the answers, so the first candidate nearly
    /// always passes.
    const AHEAD: usize = 8;
    let own = Own::of(&gate::accepted(view), view.seen);
    let is_open = |osd: &OsdId| {
        let node = view.node_of(*osd);
        let is_admitted = view.ledger.not_admitted(*osd, &view.policy.run).is_none();
        is_admitted
            && own.never(*osd).is_none()
            && node.is_some_and(|node| own.gate_predicted(*osd, node) == Gate::Open)
    };
    let found = candidates(view).into_iter().map(|(osd, _)| osd);
    found.filter(is_open).take(AHEAD).collect::<Vec<_>>().into_iter()
}

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
    summary: Summary,
    skipped: Vec<Skipped>,
    /// First inventory of a node's disks that an OSD waits for.
    inventory: Option<Next>,
}

/// Returns the next OSD to start on, or the wait, or the end with the OSDs that were not migrated.
pub(super) fn next(view: View<'_>, quarantined: Vec<(OsdId, String)>) -> Next {
    let mut summary = Summary { quarantined, ..Summary::default() };
    let found = candidates(view);
    if !passes(Guard::Confirmed, view.is_confirmed()) {
        summary.unconfirmed = found.iter().map(|(osd, _)| *osd).collect();
        return end(view, Next::Finished(summary));
    }
    let own = Own::of(&gate::accepted(view), view.seen);
    let all = for_all(&own, view);
    let mut pass = Pass { view, own, all, summary, skipped: Vec::new(), inventory: None };
    for candidate in found.into_iter().filter_map(|(osd, class)| Candidate::of(osd, class, view)) {
        if let Some(next) = pass.one(candidate) {
            return next;
        }
    }
    pass.rest()
}

/// Returns the gate that applies to every OSD: controls set by people, failures, Rook, and the PGs.
fn for_all(own: &Own<'_>, view: View<'_>) -> Gate {
    let around = gate::around_any_stop(view.our_fence(), view.seen);
    // A permanent reason is reported even if nothing may be started now.
    if let Gate::Shut(reason) = &around
        && reason.is_for_good()
    {
        return around;
    }
    gate::first_of([gate::begin(view), gate::first_not_open([around, own.all().clone()])])
}

impl Pass<'_> {
    /// Returns the next step for one candidate; `None` if the next candidate is to be examined.
    fn one(&mut self, candidate: Candidate) -> Option<Next> {
        let osd = candidate.osd;
        if let Some(reason) = self.own.never(osd) {
            self.summary.refused.push((osd, reason.to_string()));
            return None;
        }
        // Ceph is asked for its consent only if all other gates are open.
        let own = match &self.all {
            Gate::Open => self.own.gate_asked(osd, &candidate.node),
            Gate::Shut(_) | Gate::Unknown(_) => self.own.gate(osd, &candidate.node),
        };
        match (gate::first_of([self.admitted(osd), own]), self.all.clone()) {
            (Gate::Shut(reason) | Gate::Unknown(reason), _) => {
                self.skipped.push(Skipped { osd, reason });
                // A mutant waits for the first candidate as if there were no other.
                is_out(Guard::SkipsSickCandidate).then(|| self.wait())
            }
            (Gate::Open, Gate::Open) => self.begin(candidate),
            (Gate::Open, Gate::Shut(reason)) if reason.is_for_good() => {
                self.summary.refused.push((osd, reason.to_string()));
                None
            }
            (Gate::Open, Gate::Shut(Reason::NotClean { .. })) if only_quarantined_missing(self.view) => {
                let quarantined = std::mem::take(&mut self.summary.quarantined);
                Some(self.end(Next::Halt(Halt::Quarantined { quarantined })))
            }
            (Gate::Open, gate @ (Gate::Shut(_) | Gate::Unknown(_))) => Some(self.wait_for_all(osd, &gate)),
        }
    }

    /// Returns the gate of an OSD whose new Deployment the API server refused: this run does not start on the
    /// OSD again.
    fn admitted(&self, osd: OsdId) -> Gate {
        self.view.ledger.not_admitted(osd, &self.view.policy.run).map_or(Gate::Open, |why| {
            Gate::Shut(Reason::AdmissionRefused { osd, why: why.to_owned() }).guarded()
        })
    }

    /// Starts on the OSD: all gates are open.
    fn begin(&mut self, candidate: Candidate) -> Option<Next> {
        let (osd, view, ledger) = (candidate.osd, self.view, self.view.ledger);
        if ledger.in_flight().count() >= MAX_OPEN || ledger.records.len() >= MAX_RECORDS {
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
                self.summary.refused.push((osd, reason.to_string()));
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
        if let Some(next) =
            operator::out_of_the_way(gate, |imagined| without(imagined) == Gate::Open, self.view)
        {
            return next;
        }
        let (Gate::Shut(reason) | Gate::Unknown(reason)) = gate else {
            return Next::Wait(Wait::FreshView);
        };
        let wait = Next::Wait(Wait::Gate { osd, reason: reason.clone() });
        // A pause or a closed window may last, so everything that the end of a run restores is restored now
        // too.
        let is_held = gate::held(self.view) != Gate::Open;
        if is_held { self.end(wait) } else { wait }
    }

    /// Ends the pass without a candidate.
    ///
    /// OSDs delayed by their own state are waited for, up to a limit. Then the run ends without them.
    fn rest(mut self) -> Next {
        if let Some(job) = self.inventory.take() {
            return job;
        }
        let passes = |skipped: &Skipped| gate::passes_by_itself(&skipped.reason, self.view.seen);
        if self.skipped.iter().any(passes) {
            let known =
                self.view.ledger.run.skipping.as_ref().filter(|known| known.job == self.view.policy.run);
            match known {
                None => return self.note_since(),
                Some(known) if self.view.seen.at - known.since < self.view.policy.limits.skip_after => {
                    return self.wait();
                }
                Some(_) => {}
            }
        }
        let mut summary = std::mem::take(&mut self.summary);
        summary.skipped = self.skipped.iter().map(|one| (one.osd, one.reason.to_string())).collect();
        self.end(Next::Finished(summary))
    }

    /// Saves the time since which only skipped OSDs are left.
    ///
    /// Otherwise a restarted pod would wait for the whole time again.
    fn note_since(&self) -> Next {
        let mut ledger = self.view.ledger.clone();
        ledger.run.skipping = Some(Skipping { job: self.view.policy.run.clone(), since: self.view.seen.at });
        Next::Save { ledger, osd: None, why: Saving::Skipping }
    }

    fn wait(&self) -> Next {
        let passing = self.skipped.iter().find(|one| gate::passes_by_itself(&one.reason, self.view.seen));
        match passing.or(self.skipped.first()) {
            Some(Skipped { osd, reason }) => Next::Wait(Wait::Gate { osd: *osd, reason: reason.clone() }),
            None => Next::Wait(Wait::FreshView),
        }
    }

    fn end(&self, last: Next) -> Next {
        end(self.view, last)
    }
}
