//! What a turn can come to. Waits and halts are data, with the words for a person beside them.

mod halt;
mod wait;

pub use halt::{Halt, TAKEN_MINUTES};
pub use wait::Wait;

use std::collections::BTreeSet;
use std::fmt;

use super::act::Act;
use super::inspection::NodeTask;
use super::ledger::{Ledger, NodeStatus};
use super::osd::{NodeName, OsdId, PgId, Upmap};

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
    /// The record is given up before anything was done: the Deployment of the new OSD is not admitted.
    NotAdmitted {
        /// what the API server said
        why: String,
    },
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
    RevertStop {
        /// why
        why: String,
    },
    /// Wiping the old data is barred from now on.
    WipeBlocked,
    /// Whether client.bootstrap-osd is ours, before it is made or after it was removed.
    Bootstrap {
        /// it is
        ours: bool,
    },
    /// Our fence, before it is put up.
    Fence,
    /// The same after somebody took it off while an OSD is down for us.
    FenceGone,
    /// Rook's operator as it is, before it is scaled to 0.
    OperatorScaled,
    /// It is as it was, or somebody else's matter.
    OperatorRestored,
    /// The OSDs' PodDisruptionBudget as it is, before it is limited to 0.
    Pdb,
    /// It is as it was, or somebody else's matter.
    PdbRestored,
    /// Rook has said that it honours our fence.
    FenceAcknowledged,
    /// Our fence is down.
    Unfenced,
    /// The new OSD's fsid, before it is deployed.
    New,
    /// Its Deployment is left to Rook to make, before the old one is deleted.
    LeftToRook,
    /// The OSD is stopped, or down past its stop.
    Down,
    /// It is up again, or the new one is.
    Up,
    /// Its `noout` is lifted while it is down.
    NooutLifted,
    /// A gate holds it up.
    Held,
    /// The run waits for nothing but OSDs that their own state holds up.
    Skipping,
    /// Its place in CRUSH is gone, and its upmaps with it.
    UpmapsLost,
    /// They are to be put back now.
    Upmaps,
    /// Nothing is left to be done for them.
    UpmapsDone {
        /// those that the mons do not take any more
        left: Vec<Upmap>,
    },
    /// There is less to come back than an earlier pod of the run saw; or how much there is, by a pod that had predecessors.
    Progress,
    /// Only cleaning up is left.
    Closing,
    /// Only cleaning up is left, and an old directory that could not be removed.
    Uncleared {
        /// the directory
        path: String,
        /// where
        node: NodeName,
        /// why
        why: String,
    },
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
            Self::NotAdmitted { .. } => "not-admitted",
            Self::Purged => "purged-externally",
            Self::Attempt { task: NodeTask::Inspect, .. } => "inspect",
            Self::Attempt { task: NodeTask::Rebuild, .. } => "rebuild",
            Self::Attempt { task: NodeTask::RestoreSlot, .. } => "restore-slot",
            Self::Attempt { task: NodeTask::Clear, .. } => "clear",
            Self::Proof => "proof",
            Self::Stop => "stop",
            Self::PgsGone { .. } => "pgs-gone",
            Self::RevertStop { .. } => "revert-stop",
            Self::WipeBlocked => "wipe-blocked",
            Self::Bootstrap { ours: true } => "bootstrap",
            Self::Bootstrap { ours: false } => "no-bootstrap",
            Self::Fence => "fence",
            Self::FenceGone => "fence-gone",
            Self::OperatorScaled => "operator-scaled",
            Self::OperatorRestored => "operator-restored",
            Self::Pdb => "pdb",
            Self::PdbRestored => "pdb-restored",
            Self::FenceAcknowledged => "fence-acknowledged",
            Self::Unfenced => "unfenced",
            Self::New => "new",
            Self::LeftToRook => "left-to-rook",
            Self::Down => "down",
            Self::Up => "up",
            Self::NooutLifted => "noout-lifted",
            Self::Held => "blocked",
            Self::Skipping => "skipping",
            Self::UpmapsLost => "upmaps-lost",
            Self::Upmaps => "upmaps",
            Self::UpmapsDone { .. } => "upmaps-done",
            Self::Progress => "progress",
            Self::Closing => "closing",
            Self::Uncleared { .. } => "uncleared",
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
            Self::Quarantine { why } | Self::RevertStop { why } => write!(f, ": {why}"),
            Self::NotAdmitted { why } => write!(
                f,
                ": the API server does not admit the Deployment that the OSD would get; the OSD stays as it is, and \
                 the others go on: {why}"
            ),
            Self::FenceGone => f.write_str(
                ": somebody took the label ceph.rook.io/do-not-reconcile off the CephCluster while the OSD is down; it is put up again",
            ),
            Self::NooutLifted => f.write_str(
                ": the OSD is down for too long, or the run halts; its noout is lifted, so that Ceph may heal without it",
            ),
            Self::PgsGone { pgs } => {
                let names: Vec<_> = pgs.iter().map(ToString::to_string).collect();
                write!(f, ": PGs that it held are no more, and are left out: {}", names.join(", "))
            }
            Self::Uncleared { path, node, why } => {
                write!(f, ": {}", uncleared(path, node, why))
            }
            Self::UpmapsDone { left } if !left.is_empty() => {
                f.write_str(": upmaps that the mons do not take any more. To put one back by hand:")?;
                left.iter().try_for_each(|upmap| write!(f, " ceph osd pg-upmap-items {upmap};"))
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
            | Self::WipeBlocked
            | Self::Bootstrap { .. }
            | Self::Fence
            | Self::OperatorScaled
            | Self::OperatorRestored
            | Self::Pdb
            | Self::PdbRestored
            | Self::FenceAcknowledged
            | Self::Unfenced
            | Self::New
            | Self::LeftToRook
            | Self::Down
            | Self::Up
            | Self::Held
            | Self::Skipping
            | Self::UpmapsLost
            | Self::Upmaps
            | Self::UpmapsDone { .. }
            | Self::Progress
            | Self::Closing
            | Self::Closed => Ok(()),
        }
    }
}

/// What is said of an old directory that could not be removed.
pub fn uncleared(path: &str, node: &NodeName, why: &str) -> String {
    format!(
        "the old directory {path} is still on node {node}: look at it, then rm -r --one-file-system {path} ({why})"
    )
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
    /// OSDs that the run passed over for a reason of their own that may pass: down, on a node that is cordoned or away.
    pub skipped: Vec<(OsdId, String)>,
    /// Nodes whose disks would be looked at for new OSDs but for the missing confirmation.
    pub unconfirmed_nodes: BTreeSet<NodeName>,
    /// What stands in the way of new OSDs: (node, sentence).
    pub problems: Vec<(String, String)>,
    /// Nodes whose free disks are left to Rook, whose operator runs and makes OSDs of them itself.
    pub left_to_rook: BTreeSet<NodeName>,
    /// OSDs that Rook would begin to migrate itself if it were let go: our fence stays, or its operator at 0.
    pub withheld_from_rook: BTreeSet<OsdId>,
    /// OSDs that were left alone past Stop, and for which Rook is still kept off: by the fence, or its operator at 0.
    pub half_way: BTreeSet<OsdId>,
    /// `namespace/name` of Rook's operator where it is at 0 in the end: others scaled it, and it is needed so no longer.
    pub operator_at_0: Option<String>,
    /// OSDs that it would begin to migrate itself once it is scaled up, as the CephCluster confirms it still.
    pub left_to_rook_at_0: BTreeSet<OsdId>,
    /// Nodes whose disks could not be looked at again and again.
    pub unseen_nodes: BTreeSet<NodeName>,
}

impl Summary {
    /// Something would be done but for the missing confirmation, and nothing else is the matter.
    pub fn needs_only_confirmation(&self) -> bool {
        self.quarantined.is_empty() && !(self.unconfirmed.is_empty() && self.unconfirmed_nodes.is_empty())
    }
}
