//! Gates before a stop that concern one OSD only, computed once for all OSDs. A gate of one OSD never blocks
//! another OSD.

use std::collections::BTreeMap;

use super::answer::{Gate, first_not_open, shut_if};
use super::clean::{allows_elsewhere, is_clean, only_moves, state_text};
use super::data::{unstoppable, without_redundancy};
use super::emptied::emptied;
use super::missing::lacks_only_theirs;
use super::node::{node_answers, node_ready, not_cordoned};
use super::pvc::no_rotation;
use super::stop::answered_ok_to_stop;
use super::surroundings::{flags_of, not_ambiguous};
use super::{Reason, data, rook};
use crate::domain::guard::{Guard, passes};
use crate::domain::observation::{JobState, NodeJob, Observation};
use crate::domain::osd::{NodeName, OsdId, PgId};
use crate::domain::policy::{Accepted, Empty};

/// The gates before a stop that concern one OSD each.
pub struct Own<'a> {
    seen: &'a Observation,
    without_redundancy: BTreeMap<OsdId, Reason>,
    unstoppable: BTreeMap<OsdId, u32>,
    /// Why an OSD may not be stopped because of one of its PGs, by OSD.
    pgs: BTreeMap<OsdId, Gate>,
    /// Why no OSD may be stopped because of the states of the PGs.
    all: Gate,
}

impl<'a> Own<'a> {
    /// Evaluates all PGs once.
    pub fn of(accepted: &Accepted, seen: &'a Observation) -> Self {
        let mut pgs = BTreeMap::new();
        let mut all = data::complete_and_fresh(!accepted.any, &seen.ceph);
        let mut unclean = Vec::new();
        for (id, pg) in &seen.ceph.pgs {
            let reason = if is_clean(pg) {
                data::why_unknown(accepted.any, id, pg, &seen.ceph)
            } else if lacks_only_theirs(&accepted.missing, (id, pg), &seen.ceph) {
                Some(Gate::Shut(one_unclean(id, state_text(pg))))
            } else if !allows_elsewhere(accepted, pg, &seen.ceph) {
                unclean.push((id, pg));
                None
            } else if only_moves(pg) {
                data::why_unknown(accepted.any, id, pg, &seen.ceph)
            } else {
                Some(Gate::Shut(one_unclean(id, state_text(pg))))
            };
            let Some(gate) = reason else { continue };
            for osd in pg.up.union(&pg.acting) {
                pgs.entry(*osd).or_insert_with(|| gate.clone());
            }
        }
        if !unclean.is_empty() {
            all = first_not_open([data::not_clean(&unclean, &seen.ceph), all]);
        }
        Self {
            seen,
            without_redundancy: without_redundancy(seen),
            unstoppable: unstoppable(&seen.ceph),
            pgs,
            all,
        }
    }

    /// Returns why this OSD is never stopped with its data, if that is the case.
    pub fn never(&self, osd: OsdId) -> Option<&Reason> {
        self.without_redundancy.get(&osd)
    }

    /// Returns whether an OSD is to be emptied before its stop.
    pub fn is_to_be_emptied(&self, osd: OsdId, policy: Empty) -> bool {
        let is_in = self.seen.ceph.slots.get(&osd).is_some_and(|slot| slot.is_in);
        is_in
            && match policy {
                Empty::Never => false,
                Empty::Thin => self.never(osd).is_some(),
                Empty::All => true,
            }
    }

    /// Returns why no OSD may be stopped because of the states of the PGs.
    pub fn all(&self) -> &Gate {
        &self.all
    }

    /// Returns the gate that concerns this OSD and no other.
    pub fn gate(&self, osd: OsdId, node: &NodeName) -> Gate {
        // An OSD whose node is not Ready is down for that reason.
        let is_away = node_ready(node, self.seen).guarded();
        if is_away != Gate::Open {
            return is_away;
        }
        first_not_open([
            self.is_up(osd),
            not_ambiguous(osd, self.seen),
            flags_of(osd, self.seen),
            not_cordoned(node, self.seen),
            rook::prepares_none_on(Some(node), self.seen),
            no_rotation(osd, self.seen),
            self.no_agent(osd),
            self.pgs.get(&osd).cloned().unwrap_or(Gate::Open),
        ])
    }

    /// Returns the gate of this OSD's removal, before it is emptied.
    ///
    /// The node may be cordoned. An OSD that is down must be out, and the data must be on other OSDs.
    pub fn gate_of_removal(&self, osd: OsdId) -> Gate {
        let slot = self.seen.ceph.slots.get(&osd);
        let is_dead = slot.is_some_and(|slot| !slot.up && !slot.gets_data());
        let node = self.seen.kube.daemons.get(&osd).and_then(|daemon| daemon.node.as_ref());
        let but_for_data = first_not_open([
            // The stop of a dead OSD would wait for the pod, and other OSDs for the stop.
            if is_dead { node_answers(osd, self.seen) } else { self.is_up(osd) },
            // A dead OSD is down already, and need not come up.
            if is_dead { Gate::Open } else { flags_of(osd, self.seen) },
            not_ambiguous(osd, self.seen),
            rook::prepares_none_on(node, self.seen),
            self.no_agent(osd),
            self.pgs.get(&osd).cloned().unwrap_or(Gate::Open),
        ]);
        // Reads all PGs: a rack that is lost has hundreds of dead OSDs, whose nodes do not answer.
        if is_dead && but_for_data == Gate::Open { emptied(osd, &self.seen.ceph) } else { but_for_data }
    }

    /// Returns the OSD's gate combined with the predicted answer of `osd ok-to-stop`.
    ///
    /// The prediction comes from the statistics. It is used only if all PGs allow a stop: otherwise it would
    /// name a consequence.
    pub fn gate_predicted(&self, osd: OsdId, node: &NodeName) -> Gate {
        let bad_pgs = self.unstoppable.get(&osd).copied();
        let predicted = bad_pgs.map_or(Gate::Open, |bad_pgs| Gate::Shut(Reason::NotOkToStop { bad_pgs }));
        first_not_open([self.gate(osd, node), predicted])
    }

    /// Returns the OSD's gate combined with the answer of `osd ok-to-stop`.
    pub fn gate_asked(&self, osd: OsdId, node: &NodeName) -> Gate {
        first_not_open([self.gate_predicted(osd, node), answered_ok_to_stop(osd, self.seen)])
    }

    fn no_agent(&self, osd: OsdId) -> Gate {
        let at_work = |job: &&NodeJob| job.osd == osd && job.state != JobState::Ended;
        let job = self.seen.kube.node_jobs.iter().find(at_work);
        job.map_or(Gate::Open, |job| Gate::Shut(Reason::AgentAtWork { job: job.name.clone() }))
    }

    fn is_up(&self, osd: OsdId) -> Gate {
        let slot = self.seen.ceph.slots.get(&osd);
        let is_up = slot.is_some_and(|slot| slot.up);
        shut_if(!passes(Guard::DownIsNoCandidate, is_up), || Reason::Down { osd })
    }
}

fn one_unclean(pg: &PgId, state: String) -> Reason {
    Reason::NotClean { count: 1, pg: *pg, state, down: [].into() }
}

/// Returns whether the reason may disappear without help.
///
/// A dead OSD does not come back once Ceph has healed without it, an admission policy does not change, and a
/// run has waited for a Rook that hangs.
pub fn passes_by_itself(reason: &Reason, seen: &Observation) -> bool {
    if matches!(reason, Reason::AdmissionRefused { .. } | Reason::FenceNotAcknowledged { .. }) {
        return false;
    }
    if let Reason::Down { osd } = reason {
        return seen.ceph.slots.get(osd).is_some_and(|slot| slot.is_in);
    }
    !reason.is_permanent()
}
