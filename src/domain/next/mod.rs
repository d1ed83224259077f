//! Results of an iteration. Waits and halts are data, with the sentences for people next to them.

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

/// The single step of an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Next {
    /// Save of the ledger.
    Save {
        /// ledger to save
        ledger: Ledger,
        /// OSD whose record changed
        osd: Option<OsdId>,
        /// what changed
        why: Saving,
    },
    /// One act.
    Do(Act),
    /// A wait: no act is possible now.
    Wait(Wait),
    /// The end of the run: nothing is left to do.
    Finished(Summary),
    /// A halt: a person is needed.
    Halt(Halt),
}

/// Subject of a save.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Saving {
    /// A new record.
    Record,
    /// The record is given up before any act.
    Withdrawn,
    /// The record is given up before any act: the Deployment of the new OSD is not admitted.
    NotAdmitted {
        /// message of the API server
        why: String,
    },
    /// The id was purged externally before any act: the record is given up.
    Purged,
    /// An attempt of a node agent, before its Job is created.
    Attempt {
        /// task of the attempt
        task: NodeTask,
        /// why the previous attempt failed, if it did
        after: Option<String>,
    },
    /// Proof that the device holds the OSD.
    Proof,
    /// The PGs, right before Stop.
    Stop,
    /// PGs saved at Stop that no longer exist and are dropped from the record.
    PgsGone {
        /// PGs to drop
        pgs: BTreeSet<PgId>,
    },
    /// A stop is reverted. The revert is counted before the OSD is started again.
    RevertStop {
        /// why the stop is reverted
        why: String,
    },
    /// The wipe of the old data is blocked from now on.
    WipeBlocked,
    /// Whether osd-migrate creates client.bootstrap-osd: saved before the key is created or after it was
    /// removed.
    Bootstrap {
        /// the key is osd-migrate's
        ours: bool,
    },
    /// The fence, before it is set.
    Fence,
    /// The fence, before it is set again: it was removed externally while an OSD is stopped by osd-migrate.
    FenceGone,
    /// Rook's operator as it is, before it is scaled to 0.
    OperatorScaled,
    /// Rook's operator is restored, or is no longer osd-migrate's concern.
    OperatorRestored,
    /// The OSDs' PodDisruptionBudget as it is, before it is limited to 0.
    Pdb,
    /// The PodDisruptionBudget is restored, or is no longer osd-migrate's concern.
    PdbRestored,
    /// Rook acknowledged the fence.
    FenceAcknowledged,
    /// The fence is removed.
    Unfenced,
    /// The new OSD's fsid, before it is deployed.
    New,
    /// Rook is expected to create the Deployment; saved before the old one is deleted.
    LeftToRook,
    /// The OSD is stopped, or down after its stop.
    Down,
    /// The old OSD is up again, or the new one is up.
    Up,
    /// The `noout` of the OSD is lifted while the OSD is down.
    NooutLifted,
    /// A gate blocks the OSD.
    Blocked,
    /// The run waits only for OSDs blocked by their own state.
    Skipping,
    /// The CRUSH item is gone, and with it the upmaps of the OSD.
    UpmapsLost,
    /// The lost upmaps are to be restored now.
    Upmaps,
    /// Restoring the lost upmaps is complete.
    UpmapsDone {
        /// upmaps that the mons no longer accept
        left: Vec<Upmap>,
    },
    /// Less data is left to backfill than an earlier pod of the run saw; or the amount, saved by a pod that
    /// had predecessors.
    Progress,
    /// Only the cleanup is left.
    Closing,
    /// Only the cleanup is left, and an old directory that could not be removed.
    Uncleared {
        /// directory that is left
        path: String,
        /// node of the directory
        node: NodeName,
        /// why it could not be removed
        why: String,
    },
    /// The record is removed.
    Closed,
    /// The OSD is quarantined.
    Quarantine {
        /// why it is quarantined
        why: String,
    },
    /// Progress of a node with its new OSDs.
    Node {
        /// node with new OSDs
        node: NodeName,
        /// new status
        status: NodeStatus,
        /// message for people
        message: String,
        /// obstacles found
        problems: Vec<String>,
    },
}

impl Saving {
    /// Returns the code, for the history and the log.
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
            Self::Blocked => "blocked",
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
            | Self::Blocked
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

/// Returns the sentence about an old directory that could not be removed.
pub fn uncleared(path: &str, node: &NodeName, why: &str) -> String {
    format!(
        "the old directory {path} is still on node {node}: look at it, then rm -r --one-file-system {path} ({why})"
    )
}

/// Result of a finished run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Summary {
    /// A person cancelled the run: no further OSD is started.
    pub cancelled: bool,
    /// OSDs that could be migrated if the migration were confirmed.
    pub unconfirmed: BTreeSet<OsdId>,
    /// Quarantined OSDs, with the reason.
    pub quarantined: Vec<(OsdId, String)>,
    /// OSDs that a gate blocks permanently, with the reason (they must be drained first).
    pub refused: Vec<(OsdId, String)>,
    /// OSDs that the run skipped for a reason of their own that may disappear: down, or on a node that is
    /// cordoned or not Ready.
    pub skipped: Vec<(OsdId, String)>,
    /// Nodes whose disks would be inspected for new OSDs if the migration were confirmed.
    pub unconfirmed_nodes: BTreeSet<NodeName>,
    /// Obstacles to new OSDs: (node, sentence).
    pub problems: Vec<(String, String)>,
    /// Nodes whose available disks are left to Rook, whose running operator turns them into OSDs itself.
    pub left_to_rook: BTreeSet<NodeName>,
    /// OSDs that Rook would start to migrate itself if it were released: the fence stays, or its operator
    /// stays at 0.
    pub withheld_from_rook: BTreeSet<OsdId>,
    /// OSDs quarantined after their stop that still keep Rook away: by the fence, or with its operator at 0.
    pub half_way: BTreeSet<OsdId>,
    /// `namespace/name` of Rook's operator, if it is at 0 in the end: it was scaled externally, and this is
    /// no longer needed.
    pub operator_at_0: Option<String>,
    /// OSDs that Rook would start to migrate itself once its operator is scaled up, because the CephCluster
    /// still confirms it.
    pub left_to_rook_at_0: BTreeSet<OsdId>,
    /// Nodes whose disks repeatedly could not be inspected.
    pub unseen_nodes: BTreeSet<NodeName>,
}

impl Summary {
    /// Returns whether the missing confirmation is the only reason why nothing was done.
    ///
    /// Something would be done with it, and no OSD is quarantined.
    pub fn needs_only_confirmation(&self) -> bool {
        self.quarantined.is_empty() && !(self.unconfirmed.is_empty() && self.unconfirmed_nodes.is_empty())
    }
}
