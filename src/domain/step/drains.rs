//! How many OSDs a drain of a node may take down while one of ours is stopped: none. Rook's PodDisruptionBudget counts an OSD whose
//! Deployment is at 0 as none that is missing. See `docs/development/adr/0021-drains-wait-for-us.md`.

use chrono::{DateTime, Utc};

use super::INTENT_MINUTES;
use crate::domain::act::{Act, KubeAct};
use crate::domain::gate::{Gate, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{FormerPdb, Ledger, Record};
use crate::domain::next::{Next, Saving};
use crate::domain::observation::{Observation, OsdPdb};
use crate::domain::osd::OsdId;
use crate::domain::phase;

/// Minutes that the pod of a finished OSD has to be ready: probes ask each 10 s. One that never is does not keep drains off for good.
const READY_MINUTES: i64 = 1;

/// Minutes that a stop waits for Rook to count every OSD: it looks each 30 s where it leaves one out (1.20.6).
const COUNTED_MINUTES: i64 = 1;

/// What is next about drains, whatever phase an OSD is in: kept off while one is past its stop; free as they were once none is, nor
/// is about to be stopped.
pub fn next(ledger: &Ledger, seen: &Observation) -> Option<Next> {
    // What was restored for a finished OSD is not limited once more because its pod is not ready again.
    let at_work = |record: &&Record| !record.closing || is_waited_for(record, ledger, seen);
    let is_meant = |record: &&Record| record.stop_intended_at.is_some() && at_work(record);
    let open: Vec<_> = ledger.in_flight().filter(is_meant).collect();
    if let Some(stopped) = open.iter().find(|record| is_committed(record, seen)) {
        let are_drains_blocked = passes(Guard::DrainsBlocked, are_drains_blocked(stopped.osd, seen));
        // Where we may not make our own, the OSD is the sooner up again the less it waits for that.
        let is_tried = !are_drains_blocked && seen.kube.pdb_rejected.is_none();
        return is_tried.then(|| make_own(stopped));
    }
    let is_about_to_stop = open.iter().any(|record| is_about_to_stop(record, seen));
    if is_about_to_stop { None } else { restore_pdb(ledger, seen) }
}

/// Open once Rook's budget counts every other OSD that is up; in any case if nobody looks, or a minute after the device was proven. An
/// OSD Deployment without labels of its topology, as legacy ones are, is enough that Rook does not look.
///
/// At Rook's own budget of 0 drains wait; beside one of ours they end. And a Rook that finds nothing to count any more sleeps: else it
/// looks while ours is stopped, and makes budgets of hosts.
pub(super) fn counted(record: &Record, seen: &Observation) -> Gate {
    let is_able = seen.kube.daemons.values().all(|daemon| daemon.names_topology);
    let inventories = is_able && seen.kube.running_operator().is_some();
    let is_recent = is_within(COUNTED_MINUTES, &Saving::Proof, record, seen);
    let left_out = seen.kube.osd_pdb.as_ref().and_then(|pdb| left_out(pdb, record.osd, seen));
    left_out
        .filter(|_| inventories && is_recent)
        .map_or(Gate::Open, |osd| Gate::Unknown(Reason::PdbExcludesOsd { osd }))
}

/// Shut while drains can't be kept off, since Rook's budget is of no use, and one of our own was refused.
pub(super) fn allowed(osd: OsdId, seen: &Observation) -> Gate {
    let needs_own = seen.kube.own_pdb.is_none() && rooks(osd, seen).is_none();
    let refused = seen.kube.pdb_rejected.as_ref().filter(|_| needs_own);
    refused.map_or(Gate::Open, |why| Gate::Shut(Reason::PdbRejected { why: why.clone() }))
}

/// What is next until no OSD but this one, which is about to be stopped, may be evicted.
///
/// What Rook's budget was is saved before each time that it is limited, with the generation on which that is to be done: who decided
/// before that save that nothing is left to put back can't write it down any more.
pub(super) fn block_drains(record: &Record, ledger: &Ledger, seen: &Observation) -> Option<Next> {
    if seen.kube.own_pdb.is_some() {
        return None;
    }
    let Some(found) = rooks(record.osd, seen) else {
        return Some(make_own(record));
    };
    let (saved, last) = (&ledger.run.pdb, &ledger.run.last_pdb);
    if found.max_unavailable == 0 {
        // By a runner that was frozen before it did it, and which was taken for nobody meanwhile.
        let late = last.as_ref().filter(|last| saved.is_none() && is_ours(found, last))?;
        return Some(save(Some(late.clone()), ledger, Saving::Pdb));
    }
    if !passes(Guard::PdbSavedFirst, saved.as_ref().is_some_and(|was| is_as_saved(found, was))) {
        let OsdPdb { max_unavailable, uid, generation, .. } = found.clone();
        let now = FormerPdb { max_unavailable, uid: Some(uid), generation: Some(generation) };
        return Some(save(Some(now), ledger, Saving::Pdb));
    }
    Some(write(found, 0))
}

/// What is next until it is as it was. What somebody else wrote since, or took away, is theirs.
fn restore_pdb(ledger: &Ledger, seen: &Observation) -> Option<Next> {
    if let Some(uid) = &seen.kube.own_pdb {
        return Some(Next::Do(Act::Kube(KubeAct::DeletePdb { uid: uid.clone() })));
    }
    let (saved, last) = (&ledger.run.pdb, &ledger.run.last_pdb);
    let was = saved.as_ref().or(last.as_ref())?;
    if let Some(found) = seen.kube.osd_pdb.as_ref().filter(|found| is_ours(found, was)) {
        return Some(write(found, was.max_unavailable));
    }
    saved.is_some().then(|| save(None, ledger, Saving::PdbRestored))
}

/// A finished OSD whose Deployment has no ready pod yet, while we keep drains off. Put back now, the budget would wake Rook, which
/// leaves such an OSD out of it and restarts it for its own words: for seconds another one could be evicted beside it (seen with 1.20.6).
pub(super) fn is_waited_for(record: &Record, ledger: &Ledger, seen: &Observation) -> bool {
    let is_ours = ledger.run.pdb.is_some() || seen.kube.own_pdb.is_some();
    is_ours && is_getting_ready(record, seen)
}

fn is_getting_ready(record: &Record, seen: &Observation) -> bool {
    let is_recent = is_within(READY_MINUTES, &Saving::Closing, record, seen);
    let daemon = seen.kube.daemons.get(&record.osd);
    record.closing && is_recent && daemon.is_some_and(|daemon| daemon.replicas > 0 && !daemon.rolled_out)
}

/// Less than so many minutes ago that was saved.
fn is_within(minutes: i64, saved: &Saving, record: &Record, seen: &Observation) -> bool {
    let last = record.milestones.iter().rev().find(|(what, _)| what == saved.word());
    last.is_some_and(|(_, at)| (seen.at - *at).num_minutes() < minutes)
}

/// No OSD but this one may be evicted: by a budget of our own, or by Rook's, whoever wrote it.
fn are_drains_blocked(osd: OsdId, seen: &Observation) -> bool {
    seen.kube.own_pdb.is_some() || rooks(osd, seen).is_some_and(|pdb| pdb.max_unavailable == 0)
}

/// Rook's budget, where it is there and counts every other OSD that is up. One that it leaves out could be evicted whatever it says.
fn rooks(osd: OsdId, seen: &Observation) -> Option<&OsdPdb> {
    seen.kube.osd_pdb.as_ref().filter(|pdb| left_out(pdb, osd, seen).is_none())
}

/// An OSD that is up, which the budget does not count; not this one.
fn left_out(pdb: &OsdPdb, osd: OsdId, seen: &Observation) -> Option<OsdId> {
    let is_up = |other: &OsdId| seen.ceph.slots.get(other).is_some_and(|slot| slot.up);
    pdb.left_out.iter().copied().find(|other| *other != osd && is_up(other))
}

/// Nobody has written it since it was saved, we neither.
fn is_as_saved(found: &OsdPdb, was: &FormerPdb) -> bool {
    is_it(found, was)
        && was.max_unavailable == found.max_unavailable
        && was.generation == Some(found.generation)
}

/// It is at 0 by us, and nobody has written it since.
fn is_ours(found: &OsdPdb, was: &FormerPdb) -> bool {
    let is_next = was.generation.is_none_or(|generation| found.generation == generation + 1);
    is_it(found, was) && found.max_unavailable == 0 && was.max_unavailable > 0 && is_next
}

/// Not another one, that was made anew.
fn is_it(found: &OsdPdb, was: &FormerPdb) -> bool {
    was.uid.as_ref().is_none_or(|uid| *uid == found.uid)
}

fn is_committed(record: &Record, seen: &Observation) -> bool {
    !phase::facts(record, true, seen).before_stop()
}

/// What the record is about to need is not put back, however long ago the intent was saved: an iteration may take minutes.
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

/// What it was, or that it is as it was: then what is forgotten stays the last that there was.
fn save(pdb: Option<FormerPdb>, ledger: &Ledger, why: Saving) -> Next {
    let mut ledger = ledger.clone();
    ledger.run.last_pdb = std::mem::replace(&mut ledger.run.pdb, pdb).filter(|_| ledger.run.pdb.is_none());
    Next::Save { ledger, osd: None, why }
}
