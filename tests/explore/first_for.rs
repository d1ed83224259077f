//! The search that finds the absence of each guard.

use osd_migrate_core::domain::guard::Guard;

use super::{
    approval, batch, databases, emptying, encrypted, lag, new_osds, new_pvcs, owner, pace, pvcs, recovery,
    removal, scrubs, unnamed,
};

/// Returns the search that finds a guard's absence.
///
/// A guard's test begins with this search, and the other searches follow. The test fails if only one of these
/// finds the absence: a search that finds nothing takes minutes, because it visits all states.
pub(super) fn first_for(guard: Guard) -> &'static str {
    match guard {
        Guard::DestroyFsid
        | Guard::LedgerVersion
        | Guard::RecordOpen
        | Guard::StopExpects
        | Guard::OrphansDeleted => "replicated, a late freeze",
        Guard::ClusterVersion
        | Guard::RecheckAllClean
        | Guard::RecheckOnlyOursMissing
        | Guard::UnfenceOurs => "replicated, a late freeze and a fault",
        Guard::ActByLedger => "replicated, a freeze and a death",
        Guard::LedgerNotLost => "replicated, the ledger is deleted",
        Guard::QuarantineLiftsNoout | Guard::WithinFailureLimit => "three to do, some not as declared",
        Guard::AgentProvesAgain
        | Guard::AgentSlotDestroyed
        | Guard::AllClean
        | Guard::FailuresEnd
        | Guard::OnlyOursMissing
        | Guard::Peered
        | Guard::ProofIssuedToThis
        | Guard::ProofNames
        | Guard::ShimOneId
        | Guard::ShimRefusesPurge
        | Guard::StatisticsComplete
        | Guard::StatisticsFresh
        | Guard::StaysStopped
        | Guard::StoppedByUs
        | Guard::CleanedUpFirst => "replicated, a fault",
        Guard::AgentsInOrder
        | Guard::DiskOnce
        | Guard::NodeStillChosen
        | Guard::OnlyShortOfOsds
        | Guard::SlotIsOurs
        | Guard::StartExpects
        | Guard::DiskAvailable => "one more disk, a fault",
        Guard::AgentExpected => "one more disk, a late freeze and a fault",
        Guard::DeployReplaces | Guard::StartedIsFinished => {
            "a slot is filled again, a late freeze and a fault"
        }
        Guard::NoPersistentVolume => new_osds::ON_VOLUMES,
        Guard::AdoptsItsOwn => "an OSD that nothing starts",
        Guard::TolerateExpects => "taints that came later, a freeze and a death",
        Guard::RolledOutFirst => "taints that came later",
        Guard::WeighedFirst => "in a directory",
        Guard::DiskAvailableFirst | Guard::WeighExpects => "in a directory, a fault",
        Guard::UpmapLossSavedFirst | Guard::UpmapsOfOthersStay => "upmaps, purges and the balancer",
        Guard::PdbSavedFirst
        | Guard::DrainsBlocked
        | Guard::DrainsLimitedFirst
        | Guard::FenceAcknowledged => "alongside Rook",
        Guard::FenceStays => "alongside Rook, both confirmed",
        Guard::BootstrapSavedFirst => "no bootstrap key",
        Guard::OperatorSavedFirst | Guard::OperatorVersion => "alongside an old Rook, frozen late",
        Guard::RecheckBackfilled => "in a directory, a late freeze and a lost disk",
        Guard::ConformsAtTheEnd | Guard::DatabaseFits => databases::SEARCHED,
        Guard::BlankByPlace => unnamed::PULLED,
        Guard::OnlyKnownEncryption => encrypted::ON_A_HOST_MAPPING,
        Guard::SkipsSickCandidate => "a node is cordoned",
        Guard::AdmittedFirst => "a Deployment is refused",
        Guard::DownIsNoCandidate => "an OSD died long ago",
        Guard::LimitPastStopOnly | Guard::QuarantineKeyDeleted => "two without a device",
        Guard::NooutHasAnEnd | Guard::StopHasALimit => "a node is lost",
        Guard::StartHasALimit => "an init container fails",
        Guard::PoolQuotaIsNoFull => "a pool at its quota",
        Guard::IntentOutlivesSlowIterations => pace::SLOW,
        Guard::PassingStatesWait => "a PG turns unusual",
        Guard::PlacedSinceExcused => "CRUSH places a PG on a stopped OSD",
        Guard::ShortPgsReport => "a pool is split",
        Guard::ApprovedOnly => approval::CHANGED,
        Guard::OperatorRestored => "a mon dies alongside an old Rook",
        Guard::OperatorRestoreSavedFirst => "alongside an old Rook, paused",
        Guard::AgentRetriesSpaced => "agents fail",
        Guard::CanBeEmptied => emptying::NO_PLACE,
        Guard::EmptyingSavedFirst => "emptied",
        Guard::MarkedInAgain => emptying::EMPTIED,
        Guard::ReturnSeenFirst => emptying::KEPT,
        Guard::RecheckEmptied => emptying::FROZEN,
        Guard::RecheckPlace => emptying::FULL,
        Guard::NotSelectedAgain => removal::SELECTED,
        Guard::WeightsNotReset => removal::WEIGHED,
        Guard::GetsNoData | Guard::RequestStands => removal::REMOVED,
        Guard::EmptiedTogether | Guard::OneStopAtATime => removal::NODE,
        Guard::OnlyMoving => removal::NODE_FAULT,
        Guard::NoDiskForDirectory => removal::HAS_A_DISK,
        Guard::StatisticsOfThisMap => removal::OLD_STATISTICS,
        Guard::OutForLong => removal::OUT_BRIEFLY,
        Guard::CanaryFirst => batch::KINDS,
        Guard::CanarySoaks => batch::SOAKS,
        Guard::BatchNoCommonPg => batch::COMMON,
        Guard::BatchOneHost => batch::APART,
        Guard::BatchShare => batch::SHARE,
        Guard::BatchEndsWithQuarantine => batch::FAILS,
        Guard::OnlyWaitsByParts => lag::ON_A_PVC,
        Guard::PartsExpire => lag::AROUND,
        Guard::InProgressIsRead | Guard::ListExpires => lag::ONE_MORE,
        Guard::RecoverySavedFirst => recovery::FAST,
        Guard::RecoveryOfOthersStays => recovery::OF_A_PERSON,
        Guard::ScrubSavedFirst => scrubs::WAIT,
        Guard::ScrubOfOthersStays => scrubs::OF_A_PERSON,
        Guard::SetsFenced => pvcs::ALONGSIDE_ROOK,
        Guard::OwnersFenceStays => owner::FENCES,
        Guard::NoRotation => pvcs::ROTATED,
        Guard::PvcSame => pvcs::RECREATED,
        Guard::PvcPartProven => pvcs::OVERWRITTEN,
        Guard::PartsFoundFirst => pvcs::ELSEWHERE,
        Guard::PvcUnused => new_pvcs::OF_A_DESTROYED_OSD,
        Guard::StartsOnPvc => new_pvcs::RECREATED_LATE,
        Guard::PvcOnce => new_pvcs::QUARANTINED,
        Guard::KeyFirst | Guard::KeyStays => pvcs::KILLED,
        Guard::KeyOfOld => pvcs::WITHOUT_KEY,
        Guard::MappingsClosed => "on a PVC, to be unencrypted",
        Guard::BootstrapOurs | Guard::Redundancy => "two replicas",
        Guard::OkToStop => "min_size as size",
        Guard::EnoughSpace | Guard::OneAgent => "too full",
        Guard::InWindow => "outside of the window",
        Guard::CommitLatency => "commits are slow",
        _ => "replicated, something around it changes",
    }
}
