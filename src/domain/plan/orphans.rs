//! Orphaned leftovers: objects that a frozen runner created for a record after it was closed.

use super::rest::Rest;
use crate::domain::act::{Act, KubeAct, NodeAct};
use crate::domain::drift;
use crate::domain::guard::{Guard, is_out};
use crate::domain::inspection::RecordId;
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{JobState, NodeJob, Observation};
use crate::domain::osd::OsdId;
use crate::domain::phase::is_committed;
use crate::domain::step::{is_late, is_silent};
use crate::domain::temporary::fence;
use crate::domain::view::View;

/// Deletes orphaned leftovers, and waits for their agents before anything is started.
///
/// The node of such an agent may be permanently gone. So a stopped OSD on another node does not wait for it,
/// and a silent agent delays only its own OSD.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    match delete_orphans(view).filter(|_| !is_out(Guard::OrphansDeleted))? {
        Next::Wait(wait) if holds_up_another(&wait, view) => {
            rest.wait = Some(Next::Wait(wait));
            None
        }
        Next::Wait(Wait::AgentSilent { .. }) => None,
        next @ (Next::Wait(_) | Next::Save { .. } | Next::Do(_) | Next::Finished(_) | Next::Halt(_)) => {
            Some(next)
        }
    }
}

/// Deletes objects that were created for a closed record: a frozen runner created them after another one had
/// closed it.
///
/// They are deleted after their agent has ended. A silent agent, whose pod may never end, is waited for last:
/// it holds up no objects of other records. A backup of a Deployment is deleted only if the OSD's own
/// Deployment exists and runs. Otherwise the backup is the last copy. It stays, too, if the OSD gets no data.
fn delete_orphans(view: View<'_>) -> Option<Next> {
    let kube = &view.seen.kube;
    if let Some(unfence) = fence::restore_late(view) {
        return Some(unfence);
    }
    let is_misplaced = |id: &RecordId| !view.ledger.has(id);
    let jobs = kube.node_jobs.iter().filter(|job| is_misplaced(&job.record));
    let unended = jobs.clone().filter(|job| job.state != JobState::Ended);
    let (silent, others): (Vec<_>, Vec<_>) =
        unended.partition(|job| job.state == JobState::Running && is_silent(job, view.seen));
    if let Some(job) = others.first() {
        return Some(end(job, view.seen));
    }
    let is_kept = |id: &RecordId| silent.iter().any(|job| job.record == *id);
    let runs = |osd: &OsdId| {
        !drift::is_left_empty(*osd, view.ledger, view.seen)
            && kube.daemons.get(osd).is_some_and(|daemon| daemon.stopped_by.is_none() && daemon.replicas > 0)
    };
    let of_jobs = jobs.map(|job| (job.osd, &job.record));
    let of_reports = kube.reports.values().map(|report| (report.osd, &report.record));
    let of_kept = kube.backups.iter().map(|(osd, record)| (*osd, record));
    let all = of_jobs.chain(of_reports).chain(of_kept);
    let mut orphans = all.filter(|(_, id)| is_misplaced(id) && !is_kept(id));
    let orphan = orphans.find(|(osd, record)| kube.backups.get(osd) != Some(*record) || runs(osd));
    let clean_up = |(osd, record): (OsdId, &RecordId)| {
        Next::Do(Act::Kube(KubeAct::CleanUp { osd, record: record.clone() }))
    };
    let wait = |job: &&NodeJob| Next::Wait(Wait::AgentSilent { osd: job.osd, job: job.name.clone() });
    orphan.map(clean_up).or_else(|| silent.first().map(wait))
}

/// Waits for an agent of a closed record, or drops it.
///
/// If its container never started, dropping it loses nothing.
fn end(job: &NodeJob, seen: &Observation) -> Next {
    let (osd, name) = (job.osd, job.name.clone());
    match job.state {
        JobState::Waiting if is_late(job, seen) => {
            Next::Do(Act::Node(NodeAct::DropAgent { job: name, uid: job.uid.clone() }))
        }
        JobState::Waiting | JobState::Running | JobState::Ended => {
            let (task, trouble) = (job.task, job.trouble.clone());
            Next::Wait(Wait::Agent { osd, task, job: name, trouble })
        }
    }
}

/// Returns whether this wait delays a stopped OSD that it does not concern.
///
/// Nothing else continues meanwhile.
fn holds_up_another(wait: &Wait, view: View<'_>) -> bool {
    let (Wait::Agent { osd, .. } | Wait::AgentSilent { osd, .. }) = wait else { return false };
    let is_open = view.ledger.in_flight().any(|record| record.osd == *osd);
    !is_open && view.ledger.in_flight().any(|record| is_committed(record, view.seen))
}
