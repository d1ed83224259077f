//! Story of a rehearsal, line by line: what a run reports, what the node agents do, and what goes wrong.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::commands::Names;
use crate::domain::next::{Saving, Wait};
use crate::domain::osd::OsdId;
use crate::report::{Event, Reporter};
use crate::sim::course::{Occurred, Sim};
use crate::sim::{Effect, Happening};

/// Length below which a wait is not shown: agents and daemons start in 3 to 8 s.
const SHORT: TimeDelta = TimeDelta::seconds(10);

/// Line of the story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Time since the start.
    pub at: TimeDelta,
    /// OSD that the line is about; none if it is about the whole run.
    pub osd: Option<OsdId>,
    /// Kind of line.
    pub kind: LineKind,
    /// Text.
    pub text: String,
}

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// A step of the migration, or a wait.
    Step,
    /// A wait of a few seconds.
    ShortWait,
    /// The end of an OSD's migration, good or bad.
    End,
    /// Something that goes wrong.
    Fault,
}

/// Lines so far, and the current wait.
pub(super) struct Story {
    sim: Rc<RefCell<Sim>>,
    began: DateTime<Utc>,
    wait: Option<Waited>,
    /// All lines.
    pub(super) lines: Vec<Line>,
}

/// Wait that is reported when it ends.
#[derive(Debug, Clone)]
struct Waited {
    since: DateTime<Utc>,
    code: &'static str,
    osd: Option<OsdId>,
    /// Text of the wait when most bytes were left.
    text: String,
    bytes: u64,
}

impl Story {
    /// Creates a story that starts now.
    pub(super) fn new(sim: &Rc<RefCell<Sim>>) -> Self {
        Self { sim: Rc::clone(sim), began: sim.borrow().world.at, wait: None, lines: Vec::new() }
    }

    fn now(&self) -> DateTime<Utc> {
        self.sim.borrow().world.at
    }

    /// Adds a step at the current time.
    pub(super) fn say(&mut self, osd: Option<OsdId>, text: impl Into<String>) {
        self.add(self.now(), osd, LineKind::Step, &text.into());
    }

    /// Adds a fault at the current time.
    pub(super) fn fault(&mut self, osd: Option<OsdId>, text: impl Into<String>) {
        self.add(self.now(), osd, LineKind::Fault, &text.into());
    }

    fn add(&mut self, at: DateTime<Utc>, osd: Option<OsdId>, kind: LineKind, text: &str) {
        let rook_ceph = "rook-ceph".to_owned();
        let names = Names { namespace: rook_ceph.clone(), cluster: Some(rook_ceph), ..Names::default() };
        self.lines.push(Line { at: at - self.began, osd, kind, text: names.complete(text) });
    }

    /// Adds what happened in the cluster meanwhile.
    fn catch_up(&mut self) {
        let occurred: Vec<Occurred> = std::mem::take(&mut self.sim.borrow_mut().occurred);
        for Occurred { at, what, effects, is_fault } in occurred {
            if is_fault {
                let osd = self.wait.as_ref().and_then(|wait| wait.osd);
                self.end_wait(at);
                self.add(at, osd, LineKind::Fault, &happening(&what));
            }
            for (osd, text) in effects.iter().filter_map(effect) {
                self.add(at, Some(osd), LineKind::Step, &text);
            }
        }
    }

    fn end_wait(&mut self, at: DateTime<Utc>) {
        let Some(Waited { since, osd, text, bytes, .. }) = self.wait.take() else { return };
        if (at - since).num_seconds() > 0 {
            let kind = if at - since < SHORT { LineKind::ShortWait } else { LineKind::Step };
            let at_first = if bytes > 0 { ", at first" } else { "" };
            self.add(at, osd, kind, &format!("waited {}{at_first}: {text}", how_long(at - since)));
        }
    }

    fn waits(&mut self, wait: &Wait, text: String) {
        self.catch_up();
        let now = self.now();
        let bytes = if let Wait::ActiveClean { bytes, .. } = wait { *bytes } else { 0 };
        let (code, osd) = (wait.code(), wait.osd());
        match &mut self.wait {
            Some(waited) if (waited.code, waited.osd) == (code, osd) => {
                if bytes > waited.bytes {
                    (waited.text, waited.bytes) = (text, bytes);
                }
            }
            _ => {
                self.end_wait(now);
                self.wait = Some(Waited { since: now, code, osd, text, bytes });
            }
        }
    }

    /// Adds what a run reported.
    pub(super) fn add_event(&mut self, event: &Event<'_>) {
        if let Event::Waiting { wait, .. } = event {
            return self.waits(wait, event.to_string());
        }
        self.end();
        if event.is_detail() {
            return;
        }
        let is_end = matches!(event, Event::Finished(_) | Event::Halted(_) | Event::Lease(_));
        let osd = if is_end { None } else { event.osd().or_else(|| self.in_progress()) };
        self.add(self.now(), osd, kind(event), &event.to_string());
    }

    /// Returns the OSD of the last line: what concerns the whole run is done for it.
    fn in_progress(&self) -> Option<OsdId> {
        self.lines.iter().rev().find_map(|line| line.osd)
    }

    /// Ends the current wait.
    pub(super) fn end(&mut self) {
        self.catch_up();
        self.end_wait(self.now());
    }

    /// Returns the last wait, if the run never left it.
    pub(super) fn waits_for(&self) -> Option<&str> {
        self.wait.as_ref().map(|waited| waited.text.as_str())
    }
}

/// Reporter that writes the loop's events into the story.
pub(super) struct Listener(pub(super) Rc<RefCell<Story>>);

impl Reporter for Listener {
    async fn report(&mut self, event: Event<'_>) {
        self.0.borrow_mut().add_event(&event);
    }
}

fn kind(event: &Event<'_>) -> LineKind {
    let is_end = matches!(
        event,
        Event::Saved {
            why: Saving::Closing
                | Saving::Uncleared { .. }
                | Saving::Withdrawn
                | Saving::NotAdmitted { .. }
                | Saving::Purged
                | Saving::Quarantine { .. },
            ..
        }
    );
    if is_end { LineKind::End } else { LineKind::Step }
}

/// Returns what a node agent did, in the words of its own log.
fn effect(effect: &Effect) -> Option<(OsdId, String)> {
    match effect {
        Effect::Wiped { osd, .. } => {
            Some((*osd, format!("{osd}: its disk is proven again, tombstoned and wiped")))
        }
        Effect::PartCleared { osd, .. } => {
            Some((*osd, format!("{osd}: the device for its database is proven again and wiped")))
        }
        Effect::Registered(osd, _) => {
            Some((*osd, format!("{osd}: ceph-volume prepares its disk with the same id")))
        }
        Effect::Cleared { osd, .. } => {
            Some((*osd, format!("{osd}: its old directory is proven again and removed")))
        }
        Effect::Purged(osd) => {
            Some((*osd, format!("{osd}: its id is purged, and with it its CRUSH location")))
        }
        Effect::Stopped(_)
        | Effect::MarkedOut(_)
        | Effect::Destroyed(..)
        | Effect::Deployed(..)
        | Effect::Undeployed(_)
        | Effect::AgentCreated(_)
        | Effect::Small(_)
        | Effect::Restarted(_)
        | Effect::Fence
        | Effect::Operator(_)
        | Effect::Pdb(_) => None,
    }
}

/// Returns what went wrong, with the OSD in place of its Job's long name.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others have their own texts")]
fn happening(what: &Happening) -> String {
    let task = |job: &str| {
        let mut parts = job.trim_start_matches("osd-migrate-").rsplitn(4, '-');
        parts.nth(3).map_or_else(|| job.to_owned(), str::to_owned)
    };
    match what {
        Happening::AgentDies(job) => format!("the node agent is killed ({})", task(job)),
        Happening::AgentLost(job) => {
            format!(
                "Kubernetes regards the node agent's Job as failed while its process runs on ({})",
                task(job)
            )
        }
        Happening::AgentStumbles(_, how) => format!("ceph-volume: {how}"),
        _ => what.to_string(),
    }
}

/// Formats a time: `1:02:03`.
pub(super) fn time(at: TimeDelta) -> String {
    let seconds = at.num_seconds();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn how_long(time: TimeDelta) -> String {
    match (time.num_hours(), time.num_minutes() % 60, time.num_seconds() % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
