//! Answers to the questions that follow from an observation.

use std::collections::BTreeMap;

use super::{Ceph, Kube, Observation};

impl Observation {
    /// Returns the observation without the answers.
    #[must_use]
    pub fn unanswered(self) -> Self {
        let Self { ceph, kube, .. } = self;
        Self { ceph: ceph.unanswered(), kube: Kube { admission: BTreeMap::new(), ..kube }, ..self }
    }
}

impl Ceph {
    /// Returns what was observed of Ceph without the answers.
    #[must_use]
    pub(super) fn unanswered(self) -> Self {
        Self {
            ok_to_stop: BTreeMap::new(),
            auth: BTreeMap::new(),
            bootstrap: None,
            recovery: None,
            commit_latency: None,
            safe_to_destroy: BTreeMap::new(),
            emptiable: BTreeMap::new(),
            ..self
        }
    }
}
