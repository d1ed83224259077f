//! Gates of an OSD on a PersistentVolumeClaim.

use super::Reason;
use super::answer::{Gate, shut_if};
use crate::domain::ledger::Record;
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;

/// Returns the gate that is shut if the PVC of a recorded OSD was recreated, is missing, or is on another
/// PersistentVolume.
///
/// The OSD's data is then on another device than the one that an agent would get.
pub fn same_pvc(record: &Record, seen: &Observation) -> Gate {
    let Some(recorded) = &record.pvc else { return Gate::Open };
    let is_same = seen.kube.pvcs.get(&recorded.name).is_some_and(|pvc| recorded.is(pvc));
    shut_if(!is_same, || Reason::OtherPvc { osd: record.osd, pvc: recorded.name.clone() }).guarded()
}

/// Returns the gate that is not open while Rook rotates the key of an encrypted OSD: the rotation writes to
/// the LUKS header, and would remove a slot of the new one.
///
/// A rotation takes seconds. It starts only on the node of the OSD's pod, so none starts after the stop.
pub(super) fn no_rotation(osd: OsdId, seen: &Observation) -> Gate {
    let is_rotating = seen.kube.rotating.contains(&osd);
    if is_rotating { Gate::Unknown(Reason::KeyRotation { osd }) } else { Gate::Open }
}
