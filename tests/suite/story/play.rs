//! A simulated cluster, runs over it, and assertions about their end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::classify::{self, Class};
use osd_migrate::domain::history;
use osd_migrate::domain::observation::{Control, ControlKind, SlotState};
use osd_migrate::domain::osd::{CrushItem, OsdFsid, OsdId, Weight};
use osd_migrate::domain::plan::Questions;
use osd_migrate::domain::policy::Policy;
use osd_migrate::report::{Event, Reporter};
use osd_migrate::run::{End, Ports, RunError};
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::example::{self, Kind, PoolShape, Shape};
use osd_migrate::sim::ports::{Call, Runner, Side, Watch};
use osd_migrate::sim::{Happening, World};

use crate::support::build::nothing_left;
use osd_migrate_explore::broken_promise;

/// The BlueStore OSD created by hand.
pub(crate) const BY_HAND: OsdId = OsdId(0);
/// The Filestore OSD.
pub(crate) const FILESTORE: OsdId = OsdId(2);
/// An OSD on the third host.
const PARTNER: OsdId = OsdId(4);

/// Returns the fsid that an OSD has at first.
pub(crate) fn old(osd: OsdId) -> OsdFsid {
    example::fsid(osd, 0)
}

/// Returns a world with six OSDs on three hosts, and eight PGs of three replicas.
pub(crate) fn six() -> World {
    use Kind::{ByHand, Filestore, Raw};
    let pool = PoolShape { pgs: 8, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![ByHand, Raw], vec![Filestore, Raw], vec![Raw, Raw]];
    Shape { hosts, pools: vec![pool], disk_gib: 40 }.world()
}

/// Returns `six`, whose PGs find other OSDs.
pub(crate) fn six_with_spares() -> World {
    let mut world = six();
    for placement in world.placements.values_mut() {
        placement.spare = (0..6).map(OsdId).filter(|osd| !placement.home.contains(osd)).collect();
    }
    world
}

pub(crate) type Ended = Option<Result<End, RunError>>;

/// Polls a run until its end, or until it is stopped: nothing else makes it wait.
pub(crate) fn ended(run: impl Future<Output = Result<End, RunError>>) -> Ended {
    match pin!(run).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(end) => Some(end),
        Poll::Pending => None,
    }
}

pub(crate) struct Play {
    pub(crate) policy: Policy,
    pub(crate) sim: Rc<RefCell<Sim>>,
    /// Reported messages.
    pub(crate) log: Rc<RefCell<Vec<String>>>,
}

/// A run that may be polled later.
pub(crate) struct Running {
    pub(crate) runner: Runner,
    future: Pin<Box<dyn Future<Output = Result<End, RunError>>>>,
}

impl Running {
    /// Polls the run until its end, or until it is stopped: nothing else makes it wait.
    pub(crate) fn go_on(&mut self) -> Ended {
        ended(self.future.as_mut())
    }
}

impl Play {
    pub(crate) fn new() -> Self {
        Self::seeded(1)
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        Self::over(six(), seed)
    }

    pub(crate) fn over(world: World, seed: u64) -> Self {
        Self::with_policy(world, Policy::default(), seed)
    }

    pub(crate) fn with_policy(world: World, policy: Policy, seed: u64) -> Self {
        let by_flag = policy.confirmed;
        let mut sim = Sim::new(world, seed);
        sim.schedule.rate = 4 << 30; // the waits are the same, with fewer iterations
        sim.set_witness(Rc::new(move |before, effects, sim| {
            if effects.is_empty() {
                return;
            }
            let ledger = sim.ledger().unwrap();
            if let Some(broken) = broken_promise((before, &sim.world), &ledger, effects, by_flag) {
                panic!("{broken}");
            }
        }));
        Self { policy, ..Self::of(sim) }
    }

    pub(crate) fn of(sim: Sim) -> Self {
        let (sim, log) = (Rc::new(RefCell::new(sim)), Rc::new(RefCell::new(Vec::new())));
        Self { policy: Policy::default(), sim, log }
    }

    pub(crate) fn finished() -> Ended {
        Some(Ok(End::Finished(nothing_left())))
    }

    pub(crate) fn start(&self, watch: Option<Watch>) -> Running {
        let runner = Runner::new(&self.sim, watch);
        let mut ports = Ports {
            cluster: runner.clone(),
            store: runner.clone(),
            lease: runner.clone(),
            clock: runner.clone(),
            audience: Log(Rc::clone(&self.log)),
        };
        let policy = self.policy.clone();
        Running { runner, future: Box::pin(async move { ports.run(&policy).await }) }
    }

    /// Starts a run that is killed when the watch stops it.
    pub(crate) fn run_watched(&self, watch: Option<Watch>) -> Ended {
        self.start(watch).go_on()
    }

    pub(crate) fn run(&self) -> Ended {
        self.run_watched(None)
    }

    /// Starts a run with the watch, and cancels it as soon as osd.0 is stopped.
    pub(crate) fn start_cancelled_at_stop(&self, mut watch: Option<Watch>) -> Running {
        let cancels: Watch = Box::new(move |call, side, world| {
            if let (Call::Act(Act::Kube(KubeAct::Stop { .. })), Side::Done) = (call, side) {
                world.kube.control = Some(Control { kind: ControlKind::Cancel, since: None });
            }
            watch.as_mut().is_some_and(|watch| watch(call, side, world))
        });
        self.start(Some(cancels))
    }

    /// Lets an OSD with replicas of osd.0's PGs go down for 20 seconds, as soon as osd.0 is stopped.
    pub(crate) fn partner_fails(&self) {
        self.sim.borrow_mut().add_fault(Rc::new(|world, _| {
            if world.ceph.slots[&BY_HAND].up {
                return Vec::new();
            }
            let (now, later) = (TimeDelta::zero(), TimeDelta::seconds(20));
            vec![(now, Happening::Dies(PARTNER)), (later, Happening::Recovers(PARTNER))]
        }));
    }

    pub(crate) fn time_passes(&self, seconds: i64) {
        self.sim.borrow_mut().advance(TimeDelta::seconds(seconds));
    }

    /// Asserts the end that every story must have.
    pub(crate) fn assert_all_is_well(&self) {
        let sim = self.sim.borrow();
        let before = six();
        for (osd, end) in ends(&sim) {
            let was = &before.ceph.slots[&osd];
            let migrated = osd == BY_HAND || osd == FILESTORE;
            assert_eq!(end.is_new, migrated, "{osd}");
            assert_eq!(
                (end.crush, end.reweight, end.affinity),
                (was.crush.clone(), was.reweight, was.primary_affinity),
                "{osd}"
            );
            assert_eq!(end.flags, (true, true, false, false), "{osd}: up, in, no flag left");
            assert_eq!(end.class, Class::Conforming, "{osd}");
        }
        assert_no_leftovers(&sim);
        assert_eq!(closed(&sim).len(), 2, "both are in the history");
    }

    /// Asserts that another run does nothing at all.
    pub(crate) fn assert_again_nothing(&self) {
        let state = || (self.sim.borrow().done.len(), self.sim.borrow().version());
        let before = state();
        assert_eq!(self.run(), Self::finished());
        assert_eq!(state(), before, "again: nothing");
    }

    /// Asserts one Stop of each old OSD, and one Destroy of each fsid.
    pub(crate) fn assert_once_per_incarnation(&self) {
        for osd in [BY_HAND, FILESTORE] {
            let stops =
                count(self, |act| matches!(act, Act::Kube(KubeAct::Stop { osd: o, .. }) if *o == osd));
            assert_eq!(stops, 1, "stops of {osd}");
        }
        let destroyed = super::destroyed(self);
        assert!(destroyed.contains_key(&old(BY_HAND)) && destroyed.contains_key(&old(FILESTORE)));
        assert!(destroyed.values().all(|times| *times == 1), "{destroyed:?}");
    }
}

/// Facts at the end that are the same for every course of a story.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EndOf {
    pub(crate) is_new: bool,
    pub(crate) crush: Option<CrushItem>,
    pub(crate) reweight: Weight,
    pub(crate) affinity: Weight,
    /// up, in, noout, noin
    pub(crate) flags: (bool, bool, bool, bool),
    pub(crate) class: Class,
}

pub(crate) fn ends(sim: &Sim) -> BTreeMap<OsdId, EndOf> {
    let classes = classify::classify(&sim.world.observe(|_| Questions::default()));
    let end = |osd: &OsdId| {
        let slot = &sim.world.ceph.slots[osd];
        assert_eq!(slot.state, SlotState::Exists);
        EndOf {
            is_new: slot.fsid != Some(old(*osd)),
            crush: slot.crush.clone(),
            reweight: slot.reweight,
            affinity: slot.primary_affinity,
            flags: (slot.up, slot.is_in, slot.noout, slot.noin),
            class: classes[osd].clone(),
        }
    };
    sim.world.ceph.slots.keys().map(|osd| (*osd, end(osd))).collect()
}

pub(crate) fn assert_no_leftovers(sim: &Sim) {
    let ledger = sim.ledger().unwrap();
    assert!(ledger.records.is_empty() && ledger.run.fence.is_none() && ledger.run.pdb.is_none());
    let kube = &sim.world.kube;
    // If Rook has removed it, Rook creates it again in its next reconcile, if it is still running.
    let is_rooks =
        sim.world.drains_due || kube.operator.as_ref().is_some_and(|operator| operator.generation > 1);
    let pdb = kube.osd_pdb.as_ref().map(|pdb| pdb.max_unavailable);
    assert!(pdb == Some(1) || pdb.is_none() && is_rooks, "{pdb:?}");
    assert!(kube.fence.is_none() && kube.backups.is_empty() && kube.node_jobs.is_empty());
    assert!(kube.reports.is_empty() && kube.leftovers.is_empty());
    assert!(kube.daemons.values().all(|daemon| daemon.stopped_by.is_none() && daemon.replicas == 1));
    closed(sim);
}

/// Returns the OSDs in the history, in which each record occurs once.
pub(crate) fn closed(sim: &Sim) -> Vec<OsdId> {
    let (entries, unread) = history::read(&sim.history.join("\n"));
    assert_eq!(unread, 0, "{:?}", sim.history);
    let ids: BTreeSet<_> = entries.iter().map(|entry| &entry.key.id).collect();
    assert_eq!(ids.len(), entries.len(), "a record is twice in the history");
    entries.iter().map(|entry| entry.key.osd).collect()
}

pub(crate) fn count(play: &Play, is: impl Fn(&Act) -> bool) -> usize {
    play.sim.borrow().done.iter().filter(|act| is(act)).count()
}

pub(crate) struct Log(pub(crate) Rc<RefCell<Vec<String>>>);

impl Reporter for Log {
    async fn report(&mut self, event: Event<'_>) {
        let line = match event {
            Event::Saved { why, .. } => format!("save {}", why.code()),
            Event::Done(act) => format!("do {}", name(act)),
            Event::NotDone { act, why } => format!("not done: {}: {why}", name(act)),
            Event::Waiting { .. } => return,
            other => other.to_string(),
        };
        self.0.borrow_mut().push(line);
        assert!(self.0.borrow().len() < 2000, "it goes round in circles");
    }
}

/// Returns the act's name, as it is serialised.
pub(crate) fn name(act: &Act) -> String {
    let value = serde_json::to_value(act).unwrap();
    value.as_object().unwrap().keys().next().unwrap().clone()
}

/// Prints figures that `cargo test -- --nocapture` shows.
#[expect(clippy::print_stdout, reason = "how much was tried is part of the result")]
pub(crate) fn print_figures(figures: &str) {
    println!("{figures}");
}
