//! Acts on Kubernetes objects, except the Jobs of node agents.

use serde::Serialize;

use super::DataPrecondition;
use crate::domain::inspection::RecordId;
use crate::domain::ledger::RecordedPvc;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{CrushItem, Layout, NodeName, OsdFsid, OsdId, Weight};
use crate::domain::policy::Accepted;
use crate::domain::storage::Toleration;

/// One effect on a Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum KubeAct {
    /// Copies the Deployment as found to ConfigMap `osd-migrate-osd-<id>`, so that a deleted Deployment can
    /// be recreated.
    BackUp {
        /// The OSD.
        osd: OsdId,
        /// The record that the backup is for.
        record: RecordId,
        /// uid of the expected Deployment.
        deployment: String,
        /// `metadata.generation` of the expected Deployment.
        generation: i64,
    },
    /// Sets the label `ceph.rook.io/do-not-reconcile` on the CephCluster, and the annotation that names the
    /// resourceVersion on which the label was set. Does so only if there is no label and the record is still
    /// open: a backup of its Deployment exists, or its Deployment is stopped for the record.
    Fence {
        /// The OSD that needs it, and its record. None if the owner ordered the fence.
        record: Option<(OsdId, RecordId)>,
        /// Value of the label.
        value: String,
    },
    /// Removes that label, if it has the value of osd-migrate.
    Unfence {
        /// The expected value.
        value: String,
    },
    /// Sets the replicas of Rook's operator (subresource `scale`), if the spec of its Deployment is unchanged
    /// since it was observed.
    ScaleOperator {
        /// namespace/name of the operator's Deployment
        name: String,
        /// expected uid
        uid: String,
        /// expected `metadata.generation`
        generation: i64,
        /// wanted replicas
        replicas: u32,
    },
    /// Sets `maxUnavailable` of the OSDs' PodDisruptionBudget, if its spec is unchanged since it was
    /// observed.
    LimitDrains {
        /// expected uid
        uid: String,
        /// expected `metadata.generation`
        generation: i64,
        /// OSD pods that may be evicted at a time
        max_unavailable: u32,
    },
    /// Creates osd-migrate's own PodDisruptionBudget, which allows no OSD pod to be evicted. An existing one
    /// is success.
    CreatePdb {
        /// The OSD that is stopped, or about to be.
        osd: OsdId,
        /// The record of that OSD, which must be open.
        record: RecordId,
    },
    /// Deletes that PodDisruptionBudget. An absent one is success.
    DeletePdb {
        /// expected uid
        uid: String,
    },
    /// One PUT that sets replicas 0 and the annotation `osd-migrate.io/stopped=<record>`. Right before the
    /// PUT, `ok-to-stop` is asked, and whether the record is still open.
    #[strum(serialize = "stop-osd")]
    Stop {
        /// The OSD.
        osd: OsdId,
        /// The fsid that must be in its slot.
        fsid: OsdFsid,
        /// The record that the OSD is stopped for.
        record: RecordId,
        /// uid of the expected Deployment.
        deployment: String,
        /// `metadata.generation` of the expected Deployment.
        generation: i64,
        /// States of PGs, in addition to active+clean, that the owner accepts.
        accepted: Accepted,
        /// The OSD was emptied: no PG may need it.
        emptied: bool,
        /// Whether the OSD must be up; an OSD that is dead must be down.
        up: bool,
    },
    /// One PUT that reverts Stop: replicas 1, annotation removed. If the Deployment was deleted externally,
    /// it is recreated from the backup.
    Restart {
        /// The OSD.
        osd: OsdId,
        /// The record whose annotation is expected.
        record: RecordId,
    },
    /// Deletes the Deployment of the old OSD, which is destroyed, so that Rook creates a new one. Does so
    /// only while the Deployment is stopped for the record, is unchanged since it was observed, and has a
    /// backup.
    DropDeployment {
        /// The OSD.
        osd: OsdId,
        /// The record that the Deployment must be stopped for.
        record: RecordId,
        /// uid of the expected Deployment.
        deployment: String,
        /// `metadata.generation` of the expected Deployment.
        generation: i64,
    },
    /// Deletes the request to remove an OSD, if it names this fsid. An absent one is success.
    DropRequest {
        /// The OSD.
        osd: OsdId,
        /// The fsid in the request.
        fsid: OsdFsid,
    },
    /// Restores the Deployment in Rook's present shape, starting `fsid`.
    Deploy(Deploy),
    /// Creates the Deployment of a finished OSD of this cluster that nothing starts. Does so only if there is
    /// no Deployment, and the slot holds `fsid` and is down.
    Adopt(Deploy),
    /// Adds tolerations to an OSD's Deployment, which restarts its pod. If the OSD is up, `ok-to-stop` is
    /// asked right before.
    Tolerate {
        /// The OSD.
        osd: OsdId,
        /// uid of the expected Deployment.
        deployment: String,
        /// `metadata.generation` of the expected Deployment.
        generation: i64,
        /// The tolerations to add.
        add: Vec<Toleration>,
        /// The data precondition, if the OSD is up.
        precondition: Option<DataPrecondition>,
    },
    /// Deletes the node Jobs, reports, Secrets and the Deployment backup of a record.
    CleanUp {
        /// The OSD.
        osd: OsdId,
        /// The record.
        record: RecordId,
    },
}

/// Values that the new Deployment is rendered from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Deploy {
    /// The OSD.
    pub osd: OsdId,
    /// The record. The Deployment must be absent or have the annotation `osd-migrate.io/stopped` of this
    /// record.
    pub record: RecordId,
    /// The fsid that the Deployment starts.
    pub fsid: OsdFsid,
    /// The node of the OSD.
    pub node: NodeName,
    /// Device path, a stable one if available: `/dev/disk/by-id/...`. Activation finds the device by its
    /// label if the path leads to another device.
    pub block_path: String,
    /// Object store, for label `osd-store`.
    pub store: String,
    /// CRUSH location, for `--crush-location` and the topology labels.
    pub crush: CrushItem,
    /// Layout of the OSD on its device.
    pub layout: Layout,
    /// Path of the db device, if it is separate: `/dev/VG/LV`.
    pub db_path: Option<String>,
    /// Path of the wal device, if it is separate.
    pub wal_path: Option<String>,
    /// Initial CRUSH weight (`--osd-crush-initial-weight`), if the owner declares one.
    pub initial_weight: Option<Weight>,
    /// Value of Rook's label `device-type` for the disk: `hdd`, `ssd` or `nvme`. None for an OSD on volumes.
    pub device_type: Option<String>,
    /// The store is a file of the node, for tests only. `block_path` names the file.
    pub on_file: bool,
    /// Set if the OSD has no Deployment yet, or one that starts an OSD that is gone: uid and generation of
    /// that Deployment, if it exists. None if an existing OSD is recreated: its own Deployment is expected to
    /// have the annotation.
    pub fresh: Option<Fresh>,
    /// PVCs that the OSD is on, as recorded. Its Deployment keeps everything else of the one that was backed
    /// up, or of the Deployment of the other OSD that it is made from.
    pub pvcs: Option<PerPvc<RecordedPvc>>,
}

impl Deploy {
    /// Returns the names of the PVCs that the OSD is on.
    pub fn pvc_names(&self) -> Option<PerPvc<String>> {
        self.pvcs.as_ref().map(|pvcs| pvcs.map(|pvc| pvc.name.clone()))
    }
}

/// The expected object in the place of a new OSD's Deployment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Fresh {
    /// (uid, `metadata.generation`) of the Deployment that is replaced. None if there must be no Deployment.
    pub replaces: Option<(String, i64)>,
    /// Deployment of another OSD of the device set, from which the new one is made. None if the OSD is on a
    /// disk of its host: its Deployment is rendered.
    pub source: Option<SourceDeployment>,
}

/// Deployment of an OSD on PVCs, from which that of a new OSD of the same device set is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct SourceDeployment {
    /// OSD of it.
    pub osd: OsdId,
    /// uid of the expected Deployment.
    pub deployment: String,
}
