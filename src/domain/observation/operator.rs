//! Rook's operator, and its PodDisruptionBudget for OSDs.

use std::collections::BTreeSet;

use crate::domain::osd::OsdId;

/// Rook's operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operator {
    /// `namespace/name` of its Deployment.
    pub name: String,
    /// Image of the operator, for its version.
    pub image: String,
    /// `metadata.uid` of its Deployment. Empty if it has none.
    pub uid: String,
    /// Replicas wanted.
    pub replicas: u32,
    /// Pods that still exist.
    pub pods: u32,
    /// `metadata.generation` of its Deployment. Each change of the spec, by any client, adds one.
    pub generation: i64,
    /// The operator leaves a CephCluster with the label `do-not-reconcile` alone (Rook >= 1.19.2, by the tag
    /// of its image).
    pub honours_fence: bool,
    /// The operator activates an OSD on LVM as the `encryptedDevice` of its node says (Rook >= 1.20).
    pub opens_lvm: bool,
}

/// Rook's PodDisruptionBudget for OSDs.
///
/// A running Rook writes and deletes it depending on the OSDs that it sees down.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OsdPdb {
    /// `spec.maxUnavailable`: OSD pods that may be evicted at a time. (Rook writes a number, 1, never a
    /// percentage.)
    pub max_unavailable: u32,
    /// OSDs that the PodDisruptionBudget does not count (`spec.selector`, `osd NotIn ...`). Rook leaves out
    /// OSDs whose pod is not ready while all PGs are clean (1.20.6).
    pub left_out: BTreeSet<OsdId>,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`. Each change of the spec, by any client, adds one.
    pub generation: i64,
}

impl Operator {
    /// Returns whether the operator works or is about to work.
    ///
    /// With no wanted replicas and no remaining pod it does not.
    pub fn runs(&self) -> bool {
        self.replicas > 0 || self.pods > 0
    }
}
