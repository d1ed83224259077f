//! OSDs that are removed without a request, because a switch of the run is on: OSDs in directories of nodes
//! without a disk for them, and OSDs that have been down and out for a long time.
//!
//! Nothing is stored before the record: both are decided by what is observed.

use std::collections::BTreeMap;

use super::nodes::{self, KnownDisks};
use super::provisioner::OF_PLAN;
use super::{directory_disk, order};
use crate::domain::classify::{self, Class};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::Record;
use crate::domain::next::Next;
use crate::domain::observation::{Slot, SlotState};
use crate::domain::osd::{Kind, OsdId};
use crate::domain::removal::{Cause, DiskAfter, RemovalRequest};
use crate::domain::view::View;

/// Returns the OSDs that the switches of this run remove, each with why, and as if it had been requested.
pub fn all(view: View<'_>) -> Vec<(OsdId, Cause, RemovalRequest)> {
    // `plan` has the inventories of all nodes at once, and no node at work.
    let is_plan = view.policy.run.starts_with(OF_PLAN) && view.policy.drop_directories;
    let of_plan = if is_plan { directory_disk::assigned(migrated(view), view) } else { BTreeMap::default() };
    let needs = |osd: &OsdId| matches!(of_plan.get(osd), Some(Err(Reason::NeedsDevice { .. })));
    let cause = |osd: &OsdId| {
        cause(*osd, view).or_else(|| (needs(osd) && drops_directories(view)).then_some(Cause::Directory))
    };
    let request = |(osd, slot): (&OsdId, &Slot)| {
        let cause = cause(osd)?;
        let disk = match cause {
            Cause::Request | Cause::Directory => DiskAfter::Wipe,
            Cause::Out => DiskAfter::Leave,
        };
        Some((*osd, cause, RemovalRequest { disk, ..RemovalRequest::of(slot.fsid?) }))
    };
    view.seen.ceph.slots.iter().filter_map(request).collect()
}

/// Returns the OSDs that are migrated if they are not removed for want of a disk.
fn migrated(view: View<'_>) -> Vec<(OsdId, Class)> {
    let mut found = order::legacy(view, |_| true);
    found.retain(|(osd, _)| view.removal_request(*osd).is_none() && cause(*osd, view).is_none());
    found
}

/// Returns why a switch of this run removes the OSD; `None` if none does.
pub(super) fn cause(osd: OsdId, view: View<'_>) -> Option<Cause> {
    let policy = view.policy;
    if !policy.removes()
        || !(policy.drop_directories || policy.remove_out.is_some())
        || !view.selects_to_remove(osd)
    {
        return None;
    }
    let slot = view.slot(osd).filter(|slot| slot.state == SlotState::Exists)?;
    if gate::can_begin(osd, false, view.seen) != Gate::Open {
        return None;
    }
    if is_out_for_long(slot, view) {
        return Some(Cause::Out);
    }
    leaves_its_directory(osd, slot, view).then_some(Cause::Directory)
}

/// Returns whether the OSD has been down and out for as long as the run waits before it removes such OSDs.
///
/// An OSD that osd-migrate marked out has a record, and is not asked about.
fn is_out_for_long(slot: &Slot, view: View<'_>) -> bool {
    let Some(after) = view.policy.remove_out else { return false };
    let is_long = slot.down_since.is_some_and(|since| view.seen.at - since >= after);
    slot.is_down_and_out() && passes(Guard::OutForLong, is_long)
}

/// Returns whether the OSD serves in a directory, and its node has no disk for it.
fn leaves_its_directory(osd: OsdId, slot: &Slot, view: View<'_>) -> bool {
    let in_directory = || classify::class_of(osd, slot, view.seen).migrates().is_some_and(Kind::in_directory);
    if !(drops_directories(view) && slot.up && in_directory()) {
        return false;
    }
    directory_disk::known_disk(osd, view).is_some_and(|found| {
        passes(Guard::NoDiskForDirectory, matches!(found, Err(Reason::NeedsDevice { .. })))
    })
}

/// Returns whether this run removes OSDs in directories.
///
/// The confirmation of the migration is needed, too, since the OSD was to be migrated. A plan that was
/// approved confirms no removal.
fn drops_directories(view: View<'_>) -> bool {
    let is_confirmed = passes(Guard::Confirmed, view.is_confirmed());
    view.policy.drop_directories && view.policy.approval.is_none() && is_confirmed
}

/// Returns whether the switch by which an OSD is removed is still on, and what it asks for still true.
///
/// A run that neither migrates nor removes OSDs (`provision`, `fence`) has no switch, and is not asked.
pub(super) fn stands(record: &Record, view: View<'_>) -> bool {
    let Some(removal) = record.removal() else { return false };
    let policy = view.policy;
    if policy.only_new || policy.fence.is_some() {
        return removal.cause != Cause::Request;
    }
    match removal.cause {
        Cause::Request => false,
        Cause::Out => policy.remove_out.is_some() && view.selects_to_remove(record.osd),
        Cause::Directory => {
            let has_none = !matches!(directory_disk::known_disk(record.osd, view), Some(Ok(_)));
            drops_directories(view)
                && view.selects_to_remove(record.osd)
                && passes(Guard::NoDiskForDirectory, has_none)
        }
    }
}

/// Returns the step of the inventory that an OSD which leaves its directory needs, once in each run: a disk
/// may have become available since.
pub(super) fn inventory(record: &Record, view: View<'_>) -> Option<Next> {
    let is_asked = record.removal().is_some_and(|removal| removal.cause == Cause::Directory)
        && !record.is_committed()
        && !record.closing
        && drops_directories(view)
        && gate::held(view) == Gate::Open;
    match is_asked.then(|| nodes::known(&record.node, view))? {
        KnownDisks::Next(next) => Some(next),
        KnownDisks::Disks(..) | KnownDisks::Never(_) | KnownDisks::Done(_) => None,
    }
}
