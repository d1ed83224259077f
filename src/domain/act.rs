//! The acts: each names what it expects to find. An adapter that finds something else does nothing and says so (P6).

use std::collections::BTreeSet;

use serde::Serialize;

use super::inspection::{NodeRequest, RecordId};
use super::inventory::InventoryRequest;
use super::osd::{CrushItem, Layout, NodeName, OsdFsid, OsdId, PgId, Upmap, Weight};
use super::policy::Accepted;
use super::storage::Toleration;

/// One effect on the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Keep the Deployment as found in ConfigMap `osd-migrate-osd-<id>`, so that a deleted one can be made again.
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
    /// Create the node Job of a saved attempt; one that is there already is success.
    Agent {
        /// What its agent is told.
        request: NodeRequest,
        /// Image the agent runs in.
        image: String,
        /// The host folder `dataDirHostPath`.
        data_dir: String,
        /// What must hold, where the agent is to wipe the old data.
        precondition: Option<DataPrecondition>,
    },
    /// Delete a node Job whose container did not start.
    DropAgent {
        /// Name of the Job.
        job: String,
        /// uid expected.
        uid: String,
    },
    /// Deletes the ConfigMap that owns the Secret with the key of a node Job; the Secret goes with it.
    DeleteKey {
        /// The OSD.
        osd: OsdId,
        /// Name of the node Job.
        job: String,
        /// uid of the ConfigMap expected.
        uid: String,
    },
    /// Put the label `ceph.rook.io/do-not-reconcile` on the CephCluster, and with it the annotation that names the version it was
    /// put on; if there is no label, and the record is still open: its Deployment is kept, or stopped, for it.
    Fence {
        /// The OSD that needs it.
        osd: OsdId,
        /// For which record.
        record: RecordId,
        /// Value of the label.
        value: String,
    },
    /// Take that label off, if it has our value.
    Unfence {
        /// Value expected.
        value: String,
    },
    /// Replicas of Rook's operator (subresource `scale`), if nobody changed what its Deployment wants since it was looked at.
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
    /// `maxUnavailable` of the OSDs' PodDisruptionBudget, if nobody changed what it wants since it was looked at.
    LimitDrains {
        /// uid expected
        uid: String,
        /// `metadata.generation` expected
        generation: i64,
        /// OSD pods that may be evicted at a time
        max_unavailable: u32,
    },
    /// Make a PodDisruptionBudget of our own that lets no OSD's pod be evicted; one that is there is success.
    CreatePdb {
        /// The OSD that is stopped, or about to be.
        osd: OsdId,
        /// Its record, which must be open.
        record: RecordId,
    },
    /// Delete that budget; gone already is success.
    DeletePdb {
        /// uid expected
        uid: String,
    },
    /// Make client.bootstrap-osd with its usual capability, or remove it; nothing where that is so already.
    Bootstrap {
        /// Whether it is to be there.
        there: bool,
    },
    /// Set per-OSD flags, if the slot holds `fsid` and the record is still open.
    SetOsdFlags {
        /// The OSD.
        osd: OsdId,
        /// The fsid expected in the slot; none in a destroyed one.
        fsid: Option<OsdFsid>,
        /// Whether it is expected to be up.
        up: bool,
        /// For which record.
        record: RecordId,
        /// flag `noout` of this OSD (`osd set-group`)
        noout: bool,
        /// flag `noin` of this OSD
        noin: bool,
    },
    /// Remove per-OSD flags.
    UnsetOsdFlags {
        /// The OSD.
        osd: OsdId,
        /// flag `noout` of this OSD (`osd unset-group`)
        noout: bool,
        /// flag `noin` of this OSD
        noin: bool,
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
    /// `osd reweight` of an OSD that the mons marked out while its `noout` was lifted, and that is up again.
    TakeIn {
        /// The OSD.
        osd: OsdId,
        /// The fsid that must be up in its slot.
        fsid: OsdFsid,
        /// Its in-weight as recorded.
        reweight: Weight,
    },
    /// One PUT that undoes Stop: replicas 1, annotation gone. Created from the kept copy where somebody deleted it.
    Restart {
        /// The OSD.
        osd: OsdId,
        /// Our record, whose annotation is expected.
        record: RecordId,
    },
    /// `osd destroy <id>` (`destroy-actual`, which the mgr would send) after the map was read again: the slot must be down and hold `fsid`. Never `osd down`.
    Destroy {
        /// The OSD.
        osd: OsdId,
        /// The fsid expected in the slot.
        fsid: OsdFsid,
        /// For which record the Deployment must be stopped, its pods gone; where it is the old OSD that is given up.
        stopped_for: Option<RecordId>,
        /// What must hold of the data then.
        precondition: Option<DataPrecondition>,
    },
    /// `osd new <claim> <id>` on an absent id: takes the id back after a purge.
    Reregister {
        /// The OSD.
        osd: OsdId,
        /// One of our claims.
        claim: OsdFsid,
    },
    /// `osd purge-new <stray>`: an id that ceph-volume made for our disk instead of ours; it must be `new`, never up, with this fsid.
    PurgeMisplaced {
        /// The stray id.
        misplaced: OsdId,
        /// Its fsid: one of our claims.
        fsid: OsdFsid,
    },
    /// Put the CRUSH item back as recorded, where it is gone: place, weight, class, reweight, primary affinity. Where it is there
    /// with its former weight, give it the new one.
    RestoreCrush {
        /// The OSD.
        osd: OsdId,
        /// As recorded.
        item: CrushItem,
        /// Its weight before, where another one is recorded.
        former: Option<Weight>,
        /// As recorded.
        reweight: Weight,
        /// As recorded.
        primary_affinity: Weight,
    },
    /// `osd pg-upmap-items` for upmaps that a purge took, where the slot is up with `fsid`: those of PGs that have none by now.
    RestoreUpmaps {
        /// The OSD.
        osd: OsdId,
        /// The fsid expected in the slot.
        fsid: OsdFsid,
        /// As recorded.
        upmaps: Vec<Upmap>,
    },
    /// Delete the Deployment of the old OSD, which is gone, so that Rook makes one: only while it is stopped for the record, nobody
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
    /// Bring the Deployment back in Rook's present shape, starting `fsid`.
    Deploy(Deploy),
    /// Make the ConfigMap and the Job of a look at a node's disks; what is there already is success.
    Inventory {
        /// What its agent is told.
        request: InventoryRequest,
        /// Image the agent runs in.
        image: String,
        /// The host folder `dataDirHostPath`.
        data_dir: String,
    },
    /// Delete a look that no node waits for any more; its Job goes with it.
    DeleteInventoryJob {
        /// Name of its ConfigMap and Job.
        name: String,
        /// uid of the ConfigMap expected.
        uid: String,
    },
    /// Make the Deployment of a finished OSD of this cluster that nothing starts: only where there is none, its slot holds
    /// `fsid` and is down.
    Adopt(Deploy),
    /// Add tolerations to an OSD's Deployment, which restarts its pod: `ok-to-stop` is asked just before where it is up.
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
    /// Delete the node Jobs, reports, Secrets and the kept Deployment of a record.
    CleanUp {
        /// The OSD.
        osd: OsdId,
        /// The record.
        record: RecordId,
    },
}

/// What must hold of the data right before an act, asked on a view that is younger than the decision: a runner may have been
/// frozen in between (P2, P6).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataPrecondition {
    /// Every PG allows that the OSD is stopped.
    CleanFor {
        /// The OSD.
        osd: OsdId,
        /// States besides active+clean that the owner accepts.
        accepted: Accepted,
    },
    /// Every PG is clean, and has reported since its OSDs last changed.
    AllClean,
    /// Every PG that is not clean is one of these, which the stopped OSD served, and lacks its copy alone.
    OnlyOursMissing {
        /// The stopped OSD.
        osd: OsdId,
        /// PGs as saved at Stop.
        pgs: BTreeSet<PgId>,
    },
    /// The new OSD is up and has its data; what the old one held is clean, wherever it is now.
    Backfilled {
        /// The new OSD.
        osd: OsdId,
        /// Its fsid.
        fsid: OsdFsid,
        /// PGs as saved at Stop.
        pgs: BTreeSet<PgId>,
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
