//! Deployments and pods of OSDs that do not belong to one OSD each.

use std::collections::BTreeSet;

use crate::domain::osd::OsdId;

/// Deployments or pods that do not belong to one OSD each.
///
/// The maintenance mode of Rook's kubectl plugin is one: a second Deployment of the same OSD,
/// `rook-ceph-osd-ID-maintenance` (rook/kubectl-rook-ceph, `pkg/maintenance/start_maintenance.go`). It was
/// called debug mode before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ambiguity {
    /// OSDs that it concerns; empty if they are not known.
    pub osds: BTreeSet<OsdId>,
    /// OSD of which two Deployments have the label: no act finds its only one.
    pub twice: Option<OsdId>,
    /// Sentence for people.
    pub what: String,
}

impl Ambiguity {
    /// Creates an ambiguity of these OSDs.
    pub fn of(osds: impl IntoIterator<Item = OsdId>, what: String) -> Self {
        Self { osds: osds.into_iter().collect(), twice: None, what }
    }

    /// Creates an ambiguity of two Deployments that have the label of an OSD.
    ///
    /// `is_copy`: both run the same OSD, so that neither label is wrong.
    pub fn of_two_deployments(osd: OsdId, is_copy: bool, what: String) -> Self {
        Self { twice: Some(osd), ..Self::of(is_copy.then_some(osd), what) }
    }

    /// Returns whether it may concern an OSD.
    pub fn concerns(&self, osd: OsdId) -> bool {
        self.osds.is_empty() || self.osds.contains(&osd)
    }
}
