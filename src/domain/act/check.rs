//! Checks of the record and of the forecast, right before the command of an act on Ceph is sent.

use std::collections::BTreeSet;

use super::CephAct;
use crate::domain::inspection::RecordId;
use crate::domain::osd::OsdId;
use crate::domain::policy::Accepted;

/// Check right before a command is sent: a runner may have been frozen since its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check<'a> {
    /// The record is open.
    Open {
        /// The OSD.
        osd: OsdId,
        /// The record of the act.
        record: &'a RecordId,
    },
    /// The PGs allow that data moves away from the OSD, and the data finds a place.
    Place {
        /// The OSD.
        osd: OsdId,
        /// The OSDs that get CRUSH weight 0; `None` if the OSD is marked out.
        weightless: Option<&'a BTreeSet<OsdId>>,
        /// States of PGs, in addition to active+clean, that the owner accepts.
        accepted: &'a Accepted,
    },
}

impl CephAct {
    /// Returns what is checked before the command of this act is sent, in this order.
    ///
    /// The forecast of a large cluster takes minutes, in which another runner may close the record. So the
    /// record is read again after it.
    pub fn checks(&self) -> Vec<Check<'_>> {
        let before_a_move = |osd, record, weightless, accepted| {
            let open = Check::Open { osd, record };
            vec![open, Check::Place { osd, weightless, accepted }, open]
        };
        match self {
            Self::MarkOut { osd, record, accepted, .. } => before_a_move(*osd, record, None, accepted),
            Self::DropWeight { osd, record, together, accepted, .. } => {
                before_a_move(*osd, record, Some(together), accepted)
            }
            Self::SetOsdFlags { osd, record, .. }
            | Self::Purge { osd, record }
            | Self::RemoveHost { osd, record, .. } => vec![Check::Open { osd: *osd, record }],
            Self::Bootstrap { .. }
            | Self::SetNoScrub { .. }
            | Self::UnsetNoScrub { .. }
            | Self::SetFastRecovery { .. }
            | Self::UnsetFastRecovery { .. }
            | Self::UnsetOsdFlags { .. }
            | Self::TakeIn { .. }
            | Self::RestoreWeight { .. }
            | Self::Destroy { .. }
            | Self::Reregister { .. }
            | Self::PurgeMisplaced { .. }
            | Self::RestoreCrush { .. }
            | Self::RestoreUpmaps { .. } => Vec::new(),
        }
    }
}
