//! Reasons why a gate is not open, as data. The sentences for people are in `words.rs`, and what a
//! reason means for a run is in `reason_kind.rs`.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::stopped_by::StoppedBy;
use crate::domain::approval::PlanHash;
use crate::domain::osd::{Epoch, NodeName, OsdId, PgId};
use crate::domain::windows::Windows;

/// Reason why a gate is not open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Reason {
    /// The mgr knows fewer or more PGs than the pools have.
    StatisticsIncomplete {
        /// known PGs
        known: usize,
        /// PGs of all pools
        expected: u64,
    },
    /// A PG has not reported since one of its OSDs came up or went down.
    StatisticsOld {
        /// PG with the old report
        pg: PgId,
        /// epoch of the last report
        reported: Epoch,
        /// epoch that the report must have reached
        needed: Epoch,
    },
    /// PGs that are not active+clean.
    NotClean {
        /// number of PGs
        count: usize,
        /// first of them
        pg: PgId,
        /// state of the first one
        state: String,
        /// OSDs that are down although they are not destroyed
        down: BTreeSet<OsdId>,
    },
    /// A PG is on its way to another state.
    Peering {
        /// PG that is peering
        pg: PgId,
        /// state of the PG
        state: String,
    },
    /// A pool is merging PGs.
    Merging {
        /// name of the pool
        pool: String,
    },
    /// The OSD is down, and this run did not stop it.
    Down {
        /// OSD that is down
        osd: OsdId,
    },
    /// A node agent of an earlier record of the OSD has not ended.
    AgentAtWork {
        /// Job of the agent
        job: String,
    },
    /// The last stop of the OSD was reverted a moment ago.
    StopReverted {
        /// why it was reverted
        why: String,
        /// when the next stop may be tried
        until: DateTime<Utc>,
    },
    /// Ceph reports that a stop of the OSD would stop PGs from serving.
    NotOkToStop {
        /// number of PGs
        bad_pgs: u32,
    },
    /// `ok-to-stop` was not asked for this set of OSDs.
    NotAsked,
    /// Without the OSD the pool would have insufficient redundancy.
    NoRedundancy {
        /// name of the pool
        pool: String,
    },
    /// The OSD would have to be emptied, and can't be.
    CannotBeEmptied {
        /// OSD to be emptied
        osd: OsdId,
        /// what is against it
        why: String,
    },
    /// It is not known whether the OSD can be emptied.
    EmptyingUnknown {
        /// OSD to be emptied
        osd: OsdId,
        /// why it is not known, if Ceph was asked
        why: Option<String>,
    },
    /// A PG needs an OSD that is to be empty.
    StillNeeded {
        /// OSD that is to be empty
        osd: OsdId,
        /// PG that needs it
        pg: PgId,
        /// state of the PG
        state: String,
    },
    /// Another client marked an OSD in that is to be empty.
    MarkedIn {
        /// OSD that is to be stopped
        osd: OsdId,
    },
    /// The OSD can't be removed, whatever the state of the cluster.
    NotRemovable {
        /// OSD whose removal is requested
        osd: OsdId,
        /// what is against it
        why: String,
    },
    /// The CephCluster selects the disk of an OSD that is to be removed.
    StillSelected {
        /// OSD whose removal is requested
        osd: OsdId,
        /// node of the disk
        node: NodeName,
        /// the removal was requested for the whole node
        whole_node: bool,
        /// disk, as the node names it
        disk: String,
        /// declaration that selects the disk, in words
        selected: String,
    },
    /// The pod of a dead OSD is bound to a node that does not answer.
    NodeLost {
        /// OSD that is to be removed
        osd: OsdId,
        /// node that does not answer
        node: NodeName,
    },
    /// The CephCluster declares the directory of an OSD that is to be removed.
    DirectoryDeclared {
        /// OSD that is to be removed
        osd: OsdId,
        /// path in `spec.storage.directories`
        path: String,
    },
    /// A running Rook would reset the CRUSH weight of an OSD that is to be empty.
    RookResetsWeights {
        /// name of the CephCluster
        cluster: String,
    },
    /// Ceph answers that the data of an emptied OSD may be needed.
    NotSafeToDestroy {
        /// OSD that is to be stopped
        osd: OsdId,
    },
    /// In addition to this OSD's replica, another replica of the PG is missing.
    OtherReplicaMissing {
        /// PG with the missing replica
        pg: PgId,
        /// state of the PG
        state: String,
    },
    /// A full or nearly full warning is raised.
    Full {
        /// health code
        code: String,
    },
    /// A flag of the osdmap prevents the act.
    Flag {
        /// flag as named by `ceph osd dump`
        flag: String,
        /// OSD, CRUSH node or device class on which it is set; none if on the whole cluster
        on: Option<String>,
    },
    /// The new OSD would be too small for the data of the old one.
    TooSmall {
        /// bytes that the new OSD may use
        usable: u64,
        /// bytes that the data needs
        needed: u64,
    },
    /// The usage of the old OSD, or the capacity of the new one, is unknown.
    UsageUnknown,
    /// Daemons of several releases are running: an upgrade is in progress.
    Upgrading,
    /// The CephCluster names an image that Rook has not picked up: an upgrade was requested and has not
    /// started.
    ImageChanged {
        /// declared image
        declared: String,
        /// image that Rook last inspected
        known: String,
    },
    /// Rook is preparing OSDs on the node of the OSD, or on a node that is not known.
    RookPrepares {
        /// Job that prepares OSDs
        job: String,
        /// node that the Job concerns, if it is known
        node: Option<NodeName>,
    },
    /// Rook is in the middle of its own migration of an OSD.
    RookMigrates {
        /// OSD that Rook migrates
        osd: OsdId,
        /// namespace/name of the operator's Deployment
        name: String,
    },
    /// Rook's operator is running and would start the OSD again in the middle of the migration.
    OperatorRuns {
        /// namespace/name of the operator's Deployment
        name: String,
        /// how it can be stopped
        stopped_by: StoppedBy,
        /// the Deployment is already at 0 replicas, and its pod has not ended
        ends: bool,
    },
    /// No running operator is found where expected, but an operator works for this CephCluster, or did so
    /// until a moment ago.
    OperatorNotFound {
        /// time of Rook's last status of Ceph
        checked: DateTime<Utc>,
    },
    /// Rook's operator is running, and has not acknowledged the fence yet.
    FenceNotAcknowledged {
        /// namespace/name of the operator's Deployment
        name: String,
    },
    /// A label `do-not-reconcile` that osd-migrate did not set is on the CephCluster.
    FencedExternally {
        /// value of the label
        value: String,
    },
    /// Rook allows a failure domain to be drained.
    Draining {
        /// name of the failure domain
        domain: String,
    },
    /// Rook's PodDisruptionBudget excludes an OSD that is up.
    PdbExcludesOsd {
        /// excluded OSD
        osd: OsdId,
    },
    /// Rook's PodDisruptionBudget can't be used, and the API server rejects osd-migrate's own.
    PdbRejected {
        /// message of the API server
        why: String,
    },
    /// The API server refuses the Deployment of the new OSD.
    AdmissionRefused {
        /// OSD whose Deployment is refused
        osd: OsdId,
        /// message of the API server
        why: String,
    },
    /// It is not known whether the API server admits that Deployment.
    AdmissionUnknown {
        /// OSD whose Deployment is concerned
        osd: OsdId,
        /// why it is not known, if the API server was asked
        why: Option<String>,
    },
    /// Deployments or pods of OSDs are ambiguous.
    AmbiguousObjects {
        /// sentence for people
        what: String,
    },
    /// Rook is rotating the key of the OSD's encryption.
    KeyRotation {
        /// OSD whose key is rotated
        osd: OsdId,
    },
    /// The PVC of a recorded OSD was recreated, is missing, or is on another PersistentVolume.
    OtherPvc {
        /// OSD of the PVC
        osd: OsdId,
        /// name of the PVC
        pvc: String,
    },
    /// The node is not Ready.
    NodeNotReady {
        /// name of the node
        node: NodeName,
    },
    /// The node is cordoned: an OSD stopped there could not be started again.
    NodeCordoned {
        /// name of the node
        node: NodeName,
    },
    /// The OSD that osd-migrate had stopped was started externally.
    StartedExternally,
    /// A Deployment of an OSD was changed, and its new pod does not exist or is not available yet.
    RolloutInProgress {
        /// OSD whose rollout is in progress
        osd: OsdId,
    },
    /// Not all mons are in quorum.
    MonDown,
    /// `spec.external.enable`
    External,
    /// `spec.removeOSDsIfOutAndSafeToRemove`
    RookRemovesOutOsds,
    /// Neither the CephCluster nor a flag confirms the migration.
    NotConfirmed,
    /// The OSD is no longer as in the plan that a person approved.
    ChangedSincePlan {
        /// hash of the plan
        plan: PlanHash,
        /// line of the OSD in the plan
        approved: String,
        /// line of the OSD now
        now: String,
    },
    /// A person paused the runs.
    Paused {
        /// since when, if known
        since: Option<DateTime<Utc>>,
    },
    /// A person cancelled the runs.
    Cancelled {
        /// since when, if known
        since: Option<DateTime<Utc>>,
    },
    /// No window is open at this time.
    OutsideWindow {
        /// declared windows
        windows: Windows,
        /// time when the next window opens
        opens_at: Option<DateTime<Utc>>,
    },
    /// OSDs need longer to commit writes than the run allows.
    CommitLatency {
        /// median of the OSDs that write
        median: Duration,
        /// limit of the run
        limit: Duration,
    },
    /// The mgr does not know how long an OSD needs to commit writes.
    CommitLatencyUnknown {
        /// OSD without a report
        osd: OsdId,
    },
    /// More OSDs failed than the failure limit allows.
    FailureLimit {
        /// quarantined OSDs
        quarantined: BTreeSet<OsdId>,
    },
    /// An OSD in a directory needs an available disk, and its node has none for it.
    NeedsDevice {
        /// node of the OSD
        node: NodeName,
        /// minimum size of the disk in bytes
        bytes: u64,
        /// declaration of the node's disks, in words
        selected: String,
    },
    /// The disks of an OSD's node were not inspected, so no disk for the OSD or for its database is known.
    DisksNotInspected {
        /// node that was not inspected
        node: NodeName,
        /// why, if an inspection was tried
        why: Option<String>,
    },
    /// An OSD's database is to be on another device, which can't take it.
    NoDatabaseDevice {
        /// node of the OSD
        node: NodeName,
        /// why the device can't take it
        why: String,
    },
    /// A PG of the old OSD was remapped to other OSDs, and is not clean there.
    RemappedPgNotClean {
        /// PG that was remapped
        pg: PgId,
        /// state of the PG
        state: String,
    },
    /// A new OSD does not have all its data yet.
    BackfillIncomplete {
        /// OSD that is backfilling
        osd: OsdId,
    },
    /// Another OSD comes first.
    Queued {
        /// OSD that comes first
        osd: OsdId,
    },
}
