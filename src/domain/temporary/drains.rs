//! Limits how many OSDs a node drain may stop while osd-migrate has an OSD stopped: none.
//!
//! Rook's PodDisruptionBudget does not count an OSD whose Deployment is at 0 as missing. See
//! `docs/development/adr/0021-drains-wait.md`.

use chrono::{DateTime, Utc};

use crate::domain::act::{Act, KubeAct};
use crate::domain::gate::{Gate, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{FormerPdb, Ledger, Record};
use crate::domain::next::{Next, Saving};
use crate::domain::observation::{Observation, OsdPdb};
use crate::domain::osd::OsdId;
use crate::domain::phase;
use crate::domain::view::View;

/// Minutes after which no call from the time of the intent can still be on its way.
///
/// A write has 35 seconds.
pub const INTENT_MINUTES: i64 = 1;

/// Minutes that the pod of a finished OSD has to become ready: probes run every 10 s.
///
/// A pod that never becomes ready does not block drains permanently.
const READY_MINUTES: i64 = 1;

/// Minutes that a stop waits for Rook to count every OSD: Rook checks every 30 s while it excludes one
/// (1.20.6).
const COUNTED_MINUTES: i64 = 1;

/// Returns the next step about drains, whatever the phase of an OSD.
///
/// Drains are blocked while an OSD is committed. They are restored once no OSD is committed or about to be
/// stopped.
pub(crate) fn next(view: View<'_>) -> Option<Next> {
    // A PodDisruptionBudget that was restored for a finished OSD is not limited again because the OSD's pod
    // is not ready again.
    let at_work = |record: &&Record| !record.closing || is_waited_for(record, view);
    let is_meant = |record: &&Record| record.stop_intended_at.is_some() && at_work(record);
    let open: Vec<_> = view.ledger.in_flight().filter(is_meant).collect();
    if let Some(stopped) = open.iter().find(|record| is_committed(record, view.seen)) {
        let are_drains_blocked = passes(Guard::DrainsBlocked, are_drains_blocked(stopped.osd, view.seen));
        // If osd-migrate may not create its own PodDisruptionBudget, the OSD is up again sooner without
        // waiting for one.
        let is_tried = !are_drains_blocked && view.seen.kube.pdb_rejected.is_none();
        return is_tried.then(|| make_own(stopped));
    }
    let is_about_to_stop = open.iter().any(|record| is_about_to_stop(record, view.seen));
    if is_about_to_stop { None } else { restore(view) }
}

/// Returns an open gate once Rook's PodDisruptionBudget counts every other OSD that is up.
///
/// The gate is also open if no running Rook checks, or a minute after the device was proven. A single OSD
/// Deployment without topology labels, as legacy Deployments are, is enough for Rook not to check.
///
/// Drains wait while Rook's own PodDisruptionBudget is 0. They end if osd-migrate's own exists alongside it.
/// A Rook that has nothing left to count sleeps. Otherwise it would check while the OSD is stopped, and
/// create PodDisruptionBudgets per host.
pub(crate) fn counted(record: &Record, seen: &Observation) -> Gate {
    let is_able = seen.kube.daemons.values().all(|daemon| daemon.names_topology);
    let inventories = is_able && seen.kube.running_operator().is_some();
    let is_recent = is_within(COUNTED_MINUTES, &Saving::Proof, record, seen);
    let left_out = seen.kube.osd_pdb.as_ref().and_then(|pdb| left_out(pdb, record.osd, seen));
    left_out
        .filter(|_| inventories && is_recent)
        .map_or(Gate::Open, |osd| Gate::Unknown(Reason::PdbExcludesOsd { osd }))
}

/// Returns a shut gate while drains can't be blocked: a change of Rook's PodDisruptionBudget, or
/// osd-migrate's own one, was refused.
pub(crate) fn allowed(osd: OsdId, seen: &Observation) -> Gate {
    let refused = seen.kube.pdb_rejected.as_ref().filter(|_| !are_drains_blocked(osd, seen));
    refused.map_or(Gate::Open, |why| Gate::Shut(Reason::PdbRejected { why: why.clone() }))
}

/// Returns the next step until no OSD except this one, which is about to be stopped, may be evicted.
///
/// The value of Rook's PodDisruptionBudget is saved before each time that it is limited, with the generation
/// on which it is to be limited. A runner that decided before that save that nothing is left to restore can
/// no longer write that decision.
pub(crate) fn change(record: &Record, view: View<'_>) -> Option<Next> {
    if view.seen.kube.own_pdb.is_some() {
        return None;
    }
    let Some(found) = rooks(record.osd, view.seen) else {
        return Some(make_own(record));
    };
    let (saved, last) = (&view.ledger.run.pdb, &view.ledger.run.last_pdb);
    if found.max_unavailable == 0 {
        // A frozen runner limited the PodDisruptionBudget late, after its entry was cleared as unused.
        let late = last.as_ref().filter(|last| saved.is_none() && is_ours(found, last))?;
        return Some(save(Some(late.clone()), view.ledger, Saving::Pdb));
    }
    if !passes(Guard::PdbSavedFirst, saved.as_ref().is_some_and(|was| is_as_saved(found, was))) {
        let OsdPdb { max_unavailable, uid, generation, .. } = found.clone();
        let now = FormerPdb { max_unavailable, uid: Some(uid), generation: Some(generation) };
        return Some(save(Some(now), view.ledger, Saving::Pdb));
    }
    Some(write(found, 0))
}

/// Returns the next step until the PodDisruptionBudgets are restored.
///
/// External changes or deletions since then stay.
pub(crate) fn restore(view: View<'_>) -> Option<Next> {
    if let Some(uid) = &view.seen.kube.own_pdb {
        return Some(Next::Do(Act::Kube(KubeAct::DeletePdb { uid: uid.clone() })));
    }
    let (saved, last) = (&view.ledger.run.pdb, &view.ledger.run.last_pdb);
    let was = saved.as_ref().or(last.as_ref())?;
    if let Some(found) = view.seen.kube.osd_pdb.as_ref().filter(|found| is_ours(found, was)) {
        return Some(write(found, was.max_unavailable));
    }
    saved.is_some().then(|| save(None, view.ledger, Saving::PdbRestored))
}

/// Returns whether a finished OSD's Deployment has no ready pod yet while osd-migrate blocks drains.
///
/// Restored now, the PodDisruptionBudget would wake Rook, which excludes such an OSD from it and restarts it
/// for its own settings. For seconds another OSD could be evicted in parallel (seen with 1.20.6).
pub(crate) fn is_waited_for(record: &Record, view: View<'_>) -> bool {
    let is_ours = view.ledger.run.pdb.is_some() || view.seen.kube.own_pdb.is_some();
    is_ours && is_getting_ready(record, view.seen)
}

fn is_getting_ready(record: &Record, seen: &Observation) -> bool {
    let is_recent = is_within(READY_MINUTES, &Saving::Closing, record, seen);
    let daemon = seen.kube.daemons.get(&record.osd);
    record.closing && is_recent && daemon.is_some_and(|daemon| daemon.replicas > 0 && !daemon.rolled_out)
}

/// Returns whether the milestone was saved less than this many minutes ago.
fn is_within(minutes: i64, saved: &Saving, record: &Record, seen: &Observation) -> bool {
    let last = record.milestones.iter().rev().find(|(what, _)| what == saved.code());
    last.is_some_and(|(_, at)| (seen.at - *at).num_minutes() < minutes)
}

/// Returns whether no OSD except this one may be evicted: by osd-migrate's PodDisruptionBudget, or by Rook's
/// at 0, whichever client wrote it.
fn are_drains_blocked(osd: OsdId, seen: &Observation) -> bool {
    seen.kube.own_pdb.is_some() || rooks(osd, seen).is_some_and(|pdb| pdb.max_unavailable == 0)
}

/// Returns Rook's PodDisruptionBudget if it exists and counts every other OSD that is up.
///
/// An excluded OSD could be evicted whatever it says.
fn rooks(osd: OsdId, seen: &Observation) -> Option<&OsdPdb> {
    seen.kube.osd_pdb.as_ref().filter(|pdb| left_out(pdb, osd, seen).is_none())
}

/// Returns another OSD that is up and that the PodDisruptionBudget excludes.
fn left_out(pdb: &OsdPdb, osd: OsdId, seen: &Observation) -> Option<OsdId> {
    let is_up = |other: &OsdId| seen.ceph.slots.get(other).is_some_and(|slot| slot.up);
    pdb.left_out.iter().copied().find(|other| *other != osd && is_up(other))
}

/// Returns whether no client, osd-migrate included, has written the PodDisruptionBudget since it was saved.
fn is_as_saved(found: &OsdPdb, was: &FormerPdb) -> bool {
    is_it(found, was)
        && was.max_unavailable == found.max_unavailable
        && was.generation == Some(found.generation)
}

/// Returns whether osd-migrate set the PodDisruptionBudget to 0, and no other client has written it since.
fn is_ours(found: &OsdPdb, was: &FormerPdb) -> bool {
    let is_next = was.generation.is_none_or(|generation| found.generation == generation + 1);
    is_it(found, was) && found.max_unavailable == 0 && was.max_unavailable > 0 && is_next
}

/// Returns whether the PodDisruptionBudget is the recorded one and was not recreated.
fn is_it(found: &OsdPdb, was: &FormerPdb) -> bool {
    was.uid.as_ref().is_none_or(|uid| *uid == found.uid)
}

fn is_committed(record: &Record, seen: &Observation) -> bool {
    !phase::facts(record, true, seen).before_stop()
}

/// Returns whether the record's OSD is about to be stopped.
///
/// Its preparations are not restored, even if the intent is old: an iteration may take minutes.
fn is_about_to_stop(record: &Record, seen: &Observation) -> bool {
    let is_recent = |at: DateTime<Utc>| (seen.at - at).num_minutes() < INTENT_MINUTES;
    let holds_still = |at| !is_out(Guard::IntentOutlivesSlowIterations) || is_recent(at);
    record.stop_intended_at.is_some_and(holds_still) && record.stop_reverted.is_none() && !record.closing
}

fn make_own(record: &Record) -> Next {
    Next::Do(Act::Kube(KubeAct::CreatePdb { osd: record.osd, record: record.id.clone() }))
}

fn write(found: &OsdPdb, max_unavailable: u32) -> Next {
    let (uid, generation) = (found.uid.clone(), found.generation);
    Next::Do(Act::Kube(KubeAct::LimitDrains { uid, generation, max_unavailable }))
}

/// Saves the former PodDisruptionBudget, or `None` after it was restored.
///
/// The cleared entry stays as the last one.
fn save(pdb: Option<FormerPdb>, ledger: &Ledger, why: Saving) -> Next {
    let mut ledger = ledger.clone();
    ledger.run.last_pdb = std::mem::replace(&mut ledger.run.pdb, pdb).filter(|_| ledger.run.pdb.is_none());
    Next::Save { ledger, osd: None, why }
}

/// Returns whether drains are blocked by osd-migrate.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    let run = &view.ledger.run;
    let is_ours =
        |found: &OsdPdb| [&run.pdb, &run.last_pdb].into_iter().flatten().any(|was| is_ours(found, was));
    view.seen.kube.own_pdb.is_some() || view.seen.kube.osd_pdb.as_ref().is_some_and(is_ours)
}
