//! Node agents: creates them, waits for them, accepts their reports or gives them up.

use chrono::TimeDelta;

use super::Step;
use crate::domain::act::{Act, DataPrecondition, NodeAct};
use crate::domain::gate::{self, Gate};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::inspection::{Directory, NodeProblem, NodeReport, NodeRequest, NodeTask};
use crate::domain::ledger::{Attempt, Strategy};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::observation::{JobState, NodeJob, Observation};
use crate::domain::osd::Kind;
use crate::domain::phase::{self};
use crate::domain::temporary::bootstrap;

/// Consecutive attempts of a node agent that may fail before the OSD is quarantined.
pub const MAX_FAILURES: u32 = 3;

/// Consecutive attempts that may fail after the stop.
///
/// The pauses between them end with one of 8 minutes.
const MAX_FAILURES_DOWN: u32 = 4;

/// Factor from one pause between two attempts after the stop to the next: 30 s, 2 min, 8 min.
const PAUSE_GROWS: i32 = 4;

/// Hours after which an agent that still writes heartbeats is given up. ceph-volume takes seconds, wiping a
/// large disk takes minutes.
///
/// An agent that removes a directory has its own limit, a day: a Filestore has millions of files.
const AGENT_HOURS: i64 = 2;

/// Minutes after which a node Job whose container did not start is recreated.
///
/// An image pull takes minutes, a lost node longer.
pub const START_MINUTES: i64 = 10;

/// Characters of a pod's trouble that a record keeps: 64 records fit into a ConfigMap.
const TROUBLE: usize = 300;

/// Minutes without a heartbeat after which an agent is silent.
///
/// A heartbeat is written every 15 s: a slow API server does not delay it by ten minutes.
pub const SILENT_MINUTES: i64 = 10;

/// Returns whether a container that has not started is late.
pub fn is_late(job: &NodeJob, seen: &Observation) -> bool {
    (seen.at - job.created_at).num_minutes() >= START_MINUTES
}

/// Returns whether the Job's agent has written no heartbeat for `SILENT_MINUTES`.
pub fn is_silent(job: &NodeJob, seen: &Observation) -> bool {
    silent_for(job, seen).num_minutes() >= SILENT_MINUTES
}

/// Returns how long ago the Job's agent wrote its last heartbeat.
fn silent_for(job: &NodeJob, seen: &Observation) -> TimeDelta {
    seen.at - job.heartbeat_at.unwrap_or(job.created_at)
}

impl<'a> Step<'a> {
    pub(super) fn busy(&self) -> Next {
        let job = |job: &&NodeJob| job.record == self.record.id && job.state != JobState::Ended;
        let Some(job) = self.view.seen.kube.node_jobs.iter().find(job) else {
            return Next::Wait(Wait::FreshView);
        };
        let is_late = is_late(job, self.view.seen);
        let drop = || Next::Do(Act::Node(NodeAct::DropAgent { job: job.name.clone(), uid: job.uid.clone() }));
        match job.state {
            JobState::Waiting if self.may_no_longer_wipe(job) || self.is_node_given_up() => drop(),
            // The next attempt is saved first, so that this attempt counts as failed even if its Job is gone.
            JobState::Waiting if is_late && job.attempt == self.record.attempt.number => {
                self.save_attempt(job.task)
            }
            JobState::Waiting if is_late => drop(),
            JobState::Running if self.is_lost(job) && self.lacks_only(job.task) => self.leave_directory(
                format!("its node agent sends no heartbeat. See: kubectl describe node {}", self.record.node),
            ),
            JobState::Waiting | JobState::Running if self.is_lost(job) => self.quarantine(format!(
                "its node agent does not end. See: kubectl -n NAMESPACE logs job/{}; kubectl describe node \
                 {}",
                job.name, self.record.node
            )),
            JobState::Running if is_silent(job, self.view.seen) => {
                Next::Wait(Wait::AgentSilent { osd: self.record.osd, job: job.name.clone() })
            }
            JobState::Waiting | JobState::Running | JobState::Ended => Next::Wait(Wait::Agent {
                osd: self.record.osd,
                task: job.task,
                job: job.name.clone(),
                trouble: self.node_trouble().or_else(|| job.trouble.clone()),
            }),
        }
    }

    /// Returns whether an agent that would wipe the old data has not started, and a gate forbids the wipe by
    /// now.
    ///
    /// An image that can't be pulled gives an agent minutes in which another OSD may die. It is not counted:
    /// the same attempt begins again when the gate is open.
    fn may_no_longer_wipe(&self, job: &NodeJob) -> bool {
        job.task == NodeTask::Rebuild
            && !self.facts.new
            && !self.is_locked()
            && phase::was_old_before(self.record, self.view.seen)
            && matches!(self.after_stop(), Gate::Shut(reason) if reason.is_about_data())
    }

    /// Returns whether an agent that does not end is given up.
    ///
    /// A silent inspection has changed nothing and is given up at once. After the stop the OSD must be down
    /// for twice as long as it keeps `noout`: by then Ceph heals without it. An agent that creates a new OSD,
    /// or removes an old directory, leaves no OSD down, and has as much time.
    ///
    /// A process that has just started waits, too: after an outage the agent's host may still be booting. The
    /// agent may be frozen and continue later. It then proves everything again.
    fn is_lost(&self, job: &NodeJob) -> bool {
        let began = self.view.policy.at_work_since;
        let is_early = began.is_some_and(|at| (self.view.seen.at - at).num_minutes() < SILENT_MINUTES);
        if job.state != JobState::Running || is_early || is_out(Guard::FailuresEnd) {
            return false;
        }
        let patience = self.view.policy.limits.noout * 2;
        let is_over = match (self.record.down_since, job.task) {
            (Some(_), _) => self.down_for() >= patience,
            (None, NodeTask::Inspect) => true,
            (None, NodeTask::Rebuild | NodeTask::RestoreSlot | NodeTask::Clear | NodeTask::Wipe) => {
                silent_for(job, self.view.seen) >= patience
            }
        };
        let runs_for = self.view.seen.at - job.created_at;
        let is_slow = job.task != NodeTask::Clear && runs_for >= TimeDelta::hours(AGENT_HOURS);
        (is_silent(job, self.view.seen) && is_over) || is_slow
    }

    /// Returns the node's problem, if it is not ready: a pod there shows only that it has not started.
    fn node_trouble(&self) -> Option<String> {
        let node = &self.record.node;
        let is_ready = self.view.node(node).is_some_and(|node| node.ready);
        (!is_ready).then(|| gate::Reason::NodeNotReady { node: node.clone() }.to_string())
    }

    pub(super) fn report(&self) -> Option<&'a NodeReport> {
        phase::attempt_report(self.record, self.view.seen)
    }

    /// Saves the next attempt, or creates the Job of the saved one.
    pub(super) fn agent(&self, task: NodeTask) -> Next {
        if self.failed_too_often() {
            return self.quarantine(self.agent_trouble());
        }
        let is_saved = self.record.attempt.task == task && !phase::is_created(self.record, self.view.seen);
        if passes(Guard::AttemptSavedFirst, is_saved) {
            return self.make_agent(task);
        }
        self.save_attempt(task)
    }

    pub(super) fn save_attempt(&self, task: NodeTask) -> Next {
        if let Some(next) = self.waits_for_node() {
            return next;
        }
        if let Some(next) = self.while_busy(task) {
            return next;
        }
        if let Some(wait) = self.rests_after_failure() {
            return Next::Wait(wait);
        }
        let is_another = task == NodeTask::Clear && self.record.attempt.task != task;
        let failures = if is_another { 0 } else { self.failures() };
        let issued = phase::issued_of(self.record, self.view.seen);
        let after = (failures > self.record.attempt.failures).then(|| self.last_trouble());
        let not_started = self.not_started();
        self.save(Saving::Attempt { task, after }, |record| {
            let number = record.attempt.number + 1;
            record.attempt = Attempt { number, task, failures, not_started };
            record.wipe_blocked_since = None;
            record.issued = issued;
        })
    }

    /// Returns a wait after a failed attempt, if the OSD is down after its stop.
    ///
    /// A node that is cut off, or a kubelet under DiskPressure, does not recover within seconds. The last
    /// failure gives the OSD up with its data gone.
    fn rests_after_failure(&self) -> Option<Wait> {
        let failures = self.failures();
        let is_down = self.record.down_since.is_some();
        if !is_down || failures <= self.record.attempt.failures || is_out(Guard::AgentRetriesSpaced) {
            return None;
        }
        let ended = self.report().map(|report| report.ended_at).or(self.record.saved_at)?;
        let pause =
            self.view.policy.limits.retry_pause * PAUSE_GROWS.saturating_pow(failures.saturating_sub(1));
        let until = ended + pause;
        (self.view.seen.at < until).then(|| Wait::AgentRests {
            osd: self.record.osd,
            failures,
            why: self.last_trouble(),
            until,
        })
    }

    /// Returns the failures so far, including the last attempt.
    ///
    /// An agent that found another one at work has not failed.
    pub(super) fn failures(&self) -> u32 {
        let attempt = &self.record.attempt;
        if !phase::is_created(self.record, self.view.seen) {
            return attempt.failures;
        }
        match self.report() {
            // A device that is not found or not recognised is inspected again, but not for ever.
            Some(NodeReport { problem: None, .. })
                if self.is_not_found() || self.image_trouble().is_some() =>
            {
                attempt.failures + 1
            }
            // An inspection between two rebuilds fixes nothing: only the first proof, or a completed change,
            // resets the count.
            Some(NodeReport { problem: None, task, .. }) => match task {
                NodeTask::Inspect => attempt.failures,
                NodeTask::Rebuild | NodeTask::RestoreSlot | NodeTask::Clear | NodeTask::Wipe => 0,
            },
            Some(NodeReport { problem: Some(NodeProblem::Busy(_)), .. }) => attempt.failures,
            Some(NodeReport {
                problem: Some(NodeProblem::Refused(_) | NodeProblem::Foreign(_) | NodeProblem::Failed(_)),
                ..
            })
            | None => attempt.failures + 1,
        }
    }

    pub(super) fn failed_too_often(&self) -> bool {
        self.failures() >= self.max_failures() && !is_out(Guard::FailuresEnd)
    }

    /// Returns the attempts that the record has.
    pub(super) fn max_failures(&self) -> u32 {
        if self.record.down_since.is_some() { MAX_FAILURES_DOWN } else { MAX_FAILURES }
    }

    pub(super) fn agent_trouble(&self) -> String {
        let failures = self.max_failures();
        let why = self.last_trouble();
        let way = self.way_to_zap();
        match self.last_job() {
            Some(NodeJob { name, .. }) => format!(
                "its node agent failed {failures} times, the last time: {why}. See: kubectl -n NAMESPACE logs \
                 job/{name}{way}"
            ),
            None => format!("its node agent failed {failures} times, the last time: {why}{way}"),
        }
    }

    /// Returns why the last Job has not started, if it has not: it is deleted before the next attempt.
    fn not_started(&self) -> Option<String> {
        let job = self.last_job().filter(|job| job.state == JobState::Waiting)?;
        let unknown = || format!("Job {} has not started within {START_MINUTES} minutes", job.name);
        Some(job.trouble.clone().unwrap_or_else(unknown).chars().take(TROUBLE).collect())
    }

    fn last_job(&self) -> Option<&'a NodeJob> {
        self.view.seen.kube.node_jobs.iter().rfind(|job| job.record == self.record.id)
    }

    /// Returns why the last attempt failed.
    pub(super) fn last_trouble(&self) -> String {
        let reported = self.report().and_then(|report| report.problem.as_ref()).map(NodeProblem::message);
        let unknown = self.is_not_found().then_some("its device was not found, or carries something else");
        let why = reported.or(unknown).map(str::to_owned).or_else(|| self.image_trouble());
        let why = why.or_else(|| self.last_job().and_then(|job| job.trouble.clone()));
        let why = why.or_else(|| self.record.attempt.not_started.clone());
        why.unwrap_or_else(|| "it left no report".to_owned())
    }

    /// Returns what an inspection could not learn on the node, if nothing is proven yet.
    pub(super) fn image_trouble(&self) -> Option<String> {
        self.key_trouble().or_else(|| self.tool_trouble())
    }

    /// Returns why it is unknown what ceph-volume of the image can do, if nothing is proven yet.
    ///
    /// It may have been killed, or have taken too long: the next attempt asks again. An OSD that is removed
    /// needs no ceph-volume.
    fn tool_trouble(&self) -> Option<String> {
        let is_first = self.record.evidence.is_none() && !self.record.is_removal();
        let said =
            self.report().filter(|_| is_first)?.inspection.as_ref()?.capability.tool_trouble.as_ref()?;
        Some(format!("ceph-volume did not say on its node what it can do: {said}"))
    }

    /// Returns why the mons did not answer the node, if nothing is proven yet.
    ///
    /// Rook from 1.19 on deletes the key of that user after each reconcile, and mons may be unreachable. The
    /// next attempt asks with the key that exists then.
    fn key_trouble(&self) -> Option<String> {
        let is_first = self.record.evidence.is_none();
        let can = &self.report().filter(|_| is_first)?.inspection.as_ref()?.capability;
        let said = can.key_trouble.as_deref().unwrap_or("`ceph osd tree` failed");
        (!can.key_accepted).then(|| {
            format!(
                "asking the mons as client.bootstrap-osd failed on its node: {said}. See: ceph auth get \
                 client.bootstrap-osd"
            )
        })
    }

    /// Returns the data precondition that must be met right before the agent is created, if the task ends the
    /// old data or the last way back to it.
    fn precondition_for(&self, task: NodeTask) -> Option<DataPrecondition> {
        let record = self.record;
        match task {
            NodeTask::Rebuild => self.old_can_return().then(|| self.only_ours_missing()),
            NodeTask::Clear if record.is_removal() => Some(DataPrecondition::NoneMissing { osd: record.osd }),
            NodeTask::Clear => record.new.map(|fsid| DataPrecondition::Backfilled {
                osd: record.osd,
                fsid,
                pgs: record.held_pgs().clone(),
            }),
            NodeTask::Wipe => Some(DataPrecondition::NoneMissing { osd: record.osd }),
            NodeTask::Inspect | NodeTask::RestoreSlot => None,
        }
    }

    /// Returns the agent's act once its key exists.
    fn keyed(&self, agent: Act) -> Next {
        bootstrap::change(self.record.osd, self.view).unwrap_or(Next::Do(agent))
    }

    pub(super) fn make_agent(&self, task: NodeTask) -> Next {
        if let Some(next) = self.waits_for_node() {
            return next;
        }
        let record = self.record;
        let declared = &self.view.seen.kube.declaration;
        let on_file = matches!(record.strategy, Strategy::New { on_file: true, .. });
        let directory = match &record.strategy {
            Strategy::Directory { path, onto } => {
                Some(Directory { path: path.clone(), onto: Some(onto.clone()) })
            }
            Strategy::Removal(removal) => {
                removal.directory.clone().map(|path| Directory { path, onto: None })
            }
            Strategy::InPlace | Strategy::New { .. } => None,
        };
        let after = record.removal().map(|removal| removal.disk);
        let agent = Act::Node(NodeAct::Agent {
            request: NodeRequest {
                record: record.id.clone(),
                attempt: record.attempt.number,
                task,
                node: record.node.clone(),
                cluster: self.view.seen.ceph.fsid,
                osd: record.osd,
                old: record.old,
                issued: phase::issued_of(record, self.view.seen),
                mon_host: String::new(),
                evidence: record.evidence.clone(),
                target: record.target.clone(),
                device_class: record.crush.device_class.clone(),
                on_file,
                db: record.db.clone(),
                after,
                directory,
                pvcs: record.pvcs.as_ref().map(|pvcs| pvcs.map(|pvc| pvc.name.clone())),
                on_new_pvcs: record.is_new() && record.pvcs.is_some(),
                is_encrypted: record.class.migrates().is_some_and(Kind::is_encrypted),
            },
            image: declared.image.clone(),
            data_dir: declared.data_dir.clone(),
            precondition: self.precondition_for(task),
        });
        // An inspection changes nothing, and no other client uses an old directory: neither needs a fence.
        let needs_none = match task {
            NodeTask::Rebuild | NodeTask::RestoreSlot | NodeTask::Wipe => false,
            NodeTask::Clear => !record.is_removal(),
            NodeTask::Inspect => true,
        };
        if needs_none {
            return self.keyed(agent);
        }
        match self.fenced(agent) {
            Next::Do(agent @ Act::Node(NodeAct::Agent { .. })) => self.keyed(agent),
            first @ (Next::Do(_) | Next::Save { .. } | Next::Wait(_) | Next::Finished(_) | Next::Halt(_)) => {
                first
            }
        }
    }
}
