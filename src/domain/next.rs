//! What a turn can come to. Waits and halts are data, with the words for a person beside them.

use std::collections::BTreeSet;
use std::fmt;

use super::act::Act;
use super::gate::Reason;
use super::inspection::{NodeTask, RecordId};
use super::ledger::{Ledger, NodeStatus};
use super::osd::{NodeName, OsdFsid, OsdId, PgId, Weight};

/// The one thing a turn does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Next {
    /// Write the ledger.
    Save {
        /// as it is to be
        ledger: Ledger,
        /// whose record changed
        osd: Option<OsdId>,
        /// what changed
        why: Saving,
    },
    /// One effect.
    Do(Act),
    /// Nothing can be done now.
    Wait(Wait),
    /// Nothing is left to do.
    Finished(Summary),
    /// A person is needed.
    Halt(Halt),
}

/// What a save is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Saving {
    /// A new record.
    Record,
    /// The record is given up before anything was done.
    Withdrawn,
    /// The id was purged by somebody else before anything was done: the record is given up.
    Purged,
    /// An attempt of a node agent, before its Job is made.
    Attempt {
        /// what it is to do
        task: NodeTask,
        /// why the attempt before it failed, if it did
        after: Option<String>,
    },
    /// What proves the device.
    Proof,
    /// The PGs, right before Stop.
    Stop,
    /// PGs that were saved at Stop and are no more: they concern nobody.
    PgsGone {
        /// which
        pgs: BTreeSet<PgId>,
    },
    /// A stop is turned back: counted before the OSD is started again.
    TurnBack {
        /// why
        why: String,
    },
    /// Wiping the old data is barred from now on.
    Barred,
    /// Our fence, before it is put up.
    Fence,
    /// Our fence is down.
    Unfenced,
    /// The new OSD's fsid, before it is deployed.
    New,
    /// A new OSD is up.
    Up,
    /// Only cleaning up is left.
    Closing,
    /// The record is taken out.
    Closed,
    /// The OSD is left alone.
    Quarantine {
        /// why
        why: String,
    },
    /// How far a node is with its new OSDs.
    Node {
        /// the node
        node: NodeName,
        /// where it stands now
        status: NodeStatus,
        /// what there is to say
        message: String,
        /// what stands in the way
        problems: Vec<String>,
    },
}

impl Saving {
    /// One word, for the history and the log.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Withdrawn => "withdrawn",
            Self::Purged => "purged-by-others",
            Self::Attempt { task: NodeTask::Inspect, .. } => "inspect",
            Self::Attempt { task: NodeTask::Rebuild, .. } => "rebuild",
            Self::Attempt { task: NodeTask::GiveBack, .. } => "give-back",
            Self::Attempt { task: NodeTask::Clear, .. } => "clear",
            Self::Proof => "proof",
            Self::Stop => "stop",
            Self::PgsGone { .. } => "pgs-gone",
            Self::TurnBack { .. } => "turn-back",
            Self::Barred => "barred",
            Self::Fence => "fence",
            Self::Unfenced => "unfenced",
            Self::New => "new",
            Self::Up => "up",
            Self::Closing => "closing",
            Self::Closed => "closed",
            Self::Quarantine { .. } => "quarantine",
            Self::Node { status, .. } => status.word(),
        }
    }
}

impl fmt::Display for Saving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::Quarantine { why } | Self::TurnBack { why } => write!(f, ": {why}"),
            Self::PgsGone { pgs } => {
                let names: Vec<_> = pgs.iter().map(ToString::to_string).collect();
                write!(f, ": PGs that it held are no more, and are left out: {}", names.join(", "))
            }
            Self::Node { message, .. } if message.is_empty() => Ok(()),
            Self::Node { message, .. } => write!(f, ": {message}"),
            Self::Attempt { after: Some(after), .. } => write!(f, ", for the last attempt failed: {after}"),
            Self::Record
            | Self::Withdrawn
            | Self::Purged
            | Self::Attempt { after: None, .. }
            | Self::Proof
            | Self::Stop
            | Self::Barred
            | Self::Fence
            | Self::Unfenced
            | Self::New
            | Self::Up
            | Self::Closing
            | Self::Closed => Ok(()),
        }
    }
}

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
    Look {
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
    /// The new daemon to come up.
    Up {
        /// which
        osd: OsdId,
        /// why its pod does not run
        trouble: Option<String>,
    },
    /// Somebody else to take an OSD in again that they took out meanwhile.
    OutByOthers {
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
            Self::Look { .. }
            | Self::Agent { .. }
            | Self::AgentSilent { .. }
            | Self::AgentBusy { .. }
            | Self::NotOurStop { .. }
            | Self::Down { .. }
            | Self::Up { .. }
            | Self::OutByOthers { .. }
            | Self::ActiveClean { .. }
            | Self::FreshView => None,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let because = |f: &mut fmt::Formatter<'_>, trouble: &Option<String>| match trouble {
            Some(trouble) => write!(f, " ({trouble})"),
            None => Ok(()),
        };
        match self {
            Self::Gate { osd, reason } => write!(f, "{osd} waits: {reason}"),
            Self::Node { node, reason } => write!(f, "new OSDs on node {node} wait: {reason}"),
            Self::Look { node, trouble } => {
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
            Self::NotOurStop { osd } => write!(
                f,
                "{osd} is down, and not by us: start it (kubectl get deployment -l ceph-osd-id={}), it is never destroyed so",
                osd.0
            ),
            Self::Down { osd } => write!(f, "{osd} goes down"),
            Self::UnsafeToWipe { osd, reason } => {
                write!(f, "{osd} is destroyed, its old data still there, not wiped: {reason}")
            }
            Self::Up { osd, trouble } => {
                write!(f, "{osd} starts")?;
                because(f, trouble)
            }
            Self::OutByOthers { osd, reweight } => {
                let id = osd.0;
                write!(f, "{osd} is up, and was taken out by somebody else meanwhile: `ceph osd in {id}`")?;
                // `osd in` makes it 1.0.
                if *reweight == Weight::ONE {
                    return Ok(());
                }
                // In full: as it is shown elsewhere it would be rounded.
                write!(f, " and `ceph osd reweight {id} {}`, as it was", reweight.as_decimal())
            }
            Self::ActiveClean { osd, pgs, objects, bytes } => {
                write!(
                    f,
                    "{osd} fills: {pgs} PGs not clean, {objects} objects, about {} MiB to go",
                    bytes / 1_048_576
                )
            }
            Self::FreshView => f.write_str("what was seen does not fit together yet"),
        }
    }
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Summary {
    /// A person cancelled: nothing more is begun.
    pub cancelled: bool,
    /// OSDs that could be migrated but for the missing confirmation.
    pub unconfirmed: BTreeSet<OsdId>,
    /// OSDs that were left alone after a failure, with the reason.
    pub quarantined: Vec<(OsdId, String)>,
    /// OSDs that a gate keeps out for good (they must be drained first).
    pub refused: Vec<(OsdId, String)>,
    /// Nodes whose disks would be looked at for new OSDs but for the missing confirmation.
    pub unconfirmed_nodes: BTreeSet<NodeName>,
    /// What stands in the way of new OSDs: (node, sentence).
    pub problems: Vec<(String, String)>,
    /// Nodes whose disks could not be looked at again and again.
    pub unseen_nodes: BTreeSet<NodeName>,
}

/// Why a person is needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Halt {
    /// An OSD, or the CephCluster, carries our mark, and the ledger knows nothing of it.
    LedgerLost {
        /// where the mark is
        place: String,
        /// the record it names
        record: RecordId,
    },
    /// The id vanished, and not by us.
    PurgedByOthers {
        /// which
        osd: OsdId,
    },
    /// The old data could not be wiped safely in time.
    UnsafeToWipe {
        /// which
        osd: OsdId,
        /// its old fsid
        old: OsdFsid,
        /// why
        reason: Reason,
    },
    /// The id that was made for us by mistake is in use.
    StrayInUse {
        /// ours
        osd: OsdId,
        /// the other
        stray: OsdId,
    },
    /// The others could go on only when the PGs of OSDs that were left alone are clean again.
    Quarantined {
        /// which, with the reason
        quarantined: Vec<(OsdId, String)>,
    },
    /// More OSDs failed than the budget allows.
    FailureBudget {
        /// which, with the reason
        quarantined: Vec<(OsdId, String)>,
    },
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LedgerLost { place, record } => write!(
                f,
                "{place} carries the mark of our record {record}, which the ledger does not hold: it was lost or deleted. \
                 Nothing was changed. Put the ConfigMap osd-migrate-ledger back; or, if the OSD is to run as it is, take the mark off: \
                 kubectl annotate deployment NAME osd-migrate.io/stopped- and scale it to 1"
            ),
            Self::PurgedByOthers { osd } => write!(
                f,
                "{osd} was purged by somebody else in the middle of its migration; its id can't be taken back safely. \
                 See `ceph osd tree` and `kubectl get configmap osd-migrate-ledger -o yaml`"
            ),
            Self::UnsafeToWipe { osd, old, reason } => write!(
                f,
                "{osd} is destroyed, but its old data may not be wiped: {reason}. To give its slot back: \
                 ceph osd new {old} {} -i <file with the key on its disk>, then kubectl scale deployment rook-ceph-osd-{} --replicas=1",
                osd.0, osd.0
            ),
            Self::StrayInUse { osd, stray } => {
                write!(f, "the device of {osd} carries {stray}, which is in use; see `ceph osd tree`")
            }
            Self::Quarantined { quarantined } => {
                f.write_str("the rest can't go on before the PGs of OSDs that were left alone are clean:")?;
                left_alone(quarantined, f)
            }
            Self::FailureBudget { quarantined } => {
                f.write_str("too many OSDs failed:")?;
                left_alone(quarantined, f)
            }
        }
    }
}

fn left_alone(quarantined: &[(OsdId, String)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (osd, why) in quarantined {
        write!(f, " {osd}: {why};")?;
    }
    f.write_str(" mend them and type osd-migrate retry osd.N")
}
