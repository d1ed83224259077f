//! What is done for quarantined OSDs: Ceph may heal without them, and nothing of osd-migrate's stays in use.

use std::collections::BTreeSet;

use crate::domain::act::{Act, NodeAct};
use crate::domain::gate;
use crate::domain::guard::{Guard, is_out};
use crate::domain::next::Next;
use crate::domain::observation::{JobState, KeyOwner};
use crate::domain::temporary::{flags, marked_out};
use crate::domain::view::View;

/// Unsets the flags of a quarantined OSD, so that Ceph can heal without it, and marks it in if it was emptied
/// and is up.
pub(super) fn restore_flags(view: View<'_>) -> Option<Next> {
    let flags = if is_out(Guard::QuarantineLiftsNoout) { None } else { flags::restore(view) };
    flags.or_else(|| marked_out::restore(view))
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

/// Returns whether every unclean PG was served by a quarantined OSD that osd-migrate stopped, and that is
/// down.
///
/// Waiting does not end that. It makes no difference if the stop was reverted since, and the OSD did not come
/// up.
///
/// A quarantined OSD that serves, the old one or the new one, backfills by itself.
pub(super) fn only_quarantined_missing(view: View<'_>) -> bool {
    let down = view.ledger.quarantined().filter(|record| !view.is_up(record.osd));
    let theirs: BTreeSet<_> = down.flat_map(|record| &record.pgs).collect();
    let unclean = view.seen.ceph.pgs.iter().filter(|(_, pg)| !gate::is_clean(pg));
    !theirs.is_empty() && unclean.into_iter().all(|(id, _)| theirs.contains(id))
}
