//! What each act expects to find (P6). One place: the adapters ask here right before they write, and so does the simulated
//! cluster, so that what is explored is what runs. A condition with a guard is one that the exploration takes out by name.

use std::collections::BTreeMap;

use super::act::DataPrecondition;
use super::gate::{self, Gate, Reason};
use super::guard::{Guard, is_out, passes};
use super::inspection::RecordId;
use super::observation::{Ceph, OkToStop, Slot, SlotState};
use super::osd::{CrushItem, Epoch, OsdFsid, OsdId, PgId, Upmap, Weight};

/// `osd destroy` may be sent: the slot is down, claimed, and holds the very OSD that is meant.
pub fn to_destroy(slot: &Slot, fsid: OsdFsid) -> bool {
    let issued = match slot.state {
        SlotState::Exists | SlotState::New => true,
        SlotState::Destroyed => false,
    };
    issued && !slot.up && passes(Guard::DestroyFsid, slot.fsid == Some(fsid))
}

/// `osd new <claim> <id>` may be sent: the id is absent.
pub fn to_reregister(slot: Option<&Slot>) -> bool {
    slot.is_none()
}

/// The id holds the claim already.
pub fn is_reregistered(slot: &Slot, claim: OsdFsid) -> bool {
    slot.state == SlotState::New && !slot.up && slot.fsid == Some(claim)
}

/// `osd purge-new` may be sent: the id is new, was never up in any epoch, and holds our claim.
pub fn to_purge_misplaced(slot: &Slot, fsid: OsdFsid) -> bool {
    slot.state == SlotState::New && !slot.up && slot.up_from == Epoch(0) && slot.fsid == Some(fsid)
}

/// Its OSD may be stopped: Ceph has just said so.
pub fn to_stop_by_ceph(verdict: &OkToStop) -> bool {
    passes(Guard::OkToStop, verdict.ok)
}

/// Its OSD may be stopped: it is up, and the one that is meant.
pub fn to_stop_up(slot: Option<&Slot>, fsid: OsdFsid) -> bool {
    slot.is_some_and(|slot| passes(Guard::StopExpects, slot.up && slot.fsid == Some(fsid)))
}

/// The Deployment is the one that was looked at: nobody made it anew.
pub fn same_deployment(found: &str, expected: &str) -> bool {
    passes(Guard::StopExpects, found == expected)
}

/// The Deployment (uid, generation) that a new OSD's takes the place of is the one that was looked at; none where there
/// was none.
pub fn in_place_of(found: Option<(&str, i64)>, expected: Option<(&str, i64)>) -> bool {
    passes(Guard::DeployReplaces, found == expected)
}

/// An OSD may be started that nothing starts: its slot holds the one that is meant, and it is down.
pub fn to_start(slot: Option<&Slot>, fsid: OsdFsid) -> bool {
    slot.is_some_and(|slot| passes(Guard::StartExpects, !slot.up && slot.fsid == Some(fsid)))
}

/// An OSD's Deployment may be changed, so that its pod is made anew: the OSD is down, or was up when that was decided. Else
/// nothing of what a restart needs was asked.
pub fn to_tolerate(is_up: bool, was_up: bool) -> bool {
    passes(Guard::TolerateExpects, !is_up || was_up)
}

/// The record is still open: the Deployment is kept for it, or stopped for it.
pub fn open_record(backups: Option<&RecordId>, stopped_by: Option<&RecordId>, record: &RecordId) -> bool {
    passes(Guard::RecordOpen, backups == Some(record) || stopped_by == Some(record))
}

/// Flags may be set: the slot holds the OSD that is meant. (Ceph answers 0 also for an id that doesn't exist.)
pub fn to_set_flags(slot: Option<&Slot>, fsid: Option<OsdFsid>, up: bool) -> bool {
    slot.is_some_and(|slot| passes(Guard::RecordOpen, slot.fsid == fsid && slot.up == up))
}

/// Nobody changed what the Deployment wants, nor its annotations, since it was looked at: its generation. Its status may have changed
/// (ADR 0024).
pub fn unchanged_deployment(found: i64, expected: i64) -> bool {
    passes(Guard::StopExpects, found == expected)
}

/// The old OSD may be given up: it still is stopped for this record, and nothing of it runs.
pub fn at_rest(stopped_by: Option<&RecordId>, replicas: u32, has_pods: bool, record: &RecordId) -> bool {
    passes(Guard::StoppedByUs, stopped_by == Some(record))
        && passes(Guard::StaysStopped, replicas == 0)
        && passes(Guard::AtRest, !has_pods)
}

/// The label may be taken off: it is ours.
pub fn our_fence(found: Option<&str>, value: &str) -> bool {
    passes(Guard::UnfenceOurs, found == Some(value))
}

/// The label may be put on: there is none.
pub fn no_fence(found: Option<&str>) -> bool {
    passes(Guard::ClusterVersion, found.is_none())
}

/// Nobody wrote the CephCluster since the act read it, before its look at the ledger. The API server compares (a JSON patch that tests
/// the resourceVersion), and the simulated cluster.
pub fn unchanged_cluster(found: &str, expected: &str) -> bool {
    passes(Guard::ClusterVersion, found == expected)
}

/// An act may begin: the ledger is still the one that it was decided by (ADR 0011).
pub fn decided_by_ledger<V: PartialEq>(found: &V, read: &V) -> bool {
    passes(Guard::ActByLedger, found == read)
}

/// The ledger may be written: nobody wrote it since it was read.
pub fn unchanged_ledger<V: PartialEq>(found: &V, read: &V) -> bool {
    passes(Guard::LedgerVersion, found == read)
}

/// What of a CRUSH item is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// All of it, and with it reweight and affinity: the id was purged.
    Item,
    /// Its device class.
    Class,
    /// Its weight is still the one that it had on the device before.
    Weight,
    /// Nothing.
    Nothing,
}

/// The operator's Deployment, or the OSDs' budget, may be written: it is the one that was looked at, and nobody changed what it wants
/// since (uid, generation).
pub fn unchanged_operator(found: (&str, i64), expected: (&str, i64)) -> bool {
    passes(Guard::OperatorVersion, found == expected)
}

/// What of the recorded item is to be put back; the item that is there where others moved it since.
///
/// `former`: its weight before, where another one is recorded. A weight that is neither was set by others.
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

/// Which of the recorded upmaps are to be put back: where the PG has another by now, the balancer's or a person's, that one stays;
/// and one whose OSDs are gone or out the mons would drop at once.
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

/// An OSD may be taken in: it is up with the fsid that is meant, and out.
pub fn to_take_in(slot: Option<&Slot>, fsid: OsdFsid) -> bool {
    slot.is_some_and(|slot| slot.up && slot.fsid == Some(fsid) && !slot.is_in)
}

/// Upmaps may be put back: the slot is up, with the OSD that is meant.
pub fn to_restore_upmaps(slot: Option<&Slot>, fsid: OsdFsid) -> bool {
    slot.is_some_and(|slot| slot.up && slot.fsid == Some(fsid))
}

/// The record's item is in its place, with a class where it had one.
pub fn is_placed(item: &CrushItem, found: Option<&CrushItem>) -> bool {
    found.is_some_and(|found| item.device_class.is_none() || found.device_class.is_some())
}

/// The data still allows the act; why not, otherwise.
pub fn precondition(precondition: &DataPrecondition, ceph: &Ceph) -> Result<(), Reason> {
    let guard = match precondition {
        DataPrecondition::AllClean | DataPrecondition::CleanFor { .. } => Guard::RecheckAllClean,
        DataPrecondition::OnlyOursMissing { .. } => Guard::RecheckOnlyOursMissing,
        DataPrecondition::Backfilled { .. } => Guard::RecheckBackfilled,
    };
    match gate::precondition(precondition, ceph) {
        Gate::Shut(reason) | Gate::Unknown(reason) if !is_out(guard) => Err(reason),
        Gate::Open | Gate::Shut(_) | Gate::Unknown(_) => Ok(()),
    }
}
