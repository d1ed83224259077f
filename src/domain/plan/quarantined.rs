//! What is done for quarantined OSDs: Ceph may heal without them, and nothing of osd-migrate's stays in use.

use crate::domain::act::{Act, CephAct, NodeAct};
use crate::domain::guard::{Guard, is_out};
use crate::domain::next::Next;
use crate::domain::observation::{JobState, KeyOwner};
use crate::domain::view::View;

/// Lifts the noout of a quarantined OSD after its stop, so that Ceph can heal without it.
///
/// Its noin is lifted when it is up: noin preserves the reweight of an OSD that boots for the first time.
pub(super) fn lift_noout(view: View<'_>) -> Option<Next> {
    if is_out(Guard::QuarantineLiftsNoout) {
        return None;
    }
    view.ledger.quarantined().find_map(|record| {
        let slot = view.slot(record.osd)?;
        let (noout, noin) = record.flags_to_lift(slot.noout, slot.noin);
        let noin = noin && slot.up;
        (noout || noin).then_some(Next::Do(Act::Ceph(CephAct::UnsetOsdFlags {
            osd: record.osd,
            noout,
            noin,
        })))
    })
}

/// Deletes the key of a quarantined OSD's node Job after the Job has ended: the OSD may stay quarantined for
/// months.
///
/// The Job stays, because the quarantine message names its log.
pub(super) fn delete_key(view: View<'_>) -> Option<Next> {
    if is_out(Guard::QuarantineKeyDeleted) {
        return None;
    }
    let kube = &view.seen.kube;
    let is_in_use =
        |name: &String| kube.node_jobs.iter().any(|job| job.name == *name && job.state != JobState::Ended);
    view.ledger.quarantined().find_map(|record| {
        let is_unused = |(job, owner): &(&String, &KeyOwner)| owner.record == record.id && !is_in_use(job);
        let (job, owner) = kube.keys.iter().find(is_unused)?;
        Some(Next::Do(Act::Node(NodeAct::DeleteKey {
            osd: record.osd,
            job: job.clone(),
            uid: owner.uid.clone(),
        })))
    })
}
