//! Gate of the PersistentVolumeClaim of an OSD.

use super::Reason;
use super::answer::{Gate, shut_if};
use crate::domain::ledger::Record;
use crate::domain::observation::Observation;

/// Returns the gate that is shut if the PVC of a recorded OSD was recreated, is missing, or is on another
/// PersistentVolume.
///
/// The OSD's data is then on another device than the one that an agent would get.
pub fn same_pvc(record: &Record, seen: &Observation) -> Gate {
    let Some(recorded) = &record.pvc else { return Gate::Open };
    let is_same = seen.kube.pvcs.get(&recorded.name).is_some_and(|pvc| recorded.is(pvc));
    shut_if(!is_same, || Reason::OtherPvc { osd: record.osd, pvc: recorded.name.clone() }).guarded()
}
