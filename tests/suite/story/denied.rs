//! A right that is removed, or a mgr that does not answer, during a run: an OSD that is stopped is not
//! abandoned because of that.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use chrono::{DateTime, TimeDelta, Utc};

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::history::Entry;
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::observation::{Observation, SlotState};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan::Questions;
use osd_migrate::ports::{Cluster, Failure, LedgerStore, LoadError, Saved, Severity};
use osd_migrate::run::{End, Ports, RunError};
use osd_migrate::sim::ports::Runner;
use osd_migrate::sim::{World, example};

use super::parallel::in_parallel;
use super::play::{BY_HAND, Ended, Log, Play};

/// Actions that a missing right prevents.
#[derive(Clone, Copy)]
enum Of {
    Observations,
    Acts,
    /// Stops of OSDs.
    Stops,
    /// Observations, which no right brings back.
    Statistics,
    /// Observations, of which a person must correct an object.
    Malformed,
    /// Starts of an OSD, whose Deployment a person must correct.
    Deploys(OsdId),
    /// The adoption of an OSD, and its restart for a taint.
    Starts(OsdId),
    /// Requests for the ledger: each load, and each act that expects the ledger, fails so.
    Ledger(Severity),
}

/// A cluster that denies an action for some time, from the moment when a condition on the world is true.
struct Denying<'a> {
    play: &'a Play,
    runner: Runner,
    of: Of,
    when: fn(&World) -> bool,
    lasts: TimeDelta,
    since: Rc<Cell<Option<DateTime<Utc>>>>,
}

impl Denying<'_> {
    fn observation<T>(&self) -> Option<Result<T, Failure>> {
        let severity = match self.of {
            Of::Observations => Severity::Denied,
            Of::Statistics => Severity::Passing,
            Of::Malformed => Severity::NeedsPerson,
            Of::Acts | Of::Stops | Of::Deploys(_) | Of::Starts(_) | Of::Ledger(_) => return None,
        };
        self.denies().then(|| Err(Failure { severity, message: DENIED.to_owned() }))
    }

    fn denies(&self) -> bool {
        let sim = self.play.sim.borrow();
        if self.since.get().is_none() && (self.when)(&sim.world) {
            self.since.set(Some(sim.world.at));
        }
        self.since.get().is_some_and(|since| sim.world.at - since < self.lasts)
    }
}

const DENIED: &str = "list deployments.apps: forbidden: the Role lacks the verb `list`; check it with: kubectl auth can-i list";

/// Plays a run whose rights are removed, and starts it again like its Job if a failure may be temporary.
fn play(of: Of, when: fn(&World) -> bool, lasts: TimeDelta) -> (Play, Ended) {
    played(Play::new(), of, when, lasts)
}

fn played(play: Play, of: Of, when: fn(&World) -> bool, lasts: TimeDelta) -> (Play, Ended) {
    let runner = Runner::new(&play.sim, None);
    let since = Rc::new(Cell::new(None));
    let denying =
        || Denying { play: &play, runner: runner.clone(), of, when, lasts, since: Rc::clone(&since) };
    let mut ports = Ports {
        cluster: denying(),
        store: denying(),
        lease: runner.clone(),
        clock: runner.clone(),
        audience: Log(Rc::clone(&play.log)),
    };
    let end = loop {
        let mut run = pin!(ports.run(&play.policy));
        match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(RunError::Observe(failure) | RunError::Ledger(LoadError::Failed(failure))))
                if failure.severity == Severity::Passing => {}
            Poll::Ready(end) => break Some(end),
            Poll::Pending => break None,
        }
    };
    drop(ports);
    (play, end)
}

impl Cluster for Denying<'_> {
    async fn observe(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        if let Some(failed) = self.observation() {
            return failed;
        }
        self.runner.observe(in_progress, ask).await
    }

    async fn ask_again(
        &mut self,
        seen: Observation,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        if let Some(failed) = self.observation() {
            return failed;
        }
        self.runner.ask_again(seen, ask).await
    }

    async fn observe_partly(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Option<Observation>, Failure> {
        if let Some(failed) = self.observation() {
            return failed;
        }
        self.runner.observe_partly(in_progress, ask).await
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        let is_concerned = match self.of {
            Of::Acts => true,
            Of::Stops => matches!(act, Act::Kube(KubeAct::Stop { .. })),
            Of::Deploys(osd) => matches!(act, Act::Kube(KubeAct::Deploy(deploy)) if deploy.osd == osd),
            Of::Starts(osd) => {
                matches!(act, Act::Kube(KubeAct::Adopt(_) | KubeAct::Tolerate { .. }))
                    && act.osd() == Some(osd)
            }
            Of::Ledger(_) => !act.only_lifts_noout(),
            Of::Observations | Of::Statistics | Of::Malformed => false,
        };
        if is_concerned && self.denies() {
            let severity = match self.of {
                Of::Ledger(severity) => severity,
                Of::Deploys(_) => Severity::NeedsPerson,
                Of::Observations | Of::Acts | Of::Stops | Of::Starts(_) | Of::Statistics | Of::Malformed => {
                    Severity::Denied
                }
            };
            let failure = Failure { severity, message: DENIED.to_owned() };
            self.runner.note_failed(act, &failure);
            return Err(failure);
        }
        self.runner.act(act).await
    }
}

impl LedgerStore for Denying<'_> {
    type Version = u64;

    async fn load(&mut self) -> Result<(Ledger, u64), LoadError> {
        if let Of::Ledger(severity) = self.of
            && self.denies()
        {
            return Err(LoadError::Failed(Failure { severity, message: DENIED.to_owned() }));
        }
        self.runner.load().await
    }

    async fn save(&mut self, ledger: &Ledger, version: u64) -> Result<Saved, Failure> {
        self.runner.save(ledger, version).await
    }

    async fn append(&mut self, entries: &[Entry]) -> Result<Saved, Failure> {
        self.runner.append(entries).await
    }
}

fn is_destroyed(world: &World) -> bool {
    world.ceph.slots[&BY_HAND].state == SlotState::Destroyed
}

fn noout_lifted(play: &Play) -> usize {
    let lifted =
        |act: &&Act| matches!(act, Act::Ceph(CephAct::UnsetOsdFlags { osd: BY_HAND, noout: true, .. }));
    play.sim.borrow().done.iter().filter(lifted).count()
}

#[test]
fn missing_right_is_waited_for_while_an_osd_is_stopped() {
    for of in [Of::Observations, Of::Acts] {
        let (play, end) = play(of, is_destroyed, TimeDelta::minutes(14));
        assert_eq!(end, Play::finished());
        play.assert_all_is_well();
        let log = play.log.borrow();
        let report = log.iter().find(|line| line.contains("waiting until this is allowed")).unwrap();
        assert!(report.contains("kubectl auth can-i") && report.contains("osd.0 is stopped"), "{report}");
        assert_eq!(noout_lifted(&play), 1, "at its end alone");
    }
}

#[test]
fn noout_is_lifted_after_15_minutes_without_a_right() {
    let (play, end) = play(Of::Observations, is_destroyed, TimeDelta::minutes(20));
    assert_eq!(end, Play::finished());
    play.assert_all_is_well();
    assert_eq!(noout_lifted(&play), 2, "and at its end");
}

/// Checks a run that cannot read the ledger: without the right, it waits, and without an API server, it exits
/// after five minutes, and no other pod can start.
#[test]
fn noout_is_lifted_without_a_ledger() {
    for (severity, minutes) in [(Severity::Denied, 20), (Severity::Passing, 8)] {
        let (play, end) = play(Of::Ledger(severity), is_destroyed, TimeDelta::minutes(minutes));
        assert_eq!(end, Play::finished());
        play.assert_all_is_well();
        assert_eq!(noout_lifted(&play), 2, "{severity:?}, and at its end");
    }
}

/// Checks a run without a mgr, which Ceph does not need to heal: no observation is possible, and each runner
/// exits after five minutes.
#[test]
fn noout_is_lifted_after_15_minutes_without_an_observation() {
    for (minutes, is_early) in [(13, false), (40, true)] {
        let (play, end) = play(Of::Statistics, is_destroyed, TimeDelta::minutes(minutes));
        assert_eq!(end, Play::finished());
        play.assert_all_is_well();
        assert_eq!(noout_lifted(&play) > 1, is_early, "{minutes} minutes; it is lifted at the end, too");
    }
}

#[test]
fn right_that_is_missing_for_seconds_ends_no_run() {
    let (play, end) = play(Of::Observations, |world| !world.agents.is_empty(), TimeDelta::seconds(30));
    assert_eq!(end, Play::finished());
    play.assert_all_is_well();
    let (_, end) = self::play(Of::Observations, |world| !world.agents.is_empty(), TimeDelta::minutes(14));
    let Some(Err(RunError::Observe(why))) = &end else { panic!("{end:?}") };
    assert_eq!(why.message, DENIED);
}

#[test]
fn missing_right_ends_a_run_that_has_stopped_no_osd() {
    for of in [Of::Observations, Of::Acts] {
        let (play, end) = play(of, |_| true, TimeDelta::minutes(14));
        let Some(Err(RunError::Observe(why) | RunError::Act(why, _))) = &end else { panic!("{end:?}") };
        assert_eq!(why.message, DENIED);
        assert!(play.sim.borrow().world.ceph.slots[&BY_HAND].up);
    }
}

/// Checks a policy that refuses a Deployment without replicas: the OSD serves, and nothing of the
/// preparations stays.
#[test]
fn osd_whose_stop_is_denied_is_given_up_with_its_flags() {
    let (play, end) = play(Of::Stops, |_| true, TimeDelta::days(1));
    let Some(Ok(End::Finished(summary))) = &end else { panic!("{end:?}") };
    assert!(summary.skipped.iter().any(|(osd, why)| *osd == BY_HAND && why.contains(DENIED)), "{summary:?}");
    let sim = play.sim.borrow();
    let slot = &sim.world.ceph.slots[&BY_HAND];
    assert!(slot.up && !slot.noout && !slot.noin, "{slot:?}");
    let unset = |act: &&Act| matches!(act, Act::Ceph(CephAct::UnsetOsdFlags { osd: BY_HAND, .. }));
    assert_eq!(sim.done.iter().filter(unset).count(), 1, "flags are set once");
    assert!(play.log.borrow().iter().any(|line| line.contains("osd.0 is about to be stopped")));
}

#[test]
fn malformed_object_is_waited_for_while_an_osd_is_stopped() {
    let (play, end) = play(Of::Malformed, is_destroyed, TimeDelta::seconds(40));
    assert_eq!(end, Play::finished());
    play.assert_all_is_well();
    let (play, end) = self::play(Of::Malformed, is_destroyed, TimeDelta::minutes(14));
    let Some(Err(RunError::Observe(why))) = &end else { panic!("{end:?}") };
    assert_eq!(why.message, DENIED);
    assert!(!play.sim.borrow().world.ceph.slots[&BY_HAND].noout, "Ceph heals after the end");
}

/// Checks two OSDs that are stopped together, of which one needs a person.
#[test]
fn osd_that_needs_a_person_leaves_no_other_osd_down() {
    const STUCK: OsdId = OsdId(2);
    let both_down = |world: &World| [1, 2].iter().all(|osd| !world.ceph.slots[&OsdId(*osd)].up);
    let (play, end) = played(in_parallel(), Of::Deploys(STUCK), both_down, TimeDelta::days(1));
    let Some(Err(RunError::Act(why, _))) = &end else { panic!("{end:?}") };
    assert_eq!(why.severity, Severity::NeedsPerson);
    let sim = play.sim.borrow();
    assert_eq!(sim.ledger().unwrap().records.keys().collect::<Vec<_>>(), [&STUCK]);
    assert!(sim.world.ceph.slots[&OsdId(1)].up && !sim.world.ceph.slots[&STUCK].noout);
}

/// Checks a policy that denies changes of one Deployment: the run ends without that OSD alone.
#[test]
fn osd_whose_start_is_denied_holds_up_no_other() {
    type IsDone = fn(&World) -> bool;
    let mut lost = example::adopt();
    lost.add_disk("disk-new", "h1", 6 << 30);
    // Otherwise the new OSD waits for the PGs of the OSD that is down.
    lost.osd_out(OsdId(0));
    let cases: [(World, IsDone); 2] = [
        (example::tolerate(), |world| !world.kube.daemons[&OsdId(1)].tolerations.is_empty()),
        (lost, |world| world.ceph.slots.get(&OsdId(3)).is_some_and(|slot| slot.up)),
    ];
    for (world, is_other_done) in cases {
        let (play, end) = played(Play::over(world, 1), Of::Starts(OsdId(0)), |_| true, TimeDelta::days(1));
        let Some(Ok(End::Finished(summary))) = &end else { panic!("{end:?}") };
        let [(OsdId(0), why)] = summary.skipped.as_slice() else { panic!("{summary:?}") };
        assert!(why.contains(DENIED), "{why}");
        assert!(is_other_done(&play.sim.borrow().world));
        let tried = play.log.borrow().iter().filter(|line| line.starts_with("not done")).count();
        assert_eq!(tried, 1, "{:?}", play.log.borrow());
    }
}
