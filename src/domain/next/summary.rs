//! Result of a finished run.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::FenceOutcome;
use crate::domain::osd::{NodeName, OsdId};

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
    /// Sentences about OSDs, hosts and classes that were selected and do not exist.
    pub unmatched: BTreeSet<String>,
    /// OSDs that the run skipped for a reason of their own that may disappear: down, or on a node that is
    /// cordoned or not Ready.
    pub skipped: Vec<(OsdId, String)>,
    /// Nodes whose disks would be inspected for new OSDs if the migration were confirmed.
    pub unconfirmed_nodes: BTreeSet<NodeName>,
    /// PVCs of device sets that would become OSDs if the migration were confirmed.
    pub unconfirmed_pvcs: BTreeSet<String>,
    /// Sentences about places of device sets that get no OSD.
    pub places: Vec<String>,
    /// PVCs of device sets that are left to Rook, whose running operator turns them into OSDs itself.
    pub pvcs_left_to_rook: BTreeSet<String>,
    /// Obstacles to new OSDs: (node, sentence).
    pub problems: Vec<(String, String)>,
    /// Nodes whose available disks are left to Rook, whose running operator turns them into OSDs itself.
    pub left_to_rook: BTreeSet<NodeName>,
    /// OSDs that Rook would start to migrate itself if it were released: the fence stays, or its operator
    /// stays at 0.
    pub withheld_from_rook: BTreeSet<OsdId>,
    /// OSDs whose Deployments Rook would give another shape than their devices have: the fence stays, or its
    /// operator stays at 0.
    pub reshaped_by_rook: BTreeSet<OsdId>,
    /// When the owner ordered the fence that is still set (`osd-migrate fence`).
    pub fenced_since: Option<DateTime<Utc>>,
    /// Result of `fence`, which is no run.
    pub fence: Option<FenceOutcome>,
    /// OSDs quarantined after their stop that still keep Rook away: by the fence, or with its operator at 0.
    pub half_way: BTreeSet<OsdId>,
    /// `namespace/name` of Rook's operator, if it is at 0 in the end: it was scaled externally, and this is
    /// no longer needed.
    pub operator_at_0: Option<String>,
    /// OSDs that Rook would start to migrate itself once its operator is scaled up, because the CephCluster
    /// still confirms it.
    pub left_to_rook_at_0: BTreeSet<OsdId>,
    /// OSDs that the run made unencrypted, and whose CronJobs of the key rotation Rook leaves.
    pub rotations_left: BTreeSet<OsdId>,
    /// Names of the temporary changes that stay in place (`temporary::ALL`).
    pub changes: BTreeSet<&'static str>,
    /// OSDs among the refused ones whose removal is requested.
    pub unremoved: BTreeSet<OsdId>,
    /// Number of OSDs that are down because of their migration: quarantined ones.
    pub down: usize,
    /// Nodes whose disks repeatedly could not be inspected.
    pub unseen_nodes: BTreeSet<NodeName>,
}

impl Summary {
    /// Returns whether the missing confirmation is the only reason why nothing was done.
    ///
    /// Something would be done with it, no OSD is quarantined, no removal is left, and all OSDs that are
    /// selected exist.
    pub fn needs_only_confirmation(&self) -> bool {
        let is_something = !self.unconfirmed.is_empty() || self.leaves_unconfirmed_new();
        let is_nothing_else =
            self.quarantined.is_empty() && self.skipped.is_empty() && self.unmatched.is_empty();
        is_nothing_else && self.unremoved.is_empty() && is_something
    }

    /// Returns whether new OSDs would be created if they were confirmed.
    pub fn leaves_unconfirmed_new(&self) -> bool {
        !(self.unconfirmed_nodes.is_empty() && self.unconfirmed_pvcs.is_empty())
    }
}
