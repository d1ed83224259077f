//! A state of the search: the world, the stored ledger, a second runner that is frozen during its iteration,
//! and the remaining allowances.

use osd_migrate_core::domain::act::{Act, NodeAct};
use osd_migrate_core::domain::expect;
use osd_migrate_core::domain::ledger::Ledger;
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::domain::plan;
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::domain::shared::Shared;
use osd_migrate_core::sim::{Effect, Read, World};

use super::lag::{Kept, Lags};
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
    pub(crate) ledger: Shared<Ledger>,
    /// Number of writes of the ledger.
    pub(crate) version: u32,
    /// A frozen runner: its next act, the version of the ledger that it had read, and what its act had read
    /// before that.
    pub(crate) frozen: Option<(Shared<Next>, u32, Read)>,
    pub(crate) left: Allowance,
    /// Marks a step of a frozen runner.
    pub(crate) thaws: bool,
    /// A flag of the run confirms, not the CephCluster.
    pub(crate) by_flag: bool,
    /// Runners freeze after the check of the ledger that every act begins with, not before it.
    pub(crate) freezes_late: bool,
    /// Runners may keep what they have observed while they wait; see `lag`.
    pub(crate) lags: Lags,
    pub(crate) kept: Option<Kept>,
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

impl State {
    pub(crate) fn new(world: World, left: Allowance) -> Self {
        Self {
            world,
            ledger: Shared::default(),
            version: 0,
            frozen: None,
            left,
            thaws: false,
            by_flag: false,
            freezes_late: false,
            lags: Lags::Never,
            kept: None,
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

    /// Decides for a runner whose act on an OSD has just failed; none if it decides the same again.
    pub(crate) fn decide_after_failure(&self, decided: &Next, policy: &Policy) -> Option<Next> {
        let Next::Do(act) = decided else { return None };
        let policy = self.policy_now(policy);
        let mut seen = self.world.observe(|_| plan::Questions::default());
        seen.failed.note(act.osd(), false, None);
        let seen = self.world.answered(seen, |seen| plan::questions(&policy, &self.ledger, seen));
        let next = plan::plan(&policy, &self.ledger, &seen);
        (next != *decided).then_some(next)
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
                self.ledger = ledger.clone().into();
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

    pub(crate) fn flags_set(&self) -> Vec<OsdId> {
        let set = self.world.ceph.slots.iter().filter(|(_, slot)| slot.noout || slot.noin);
        set.map(|(osd, _)| *osd).collect()
    }
}

/// Returns whether the ledger is read again right before the write of an act.
fn reads_again(act: &Act) -> bool {
    matches!(act, Act::Ceph(act) if act.needs_same_ledger())
}

/// Returns the number of replicas, or shards, without which data is lost.
pub(crate) fn needed(world: &World, pool: u64) -> usize {
    world.ceph.pools[&pool].data_chunks.unwrap_or(1) as usize
}
