//! Node agent, step by step, like `node::agent`. Between any two steps it may be suspended, killed, or lost
//! by Kubernetes while its process is still alive. The real `domain::proof` makes its decisions. It includes
//! ceph-volume and the ways in which ceph-volume fails.

use std::collections::BTreeSet;

use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::inspection::{Capability, Content, NodeProblem, NodeReport, NodeRequest, NodeTask, Proof};
use crate::domain::observation::{JobState, NodeJob, SlotState};
use crate::domain::osd::{DbDevice, NodeName, ObjectStore, OsdFsid, OsdId};
use crate::domain::proof::same_disk::{same_content_for, same_device};
use crate::domain::proof::verdict::{Verdict, misplaced_is_purged};
use crate::sim::stage::{Agent, Stage};
use crate::sim::wipe::is_wiped;
use crate::sim::world::{Disk, Effect, World, fsid_on};

/// Returns the capabilities of the images of 16.2.15.
pub(super) fn able() -> Capability {
    Capability {
        ceph_version: "ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)"
            .to_owned(),
        raw_osd_id: true,
        stores: [ObjectStore::bluestore()].into(),
        missing_tools: BTreeSet::new(),
        key_accepted: true,
        key_trouble: None,
        tool_trouble: None,
    }
}

impl World {
    /// Does the next step of an agent.
    ///
    /// Does nothing if there is no such process.
    pub(super) fn agent_step(&mut self, job: &str) -> Vec<Effect> {
        let Some(agent) = self.agents.get(job).cloned() else { return Vec::new() };
        let request = &agent.request;
        match agent.stage.clone() {
            Stage::Waiting => self.agent_starts(job, request),
            Stage::Inspected { disk, content } => self.agent_opens(job, request, disk, &content),
            Stage::Proven { disk } => self.agent_buries(job, request, disk),
            Stage::Buried { disk } if request.task == NodeTask::Wipe => {
                self.agent_blanks(job, request, &disk);
                Vec::new()
            }
            Stage::Buried { disk } => match self.clear_part(job, request) {
                Some(effects) => effects,
                None => self.agent_issues_fsid(job, request, disk, false),
            },
            Stage::Registered { disk, fsid, id } => self.agent_labels(job, request, disk, fsid, id),
            Stage::Labelled { disk, fsid, id } => {
                self.write_label(&disk, request, fsid, id, true);
                self.close_new(request, &disk);
                self.advance(job, Stage::Reporting { problem: None });
                Vec::new()
            }
            Stage::Reporting { problem } => {
                self.agent_reports(job, request, problem);
                Vec::new()
            }
        }
    }

    pub(super) fn advance(&mut self, job: &str, stage: Stage) {
        if let Some(agent) = self.agents.get_mut(job) {
            agent.stage = stage;
        }
    }

    pub(super) fn fails(&mut self, job: &str, problem: NodeProblem) -> Vec<Effect> {
        for disk in self.disks.values_mut().filter(|disk| disk.held_by.as_deref() == Some(job)) {
            disk.held_by = None;
        }
        self.advance(job, Stage::Reporting { problem: Some(problem) });
        Vec::new()
    }

    /// Takes the lock and reads the disk.
    fn agent_starts(&mut self, job: &str, request: &NodeRequest) -> Vec<Effect> {
        if !passes(Guard::AgentExpected, self.kube.leftovers.contains_key(&request.record)) {
            self.agent_dies(job);
            return Vec::new();
        }
        if !self.attach_for_agent(job, request) {
            return Vec::new(); // its pod waits for the volume
        }
        self.job_runs(job);
        let others = |(name, agent): (&String, &Agent)| {
            name != job && agent.request.osd == request.osd && agent.has_lock()
        };
        if self.agents.iter().any(others) {
            return self.fails(job, NodeProblem::Busy("another agent holds the lock".to_owned()));
        }
        let last = self.attempts.entry((request.osd, request.record.clone())).or_default();
        let is_late = request.attempt < *last;
        *last = request.attempt.max(*last);
        if !passes(Guard::AgentsInOrder, !is_late) {
            let why = "a later attempt has already run on this node".to_owned();
            return self.fails(job, NodeProblem::Refused(why));
        }
        if self.noise.agents_fail.contains(&request.node) && request.task != NodeTask::Inspect {
            return self.fails(job, NodeProblem::Failed("the node is cut off from the mons".to_owned()));
        }
        if request.task == NodeTask::Inspect {
            let trouble = self.database_trouble(request).or_else(|| self.part_trouble(request));
            let trouble = trouble.or_else(|| self.key_trouble(request));
            let problem = trouble.filter(|_| request.evidence.is_none());
            self.advance(job, Stage::Reporting { problem });
            return Vec::new();
        }
        if request.task == NodeTask::Clear {
            return self.agent_clears(job, request);
        }
        self.agent_judges(job, request)
    }

    /// Decides by the disk's content whether there is anything to do.
    fn agent_judges(&mut self, job: &str, request: &NodeRequest) -> Vec<Effect> {
        let Some((name, disk)) = self.recorded_disk(request) else {
            return self.fails(job, NodeProblem::Refused("no such disk".to_owned()));
        };
        let (name, content) = (name.clone(), disk.content.clone());
        if request.task == NodeTask::Wipe && is_wiped(request, &content) {
            self.advance(job, Stage::Reporting { problem: None });
            return Vec::new();
        }
        match self.judge(request, disk) {
            Verdict::Done if request.task == NodeTask::RestoreSlot => {
                let given = fsid_on(&content).map(|fsid| self.osd_new(fsid, request.osd, true));
                let error = given.and_then(Result::err);
                let problem = error.map(|error| NodeProblem::Failed(error.to_string()));
                self.advance(job, Stage::Reporting { problem });
            }
            Verdict::Done => self.advance(job, Stage::Reporting { problem: None }),
            Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_) | Verdict::TakeAvailable
                if matches!(request.task, NodeTask::Rebuild | NodeTask::Wipe) =>
            {
                self.advance(job, Stage::Inspected { disk: name, content });
            }
            Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_) | Verdict::TakeAvailable => {
                return self.fails(
                    job,
                    NodeProblem::Refused("expected a finished OSD that osd-migrate created".to_owned()),
                );
            }
            Verdict::Refuse(why) => return self.fails(job, NodeProblem::Refused(why)),
        }
        Vec::new()
    }

    fn job_runs(&mut self, job: &str) {
        let mine = |found: &&mut NodeJob| found.name == job && found.state == JobState::Waiting;
        if let Some(found) = self.kube.node_jobs.iter_mut().find(mine) {
            found.state = JobState::Running;
        }
    }

    /// Opens the disk exclusively (no daemon, no mount, no other agent has it open), and proves it again
    /// afterwards.
    fn agent_opens(
        &mut self,
        job: &str,
        request: &NodeRequest,
        name: String,
        before: &Content,
    ) -> Vec<Effect> {
        let closed = self.close_mappings(request, &name);
        let Some(disk) = self.disks.get(&name) else {
            return self.fails(job, NodeProblem::Refused("no such disk".to_owned()));
        };
        if let Err(problem) = closed {
            return self.fails(job, problem);
        }
        if disk.held_by.is_some() || self.is_run(disk) {
            return self.fails(job, NodeProblem::Failed("the disk is in use".to_owned()));
        }
        let Some(evidence) = &request.evidence else {
            return self.fails(job, NodeProblem::Refused("no proof".to_owned()));
        };
        let slot = self.ceph.slots.get(&request.osd).map(|slot| slot.state);
        let is_new = matches!(evidence.proof, Proof::Available { .. });
        let awaits = slot == Some(SlotState::Destroyed) || (is_new && slot.is_none());
        if !passes(Guard::AgentSlotDestroyed, awaits) {
            return self.fails(job, NodeProblem::Refused("the slot is not destroyed".to_owned()));
        }
        if let Err(why) = same_content_for(request, &evidence.device, &disk.identity, &disk.content) {
            return self.fails(job, NodeProblem::Refused(why));
        }
        let verdict = self.judge(request, disk);
        if let Err(why) = misplaced_is_purged(&verdict, |misplaced| self.ceph.slots.contains_key(&misplaced))
        {
            return self.fails(job, NodeProblem::Refused(why));
        }
        let may_wipe = match &verdict {
            Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_) | Verdict::TakeAvailable => true,
            Verdict::Done | Verdict::Refuse(_) => false,
        };
        if !passes(Guard::AgentProvesAgain, may_wipe && disk.content == *before) {
            return self.fails(job, NodeProblem::Failed("the disk changed meanwhile".to_owned()));
        }
        if let Err(problem) = self.open_part(job, request, &verdict) {
            return self.fails(job, problem);
        }
        if let Some(disk) = self.disks.get_mut(&name) {
            disk.held_by = Some(job.to_owned());
        }
        self.advance(job, Stage::Proven { disk: name });
        Vec::new()
    }

    /// Writes the tombstone, which is the first write and the end of the old data.
    fn agent_buries(&mut self, job: &str, request: &NodeRequest, name: String) -> Vec<Effect> {
        if let Some(problem) = self.database_trouble(request) {
            return self.fails(job, problem);
        }
        let Some(disk) = self.disks.get_mut(&name).filter(|disk| disk.held_by.as_deref() == Some(job)) else {
            // The agent has a disk open that was pulled out.
            return self.fails(job, NodeProblem::Failed("wipe: input/output error".to_owned()));
        };
        let was = std::mem::replace(
            &mut disk.content,
            Content::Tombstone {
                cluster: request.cluster,
                osd: request.osd,
                old: request.old,
                record: request.record.clone(),
            },
        );
        disk.proof = None;
        // A rebuild closes the disk for ceph-volume; a wipe continues on the open disk.
        disk.held_by = disk.held_by.take().filter(|_| request.task == NodeTask::Wipe);
        if let Some(fsid) = fsid_on(&was) {
            self.forget_store(fsid);
        }
        self.advance(job, Stage::Buried { disk: name.clone() });
        vec![Effect::Wiped { disk: name, was, osd: request.osd, record: request.record.clone() }]
    }

    /// Lets ceph-volume ask for the id; the shim first records the issued fsid.
    pub(super) fn agent_issues_fsid(
        &mut self,
        job: &str,
        request: &NodeRequest,
        disk: String,
        ignores_id: bool,
    ) -> Vec<Effect> {
        let fsid = self.new_fsid(request.osd);
        if let Err(problem) = self.format(request, &disk, fsid) {
            return self.fails(job, problem);
        }
        let issued = self.issued.entry((request.osd, request.record.clone())).or_default();
        if !is_out(Guard::FsidWrittenFirst) {
            issued.insert(fsid);
        }
        let id = if ignores_id {
            self.osd_new_anywhere(fsid)
        } else if let Err(error) = self.osd_new(fsid, request.osd, true) {
            return self.fails(job, NodeProblem::Failed(error.to_string()));
        } else {
            request.osd
        };
        // `ceph-volume lvm prepare --dmcrypt` passes the dm-crypt key to `osd new`.
        if request.target.encrypted && request.pvcs.is_none() {
            self.dmcrypt.insert(fsid, true);
        }
        let on = request.db.as_ref().and_then(|db| self.database_disk(&request.node, db).cloned());
        if let Some(disk) = on {
            self.databases.insert(fsid, disk);
        }
        self.advance(job, Stage::Registered { disk, fsid, id });
        vec![Effect::Registered(id, fsid)]
    }

    fn database_trouble(&self, request: &NodeRequest) -> Option<NodeProblem> {
        let fits = request.db.as_ref().is_none_or(|db| self.database_disk(&request.node, db).is_some());
        let trouble = || NodeProblem::Refused("the disk for its database has not enough space".to_owned());
        (!passes(Guard::DatabaseFits, fits)).then(trouble)
    }

    /// Returns the disk on which a database is to be created, if the disk exists and is blank or has only
    /// volumes of osd-migrate.
    pub fn database_disk(&self, node: &NodeName, db: &DbDevice) -> Option<&String> {
        let is_it = |disk: &Disk| disk.node == *node && same_device(&db.identity, &disk.identity).is_ok();
        let mut disks = self.disks.iter().filter(|(_, disk)| is_it(disk) && disk.content == Content::Blank);
        disks.next().map(|(name, _)| name)
    }

    /// Lets mkfs write the label; mkfs itself opens the disk exclusively.
    fn agent_labels(
        &mut self,
        job: &str,
        request: &NodeRequest,
        disk: String,
        fsid: OsdFsid,
        id: OsdId,
    ) -> Vec<Effect> {
        let in_use = self.disks.get(&disk).is_none_or(|found| found.held_by.is_some() || self.is_run(found));
        if in_use {
            return self.fails(job, NodeProblem::Failed("mkfs: the disk is in use".to_owned()));
        }
        if let Err(problem) = self.create_part(request, fsid) {
            return self.fails(job, problem);
        }
        self.write_label(&disk, request, fsid, id, false);
        self.advance(job, Stage::Labelled { disk, fsid, id });
        Vec::new()
    }

    fn write_label(&mut self, disk: &str, request: &NodeRequest, fsid: OsdFsid, id: OsdId, finished: bool) {
        if let Some(disk) = self.disks.get_mut(disk) {
            disk.content = Content::Bluestore {
                osd_fsid: fsid,
                whoami: Some(id),
                cluster: Some(request.cluster),
                finished,
                activatable: true,
            };
        }
    }

    /// Ends the agent's process: its Job failed without a report; the lock and the disk are released.
    pub(super) fn agent_dies(&mut self, job: &str) {
        self.agents.remove(job);
        for disk in self.disks.values_mut().filter(|disk| disk.held_by.as_deref() == Some(job)) {
            disk.held_by = None;
        }
        self.end_job(job);
    }

    pub(super) fn end_job(&mut self, job: &str) {
        if let Some(found) = self.kube.node_jobs.iter_mut().find(|found| found.name == job) {
            found.state = JobState::Ended;
        }
    }

    /// Inspects the disk a last time and reports; then the process ends.
    fn agent_reports(&mut self, job: &str, request: &NodeRequest, problem: Option<NodeProblem>) {
        let busy = matches!(problem, Some(NodeProblem::Busy(_)));
        let report = NodeReport {
            record: request.record.clone(),
            attempt: request.attempt,
            osd: request.osd,
            task: request.task,
            began_at: self.at,
            ended_at: self.at,
            steps: Vec::new(),
            issued: self.issued_written(request),
            inspection: (!busy).then(|| self.inspect(request)),
            left: Vec::new(),
            problem: problem.or_else(|| self.not_done(request)),
        };
        self.agents.remove(job);
        self.end_job(job);
        // The report's ConfigMap exists until the record is cleaned up.
        if self.kube.leftovers.contains_key(&request.record) {
            self.kube.reports.insert(job.to_owned(), report);
        }
    }

    fn not_done(&self, request: &NodeRequest) -> Option<NodeProblem> {
        if request.task != NodeTask::Rebuild {
            return None;
        }
        let done = self.recorded_disk(request).is_some_and(|(_, disk)| {
            self.judge(request, disk) == Verdict::Done && self.has_part(request, fsid_on(&disk.content))
        });
        (!done).then(|| NodeProblem::Failed("the disk does not carry the new OSD".to_owned()))
    }
}
