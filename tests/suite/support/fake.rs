//! A cluster in memory behind the real ports: deliberately simple, and honest where it matters. Acts check what they expect,
//! as the adapters do; the mgr's statistics lag behind the map; nothing happens but in `tick`, that is while the program
//! sleeps. Each port call can be where the program dies. The promises are asserted where they could be broken.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use osd_migrate::domain::act::Act;
use osd_migrate::domain::inspection::{
    Content, Inspection, NodeProblem, NodeReport, NodeRequest, NodeTask, RecordId,
};
use osd_migrate::domain::ledger::{Ledger, Record};
use osd_migrate::domain::observation::{
    Daemon, JobState, NodeJob, Observation, OkToStop, Order, OrderKind, Pg, SlotState,
};
use osd_migrate::domain::osd::{Epoch, OsdFsid, OsdId, PgId, Weight};
use osd_migrate::domain::plan::Questions;
use osd_migrate::ports::{
    Audience, Clock, Cluster, Failure, Lease, LedgerStore, LoadError, Saved, Severity, Tenure,
};
use osd_migrate::report::Event;

use super::build::{
    OSDS, PGS, able, claim, daemon, evidence, job_name, label, members, metadata, observation, old,
    old_content, pg, pg_id, pod, states,
};

/// The world and the two things that outlive the program: the ledger and its history.
pub(crate) struct Sim {
    pub(crate) seen: Observation,
    pub(crate) disks: BTreeMap<OsdId, Content>,
    pub(crate) stored: BTreeMap<String, String>,
    pub(crate) history: BTreeSet<RecordId>,
    /// Acts that took effect.
    pub(crate) done: Vec<Act>,
    /// What the audience was told.
    pub(crate) log: Vec<String>,
    /// Rebuilds that fail after `osd new` before one goes through.
    pub(crate) rebuilds_fail: u32,
    /// This OSD goes down for some ticks as soon as that one rests.
    pub(crate) outage: Option<(OsdId, OsdId, u32)>,
    /// As soon as that OSD is stopped, somebody orders this.
    pub(crate) orders_at_stop: Option<(OsdId, OrderKind)>,
    /// The port call's beginning or end at which the program dies.
    pub(crate) dies_at: Option<usize>,
    /// Beginnings and ends of port calls that change the world, so far.
    pub(crate) points: usize,
    version: u64,
    requests: BTreeMap<String, NodeRequest>,
    claims: BTreeMap<OsdId, BTreeSet<OsdFsid>>,
    /// OSDs whose data is complete, and those that fill.
    complete: BTreeSet<OsdId>,
    filling: BTreeSet<OsdId>,
    /// PGs as the mgr will know them next.
    lagging: BTreeMap<PgId, Pg>,
}

impl Sim {
    pub(crate) fn new() -> Self {
        let osds = || (0..OSDS).map(OsdId);
        let seen = observation();
        Self {
            lagging: seen.ceph.pgs.clone(),
            seen,
            disks: osds().map(|osd| (osd, old_content(osd))).collect(),
            complete: osds().collect(),
            stored: BTreeMap::new(),
            history: BTreeSet::new(),
            done: Vec::new(),
            log: Vec::new(),
            rebuilds_fail: 0,
            outage: None,
            orders_at_stop: None,
            dies_at: None,
            points: 0,
            version: 0,
            requests: BTreeMap::new(),
            claims: BTreeMap::new(),
            filling: BTreeSet::new(),
        }
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::from_keys(&self.stored).unwrap()
    }

    fn bump(&mut self) -> Epoch {
        self.seen.ceph.epoch.0 += 1;
        self.seen.ceph.epoch
    }

    fn is_up(&self, osd: OsdId) -> bool {
        self.seen.ceph.slots.get(&osd).is_some_and(|slot| slot.up)
    }

    /// P2, asked of the truth and not of the statistics: every PG of the OSD has two complete copies elsewhere.
    fn assert_two_copies_without(&self, osd: OsdId) {
        for n in (0..PGS).filter(|n| members(*n).contains(&osd)) {
            let others = members(n)
                .iter()
                .filter(|o| **o != osd && self.is_up(**o) && self.complete.contains(o))
                .count();
            assert!(
                others >= 2,
                "{osd} is about to lose its data while {} has {others} other copies",
                pg_id(n)
            );
        }
    }

    // ---- what happens while the program sleeps

    pub(crate) fn tick(&mut self) {
        self.seen.at += TimeDelta::seconds(1);
        let now = self.truth();
        self.seen.ceph.pgs = std::mem::replace(&mut self.lagging, now);
        self.break_partner();
        for osd in (0..OSDS).map(OsdId) {
            self.fill(osd);
            self.run_daemon(osd);
        }
        for n in 0..self.seen.kube.node_jobs.len() {
            self.run_job(n);
        }
    }

    fn truth(&self) -> BTreeMap<PgId, Pg> {
        let state_of = |n: u32| {
            let up: BTreeSet<OsdId> = members(n).into_iter().filter(|osd| self.is_up(*osd)).collect();
            let acting: BTreeSet<OsdId> = up.intersection(&self.complete).copied().collect();
            let state = match (up.len(), acting.len()) {
                (_, 3) => "active+clean",
                (3, _) => "active+undersized+degraded+remapped+backfilling",
                _ => "active+undersized+degraded",
            };
            let degraded = (3 - acting.len() as u64) * 100;
            let before = &self.lagging[&pg_id(n)];
            let same = before.up == up && before.acting == acting && before.state == states(state);
            let reported_epoch = if same { before.reported_epoch } else { self.seen.ceph.epoch };
            Pg { up, acting, state: states(state), degraded, reported_epoch, ..pg(n) }
        };
        (0..PGS).map(|n| (pg_id(n), state_of(n))).collect()
    }

    fn break_partner(&mut self) {
        let Some((partner, osd, ticks)) = self.outage else { return };
        if self.is_up(partner) && !self.is_up(osd) && ticks > 0 {
            let epoch = self.bump();
            let slot = self.seen.ceph.slots.get_mut(&partner).unwrap();
            (slot.up, slot.down_at) = (false, epoch);
        }
        if !self.is_up(partner) {
            self.outage = (ticks > 0).then_some((partner, osd, ticks.saturating_sub(1)));
        }
    }

    fn fill(&mut self, osd: OsdId) {
        if self.is_up(osd) && !self.complete.contains(&osd) && !self.filling.insert(osd) {
            self.filling.remove(&osd);
            self.complete.insert(osd);
        }
    }

    fn run_daemon(&mut self, osd: OsdId) {
        let broken = self.outage.is_some_and(|(partner, _, ticks)| partner == osd && ticks > 0);
        let Some(daemon) = self.seen.kube.daemons.get_mut(&osd) else { return };
        let starts = daemon.fsid;
        match (daemon.replicas, daemon.pods.is_empty()) {
            (0, _) if self.seen.ceph.slots[&osd].up => {
                let epoch = self.bump();
                let slot = self.seen.ceph.slots.get_mut(&osd).unwrap();
                (slot.up, slot.down_at) = (false, epoch);
            }
            (0, _) => daemon.pods.clear(),
            (_, true) => daemon.pods.push(pod(osd)),
            (_, false) if !broken => self.boot(osd, starts),
            (_, false) => {}
        }
    }

    /// A daemon boots where device, slot, key and Deployment name the same OSD.
    fn boot(&mut self, osd: OsdId, starts: Option<OsdFsid>) {
        let (on_disk, store, on_partition) = match &self.disks[&osd] {
            Content::Bluestore { osd_fsid, finished: true, .. } => (*osd_fsid, "bluestore", false),
            Content::FilestorePartition { osd_fsid, .. } => (*osd_fsid, "filestore", true),
            _ => return,
        };
        let slot = &self.seen.ceph.slots[&osd];
        let fits = slot.fsid == Some(on_disk) && starts.is_none_or(|fsid| fsid == on_disk);
        if slot.up || !fits || !self.seen.ceph.auth[&osd] {
            return;
        }
        let epoch = self.bump();
        let slot = self.seen.ceph.slots.get_mut(&osd).unwrap();
        if slot.state == SlotState::New && !slot.noin {
            slot.reweight = Weight::ONE;
        }
        (slot.state, slot.up, slot.up_from) = (SlotState::Exists, true, epoch);
        slot.metadata = Some(metadata(store, osd, on_partition));
    }

    fn run_job(&mut self, n: usize) {
        let job = &mut self.seen.kube.node_jobs[n];
        let (name, osd, began) = (job.name.clone(), job.osd, job.heartbeat_at.is_some());
        match job.state {
            JobState::Waiting => job.state = JobState::Running,
            JobState::Running if job.task == NodeTask::Rebuild && !began => {
                job.heartbeat_at = Some(self.seen.at);
                self.begin_rebuild(osd);
            }
            JobState::Running => {
                job.state = JobState::Ended;
                let problem = self.end_agent(&name);
                self.report(&name, problem);
            }
            JobState::Ended => {}
        }
    }

    /// The agent proves, writes the tombstone, and lets ceph-volume claim the slot; mkfs is not done yet.
    fn begin_rebuild(&mut self, osd: OsdId) {
        let disk = self.disks[&osd].clone();
        if disk == old_content(osd) {
            self.assert_two_copies_without(osd);
            assert_eq!(
                self.seen.ceph.slots[&osd].state,
                SlotState::Destroyed,
                "the wipe of a slot that is not destroyed"
            );
            assert!(
                self.seen.kube.daemons.get(&osd).is_none_or(|d| d.pods.is_empty()),
                "the wipe under a running pod"
            );
        }
        let claims = self.claims.entry(osd).or_default();
        let ours = matches!(&disk, Content::Bluestore { osd_fsid, .. } if claims.contains(osd_fsid));
        let slot = self.seen.ceph.slots.get_mut(&osd).unwrap();
        if slot.state != SlotState::Destroyed || !(disk == old_content(osd) || ours) {
            return;
        }
        let fsid = claim(osd, u32::try_from(claims.len()).unwrap() + 1);
        claims.insert(fsid);
        (slot.state, slot.fsid) = (SlotState::New, Some(fsid));
        self.seen.ceph.auth.insert(osd, true);
        self.complete.remove(&osd);
        self.disks.insert(osd, label(fsid, osd, false));
        self.bump();
    }

    fn end_agent(&mut self, name: &str) -> Option<NodeProblem> {
        let request = self.requests[name].clone();
        match (request.task, self.disks[&request.osd].clone()) {
            (NodeTask::Rebuild, Content::Bluestore { osd_fsid, finished: false, .. }) => {
                if self.rebuilds_fail > 0 {
                    self.rebuilds_fail -= 1;
                    return Some(NodeProblem::Failed("mkfs: input/output error".to_owned()));
                }
                self.disks.insert(request.osd, label(osd_fsid, request.osd, true));
                None
            }
            (NodeTask::Inspect, _) => None,
            (task, disk) => Some(NodeProblem::Refused(format!("{task} on {disk:?}"))),
        }
    }

    fn report(&mut self, name: &str, problem: Option<NodeProblem>) {
        let request = &self.requests[name];
        let content = self.disks[&request.osd].clone();
        let is_old = content == old_content(request.osd);
        let report = NodeReport {
            record: request.record.clone(),
            attempt: request.attempt,
            osd: request.osd,
            task: request.task,
            began_at: self.seen.at,
            ended_at: self.seen.at,
            steps: Vec::new(),
            claims: self.claims.get(&request.osd).cloned().unwrap_or_default(),
            inspection: Some(Inspection {
                content,
                evidence: is_old.then(|| evidence(request.osd)),
                capability: able(),
            }),
            problem,
        };
        self.seen.kube.reports.insert(name.to_owned(), report);
    }

    // ---- acts: each finds what it expects, or does nothing and says so

    fn try_act(&mut self, act: &Act) -> Result<(), String> {
        let need = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        let ledger = self.ledger();
        match act {
            Act::Keep { osd, record, deployment, .. } => {
                need(self.seen.kube.daemons[osd].uid == *deployment, "another Deployment")?;
                self.seen.kube.kept.insert(*osd, record.clone());
            }
            Act::Agent { request, .. } => self.make_job(request, &ledger),
            Act::Fence { value, .. } => {
                need(self.seen.kube.fence.is_none(), "a fence is there")?;
                assert_eq!(ledger.run.fence.as_ref(), Some(value), "a fence that is not recorded");
                self.seen.kube.fence = Some(value.clone());
            }
            Act::Unfence { value } => {
                need(self.seen.kube.fence.as_ref() == Some(value), "not our fence")?;
                self.seen.kube.fence = None;
            }
            Act::Hush { osd, fsid, up, noout, noin, .. } => {
                let slot = self.seen.ceph.slots.get_mut(osd).ok_or("no such OSD")?;
                need(slot.fsid == *fsid && slot.up == *up, "not that OSD")?;
                (slot.noout, slot.noin) = (slot.noout || *noout, slot.noin || *noin);
            }
            Act::Unhush { osd, noout, noin } => {
                let slot = self.seen.ceph.slots.get_mut(osd).ok_or("no such OSD")?;
                (slot.noout, slot.noin) = (slot.noout && !noout, slot.noin && !noin);
            }
            Act::Stop { osd, fsid, record, deployment, resource_version } => {
                let saved = &ledger.records[osd];
                assert!(
                    saved.evidence.is_some() && !saved.pgs.is_empty(),
                    "P5: Stop before its record is complete"
                );
                let daemon = self.seen.kube.daemons.get_mut(osd).ok_or("no Deployment")?;
                need(
                    daemon.uid == *deployment && daemon.resource_version == *resource_version,
                    "it changed",
                )?;
                need(
                    self.seen.ceph.slots[osd].up && self.seen.ceph.slots[osd].fsid == Some(*fsid),
                    "not that OSD",
                )?;
                (daemon.replicas, daemon.stopped_by) = (0, Some(record.clone()));
                daemon.resource_version.push('+');
                if let Some((_, kind)) = self.orders_at_stop.filter(|(at, _)| at == osd) {
                    self.seen.kube.order = Some(Order { kind, since: None });
                }
            }
            Act::Restart { osd, record } => {
                let daemon = self.seen.kube.daemons.get_mut(osd).ok_or("no Deployment")?;
                need(daemon.stopped_by.as_ref() == Some(record), "not stopped by this record")?;
                (daemon.replicas, daemon.stopped_by) = (1, None);
                daemon.resource_version.push('+');
            }
            Act::Destroy { osd, fsid, .. } => {
                let slot = &self.seen.ceph.slots[osd];
                need(!slot.up && slot.fsid == Some(*fsid), "EBUSY, or another OSD")?;
                if *fsid == old(*osd) {
                    self.assert_two_copies_without(*osd);
                }
                let slot = self.seen.ceph.slots.get_mut(osd).unwrap();
                (slot.state, slot.fsid) = (SlotState::Destroyed, None);
                self.seen.ceph.auth.insert(*osd, false);
                self.bump();
            }
            Act::Deploy(deploy) => {
                let osd = deploy.osd;
                assert_eq!(
                    ledger.records[&osd].new,
                    Some(deploy.fsid),
                    "Deploy before the new fsid is saved"
                );
                let by = self.seen.kube.daemons.get(&osd).map(|daemon| daemon.stopped_by.clone());
                need(by.is_none_or(|by| by.as_ref() == Some(&deploy.record)), "not stopped by this record")?;
                let new =
                    Daemon { fsid: Some(deploy.fsid), activates: true, pods: Vec::new(), ..daemon(osd) };
                self.seen.kube.daemons.insert(osd, new);
            }
            Act::Sweep { osd, record } => {
                self.seen.kube.node_jobs.retain(|job| job.record != *record);
                self.seen.kube.reports.retain(|_, report| report.record != *record);
                self.seen.kube.kept.remove(osd);
            }
            Act::DropAgent { .. }
            | Act::Reclaim { .. }
            | Act::PurgeStray { .. }
            | Act::RestoreCrush { .. } => {
                panic!("nothing in this world leads to {act:?}")
            }
        }
        Ok(())
    }

    fn make_job(&mut self, request: &NodeRequest, ledger: &Ledger) {
        let attempt = &ledger.records[&request.osd].attempt;
        assert_eq!(
            (attempt.number, attempt.task),
            (request.attempt, request.task),
            "a Job of an attempt not saved"
        );
        let name = job_name(&request.record, request.osd, request.task, request.attempt);
        if self.requests.insert(name.clone(), request.clone()).is_none() {
            self.seen.kube.node_jobs.push(NodeJob {
                uid: format!("uid-{name}"),
                name,
                osd: request.osd,
                record: request.record.clone(),
                attempt: request.attempt,
                task: request.task,
                state: JobState::Waiting,
                created_at: self.seen.at,
                heartbeat_at: None,
                trouble: None,
            });
        }
    }
}

/// All ports at once.
#[derive(Clone)]
pub(crate) struct Fake(pub(crate) Rc<RefCell<Sim>>);

impl Fake {
    /// The beginning or the end of a port call that changes the world; at one of them the program may die, that is: wait
    /// for ever. (Dying around a call that only looks or tells is the same as dying at the point before it: what the
    /// program knew is lost either way.)
    async fn point(&self) {
        let dies = {
            let mut sim = self.0.borrow_mut();
            sim.points += 1;
            assert!(sim.points < 5000, "it goes round in circles; the last words: {:?}", sim.log.last());
            sim.dies_at == Some(sim.points)
        };
        if dies {
            std::future::pending::<()>().await;
        }
    }

    async fn effect<T>(&self, effect: impl FnOnce(&mut Sim) -> T) -> T {
        self.point().await;
        let result = effect(&mut self.0.borrow_mut());
        self.point().await;
        result
    }
}

impl Cluster for Fake {
    async fn observe(&mut self, ask: impl FnOnce(&Observation) -> Questions) -> Result<Observation, Failure> {
        let sim = self.0.borrow();
        let mut seen = sim.seen.clone();
        (seen.ceph.ok_to_stop, seen.ceph.auth) = (BTreeMap::new(), BTreeMap::new());
        let asked = ask(&seen);
        for set in asked.ok_to_stop {
            let bad = seen.ceph.pgs.values().filter(|pg| pg.acting.difference(&set).count() < 2).count();
            seen.ceph.ok_to_stop.insert(set, OkToStop { ok: bad == 0, bad_pgs: u32::try_from(bad).unwrap() });
        }
        seen.ceph.auth = asked.auth.iter().map(|osd| (*osd, sim.seen.ceph.auth[osd])).collect();
        Ok(seen)
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        self.effect(|sim| {
            sim.try_act(act).map_err(|message| Failure { severity: Severity::Passing, message })?;
            sim.done.push(act.clone());
            Ok(())
        })
        .await
    }
}

impl LedgerStore for Fake {
    type Version = u64;

    async fn load(&mut self) -> Result<(Ledger, u64), LoadError> {
        let sim = self.0.borrow();
        Ok((Ledger::from_keys(&sim.stored)?, sim.version))
    }

    async fn save(&mut self, ledger: &Ledger, version: u64) -> Result<Saved, Failure> {
        self.effect(|sim| {
            if sim.version != version {
                return Ok(Saved::Conflict);
            }
            sim.stored = ledger.to_keys().unwrap();
            sim.version += 1;
            Ok(Saved::Stored)
        })
        .await
    }

    async fn close(&mut self, record: &Record) -> Result<(), Failure> {
        self.effect(|sim| {
            sim.history.insert(record.id.clone());
            Ok(())
        })
        .await
    }
}

impl Lease for Fake {
    async fn hold(&mut self) -> Result<Tenure, Failure> {
        Ok(Tenure::Mine)
    }
}

impl Clock for Fake {
    fn now(&self) -> DateTime<Utc> {
        self.0.borrow().seen.at
    }

    async fn sleep(&mut self, _: Duration) {
        self.effect(Sim::tick).await;
    }
}

impl Audience for Fake {
    async fn tell(&mut self, event: Event<'_>) {
        let line = match event {
            Event::Saved { why, .. } => format!("save {}", why.word()),
            Event::Done(act) => format!("do {}", name(act)),
            Event::NotDone { why, .. } => format!("not done: {why}"),
            Event::Waiting { .. } => return,
            other => other.to_string(),
        };
        self.0.borrow_mut().log.push(line);
    }
}

/// The act's name, as it is serialised.
pub(crate) fn name(act: &Act) -> String {
    let value = serde_json::to_value(act).unwrap();
    value.as_object().unwrap().keys().next().unwrap().clone()
}
