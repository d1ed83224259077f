//! Story of a rehearsal, line by line, in the words of storage administrators.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::act::{Act, CephAct, KubeAct, NodeAct};
use crate::domain::inspection::NodeTask;
use crate::domain::ledger::Ledger;
use crate::domain::next::{Saving, Wait};
use crate::domain::osd::OsdId;
use crate::ports::Reporter;
use crate::report::{Event, words};
use crate::sim::course::{Acknowledged, Sim};
use crate::sim::{Effect, Happening};

/// Columns that a line may take.
const WIDTH: usize = 100;
/// Columns of the time.
const INDENT: usize = 10;

const GIB: u64 = 1 << 30;

/// Line of the story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Time since the start.
    pub at: TimeDelta,
    /// Text.
    pub says: String,
}

/// Lines so far, and the current wait.
pub(super) struct Story {
    sim: Rc<RefCell<Sim>>,
    began: DateTime<Utc>,
    wait: Option<(DateTime<Utc>, Waited)>,
    /// All lines.
    pub(super) lines: Vec<Line>,
}

/// Wait as the story describes it afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Waited {
    /// Text that identifies the wait, whatever its figures.
    same: String,
    says: String,
    /// Largest number of bytes to be copied during the wait.
    bytes: u64,
}

impl Story {
    /// Creates a story that starts now.
    pub(super) fn new(sim: &Rc<RefCell<Sim>>) -> Self {
        Self { sim: Rc::clone(sim), began: sim.borrow().world.at, wait: None, lines: Vec::new() }
    }

    /// Adds a line at the current time.
    pub(super) fn say(&mut self, says: impl Into<String>) {
        let at = self.sim.borrow().world.at;
        self.say_at(at, says.into());
    }

    fn say_at(&mut self, at: DateTime<Utc>, says: String) {
        self.lines.push(Line { at: at - self.began, says });
    }

    /// Adds the wait that ended, if there was one, and what happened meanwhile.
    pub(super) fn catch_up(&mut self) {
        let heard: Vec<Acknowledged> = std::mem::take(&mut self.sim.borrow_mut().heard);
        for Acknowledged { at, what, effects, is_fault } in heard {
            if is_fault {
                self.end_wait(at);
                self.say_at(at, format!("! {}", happening(&what)));
            }
            for says in effects.iter().filter_map(effect) {
                self.say_at(at, says);
            }
        }
    }

    fn end_wait(&mut self, at: DateTime<Utc>) {
        let Some((since, waited)) = self.wait.take() else { return };
        if (at - since).num_seconds() > 0 {
            let copied = if waited.bytes > 0 { format!(", {}", size(waited.bytes)) } else { String::new() };
            self.say_at(at, format!("... waited {} {}{copied}", how_long(at - since), waited.says));
        }
    }

    fn waits(&mut self, wait: &Wait) {
        self.catch_up();
        let now = self.sim.borrow().world.at;
        let waited = waited(wait);
        match &mut self.wait {
            Some((_, before)) if before.same == waited.same => {
                before.bytes = before.bytes.max(waited.bytes);
            }
            _ => {
                self.end_wait(now);
                self.wait = Some((now, waited));
            }
        }
    }

    /// Adds what a run reported.
    pub(super) fn hear(&mut self, event: Event<'_>) {
        let says = match event {
            Event::Waiting { wait, .. } => return self.waits(wait),
            Event::Saved { osd, why, ledger } => saved(osd, why, ledger),
            Event::Done(act) => Some(done(act)),
            Event::Conflict
            | Event::NotDone { .. }
            | Event::Blind(_)
            | Event::Lease(_)
            | Event::Finished(_)
            | Event::Halted(_) => Some(event.to_string()),
        };
        self.end();
        if let Some(says) = says {
            self.say(says);
        }
    }

    /// Ends the current wait.
    pub(super) fn end(&mut self) {
        self.catch_up();
        let now = self.sim.borrow().world.at;
        self.end_wait(now);
    }

    /// Returns the last wait, if the run never left it.
    pub(super) fn waits_for(&self) -> Option<&str> {
        self.wait.as_ref().map(|(_, waited)| waited.says.as_str())
    }
}

/// Reporter that writes the loop's events into the story.
pub(super) struct Listener(pub(super) Rc<RefCell<Story>>);

impl Reporter for Listener {
    async fn report(&mut self, event: Event<'_>) {
        self.0.borrow_mut().hear(event);
    }
}

#[expect(clippy::too_many_lines, reason = "one sentence for each save")]
fn saved(osd: Option<OsdId>, why: &Saving, ledger: &Ledger) -> Option<String> {
    let record = ledger.records.get(&osd?);
    let says = match (why, record) {
        (Saving::Record, Some(record)) => {
            format!("{} on {} is begun: {} to {}", record.osd, record.node, record.class, record.target)
        }
        (Saving::Proof, Some(record)) => {
            let device = record.evidence.as_ref().map(|evidence| &evidence.device)?;
            format!(
                "{}: its disk is proven to be {}, {}",
                record.osd,
                device.stable_name(),
                size(device.size_bytes)
            )
        }
        (Saving::Stop, Some(record)) => {
            let pgs = record.pgs.len();
            format!("{}: all PGs are clean, ok-to-stop agrees; its {pgs} PGs are noted", record.osd)
        }
        (Saving::New, Some(record)) => {
            format!("{}: its disk carries the new OSD, {}", record.osd, record.new?)
        }
        (Saving::FenceAcknowledged, _) => "Rook says that it leaves the CephCluster alone".to_owned(),
        (
            Saving::Attempt { after: None, .. }
            | Saving::Bootstrap { .. }
            | Saving::Fence
            | Saving::FenceGone
            | Saving::Unfenced
            | Saving::OperatorScaled
            | Saving::OperatorRestored
            | Saving::Pdb
            | Saving::PdbRestored
            | Saving::LeftToRook
            | Saving::Down
            | Saving::Up
            | Saving::Blocked
            | Saving::Skipping
            | Saving::Progress
            | Saving::Closing,
            _,
        ) => return None,
        (Saving::Attempt { after: Some(after), .. }, _) => format!("{}: the agent failed: {after}", osd?),
        (Saving::Closed, _) => format!("{}: done", osd?),
        (Saving::Quarantine { why }, _) => format!("{} is left alone: {why}", osd?),
        (Saving::RevertStop { why }, _) => format!("{}: turned back: {why}", osd?),
        (
            Saving::Record
            | Saving::Proof
            | Saving::Stop
            | Saving::New
            | Saving::Withdrawn
            | Saving::NotAdmitted { .. }
            | Saving::Purged
            | Saving::PgsGone { .. }
            | Saving::WipeBlocked
            | Saving::NooutLifted
            | Saving::UpmapsLost
            | Saving::Upmaps
            | Saving::UpmapsDone { .. }
            | Saving::Uncleared { .. }
            | Saving::Node { .. },
            _,
        ) => format!("{}: {why}", osd?),
    };
    Some(says)
}

fn done(act: &Act) -> String {
    match act {
        Act::Kube(KubeAct::BackUp { osd, .. }) => format!("{osd}: its Deployment is kept as it was found"),
        Act::Node(NodeAct::Agent { request, .. }) => {
            let osd = request.osd;
            match request.task {
                NodeTask::Inspect => format!("{osd}: a node Job looks at its disk"),
                NodeTask::Rebuild => format!("{osd}: a node Job proves, wipes and prepares its disk"),
                NodeTask::RestoreSlot => format!("{osd}: a node Job gives the slot its new OSD back"),
                NodeTask::Clear => format!("{osd}: a node Job removes its old directory"),
            }
        }
        Act::Kube(KubeAct::Fence { .. }) => {
            "Rook is told to leave the CephCluster alone (do-not-reconcile)".to_owned()
        }
        Act::Ceph(CephAct::Bootstrap { there: true }) => {
            "the key that prepares OSDs is made (client.bootstrap-osd)".to_owned()
        }
        Act::Ceph(CephAct::Bootstrap { there: false }) => {
            "client.bootstrap-osd is removed, as it was not there before".to_owned()
        }
        Act::Kube(KubeAct::Unfence { .. }) => "Rook may reconcile again".to_owned(),
        Act::Ceph(CephAct::SetOsdFlags { osd, .. }) => format!("{osd}: noout and noin, for it alone"),
        Act::Kube(KubeAct::Stop { osd, .. }) => format!("{osd}: its Deployment is scaled to 0"),
        Act::Ceph(CephAct::Destroy { osd, .. }) => format!("{osd}: destroyed; id, place and weight stay"),
        Act::Kube(KubeAct::Deploy(deploy)) => format!("{}: its Deployment starts the new OSD", deploy.osd),
        Act::Kube(KubeAct::CleanUp { osd, .. }) => format!("{osd}: what was made for it is swept"),
        Act::Node(
            NodeAct::DropAgent { .. }
            | NodeAct::DeleteKey { .. }
            | NodeAct::Inventory { .. }
            | NodeAct::DeleteInventoryJob { .. },
        )
        | Act::Ceph(
            CephAct::UnsetOsdFlags { .. }
            | CephAct::TakeIn { .. }
            | CephAct::Reregister { .. }
            | CephAct::PurgeMisplaced { .. }
            | CephAct::RestoreCrush { .. }
            | CephAct::RestoreUpmaps { .. },
        )
        | Act::Kube(
            KubeAct::ScaleOperator { .. }
            | KubeAct::LimitDrains { .. }
            | KubeAct::CreatePdb { .. }
            | KubeAct::DeletePdb { .. }
            | KubeAct::Restart { .. }
            | KubeAct::DropDeployment { .. }
            | KubeAct::Adopt(_)
            | KubeAct::Tolerate { .. },
        ) => words(act),
    }
}

fn effect(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Wiped { osd, .. } => {
            Some(format!("{osd}: proven once more, and wiped; a tombstone is on the disk"))
        }
        Effect::Registered(osd, _) => Some(format!("{osd}: ceph-volume prepares it under its old id")),
        Effect::Cleared { osd, .. } => {
            Some(format!("{osd}: its old directory is proven once more, and removed"))
        }
        Effect::Purged(osd) => Some(format!("{osd}: its id is gone, and its place with it")),
        Effect::Stopped(_)
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

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are told in their own words")]
/// Returns what went wrong, with the OSD in place of its Job's long name.
fn happening(what: &Happening) -> String {
    let task = |job: &str| {
        let mut parts = job.trim_start_matches("osd-migrate-").rsplitn(4, '-');
        parts.nth(3).map_or_else(|| job.to_owned(), str::to_owned)
    };
    match what {
        Happening::AgentDies(job) => format!("the agent is killed ({})", task(job)),
        Happening::AgentLost(job) => {
            format!("Kubernetes gives the agent's Job up while it lives on ({})", task(job))
        }
        Happening::AgentStumbles(_, how) => format!("ceph-volume: {how}"),
        _ => what.to_string(),
    }
}

fn waited(wait: &Wait) -> Waited {
    let (same, says, bytes) = match wait {
        Wait::Agent { osd, task, trouble, .. } => {
            let trouble = trouble.as_ref().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
            (format!("agent {osd} {task}"), format!("for the agent{trouble}"), 0)
        }
        Wait::Node { node, reason } => {
            (format!("node {node}"), format!("new OSDs on {node} wait: {reason}"), 0)
        }
        Wait::Inventory { node, .. } => {
            (format!("look {node}"), format!("for the look at the disks of {node}"), 0)
        }
        Wait::Down { osd } => (format!("down {osd}"), format!("for {osd} to go down"), 0),
        Wait::Up { osd, .. } => (format!("up {osd}"), format!("for {osd} to come up"), 0),
        Wait::ActiveClean { osd, bytes, .. } => {
            (format!("fills {osd}"), format!("for {osd} to fill, all its PGs active+clean"), *bytes)
        }
        Wait::FreshView => ("fresh".to_owned(), "for statistics that fit together".to_owned(), 0),
        Wait::Gate { osd, reason } => {
            (format!("gate {osd} {}", reason.word()), format!("with {osd}: {reason}"), 0)
        }
        Wait::UnsafeToWipe { osd, reason } => {
            (format!("wipe {osd} {}", reason.word()), format!("with the wipe of {osd}: {reason}"), 0)
        }
        Wait::RookDeploys { .. }
        | Wait::AgentSilent { .. }
        | Wait::AgentBusy { .. }
        | Wait::AgentRests { .. }
        | Wait::NotOurStop { .. }
        | Wait::MarkedOutExternally { .. } => (wait.to_string(), format!("because {wait}"), 0),
    };
    Waited { same, says, bytes }
}

/// Formats a time: `1:02:03`
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

/// Formats a size: `384 GiB`
pub(super) fn size(bytes: u64) -> String {
    if bytes >= GIB { format!("{} GiB", (bytes + GIB / 2) / GIB) } else { format!("{} MiB", bytes >> 20) }
}

/// Formats a line of the story, wrapped to the width of the page.
pub(super) fn line(lines: &Line) -> String {
    let mut text = format!("{:>8} ", time(lines.at));
    let mut column = text.len();
    for word in lines.says.split(' ') {
        let width = 1 + word.chars().count();
        if column + width > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(INDENT + 3));
            column = INDENT + 3;
        }
        text.push(' ');
        text.push_str(word);
        column += width;
    }
    text
}
