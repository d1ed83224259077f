//! Per-OSD flags: `noout` keeps Ceph from marking the stopped OSD out, `noin` keeps the reweight of an OSD
//! that boots for the first time.

use crate::domain::act::{Act, CephAct};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::Record;
use crate::domain::next::{Halt, Next, Saving};
use crate::domain::view::View;

/// Returns the act that sets the flags if one is unset: a purge loses them, and people unset them.
///
/// The former flags are saved with the intent to stop.
pub(crate) fn change(record: &Record, view: View<'_>) -> Option<Act> {
    let slot = view.slot(record.osd)?;
    let (noout, noin, fsid) = (!slot.noout && !record.noout_lifted, !slot.noin, slot.fsid);
    let are_set = passes(Guard::FlagsSetFirst, !(noout || noin));
    let (osd, record) = (record.osd, record.id.clone());
    (!are_set).then_some(Act::Ceph(CephAct::SetOsdFlags { osd, fsid, up: slot.up, record, noout, noin }))
}

/// Returns the next step until the flags of quarantined OSDs are as they were; `None` if they are.
///
/// `noout` is unset at once, so that Ceph can heal without the OSD. `noin` is unset when the OSD is up.
pub(crate) fn restore(view: View<'_>) -> Option<Next> {
    view.ledger.quarantined().find_map(|record| {
        let slot = view.slot(record.osd)?;
        let (noout, noin) = record.flags_to_lift(slot.noout, slot.noin);
        unset(record, noout, noin && slot.up)
    })
}

/// Returns the step that unsets the flags of one OSD; `None` if they are as they were.
pub(crate) fn restore_of(record: &Record, view: View<'_>) -> Option<Next> {
    let slot = view.slot(record.osd)?;
    let (noout, noin) = record.flags_to_lift(slot.noout, slot.noin);
    unset(record, noout, noin)
}

/// Returns the next step until the `noout` of an OSD that is down is lifted.
///
/// The lift is saved first, so that the flag is not set again.
pub(crate) fn lift_noout(record: &Record, view: View<'_>) -> Option<Next> {
    let slot = view.slot(record.osd).filter(|slot| !slot.up)?;
    let (noout, _) = record.flags_to_lift(slot.noout, slot.noin);
    if !noout || is_out(Guard::NooutHasAnEnd) {
        return None;
    }
    if record.noout_lifted {
        return unset(record, noout, false);
    }
    let mut record = record.clone();
    record.noout_lifted = true;
    let osd = Some(record.osd);
    Some(Next::Save { ledger: view.ledger.with(record), osd, why: Saving::NooutLifted })
}

/// Lifts `noout` of OSDs that are down before a halt ends the run: afterwards no runner would lift it.
///
/// If the ledger was lost, nothing is known of them.
pub fn before_halt(next: Next, view: View<'_>) -> Next {
    match next {
        Next::Halt(halt) if !matches!(halt, Halt::LedgerLost { .. }) => {
            // Also of one whose stop was reverted, and that is not up yet.
            let mut down = view.ledger.in_flight().filter(|record| record.stop_intended_at.is_some());
            down.find_map(|record| lift_noout(record, view)).unwrap_or(Next::Halt(halt))
        }
        Next::Halt(_) | Next::Save { .. } | Next::Do(_) | Next::Wait(_) | Next::Finished(_) => next,
    }
}

fn unset(record: &Record, noout: bool, noin: bool) -> Option<Next> {
    let osd = record.osd;
    (noout || noin).then_some(Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd, noout, noin })))
}

/// Returns whether a flag is set that osd-migrate set.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    let mut records = view.ledger.records.values();
    records.any(|record| restore_of(record, view).is_some())
}
