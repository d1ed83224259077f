//! One look at the world: plain data, complete for one decision, comparable and ordered.

mod ceph;
mod kubernetes;

pub use ceph::{Ceph, Metadata, OkToStop, Pg, Pool, Releases, Slot, SlotState};
pub use kubernetes::{
    Admission, Control, ControlKind, Daemon, Inventory, JobState, KeyOwner, Kube, LocalVolume, Node, NodeJob,
    Operator, OsdPdb, Pod,
};

use chrono::{DateTime, Utc};

/// Everything a turn decides on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Observation {
    /// When it was made, by the runner's clock.
    pub at: DateTime<Utc>,
    /// Ceph's side.
    pub ceph: Ceph,
    /// Kubernetes' side.
    pub kube: Kube,
}
