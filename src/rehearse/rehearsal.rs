//! One rehearsal: runs on a simulated cluster, one after the other, until they end or get stuck.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use chrono::TimeDelta;

use crate::domain::act::{Act, CephAct};
use crate::domain::osd::OsdId;
use crate::domain::policy::Policy;
use crate::rehearse::fault::{Kind, RequestedFault};
use crate::rehearse::story::{Line, Listener, Story};
use crate::run::{End, Ports, RunError};
use crate::sim::World;
use crate::sim::course::Sim;
use crate::sim::example;
use crate::sim::ports::{Call, Runner, Side, Watch};

/// Delay of a new runner.
///
/// Kubernetes starts a pod of a Job that failed 10 s later; the pod takes 2 s to start.
const RESTART: TimeDelta = TimeDelta::seconds(12);

/// Result of a rehearsal.
pub struct Rehearsal {
    /// Cluster before the rehearsal.
    pub before: World,
    /// Cluster after the rehearsal.
    pub after: World,
    /// Lines of the story.
    pub lines: Vec<Line>,
    /// Duration in virtual time.
    pub took: TimeDelta,
    /// Bytes copied by backfill and recovery.
    pub copied: u64,
    /// Faults that struck, by name.
    pub struck: Vec<String>,
    /// Faults that found no occasion.
    pub not_struck: Vec<String>,
    /// End of the run; none if it waits for a problem that only a person can fix.
    pub end: Option<Result<End, RunError>>,
}

/// Rehearses with this seed and these faults.
///
/// Each OSD takes `rate` bytes a second of backfill.
pub fn rehearse(seed: u64, asked: &[RequestedFault], rate: u64) -> Rehearsal {
    let before = example::twelve();
    let sim = Rc::new(RefCell::new(Sim::new(before.clone(), seed)));
    sim.borrow_mut().schedule.rate = rate;
    let struck: Rc<RefCell<Vec<String>>> = Rc::default();
    let mut kills: Vec<OsdId> = Vec::new();
    for one in asked {
        match one.in_the_cluster() {
            Some(fault) => {
                let (names, name) = (Rc::clone(&struck), one.name());
                sim.borrow_mut().add_fault(Rc::new(move |world, steps| {
                    let what = fault(world, steps);
                    if !what.is_empty() {
                        names.borrow_mut().push(name.clone());
                    }
                    what
                }));
            }
            None => kills.push(one.osd),
        }
    }
    let story = Rc::new(RefCell::new(Story::new(&sim)));
    let mut end = one_run(&sim, &story, &mut kills, &struck);
    while matches!(end, Ended::Killed) {
        end = one_run(&sim, &story, &mut kills, &struck);
    }
    let mut story = story.borrow_mut();
    let end = match end {
        Ended::Itself(end) => Some(end),
        Ended::Killed => None,
        Ended::Stuck => {
            let what = story.waits_for().unwrap_or("nothing").to_owned();
            story.say(
                None,
                format!("the rehearsal ends here: the run would wait until a person acts: {what}"),
            );
            None
        }
    };
    let sim = sim.borrow();
    let struck = struck.borrow().clone();
    Rehearsal {
        took: sim.world.at - before.at,
        copied: sim.copied,
        not_struck: asked.iter().map(RequestedFault::name).filter(|name| !struck.contains(name)).collect(),
        after: sim.world.clone(),
        before,
        lines: std::mem::take(&mut story.lines),
        struck,
        end,
    }
}

enum Ended {
    Itself(Result<End, RunError>),
    Killed,
    Stuck,
}

/// Runs one process from its start to its end, or until it is killed.
fn one_run(
    sim: &Rc<RefCell<Sim>>,
    story: &Rc<RefCell<Story>>,
    kills: &mut Vec<OsdId>,
    struck: &Rc<RefCell<Vec<String>>>,
) -> Ended {
    let targets = kills.clone();
    let watch: Watch = Box::new(move |call, side, _| match (call, side) {
        (Call::Act(Act::Ceph(CephAct::Destroy { osd, .. })), Side::Done) => targets.contains(osd),
        _ => false,
    });
    let runner = Runner::new(sim, Some(watch));
    let mut ports = Ports {
        cluster: runner.clone(),
        store: runner.clone(),
        lease: runner.clone(),
        clock: runner.clone(),
        audience: Listener(Rc::clone(story)),
    };
    let policy = Policy::default();
    let polled = pin!(ports.run(&policy)).as_mut().poll(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(end) => {
            story.borrow_mut().end();
            Ended::Itself(end)
        }
        Poll::Pending if runner.is_stopped() => {
            let last = sim.borrow().done.last().cloned();
            if let Some(Act::Ceph(CephAct::Destroy { osd, .. })) = last {
                kills.retain(|other| *other != osd);
                struck.borrow_mut().push(RequestedFault { kind: Kind::KillRunner, osd }.name());
                let mut story = story.borrow_mut();
                story.end();
                story.fault(Some(osd), format!("the run is killed right after it destroyed {osd}"));
            }
            sim.borrow_mut().advance(RESTART);
            story.borrow_mut().end();
            story.borrow_mut().say(None, "a new run starts; it knows only the ledger and what it observes");
            Ended::Killed
        }
        Poll::Pending => Ended::Stuck,
    }
}
