//! Acts on objects of Kubernetes, Jobs of agents apart.

use serde::Serialize;

use super::DataPrecondition;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{CrushItem, Layout, NodeName, OsdFsid, OsdId, Weight};
use crate::domain::policy::Accepted;
use crate::domain::storage::Toleration;

/// One effect on an object of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubeAct {
    /// Copies the Deployment as found to ConfigMap `osd-migrate-osd-<id>`, so that a deleted one can be made again.
    BackUp {
        /// The OSD.
        osd: OsdId,
        /// For which record.
        record: RecordId,
        /// uid of the Deployment expected.
        deployment: String,
        /// `metadata.generation` of it expected.
        generation: i64,
    },
    /// Puts the label `ceph.rook.io/do-not-reconcile` on the CephCluster, and with it the annotation that names the version it was
    /// put on; if there is no label, and the record is still open: its Deployment is kept, or stopped, for it.
    Fence {
        /// The OSD that needs it.
        osd: OsdId,
        /// For which record.
        record: RecordId,
        /// Value of the label.
        value: String,
    },
    /// Takes that label off, if it has our value.
    Unfence {
        /// Value expected.
        value: String,
    },
    /// Sets the replicas of Rook's operator (subresource `scale`), if nobody changed what its Deployment wants since it was looked at.
    ScaleOperator {
        /// namespace/name of its Deployment
        name: String,
        /// uid expected
        uid: String,
        /// `metadata.generation` expected
        generation: i64,
        /// replicas wanted
        replicas: u32,
    },
    /// Sets `maxUnavailable` of the OSDs' PodDisruptionBudget, if nobody changed what it wants since it was looked at.
    LimitDrains {
        /// uid expected
        uid: String,
        /// `metadata.generation` expected
        generation: i64,
        /// OSD pods that may be evicted at a time
        max_unavailable: u32,
    },
    /// Creates osd-migrate's own PodDisruptionBudget, which lets no OSD pod be evicted. An existing one is success.
    CreatePdb {
        /// The OSD that is stopped, or about to be.
        osd: OsdId,
        /// Its record, which must be open.
        record: RecordId,
    },
    /// Deletes that PodDisruptionBudget. An absent one is success.
    DeletePdb {
        /// uid expected
        uid: String,
    },
    /// One PUT: replicas 0 and the annotation `osd-migrate.io/stopped=<record>`; just before it `ok-to-stop` is asked, and whether the
    /// record is still open.
    Stop {
        /// The OSD.
        osd: OsdId,
        /// The fsid that must be up in its slot.
        fsid: OsdFsid,
        /// For which record.
        record: RecordId,
        /// uid of the Deployment expected.
        deployment: String,
        /// `metadata.generation` of it expected.
        generation: i64,
        /// States of PGs besides active+clean that the owner accepts.
        accepted: Accepted,
    },
    /// One PUT that undoes Stop: replicas 1, annotation gone. Created from the kept copy where somebody deleted it.
    Restart {
        /// The OSD.
        osd: OsdId,
        /// Our record, whose annotation is expected.
        record: RecordId,
    },
    /// Deletes the Deployment of the old OSD, which is gone, so that Rook makes one: only while it is stopped for the record, nobody
    /// wrote it since it was looked at, and its copy is kept.
    DropDeployment {
        /// The OSD.
        osd: OsdId,
        /// For which record.
        record: RecordId,
        /// uid of the Deployment expected.
        deployment: String,
        /// `metadata.generation` of it expected.
        generation: i64,
    },
    /// Brings the Deployment back in Rook's present shape, starting `fsid`.
    Deploy(Deploy),
    /// Creates the Deployment of a finished OSD of this cluster that nothing starts: only where there is none, its slot holds
    /// `fsid` and is down.
    Adopt(Deploy),
    /// Adds tolerations to an OSD's Deployment, which restarts its pod: `ok-to-stop` is asked just before where it is up.
    Tolerate {
        /// The OSD.
        osd: OsdId,
        /// uid of the Deployment expected.
        deployment: String,
        /// `metadata.generation` of it expected.
        generation: i64,
        /// What to add.
        add: Vec<Toleration>,
        /// What must hold of the data, where it is up.
        precondition: Option<DataPrecondition>,
    },
    /// Deletes the node Jobs, reports, Secrets and the kept Deployment of a record.
    CleanUp {
        /// The OSD.
        osd: OsdId,
        /// The record.
        record: RecordId,
    },
}

/// What the new Deployment is rendered from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Deploy {
    /// The OSD.
    pub osd: OsdId,
    /// For which record; the annotation `osd-migrate.io/stopped` of it, or no Deployment, is expected.
    pub record: RecordId,
    /// The fsid it is to start.
    pub fsid: OsdFsid,
    /// Where.
    pub node: NodeName,
    /// Device path, a stable one if there is one: `/dev/disk/by-id/...`. Activation finds the device by its label if it leads elsewhere.
    pub block_path: String,
    /// Object store, for label `osd-store`.
    pub store: String,
    /// CRUSH location, for `--crush-location` and the topology labels.
    pub crush: CrushItem,
    /// How it lies on its device.
    pub layout: Layout,
    /// Its db device, where it is another: `/dev/VG/LV`.
    pub db_path: Option<String>,
    /// Its wal device, where it is another.
    pub wal_path: Option<String>,
    /// CRUSH weight to begin with (`--osd-crush-initial-weight`), where the owner declares one.
    pub initial_weight: Option<Weight>,
    /// What Rook's label `device-type` says of its disk: `hdd`, `ssd` or `nvme`; none for an OSD on volumes.
    pub device_type: Option<String>,
    /// Its store is a file of the node, for tests only: `block_path` names it.
    pub on_file: bool,
    /// It has no Deployment before this one, or one that starts what is gone: uid and generation of that one, where it
    /// is there. None where an OSD is redone: its own is expected to carry our annotation.
    pub fresh: Option<Fresh>,
}

/// What is expected in the place of a new OSD's Deployment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Fresh {
    /// (uid, `metadata.generation`) of the Deployment that is replaced; none where there must be none.
    pub replaces: Option<(String, i64)>,
}
