//! Metrics and traces of simulated runs, over real sockets of this computer; and the names of the metrics in
//! the chart and the pages.

mod chart;
mod listener;
mod metrics;
mod names;
mod prometheus;
mod spans;
mod traces;

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, Utc};

use osd_migrate::report::{Event, Reporter, RunProgress};
use osd_migrate::run::Ports;
use osd_migrate::sim::ports::{Runner, Watch};

use crate::story::play::{Ended, Play, ended};

/// uid of the Job of all runs here.
pub(crate) const JOB: &str = "6f1c0c0e-9d3b-4b1a-8a55-0d7c2f3e4a5b";

/// What a test does with an event, and with the progress after it.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&Event<'_>, &RunProgress, DateTime<Utc>);

struct Audience<'a> {
    runner: Runner,
    progress: Rc<RefCell<RunProgress>>,
    take: Take<'a>,
}

impl Reporter for Audience<'_> {
    async fn report(&mut self, event: Event<'_>) {
        let now = osd_migrate::ports::Clock::now(&self.runner);
        let mut progress = self.progress.borrow_mut();
        progress.add(&event, &event.waits(), now);
        (self.take)(&event, &progress, now);
    }
}

/// Runs one process of the Job until its end, or until its watch stops it.
///
/// The progress continues that of the process before, as it is stored with the status.
pub(crate) fn run(
    play: &Play,
    watch: Option<Watch>,
    progress: &Rc<RefCell<RunProgress>>,
    take: Take<'_>,
) -> Ended {
    let runner = Runner::new(&play.sim, watch);
    let stored = progress.borrow().pace.clone();
    *progress.borrow_mut() = RunProgress::of_job(JOB, Some(stored));
    let audience = Audience { runner: runner.clone(), progress: Rc::clone(progress), take };
    let mut ports = Ports {
        cluster: runner.clone(),
        store: runner.clone(),
        lease: runner.clone(),
        clock: runner.clone(),
        audience,
    };
    ended(ports.run(&play.policy))
}

pub(crate) fn progress() -> Rc<RefCell<RunProgress>> {
    Rc::new(RefCell::new(RunProgress::of_job(JOB, None)))
}
