//! Gates before an OSD is stopped, restarted or destroyed.

use super::answer::shut_if;
use super::answer::{Gate, first_not_open};
use super::data::{all_clean, clean_for, fresh, not_merging, redundancy, served, unavailable_without};
use super::emptied::still_out;
use super::missing::{only_ours_missing, only_these_missing};
use super::node::{node_ready, of_node_and_rook};
use super::pvc::{no_rotation, same_pvc};
use super::space::enough_space;
use super::surroundings::{ambiguous_osds_known, flags_of, not_ambiguous, surroundings};
use super::{Reason, pgs_of, rook};
use crate::domain::ledger::{Record, Run};
use crate::domain::observation::{Admission, Observation, OkToStop};
use crate::domain::osd::{NodeName, OsdId, PgId};
use crate::domain::policy::{Accepted, Missing};
use std::collections::BTreeSet;

/// Returns the gate before an OSD is recorded and before it is stopped.
///
/// No replica is missing, Ceph agrees, and one more loss is survivable.
pub fn before_stop(osd: OsdId, node: &NodeName, run: &Run, accepted: &Accepted, seen: &Observation) -> Gate {
    let concerned = pgs_of(osd, seen);
    first_not_open([
        // The reason that no waiting resolves comes first: such an OSD is refused, whatever the other reasons
        // are.
        redundancy(&concerned, seen),
        around_any_stop(run, seen),
        data_before_stop(osd, &concerned, accepted, seen),
        before_this_stop(osd, node, seen),
    ])
}

/// Returns the gate of the PGs before a stop of this OSD.
pub fn data_before_stop(
    osd: OsdId,
    concerned: &BTreeSet<PgId>,
    accepted: &Accepted,
    seen: &Observation,
) -> Gate {
    first_not_open([
        // If all PGs have to be clean, the statistics of all PGs must be fresh.
        fresh(|pg| !accepted.any || concerned.contains(pg), &seen.ceph),
        clean_for(osd, accepted, &seen.ceph),
        not_merging(concerned, seen),
    ])
}

/// Returns the gate before any stop, except for the PGs: Rook, space, flags, upgrades, mons.
pub fn around_any_stop(run: &Run, seen: &Observation) -> Gate {
    first_not_open([surroundings(run, seen), ambiguous_osds_known(seen), mon_quorum(seen)])
}

/// Returns the gate before any OSD is stopped or restarted, if all PGs have to be clean.
pub fn before_any_stop(run: &Run, seen: &Observation) -> Gate {
    first_not_open([around_any_stop(run, seen), fresh(|_| true, &seen.ceph), all_clean(&seen.ceph)])
}

/// Returns the gate before a stop that concerns this OSD only, without redundancy.
pub fn before_this_stop(osd: OsdId, node: &NodeName, seen: &Observation) -> Gate {
    first_not_open([
        not_ambiguous(osd, seen),
        flags_of(osd, seen),
        of_node_and_rook(node, seen),
        no_rotation(osd, seen),
        ok_to_stop(osd, seen),
    ])
}

/// Returns the gate before Destroy and Rebuild of an OSD that osd-migrate stopped.
///
/// Only its own replicas may be missing, and those of the stopped OSDs of its batch (`beside`).
pub fn after_stop(record: &Record, run: &Run, beside: &Missing, seen: &Observation) -> Gate {
    let pgs = served(record, &seen.ceph);
    let is_old = seen.ceph.slots.get(&record.osd).is_some_and(|slot| slot.fsid == Some(record.old));
    let is_emptied = record.empty.is_some() && is_old;
    let none_else_missing = if record.empty.is_some() { only_these_missing } else { only_ours_missing };
    // The data comes first: it may need a person, who is not called for conditions that pass without help.
    first_not_open([
        if is_emptied { still_out(record.osd, &seen.ceph) } else { Gate::Open },
        none_else_missing((record.osd, &pgs), beside, &seen.ceph),
        same_pvc(record, seen),
        no_rotation(record.osd, seen),
        // An OSD that is removed gets no successor.
        if record.is_removal() { Gate::Open } else { enough_space(record, seen) },
        // PGs that no longer exist (their pool was deleted, or PGs were merged) are not asked. For an emptied
        // OSD no PG is excused: all replicas must exist by statistics that know which OSDs are up.
        fresh(|pg| is_emptied || pgs.contains(pg), &seen.ceph),
        surroundings(run, seen),
        if record.is_removal() { Gate::Open } else { flags_of(record.osd, seen) },
        rook::prepares_none_on(Some(&record.node), seen),
        if record.is_removal() { Gate::Open } else { node_ready(&record.node, seen) },
    ])
}

/// Returns the gate before a stop that asks whether the API server would admit the Deployment of the new OSD.
pub fn admitted(osd: OsdId, seen: &Observation) -> Gate {
    match seen.kube.admission.get(&osd) {
        Some(Admission::Admitted) => Gate::Open,
        Some(Admission::Refused(why)) => Gate::Shut(Reason::AdmissionRefused { osd, why: why.clone() }),
        Some(Admission::Unanswered(why)) => {
            Gate::Unknown(Reason::AdmissionUnknown { osd, why: Some(why.clone()) })
        }
        None => Gate::Unknown(Reason::AdmissionUnknown { osd, why: None }),
    }
    .guarded()
}

/// Returns the gate before an OSD is restarted as it is.
///
/// No data is removed, so one more loss need not be survivable.
pub fn before_restart(osd: OsdId, node: &NodeName, run: &Run, seen: &Observation) -> Gate {
    first_not_open([before_any_restart(run, seen), before_this_stop(osd, node, seen)])
}

/// Returns the gate before any OSD is restarted as it is.
///
/// The rollout of every Deployment must be complete: right after a change of its Deployment an OSD is still
/// up, and its PGs are still clean. That of an OSD that is down and out, or purged, never is, and it has no
/// data.
pub fn before_any_restart(run: &Run, seen: &Observation) -> Gate {
    let may_serve = |osd: &OsdId| seen.ceph.slots.get(osd).is_some_and(|slot| !slot.is_down_and_out());
    let rolling = seen.kube.daemons.iter().find(|(osd, daemon)| !daemon.rolled_out && may_serve(osd));
    first_not_open([
        rook::is_away_by_hand(run, seen),
        before_any_stop(run, seen),
        rolling.map_or(Gate::Open, |(osd, _)| Gate::Unknown(Reason::RolloutInProgress { osd: *osd })),
    ])
}

/// Returns the gate that is open if all mons of the monmap are in quorum.
///
/// The mons raise `MON_DOWN` if one is not in quorum. Their answer shows that a majority is.
///
/// Asked before Stop only: a cluster that has lost one mon may lose the quorum with the next, and then an OSD
/// that is down for the migration can't be started again. An OSD that is already down is finished anyway:
/// that takes minutes, and the restart of a mon must not make an OSD go down and up.
pub(super) fn mon_quorum(seen: &Observation) -> Gate {
    shut_if(seen.ceph.health.contains("MON_DOWN"), || Reason::MonDown)
}

/// Returns the gate that is open if Ceph answers that the OSD may be stopped, and its statistics agree.
///
/// From 20.2.2 on, the answer leaves out PGs (`src/ceph/ok_to_stop.rs`).
pub(super) fn ok_to_stop(osd: OsdId, seen: &Observation) -> Gate {
    match answered_ok_to_stop(osd, seen) {
        Gate::Open => match unavailable_without(osd, &seen.ceph) {
            0 => Gate::Open,
            bad_pgs => Gate::Shut(Reason::NotOkToStop { bad_pgs }),
        },
        gate @ (Gate::Shut(_) | Gate::Unknown(_)) => gate,
    }
}

/// Returns the gate that is open if Ceph answers that the OSD may be stopped.
pub(super) fn answered_ok_to_stop(osd: OsdId, seen: &Observation) -> Gate {
    match seen.ceph.ok_to_stop.get(&BTreeSet::from([osd])) {
        Some(OkToStop { ok: true, .. }) => Gate::Open,
        Some(OkToStop { ok: false, bad_pgs }) => Gate::Shut(Reason::NotOkToStop { bad_pgs: *bad_pgs }),
        None => Gate::Unknown(Reason::NotAsked),
    }
}
