//! World in virtual time, and what else outlives every runner: the stored ledger, the history, the Lease.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::act::Act;
use crate::domain::ledger::{Ledger, Unreadable};
use crate::ports::Tenure;
use crate::sim::acts::Read;
use crate::sim::happening::Happening;
use crate::sim::schedule::Schedule;
use crate::sim::world::{Effect, World};

/// Time after which a wait counts as endless, if nothing is pending and no fault is to come.
const STUCK: TimeDelta = TimeDelta::hours(2);

/// Fault: a function that is called repeatedly with the world and the number of steps so far, until it
/// returns what happens, and after which delay.
pub type Fault = Rc<dyn Fn(&World, u64) -> Vec<(TimeDelta, Happening)>>;

/// Observer of each change of the world: it receives the world before, the effects, and the world afterwards.
pub type Witness = Rc<dyn Fn(&World, &[Effect], &Sim)>;

/// Creates a fault at that time.
pub fn at(time: DateTime<Utc>, what: Happening) -> Fault {
    Rc::new(
        move |world, _| if world.at >= time { vec![(TimeDelta::zero(), what.clone())] } else { Vec::new() },
    )
}

/// Creates a fault that strikes as soon as so many steps have happened.
pub fn after(steps: u64, what: Happening) -> Fault {
    Rc::new(
        move |_, so_far| if so_far >= steps { vec![(TimeDelta::zero(), what.clone())] } else { Vec::new() },
    )
}

/// Happening that occurred.
#[derive(Debug, Clone)]
pub struct Occurred {
    /// Time.
    pub at: DateTime<Utc>,
    /// Happening.
    pub what: Happening,
    /// Effects.
    pub effects: Vec<Effect>,
    /// Whether it is a fault, and did not happen by itself.
    pub is_fault: bool,
}

/// State that outlives every runner.
#[derive(Clone)]
pub struct Sim {
    /// Cluster.
    pub world: World,
    /// Lines of the history.
    pub history: Vec<String>,
    /// Acts that succeeded.
    pub done: Vec<Act>,
    /// Happenings that were not collected yet.
    pub occurred: Vec<Occurred>,
    /// Pending happenings.
    pub schedule: Schedule,
    /// Bytes copied by backfill and recovery.
    pub copied: u64,
    stored: BTreeMap<String, String>,
    /// Stored ledger, parsed once.
    read: Result<Ledger, Unreadable>,
    pub(super) version: u64,
    holder: Option<u32>,
    /// Until when a runner that no longer exists holds the Lease.
    pub lease_held_until: Option<DateTime<Utc>>,
    pub(super) runners: u32,
    pub(super) gone: BTreeSet<u32>,
    faults: Vec<Fault>,
    later: BTreeMap<(DateTime<Utc>, u64), Happening>,
    asked: u64,
    witness: Option<Witness>,
    steps: u64,
    moved_at: DateTime<Utc>,
}

impl Sim {
    /// Creates a world at its start, with nothing stored, and with the times of this seed.
    pub fn new(world: World, seed: u64) -> Self {
        Self {
            moved_at: world.at,
            world,
            history: Vec::new(),
            done: Vec::new(),
            occurred: Vec::new(),
            schedule: Schedule::new(seed),
            copied: 0,
            stored: BTreeMap::new(),
            read: Ok(Ledger::default()),
            version: 0,
            holder: None,
            lease_held_until: None,
            runners: 0,
            gone: BTreeSet::new(),
            faults: Vec::new(),
            later: BTreeMap::new(),
            asked: 0,
            witness: None,
            steps: 0,
        }
    }

    /// Sets the witness that sees each change.
    pub fn set_witness(&mut self, witness: Witness) {
        self.witness = Some(witness);
    }

    /// Adds a fault.
    pub fn add_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Returns the number of faults that found no occasion yet.
    pub fn faults_to_come(&self) -> usize {
        self.faults.len()
    }

    /// Returns what is left if all runners are killed now.
    #[must_use]
    pub fn without_runners(&self) -> Self {
        Self { gone: (1..=self.runners).collect(), ..self.clone() }
    }

    /// Returns the stored ledger.
    pub fn ledger(&self) -> Result<Ledger, Unreadable> {
        self.read.clone()
    }

    /// Returns the texts of the ledger's ConfigMap.
    pub fn stored(&self) -> &BTreeMap<String, String> {
        &self.stored
    }

    pub(super) fn store(&mut self, keys: BTreeMap<String, String>) {
        self.read = Ledger::from_keys(&keys);
        self.stored = keys;
        self.version += 1;
    }

    /// Returns how often the ledger was stored.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Lets time pass, and everything happen that is due by then.
    pub fn advance(&mut self, time: TimeDelta) {
        let end = self.world.at + time;
        self.strike();
        while let Some((due, next)) = self.next().filter(|(due, _)| *due <= end) {
            self.world.at = due.max(self.world.at);
            match next {
                Due::ByItself(what) => self.happen(what, false),
                Due::AskedFor(key) => {
                    if let Some(what) = self.later.remove(&key) {
                        self.happen(what, true);
                    }
                }
            }
        }
        self.world.at = end;
        self.strike();
    }

    fn happen(&mut self, what: Happening, is_fault: bool) {
        self.copied += self.schedule.take(&what, &self.world);
        let before = self.witness.as_ref().map(|_| self.world.clone());
        let effects = self.world.happen(&what);
        self.attest(before, &effects);
        self.occurred.push(Occurred { at: self.world.at, what, effects, is_fault });
        self.moved();
    }

    /// Does an act of a runner, whose checks have passed.
    pub(super) fn act(&mut self, act: &Act, read: &Read) -> Result<(), String> {
        let before = self.witness.as_ref().map(|_| self.world.clone());
        let effects = self.world.act_checked(act, usize::MAX, read)?;
        self.attest(before, &effects);
        self.done.push(act.clone());
        self.moved();
        Ok(())
    }

    fn attest(&self, before: Option<World>, effects: &[Effect]) {
        if let (Some(witness), Some(before)) = (&self.witness, before) {
            witness(&before, effects, self);
        }
    }

    /// Returns the next happening, either by itself or requested.
    fn next(&mut self) -> Option<(DateTime<Utc>, Due)> {
        let by_itself = self.schedule.next(&self.world).map(|(due, what)| (due, Due::ByItself(what)));
        let asked_for = self.later.first_key_value().map(|(key, _)| (key.0, Due::AskedFor(*key)));
        match (by_itself, asked_for) {
            (Some(first), Some(second)) => Some(if second.0 <= first.0 { second } else { first }),
            (first, second) => first.or(second),
        }
    }

    fn moved(&mut self) {
        self.steps += 1;
        self.moved_at = self.world.at;
        self.schedule.changed();
        self.strike();
    }

    fn strike(&mut self) {
        let (world, steps) = (&self.world, self.steps);
        let mut struck = Vec::new();
        self.faults.retain(|fault| {
            let what = fault(world, steps);
            let waits = what.is_empty();
            struck.extend(what);
            waits
        });
        for (delay, what) in struck {
            self.asked += 1;
            self.later.insert((self.world.at + delay, self.asked), what);
        }
    }

    pub(super) fn is_stuck(&mut self) -> bool {
        self.world.at - self.moved_at > STUCK && self.next().is_none()
    }

    pub(super) fn take_lease(&mut self, runner: u32) -> Tenure {
        if self.lease_held_until.is_some_and(|until| self.world.at < until) {
            return Tenure::Wait("a lost run has the Lease".to_owned());
        }
        if self.holder.is_some_and(|holder| holder != runner && !self.gone.contains(&holder)) {
            return Tenure::Other("another run is at work".to_owned());
        }
        self.holder = Some(runner);
        Tenure::Mine
    }
}

enum Due {
    ByItself(Happening),
    AskedFor((DateTime<Utc>, u64)),
}
