//! OSDs that are marked out, or have CRUSH weight 0, so that they are emptied: their data moves to other OSDs
//! while they serve.
//!
//! An OSD that is removed has CRUSH weight 0, and every other one is marked out. The weights are saved with
//! the record, and the intent before the command. After a rebuild the OSD is still marked out: that is what
//! `step/up` restores when the new OSD is up.

use crate::domain::act::{Act, CephAct};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::Record;
use crate::domain::next::Next;
use crate::domain::observation::Slot;
use crate::domain::osd::{OsdFsid, OsdId, Weight};
use crate::domain::view::View;

/// Returns whether an OSD is out, or has CRUSH weight 0, because osd-migrate emptied it.
pub(crate) fn is_marked_out(record: &Record, view: View<'_>) -> bool {
    let Some(slot) = view.slot(record.osd).filter(|_| record.is_marked_out()) else { return false };
    // A dead OSD that is removed was emptied in either way, and once it is destroyed, nothing is restored.
    let may_be_out = !record.is_removal() || (record.is_of_dead() && slot.fsid == Some(record.old));
    let is_out = may_be_out && record.reweight > Weight(0) && !slot.is_in && is_its(record, slot.fsid);
    is_out || (record.is_removal() && is_weightless(record, slot))
}

/// Returns whether an OSD that is to be removed exists, with CRUSH weight 0 instead of its former one.
fn is_weightless(record: &Record, slot: &Slot) -> bool {
    let has_item = slot.crush.is_some() && slot.fsid == Some(record.old);
    has_item && record.crush.weight > Weight(0) && !slot.has_weight()
}

/// Returns whether the slot holds the record's old OSD, its new one, or none.
fn is_its(record: &Record, fsid: Option<OsdFsid>) -> bool {
    fsid.is_none_or(|fsid| fsid == record.old || record.is_registered_as(fsid))
}

/// Returns the step that marks an OSD in again that osd-migrate marked out; `None` if it is in, or down.
///
/// An OSD that is down stays out: marked in, its PGs would wait for it instead of healing elsewhere.
pub(crate) fn restore_of(record: &Record, view: View<'_>) -> Option<Next> {
    let slot = view.slot(record.osd).filter(|slot| slot.up)?;
    let (osd, fsid, reweight) = (record.osd, slot.fsid?, record.reweight);
    let takes_in = is_marked_out(record, view) && !is_out(Guard::MarkedInAgain);
    takes_in.then_some(Next::Do(Act::Ceph(if record.is_removal() && is_weightless(record, slot) {
        CephAct::RestoreWeight { osd, fsid, weight: record.crush.weight }
    } else {
        CephAct::TakeIn { osd, fsid, reweight }
    })))
}

/// Returns the OSD that is removed and stopped now: no data moves back to another OSD until it is gone.
pub(crate) fn waits_for(record: &Record, view: View<'_>) -> Option<OsdId> {
    let is_stopped = |other: &&Record| {
        let is_other = other.osd != record.osd && other.is_removal();
        is_other && !passes(Guard::OneStopAtATime, !other.is_committed())
    };
    view.ledger.in_flight().filter(|_| record.is_removal()).find(is_stopped).map(|other| other.osd)
}

/// Returns the next step until quarantined OSDs that are up are in again.
pub(crate) fn restore(view: View<'_>) -> Option<Next> {
    let mut due = view.ledger.quarantined().filter(|record| waits_for(record, view).is_none());
    due.find_map(|record| restore_of(record, view))
}

/// Returns whether an OSD is out, or has CRUSH weight 0, because osd-migrate emptied it.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    view.ledger.records.values().any(|record| is_marked_out(record, view))
}
