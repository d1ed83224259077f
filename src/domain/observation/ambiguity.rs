//! Deployments and pods of OSDs that do not belong to one OSD each.

use std::collections::BTreeSet;

use crate::domain::osd::OsdId;

/// Deployments or pods that do not belong to one OSD each.
///
/// The debug mode of Rook's kubectl plugin is one: a second Deployment of the same OSD,
/// `rook-ceph-osd-ID-debug` (rook/kubectl-rook-ceph, `pkg/debug/start_debug.go`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ambiguity {
    /// OSDs that it concerns; empty if they are not known.
    pub osds: BTreeSet<OsdId>,
    /// Sentence for people.
    pub what: String,
}

impl Ambiguity {
    /// Creates an ambiguity of these OSDs.
    pub fn of(osds: impl IntoIterator<Item = OsdId>, what: String) -> Self {
        Self { osds: osds.into_iter().collect(), what }
    }

    /// Returns whether it may concern an OSD.
    pub fn concerns(&self, osd: OsdId) -> bool {
        self.osds.is_empty() || self.osds.contains(&osd)
    }
}
