//! What is done for quarantined OSDs: Ceph may heal without them, and nothing of osd-migrate's stays in use.

use std::collections::BTreeSet;

use crate::domain::act::{Act, NodeAct};
use crate::domain::gate::{self, Gate};
use crate::domain::guard::{Guard, is_out};
use crate::domain::ledger::Record;
use crate::domain::next::{Next, Saving};
use crate::domain::observation::{JobState, KeyOwner};
use crate::domain::removal::Removal;
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

/// Lets go of a quarantined OSD that is dead, and that a person requested to remove: it is removed as any
/// dead OSD, once no PG needs it.
///
/// A removal goes on with its record, which has the CRUSH weight that is restored if the request is
/// withdrawn.
pub(super) fn leave_to_removal(view: View<'_>) -> Option<Next> {
    if !view.policy.removes() || gate::held(view) != Gate::Open {
        return None;
    }
    let record = view.ledger.quarantined().find(|record| is_dead_and_unwanted(record, view))?;
    let (mut record, osd) = (record.clone(), record.osd);
    record.quarantine = None;
    (record.saved_at, record.blocked_since) = (Some(view.seen.at), None);
    let why = if record.is_removal() {
        record.note_dead(view.seen.at);
        Saving::DiskLeft { why: "the OSD is dead".to_owned() }
    } else {
        record.closing = true;
        Saving::Withdrawn
    };
    record.milestones.push((why.code().to_owned(), view.seen.at));
    Some(Next::Save { ledger: view.ledger.with(record), osd: Some(osd), why })
}

/// Returns whether the old OSD is down and without data that a PG needs, and a person requested its removal.
fn is_dead_and_unwanted(record: &Record, view: View<'_>) -> bool {
    let osd = record.osd;
    let request = view.seen.kube.requests.of(osd, record.old);
    let is_as_recorded =
        |removal: &Removal| request.is_some_and(|request| removal.is_as_in(request) && !removal.dead);
    request.is_some()
        && view.selects_to_remove(osd)
        && record.removal().is_none_or(is_as_recorded)
        && view.slot(osd).is_some_and(|slot| slot.fsid == Some(record.old) && !slot.up)
        && gate::emptied(osd, &view.seen.ceph) == Gate::Open
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
