//! Why a gate is not open: data, with the words for a person beside it.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::domain::guard::Guard;
use crate::domain::osd::{Epoch, NodeName, OsdId, PgId};
use crate::domain::policy::Window;

/// Why a gate is not open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The mgr knows fewer or more PGs than the pools have.
    StatisticsIncomplete {
        /// PGs known
        known: usize,
        /// PGs that the pools have
        expected: u64,
    },
    /// A PG has not reported since one of its OSDs came up or went down.
    StatisticsOld {
        /// the PG
        pg: PgId,
        /// epoch of its report
        reported: Epoch,
        /// epoch it must have reached
        needed: Epoch,
    },
    /// PGs that are not active+clean.
    NotClean {
        /// how many
        count: usize,
        /// the first of them
        pg: PgId,
        /// its state
        state: String,
        /// OSDs that are down though nobody destroyed them
        down: BTreeSet<OsdId>,
    },
    /// A PG is on its way to another state.
    Peering {
        /// the PG
        pg: PgId,
        /// its state
        state: String,
    },
    /// A pool merges PGs right now.
    Merging {
        /// its name
        pool: String,
    },
    /// The OSD is down, and was not stopped by this run.
    Down {
        /// which
        osd: OsdId,
    },
    /// A node agent of an earlier record of the OSD has not ended.
    AgentAtWork {
        /// its Job
        job: String,
    },
    /// Its last stop was reverted a moment ago.
    StopReverted {
        /// why
        why: String,
        /// when the next stop may be tried
        until: DateTime<Utc>,
    },
    /// Ceph says that stopping it would stop PGs.
    NotOkToStop {
        /// how many
        bad_pgs: u32,
    },
    /// Ceph was not asked for this set.
    NotAsked,
    /// Without the OSD the pool would have no copy to spare.
    NoRedundancy {
        /// name of the pool
        pool: String,
    },
    /// Besides this OSD's, another copy of the PG lacks.
    OtherReplicaMissing {
        /// the PG
        pg: PgId,
        /// its state
        state: String,
    },
    /// A full or nearly full warning is raised.
    Full {
        /// its health code
        code: String,
    },
    /// A flag of the whole osdmap stands in the way.
    Flag {
        /// as `ceph osd dump` names it
        flag: String,
    },
    /// The new OSD would be too small for what the old one holds.
    TooSmall {
        /// bytes that the new one may use
        usable: u64,
        /// bytes needed
        needed: u64,
    },
    /// Nobody knows how much the old OSD holds, or how much the new one may.
    UsageUnknown,
    /// Daemons of several releases run: an upgrade is going on.
    Upgrading,
    /// The CephCluster names an image that Rook has not taken up: an upgrade that was asked for, and has not begun.
    ImageChanged {
        /// as declared
        declared: String,
        /// what Rook has looked at
        known: String,
    },
    /// Rook prepares OSDs.
    RookPrepares {
        /// the Job
        job: String,
    },
    /// Rook is in the middle of its own migration of an OSD.
    RookMigrates {
        /// the OSD
        osd: OsdId,
        /// namespace/name of the operator's Deployment
        name: String,
    },
    /// Rook's operator runs and would start the OSD again in the middle of the work.
    OperatorRuns {
        /// namespace/name of its Deployment
        name: String,
        /// at 0 already: its pod has not ended
        ends: bool,
    },
    /// Rook's operator is not found where it was looked for, and works for this CephCluster all the same.
    OperatorNotFound {
        /// when it last said how Ceph is
        checked: DateTime<Utc>,
    },
    /// Rook's operator runs, and has not said yet that it leaves the fenced CephCluster alone.
    FenceNotAcknowledged {
        /// namespace/name of its Deployment
        name: String,
    },
    /// Somebody else's label `do-not-reconcile` is on the CephCluster.
    FencedExternally {
        /// its value
        value: String,
    },
    /// Rook lets a failure domain be drained.
    Draining {
        /// its name
        domain: String,
    },
    /// Rook's PodDisruptionBudget leaves an OSD out that is up.
    PdbExcludesOsd {
        /// which
        osd: OsdId,
    },
    /// Rook's PodDisruptionBudget is of no use, and the API server refuses one of our own.
    PdbRejected {
        /// what it said
        why: String,
    },
    /// The API server refuses the Deployment of the new OSD.
    AdmissionRefused {
        /// the OSD
        osd: OsdId,
        /// what it said
        why: String,
    },
    /// Whether the API server admits that Deployment is not known.
    AdmissionUnknown {
        /// the OSD
        osd: OsdId,
        /// why, if the API server was asked
        why: Option<String>,
    },
    /// Deployments or pods of OSDs can't be told apart.
    AmbiguousObjects {
        /// the sentence
        what: String,
    },
    /// The node is not Ready.
    NodeNotReady {
        /// its name
        node: NodeName,
    },
    /// The node is cordoned: an OSD that is stopped there could not be started again.
    NodeCordoned {
        /// its name
        node: NodeName,
    },
    /// Somebody started the OSD that we had stopped.
    StartedExternally,
    /// A Deployment of an OSD was changed, and its pod is not the new one yet, or not available.
    RolloutInProgress {
        /// which
        osd: OsdId,
    },
    /// Not all mons are in quorum.
    MonDown,
    /// `spec.external.enable`
    External,
    /// `spec.removeOSDsIfOutAndSafeToRemove`
    RookRemovesOutOsds,
    /// Neither the CephCluster nor a flag confirms.
    NotConfirmed,
    /// A person paused.
    Paused {
        /// since when, where it is known
        since: Option<DateTime<Utc>>,
    },
    /// A person cancelled.
    Cancelled {
        /// since when, where it is known
        since: Option<DateTime<Utc>>,
    },
    /// It is not the time for it.
    OutsideWindow {
        /// the windows
        windows: Vec<Window>,
        /// when the next one opens
        opens_at: Option<DateTime<Utc>>,
    },
    /// More OSDs failed than the budget allows.
    FailureLimit {
        /// which were left alone
        quarantined: BTreeSet<OsdId>,
    },
    /// An OSD in a directory goes to a free disk, and its node has none for it.
    NeedsDevice {
        /// the node
        node: NodeName,
        /// bytes that the disk must have at least
        bytes: u64,
        /// what is declared of the node's disks, in words
        selected: String,
    },
    /// The disks of an OSD's node were not looked at, so that nobody knows of one for it, or for its database.
    DisksNotInspected {
        /// the node
        node: NodeName,
        /// why, where it was tried
        why: Option<String>,
    },
    /// An OSD's database is to lie on another device, which can't take it.
    NoDatabaseDevice {
        /// the node
        node: NodeName,
        /// why
        why: String,
    },
    /// A PG that the old OSD held was given to others, and is not clean there.
    RemappedPgNotClean {
        /// the PG
        pg: PgId,
        /// its state
        state: String,
    },
    /// A new OSD does not hold yet what it is to hold.
    BackfillIncomplete {
        /// which
        osd: OsdId,
    },
    /// Another OSD comes first.
    Queued {
        /// which
        osd: OsdId,
    },
}

impl Reason {
    /// Whether it tells of data: copies that lack, are not known of, or have no room. What is around them (Rook, a node, an
    /// upgrade, a flag) passes when its owner is done, and endangers nothing while it is waited for.
    pub fn is_about_data(&self) -> bool {
        match self {
            Self::StatisticsOld { .. }
            | Self::NotClean { .. }
            | Self::Peering { .. }
            | Self::Merging { .. }
            | Self::NotOkToStop { .. }
            | Self::NoRedundancy { .. }
            | Self::OtherReplicaMissing { .. }
            | Self::Full { .. }
            | Self::TooSmall { .. }
            | Self::UsageUnknown
            | Self::RemappedPgNotClean { .. }
            | Self::BackfillIncomplete { .. } => true,
            Self::StatisticsIncomplete { .. }
            | Self::NotAsked
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
            | Self::NodeNotReady { .. }
            | Self::NodeCordoned { .. }
            | Self::StartedExternally
            | Self::RolloutInProgress { .. }
            | Self::MonDown
            | Self::External
            | Self::RookRemovesOutOsds
            | Self::NotConfirmed
            | Self::Paused { .. }
            | Self::Cancelled { .. }
            | Self::OutsideWindow { .. }
            | Self::FailureLimit { .. }
            | Self::NeedsDevice { .. }
            | Self::DisksNotInspected { .. }
            | Self::NoDatabaseDevice { .. }
            | Self::Queued { .. } => false,
        }
    }

    /// Whether waiting does not help: this version never does such an OSD, or not before something is attached.
    pub fn is_for_good(&self) -> bool {
        matches!(
            self,
            Self::NoRedundancy { .. }
                | Self::External
                | Self::NeedsDevice { .. }
                | Self::NoDatabaseDevice { .. }
        )
    }

    /// The guard that this reason is the word of; none where something is just not known yet.
    pub fn guard(&self) -> Option<Guard> {
        Some(match self {
            Self::StatisticsIncomplete { .. } => Guard::StatisticsComplete,
            Self::StatisticsOld { .. } => Guard::StatisticsFresh,
            Self::NotClean { .. } => Guard::AllClean,
            Self::Peering { .. } => Guard::Peered,
            Self::NotOkToStop { .. } => Guard::OkToStop,
            Self::Down { .. } => Guard::DownIsNoCandidate,
            Self::NoRedundancy { .. } => Guard::Redundancy,
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
            Self::NodeNotReady { .. } => Guard::NodeReady,
            Self::NodeCordoned { .. } => Guard::NodeNotCordoned,
            Self::StartedExternally => Guard::StaysStopped,
            Self::RolloutInProgress { .. } => Guard::RolledOutFirst,
            Self::MonDown => Guard::MonQuorum,
            Self::External => Guard::NotExternal,
            Self::RookRemovesOutOsds => Guard::RemovesNoOutOsds,
            Self::NotConfirmed => Guard::Confirmed,
            Self::Paused { .. } => Guard::NotPaused,
            Self::Cancelled { .. } => Guard::NotCancelled,
            Self::OutsideWindow { .. } => Guard::InWindow,
            Self::FailureLimit { .. } => Guard::WithinFailureLimit,
            Self::NotAsked
            | Self::Merging { .. }
            | Self::AgentAtWork { .. }
            | Self::StopReverted { .. }
            | Self::PdbExcludesOsd { .. }
            | Self::Queued { .. }
            | Self::NeedsDevice { .. }
            | Self::DisksNotInspected { .. }
            | Self::NoDatabaseDevice { .. }
            | Self::RemappedPgNotClean { .. }
            | Self::BackfillIncomplete { .. } => return None,
        })
    }
}
