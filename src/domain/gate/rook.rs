//! Rook's operator: away, kept away by the fence, or in the way. See `docs/development/adr/0018-beside-a-running-rook.md`.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use super::{Gate, Reason};
use crate::domain::classify::{self, Class, Refusal};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{Ledger, Run};
use crate::domain::observation::{Observation, Operator, Slot};
use crate::domain::osd::{Kind, OsdId};

/// Rook says how Ceph is once a minute: one that said nothing for three of them is away, or hangs.
const ROOK_IS_SILENT: TimeDelta = TimeDelta::minutes(3);

/// Open where no operator runs: neither one that is found, nor one that is not and yet writes of the CephCluster.
pub(super) fn is_away(seen: &Observation) -> Gate {
    match (&seen.kube.operator, seen.kube.rook_checked) {
        (Some(operator), _) if operator.runs() => {
            Gate::Shut(Reason::OperatorRuns { name: operator.name.clone(), ends: operator.replicas == 0 })
        }
        (None, Some(checked)) if seen.at - checked < ROOK_IS_SILENT => {
            Gate::Shut(Reason::OperatorNotFound { checked })
        }
        (None | Some(_), _) => Gate::Open,
    }
}

/// Open where no operator runs, or one that the fence keeps off.
pub(super) fn can_be_fenced(seen: &Observation) -> Gate {
    if seen.kube.fenceable_operator().is_some() { Gate::Open } else { is_away(seen) }
}

/// Open where Rook is not in the middle of its own migration of an OSD. To Rook it is done when the OSD has a Deployment again; at
/// 0 nobody goes on with it. An OSD in our work may have none for a while, and one that was removed is nobody's.
pub fn migrates_none(ledger: &Ledger, seen: &Observation) -> Gate {
    let (slots, daemons) = (&seen.ceph.slots, &seen.kube.daemons);
    let lacks = |osd: &&OsdId| {
        slots.contains_key(osd) && !daemons.contains_key(osd) && !ledger.records.contains_key(osd)
    };
    let under_way = seen.kube.running_operator().zip(seen.kube.rook_migrated.iter().find(lacks));
    under_way.map_or(Gate::Open, |(operator, osd)| {
        Gate::Shut(Reason::RookMigrates { osd: *osd, name: operator.name.clone() })
    })
}

/// The CephCluster lets Rook, which runs, migrate OSDs itself: between two of ours it would begin. So the fence stays until
/// nothing is left that Rook would migrate.
pub fn stays_fenced(seen: &Observation) -> bool {
    let would_begin = seen.kube.declaration.confirmed && seen.kube.fenceable_operator().is_some();
    would_begin && !is_out(Guard::FenceStays)
}

/// OSDs that Rook would migrate as soon as nothing keeps it off, as the CephCluster confirms it: those that differ in store or
/// encryption, and every encrypted one, which to Rook is to be plain: it asks the device sets of PVCs alone what is to be
/// encrypted, and the Deployment's label what is (1.20.6, `migrateForEncryption`).
pub fn left_to_rooks_migration(seen: &Observation) -> BTreeSet<OsdId> {
    if !seen.kube.declaration.confirmed {
        return BTreeSet::new();
    }
    let differs = |osd: OsdId, slot: &Slot| match classify::class_of(osd, slot, seen) {
        Class::Mismatched(_) | Class::Refused(Refusal::NoWayBack | Refusal::HostDevice(_)) => true,
        Class::Conforming | Class::Legacy(_) | Class::Available | Class::Refused(_) => {
            let to_rook = seen.kube.daemons.get(&osd).is_some_and(|daemon| daemon.encrypted_to_rook);
            to_rook || classify::made(osd, slot, seen).is_ok_and(|made| made.is_some_and(Kind::is_encrypted))
        }
    };
    seen.ceph.slots.iter().filter(|(osd, slot)| differs(**osd, slot)).map(|(osd, _)| *osd).collect()
}

/// What the fence, which is up, comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fenced {
    /// It is in force, or nobody is there to be kept off.
    InForce,
    /// It does not say on which version of the CephCluster it was put: others put the label back, or took the annotation off.
    Unmarked,
    /// Rook was heard: this is to be remembered, for events are forgotten within the hour.
    Acknowledged,
    /// Rook has not said yet that it honours it.
    NotAcknowledged(Reason),
}

/// Whether a running operator is kept off by the fence that is up. Its reconciles of one CephCluster follow each other: one
/// that had read a version with the fence, and skipped it, began after every other one had ended. On which version the fence was put
/// stands beside it, written in the same patch.
pub fn fenced(run: &Run, seen: &Observation) -> Fenced {
    let Some(operator) = seen.kube.fenceable_operator() else {
        return Fenced::InForce;
    };
    if passes(Guard::FenceAcknowledged, run.fence_acknowledged) {
        return Fenced::InForce;
    }
    // An annotation older than the look that saw no fence was written for an earlier one.
    let is_of_this = |at: &u64| run.fence_after.is_none_or(|after| *at >= after);
    match (seen.kube.fenced_at.filter(is_of_this), seen.kube.skipped) {
        (None, _) => Fenced::Unmarked,
        (Some(at), Some(skipped)) if skipped > at => Fenced::Acknowledged,
        (Some(_), _) => not_acknowledged(operator),
    }
}

fn not_acknowledged(operator: &Operator) -> Fenced {
    Fenced::NotAcknowledged(Reason::FenceNotAcknowledged { name: operator.name.clone() })
}
