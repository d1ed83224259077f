//! Ports of the loop over a `World` in virtual time.
//!
//! A [`Sim`] outlives every runner. A [`Runner`] is one process over it: time passes while it sleeps. A
//! runner can be stopped around each of its calls that change something. It then stays stopped forever (it
//! was killed) or until it is resumed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::act::{Act, Check, KubeAct, NodeAct};
use crate::domain::expect;
use crate::domain::history::{self, Entry};
use crate::domain::ledger::Ledger;
use crate::domain::observation::{FailedActs, Observation};
use crate::domain::osd::OsdId;
use crate::domain::plan::Questions;
use crate::ports::{Clock, Cluster, Failure, Lease, LedgerStore, LoadError, Saved, Tenure, passing};
use crate::sim::acts::checks;
use crate::sim::course::Sim;
use crate::sim::world::World;

/// Time for which a waiting runner keeps parts of an observation: some pauses.
const KEPT: TimeDelta = TimeDelta::seconds(20);

fn expect_version(sim: &Sim, read: u64) -> Result<(), Failure> {
    if expect::unchanged_ledger(&sim.version, &read) {
        return Ok(());
    }
    Err(passing("another client saved since this was decided".to_owned()))
}

/// Call of a runner that changes something.
#[derive(Debug, Clone, Copy)]
pub enum Call<'a> {
    /// Act.
    Act(&'a Act),
    /// Save.
    Save(&'a Ledger),
    /// Entries that are appended to the history.
    Append(&'a [Entry]),
    /// Acquisition of the Lease.
    Hold,
}

/// Position of a runner in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The runner has decided.
    Before,
    /// The runner has read the ledger for the last time, and has not acted yet.
    Late,
    /// Ceph has computed a forecast for the act, which takes minutes in a large cluster.
    Placed,
    /// The call is done.
    Done,
}

/// Function called around each call that changes something.
///
/// It returns whether the runner stops here.
pub type Watch = Box<dyn FnMut(Call<'_>, Side, &mut World) -> bool>;

/// Process with all the ports of a run over a shared world.
#[derive(Clone)]
pub struct Runner {
    sim: Rc<RefCell<Sim>>,
    me: Rc<Me>,
}

struct Me {
    number: u32,
    sim: Rc<RefCell<Sim>>,
    /// Version of the ledger that was read or saved last, on which acts were decided.
    read: Cell<u64>,
    watch: RefCell<Option<Watch>>,
    stopped: Cell<bool>,
    /// Last complete observation, while the runner waits, or after an act that keeps it.
    kept: RefCell<Option<Observation>>,
    /// OSDs whose last acts failed.
    failed: RefCell<FailedActs>,
}

impl Drop for Me {
    fn drop(&mut self) {
        if let Ok(mut sim) = self.sim.try_borrow_mut() {
            sim.gone.insert(self.number);
        }
    }
}

impl Runner {
    /// Notes an act that failed before it reached the cluster.
    pub fn note_failed(&self, act: &Act, failure: &Failure) {
        self.me.failed.borrow_mut().note(act.osd(), false, failure.denied());
    }

    /// Creates a process.
    pub fn new(sim: &Rc<RefCell<Sim>>, watch: Option<Watch>) -> Self {
        let number = {
            let mut sim = sim.borrow_mut();
            sim.runners += 1;
            sim.runners
        };
        let me = Me {
            number,
            sim: Rc::clone(sim),
            read: Cell::new(0),
            watch: RefCell::new(watch),
            stopped: Cell::new(false),
            kept: RefCell::new(None),
            failed: RefCell::default(),
        };
        Self { sim: Rc::clone(sim), me: Rc::new(me) }
    }

    /// Returns whether its watch stopped the runner.
    pub fn is_stopped(&self) -> bool {
        self.me.stopped.get()
    }

    /// Lets Kubernetes regard its pod as gone: other runners may acquire the Lease.
    pub fn is_taken_for_gone(&self) {
        self.sim.borrow_mut().gone.insert(self.me.number);
    }

    /// Resumes the runner, which is not stopped again.
    pub fn thaw(&self) {
        self.me.watch.replace(None);
        self.resume();
    }

    /// Resumes the runner until its watch stops it again.
    pub fn resume(&self) {
        self.me.stopped.set(false);
    }

    async fn point(&self, call: Call<'_>, side: Side) {
        let stops = match self.me.watch.borrow_mut().as_mut() {
            Some(watch) => {
                let mut sim = self.sim.borrow_mut();
                let stops = watch(call, side, &mut sim.world);
                sim.schedule.changed();
                stops
            }
            None => false,
        };
        if stops {
            self.me.stopped.set(true);
            poll_fn(|_| if self.me.stopped.get() { Poll::Pending } else { Poll::Ready(()) }).await;
        }
    }
}

impl Cluster for Runner {
    async fn observe(
        &mut self,
        _: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        let world = &self.sim.borrow().world;
        let seen = world
            .answered(Observation { failed: self.me.failed.borrow().clone(), ..world.unanswered() }, ask);
        self.me.kept.replace(Some(seen.clone()));
        Ok(seen)
    }

    async fn ask_again(
        &mut self,
        seen: Observation,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        Ok(self.sim.borrow().world.answered(seen.unanswered(), ask))
    }

    async fn observe_partly(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Option<Observation>, Failure> {
        let Some(kept) = self.me.kept.take() else { return Ok(None) };
        let world = &self.sim.borrow().world;
        let Observation { at, ceph, kube, .. } = world.unanswered();
        let Some(ceph) = ceph.completed_by(&kept.ceph).filter(|_| at - kept.at < KEPT) else {
            return Ok(None);
        };
        let kube = kube.completed_by(kept.kube.clone(), in_progress);
        self.me.kept.replace(Some(kept));
        let failed = self.me.failed.borrow().clone();
        Ok(Some(world.answered(Observation { at, ceph, kube, failed }, ask)))
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        let done = self.act_as_expected(act).await;
        let denied = done.as_ref().err().and_then(Failure::denied);
        self.me.failed.borrow_mut().note(act.osd(), done.is_ok(), denied);
        done
    }
}

impl Runner {
    async fn act_as_expected(&mut self, act: &Act) -> Result<(), Failure> {
        let kept = self.me.kept.take();
        self.point(Call::Act(act), Side::Before).await;
        let read = self.sim.borrow().world.read();
        expect_version(&self.sim.borrow(), self.me.read.get())?;
        self.point(Call::Act(act), Side::Late).await;
        for check in checks(act) {
            self.sim.borrow().world.check(check).map_err(passing)?;
            if matches!(check, Check::Place { .. }) {
                self.point(Call::Act(act), Side::Placed).await;
            }
        }
        let is_checked_late = match act {
            Act::Kube(KubeAct::BackUp { .. })
            | Act::Node(NodeAct::Agent { .. } | NodeAct::Inventory { .. }) => true,
            Act::Ceph(act) => act.needs_same_ledger(),
            Act::Kube(_) | Act::Node(_) => false,
        };
        if is_checked_late {
            // A created object is deleted again if the ledger was saved meanwhile (ADR 0011, 2): as if it had
            // not been created. Before a change of which only the ledger knows, the ledger is read again.
            expect_version(&self.sim.borrow(), self.me.read.get())?;
        }
        let done = self.sim.borrow_mut().act(act, &read);
        self.point(Call::Act(act), Side::Done).await;
        done.map_err(passing)?;
        self.me.kept.replace(kept.filter(|_| act.keeps_observation()));
        Ok(())
    }
}

impl LedgerStore for Runner {
    type Version = u64;

    async fn load(&mut self) -> Result<(Ledger, u64), LoadError> {
        let sim = self.sim.borrow();
        self.me.read.set(sim.version);
        Ok((sim.ledger()?, sim.version))
    }

    async fn save(&mut self, ledger: &Ledger, version: u64) -> Result<Saved, Failure> {
        self.point(Call::Save(ledger), Side::Before).await;
        let keys = ledger.to_keys().map_err(|error| passing(error.to_string()))?;
        {
            let mut sim = self.sim.borrow_mut();
            if !expect::unchanged_ledger(&sim.version, &version) {
                return Ok(Saved::Conflict);
            }
            sim.store(keys);
            self.me.read.set(sim.version);
        }
        self.point(Call::Save(ledger), Side::Done).await;
        Ok(Saved::Stored)
    }

    async fn append(&mut self, entries: &[Entry]) -> Result<Saved, Failure> {
        self.point(Call::Append(entries), Side::Before).await;
        if expect_version(&self.sim.borrow(), self.me.read.get()).is_err() {
            return Ok(Saved::Conflict);
        }
        {
            let mut sim = self.sim.borrow_mut();
            let missing = history::missing(&sim.history.join("\n"), entries);
            sim.history.extend(missing);
        }
        self.point(Call::Append(entries), Side::Done).await;
        Ok(Saved::Stored)
    }
}

impl Lease for Runner {
    async fn acquire(&mut self) -> Result<Tenure, Failure> {
        self.point(Call::Hold, Side::Before).await;
        let tenure = self.sim.borrow_mut().take_lease(self.me.number);
        self.point(Call::Hold, Side::Done).await;
        Ok(tenure)
    }
}

impl Clock for Runner {
    fn now(&self) -> DateTime<Utc> {
        self.sim.borrow().world.at
    }

    /// Sleeps.
    ///
    /// A sleep after which nothing can ever happen does not end.
    async fn sleep(&mut self, time: Duration) {
        let stuck = {
            let mut sim = self.sim.borrow_mut();
            sim.advance(TimeDelta::from_std(time).unwrap_or_default());
            sim.is_stuck()
        };
        if stuck {
            std::future::pending::<()>().await;
        }
    }
}
