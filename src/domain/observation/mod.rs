//! One observation of the cluster: plain data, complete for one decision, comparable and ordered.

mod age;
mod ambiguity;
mod answers;
mod ceph;
mod failed;
mod kubernetes;
mod listed;
mod operator;
mod partial;
mod pvc;

pub use age::Age;
pub use ambiguity::Ambiguity;
pub use ceph::{
    Autoscale, BackfillFull, Ceph, Emptiable, Metadata, OkToStop, Pg, Pool, Releases, Slot, SlotState,
    last_change,
};
pub use failed::FailedActs;
pub use kubernetes::{
    Admission, Control, ControlKind, Daemon, Inventory, JobState, KeyOwner, Kube, LocalVolume, Node, NodeJob,
    Pod, RookPrepare, Runner,
};
pub use listed::{Listed, on_one_pvc};
pub use operator::{Operator, OsdPdb};
pub use pvc::{BoundVolume, OnPvcs, Pvc, Rotation};

use chrono::{DateTime, Utc};

/// All input of an iteration's decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Observation {
    /// Time of the observation, by the runner's clock.
    pub at: DateTime<Utc>,
    /// State of Ceph.
    pub ceph: Ceph,
    /// State of Kubernetes.
    pub kube: Kube,
    /// OSDs whose last acts failed.
    pub failed: FailedActs,
}
