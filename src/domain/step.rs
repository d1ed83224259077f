//! The one thing that is done next for one OSD, by its phase. With `phase.rs` this is the table of `design.md` section 5.

use std::collections::BTreeSet;

use super::act::{Act, Deploy};
use super::gate::{self, Gate};
use super::inspection::{NodeProblem, NodeReport, NodeRequest, NodeTask};
use super::ledger::{Attempt, Ledger, Quarantine, Record};
use super::next::{Halt, Next, Saving, Wait};
use super::observation::{Daemon, JobState, NodeJob, Observation, SlotState};
use super::osd::OsdFsid;
use super::phase::{self, DiskFact, Facts, Phase};

/// Attempts of a node agent that may fail one after the other before the OSD is left alone.
pub const MAX_FAILURES: u32 = 3;

/// A node Job whose container did not start in that time is made anew: image pulls take minutes, a lost node longer.
pub const START_MINUTES: i64 = 10;

/// A heartbeat is written every 15 s; ten minutes without one is more than a slow API server.
pub const SILENT_MINUTES: i64 = 10;

/// Restarts of a new OSD's pod after which waiting on does no good.
pub const MAX_RESTARTS: u32 = 3;

/// Minutes that a wipe may stay forbidden before a person is called: Ceph's default `mon_osd_down_out_interval` is 600 s.
pub const UNSAFE_MINUTES: i64 = 10;

/// Everything that the next step of one record depends on.
pub struct Step<'a> {
    /// The record.
    pub record: &'a Record,
    /// The ledger it is in.
    pub ledger: &'a Ledger,
    /// The world.
    pub seen: &'a Observation,
    /// What `phase::facts` made of them.
    pub facts: Facts,
    /// `mon_host` is the adapter's: it fills it in. Everything else of a request is decided here.
    pub phase: Phase,
}

impl<'a> Step<'a> {
    /// Looks at one record. `wanted`: confirmation, selection, class and target are as recorded.
    pub fn of(record: &'a Record, ledger: &'a Ledger, wanted: bool, seen: &'a Observation) -> Self {
        let facts = phase::facts(record, wanted, seen);
        Self { record, ledger, seen, facts, phase: phase::phase(&facts) }
    }

    /// The one thing to do.
    pub fn next(&self) -> Next {
        if self.record.closing {
            return self.close();
        }
        match self.phase {
            Phase::Busy => self.busy(),
            Phase::Withdrawn => self.withdraw(),
            Phase::Unproven => self.prove(),
            Phase::Serving => self.stop(),
            Phase::NotOurStop => Next::Wait(Wait::NotOurStop { osd: self.record.osd }),
            Phase::Stopping => Next::Wait(Wait::Down { osd: self.record.osd }),
            Phase::Stopped => self.destroy_stopped(),
            Phase::Destroyed => self.rebuild(),
            Phase::Claimed | Phase::Unauthed => self.destroy_again(),
            Phase::Purged => self.reclaim(),
            Phase::Unplaced => self.fenced(Act::RestoreCrush {
                osd: self.record.osd,
                item: self.record.crush.clone(),
                reweight: self.record.reweight,
                primary_affinity: self.record.primary_affinity,
            }),
            Phase::Gone => Next::Halt(Halt::PurgedByOthers { osd: self.record.osd }),
            Phase::Strayed => self.purge_stray(),
            Phase::Undone => self.agent(NodeTask::GiveBack),
            Phase::Prepared => self.deploy(),
            Phase::Starting => self.starting(),
            Phase::Settling => self.settling(),
            Phase::Nonconforming => {
                self.quarantine("it came up, and is not what was wanted; see `ceph osd metadata`".to_owned())
            }
            Phase::Settled => self.save(Saving::Closing, |record| record.closing = true),
            Phase::Foreign => self.quarantine(self.foreign()),
        }
    }

    // ---- node agents

    fn busy(&self) -> Next {
        let job = |job: &&NodeJob| job.record == self.record.id && job.state != JobState::Ended;
        let Some(job) = self.seen.kube.node_jobs.iter().find(job) else {
            return Next::Wait(Wait::FreshView);
        };
        let age = self.seen.at - job.created_at;
        match job.state {
            JobState::Waiting if age.num_minutes() >= START_MINUTES => {
                Next::Do(Act::DropAgent { job: job.name.clone(), uid: job.uid.clone() })
            }
            JobState::Running if self.is_silent(job) => {
                Next::Wait(Wait::AgentSilent { osd: self.record.osd, job: job.name.clone() })
            }
            JobState::Waiting | JobState::Running | JobState::Ended => Next::Wait(Wait::Agent {
                osd: self.record.osd,
                task: job.task,
                job: job.name.clone(),
                trouble: job.trouble.clone(),
            }),
        }
    }

    fn is_silent(&self, job: &NodeJob) -> bool {
        (self.seen.at - job.heartbeat_at.unwrap_or(job.created_at)).num_minutes() >= SILENT_MINUTES
    }

    fn report(&self) -> Option<&'a NodeReport> {
        phase::attempt_report(self.record, self.seen)
    }

    /// Nobody knows the device, or it is known and not in the record yet.
    fn prove(&self) -> Next {
        if let (DiskFact::Old, Some(report)) = (self.facts.disk, phase::last_look(self.record, self.seen)) {
            return self.save_proof(report);
        }
        if self.record.attempt.task == NodeTask::Inspect && !phase::is_made(self.record, self.seen) {
            return self.make_agent(NodeTask::Inspect);
        }
        if self.failed_too_often() {
            return match self.phase_before_stop() {
                None if self.facts.slot == phase::SlotFact::Old => {
                    Next::Do(Act::Restart { osd: self.record.osd, record: self.record.id.clone() })
                }
                Some(()) | None => self.quarantine(self.agent_trouble()),
            };
        }
        self.save_attempt(NodeTask::Inspect)
    }

    fn phase_before_stop(&self) -> Option<()> {
        self.facts.before_stop().then_some(())
    }

    /// The first inspection proved the device: keep what must be read again, or leave the OSD alone where the node
    /// can't make the new one (P7).
    fn save_proof(&self, report: &NodeReport) -> Next {
        let Some((inspection, evidence)) = report
            .inspection
            .as_ref()
            .and_then(|inspection| Some((inspection, inspection.evidence.clone()?)))
        else {
            return self.quarantine("its device was found, but not what proves it".to_owned());
        };
        let can = &inspection.capability;
        if !can.missing_tools.is_empty() {
            let tools: Vec<_> = can.missing_tools.iter().map(String::as_str).collect();
            return self.quarantine(format!("the image lacks {}", tools.join(", ")));
        }
        if !can.raw_osd_id {
            return self
                .quarantine(format!("`ceph-volume raw prepare` of {} knows no --osd-id", can.ceph_version));
        }
        if !can.key_accepted {
            return self.quarantine("the mons refuse the key client.bootstrap-osd on its node; see `ceph auth get client.bootstrap-osd`".to_owned());
        }
        if let Some(why) = super::classify::contradicts(&self.record.class, &evidence.proof) {
            return self.quarantine(why);
        }
        let claims = phase::claims_of(self.record, self.seen);
        self.save(Saving::Proof, |record| {
            record.evidence = Some(evidence);
            record.claims = claims;
            record.attempt.failures = 0;
        })
    }

    /// Saves the next attempt, or makes the Job of the saved one.
    fn agent(&self, task: NodeTask) -> Next {
        let saved = self.record.attempt.task == task && !phase::is_made(self.record, self.seen);
        if saved {
            return self.make_agent(task);
        }
        if self.failed_too_often() {
            return self.quarantine(self.agent_trouble());
        }
        self.save_attempt(task)
    }

    fn save_attempt(&self, task: NodeTask) -> Next {
        let failures = self.failures();
        let claims = phase::claims_of(self.record, self.seen);
        self.save(Saving::Attempt { task }, |record| {
            let number = record.attempt.number + 1;
            record.attempt = Attempt { number, task, failures };
            record.claims = claims;
        })
    }

    /// Failures so far, the last attempt's included. An agent that found another one at work has not failed.
    fn failures(&self) -> u32 {
        let attempt = &self.record.attempt;
        if !phase::is_made(self.record, self.seen) {
            return attempt.failures;
        }
        match self.report() {
            Some(NodeReport { problem: None, .. }) => 0,
            Some(NodeReport { problem: Some(NodeProblem::Busy(_)), .. }) => attempt.failures,
            Some(NodeReport { problem: Some(NodeProblem::Refused(_) | NodeProblem::Failed(_)), .. })
            | None => attempt.failures + 1,
        }
    }

    fn failed_too_often(&self) -> bool {
        self.failures() >= MAX_FAILURES
    }

    fn agent_trouble(&self) -> String {
        let job = self.seen.kube.node_jobs.iter().rfind(|job| job.record == self.record.id);
        let reported = self.report().and_then(|report| report.problem.as_ref()).map(NodeProblem::message);
        let why = reported.or(job.and_then(|job| job.trouble.as_deref())).unwrap_or("it left no report");
        let name = job.map_or("osd-migrate", |job| job.name.as_str());
        format!(
            "its node agent failed {MAX_FAILURES} times, the last time: {why}; see `kubectl logs job/{name}`"
        )
    }

    fn make_agent(&self, task: NodeTask) -> Next {
        let record = self.record;
        let declared = &self.seen.kube.declaration;
        let first_look = task == NodeTask::Inspect && record.evidence.is_none();
        self.fenced_unless(
            first_look,
            Act::Agent {
                request: NodeRequest {
                    record: record.id.clone(),
                    attempt: record.attempt.number,
                    task,
                    node: record.node.clone(),
                    cluster: self.seen.ceph.fsid,
                    osd: record.osd,
                    old: record.old,
                    mon_host: String::new(),
                    evidence: record.evidence.clone(),
                    target: record.target.clone(),
                    device_class: record.crush.device_class.clone(),
                },
                image: declared.image.clone(),
                data_dir: declared.data_dir.clone(),
            },
        )
    }

    // ---- down

    fn withdraw(&self) -> Next {
        self.save(Saving::Withdrawn, |record| record.closing = true)
    }

    fn stop(&self) -> Next {
        match gate::before_stop(self.record.osd, &self.record.node, self.our_fence(), self.seen) {
            Gate::Open => self.stop_now(),
            Gate::Shut(reason) | Gate::Unknown(reason) => {
                Next::Wait(Wait::Gate { osd: self.record.osd, reason })
            }
        }
    }

    /// Gates are open: keep, remember the PGs, fence, hush, stop; one a turn, and the gates asked again each time.
    fn stop_now(&self) -> Next {
        let (record, osd) = (self.record, self.record.osd);
        let Some((daemon, slot)) = self.seen.kube.daemons.get(&osd).zip(self.seen.ceph.slots.get(&osd))
        else {
            return Next::Wait(Wait::FreshView);
        };
        if self.seen.kube.kept.get(&osd) != Some(&record.id) {
            return Next::Do(Act::Keep { osd, record: record.id.clone(), deployment: daemon.uid.clone() });
        }
        let pgs = gate::pgs_of(osd, self.seen);
        if record.pgs != pgs || record.stop_intended_at.is_none() {
            return self.save(Saving::Stop, |record| {
                record.pgs = pgs;
                record.stop_intended_at = Some(self.seen.at);
            });
        }
        if !(slot.noout && slot.noin) {
            return self.fenced(Act::Hush { osd, noout: !slot.noout, noin: !slot.noin });
        }
        self.fenced(Act::Stop {
            osd,
            fsid: record.old,
            record: record.id.clone(),
            deployment: daemon.uid.clone(),
            resource_version: daemon.resource_version.clone(),
        })
    }

    fn destroy_stopped(&self) -> Next {
        let osd = self.record.osd;
        match gate::after_stop(self.record, self.our_fence(), self.seen) {
            Gate::Open => self.fenced(Act::Destroy { osd, fsid: self.record.old }),
            Gate::Shut(_) => Next::Do(Act::Restart { osd, record: self.record.id.clone() }),
            Gate::Unknown(reason) => Next::Wait(Wait::Gate { osd, reason }),
        }
    }

    /// The slot holds a claim whose OSD is not finished, or has no key: back to destroyed, from where it is made again.
    fn destroy_again(&self) -> Next {
        match self.slot_fsid() {
            Some(fsid) => self.fenced(Act::Destroy { osd: self.record.osd, fsid }),
            None => Next::Wait(Wait::FreshView),
        }
    }

    fn rebuild(&self) -> Next {
        // The old data is gone: making the new OSD is the cure, and waits for nothing.
        if self.facts.disk != DiskFact::Old {
            return self.agent(NodeTask::Rebuild);
        }
        let osd = self.record.osd;
        match gate::after_stop(self.record, self.our_fence(), self.seen) {
            Gate::Open => self.agent(NodeTask::Rebuild),
            Gate::Unknown(reason) => Next::Wait(Wait::Gate { osd, reason }),
            Gate::Shut(reason) => {
                let since = self.record.stop_intended_at.unwrap_or(self.seen.at);
                if (self.seen.at - since).num_minutes() >= UNSAFE_MINUTES {
                    return Next::Halt(Halt::UnsafeToWipe { osd, old: self.record.old, reason });
                }
                Next::Wait(Wait::UnsafeToWipe { osd, reason })
            }
        }
    }

    fn reclaim(&self) -> Next {
        let on_disk = phase::last_look(self.record, self.seen).and_then(phase::label_fsid);
        let claims = phase::claims_of(self.record, self.seen);
        let claim = on_disk.filter(|fsid| claims.contains(fsid)).or(claims.last().copied());
        match claim {
            Some(claim) => self.fenced(Act::Reclaim { osd: self.record.osd, claim }),
            None => Next::Wait(Wait::FreshView),
        }
    }

    fn purge_stray(&self) -> Next {
        let look = phase::last_look(self.record, self.seen);
        let Some((stray, fsid)) =
            look.and_then(|look| Some((phase::label_id(look)?, phase::label_fsid(look)?)))
        else {
            return Next::Wait(Wait::FreshView);
        };
        match self.seen.ceph.slots.get(&stray) {
            None => self.agent(NodeTask::Rebuild),
            Some(slot) if slot.state == SlotState::New && !slot.up && slot.fsid == Some(fsid) => {
                self.fenced(Act::PurgeStray { stray, fsid })
            }
            Some(_) => Next::Halt(Halt::StrayInUse { osd: self.record.osd, stray }),
        }
    }

    // ---- up again

    fn deploy(&self) -> Next {
        let (record, osd) = (self.record, self.record.osd);
        let (Some(fsid), Some(evidence)) = (self.slot_fsid(), &record.evidence) else {
            return Next::Wait(Wait::FreshView);
        };
        let claims = phase::claims_of(record, self.seen);
        if record.new != Some(fsid) {
            return self.save(Saving::New, |record| {
                record.new = Some(fsid);
                record.claims = claims;
            });
        }
        let Some(name) = evidence.device.by_id.first() else {
            return self.quarantine("its device has no stable name under /dev/disk/by-id".to_owned());
        };
        self.fenced(Act::Deploy(Deploy {
            osd,
            record: record.id.clone(),
            fsid,
            node: record.node.clone(),
            block_path: format!("/dev/disk/by-id/{name}"),
            store: record.target.store.to_string(),
            crush: record.crush.clone(),
        }))
    }

    fn starting(&self) -> Next {
        let osd = self.record.osd;
        let Some(daemon) = self.seen.kube.daemons.get(&osd) else {
            return Next::Wait(Wait::FreshView);
        };
        if daemon.replicas == 0 {
            return Next::Wait(Wait::NotOurStop { osd });
        }
        let restarts = daemon.pods.iter().map(|pod| pod.restarts).max().unwrap_or(0);
        let trouble = daemon.pods.iter().find_map(|pod| pod.trouble.clone());
        if restarts >= MAX_RESTARTS {
            return self.quarantine(format!(
                "its new daemon does not stay up: {}; see `kubectl logs deployment/{} --all-containers`",
                trouble.as_deref().unwrap_or("no reason is known"),
                daemon.name
            ));
        }
        Next::Wait(Wait::Up { osd, trouble })
    }

    fn settling(&self) -> Next {
        let osd = self.record.osd;
        // Rook may have the CephCluster back: what is left is Ceph's work.
        if let Some(next) = self.unfence() {
            return next;
        }
        let unclean = self.seen.ceph.pgs.values().filter(|pg| pg.up.contains(&osd) && !gate::is_clean(pg));
        let (mut pgs, mut lacking, mut bytes) = (0, 0, 0);
        for pg in unclean {
            pgs += 1;
            lacking += pg.degraded + pg.misplaced;
            let copies = (pg.degraded + pg.misplaced).min(pg.objects);
            bytes += pg.bytes.checked_div(pg.objects).unwrap_or(0) * copies;
        }
        Next::Wait(Wait::ActiveClean { osd, pgs, objects: lacking, bytes })
    }

    /// One a turn: flags, fence, what was made for the record; last the record itself.
    fn close(&self) -> Next {
        let record = self.record;
        if let Some(slot) = self.seen.ceph.slots.get(&record.osd) {
            let (noout, noin) = self.flags_to_lift(slot.noout, slot.noin);
            if noout || noin {
                return Next::Do(Act::Unhush { osd: record.osd, noout, noin });
            }
        }
        if let Some(next) = self.unfence() {
            return next;
        }
        let kube = &self.seen.kube;
        let made = kube.leftovers.contains_key(&record.id)
            || kube.kept.get(&record.osd) == Some(&record.id)
            || kube.node_jobs.iter().any(|job| job.record == record.id)
            || kube.reports.values().any(|report| report.record == record.id);
        if made {
            return Next::Do(Act::Sweep { osd: record.osd, record: record.id.clone() });
        }
        Next::Save { ledger: self.ledger.without(record.osd), osd: Some(record.osd), why: Saving::Closed }
    }

    // ---- the fence

    fn our_fence(&self) -> Option<&'a str> {
        self.ledger.run.fence.as_deref()
    }

    /// The fence is recorded, then put up, then the act is done: one a turn, and asked again before every act from Stop to Deploy.
    fn fenced(&self, act: Act) -> Next {
        let Some(value) = self.our_fence() else {
            let mut ledger = self.ledger.clone();
            ledger.run.fence = Some(format!("osd-migrate-{}", self.record.id));
            return Next::Save { ledger, osd: Some(self.record.osd), why: Saving::Fence };
        };
        match self.seen.kube.fence.as_deref() {
            Some(seen) if seen == value => Next::Do(act),
            None => Next::Do(Act::Fence { value: value.to_owned() }),
            Some(other) => Next::Wait(Wait::Gate {
                osd: self.record.osd,
                reason: gate::Reason::FencedByOthers { value: other.to_owned() },
            }),
        }
    }

    fn fenced_unless(&self, harmless: bool, act: Act) -> Next {
        if harmless { Next::Do(act) } else { self.fenced(act) }
    }

    /// Takes the fence down and forgets it, where no other record in flight needs it.
    fn unfence(&self) -> Option<Next> {
        let value = self.our_fence()?;
        if self.ledger.in_flight().any(|other| other.osd != self.record.osd) {
            return None;
        }
        Some(take_down(value, self.ledger, self.seen))
    }

    // ---- saving

    fn save(&self, why: Saving, change: impl FnOnce(&mut Record)) -> Next {
        let mut record = self.record.clone();
        change(&mut record);
        record.milestones.push((why.word().to_owned(), self.seen.at));
        Next::Save { ledger: self.ledger.with(record), osd: Some(self.record.osd), why }
    }

    fn quarantine(&self, why: String) -> Next {
        let since = self.seen.at;
        self.save(Saving::Quarantine { why: why.clone() }, |record| {
            record.quarantine = Some(Quarantine { why, since });
        })
    }

    fn flags_to_lift(&self, noout: bool, noin: bool) -> (bool, bool) {
        let (had_noout, had_noin) = self.record.former_flags;
        // Before Stop was intended nothing was hushed: a flag seen then is somebody else's.
        let ours = self.record.stop_intended_at.is_some();
        (ours && noout && !had_noout, ours && noin && !had_noin)
    }

    fn slot_fsid(&self) -> Option<OsdFsid> {
        self.seen.ceph.slots.get(&self.record.osd)?.fsid
    }

    /// What is there that we did not make, in words.
    fn foreign(&self) -> String {
        let slot = match self.seen.ceph.slots.get(&self.record.osd) {
            None => "absent".to_owned(),
            Some(slot) => match slot.fsid {
                Some(fsid) => format!("{fsid}"),
                None => "destroyed".to_owned(),
            },
        };
        let look = phase::last_look(self.record, self.seen);
        let disk = look.and_then(|look| look.inspection.as_ref()).map_or_else(
            || "not looked at".to_owned(),
            |inspection| serde_json::to_string(&inspection.content).unwrap_or_default(),
        );
        let daemon = self.seen.kube.daemons.get(&self.record.osd).map(|daemon: &Daemon| daemon.fsid);
        let starts = match daemon {
            None => "no Deployment".to_owned(),
            Some(None) => "a Deployment that names no fsid".to_owned(),
            Some(Some(fsid)) => format!("a Deployment that starts {fsid}"),
        };
        let claims: BTreeSet<OsdFsid> = phase::claims_of(self.record, self.seen);
        format!(
            "something else was found than what was recorded: slot {slot}, device {disk}, {starts}; \
             recorded {}, ours {claims:?}; see `ceph osd tree` and `kubectl get configmap osd-migrate-ledger -o yaml`",
            self.record.old
        )
    }
}

/// The fence comes down, then it is forgotten.
pub fn take_down(value: &str, ledger: &Ledger, seen: &Observation) -> Next {
    if seen.kube.fence.as_deref() == Some(value) {
        return Next::Do(Act::Unfence { value: value.to_owned() });
    }
    let mut ledger = ledger.clone();
    ledger.run.fence = None;
    Next::Save { ledger, osd: None, why: Saving::Unfenced }
}
