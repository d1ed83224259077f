//! Meaning of a reason for a run: whether it is about data, whether waiting helps, and its guard.

use super::Reason;
use crate::domain::guard::Guard;

impl Reason {
    /// Returns whether the reason is about data: replicas that are missing, unknown or without space, or a
    /// device that is not the recorded one.
    ///
    /// The other reasons (Rook, a node, an upgrade, a flag) disappear when their owner is done. Waiting for
    /// them is safe.
    #[expect(clippy::too_many_lines, reason = "one line for each reason")]
    pub fn is_about_data(&self) -> bool {
        match self {
            Self::StatisticsOld { .. }
            | Self::NotClean { .. }
            | Self::Peering { .. }
            | Self::Merging { .. }
            | Self::NotOkToStop { .. }
            | Self::NoRedundancy { .. }
            | Self::StillNeeded { .. }
            | Self::MarkedIn { .. }
            | Self::NotSafeToDestroy { .. }
            | Self::OtherReplicaMissing { .. }
            | Self::Full { .. }
            | Self::TooSmall { .. }
            | Self::UsageUnknown
            | Self::OtherPvc { .. }
            | Self::RemappedPgNotClean { .. }
            | Self::BackfillIncomplete { .. } => true,
            Self::StatisticsIncomplete { .. }
            | Self::NotAsked
            | Self::CannotBeEmptied { .. }
            | Self::EmptyingUnknown { .. }
            | Self::NotRemovable { .. }
            | Self::StillSelected { .. }
            | Self::DirectoryDeclared { .. }
            | Self::RookResetsWeights { .. }
            | Self::Down { .. }
            | Self::AgentAtWork { .. }
            | Self::StopReverted { .. }
            | Self::Flag { .. }
            | Self::Upgrading
            | Self::ImageChanged { .. }
            | Self::RookPrepares { .. }
            | Self::RookMigrates { .. }
            | Self::OperatorRuns { .. }
            | Self::OperatorNotFound { .. }
            | Self::FenceNotAcknowledged { .. }
            | Self::FencedExternally { .. }
            | Self::Draining { .. }
            | Self::PdbExcludesOsd { .. }
            | Self::PdbRejected { .. }
            | Self::AdmissionRefused { .. }
            | Self::AdmissionUnknown { .. }
            | Self::AmbiguousObjects { .. }
            | Self::KeyRotation { .. }
            | Self::NodeNotReady { .. }
            | Self::NodeLost { .. }
            | Self::NodeCordoned { .. }
            | Self::StartedExternally
            | Self::RolloutInProgress { .. }
            | Self::MonDown
            | Self::External
            | Self::RookRemovesOutOsds
            | Self::NotConfirmed
            | Self::ChangedSincePlan { .. }
            | Self::Paused { .. }
            | Self::Cancelled { .. }
            | Self::OutsideWindow { .. }
            | Self::CommitLatency { .. }
            | Self::CommitLatencyUnknown { .. }
            | Self::FailureLimit { .. }
            | Self::NeedsDevice { .. }
            | Self::DisksNotInspected { .. }
            | Self::NoDatabaseDevice { .. }
            | Self::Queued { .. } => false,
        }
    }

    /// Returns whether the reason is of the OSD that asks alone: another OSD may be stopped meanwhile.
    pub(in crate::domain) fn is_of_the_osd_that_asks(&self) -> bool {
        matches!(
            self,
            Self::NotOkToStop { .. } | Self::TooSmall { .. } | Self::EmptyingUnknown { why: Some(_), .. }
        )
    }

    /// Returns whether waiting does not help.
    ///
    /// This version never migrates such an OSD, or only after a device is attached.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::NoRedundancy { .. }
                | Self::CannotBeEmptied { .. }
                | Self::NotRemovable { .. }
                | Self::StillSelected { .. }
                | Self::DirectoryDeclared { .. }
                | Self::RookResetsWeights { .. }
                | Self::External
                | Self::ChangedSincePlan { .. }
                | Self::NeedsDevice { .. }
                | Self::NoDatabaseDevice { .. }
        )
    }

    /// Returns the guard of this reason, or none if something is just not known yet.
    pub fn guard(&self) -> Option<Guard> {
        Some(match self {
            Self::StatisticsIncomplete { .. } => Guard::StatisticsComplete,
            Self::StatisticsOld { .. } => Guard::StatisticsFresh,
            Self::NotClean { .. } => Guard::AllClean,
            Self::Peering { .. } => Guard::Peered,
            Self::NotOkToStop { .. } => Guard::OkToStop,
            Self::Down { .. } => Guard::DownIsNoCandidate,
            Self::NoRedundancy { .. } => Guard::Redundancy,
            Self::CannotBeEmptied { .. } | Self::EmptyingUnknown { .. } => Guard::CanBeEmptied,
            Self::MarkedIn { .. } => Guard::GetsNoData,
            Self::StillSelected { .. } | Self::DirectoryDeclared { .. } => Guard::NotSelectedAgain,
            Self::RookResetsWeights { .. } => Guard::WeightsNotReset,
            Self::OtherReplicaMissing { .. } => Guard::OnlyOursMissing,
            Self::Full { .. } => Guard::NotFull,
            Self::Flag { .. } => Guard::NoFlag,
            Self::TooSmall { .. } | Self::UsageUnknown => Guard::EnoughSpace,
            Self::Upgrading | Self::ImageChanged { .. } => Guard::NoUpgrade,
            Self::RookPrepares { .. } | Self::RookMigrates { .. } => Guard::RookPreparesNone,
            Self::OperatorRuns { .. } | Self::OperatorNotFound { .. } => Guard::OperatorAway,
            Self::FenceNotAcknowledged { .. } => Guard::FenceAcknowledged,
            Self::FencedExternally { .. } => Guard::NotFencedExternally,
            Self::Draining { .. } => Guard::NotDraining,
            Self::PdbRejected { .. } => Guard::DrainsLimitedFirst,
            Self::AdmissionRefused { .. } | Self::AdmissionUnknown { .. } => Guard::AdmittedFirst,
            Self::AmbiguousObjects { .. } => Guard::NothingAmbiguous,
            Self::OtherPvc { .. } => Guard::PvcSame,
            Self::KeyRotation { .. } => Guard::NoRotation,
            Self::NodeNotReady { .. } => Guard::NodeReady,
            Self::NodeCordoned { .. } => Guard::NodeNotCordoned,
            Self::StartedExternally => Guard::StaysStopped,
            Self::RolloutInProgress { .. } => Guard::RolledOutFirst,
            Self::MonDown => Guard::MonQuorum,
            Self::External => Guard::NotExternal,
            Self::RookRemovesOutOsds => Guard::RemovesNoOutOsds,
            Self::NotConfirmed => Guard::Confirmed,
            Self::ChangedSincePlan { .. } => Guard::ApprovedOnly,
            Self::Paused { .. } => Guard::NotPaused,
            Self::Cancelled { .. } => Guard::NotCancelled,
            Self::OutsideWindow { .. } => Guard::InWindow,
            Self::CommitLatency { .. } => Guard::CommitLatency,
            Self::FailureLimit { .. } => Guard::WithinFailureLimit,
            Self::NotAsked
            | Self::CommitLatencyUnknown { .. }
            | Self::Merging { .. }
            | Self::AgentAtWork { .. }
            | Self::StopReverted { .. }
            | Self::PdbExcludesOsd { .. }
            | Self::Queued { .. }
            | Self::NeedsDevice { .. }
            | Self::NodeLost { .. }
            | Self::DisksNotInspected { .. }
            | Self::NoDatabaseDevice { .. }
            | Self::RemappedPgNotClean { .. }
            | Self::NotRemovable { .. }
            | Self::NotSafeToDestroy { .. }
            | Self::StillNeeded { .. }
            | Self::BackfillIncomplete { .. } => return None,
        })
    }
}
