//! Results of `fence`, with the sentences for people.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};

use crate::domain::commands::{REMOVE_FENCE, RUN_AGAIN, scale_operator};
use crate::domain::gate::{Reason, names};
use crate::domain::ledger::Ledger;
use crate::domain::osd::OsdId;

/// Result of `fence`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "fence-")]
pub enum FenceOutcome {
    /// The fence is in force.
    InForce {
        /// when the owner ordered it
        since: DateTime<Utc>,
    },
    /// No operator is running.
    NotNeeded {
        /// Rook's operator, namespace/name, if it was found
        operator: Option<String>,
    },
    /// The fence is set, and did not come into force in time.
    NotInForce {
        /// why it is not in force
        reason: Reason,
    },
    /// The fence cannot be set.
    Refused {
        /// why it cannot be set
        reason: Reason,
    },
    /// A run has scaled Rook's operator to 0, and scales it up again.
    ScaledByRun {
        /// Rook's operator, namespace/name
        name: String,
    },
    /// The fence was removed, or there was none.
    Removed,
    /// The owner ordered no fence; the one that is set is that of a run.
    OfRun {
        /// value of the label
        value: String,
    },
    /// The fence is unchanged: OSDs are in progress.
    InProgress {
        /// OSDs in progress
        osds: BTreeSet<OsdId>,
    },
    /// The fence stays: Rook would change OSDs.
    ChangedByRook {
        /// OSDs that Rook would change
        osds: BTreeSet<OsdId>,
    },
}

impl FenceOutcome {
    /// Returns why the fence can't be set by this ledger, before anything is observed.
    ///
    /// A run completes the OSDs in progress. Its pod may be away for a moment, and must find the Lease.
    pub fn refused_by(ledger: &Ledger) -> Option<Self> {
        let osds: BTreeSet<OsdId> = ledger.in_flight().map(|record| record.osd).collect();
        (!osds.is_empty()).then_some(Self::InProgress { osds })
    }

    /// Returns the code: the anchor of the outcome in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for FenceOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InForce { since } => write!(
                f,
                "the fence is in force, ordered at {}: Rook does not reconcile the CephCluster until its OSDs are as \
                 declared. Edit it now: kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER. Then: osd-migrate -n \
                 NAMESPACE plan, and osd-migrate -n NAMESPACE run --confirm yes-really-migrate-osds. To remove the \
                 fence without an edit: {REMOVE_FENCE}",
                since.format("%Y-%m-%d %H:%M:%SZ")
            ),
            Self::NotNeeded { operator: Some(name) } => write!(
                f,
                "no fence is needed and none is set: Rook's operator {name} is scaled to 0. Edit the CephCluster: kubectl \
                 -n NAMESPACE edit cephcluster CEPHCLUSTER. When its OSDs are as declared, scale the operator up: {}",
                scale_operator(name, 1)
            ),
            Self::NotNeeded { operator: None } => f.write_str(
                "no fence is needed and none is set: Rook has no operator, and nothing updates the CephCluster. Edit it: \
                 kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER",
            ),
            Self::NotInForce { reason } => write!(
                f,
                "the fence is not in force in time; do not edit the CephCluster yet. To wait for it again: osd-migrate -n \
                 NAMESPACE fence. {reason}"
            ),
            Self::Refused { reason } => write!(f, "the fence was not set: {reason}"),
            Self::ScaledByRun { name } => write!(
                f,
                "the fence was not set: a run has scaled Rook's operator {name} to 0, and scales it up again at its end. \
                 Let a run end first: {RUN_AGAIN}"
            ),
            Self::Removed => f.write_str("the CephCluster has no fence of its owner: Rook reconciles it"),
            Self::OfRun { value } => write!(
                f,
                "its owner ordered no fence. The one that is set (ceph.rook.io/do-not-reconcile={value}) is that of a run, \
                 and a run removes it: {RUN_AGAIN}"
            ),
            Self::InProgress { osds } => write!(
                f,
                "the fence is unchanged, because OSDs are in progress: {}. A run completes them: {RUN_AGAIN}",
                names(osds)
            ),
            Self::ChangedByRook { osds } => write!(
                f,
                "the fence stays, because Rook would change OSDs that are not as declared: {}. Migrate them: osd-migrate -n \
                 NAMESPACE run --confirm yes-really-migrate-osds. Or undo the edit: kubectl -n NAMESPACE edit cephcluster \
                 CEPHCLUSTER",
                names(osds)
            ),
        }
    }
}
