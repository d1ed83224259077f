//! The old OSD started again, and the place in CRUSH restored.

use super::Step;
use crate::domain::act::{Act, CephAct, KubeAct};
use crate::domain::next::Next;
use crate::domain::osd::OsdFsid;

impl Step<'_> {
    /// Starts the old OSD again, unchanged: the recovery while nothing is lost yet.
    pub(super) fn restart(&self) -> Next {
        Next::Do(Act::Kube(KubeAct::Restart { osd: self.record.osd, record: self.record.id.clone() }))
    }

    pub(super) fn slot_fsid(&self) -> Option<OsdFsid> {
        self.view.slot(self.record.osd)?.fsid
    }

    /// Restores the CRUSH item as recorded, if it is gone or has its former weight.
    pub(super) fn restore_crush(&self) -> Next {
        let record = self.record;
        self.fenced(Act::Ceph(CephAct::RestoreCrush {
            osd: record.osd,
            item: record.crush.clone(),
            former: record.former_weight,
            reweight: record.reweight,
            primary_affinity: record.primary_affinity,
        }))
    }
}
