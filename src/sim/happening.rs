//! Happenings: what happens by itself, fails, or is done externally. Each is a small change of the world and
//! has a text.

use std::fmt;

use crate::domain::osd::{NodeName, OsdId, PgId, Upmap};
use crate::sim::disturbance::Disturbance;
use crate::sim::pvcs::PvcChange;
use crate::sim::rook::Rook;
use crate::sim::stumble::Stumble;

/// Happening.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happening {
    // ---- by itself
    /// The mgr receives a PG's statistics (every 5 s, up to 7 s late).
    PgReports(PgId),
    /// A PG's OSDs agree on who has which objects.
    Peer(PgId),
    /// An OSD has all of a PG's objects again.
    Fill(PgId, OsdId),
    /// A daemon's pod starts.
    PodStarts(OsdId),
    /// A daemon boots.
    Boots(OsdId),
    /// A stopping daemon is marked down.
    GoesDown(OsdId),
    /// A daemon's pod is gone.
    PodGone(OsdId),
    /// A node agent does its next step.
    AgentSteps(String),
    /// An inventory Job has read a node's disks, and reports.
    InventoryJobEnds(String),
    /// Minutes pass.
    Minutes(u32),
    // ---- failures
    /// An inventory Job ends without a report.
    InventoryJobDies(String),
    /// Another process writes a file system onto a disk.
    DiskFormatted(String),
    /// A daemon dies and does not come back.
    Dies(OsdId),
    /// A daemon can run again.
    Recovers(OsdId),
    /// A node loses its power: its daemons and agents end, it is not Ready.
    PowerLost(NodeName),
    /// A node has power again.
    PowerBack(NodeName),
    /// A node agent is killed.
    AgentDies(String),
    /// Kubernetes regards an agent's Job as failed while its process still exists, suspended.
    AgentLost(String),
    /// ceph-volume fails in an agent.
    AgentStumbles(String, Stumble),
    /// Another disk replaces a disk: same size, same position, foreign data.
    DiskSwapped(String),
    /// A disk is swapped with another one, which is then found in its place; or the disk is pulled out.
    DiskMoved(String, Option<String>),
    /// Another process wrote another OSD's store onto a disk.
    DiskOverwritten(String),
    // ---- external
    /// A person scales a Deployment to 0.
    PersonStops(OsdId),
    /// A person scales a Deployment to 1 again.
    PersonStarts(OsdId),
    /// A person edits a Deployment.
    PersonEdits(OsdId),
    /// A person deletes a Deployment.
    PersonDeletes(OsdId),
    /// A person deletes a Deployment and recreates it unchanged.
    PersonRecreates(OsdId),
    /// The owner withdraws the confirmation.
    Unconfirmed,
    /// The owner confirms.
    Confirmed,
    /// A person removes the fence of osd-migrate.
    PersonUnfences,
    /// Another client sets its own fence.
    OthersFence,
    /// The other client removes its fence.
    OthersUnfence,
    /// A person marks an OSD out.
    PersonOuts(OsdId),
    /// A person marks an OSD in again, with its reweight.
    PersonIns(OsdId),
    /// A person gives an OSD another CRUSH weight.
    PersonReweighs(OsdId),
    /// A person requests the removal of an OSD.
    PersonRequests(OsdId),
    /// A person withdraws the request.
    PersonKeeps(OsdId),
    /// Another OSD's directory replaces the one on this disk.
    DirectoryReplaced(String),
    /// The balancer gives a PG an upmap.
    Balanced(Upmap),
    /// A person purges an OSD that is down.
    PersonPurges(OsdId),
    /// A person re-registers a destroyed slot for the OSD on its disk: `osd new OLD ID` with the disk's own
    /// key.
    PersonReregisters(OsdId),
    /// Another client sends `osd new` without an id, which uses the lowest absent id.
    IdTakenExternally,
    /// The owner selects other disks.
    Unselected,
    /// The owner selects the disks again.
    Selected,
    /// A person sets a taint on a node.
    Tainted(NodeName),
    /// A flag of the whole osdmap is set (`norecover`).
    FlagSet,
    /// The flag is unset.
    FlagUnset,
    /// A person sets or unsets the flag `noscrub`.
    NoScrub(bool),
    /// A person sets the option `osd_max_backfills` for all OSDs, or removes it.
    MaxBackfills(bool),
    /// The operator is scaled up.
    OperatorUp,
    /// The operator is scaled down.
    OperatorDown,
    /// From now on the API server refuses PodDisruptionBudgets: a policy, a quota.
    PdbsRejected,
    /// A condition around the OSDs changes.
    Around(Around, bool),
    /// A daemon boots, and does not match the declaration.
    BootsUnexpectedly(OsdId),
    /// The mgr loses a PG's statistics (it failed over).
    MgrForgets(PgId),
    /// The running Rook operator does something.
    Rook(Rook),
    /// A PVC, its key or its device set changes.
    Pvc(PvcChange),
    /// A persistent problem starts, or a temporary one ends.
    Noise(Disturbance),
}

/// Condition around the OSDs; each shuts a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Around {
    /// Rook prepares OSDs on the first node.
    RookPrepares,
    /// Rook prepares an OSD, and the node is not known.
    RookPreparesSomewhere,
    /// Rook lets a domain be drained.
    Draining,
    /// Daemons of two releases are running.
    Upgrade,
    /// An OSD is nearly full.
    Nearfull,
    /// A mon is down.
    MonDown,
    /// The CephCluster becomes external.
    External,
    /// Rook may remove OSDs that are out.
    RookRemovesOutOsds,
    /// Two Deployments run one OSD.
    AmbiguousObjects,
    /// The first node is not Ready, though its daemons run.
    NotReady,
    /// The first node is cordoned.
    Cordoned,
    /// A person pauses.
    Paused,
    /// A person cancels.
    Cancelled,
    /// No OSD has space for the data of another one.
    ///
    /// It matters only to an OSD that is emptied, so it is not in [`Around::ALL`].
    Full,
}

impl Around {
    /// All conditions that concern each OSD.
    pub const ALL: [Self; 13] = [
        Self::RookPrepares,
        Self::RookPreparesSomewhere,
        Self::Draining,
        Self::Upgrade,
        Self::Nearfull,
        Self::MonDown,
        Self::External,
        Self::RookRemovesOutOsds,
        Self::AmbiguousObjects,
        Self::NotReady,
        Self::Cordoned,
        Self::Paused,
        Self::Cancelled,
    ];
}

impl fmt::Display for Happening {
    #[expect(clippy::too_many_lines, reason = "one line for each")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PgReports(pg) => write!(f, "the mgr receives the statistics of PG {pg}"),
            Self::Peer(pg) => write!(f, "PG {pg} completes peering"),
            Self::Fill(pg, osd) => write!(f, "the backfill of PG {pg} to {osd} is complete"),
            Self::PodStarts(osd) => write!(f, "the pod of {osd} starts"),
            Self::Boots(osd) => write!(f, "{osd} boots"),
            Self::GoesDown(osd) => write!(f, "{osd} is down"),
            Self::PodGone(osd) => write!(f, "the pod of {osd} is gone"),
            Self::AgentSteps(job) => write!(f, "the agent {job} continues"),
            Self::InventoryJobEnds(job) => write!(f, "the inventory {job} ends"),
            Self::InventoryJobDies(job) => write!(f, "the inventory {job} fails"),
            Self::DiskFormatted(disk) => write!(f, "a person creates a file system on {disk}"),
            Self::Unselected => f.write_str("the owner selects other disks"),
            Self::Selected => f.write_str("the owner selects the disks again"),
            Self::Minutes(minutes) => write!(f, "{minutes} minutes pass"),
            Self::Dies(osd) => write!(f, "{osd} dies"),
            Self::Recovers(osd) => write!(f, "{osd} can run again"),
            Self::PowerLost(node) => write!(f, "node {node} loses its power"),
            Self::PowerBack(node) => write!(f, "node {node} is back"),
            Self::AgentDies(job) => write!(f, "the agent {job} is killed"),
            Self::AgentLost(job) => write!(f, "the agent {job} freezes, and Kubernetes fails its Job"),
            Self::AgentStumbles(job, how) => write!(f, "ceph-volume in {job}: {how}"),
            Self::DiskMoved(disk, Some(other)) => write!(f, "{disk} and {other} change places"),
            Self::DiskMoved(disk, None) => write!(f, "a person removes {disk}"),
            Self::DiskSwapped(disk) => {
                write!(f, "a person replaces {disk} with another disk that has data")
            }
            Self::DiskOverwritten(disk) => write!(f, "a person writes the store of another OSD to {disk}"),
            Self::PersonStops(osd) => write!(f, "a person stops {osd}"),
            Self::PersonStarts(osd) => write!(f, "a person starts {osd}"),
            Self::PersonEdits(osd) => write!(f, "a person edits the Deployment of {osd}"),
            Self::PersonDeletes(osd) => write!(f, "a person deletes the Deployment of {osd}"),
            Self::PersonRecreates(osd) => write!(f, "a person recreates the Deployment of {osd}"),
            Self::Unconfirmed => f.write_str("the owner removes the confirmation"),
            Self::Confirmed => f.write_str("the owner confirms"),
            Self::PersonUnfences => f.write_str("a person removes the fence of osd-migrate"),
            Self::OthersFence => f.write_str("another client fences the CephCluster"),
            Self::OthersUnfence => f.write_str("the other client removes its fence"),
            Self::PersonOuts(osd) => write!(f, "a person marks {osd} out"),
            Self::PersonIns(osd) => write!(f, "a person marks {osd} in"),
            Self::PersonReweighs(osd) => write!(f, "a person changes the CRUSH weight of {osd}"),
            Self::PersonRequests(osd) => write!(f, "a person requests the removal of {osd}"),
            Self::PersonKeeps(osd) => write!(f, "a person keeps {osd}"),
            Self::DirectoryReplaced(disk) => {
                write!(f, "a person replaces the directory on {disk} with that of another OSD")
            }
            Self::Balanced(upmap) => write!(f, "the balancer: osd pg-upmap-items {upmap}"),
            Self::PersonPurges(osd) => write!(f, "a person purges {osd}"),
            Self::PersonReregisters(osd) => {
                write!(f, "a person restores the slot of {osd} for the OSD on its disk")
            }
            Self::Tainted(node) => write!(f, "a person taints {node}"),
            Self::IdTakenExternally => f.write_str("another client requests a new OSD id from the mons"),
            Self::FlagSet => f.write_str("a person sets the flag norecover"),
            Self::FlagUnset => f.write_str("a person unsets the flag norecover"),
            Self::NoScrub(true) => f.write_str("a person sets the flag noscrub"),
            Self::NoScrub(false) => f.write_str("a person unsets the flag noscrub"),
            Self::MaxBackfills(true) => f.write_str("a person sets osd_max_backfills"),
            Self::MaxBackfills(false) => f.write_str("a person removes osd_max_backfills"),
            Self::PdbsRejected => f.write_str("the API server rejects PodDisruptionBudgets from now on"),
            Self::OperatorUp => f.write_str("a person scales Rook's operator up"),
            Self::OperatorDown => f.write_str("a person scales Rook's operator down"),
            Self::Around(what, true) => write!(f, "started: {what:?}"),
            Self::Around(what, false) => write!(f, "ended: {what:?}"),
            Self::BootsUnexpectedly(osd) => write!(f, "{osd} boots, but not as declared"),
            Self::MgrForgets(pg) => write!(f, "the mgr fails over and does not know PG {pg}"),
            Self::Rook(what) => what.fmt(f),
            Self::Pvc(what) => what.fmt(f),
            Self::Noise(what) => what.fmt(f),
        }
    }
}

impl fmt::Display for Stumble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fails => "it fails",
            Self::DoesNothing => "it ends with 0 and has done nothing",
            Self::RollsBack => "it fails and rolls back",
            Self::RollsBackPastUs => "it fails and rolls back without the shim",
            Self::IgnoresId => "it ignores --osd-id",
            Self::IgnoresIdPastUs => "it ignores --osd-id, without the shim",
        })
    }
}
