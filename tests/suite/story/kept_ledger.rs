//! A run keeps the ledger that it saved, and notices all the same what another client saves.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use osd_migrate::domain::act::Act;
use osd_migrate::domain::history::Entry;
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::observation::Observation;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan::Questions;
use osd_migrate::ports::{Cluster, Failure, LedgerStore, LoadError, Saved};
use osd_migrate::run::Ports;
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::ports::Runner;

use super::play::{Log, Play, ended};

/// Ledger with its version.
type Stored = (Ledger, u64);

/// A runner whose store keeps what it loaded and saved, and to which no watch reports anything.
#[derive(Clone)]
struct Keeping {
    runner: Runner,
    sim: Rc<RefCell<Sim>>,
    kept: Rc<RefCell<Option<Stored>>>,
    saves: Rc<Cell<u32>>,
    /// Number of times that the ledger was read.
    reads: Rc<Cell<u32>>,
    /// Version that was read last.
    read: Rc<Cell<u64>>,
    /// Number of the save right after which another client saves.
    disturbed: u32,
}

impl Keeping {
    /// Runs to the end, while another client saves after that many saves of the run.
    fn run(play: &Play, disturbed: u32) -> Self {
        let runner = Runner::new(&play.sim, None);
        let keeping = Self {
            runner: runner.clone(),
            sim: Rc::clone(&play.sim),
            kept: Rc::default(),
            saves: Rc::default(),
            reads: Rc::default(),
            read: Rc::default(),
            disturbed,
        };
        let mut ports = Ports {
            cluster: keeping.clone(),
            store: keeping.clone(),
            lease: runner.clone(),
            clock: runner,
            audience: Log(Rc::clone(&play.log)),
        };
        assert_eq!(ended(ports.run(&play.policy)), Play::finished());
        play.assert_all_is_well();
        play.assert_once_per_incarnation();
        keeping
    }

    /// Saves the ledger as another client does.
    async fn disturb(&self) {
        let mut other = Runner::new(&self.sim, None);
        let (mut ledger, version) = other.load().await.unwrap();
        ledger.run.serial += 1;
        assert_eq!(other.save(&ledger, version).await, Ok(Saved::Stored));
    }
}

impl LedgerStore for Keeping {
    type Version = u64;

    fn forget(&mut self) -> bool {
        self.kept.take().is_some()
    }

    async fn load(&mut self) -> Result<Stored, LoadError> {
        if let Some(kept) = self.kept.borrow().clone() {
            return Ok(kept);
        }
        let stored = self.runner.load().await?;
        self.reads.set(self.reads.get() + 1);
        self.read.set(stored.1);
        self.kept.replace(Some(stored.clone()));
        Ok(stored)
    }

    async fn save(&mut self, ledger: &Ledger, version: u64) -> Result<Saved, Failure> {
        self.kept.take();
        let saved = self.runner.save(ledger, version).await?;
        if saved == Saved::Stored {
            self.kept.replace(Some((ledger.clone(), self.sim.borrow().version())));
            self.saves.set(self.saves.get() + 1);
            if self.saves.get() == self.disturbed {
                self.disturb().await;
            }
        }
        Ok(saved)
    }

    async fn append(&mut self, entries: &[Entry]) -> Result<Saved, Failure> {
        self.runner.append(entries).await
    }
}

impl Cluster for Keeping {
    async fn observe(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        self.runner.observe(in_progress, ask).await
    }

    async fn ask_again(
        &mut self,
        seen: Observation,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        self.runner.ask_again(seen, ask).await
    }

    async fn observe_partly(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Option<Observation>, Failure> {
        self.runner.observe_partly(in_progress, ask).await
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        let done = self.runner.act(act).await;
        if done.is_err() {
            // The act has read the version, as `K8s::expect_ledger` does.
            self.kept.take();
        }
        done
    }
}

#[test]
fn run_reads_its_ledger_less_than_once_for_two_saves() {
    let play = Play::new();
    let keeping = Keeping::run(&play, u32::MAX);
    let (reads, saves) = (keeping.reads.get(), keeping.saves.get());
    assert!(2 * reads < saves, "{reads} reads of the ledger, {saves} saves");
}

#[test]
fn save_of_another_client_after_any_save_is_noticed() {
    let saves = Keeping::run(&Play::new(), u32::MAX).saves.get();
    for disturbed in 1..=saves {
        let play = Play::new();
        let keeping = Keeping::run(&play, disturbed);
        let stored = play.sim.borrow().version();
        assert_eq!(
            keeping.read.get(),
            stored,
            "the run ends by the stored ledger, save {disturbed} of {saves}"
        );
    }
}
