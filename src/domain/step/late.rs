//! Why a daemon does not come up.

use super::Step;
use crate::domain::gate::{self, Gate};
use crate::domain::observation::Daemon;

impl Step<'_> {
    /// Describes the OSD's daemon, which does not come up in time.
    ///
    /// If no pod can be created, the ReplicaSet has the events.
    pub(super) fn late(&self, daemon: &Daemon) -> String {
        let trouble = self.kept_down().or_else(|| daemon.trouble());
        let trouble = match (trouble, daemon.replicas) {
            (Some(trouble), _) => trouble,
            (None, 0) => "its Deployment was scaled to 0".to_owned(),
            (None, _) => "no reason is known".to_owned(),
        };
        format!(
            "its daemon does not start: {trouble}. See: kubectl -n NAMESPACE describe replicasets,pods -l ceph-osd-id={}",
            self.record.osd.0
        )
    }

    /// Names the flag `noup` if the mons do not mark the OSD up because of it.
    pub(super) fn kept_down(&self) -> Option<String> {
        match gate::may_come_up(self.record.osd, self.view.seen) {
            Gate::Shut(reason) => Some(reason.to_string()),
            Gate::Open | Gate::Unknown(_) => None,
        }
    }
}
