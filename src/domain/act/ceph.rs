//! Acts that are one command to Ceph.

use std::collections::BTreeSet;

use serde::Serialize;

use super::DataPrecondition;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{CrushItem, Epoch, OsdFsid, OsdId, Upmap, Weight};
use crate::domain::policy::Accepted;
use crate::domain::recovery::RecoveryOptions;
use crate::domain::scrub::ScrubFlags;

/// One command to Ceph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CephAct {
    /// Creates client.bootstrap-osd with its usual capability, or deletes it. Does nothing if the key is
    /// already in the wanted state.
    Bootstrap {
        /// Whether the key is to exist.
        there: bool,
    },
    /// `osd set` of `noscrub` and `nodeep-scrub`, if the ledger was not saved since.
    SetNoScrub {
        /// The flags.
        flags: ScrubFlags,
    },
    /// `osd unset` of `noscrub` and `nodeep-scrub`, if the ledger was not saved since.
    UnsetNoScrub {
        /// The flags.
        flags: ScrubFlags,
    },
    /// `config set` of options about recovery that have no value, if the ledger was not saved since.
    SetFastRecovery {
        /// The options, with their values.
        options: RecoveryOptions,
    },
    /// `config rm` of options about recovery that still have these values, if the ledger was not saved since.
    UnsetFastRecovery {
        /// The options, with their values.
        options: RecoveryOptions,
    },
    /// Sets per-OSD flags, if the slot holds `fsid` and the record is still open.
    SetOsdFlags {
        /// The OSD.
        osd: OsdId,
        /// The fsid expected in the slot; none in a destroyed one.
        fsid: Option<OsdFsid>,
        /// Whether the OSD is expected to be up.
        up: bool,
        /// The record that the flags are for.
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
    /// `osd reweight` of an OSD that is up again, and that the mons marked out while its `noout` was lifted,
    /// or that was emptied.
    TakeIn {
        /// The OSD.
        osd: OsdId,
        /// The fsid that must be up in its slot.
        fsid: OsdFsid,
        /// The in-weight as recorded.
        reweight: Weight,
    },
    /// `osd out`: the data of an OSD that serves moves to other OSDs. The slot must be up and in with `fsid`,
    /// and the record open. The PGs must allow it, and the forecast too, both asked again right before.
    MarkOut {
        /// The OSD.
        osd: OsdId,
        /// The fsid that must be up in its slot.
        fsid: OsdFsid,
        /// Epoch in which it came up: it must not have restarted since it was observed.
        up_from: Epoch,
        /// The record that the OSD is emptied for.
        record: RecordId,
        /// States of PGs, in addition to active+clean, that the owner accepts.
        accepted: Accepted,
    },
    /// `osd crush reweight <osd> 0`: the data of an OSD that is removed moves to other OSDs while it serves.
    /// The slot must be up with `fsid` since that epoch, with that CRUSH weight, and the record open. The PGs
    /// must allow it, and the forecast too, both asked again right before.
    DropWeight {
        /// The OSD.
        osd: OsdId,
        /// The fsid that must be up in its slot.
        fsid: OsdFsid,
        /// Epoch in which it came up: it must not have restarted since it was observed.
        up_from: Epoch,
        /// The record that removes the OSD.
        record: RecordId,
        /// The CRUSH weight as recorded.
        weight: Weight,
        /// The OSD, and those that leave with it: the forecast is about all of them.
        together: BTreeSet<OsdId>,
        /// States of PGs, in addition to active+clean, that the owner accepts.
        accepted: Accepted,
    },
    /// `osd crush reweight` of an OSD that is not removed after all. It must be up with `fsid`, and have
    /// CRUSH weight 0.
    RestoreWeight {
        /// The OSD.
        osd: OsdId,
        /// The fsid that must be up in its slot.
        fsid: OsdFsid,
        /// The CRUSH weight as recorded.
        weight: Weight,
    },
    /// `osd purge <id>` (`purge-actual`) of an OSD that is removed: its slot must be destroyed and down, and
    /// the record open.
    Purge {
        /// The OSD.
        osd: OsdId,
        /// The record that removes the OSD.
        record: RecordId,
    },
    /// `osd crush rm <host>`: the CRUSH host of a node whose last OSD was removed. It must have no items and
    /// be named by no rule, and the record must be open.
    RemoveHost {
        /// The OSD that was removed last.
        osd: OsdId,
        /// The record that removed the OSD.
        record: RecordId,
        /// Name of the CRUSH host.
        host: String,
    },
    /// `osd destroy <id>` (`destroy-actual`, which the mgr would send), after the map was read again. The
    /// slot must be down and hold `fsid`. Never `osd down`.
    Destroy {
        /// The OSD.
        osd: OsdId,
        /// The fsid expected in the slot.
        fsid: OsdFsid,
        /// The record for which the Deployment must be stopped and its pods gone. Set if the OSD to destroy
        /// is the old one.
        stopped_for: Option<RecordId>,
        /// The data precondition at that time.
        precondition: Option<DataPrecondition>,
    },
    /// Registers the id again after a purge: `osd new <fsid> <id>` on an absent id.
    Reregister {
        /// The OSD.
        osd: OsdId,
        /// An fsid that an agent of this record issued.
        issued: OsdFsid,
    },
    /// Purges an id that ceph-volume created by mistake (`osd purge-new`). The id must be `new`, never up,
    /// and hold this fsid.
    PurgeMisplaced {
        /// The misplaced id.
        misplaced: OsdId,
        /// The fsid of the misplaced id: one that an agent of this record issued.
        fsid: OsdFsid,
    },
    /// Restores the CRUSH item as recorded, if it is gone: place, weight, class, reweight and primary
    /// affinity. Sets the recorded weight on an existing item if the item still has its former weight.
    RestoreCrush {
        /// The OSD.
        osd: OsdId,
        /// The recorded item.
        item: CrushItem,
        /// The former weight, if the recorded one differs from it.
        former: Option<Weight>,
        /// The recorded in-weight.
        reweight: Weight,
        /// The recorded primary affinity.
        primary_affinity: Weight,
    },
    /// `osd pg-upmap-items` for upmaps that a purge removed, if the slot is up with `fsid`. Restores only
    /// those of PGs that have no upmap by now.
    RestoreUpmaps {
        /// The OSD.
        osd: OsdId,
        /// The fsid expected in the slot.
        fsid: OsdFsid,
        /// The recorded upmaps.
        upmaps: Vec<Upmap>,
    },
}
