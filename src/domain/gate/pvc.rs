//! Gates of an OSD on a PersistentVolumeClaim.

use super::Reason;
use super::answer::Gate;
use crate::domain::ledger::{Record, RecordedPvc};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;

/// Returns the gate that is shut if the PVC of a recorded OSD was recreated, is missing, or is on another
/// PersistentVolume.
///
/// The OSD's data is then on another device than the one that an agent would get.
pub fn same_pvc(record: &Record, seen: &Observation) -> Gate {
    let Some(recorded) = &record.pvcs else { return Gate::Open };
    let is_same = |pvc: &RecordedPvc| seen.kube.pvcs.get(&pvc.name).is_some_and(|found| pvc.is(found));
    let other = recorded.iter().map(|(_, pvc)| pvc).find(|pvc| !is_same(pvc));
    other
        .map_or(Gate::Open, |pvc| Gate::Shut(Reason::OtherPvc { osd: record.osd, pvc: pvc.name.clone() }))
        .guarded()
}

/// Returns the gate that is not open while Rook rotates the key of an encrypted OSD: the rotation writes to
/// the LUKS header, and would remove a slot of the new one.
///
/// A rotation takes seconds. It starts only on the node of the OSD's pod, so none starts after that pod is
/// gone.
pub(super) fn no_rotation(osd: OsdId, seen: &Observation) -> Gate {
    let is_rotating = seen.kube.rotating.contains(&osd);
    if is_rotating { Gate::Unknown(Reason::KeyRotation { osd }) } else { Gate::Open }
}
