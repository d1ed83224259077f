//! Events of a run as data, with their sentences: the log, `status`, Kubernetes events and the rehearsal
//! use the same ones.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::act::Act;
use crate::domain::history::RunHistory;
use crate::domain::ledger::Ledger;
use crate::domain::next::{Halt, Saving, Summary, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::pace::RunPace;
use crate::domain::plan;
use crate::domain::policy::Policy;
use crate::domain::view::View;
use crate::report::{acts, saves, summary};

/// Event of a run.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The ledger was written.
    Saved {
        /// OSD whose record was saved
        osd: Option<OsdId>,
        /// reason of the save
        why: &'a Saving,
        /// ledger after the save
        ledger: &'a Ledger,
    },
    /// Another process wrote the ledger first; the next iteration decides again.
    Conflict,
    /// An act succeeded.
    Done(&'a Act),
    /// An act failed, or its outcome is unknown; the next iteration decides again.
    NotDone {
        /// the act
        act: &'a Act,
        /// reason
        why: &'a str,
    },
    /// An observation failed; it is tried again.
    Blind(&'a str),
    /// Nothing can be done now.
    Waiting {
        /// reason of the wait
        wait: &'a Wait,
        /// policy of the run
        policy: &'a Policy,
        /// the ledger
        ledger: &'a Ledger,
        /// observation
        seen: &'a Observation,
    },
    /// Another runner has the Lease.
    Lease(&'a str),
    /// The run finished.
    Finished(&'a Summary),
    /// A person is needed.
    Halted(&'a Halt),
}

impl Event<'_> {
    /// Returns the code, which ends the message.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Saved { why, .. } => why.code(),
            Self::Conflict => "ledger-conflict",
            Self::Done(act) => act.code(),
            Self::NotDone { .. } => "not-done",
            Self::Blind(_) => "observation-failed",
            Self::Waiting { wait, .. } => wait.code(),
            Self::Lease(_) => "lease",
            Self::Finished(summary) => summary::code(summary),
            Self::Halted(halt) => halt.code(),
        }
    }

    /// Returns the OSD that the event concerns; none if it concerns the whole run or a node.
    pub fn osd(&self) -> Option<OsdId> {
        match self {
            Self::Saved { osd, .. } => *osd,
            Self::Done(act) | Self::NotDone { act, .. } => act.osd(),
            Self::Waiting { wait, .. } => wait.osd(),
            Self::Conflict | Self::Blind(_) | Self::Lease(_) | Self::Finished(_) | Self::Halted(_) => None,
        }
    }

    /// Returns what each OSD in progress waits for, if the run waits and several are in progress.
    ///
    /// The run itself names one wait. Meanwhile the others may get their data back.
    pub fn waits(&self) -> Vec<Wait> {
        match self {
            Self::Waiting { policy, ledger, seen, .. } if ledger.in_flight().nth(1).is_some() => {
                plan::waits(View { policy, ledger, seen })
            }
            Self::Waiting { .. }
            | Self::Saved { .. }
            | Self::Conflict
            | Self::Done(_)
            | Self::NotDone { .. }
            | Self::Blind(_)
            | Self::Lease(_)
            | Self::Finished(_)
            | Self::Halted(_) => Vec::new(),
        }
    }

    /// Returns whether another event reports the same: the log has it at debug level only.
    pub fn is_detail(&self) -> bool {
        match self {
            Self::Saved { why, .. } => saves::is_detail(why),
            Self::Done(act) => acts::is_detail(act),
            Self::Conflict
            | Self::NotDone { .. }
            | Self::Blind(_)
            | Self::Waiting { .. }
            | Self::Lease(_)
            | Self::Finished(_)
            | Self::Halted(_) => false,
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saved { osd, why, ledger } => f.write_str(&saves::sentence(*osd, why, ledger)),
            Self::Conflict => f.write_str("another process wrote the ledger; observing again"),
            Self::Done(act) => f.write_str(&acts::sentence(act)),
            // A failure has a code of its own.
            Self::NotDone { act, why } => {
                return write!(f, "not done: {}: {why}", acts::sentence(act));
            }
            Self::Blind(why) => return write!(f, "could not observe the cluster: {why}"),
            Self::Waiting { wait, .. } => wait.fmt(f),
            Self::Lease(why) => f.write_str(why),
            Self::Finished(summary) => summary::finished(summary, f),
            Self::Halted(halt) => write!(f, "halted: {halt}"),
        }?;
        write!(f, " [{}]", self.code())
    }
}

/// Last event of a run, as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Time of the event.
    pub at: DateTime<Utc>,
    /// Time since which the text, digits excluded, has been the same.
    #[serde(default)]
    pub since: Option<DateTime<Utc>>,
    /// Whether the run waits.
    #[serde(default)]
    pub waits: bool,
    /// Code of the gate's reason, if the run waits for a gate.
    #[serde(default)]
    pub reason: Option<String>,
    /// Text for people.
    pub says: String,
    /// Pace of the run.
    #[serde(default)]
    pub pace: Option<RunPace>,
    /// Cause of the present stall.
    #[serde(default)]
    pub stall: Option<String>,
    /// History of the OSDs in progress.
    #[serde(default)]
    pub history: Option<RunHistory>,
}

impl Said {
    /// Creates the last event of a run from an event that has been reported since then.
    ///
    /// `text` is the event's message with the names of the cluster.
    pub fn of(event: &Event<'_>, text: &str, since: DateTime<Utc>, at: DateTime<Utc>) -> Self {
        let (waits, reason) = match event {
            Event::Waiting { wait, .. } => (true, wait.reason().map(|reason| reason.code().to_owned())),
            Event::Saved { .. }
            | Event::Conflict
            | Event::Done(_)
            | Event::NotDone { .. }
            | Event::Blind(_)
            | Event::Lease(_)
            | Event::Finished(_)
            | Event::Halted(_) => (false, None),
        };
        let says = text.to_owned();
        Self { at, since: Some(since), waits, reason, says, pace: None, stall: None, history: None }
    }
}
