//! Finds what no open record refers to: marks of a lost ledger, objects that a frozen runner created too
//! late, flags of quarantined OSDs.

use crate::domain::act::{Act, CephAct, KubeAct, NodeAct};
use crate::domain::inspection::RecordId;
use crate::domain::next::{Halt, Next, Wait};
use crate::domain::observation::{JobState, KeyOwner, NodeJob, Observation};
use crate::domain::osd::OsdId;
use crate::domain::phase::is_committed;
use crate::domain::step::{is_late, is_silent};
use crate::domain::view::View;

/// Returns a halt if a mark of osd-migrate has no record: the ledger was lost.
pub(super) fn lost_record(view: View<'_>) -> Option<Halt> {
    let known = |id: &RecordId| view.ledger.records.values().any(|record| record.id == *id);
    let stopped = view.seen.kube.daemons.values().find_map(|daemon| {
        let id = daemon.stopped_by.as_ref().filter(|id| !known(id))?;
        Some(Halt::LedgerLost { place: format!("Deployment {}", daemon.name), record: id.clone() })
    });
    let fence = || {
        let known = [view.our_fence(), view.ledger.run.last_fence.as_deref()];
        let value = view.seen.kube.fence.as_deref().filter(|value| !known.contains(&Some(*value)))?;
        let id = value.strip_prefix("osd-migrate-")?;
        Some(Halt::LedgerLost { place: "the CephCluster".to_owned(), record: RecordId(id.to_owned()) })
    };
    stopped.or_else(fence)
}

/// Lifts the noout of a quarantined OSD after its stop, so that Ceph can heal without it.
///
/// Its noin is lifted when it is up: noin preserves the reweight of an OSD that boots for the first time.
pub(super) fn lift_noout_of_quarantined(view: View<'_>) -> Option<Next> {
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
pub(super) fn delete_key_of_quarantined(view: View<'_>) -> Option<Next> {
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

/// Deletes objects that were created for a closed record: a frozen runner created them after another one had
/// closed it.
///
/// They are deleted after their agent has ended. A backup of a Deployment is deleted only if the OSD's own
/// Deployment exists and runs. Otherwise the backup is the last copy.
pub(super) fn delete_orphans(view: View<'_>) -> Option<Next> {
    let kube = &view.seen.kube;
    // A frozen runner set this fence again. An older fence can't come back: a later one changed the
    // CephCluster.
    let is_late = |value: &&String| {
        view.ledger.run.last_fence.as_ref() == Some(*value) && view.ledger.run.fence.as_ref() != Some(*value)
    };
    if let Some(value) = kube.fence.as_ref().filter(is_late) {
        return Some(Next::Do(Act::Kube(KubeAct::Unfence { value: value.clone() })));
    }
    let is_misplaced = |id: &RecordId| !view.ledger.records.values().any(|record| record.id == *id);
    let jobs = kube.node_jobs.iter().filter(|job| is_misplaced(&job.record));
    if let Some(job) = jobs.clone().find(|job| job.state != JobState::Ended) {
        return Some(unended(job, view.seen));
    }
    let runs = |osd: &OsdId| {
        kube.daemons.get(osd).is_some_and(|daemon| daemon.stopped_by.is_none() && daemon.replicas > 0)
    };
    let of_jobs = jobs.map(|job| (job.osd, &job.record));
    let of_reports = kube.reports.values().map(|report| (report.osd, &report.record));
    let of_kept = kube.backups.iter().map(|(osd, record)| (*osd, record));
    let mut orphans = of_jobs.chain(of_reports).chain(of_kept).filter(|(_, id)| is_misplaced(id));
    let (osd, record) = orphans.find(|(osd, record)| kube.backups.get(osd) != Some(*record) || runs(osd))?;
    Some(Next::Do(Act::Kube(KubeAct::CleanUp { osd, record: record.clone() })))
}

/// Handles an agent of a closed record that has not ended.
///
/// If its container never started, dropping it loses nothing.
fn unended(job: &NodeJob, seen: &Observation) -> Next {
    let (osd, name) = (job.osd, job.name.clone());
    match job.state {
        JobState::Waiting if is_late(job, seen) => {
            Next::Do(Act::Node(NodeAct::DropAgent { job: name, uid: job.uid.clone() }))
        }
        JobState::Running if is_silent(job, seen) => Next::Wait(Wait::AgentSilent { osd, job: name }),
        JobState::Waiting | JobState::Running | JobState::Ended => {
            let (task, trouble) = (job.task, job.trouble.clone());
            Next::Wait(Wait::Agent { osd, task, job: name, trouble })
        }
    }
}

/// Returns whether this wait delays a stopped OSD that it does not concern.
///
/// Nothing else continues meanwhile.
pub(super) fn holds_up_another(wait: &Wait, view: View<'_>) -> bool {
    let (Wait::Agent { osd, .. } | Wait::AgentSilent { osd, .. }) = wait else { return false };
    let is_open = view.ledger.in_flight().any(|record| record.osd == *osd);
    !is_open && view.ledger.in_flight().any(|record| is_committed(record, view.seen))
}
