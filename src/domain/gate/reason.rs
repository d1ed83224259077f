//! Why a gate is not open: data, with the words for a person beside it.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};

use crate::domain::guard::Guard;
use crate::domain::osd::{Epoch, NodeName, OsdId, PgId};
use crate::domain::policy::Window;

/// What to type to confirm.
pub const HOW_TO_CONFIRM: &str = "kubectl patch cephcluster NAME --type merge -p \
    '{\"spec\":{\"storage\":{\"migration\":{\"confirmation\":\"yes-really-migrate-osds\"}}}}', \
    or --confirm yes-really-migrate-osds";

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
    OtherCopyLacks {
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
    RoomUnknown,
    /// Daemons of several releases run: an upgrade is going on.
    Upgrading,
    /// Rook prepares OSDs.
    RookPrepares {
        /// the Job
        job: String,
    },
    /// Rook's operator runs and would start the OSD again in the middle of the work.
    OperatorRuns {
        /// namespace/name of its Deployment
        name: String,
    },
    /// Somebody else's label `do-not-reconcile` is on the CephCluster.
    FencedByOthers {
        /// its value
        value: String,
    },
    /// Rook lets a failure domain be drained.
    Draining {
        /// its name
        domain: String,
    },
    /// Deployments or pods of OSDs can't be told apart.
    Odd {
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
    StartedByOthers,
    /// A Deployment of an OSD was changed, and its pod is not the new one yet, or not available.
    Rolling {
        /// which
        osd: OsdId,
    },
    /// Not all mons are in quorum.
    MonDown,
    /// `spec.external.enable`
    External,
    /// `spec.removeOSDsIfOutAndSafeToRemove`
    RemovesOutOsds,
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
    FailureBudget {
        /// which were left alone
        quarantined: BTreeSet<OsdId>,
    },
    /// Another OSD comes first.
    After {
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
            | Self::NotOkToStop { .. }
            | Self::NoRedundancy { .. }
            | Self::OtherCopyLacks { .. }
            | Self::Full { .. }
            | Self::TooSmall { .. }
            | Self::RoomUnknown => true,
            Self::StatisticsIncomplete { .. }
            | Self::NotAsked
            | Self::Flag { .. }
            | Self::Upgrading
            | Self::RookPrepares { .. }
            | Self::OperatorRuns { .. }
            | Self::FencedByOthers { .. }
            | Self::Draining { .. }
            | Self::Odd { .. }
            | Self::NodeNotReady { .. }
            | Self::NodeCordoned { .. }
            | Self::StartedByOthers
            | Self::Rolling { .. }
            | Self::MonDown
            | Self::External
            | Self::RemovesOutOsds
            | Self::NotConfirmed
            | Self::Paused { .. }
            | Self::Cancelled { .. }
            | Self::OutsideWindow { .. }
            | Self::FailureBudget { .. }
            | Self::After { .. } => false,
        }
    }

    /// Whether waiting does not help: this version never does such an OSD in place.
    pub fn is_for_good(&self) -> bool {
        matches!(self, Self::NoRedundancy { .. } | Self::External)
    }

    /// The guard that this reason is the word of; none where something is just not known yet.
    pub fn guard(&self) -> Option<Guard> {
        Some(match self {
            Self::StatisticsIncomplete { .. } => Guard::StatisticsComplete,
            Self::StatisticsOld { .. } => Guard::StatisticsFresh,
            Self::NotClean { .. } => Guard::AllClean,
            Self::Peering { .. } => Guard::Peered,
            Self::NotOkToStop { .. } => Guard::OkToStop,
            Self::NoRedundancy { .. } => Guard::Redundancy,
            Self::OtherCopyLacks { .. } => Guard::OnlyOursLacks,
            Self::Full { .. } => Guard::NotFull,
            Self::Flag { .. } => Guard::NoFlag,
            Self::TooSmall { .. } | Self::RoomUnknown => Guard::EnoughRoom,
            Self::Upgrading => Guard::NoUpgrade,
            Self::RookPrepares { .. } => Guard::RookPreparesNone,
            Self::OperatorRuns { .. } => Guard::OperatorAway,
            Self::FencedByOthers { .. } => Guard::NotFencedByOthers,
            Self::Draining { .. } => Guard::NotDraining,
            Self::Odd { .. } => Guard::NothingOdd,
            Self::NodeNotReady { .. } => Guard::NodeReady,
            Self::NodeCordoned { .. } => Guard::NodeNotCordoned,
            Self::StartedByOthers => Guard::StaysStopped,
            Self::Rolling { .. } => Guard::RolledOutFirst,
            Self::MonDown => Guard::MonQuorum,
            Self::External => Guard::NotExternal,
            Self::RemovesOutOsds => Guard::RemovesNoOutOsds,
            Self::NotConfirmed => Guard::Confirmed,
            Self::Paused { .. } => Guard::NotPaused,
            Self::Cancelled { .. } => Guard::NotCancelled,
            Self::OutsideWindow { .. } => Guard::InWindow,
            Self::FailureBudget { .. } => Guard::WithinBudget,
            Self::NotAsked | Self::After { .. } => return None,
        })
    }

    /// One word, for tables and programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::StatisticsIncomplete { .. } => "statistics-incomplete",
            Self::StatisticsOld { .. } => "statistics-old",
            Self::NotClean { .. } => "not-clean",
            Self::Peering { .. } => "peering",
            Self::NotOkToStop { .. } => "not-ok-to-stop",
            Self::NotAsked => "not-asked",
            Self::NoRedundancy { .. } => "no-redundancy",
            Self::OtherCopyLacks { .. } => "other-copy-lacks",
            Self::Full { .. } => "full",
            Self::Flag { .. } => "flag",
            Self::TooSmall { .. } => "too-small",
            Self::RoomUnknown => "room-unknown",
            Self::Upgrading => "upgrading",
            Self::RookPrepares { .. } => "rook-prepares",
            Self::OperatorRuns { .. } => "operator-runs",
            Self::FencedByOthers { .. } => "fenced-by-others",
            Self::Draining { .. } => "draining",
            Self::Odd { .. } => "odd",
            Self::NodeNotReady { .. } => "node-not-ready",
            Self::NodeCordoned { .. } => "node-cordoned",
            Self::StartedByOthers => "started-by-others",
            Self::Rolling { .. } => "rolling",
            Self::MonDown => "mon-down",
            Self::External => "external",
            Self::RemovesOutOsds => "removes-out-osds",
            Self::NotConfirmed => "not-confirmed",
            Self::Paused { .. } => "paused",
            Self::Cancelled { .. } => "cancelled",
            Self::OutsideWindow { .. } => "outside-window",
            Self::FailureBudget { .. } => "failure-budget",
            Self::After { .. } => "after-another",
        }
    }
}

fn since(at: Option<DateTime<Utc>>) -> String {
    at.map(|at| format!(" since {}", at.format("%Y-%m-%d %H:%M:%SZ"))).unwrap_or_default()
}

fn names<'a>(things: impl IntoIterator<Item = &'a (impl fmt::Display + 'a)>) -> String {
    things.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Reason {
    #[expect(clippy::too_many_lines, reason = "one sentence for each reason")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StatisticsIncomplete { known, expected } => {
                write!(f, "the mgr knows {known} of {expected} PGs; see `ceph pg stat`")
            }
            Self::StatisticsOld { pg, reported, needed } => {
                write!(f, "PG {pg} reported last in {reported}, its OSDs changed in {needed}")
            }
            Self::NotClean { count, pg, state, down } => {
                write!(f, "{count} PGs are not active+clean (the first: {pg} {state})")?;
                if !down.is_empty() {
                    write!(f, "; down: {}", names(down))?;
                }
                f.write_str("; see `ceph pg dump_stuck`")
            }
            Self::Peering { pg, state } => write!(f, "PG {pg} is {state}"),
            Self::NotOkToStop { bad_pgs } => write!(f, "`ceph osd ok-to-stop` refuses: {bad_pgs} PGs would stop serving"),
            Self::NotAsked => f.write_str("`ceph osd ok-to-stop` was not asked yet"),
            Self::NoRedundancy { pool } => {
                write!(f, "pool {pool} would be left without a copy to spare: it must be drained first, which this version does not do")
            }
            Self::OtherCopyLacks { pg, state } => write!(f, "PG {pg} lacks another copy too ({state}); see `ceph pg {pg} query`"),
            Self::Full { code } => write!(f, "{code} is raised; see `ceph health detail`"),
            Self::Flag { flag } => {
                // What is set as `pause` is shown as two flags.
                let set_as = if flag.starts_with("pause") { "pause" } else { flag };
                write!(f, "the flag {flag} is set on the whole cluster: `ceph osd unset {set_as}` when its owner is done")
            }
            Self::TooSmall { usable, needed } => {
                write!(f, "the new OSD may use {usable} bytes, the old one's data needs {needed}")
            }
            Self::RoomUnknown => f.write_str("how many bytes it holds is not known; see `ceph osd df`"),
            Self::Upgrading => f.write_str("daemons of several releases run; see `ceph versions`"),
            Self::RookPrepares { job } => write!(f, "Rook prepares OSDs: Job {job}"),
            Self::OperatorRuns { name } => write!(
                f,
                "Rook's operator {name} runs, and this version can't fence it: kubectl -n {} scale deployment {} --replicas=0",
                name.split('/').next().unwrap_or_default(),
                name.split('/').next_back().unwrap_or_default()
            ),
            Self::FencedByOthers { value } => write!(
                f,
                "the CephCluster carries ceph.rook.io/do-not-reconcile={value}, which is not ours: \
                 kubectl label cephcluster --all ceph.rook.io/do-not-reconcile- when its owner is done"
            ),
            Self::Draining { domain } => write!(f, "{domain} is being drained, says Rook"),
            Self::Odd { what } => {
                write!(f, "{what}; see `kubectl get deployments,pods -l app=rook-ceph-osd`")
            }
            Self::NodeNotReady { node } => write!(f, "node {node} is not Ready; see `kubectl describe node {node}`"),
            Self::NodeCordoned { node } => write!(
                f,
                "node {node} is cordoned, an OSD stopped there could not start again: kubectl uncordon {node} when its owner is done"
            ),
            Self::Rolling { osd } => write!(f, "the Deployment of {osd} has not come to rest; see `kubectl get deployment rook-ceph-osd-{}`", osd.0),
            Self::StartedByOthers => f.write_str("somebody started it again after we had stopped it"),
            Self::MonDown => f.write_str(
                "not all mons are in quorum, one more that fails may stop the whole cluster; see `ceph quorum_status`",
            ),
            Self::External => f.write_str("the CephCluster is external: its OSDs are not run here"),
            Self::RemovesOutOsds => f.write_str(
                "removeOSDsIfOutAndSafeToRemove is on: Rook may remove an OSD that is down for the work; set it to false first",
            ),
            Self::NotConfirmed => write!(f, "it is not confirmed: {HOW_TO_CONFIRM}"),
            Self::Paused { since: at } => write!(f, "paused{}: osd-migrate resume", since(*at)),
            Self::Cancelled { since: at } => {
                write!(f, "cancelled{}; to let runs begin again: osd-migrate resume", since(*at))
            }
            Self::OutsideWindow { windows, opens_at } => {
                write!(f, "outside of {} UTC", names(windows))?;
                opens_at.map_or(Ok(()), |at| write!(f, "; it opens at {}", at.format("%Y-%m-%d %H:%MZ")))
            }
            Self::FailureBudget { quarantined } => write!(
                f,
                "too many OSDs failed: {}; mend them and type osd-migrate retry osd.N",
                names(quarantined)
            ),
            Self::After { osd } => write!(f, "one OSD at a time: after {osd}"),
        }
    }
}
