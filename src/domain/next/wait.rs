//! What is waited for, with the words for a person.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};

use crate::domain::gate::{Reason, names};
use crate::domain::inspection::NodeTask;
use crate::domain::osd::{NodeName, OsdId, Weight};

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// A gate to open.
    Gate {
        /// whose
        osd: OsdId,
        /// why it is not open
        reason: Reason,
    },
    /// A gate to open before the disks of a node are made OSDs.
    Node {
        /// which
        node: NodeName,
        /// why it is not open
        reason: Reason,
    },
    /// A look at the disks of a node.
    Inventory {
        /// which
        node: NodeName,
        /// why its pod does not start
        trouble: Option<String>,
    },
    /// A node agent.
    Agent {
        /// whose
        osd: OsdId,
        /// what it does
        task: NodeTask,
        /// its Job
        job: String,
        /// why its pod does not start
        trouble: Option<String>,
    },
    /// A node agent that stopped writing heartbeats.
    AgentSilent {
        /// whose
        osd: OsdId,
        /// its Job
        job: String,
    },
    /// A node agent that holds the lock though its Job has ended.
    AgentBusy {
        /// whose
        osd: OsdId,
        /// where
        node: NodeName,
        /// what the one after it found
        why: String,
    },
    /// The pause after an attempt of a node agent that failed past the stop.
    AgentRests {
        /// whose
        osd: OsdId,
        /// attempts that failed one after the other
        failures: u32,
        /// why the last one failed
        why: String,
        /// when the next one begins
        until: DateTime<Utc>,
    },
    /// A daemon that somebody else stopped.
    NotOurStop {
        /// which
        osd: OsdId,
    },
    /// A daemon to go down.
    Down {
        /// which
        osd: OsdId,
    },
    /// The old data may not be wiped now.
    UnsafeToWipe {
        /// whose
        osd: OsdId,
        /// why
        reason: Reason,
    },
    /// Rook to make the Deployment of an OSD that was made anew.
    RookDeploys {
        /// which
        osd: OsdId,
        /// Rook's operator, namespace/name
        operator: String,
        /// how long it may take
        minutes: i64,
    },
    /// The new daemon to come up.
    Up {
        /// which
        osd: OsdId,
        /// why its pod does not run
        trouble: Option<String>,
    },
    /// Somebody else to take an OSD in again that they took out meanwhile.
    MarkedOutExternally {
        /// which
        osd: OsdId,
        /// its in-weight as recorded
        reweight: Weight,
    },
    /// Data to come back.
    ActiveClean {
        /// onto which
        osd: OsdId,
        /// PGs that are not clean
        pgs: u64,
        /// copies of objects that lack or lie elsewhere
        objects: u64,
        /// bytes of them, about
        bytes: u64,
        /// states of these PGs
        states: BTreeSet<String>,
        /// flags of the whole osdmap that keep data from moving
        flags: BTreeSet<String>,
    },
    /// What was seen does not fit together yet.
    FreshView,
}

impl Wait {
    /// The gate's reason, where a gate is waited for.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Gate { reason, .. } | Self::Node { reason, .. } | Self::UnsafeToWipe { reason, .. } => {
                Some(reason)
            }
            Self::Inventory { .. }
            | Self::Agent { .. }
            | Self::AgentSilent { .. }
            | Self::AgentBusy { .. }
            | Self::AgentRests { .. }
            | Self::NotOurStop { .. }
            | Self::Down { .. }
            | Self::RookDeploys { .. }
            | Self::Up { .. }
            | Self::MarkedOutExternally { .. }
            | Self::ActiveClean { .. }
            | Self::FreshView => None,
        }
    }
}

impl fmt::Display for Wait {
    #[expect(clippy::too_many_lines, reason = "one sentence for each wait")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let because = |f: &mut fmt::Formatter<'_>, trouble: &Option<String>| match trouble {
            Some(trouble) => write!(f, " ({trouble})"),
            None => Ok(()),
        };
        match self {
            Self::Gate { osd, reason } => write!(f, "{osd} waits: {reason}"),
            Self::Node { node, reason } => write!(f, "new OSDs on node {node} wait: {reason}"),
            Self::Inventory { node, trouble } => {
                write!(f, "node {node}: its disks are looked at")?;
                because(f, trouble)
            }
            Self::Agent { osd, task, job, trouble } => {
                write!(f, "{osd}: {task} by Job {job}")?;
                because(f, trouble)
            }
            Self::AgentSilent { osd, job } => {
                write!(f, "{osd}: Job {job} has been silent; see `kubectl logs job/{job}` and its node")
            }
            Self::AgentBusy { osd, node, why } => write!(
                f,
                "{osd}: an agent whose Job has ended is still at work on node {node} ({why}); see its processes: osd-migrate node agent"
            ),
            Self::AgentRests { osd, failures, why, until } => write!(
                f,
                "{osd}: its node agent failed {failures} times, the last time: {why}; the next attempt begins at {}",
                until.format("%H:%M:%SZ")
            ),
            Self::NotOurStop { osd } => write!(
                f,
                "{osd} is down, and not by us: start it (kubectl get deployment -l ceph-osd-id={}), it is never destroyed so",
                osd.0
            ),
            Self::Down { osd } => write!(f, "{osd} goes down"),
            Self::UnsafeToWipe { osd, reason } => {
                write!(f, "{osd} is destroyed, its old data still there, not wiped: {reason}")
            }
            Self::RookDeploys { osd, operator, minutes } => write!(
                f,
                "{osd} is made anew, and Rook's operator {operator} is to make its Deployment; if it has not within {minutes} minutes, the \
                 fence goes up again and it is made here"
            ),
            Self::Up { osd, trouble } => {
                write!(f, "{osd} starts")?;
                because(f, trouble)
            }
            Self::MarkedOutExternally { osd, reweight } => {
                let id = osd.0;
                write!(f, "{osd} is up, and was taken out by somebody else meanwhile: `ceph osd in {id}`")?;
                // `osd in` makes it 1.0.
                if *reweight == Weight::ONE {
                    return Ok(());
                }
                // In full: as it is shown elsewhere it would be rounded.
                write!(f, " and `ceph osd reweight {id} {}`, as it was", reweight.as_decimal())
            }
            Self::ActiveClean { osd, pgs, objects, bytes, states, flags } => {
                write!(
                    f,
                    "{osd} is backfilling: {pgs} PGs not clean, {objects} objects, about {} MiB left",
                    bytes / 1_048_576
                )?;
                if !states.is_empty() {
                    write!(f, " ({})", names(states))?;
                }
                // What is set as `pause` is another matter: these three keep their names.
                flags
                    .iter()
                    .try_for_each(|flag| write!(f, "; the flag {flag} is set: `ceph osd unset {flag}`"))
            }
            Self::FreshView => f.write_str("what was seen does not fit together yet"),
        }
    }
}
