//! The last observation, which partial observations take the rest from.

use crate::domain::observation::{Age, Ceph, Kube, Observation};
use crate::domain::shared::Shared;

/// Last observation.
pub(super) struct Kept {
    /// Without PGs, which the session keeps and changes: they would be copied.
    pub(super) ceph: Ceph,
    pub(super) kube: Kube,
    /// Age of the parts that a partial observation does not read.
    pub(super) age: Age,
}

impl Kept {
    /// Keeps an observation.
    pub(super) fn of(seen: &Observation, age: Age) -> Self {
        let ceph = Ceph { pgs: Shared::default(), ..seen.ceph.clone() };
        Self { ceph, kube: seen.kube.clone(), age }
    }
}
