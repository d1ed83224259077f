//! Rook's operator: stopped, fenced, or in the way.
//!
//! See `docs/development/adr/0018-alongside-a-running-rook.md`.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Gate, Reason, StoppedBy};
use crate::domain::classify::{self, Class, Refusal};
use crate::domain::device_set::{METADATA, WAL};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::Run;
use crate::domain::observation::{Daemon, Observation, OnPvcs, Operator, RookPrepare, Slot};
use crate::domain::osd::{Kind, Mode, NodeName, OsdId};
use crate::domain::view::View;

/// Time without a status from Rook after which its operator counts as stopped or hanging.
///
/// Rook writes the status of Ceph once a minute, so three are missing by then.
const ROOK_IS_SILENT: TimeDelta = TimeDelta::minutes(3);

/// Returns the gate that is open if no operator is running.
///
/// An operator is running if its Deployment is found and runs, or if none is found that runs and Rook still
/// updates the CephCluster.
///
/// A Deployment that is found at 0 may be a remaining one, while the operator is running elsewhere. It is the
/// right one if the run scaled it, or if the fence is set: both need an operator that was running.
///
/// Its `managedFields` do not say who scaled it: the API server drops the entry of a write of the subresource
/// `scale` with the next status (Kubernetes 1.34.4).
pub(super) fn is_away(run: &Run, seen: &Observation) -> Gate {
    let is_scaled = |operator: &Operator| run.operator.as_ref().is_some_and(|was| was.is(operator));
    let is_right = |operator: &Operator| is_scaled(operator) || seen.kube.fence.is_some();
    let is_recent = |checked: &DateTime<Utc>| !is_old_status(*checked, seen.at);
    match (&seen.kube.operator, seen.kube.rook_checked.filter(is_recent)) {
        (Some(operator), _) if operator.runs() => {
            let (name, ends) = (operator.name.clone(), operator.replicas == 0);
            Gate::Shut(Reason::OperatorRuns { name, stopped_by: StoppedBy::Flag, ends })
        }
        (Some(operator), _) if is_right(operator) => Gate::Open,
        (None | Some(_), Some(checked)) => Gate::Shut(Reason::OperatorNotFound { checked }),
        (None | Some(_), None) => Gate::Open,
    }
}

/// Returns whether a running Rook would have written a later status of Ceph than that of `checked`.
pub fn is_old_status(checked: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    now - checked >= ROOK_IS_SILENT
}

/// Returns the gate that is open if no operator is running, before acts for which a run does not scale it.
pub(super) fn is_away_by_hand(run: &Run, seen: &Observation) -> Gate {
    match is_away(run, seen) {
        Gate::Shut(Reason::OperatorRuns { name, ends, .. }) => {
            Gate::Shut(Reason::OperatorRuns { name, stopped_by: StoppedBy::Person, ends })
        }
        gate @ (Gate::Open | Gate::Shut(_) | Gate::Unknown(_)) => gate,
    }
}

/// Returns the gate that is open if no operator is running, or if the running one can be fenced.
pub fn can_be_fenced(run: &Run, seen: &Observation) -> Gate {
    if seen.kube.fenceable_operator().is_some() { Gate::Open } else { is_away(run, seen) }
}

/// Returns the gate that is open if Rook is not in the middle of its own migration of an OSD.
///
/// For Rook the migration is done when the OSD has a Deployment again. An operator with 0 replicas does not
/// continue it. An OSD that osd-migrate works on may have no Deployment for a while, and an OSD that was
/// removed does not matter.
pub fn migrates_none(view: View<'_>) -> Gate {
    let (slots, daemons) = (&view.seen.ceph.slots, &view.seen.kube.daemons);
    let is_without = |osd: &&OsdId| {
        slots.contains_key(osd) && !daemons.contains_key(osd) && !view.ledger.records.contains_key(osd)
    };
    let under_way =
        view.seen.kube.running_operator().zip(view.seen.kube.rook_migrated.iter().find(is_without));
    under_way.map_or(Gate::Open, |(operator, osd)| {
        Gate::Shut(Reason::RookMigrates { osd: *osd, name: operator.name.clone() })
    })
}

/// Returns the gate that is shut by a prepare Job of Rook for which no node is known that it concerns alone.
pub(super) fn prepares_none_unplaced(seen: &Observation) -> Gate {
    not_prepared(|node| node.is_none(), seen)
}

/// Returns the gate that is shut while Rook prepares OSDs on a node.
///
/// Rook's Job turns each selected disk of its node that is blank into an OSD, also one that was just wiped.
/// It changes nothing on other nodes. An OSD whose node is not known waits for the Jobs of all nodes.
pub(super) fn prepares_none_on(node: Option<&NodeName>, seen: &Observation) -> Gate {
    not_prepared(|of_job| node.is_none() || of_job == node, seen)
}

fn not_prepared(concerns: impl Fn(Option<&NodeName>) -> bool, seen: &Observation) -> Gate {
    let job = seen.kube.rook_prepares.iter().find(|job| concerns(job.node.as_ref()));
    let shut =
        |job: &RookPrepare| Gate::Shut(Reason::RookPrepares { job: job.job.clone(), node: job.node.clone() });
    job.map_or(Gate::Open, shut).guarded()
}

/// Returns whether the fence that is set stays set between two OSDs.
///
/// A fence that Rook has not acknowledged is removed when no OSD needs it: Rook reports a label once, when it
/// was set or when Rook starts, and the event is deleted after an hour. If no run looks in that time, only
/// another fence is acknowledged (`watchControllerPredicate` in Rook's `predicate.go`, 1.20.6).
pub fn stays_fenced(run: &Run, seen: &Observation) -> bool {
    run.fence_acknowledged && needs_lasting_fence(seen)
}

/// Returns whether Rook must be fenced between two OSDs.
///
/// If the CephCluster lets a running Rook migrate OSDs, Rook would start its own migration between two OSDs
/// of osd-migrate. So the fence stays until no OSD is left that Rook would migrate, or give another shape.
pub fn needs_lasting_fence(seen: &Observation) -> bool {
    let would_migrate = seen.kube.declaration.confirmed && !is_out(Guard::FenceStays);
    let would_reshape = || !reshaped_by_rook(seen).is_empty() && !is_out(Guard::SetsFenced);
    seen.kube.fenceable_operator().is_some() && (would_migrate || would_reshape())
}

/// Returns the OSDs whose Deployments a Rook that is not fenced would give another shape, whatever is on
/// their devices: encrypted and with PVCs for database and log as their device set declares, or encrypted as
/// their node declares.
///
/// From 1.20 on, Rook activates an OSD on LVM as its node's `encryptedDevice` says (`activateOSDOnNodeCode`,
/// spec.go, v1.20.6). Without a key of the OSD, its init container fails.
///
/// Rook links a PVC of the set as `block.db` even if the OSD has no database there (spec.go,
/// `onPVCWithMetadata`, v1.20.6), and BlueStore refuses a database of another OSD. Such an OSD does not start
/// again. Rook changes up to 20 Deployments at a time (`osdMaxUpdatesInParallel`,
/// pkg/operator/ceph/cluster/osd/update.go, v1.20.6).
pub fn reshaped_by_rook(seen: &Observation) -> BTreeSet<OsdId> {
    let differs = |daemon: &Daemon| {
        let on_set = daemon.on_pvcs.as_ref().and_then(|on| Some((on, classify::set_of(on, seen)?)));
        on_set.is_some_and(|(on, set)| {
            set.encrypted != daemon.opens_encryption
                || set.has_template(METADATA) != on.db.is_some()
                || set.has_template(WAL) != on.wal.is_some()
        })
    };
    let activates_so = seen.kube.operator.as_ref().is_some_and(|operator| operator.opens_lvm);
    let has_no_key = |osd: &OsdId| seen.ceph.slots.get(osd).is_some_and(|slot| !slot.dmcrypt_key);
    let lacks_key = |osd: &OsdId, daemon: &Daemon| {
        let is_on_lvm = daemon.on_pvcs.is_none() && daemon.mode == Some(Mode::Lvm);
        activates_so && is_on_lvm && has_no_key(osd) && classify::is_node_encrypted(daemon, seen)
    };
    let all = seen.kube.daemons.iter();
    all.filter(|(osd, daemon)| differs(daemon) || lacks_key(osd, daemon)).map(|(osd, _)| *osd).collect()
}

/// Returns the OSDs that Rook would migrate without the fence, if the CephCluster confirms migrations.
///
/// These are the OSDs that differ in store or encryption, and every encrypted OSD on a disk of its host. Rook
/// expects these to be unencrypted: it reads the wanted encryption only from the device sets of PVCs, and the
/// existing one from the Deployment's label (1.20.6, `migrateForEncryption`).
pub fn left_to_rooks_migration(seen: &Observation) -> BTreeSet<OsdId> {
    if !seen.kube.declaration.confirmed {
        return BTreeSet::new();
    }
    let differs = |osd: OsdId, slot: &Slot| match seen.kube.daemons.get(&osd) {
        Some(daemon @ Daemon { on_pvcs: Some(on), .. }) => differs_from_set(slot, daemon, on, seen),
        daemon => differs_on_host(osd, slot, daemon, seen),
    };
    seen.ceph.slots.iter().filter(|(osd, slot)| differs(**osd, slot)).map(|(osd, _)| *osd).collect()
}

/// Returns whether Rook's own migration would take an OSD on a PVC.
///
/// Rook takes an OSD whose set is not declared for one that is to be unencrypted.
fn differs_from_set(slot: &Slot, daemon: &Daemon, on: &OnPvcs, seen: &Observation) -> bool {
    let encrypted = classify::set_of(on, seen).is_some_and(|set| set.encrypted);
    daemon.encrypted_to_rook != encrypted || has_other_store(slot, seen)
}

fn has_other_store(slot: &Slot, seen: &Observation) -> bool {
    let store = slot.metadata.as_ref().map(|metadata| &metadata.store);
    store.is_some_and(|store| *store != seen.kube.declaration.store)
}

/// Returns whether Rook's own migration would take an OSD on a disk of its host.
fn differs_on_host(osd: OsdId, slot: &Slot, daemon: Option<&Daemon>, seen: &Observation) -> bool {
    match classify::class_of(osd, slot, seen) {
        Class::Mismatched(_) | Class::Refused(Refusal::NoWayBack | Refusal::HostDevice(_)) => true,
        Class::Refused(Refusal::NodeUnclear { .. }) if has_other_store(slot, seen) => true,
        Class::Conforming | Class::Legacy(_) | Class::Available | Class::Refused(_) => {
            daemon.is_some_and(|daemon| daemon.encrypted_to_rook)
                || classify::kind_of(osd, slot, seen).is_ok_and(|kind| kind.is_some_and(Kind::is_encrypted))
        }
    }
}

/// State of the fence that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fenced {
    /// The fence is in force, or no operator has to be fenced.
    InForce,
    /// The annotation with the CephCluster's version is missing or too old: the label was set externally, or
    /// the annotation was removed.
    Unmarked,
    /// Rook acknowledged the fence. This must be saved, because events expire within the hour.
    Acknowledged,
    /// Rook has not acknowledged the fence yet.
    NotAcknowledged(Reason),
}

/// Returns whether a running operator honours the fence that is set.
///
/// Rook's reconciles of one CephCluster are sequential. One that read a version with the fence, and skipped
/// it, began after all earlier ones had ended. The annotation of the fence names the version on which the
/// fence was set, and is written in the same patch.
pub fn fenced(run: &Run, seen: &Observation) -> Fenced {
    let Some(operator) = seen.kube.fenceable_operator() else {
        return Fenced::InForce;
    };
    if passes(Guard::FenceAcknowledged, run.fence_acknowledged) {
        return Fenced::InForce;
    }
    // An annotation older than the observation without a fence was written for an earlier fence.
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

/// Returns the gate before the run begins on an OSD, or moves its data away for its stop.
///
/// It is shut if this run has given up others because Rook acknowledges no fence. An operator that is stopped
/// or updated meanwhile, so that no fence is needed, opens it.
pub fn rook_answers(moves_data: bool, view: View<'_>) -> Gate {
    let refusals = view.ledger.run.refusals_of(&view.policy.run);
    let is_in_vain = refusals.is_some_and(|known| known.expects_no_fence(moves_data));
    let operator = view.seen.kube.fenceable_operator().filter(|_| is_in_vain);
    let reason = |operator: &Operator| Reason::FenceNotAcknowledged { name: operator.name.clone() };
    operator.map_or(Gate::Open, |operator| Gate::Shut(reason(operator))).guarded()
}
