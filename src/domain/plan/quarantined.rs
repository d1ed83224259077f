//! What is done for quarantined OSDs: Ceph may heal without them, and nothing of osd-migrate's stays in use.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::domain::act::{Act, NodeAct};
use crate::domain::gate::{self, Gate};
use crate::domain::guard::{Guard, is_out};
use crate::domain::ledger::{Record, Strategy};
use crate::domain::next::{Next, Saving};
use crate::domain::observation::{JobState, KeyOwner, Pg};
use crate::domain::osd::{OsdId, PgId};
use crate::domain::removal::{Removal, RemovalRequest};
use crate::domain::temporary::{flags, marked_out};
use crate::domain::view::View;

/// Unsets the flags of a quarantined OSD, so that Ceph can heal without it, and marks it in if it was emptied
/// and is up.
pub(super) fn restore_flags(view: View<'_>) -> Option<Next> {
    let flags = if is_out(Guard::QuarantineLiftsNoout) { None } else { flags::restore(view) };
    flags.or_else(|| marked_out::restore(view)).or_else(|| in_again(view))
}

/// Saves that a quarantined OSD that was emptied gets data again: if a person takes it out later, it stays
/// out.
fn in_again(view: View<'_>) -> Option<Next> {
    let gets_data = |record: &&Record| {
        record.is_marked_out() && view.slot(record.osd).is_some_and(|slot| slot.up && slot.gets_data())
    };
    let mut record = view.ledger.quarantined().find(gets_data)?.clone();
    record.note_in();
    let osd = Some(record.osd);
    Some(Next::Save { ledger: view.ledger.with(record), osd, why: Saving::Up })
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

/// Returns the step for a quarantined OSD that is removed: by a request, or by hand.
pub(super) fn removed(view: View<'_>) -> Option<Next> {
    remove_dead(view).or_else(|| close_purged(view))
}

/// Goes on with a quarantined OSD that is dead, and that a person requested to remove: it is removed as any
/// dead OSD, once no PG needs it.
///
/// It may be the new OSD, whose disk died while it was filled. The record stays: it has the weights that are
/// restored if the request is withdrawn and the OSD comes up.
fn remove_dead(view: View<'_>) -> Option<Next> {
    if !view.policy.removes() || gate::held(view) != Gate::Open {
        return None;
    }
    let (record, request) = view.ledger.quarantined().find_map(|record| {
        let dead = record.dead_in(view.slot(record.osd)?)?;
        let request = view.seen.kube.requests.of(record.osd, dead)?;
        is_unwanted(record, request, view).then_some((record, request))
    })?;
    let (mut record, at, osd) = (record.clone(), view.seen.at, record.osd);
    let daemon = view.daemon(osd)?;
    let mut ledger = view.ledger.clone();
    if request.fsid != record.old {
        // The new OSD is the one that is removed, and it was not stopped yet.
        (record.old, record.new, record.left_to_rook_since) = (request.fsid, None, None);
        (record.down_since, record.noout_lifted) = (None, false);
        record.issued.clear();
        if let (Strategy::Directory { path, .. }, Some(work)) =
            (&record.strategy, ledger.nodes.get_mut(&record.node))
        {
            work.directories.insert(path.clone(), "the new OSD died before it was filled".to_owned());
        }
    }
    record.strategy =
        Strategy::Removal(Removal { directory: daemon.data_dir.clone(), ..Removal::by(request) });
    record.note_dead(at);
    (record.quarantine, record.closing, record.restarts) = (None, false, 0);
    record.blocked_since = None;
    record.deployment.clone_from(&daemon.uid);
    let why = Saving::DiskLeft { why: "the OSD is dead".to_owned() };
    record.note_milestone(why.code(), at);
    Some(Next::Save { ledger: ledger.with(record), osd: Some(osd), why })
}

/// Closes the record of a quarantined OSD that a person removed by hand: its id is purged, and its Deployment
/// deleted.
///
/// The record of a disk on which no OSD was created stays, so that no run tries it again. A removal goes on
/// with what is left to do for it.
fn close_purged(view: View<'_>) -> Option<Next> {
    let is_removed = |record: &&Record| {
        let exists = view.slot(record.osd).is_some() || view.daemon(record.osd).is_some();
        let is_untried = record.is_new() && record.new.is_none();
        !exists && !is_untried && !view.seen.kube.has_agent_at_work(&record.id)
    };
    let mut record = view.ledger.quarantined().find(is_removed)?.clone();
    (record.quarantine, record.closing) = (None, !record.is_removal());
    record.note_milestone(Saving::Purged.code(), view.seen.at);
    let osd = Some(record.osd);
    Some(Next::Save { ledger: view.ledger.with(record), osd, why: Saving::Purged })
}

/// Returns whether no PG needs the dead OSD of a record, and it can be removed as requested.
fn is_unwanted(record: &Record, request: &RemovalRequest, view: View<'_>) -> bool {
    let osd = record.osd;
    // Quarantined as a dead OSD, it goes on once in each run, and when a person has requested it again.
    let is_new = |removal: &Removal| {
        let since = record.quarantine.as_ref().map(|quarantine| quarantine.since);
        let is_refused = || view.ledger.refused(osd, &view.policy.run).is_some();
        !removal.dead || request.since > since || !is_refused()
    };
    let removable = gate::first_of([
        gate::removable(osd, request.keep_id, view.seen),
        gate::fits_place(osd, request.disk, view.seen),
        gate::not_ambiguous(osd, view.seen),
        gate::node_answers(osd, view.seen),
        gate::emptied(osd, &view.seen.ceph),
    ]);
    view.selects_to_remove(osd)
        && record.removal().is_none_or(is_new)
        && !view.seen.kube.has_agent_at_work(&record.id)
        && removable == Gate::Open
}

/// Minutes in which Ceph must begin to heal without a quarantined OSD.
///
/// The mons mark an OSD out when it has been down for `mon_osd_down_out_interval`, 10 minutes by default, and
/// its PGs get other OSDs then. An hour in which that did not happen has a cause, as `STALLED_MINUTES` of an
/// OSD that is emptied.
pub const UNHEALED_MINUTES: i64 = 60;

/// States of a PG that Ceph heals: it has another OSD for the PG, or is choosing one.
///
/// A PG that lacks an OSD, or space, has none of them.
const HEALS: [&str; 6] =
    ["recovering", "recovery_wait", "backfilling", "backfill_wait", "peering", "activating"];

/// Returns whether PGs lack a replica, and a quarantined OSD that osd-migrate stopped, and that is down,
/// served each unclean PG.
///
/// It makes no difference if the stop was reverted since, and the OSD did not come up.
///
/// A quarantined OSD that serves, the old one or the new one, backfills by itself.
pub(super) fn only_quarantined_missing(view: View<'_>) -> bool {
    only_missing(|_| false, view)
}

/// Returns the same, if such other PGs may be unclean, too.
fn only_missing(others: impl Fn(&Pg) -> bool, view: View<'_>) -> bool {
    let theirs: BTreeSet<_> = down(view).flat_map(|record| &record.pgs).collect();
    let lacks_any = || unclean(view).any(|(_, pg)| !gate::is_whole(pg, &view.seen.ceph));
    // Once Ceph has healed, the run goes on with the others.
    unclean(view).any(|(id, _)| theirs.contains(id))
        && lacks_any()
        && unclean(view).all(|(id, pg)| theirs.contains(id) || others(pg))
}

/// Returns whether waiting does not help: only PGs of quarantined OSDs are unclean, and Ceph does not heal
/// them.
///
/// Ceph has had the time to mark these OSDs out, and none of the PGs recovers.
pub(super) fn stay_unclean(view: View<'_>) -> bool {
    let since_down = |record: &Record| view.slot(record.osd).and_then(|slot| slot.down_since);
    let since = |record: &Record| record.quarantine.as_ref().map(|quarantine| quarantine.since);
    let is_recent = |at: DateTime<Utc>| (view.seen.at - at).num_minutes() < UNHEALED_MINUTES;
    let heals = |pg: &Pg| HEALS.iter().any(|word| pg.state.contains(*word));
    let is_away =
        |osd: OsdId| view.ledger.records.get(&osd).is_some_and(|record| record.quarantine.is_some());
    // Since its stop, CRUSH places PGs on such an OSD that it never served: of a split, of a new pool. One
    // that has not reported yet is not known to lack anything.
    let lacks_theirs = |pg: &Pg| !pg.up.is_empty() && gate::is_short_without(is_away, pg, &view.seen.ceph);
    only_missing(lacks_theirs, view)
        && !down(view).any(|record| since(record).into_iter().chain(since_down(record)).any(is_recent))
        && !unclean(view).any(|(_, pg)| heals(pg))
}

fn down(view: View<'_>) -> impl Iterator<Item = &Record> {
    view.ledger.quarantined().filter(move |record| !view.is_up(record.osd))
}

fn unclean(view: View<'_>) -> impl Iterator<Item = (&PgId, &Pg)> {
    view.seen.ceph.pgs.iter().filter(|(_, pg)| !gate::is_clean(pg))
}
