//! Partial observations: a run waits by them, and does nothing else.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::guard::{Guard, without};
use osd_migrate::domain::history::Entry;
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::observation::{Ambiguity, Kube, Observation};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan::Questions;
use osd_migrate::ports::{Cluster, Failure, LedgerStore, LoadError, Saved};
use osd_migrate::run::Ports;
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::ports::Runner;

use super::play::{BY_HAND, FILESTORE, Log, Play, ended};

/// A runner that notes by which observation it acts and saves.
#[derive(Clone)]
struct Noting {
    runner: Runner,
    is_complete: Rc<Cell<bool>>,
    has_saved: Rc<Cell<bool>>,
    partial: Rc<Cell<u32>>,
    complete: Rc<Cell<u32>>,
    again: Rc<Cell<u32>>,
    sim: Rc<RefCell<Sim>>,
    /// Act after which nothing was observed yet.
    acted: Rc<RefCell<Option<Act>>>,
    /// Partial observations right after an act.
    after_acts: Rc<Cell<u32>>,
    /// An earlier answer about admission suffices for what is decided.
    keeps_admission: Rc<Cell<bool>>,
}

impl Noting {
    /// Returns the questions, and notes what they say about admission.
    fn note_questions(&self, questions: Questions) -> Questions {
        self.keeps_admission.set(questions.keeps_admission);
        questions
    }

    /// Checks that a partial observation right after an act shows all that the act changed.
    fn check_after_act(&self, seen: &Observation) {
        let Some(act) = self.acted.take() else { return };
        assert!(act.keeps_observation(), "{act:?}");
        count(&self.after_acts);
        let all = self.sim.borrow().world.observe(|_| Questions::default());
        let without_usage = |mut seen: Observation| {
            for (_, slot) in &mut seen.ceph.slots {
                slot.used_bytes = None;
            }
            seen.unanswered()
        };
        assert_eq!(without_usage(seen.clone()), without_usage(all), "{act:?}");
    }
}

/// Returns whether an act prepares a stop.
fn is_before_the_stop(act: &Act) -> bool {
    matches!(
        act,
        Act::Kube(
            KubeAct::BackUp { .. } | KubeAct::Fence { .. } | KubeAct::LimitDrains { max_unavailable: 0, .. }
        ) | Act::Ceph(CephAct::SetOsdFlags { .. })
    )
}

fn count(cell: &Cell<u32>) {
    cell.set(cell.get() + 1);
}

impl Cluster for Noting {
    async fn observe(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        count(&self.complete);
        self.acted.take();
        self.is_complete.set(true);
        let noting = self.clone();
        self.runner.observe(in_progress, |seen| noting.note_questions(ask(seen))).await
    }

    async fn ask_again(
        &mut self,
        seen: Observation,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        assert!(self.is_complete.get() && self.has_saved.take(), "the observation of no save is used again");
        count(&self.again);
        let noting = self.clone();
        self.runner.ask_again(seen, |seen| noting.note_questions(ask(seen))).await
    }

    async fn observe_partly(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Option<Observation>, Failure> {
        let seen = self.runner.observe_partly(in_progress, ask).await?;
        if let Some(seen) = &seen {
            self.is_complete.set(false);
            count(&self.partial);
            self.check_after_act(seen);
        }
        Ok(seen)
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        assert!(self.is_complete.take(), "by a partial observation, or one with an act: {act:?}");
        assert!(!self.keeps_admission.get() || is_before_the_stop(act), "by an earlier answer: {act:?}");
        self.runner.act(act).await?;
        self.acted.replace(Some(act.clone()));
        Ok(())
    }
}

impl LedgerStore for Noting {
    type Version = u64;

    async fn load(&mut self) -> Result<(Ledger, u64), LoadError> {
        self.runner.load().await
    }

    async fn save(&mut self, ledger: &Ledger, version: u64) -> Result<Saved, Failure> {
        assert!(self.is_complete.get(), "saved by a partial observation, or one with an act");
        self.has_saved.set(true);
        self.runner.save(ledger, version).await
    }

    async fn append(&mut self, entries: &[Entry]) -> Result<Saved, Failure> {
        self.runner.append(entries).await
    }
}

/// Runs to the end, and checks by which observation each act and save is decided.
fn noted() -> Noting {
    let play = Play::new();
    let runner = Runner::new(&play.sim, None);
    let noting = Noting {
        runner: runner.clone(),
        is_complete: Rc::default(),
        has_saved: Rc::default(),
        partial: Rc::default(),
        complete: Rc::default(),
        again: Rc::default(),
        sim: Rc::clone(&play.sim),
        acted: Rc::default(),
        after_acts: Rc::default(),
        keeps_admission: Rc::default(),
    };
    let mut ports = Ports {
        cluster: noting.clone(),
        store: noting.clone(),
        lease: runner.clone(),
        clock: runner,
        audience: Log(Rc::clone(&play.log)),
    };
    assert_eq!(ended(ports.run(&play.policy)), Play::finished());
    play.assert_all_is_well();
    noting
}

#[test]
fn run_acts_and_saves_only_by_complete_observations() {
    let noting = noted();
    assert!(noting.partial.get() > 10, "{} partial observations", noting.partial.get());
    // A third of what a run does are saves.
    let (again, complete) = (noting.again.get(), noting.complete.get());
    assert!(again > 10 && complete < 4 * again, "{complete} complete observations, {again} used again");
    // Each OSD is inspected, stopped, recreated and started.
    let (after_acts, osds) = (noting.after_acts.get(), 2);
    assert!(after_acts >= 3 * osds && after_acts <= 6 * osds, "{after_acts} partial observations after acts");
}

#[test]
fn run_without_its_guard_saves_by_a_partial_observation() {
    // The guard stays out on a thread that ends like this.
    let run = || without(Some(Guard::OnlyWaitsByParts), || drop(noted()));
    let broken = std::thread::spawn(run).join().expect_err("nothing is broken");
    let broken = broken.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(broken.contains("by a partial observation"), "{broken}");
}

#[test]
fn partial_observation_has_osds_in_progress_new_and_others_old() {
    let mut world = super::play::six();
    let before = world.observe(|_| Questions::default());
    for osd in [BY_HAND, FILESTORE] {
        world.kube.daemons.remove(&osd);
    }
    let now = world.observe(|_| Questions::default());
    let seen = now.kube.completed_by(before.kube, &BTreeSet::from([BY_HAND]));
    assert!(!seen.daemons.contains_key(&BY_HAND) && seen.daemons.contains_key(&FILESTORE));
}

#[test]
fn ambiguity_of_osds_that_are_read_is_not_kept() {
    let world = super::play::six();
    let now = || world.observe(|_| Questions::default()).kube;
    let of = |osds: &[OsdId]| Ambiguity::of(osds.iter().copied(), format!("{osds:?}"));
    let twice = Ambiguity::of_two_deployments(BY_HAND, false, "two Deployments".to_owned());
    let kept = vec![of(&[]), of(&[BY_HAND]), of(&[FILESTORE]), of(&[BY_HAND, FILESTORE]), twice];
    let before = Kube { ambiguities: kept, ..now() };
    let seen = now().completed_by(before, &BTreeSet::from([BY_HAND]));
    assert_eq!(seen.ambiguities, [of(&[]), of(&[FILESTORE]), of(&[BY_HAND, FILESTORE])]);
}

#[test]
fn osd_that_came_up_needs_a_complete_observation() {
    let mut world = super::play::six();
    let before = world.observe(|_| Questions::default()).ceph;
    let slot = world.ceph.slots.get_mut(&BY_HAND).unwrap();
    (slot.used_bytes, slot.up) = (None, false);
    let seen = world.observe(|_| Questions::default()).ceph.completed_by(&before).unwrap();
    assert!(!seen.slots[&BY_HAND].up);
    assert_eq!(seen.slots[&BY_HAND].used_bytes, before.slots[&BY_HAND].used_bytes);
    let slot = world.ceph.slots.get_mut(&BY_HAND).unwrap();
    slot.up_from.0 += 5;
    assert_eq!(world.observe(|_| Questions::default()).ceph.completed_by(&before), None);
}
