//! Acts that are one command to Ceph.

use serde::Serialize;

use super::DataPrecondition;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{CrushItem, OsdFsid, OsdId, Upmap, Weight};

/// One command to Ceph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CephAct {
    /// Creates client.bootstrap-osd with its usual capability, or removes it. Does nothing if it is so already.
    Bootstrap {
        /// Whether it is to be there.
        there: bool,
    },
    /// Sets per-OSD flags, if the slot holds `fsid` and the record is still open.
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
    /// Removes per-OSD flags.
    UnsetOsdFlags {
        /// The OSD.
        osd: OsdId,
        /// flag `noout` of this OSD (`osd unset-group`)
        noout: bool,
        /// flag `noin` of this OSD
        noin: bool,
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
    /// Registers the id again after a purge: `osd new <fsid> <id>` on an absent id.
    Reregister {
        /// The OSD.
        osd: OsdId,
        /// An fsid that an agent of this record issued.
        claim: OsdFsid,
    },
    /// Purges an id that ceph-volume created by mistake (`osd purge-new`): it must be `new`, never up, with this fsid.
    PurgeMisplaced {
        /// The misplaced id.
        misplaced: OsdId,
        /// Its fsid: one that an agent of this record issued.
        fsid: OsdFsid,
    },
    /// Puts the CRUSH item back as recorded, where it is gone: place, weight, class, reweight, primary affinity. Where it is there
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
}
