//! Subjects of a save: milestones of a record, and facts of the run.

use std::collections::BTreeSet;

use crate::domain::inspection::NodeTask;
use crate::domain::ledger::NodeStatus;
use crate::domain::osd::{NodeName, PgId, Upmap};

/// Subject of a save.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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
    /// The id was purged externally, before any act or after it was quarantined: the record is given up.
    #[strum(serialize = "purged-externally")]
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
    /// The OSD is to be marked out: saved before the command is sent.
    Emptying,
    /// The OSD is marked out.
    MarkedOut,
    /// Less data is left on an OSD that is emptied, or PGs are on it again.
    #[strum(serialize = "emptying-progress")]
    EmptyingProgress {
        /// bytes left
        bytes: u64,
    },
    /// Something holds up the data of an OSD that is emptied: the time of a stall begins again.
    #[strum(serialize = "emptying-held-up")]
    EmptyingHeldUp {
        /// what holds it up
        why: String,
    },
    /// No PG needs the OSD any more.
    Emptied,
    /// The record is given up before its stop: the OSD can't be emptied.
    NotEmptied {
        /// what is against it
        why: String,
    },
    /// The preparations for the stop of an emptied OSD are restored while a gate is shut.
    StopIntentCleared,
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
    /// The fence that the owner ordered, before it is set.
    FenceOrdered,
    /// The fence, before it is set again: it was removed externally while an OSD is stopped by osd-migrate.
    FenceGone,
    /// Rook's operator as it is, before it is scaled to 0.
    OperatorScaled,
    /// Rook's operator is about to be restored.
    OperatorRestoring,
    /// Rook's operator is restored, or is no longer osd-migrate's concern.
    OperatorRestored,
    /// The OSDs' PodDisruptionBudget as it is, before it is limited to 0.
    Pdb,
    /// The PodDisruptionBudget is restored, or is no longer osd-migrate's concern.
    PdbRestored,
    /// noscrub and nodeep-scrub, before they are set.
    NoScrub,
    /// noscrub and nodeep-scrub are set.
    NoScrubSet,
    /// Another client unset noscrub or nodeep-scrub, which osd-migrate had set.
    NoScrubUnsetExternally,
    /// noscrub and nodeep-scrub are unset, as far as osd-migrate had set them.
    NoScrubRestored,
    /// Options about recovery, before they are set.
    FastRecovery,
    /// Options about recovery are set.
    FastRecoverySet,
    /// Another client changed an option about recovery that osd-migrate had set.
    FastRecoveryChangedExternally,
    /// Options about recovery are removed, as far as osd-migrate had set them.
    FastRecoveryRestored,
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
    /// The upmaps of the OSD are gone: with its CRUSH item, or because it was marked out.
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
    /// The disk of a removed OSD is left as it is.
    DiskLeft {
        /// why it could not be wiped
        why: String,
    },
    /// The CRUSH host of a node whose OSDs are removed stays: Ceph does not remove it.
    HostLeft {
        /// name of the host
        host: String,
    },
    /// The OSD is removed: only the cleanup is left.
    Removed,
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
    pub fn code(&self) -> &'static str {
        match self {
            Self::Attempt { task, .. } => task.code(),
            Self::Node { status, .. } => status.code(),
            Self::Bootstrap { ours: false } => "no-bootstrap",
            Self::Record
            | Self::Withdrawn
            | Self::NotAdmitted { .. }
            | Self::Purged
            | Self::Proof
            | Self::Emptying
            | Self::MarkedOut
            | Self::EmptyingProgress { .. }
            | Self::EmptyingHeldUp { .. }
            | Self::Emptied
            | Self::NotEmptied { .. }
            | Self::StopIntentCleared
            | Self::Stop
            | Self::PgsGone { .. }
            | Self::RevertStop { .. }
            | Self::WipeBlocked
            | Self::Bootstrap { ours: true }
            | Self::Fence
            | Self::FenceOrdered
            | Self::FenceGone
            | Self::OperatorScaled
            | Self::OperatorRestoring
            | Self::OperatorRestored
            | Self::Pdb
            | Self::PdbRestored
            | Self::NoScrub
            | Self::NoScrubSet
            | Self::NoScrubUnsetExternally
            | Self::NoScrubRestored
            | Self::FastRecovery
            | Self::FastRecoverySet
            | Self::FastRecoveryChangedExternally
            | Self::FastRecoveryRestored
            | Self::FenceAcknowledged
            | Self::Unfenced
            | Self::New
            | Self::LeftToRook
            | Self::Down
            | Self::Up
            | Self::NooutLifted
            | Self::Blocked
            | Self::Skipping
            | Self::UpmapsLost
            | Self::Upmaps
            | Self::UpmapsDone { .. }
            | Self::Progress
            | Self::DiskLeft { .. }
            | Self::HostLeft { .. }
            | Self::Removed
            | Self::Closing
            | Self::Uncleared { .. }
            | Self::Closed
            | Self::Quarantine { .. } => self.into(),
        }
    }
}

/// Returns the sentence about an old directory that could not be removed.
pub fn uncleared(path: &str, node: &NodeName, why: &str) -> String {
    format!(
        "the old directory {path} is still on node {node}. Check it, then remove it on that node: rm -r --one-file-system \
         {path} ({why})"
    )
}
