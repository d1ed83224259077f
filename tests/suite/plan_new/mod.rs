//! The steps of a run with available disks, decision by decision.
//!
//! Tests cover which id a disk gets, the status of each node, and which OSDs are restarted for a taint.

mod approval;
mod clearing;
mod databases;
mod directories;
mod ids;
mod nodes;
mod taints;
mod volumes;
mod waits;

use std::collections::BTreeSet;

use osd_migrate::domain::act::{Act, CephAct, KubeAct, NodeAct};
use osd_migrate::domain::inspection::{Content, Proof, RecordId};
use osd_migrate::domain::ledger::{Ledger, NodeStatus, Quarantine, Record, Strategy};
use osd_migrate::domain::next::{Next, Saving, Summary, Wait};
use osd_migrate::domain::observation::Observation;
use osd_migrate::domain::osd::{NodeName, OsdId, Weight};
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::Policy;
use osd_migrate::sim::{Around, Happening, World, example};

/// A run over a simulated cluster, iteration by iteration.
#[derive(Clone)]
struct Run {
    world: World,
    ledger: Ledger,
    policy: Policy,
}

impl Run {
    fn of(world: World) -> Self {
        let policy = Policy { run: "first".to_owned(), ..Policy::default() };
        Self { world, ledger: Ledger::default(), policy }
    }

    fn seen(&self) -> Observation {
        self.world.observe(|seen| plan::questions(&self.policy, &self.ledger, seen))
    }

    fn next(&self) -> Next {
        plan::plan(&self.policy, &self.ledger, &self.seen())
    }

    /// Runs until a decision matches, and returns it.
    fn until(&mut self, is_it: impl Fn(&Next) -> bool) -> Next {
        for _ in 0..400 {
            let next = self.next();
            if is_it(&next) {
                return next;
            }
            match &next {
                Next::Save { ledger, .. } => self.ledger = ledger.clone(),
                Next::Do(act) => {
                    self.world.act(act).unwrap();
                }
                Next::Wait(_) => self.time_passes(),
                Next::Finished(_) | Next::Halt(_) => panic!("it ended: {next:?}"),
            }
        }
        panic!("it goes round in circles: {:?}", self.next());
    }

    fn time_passes(&mut self) {
        for what in self.world.progress() {
            self.world.happen(&what);
        }
        self.world.happen(&Happening::Minutes(1));
    }

    /// Runs one iteration, in which inventory Jobs of these names make no progress.
    fn step_without(&mut self, stuck: &BTreeSet<String>) {
        match self.next() {
            Next::Save { ledger, .. } => self.ledger = ledger,
            Next::Do(act) => {
                self.world.act(&act).unwrap();
            }
            Next::Wait(_) => {
                let ends = |what: &Happening| matches!(what, Happening::InventoryJobEnds(job) if stuck.contains(job));
                for what in self.world.progress().iter().filter(|what| !ends(what)) {
                    self.world.happen(what);
                }
                self.world.happen(&Happening::Minutes(1));
            }
            next @ (Next::Finished(_) | Next::Halt(_)) => panic!("it ended: {next:?}"),
        }
    }

    fn save(&mut self, is_it: impl Fn(&Saving) -> bool) -> Ledger {
        match self.until(|next| matches!(next, Next::Save { why, .. } if is_it(why))) {
            Next::Save { ledger, .. } => ledger,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the record of the next available disk.
    fn recorded(&mut self) -> Record {
        let before: BTreeSet<OsdId> = self.ledger.records.keys().copied().collect();
        let ledger = self.save(|why| *why == Saving::Record);
        let record = ledger.records.values().find(|record| !before.contains(&record.osd)).unwrap().clone();
        self.ledger = ledger;
        record
    }

    fn status(&self, node: &str) -> Option<(NodeStatus, String)> {
        let work = self.ledger.nodes.get(&NodeName(node.to_owned()))?;
        Some((work.status, work.message.clone()))
    }

    fn finished(&mut self) -> Vec<(String, String)> {
        self.summary().problems
    }

    fn summary(&mut self) -> Summary {
        match self.until(|next| matches!(next, Next::Finished(_))) {
            Next::Finished(summary) => summary,
            other => panic!("{other:?}"),
        }
    }

    /// Runs until the next step is a matching act, and performs it.
    fn acts(&mut self, is_it: impl Fn(&Act) -> bool) -> Act {
        match self.until(|next| matches!(next, Next::Do(act) if is_it(act))) {
            Next::Do(act) => {
                self.world.act(&act).unwrap();
                act
            }
            other => panic!("{other:?}"),
        }
    }
}
