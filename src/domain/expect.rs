//! Expectations of each act (P6), in one place.
//!
//! The adapters ask here right before they write, and so does the simulated cluster: the explored code is the
//! code that runs. The exploration takes out a condition with a guard by the guard's name.

use std::collections::BTreeMap;

use super::act::DataPrecondition;
use super::gate::{self, Gate, Reason};
use super::guard::{Guard, is_out, passes};
use super::inspection::RecordId;
use super::ledger::RecordedPvc;
use super::observation::{Ceph, OkToStop, Pvc, Slot, SlotState};
use super::osd::{CrushItem, Epoch, OsdFsid, OsdId, PgId, Upmap, Weight};
use super::recovery::{RecoveryConfig, RecoveryOption};

/// Returns whether `osd destroy` may be sent: the slot is down, not destroyed, and holds the expected OSD.
pub fn to_destroy(slot: &Slot, fsid: OsdFsid) -> bool {
    let issued = match slot.state {
        SlotState::Exists | SlotState::New => true,
        SlotState::Destroyed => false,
    };
    issued && !slot.up && passes(Guard::DestroyFsid, slot.fsid == Some(fsid))
}

/// Returns whether `osd new <fsid> <id>` may be sent: the id is absent.
pub fn to_reregister(slot: Option<&Slot>) -> bool {
    slot.is_none()
}

/// Returns whether the id already holds the issued fsid.
pub fn is_reregistered(slot: &Slot, issued: OsdFsid) -> bool {
    slot.state == SlotState::New && !slot.up && slot.fsid == Some(issued)
}

/// Returns whether `osd purge-new` may be sent.
///
/// The id must be new, never up in any epoch, and hold an issued fsid.
pub fn to_purge_misplaced(slot: &Slot, fsid: OsdFsid) -> bool {
    slot.state == SlotState::New && !slot.up && slot.up_from == Epoch(0) && slot.fsid == Some(fsid)
}

/// Returns an error with the number of PGs that would become unavailable if the OSD may not be stopped.
///
/// Ceph's latest answer counts, and the latest statistics: the answer alone leaves out PGs
/// (`src/ceph/ok_to_stop.rs`).
pub fn to_stop_by_ceph(osd: OsdId, verdict: &OkToStop, ceph: &Ceph) -> Result<(), u32> {
    let bad_pgs = if verdict.ok { gate::unavailable_without(osd, ceph) } else { verdict.bad_pgs };
    if passes(Guard::OkToStop, verdict.ok && bad_pgs == 0) { Ok(()) } else { Err(bad_pgs) }
}

/// Returns whether the OSD may be stopped: it is up, or dead, as at the decision, with the expected fsid.
pub fn to_stop_as_seen(slot: Option<&Slot>, fsid: OsdFsid, up: bool) -> bool {
    slot.is_some_and(|slot| passes(Guard::StopExpects, slot.up == up && slot.fsid == Some(fsid)))
}

/// Returns whether the Deployment is the observed one, and not a recreated one.
pub fn same_deployment(found: &str, expected: &str) -> bool {
    passes(Guard::StopExpects, found == expected)
}

/// Returns whether the Deployment that a new OSD's Deployment replaces is the observed one.
///
/// Compares (uid, generation), or none if no Deployment existed.
pub fn in_place_of(found: Option<(&str, i64)>, expected: Option<(&str, i64)>) -> bool {
    passes(Guard::DeployReplaces, found == expected)
}

/// Returns whether an OSD that nothing starts may be started: its slot holds the expected fsid, and is down.
pub fn to_start(slot: Option<&Slot>, fsid: OsdFsid) -> bool {
    slot.is_some_and(|slot| passes(Guard::StartExpects, !slot.up && slot.fsid == Some(fsid)))
}

/// Returns whether the PVC of an OSD that is to be started is the recorded one, on the recorded
/// PersistentVolume.
pub fn to_start_on(recorded: &RecordedPvc, found: Option<&Pvc>) -> bool {
    passes(Guard::StartsOnPvc, found.is_some_and(|pvc| recorded.is(pvc)))
}

/// Returns whether an OSD's Deployment may be changed, which recreates its pod.
///
/// The OSD is down, or was up at the decision. Otherwise the conditions of a restart were not checked.
pub fn to_tolerate(is_up: bool, was_up: bool) -> bool {
    passes(Guard::TolerateExpects, !is_up || was_up)
}

/// Returns whether the record is still open: its Deployment has a backup for it, or is stopped for it.
pub fn open_record(backups: Option<&RecordId>, stopped_by: Option<&RecordId>, record: &RecordId) -> bool {
    passes(Guard::RecordOpen, backups == Some(record) || stopped_by == Some(record))
}

/// Returns whether flags may be set: the slot holds the expected OSD.
///
/// Ceph answers 0 also for an id that does not exist.
pub fn to_set_flags(slot: Option<&Slot>, fsid: Option<OsdFsid>, up: bool) -> bool {
    slot.is_some_and(|slot| passes(Guard::RecordOpen, slot.fsid == fsid && slot.up == up))
}

/// Returns whether the spec and the annotations of the Deployment are unchanged since it was observed.
///
/// Compares its generation. Its status may have changed (ADR 0024).
pub fn unchanged_deployment(found: i64, expected: i64) -> bool {
    passes(Guard::StopExpects, found == expected)
}

/// Returns whether the old OSD may be given up.
///
/// It must still be stopped for this record, and no pod of it may exist.
pub fn at_rest(stopped_by: Option<&RecordId>, replicas: u32, has_pods: bool, record: &RecordId) -> bool {
    passes(Guard::StoppedByUs, stopped_by == Some(record))
        && passes(Guard::StaysStopped, replicas == 0)
        && passes(Guard::AtRest, !has_pods)
}

/// Returns whether the label may be removed: it has the value of osd-migrate.
pub fn our_fence(found: Option<&str>, value: &str) -> bool {
    passes(Guard::UnfenceOurs, found == Some(value))
}

/// Returns whether the label may be set: there is none.
pub fn no_fence(found: Option<&str>) -> bool {
    passes(Guard::ClusterVersion, found.is_none())
}

/// Returns whether the CephCluster is unchanged since the act read it.
///
/// The act read the CephCluster before it read the ledger. The API server compares (a JSON patch that tests
/// the resourceVersion), and so does the simulated cluster.
pub fn unchanged_cluster(found: &str, expected: &str) -> bool {
    passes(Guard::ClusterVersion, found == expected)
}

/// Returns whether an act may begin: the ledger is still the one that the act was decided by (ADR 0011).
pub fn decided_by_ledger<V: PartialEq>(found: &V, read: &V) -> bool {
    passes(Guard::ActByLedger, found == read)
}

/// Returns whether the ledger may be written: it is unchanged since it was read.
pub fn unchanged_ledger<V: PartialEq>(found: &V, read: &V) -> bool {
    passes(Guard::LedgerVersion, found == read)
}

/// Part of a CRUSH item that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The whole item, and with it reweight and affinity: the id was purged.
    Item,
    /// The device class.
    Class,
    /// The weight: the item still has the one of the former device.
    Weight,
    /// No part.
    Nothing,
}

/// Returns whether the operator's Deployment, or the OSDs' PodDisruptionBudget, may be written.
///
/// It must be the observed one with an unchanged spec (uid, generation).
pub fn unchanged_operator(found: (&str, i64), expected: (&str, i64)) -> bool {
    passes(Guard::OperatorVersion, found == expected)
}

/// Returns the part of the recorded item to restore, or the found item if it was moved externally.
///
/// `former`: the former weight, if the recorded one differs from it. A weight that is neither was set
/// externally.
pub fn to_restore<'a>(
    item: &CrushItem,
    former: Option<Weight>,
    found: Option<&'a CrushItem>,
) -> Result<Lost, &'a CrushItem> {
    let is_former = |found: &CrushItem| {
        former.is_some()
            && found.weight != item.weight
            && passes(Guard::WeighExpects, former == Some(found.weight))
    };
    match found {
        None => Ok(Lost::Item),
        Some(found) if found.location != item.location => Err(found),
        Some(found) if item.device_class.is_some() && found.device_class.is_none() => Ok(Lost::Class),
        Some(found) if is_former(found) => Ok(Lost::Weight),
        Some(_) => Ok(Lost::Nothing),
    }
}

/// Returns the recorded upmaps to restore.
///
/// If the PG has another upmap by now, from the balancer or a person, that one stays. Upmaps whose OSDs are
/// gone or out are left out, because the mons would drop them at once.
pub fn upmaps_to_restore(recorded: &[Upmap], found: &[Upmap], slots: &BTreeMap<OsdId, Slot>) -> Vec<Upmap> {
    let has_none = |pg: &PgId| passes(Guard::UpmapsOfOthersStay, !found.iter().any(|upmap| upmap.pg == *pg));
    let is_in = |osd: &OsdId| slots.get(osd).is_some_and(|slot| slot.is_in);
    let is_lost = |upmap: &&Upmap| {
        !found.contains(upmap)
            && has_none(&upmap.pg)
            && upmap.mappings.iter().all(|(from, to)| slots.contains_key(from) && is_in(to))
    };
    recorded.iter().filter(is_lost).cloned().collect()
}

/// Returns whether an OSD may be marked out to be emptied: it has served with the expected fsid since that
/// epoch, and is in.
pub fn to_mark_out(slot: Option<&Slot>, fsid: OsdFsid, up_from: Epoch) -> bool {
    slot.is_some_and(|slot| slot.up && slot.fsid == Some(fsid) && slot.is_in && slot.up_from == up_from)
}

/// Returns whether the CRUSH weight of an OSD may be set to 0: it has served with the expected fsid since
/// that epoch, and has the recorded weight.
pub fn to_drop_weight(slot: Option<&Slot>, fsid: OsdFsid, up_from: Epoch, weight: Weight) -> bool {
    let is_its = |item: &CrushItem| passes(Guard::WeighExpects, item.weight == weight);
    slot.is_some_and(|slot| {
        let serves = slot.up && slot.fsid == Some(fsid) && slot.up_from == up_from;
        serves && slot.crush.as_ref().is_some_and(is_its)
    })
}

/// Returns whether the CRUSH weight of an OSD may be restored: it is up with the expected fsid, and has CRUSH
/// weight 0.
pub fn to_restore_weight(slot: Option<&Slot>, fsid: OsdFsid) -> bool {
    let is_zero = |item: &CrushItem| passes(Guard::WeighExpects, item.weight == Weight(0));
    slot.is_some_and(|slot| slot.up && slot.fsid == Some(fsid) && slot.crush.as_ref().is_some_and(is_zero))
}

/// Returns whether the id of a removed OSD may be purged: its slot is destroyed and down.
///
/// Only a destroyed slot is purged: its data was given up before, with all its conditions.
pub fn to_purge(slot: &Slot) -> bool {
    slot.state == SlotState::Destroyed && !slot.up
}

/// Returns whether an OSD may be marked in: it is up with the expected fsid, and out.
pub fn to_take_in(slot: Option<&Slot>, fsid: OsdFsid) -> bool {
    slot.is_some_and(|slot| slot.up && slot.fsid == Some(fsid) && !slot.is_in)
}

/// Returns whether upmaps may be restored: the slot is up with the expected OSD.
pub fn to_restore_upmaps(slot: Option<&Slot>, fsid: OsdFsid) -> bool {
    slot.is_some_and(|slot| slot.up && slot.fsid == Some(fsid))
}

/// Returns whether an option about recovery may be set: it has no value.
pub fn to_set_option(config: &RecoveryConfig, option: RecoveryOption) -> bool {
    passes(Guard::RecoveryOfOthersStays, !config.has(option))
}

/// Returns whether an option about recovery may be removed: it has the value that osd-migrate set.
pub fn to_remove_option(config: &RecoveryConfig, option: RecoveryOption, value: &str) -> bool {
    passes(Guard::RecoveryOfOthersStays, config.has_value(option, value))
}

/// Returns whether the record's item is in its place, with a device class if it had one.
pub fn is_placed(item: &CrushItem, found: Option<&CrushItem>) -> bool {
    found.is_some_and(|found| item.device_class.is_none() || found.device_class.is_some())
}

/// Returns an error with the reason if the data no longer allows the act.
pub fn precondition(precondition: &DataPrecondition, ceph: &Ceph) -> Result<(), Reason> {
    let guard = match precondition {
        DataPrecondition::AllClean | DataPrecondition::CleanFor { .. } => Guard::RecheckAllClean,
        DataPrecondition::Emptied { .. } | DataPrecondition::NoneMissing { .. } => Guard::RecheckEmptied,
        DataPrecondition::OnlyOursMissing { .. } => Guard::RecheckOnlyOursMissing,
        DataPrecondition::Backfilled { .. } => Guard::RecheckBackfilled,
    };
    match gate::precondition(precondition, ceph) {
        Gate::Shut(reason) | Gate::Unknown(reason) if !is_out(guard) => Err(reason),
        Gate::Open | Gate::Shut(_) | Gate::Unknown(_) => Ok(()),
    }
}
