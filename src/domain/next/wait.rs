//! Reasons for a wait, with the sentences for people.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};

use crate::domain::commands::scale_osd;
use crate::domain::gate::{Reason, names};
use crate::domain::inspection::NodeTask;
use crate::domain::osd::{NodeName, OsdId, PgId, Weight};
use crate::domain::stall::RECOVERED_FIRST;
use crate::domain::units::{grouped, size};

/// Reason for a wait.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Wait {
    /// The run waits for a gate to open.
    Gate {
        /// OSD behind the gate
        osd: OsdId,
        /// why the gate is not open
        reason: Reason,
    },
    /// The run waits for a gate to open before the disks of a node become OSDs.
    Node {
        /// node behind the gate
        node: NodeName,
        /// why the gate is not open
        reason: Reason,
    },
    /// The fence that the owner ordered is not in force yet.
    Fence {
        /// why it is not in force
        reason: Reason,
    },
    /// The run waits for the inventory of a node's disks.
    Inventory {
        /// node of the inventory
        node: NodeName,
        /// why the pod does not start
        trouble: Option<String>,
    },
    /// The run waits for a node agent.
    #[strum(serialize = "node-agent")]
    Agent {
        /// OSD that the agent works on
        osd: OsdId,
        /// task of the agent
        task: NodeTask,
        /// Job of the agent
        job: String,
        /// why the pod does not start
        trouble: Option<String>,
    },
    /// A node agent stopped writing heartbeats.
    AgentSilent {
        /// OSD that the agent works on
        osd: OsdId,
        /// Job of the agent
        job: String,
    },
    /// A node agent still has the lock although its Job has ended.
    AgentBusy {
        /// OSD that the agent works on
        osd: OsdId,
        /// node of the agent
        node: NodeName,
        /// what the next agent found
        why: String,
    },
    /// The run pauses after an attempt of a node agent that failed after the stop.
    #[strum(serialize = "agent-retries-later")]
    AgentRests {
        /// OSD that the agent works on
        osd: OsdId,
        /// attempts that failed one after the other
        failures: u32,
        /// why the last one failed
        why: String,
        /// time when the next one starts
        until: DateTime<Utc>,
    },
    /// The node of the agents of a stopped OSD is lost, and its PersistentVolume could be on another node.
    AgentNodeLost {
        /// OSD that is stopped
        osd: OsdId,
        /// node of the agents
        node: NodeName,
    },
    /// A daemon is down that osd-migrate did not stop.
    #[strum(serialize = "stopped-externally")]
    NotOurStop {
        /// OSD that is down
        osd: OsdId,
    },
    /// The run waits until no PG needs an OSD that was marked out.
    Emptying {
        /// OSD that is emptied
        osd: OsdId,
        /// PGs that still need it
        pgs: u64,
        /// approximate bytes that these PGs have on it
        bytes: u64,
        /// PG elsewhere that lacks a replica, if no PG needs the OSD
        elsewhere: Option<PgId>,
        /// flags of the whole osdmap that prevent data movement
        flags: BTreeSet<String>,
        /// PG that Ceph recovers first, with its state, if none of these PGs moves
        first: Option<(PgId, String)>,
    },
    /// The run waits for a daemon to go down.
    #[strum(serialize = "stopping")]
    Down {
        /// OSD that is stopping
        osd: OsdId,
    },
    /// The old data may not be wiped now.
    UnsafeToWipe {
        /// OSD with the old data
        osd: OsdId,
        /// why a wipe is unsafe
        reason: Reason,
    },
    /// The run waits for Rook to create the Deployment of a recreated OSD.
    RookDeploys {
        /// recreated OSD
        osd: OsdId,
        /// Rook's operator, namespace/name
        operator: String,
        /// minutes that Rook may take
        minutes: i64,
    },
    /// The run waits for the new daemon to come up.
    #[strum(serialize = "starting")]
    Up {
        /// OSD that is starting
        osd: OsdId,
        /// why the pod does not run
        trouble: Option<String>,
    },
    /// The run waits for a person to mark an OSD in again that was marked out externally.
    MarkedOutExternally {
        /// OSD that is out
        osd: OsdId,
        /// in-weight as recorded
        reweight: Weight,
    },
    /// The run waits for a backfill.
    #[strum(serialize = "backfilling")]
    ActiveClean {
        /// OSD that is backfilling
        osd: OsdId,
        /// PGs that are not clean
        pgs: u64,
        /// replicas of objects that are missing or misplaced
        objects: u64,
        /// approximate bytes of these replicas
        bytes: u64,
        /// states of these PGs
        states: BTreeSet<String>,
        /// flags of the whole osdmap that prevent data movement
        flags: BTreeSet<String>,
    },
    /// The observed cluster state is still inconsistent.
    #[strum(serialize = "inconsistent-view")]
    FreshView,
}

impl Wait {
    /// Returns the code: the anchor of the wait, or of the gate's reason, in the reference of messages.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Gate { reason, .. } | Self::Node { reason, .. } | Self::Fence { reason } => reason.code(),
            Self::Inventory { .. }
            | Self::Agent { .. }
            | Self::AgentSilent { .. }
            | Self::AgentBusy { .. }
            | Self::AgentRests { .. }
            | Self::AgentNodeLost { .. }
            | Self::NotOurStop { .. }
            | Self::Emptying { .. }
            | Self::Down { .. }
            | Self::UnsafeToWipe { .. }
            | Self::RookDeploys { .. }
            | Self::Up { .. }
            | Self::MarkedOutExternally { .. }
            | Self::ActiveClean { .. }
            | Self::FreshView => self.into(),
        }
    }

    /// Returns whether the OSD that is waited for is quarantined when it takes too long.
    pub fn has_a_limit(&self) -> bool {
        match self {
            Self::Agent { .. }
            | Self::AgentSilent { .. }
            | Self::AgentBusy { .. }
            | Self::AgentRests { .. }
            | Self::AgentNodeLost { .. }
            | Self::Down { .. }
            | Self::Up { .. }
            | Self::FreshView => true,
            Self::Gate { .. }
            | Self::Node { .. }
            | Self::Fence { .. }
            | Self::Inventory { .. }
            | Self::NotOurStop { .. }
            | Self::Emptying { .. }
            | Self::UnsafeToWipe { .. }
            | Self::RookDeploys { .. }
            | Self::MarkedOutExternally { .. }
            | Self::ActiveClean { .. } => false,
        }
    }

    /// Returns the OSD that the run waits for; none if it waits for a node or for the whole cluster.
    pub fn osd(&self) -> Option<OsdId> {
        match self {
            Self::Gate { osd, .. }
            | Self::Agent { osd, .. }
            | Self::AgentSilent { osd, .. }
            | Self::AgentBusy { osd, .. }
            | Self::AgentRests { osd, .. }
            | Self::AgentNodeLost { osd, .. }
            | Self::NotOurStop { osd }
            | Self::Emptying { osd, .. }
            | Self::Down { osd }
            | Self::UnsafeToWipe { osd, .. }
            | Self::RookDeploys { osd, .. }
            | Self::Up { osd, .. }
            | Self::MarkedOutExternally { osd, .. }
            | Self::ActiveClean { osd, .. } => Some(*osd),
            Self::Node { .. } | Self::Fence { .. } | Self::Inventory { .. } | Self::FreshView => None,
        }
    }

    /// Returns the reason of the gate, if the run waits for a gate.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Gate { reason, .. }
            | Self::Node { reason, .. }
            | Self::Fence { reason }
            | Self::UnsafeToWipe { reason, .. } => Some(reason),
            Self::Inventory { .. }
            | Self::Agent { .. }
            | Self::AgentSilent { .. }
            | Self::AgentBusy { .. }
            | Self::AgentRests { .. }
            | Self::AgentNodeLost { .. }
            | Self::NotOurStop { .. }
            | Self::Emptying { .. }
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
            Some(trouble) => write!(f, ": {trouble}"),
            None => Ok(()),
        };
        match self {
            Self::Gate { osd, reason } => write!(f, "{osd} waits: {reason}"),
            Self::Node { node, reason } => write!(f, "new OSDs on node {node} wait: {reason}"),
            Self::Fence { reason } => {
                write!(f, "the fence that its owner ordered is not in force yet: {reason}")
            }
            Self::Inventory { node, trouble } => {
                write!(f, "the disks of node {node} are being inspected")?;
                because(f, trouble)
            }
            Self::Agent { osd, task, job, trouble } => {
                write!(f, "{osd}: Job {job} is running ({task})")?;
                because(f, trouble)
            }
            Self::AgentSilent { osd, job } => write!(
                f,
                "{osd}: Job {job} sends no heartbeat. Check its pod and its node: kubectl -n NAMESPACE get pods -o wide -l \
                 job-name={job}; kubectl -n NAMESPACE logs job/{job}"
            ),
            Self::AgentBusy { osd, node, why } => write!(
                f,
                "{osd}: the process of a node agent whose Job has ended is still running on node {node} ({why}). Find it on \
                 that node: pgrep -af 'osd-migrate node agent|ceph-volume'"
            ),
            Self::AgentRests { osd, failures, why, until } => {
                let times = if *failures == 1 { "once" } else { &format!("{failures} times, the last time") };
                let until = until.format("%H:%M:%SZ");
                write!(f, "{osd}: its node agent failed {times}: {why}. The next attempt starts at {until}")
            }
            Self::AgentNodeLost { osd, node } => write!(
                f,
                "{osd} is stopped, and its agents run on node {node} only, which is not Ready or no longer exists: \
                 that node has the list of the fsids that were issued for {osd}. See: kubectl describe node {node}"
            ),
            Self::NotOurStop { osd } => write!(
                f,
                "{osd} is down, but osd-migrate did not stop it; it is not destroyed in this state. Start it: {}",
                scale_osd(*osd, 1)
            ),
            Self::Emptying { osd, elsewhere: Some(pg), .. } => {
                write!(f, "{osd} is empty, and PG {pg} lacks a replica elsewhere. See: ceph pg {pg} query")
            }
            Self::Emptying { osd, pgs, bytes, elsewhere: None, flags, first } => {
                write!(f, "{osd} is being emptied: {pgs} PGs, {} left on it", size(*bytes))?;
                if let Some((pg, state)) = first {
                    write!(f, ". {RECOVERED_FIRST} {pg} ({state})")?;
                }
                held_up(f, flags)
            }
            Self::Down { osd } => write!(f, "{osd} is stopping"),
            Self::UnsafeToWipe { osd, reason } => {
                write!(f, "{osd} is destroyed, and its old data is not wiped yet: {reason}")
            }
            Self::RookDeploys { osd, operator, minutes } => write!(
                f,
                "{osd} is recreated, and Rook's operator {operator} is expected to create its Deployment. After {minutes} \
                 minutes osd-migrate sets the fence again and creates it"
            ),
            Self::Up { osd, trouble } => {
                write!(f, "{osd} is starting")?;
                because(f, trouble)
            }
            Self::MarkedOutExternally { osd, reweight } => {
                let id = osd.0;
                write!(f, "{osd} is up, but another client marked it out. Mark it in: ceph osd in {id}")?;
                // `osd in` sets the reweight to 1.0.
                if *reweight == Weight::ONE {
                    return Ok(());
                }
                // The full precision: the usual format would round it.
                write!(f, "; ceph osd reweight {id} {}", reweight.as_decimal())
            }
            Self::ActiveClean { osd, pgs, objects, bytes, states, flags } => {
                write!(
                    f,
                    "{osd} is backfilling: {pgs} PGs not clean, {} objects, {} left",
                    grouped(*objects),
                    size(*bytes)
                )?;
                if !states.is_empty() {
                    write!(f, " ({})", names(states))?;
                }
                held_up(f, flags)
            }
            Self::FreshView => f.write_str("cluster state is still inconsistent; observing again"),
        }
    }
}

/// Names the flags that prevent data movement.
///
/// They keep their names here, unlike `pause`, which is shown as two flags.
fn held_up(f: &mut fmt::Formatter<'_>, flags: &BTreeSet<String>) -> fmt::Result {
    flags.iter().try_for_each(|flag| {
        write!(f, ". The OSD flag {flag} prevents data movement; unset it: ceph osd unset {flag}")
    })
}
