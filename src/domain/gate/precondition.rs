//! Data preconditions, asked right before an act.

use super::Reason;
use super::answer::{Gate, first_not_open, shut_if};
use super::data::{all_clean, clean_for, fresh, is_filled};
use super::emptied::{emptied, still_out};
use super::missing::{none_missing, only_ours_missing};
use crate::domain::act::DataPrecondition;
use crate::domain::observation::{Ceph, Pg};
use crate::domain::osd::PgId;

/// Returns the gate of a data precondition, asked right before the act.
pub fn precondition(precondition: &DataPrecondition, ceph: &Ceph) -> Gate {
    match precondition {
        DataPrecondition::AllClean => first_not_open([fresh(|_| true, ceph), all_clean(ceph)]),
        DataPrecondition::CleanFor { osd, accepted } => {
            let shares = |pg: &Pg| pg.is_on(*osd);
            let is_concerned = |id: &PgId| !accepted.any || ceph.pgs.get(id).is_some_and(shares);
            first_not_open([fresh(is_concerned, ceph), clean_for(*osd, accepted, ceph)])
        }
        DataPrecondition::Emptied { osd, accepted } => {
            let allows = DataPrecondition::CleanFor { osd: *osd, accepted: accepted.clone() };
            first_not_open([emptied(*osd, ceph), self::precondition(&allows, ceph)])
        }
        DataPrecondition::NoneMissing { osd } => {
            first_not_open([still_out(*osd, ceph), none_missing(*osd, ceph), fresh(|_| true, ceph)])
        }
        DataPrecondition::OnlyOursMissing { osd, pgs, beside } => {
            first_not_open([only_ours_missing((*osd, pgs), beside, ceph), fresh(|pg| pgs.contains(pg), ceph)])
        }
        DataPrecondition::Backfilled { osd, fsid, pgs } => {
            let slot = ceph.slots.get(osd).filter(|slot| slot.fsid == Some(*fsid));
            let is_filled = slot.is_some_and(|slot| is_filled((*osd, slot), pgs, true, |_| false, ceph));
            shut_if(!is_filled, || Reason::BackfillIncomplete { osd: *osd })
        }
    }
}
