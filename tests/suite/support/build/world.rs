//! The world that an iteration is decided from, and single changes of it.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use osd_migrate::domain::inspection::{Content, Inspection, NodeProblem, NodeReport};
use osd_migrate::domain::ledger::{Ledger, Record};
use osd_migrate::domain::next::Next;
use osd_migrate::domain::observation::{Daemon, JobState, NodeJob, Observation, Pg, Slot, SlotState};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::{Limits, Policy};
use osd_migrate::domain::view::View;

use super::agent::{able, evidence, job_name, old_content};
use super::ids::{PGS, members, pg_id};
use super::observation::observation;
use super::osd::states;

/// Everything that an iteration is decided from.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) policy: Policy,
    pub(crate) ledger: Ledger,
    pub(crate) seen: Observation,
}

impl World {
    pub(crate) fn new() -> Self {
        // Attempts follow each other without a pause: the pauses have tests of their own.
        let limits = Limits { retry_pause: TimeDelta::zero(), ..Limits::default() };
        let policy = Policy { limits, ..Policy::default() };
        Self { policy, ledger: Ledger::default(), seen: observation() }
    }

    /// Returns the view of an iteration in this world.
    pub(crate) fn view(&self) -> View<'_> {
        View { policy: &self.policy, ledger: &self.ledger, seen: &self.seen }
    }

    /// Returns what the real program does in this world.
    pub(crate) fn plan(&self) -> Next {
        plan::plan(&self.policy, &self.ledger, &self.seen)
    }

    /// Applies any change.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Stores the ledger that the program must want to save at this point.
    pub(crate) fn saved(mut self, expected: &str) -> Self {
        match self.plan() {
            Next::Save { ledger, why, .. } if why.code() == expected => self.ledger = ledger,
            other => panic!("expected to save {expected}, got {other:#?}"),
        }
        self
    }

    pub(crate) fn slot(&mut self, osd: OsdId) -> &mut Slot {
        self.seen.ceph.slots.get_mut(&osd).unwrap()
    }

    pub(crate) fn daemon(&mut self, osd: OsdId) -> &mut Daemon {
        self.seen.kube.daemons.get_mut(&osd).unwrap()
    }

    pub(crate) fn record(&mut self, osd: OsdId) -> &mut Record {
        self.ledger.records.get_mut(&osd).unwrap()
    }

    pub(crate) fn pg(&mut self, n: u32) -> &mut Pg {
        self.seen.ceph.pgs.get_mut(&pg_id(n)).unwrap()
    }

    pub(crate) fn minutes_later(mut self, minutes: i64) -> Self {
        self.seen.at += TimeDelta::minutes(minutes);
        self
    }

    // ---- Ceph

    /// Marks an OSD down in the osdmap; the mgr does not know it yet.
    pub(crate) fn down(mut self, osd: OsdId) -> Self {
        self.seen.ceph.epoch.0 += 1;
        let epoch = self.seen.ceph.epoch;
        let slot = self.slot(osd);
        slot.up = false;
        slot.down_at = epoch;
        self
    }

    /// Marks an OSD up in the osdmap; the mgr does not know it yet.
    pub(crate) fn up(mut self, osd: OsdId) -> Self {
        self.seen.ceph.epoch.0 += 1;
        let epoch = self.seen.ceph.epoch;
        let slot = self.slot(osd);
        slot.up = true;
        slot.up_from = epoch;
        slot.state = SlotState::Exists;
        self
    }

    /// Updates the mgr's statistics to the osdmap: PGs on OSDs that are up are complete.
    pub(crate) fn reported(mut self) -> Self {
        let epoch = self.seen.ceph.epoch;
        for n in 0..PGS {
            let up: BTreeSet<OsdId> = members(n)
                .into_iter()
                .filter(|osd| self.seen.ceph.slots.get(osd).is_some_and(|s| s.up))
                .collect();
            let lacking = 3 - up.len() as u64;
            let pg = self.pg(n);
            pg.state = states(if lacking == 0 { "active+clean" } else { "active+undersized+degraded" });
            pg.degraded = lacking * pg.objects;
            pg.misplaced = 0;
            pg.acting.clone_from(&up);
            pg.up = up;
            pg.reported_epoch = epoch;
        }
        self
    }

    /// Sets the state of one PG, as reported at this moment.
    pub(crate) fn pg_state(mut self, n: u32, text: &str) -> Self {
        let epoch = self.seen.ceph.epoch;
        let pg = self.pg(n);
        pg.state = states(text);
        pg.reported_epoch = epoch;
        self
    }

    // ---- node agents

    /// Adds the Job of the saved attempt.
    pub(crate) fn job(mut self, osd: OsdId, state: JobState) -> Self {
        let record = self.record(osd).clone();
        let name = job_name(&record.id, osd, record.attempt.task, record.attempt.number);
        self.seen.kube.node_jobs.retain(|job| job.name != name);
        self.seen.kube.node_jobs.push(NodeJob {
            uid: format!("uid-{name}"),
            name,
            osd,
            record: record.id,
            attempt: record.attempt.number,
            task: record.attempt.task,
            state,
            created_at: self.seen.at,
            heartbeat_at: None,
            trouble: None,
        });
        self
    }

    /// Ends the agent of the saved attempt with a report.
    pub(crate) fn report(self, osd: OsdId, content: Option<Content>, problem: Option<NodeProblem>) -> Self {
        self.report_with(osd, |report| {
            report.inspection = content.map(|content| Inspection {
                content,
                evidence: Some(evidence(osd)),
                capability: able(),
                volume: None,
                kernel: None,
            });
            report.problem = problem;
        })
    }

    /// Ends the agent of the saved attempt with a report that the caller changes.
    pub(crate) fn report_with(self, osd: OsdId, change: impl FnOnce(&mut NodeReport)) -> Self {
        let mut world = self.job(osd, JobState::Ended);
        let record = world.record(osd).clone();
        let content = old_content(osd);
        let mut report = NodeReport {
            record: record.id.clone(),
            attempt: record.attempt.number,
            osd,
            task: record.attempt.task,
            began_at: world.seen.at,
            ended_at: world.seen.at,
            steps: vec![("prove".to_owned(), 3)],
            issued: record.issued.clone(),
            inspection: Some(Inspection {
                content,
                evidence: Some(evidence(osd)),
                capability: able(),
                volume: None,
                kernel: None,
            }),
            left: Vec::new(),
            problem: None,
        };
        change(&mut report);
        let name = job_name(&record.id, osd, record.attempt.task, record.attempt.number);
        world.seen.kube.reports.insert(name, report);
        world
    }
}
