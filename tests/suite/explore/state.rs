//! A state of the search: the world, the stored ledger, a second runner that is frozen during its iteration,
//! and the remaining allowances.
//!
//! The canonical projection of a state makes states that behave alike count as one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use chrono::{DateTime, TimeDelta, Utc};

use osd_migrate::domain::act::{Act, CephAct, NodeAct};
use osd_migrate::domain::expect;
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::next::Next;
use osd_migrate::domain::osd::{Epoch, OsdId};
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::Policy;
use osd_migrate::sim::{Effect, Read, World};

use super::owner::Owner;

/// Number of faults, freezes and leaps that may still come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Allowance {
    pub(crate) faults: u8,
    pub(crate) freezes: u8,
    pub(crate) leaps: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) ledger: Ledger,
    /// Number of writes of the ledger.
    pub(crate) version: u32,
    /// A frozen runner: its next act, the version of the ledger that it had read, and what its act had read
    /// before that.
    pub(crate) frozen: Option<(Box<Next>, u32, Read)>,
    pub(crate) left: Allowance,
    /// Marks a step of a frozen runner.
    pub(crate) thaws: bool,
    /// A flag of the run confirms, not the CephCluster.
    pub(crate) by_flag: bool,
    /// Runners freeze after the check of the ledger that every act begins with, not before it.
    pub(crate) freezes_late: bool,
    /// Seconds between what a runner saw and what it does.
    pub(crate) pace: i64,
    pub(crate) owner: Owner,
}

/// Effects of a step.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) effects: Vec<Effect>,
    /// The ledger was written.
    pub(crate) saved: bool,
    /// Reason for which an act was refused by its preconditions.
    pub(crate) refused: Option<String>,
}

/// Bytes that a value feeds to a hasher, hashed in one go: half of a search's time went into small writes.
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        unreachable!("128 bits are asked for")
    }
}

impl State {
    pub(crate) fn new(world: World, left: Allowance) -> Self {
        Self {
            world,
            ledger: Ledger::default(),
            version: 0,
            frozen: None,
            left,
            thaws: false,
            by_flag: false,
            freezes_late: false,
            pace: 0,
            owner: Owner::Absent,
        }
    }

    /// Returns what a runner decides now: the real `plan` on the real questions.
    pub(crate) fn decide(&self, policy: &Policy) -> Next {
        let policy = self.policy_now(policy);
        let seen = self.world.observe(|seen| plan::questions(&policy, &self.ledger, seen));
        plan::plan(&policy, &self.ledger, &seen)
    }

    /// Performs what a runner decided when the ledger had that version.
    pub(crate) fn perform(&mut self, next: &Next, version: u32) -> Done {
        self.perform_until(next, version, usize::MAX)
    }

    /// Performs what a frozen runner was about to do.
    ///
    /// A runner that was frozen late had read the object before its check of the ledger.
    pub(crate) fn perform_as_read(&mut self, next: &Next, version: u32, read: &Read) -> Done {
        let read = if self.freezes_late { read.clone() } else { self.world.read() };
        self.perform_on(next, version, usize::MAX, &read)
    }

    pub(crate) fn perform_until(&mut self, next: &Next, version: u32, writes: usize) -> Done {
        let read = self.world.read();
        self.perform_on(next, version, writes, &read)
    }

    fn perform_on(&mut self, next: &Next, version: u32, writes: usize, read: &Read) -> Done {
        match next {
            Next::Save { ledger, .. } => {
                if !expect::unchanged_ledger(&self.version, &version) {
                    return Done::default();
                }
                self.ledger = ledger.clone();
                self.version += 1;
                Done { saved: true, ..Done::default() }
            }
            Next::Do(act)
                if (!self.freezes_late || reads_again(act))
                    && !expect::decided_by_ledger(&self.version, &version) =>
            {
                Done { refused: Some("another client saved the ledger since".to_owned()), ..Done::default() }
            }
            Next::Do(act) => match self.world.act_as_read(act, writes, read) {
                Ok(effects) => {
                    self.clean_up_report(act);
                    Done { effects, ..Done::default() }
                }
                Err(why) => Done { refused: Some(why), ..Done::default() },
            },
            Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => Done::default(),
        }
    }

    /// Removes the report of a closed record, and leaves only the Job to create.
    ///
    /// A runner that is frozen after its check of the ledger has created the report of its agent before that
    /// (ADR 0011). If the record was closed since, the report was cleaned up.
    fn clean_up_report(&mut self, act: &Act) {
        if let Act::Node(NodeAct::Agent { request, .. }) = act
            && !self.ledger.records.values().any(|record| record.id == request.record)
        {
            self.world.kube.leftovers.remove(&request.record);
            // The garbage collector deletes a key whose owner belongs to a deleted report.
            self.world.kube.keys.retain(|_, owner| owner.record != request.record);
        }
    }

    /// Returns a value that is equal for states that behave alike: epochs as ranks, times as deadlines
    /// passed, history dropped.
    pub(crate) fn canonical(&self) -> u128 {
        let mut plain = self.clone();
        plain.flatten();
        let mut bytes = Bytes(Vec::with_capacity(1 << 14));
        plain.hash(&mut bytes);
        twox_hash::XxHash3_128::oneshot(&bytes.0)
    }

    fn flatten(&mut self) {
        let now = self.world.at;
        self.flatten_epochs();
        for job in &mut self.world.kube.node_jobs {
            job.created_at = passed(now, job.created_at);
            job.heartbeat_at = job.heartbeat_at.map(|at| passed(now, at));
        }
        for inventory in self.world.kube.inventories.values_mut() {
            inventory.created_at = passed(now, inventory.created_at);
            if let Some(report) = &mut inventory.report {
                (report.began_at, report.ended_at) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
            }
        }
        for report in self.world.kube.reports.values_mut() {
            report.began_at = DateTime::UNIX_EPOCH;
            report.ended_at = passed(now, report.ended_at);
        }
        if self.frozen.is_none() {
            // The next decision reads the generations again; only a frozen runner remembers one.
            self.world.kube.daemons.values_mut().for_each(|daemon| daemon.generation = 0);
        }
        self.flatten_versions();
        flatten_ledger(&mut self.ledger, now);
        let version = self.version;
        if let Some((next, read, _)) = &mut self.frozen {
            // It only matters whether the version is the present one.
            *read = u32::from(*read == version);
            if let Next::Save { ledger, .. } = next.as_mut() {
                flatten_ledger(ledger, now);
            }
        }
        self.version = 1;
        self.world.at = DateTime::UNIX_EPOCH;
    }

    /// Reduces the CephCluster's versions to the compared facts.
    ///
    /// The facts are whether the version is the one that the fence was set for, and whether Rook has skipped
    /// a later one.
    fn flatten_versions(&mut self) {
        let kube = &mut self.world.kube;
        let (present, skipped, after) = (kube.cluster_revision(), kube.skipped, self.ledger.run.fence_after);
        kube.skipped = (skipped < present).then_some(0);
        // Without a fence it is never read.
        kube.fenced_at = kube.fenced_at.filter(|_| kube.fence.is_some()).map(|at| {
            let acknowledged = skipped.is_some_and(|skipped| skipped > at);
            u64::from(after.is_none_or(|after| at >= after)) + 2 * u64::from(acknowledged)
        });
        self.ledger.run.fence_after = after.map(|_| 0);
        if let Some((_, _, read)) = &mut self.frozen {
            // A runner that is not frozen late reads it when it resumes.
            let read_later = self.world.read();
            *read = if self.freezes_late { read.clone() } else { read_later };
            read.flatten(&self.world.kube.cluster_version);
        }
        let kube = &mut self.world.kube;
        kube.cluster_version.clear();
        let run = &mut self.ledger.run;
        if run.operator.is_some() {
            run.last_operator = None; // it is not asked then
        }
        let was = run.operator.as_mut().or(run.last_operator.as_mut());
        let was = was.map(|was| std::mem::take(&mut was.generation));
        let is_frozen = self.frozen.is_some();
        let kube = &mut self.world.kube;
        if let Some(operator) = &mut kube.operator {
            // Unchanged, scaled by osd-migrate, or changed externally since.
            operator.generation = was.map_or(0, |was| (operator.generation - was).min(2));
        }
        if !is_frozen {
            // The next decision reads it again; only a frozen runner remembers one.
            self.flatten_pdb();
        }
    }

    /// Reduces the PodDisruptionBudget's generation to three cases.
    ///
    /// Either osd-migrate limited it and it was not written since, or it is not limited yet, or it was
    /// written externally since.
    fn flatten_pdb(&mut self) {
        let run = &mut self.ledger.run;
        if run.pdb.is_some() {
            run.last_pdb = None; // it is not asked then
        }
        let was = run.pdb.as_mut().or(run.last_pdb.as_mut());
        let (uid, was) = was.map_or((None, None), |was| {
            (was.uid.replace("saved".to_owned()), was.generation.as_mut().map(std::mem::take))
        });
        self.world.pdbs = 0;
        if let Some(pdb) = &mut self.world.kube.osd_pdb {
            // The PodDisruptionBudget that was saved, or another one.
            let is_it = uid.is_none_or(|uid| uid == pdb.uid);
            let which = if is_it { "saved" } else { "another" };
            which.clone_into(&mut pdb.uid);
            pdb.generation = was.map_or(0, |was| (pdb.generation - was).clamp(-1, 2));
        }
        if let Some(uid) = &mut self.world.kube.own_pdb {
            uid.clear();
        }
    }

    fn flatten_epochs(&mut self) {
        // It only matters whether it is the present boot.
        let raw_up: BTreeMap<OsdId, Epoch> =
            self.world.ceph.slots.iter().map(|(osd, slot)| (*osd, slot.up_from)).collect();
        let ceph = &mut self.world.ceph;
        let mut epochs: BTreeSet<Epoch> = BTreeSet::new();
        epochs.extend(ceph.slots.values().flat_map(|slot| [slot.up_from, slot.down_at]));
        epochs.extend(ceph.pgs.values().map(|pg| pg.reported_epoch));
        epochs.extend(self.world.placements.values().map(|placement| placement.changed));
        // 0 stays 0: an id that was never up.
        epochs.remove(&Epoch(0));
        let ranks: BTreeMap<Epoch, u64> = epochs.into_iter().zip(1..).collect();
        let rank = |epoch: &mut Epoch| epoch.0 = ranks.get(epoch).copied().unwrap_or(0);
        for slot in ceph.slots.values_mut() {
            rank(&mut slot.up_from);
            rank(&mut slot.down_at);
        }
        ceph.pgs.values_mut().for_each(|pg| rank(&mut pg.reported_epoch));
        self.world.placements.values_mut().for_each(|placement| rank(&mut placement.changed));
        let present = std::mem::replace(&mut ceph.epoch, Epoch(0));
        for record in self.ledger.records.values_mut() {
            if let Some(lost) = &mut record.lost_upmaps {
                lost.epoch = Epoch(u64::from(lost.epoch == present));
            }
            if let Some((epoch, _)) = &mut record.up_seen {
                *epoch = Epoch(u64::from(raw_up.get(&record.osd) == Some(&*epoch)));
            }
        }
    }

    pub(crate) fn flags_set(&self) -> Vec<OsdId> {
        let set = self.world.ceph.slots.iter().filter(|(_, slot)| slot.noout || slot.noin);
        set.map(|(osd, _)| *osd).collect()
    }
}

/// Returns whether the ledger is read again right before the write of an act.
fn reads_again(act: &Act) -> bool {
    matches!(act, Act::Ceph(CephAct::SetNoScrub { .. } | CephAct::UnsetNoScrub { .. }))
}

/// Deadlines in the domain, in minutes: 2 and 8 between attempts of an agent, 15 for `noout` and a start,
/// twice that for a silent agent, 60 for an OSD that does not become empty.
const DEADLINES: [i64; 8] = [1, 2, 3, 8, 10, 15, 30, 60];

fn passed(now: DateTime<Utc>, at: DateTime<Utc>) -> DateTime<Utc> {
    let minutes = (now - at).num_minutes();
    let class: i64 = DEADLINES.iter().map(|deadline| i64::from(minutes >= *deadline)).sum();
    DateTime::UNIX_EPOCH + TimeDelta::seconds(class)
}

fn flatten_ledger(ledger: &mut Ledger, now: DateTime<Utc>) {
    for work in ledger.nodes.values_mut() {
        work.since = DateTime::UNIX_EPOCH;
    }
    let run = &mut ledger.run;
    for was in run.operator.iter_mut().chain(&mut run.last_operator) {
        was.since = was.since.map(|at| passed(now, at));
    }
    if let Some(order) = &mut run.fence_order {
        order.since = DateTime::UNIX_EPOCH;
    }
    if let Some(skipping) = &mut run.skipping {
        skipping.since = passed(now, skipping.since);
    }
    for record in ledger.records.values_mut() {
        record.milestones.clear();
        for time in [&mut record.down_since, &mut record.blocked_since, &mut record.saved_at] {
            *time = time.map(|at| passed(now, at));
        }
        record.stop_intended_at = record.stop_intended_at.map(|at| passed(now, at));
        record.wipe_blocked_since = record.wipe_blocked_since.map(|at| passed(now, at));
        record.left_to_rook_since = record.left_to_rook_since.map(|at| passed(now, at));
        // Less than a minute counts as none: the first minute passes a deadline of seconds.
        record.up_seen = record.up_seen.map(|(epoch, at)| (epoch, passed(now, at)));
        if let Some(empty) = &mut record.empty {
            for time in [&mut empty.intended_at, &mut empty.out_since, &mut empty.emptied_at] {
                *time = time.map(|at| passed(now, at));
            }
            empty.least = empty.least.map(|(bytes, at)| (bytes, passed(now, at)));
        }
        if let Some(quarantine) = &mut record.quarantine {
            quarantine.since = DateTime::UNIX_EPOCH;
        }
    }
}

/// Returns the number of replicas, or shards, without which data is lost.
pub(crate) fn needed(world: &World, pool: u64) -> usize {
    world.ceph.pools[&pool].data_chunks.unwrap_or(1) as usize
}
