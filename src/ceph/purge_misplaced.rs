//! `ceph osd purge-new`: removes an id that ceph-volume created by mistake instead of using the recorded id.
//!
//! Unlike with `osd purge`, the mon itself refuses it for an OSD that is up (`EBUSY`) or not `new` (`EPERM`),
//! so the precondition is atomic.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::osd_dump;
use crate::ceph::session::Ceph;
use crate::domain::expect;
use crate::domain::osd::{OsdFsid, OsdId};

const NAME: &str = "osd purge-new";

fn command(misplaced: OsdId) -> Command {
    Command::mon(NAME).with("id", misplaced.0).with("yes_i_really_mean_it", true)
}

impl Ceph {
    /// Purges a misplaced id: it must be `new`, never up in any epoch, and have `fsid`.
    ///
    /// An absent id is purged already.
    pub async fn purge_misplaced(&self, misplaced: OsdId, fsid: OsdFsid) -> Result<(), CephError> {
        match self.slot(misplaced).await? {
            None => Ok(()),
            Some(slot) if expect::to_purge_misplaced(&slot, fsid) => {
                self.act(misplaced, command(misplaced)).await
            }
            Some(slot) => {
                let expected = format!("new, never up, fsid {fsid}");
                let found = osd_dump::describe(Some(&slot));
                Err(CephError::Unexpected { command: NAME, osd: misplaced, expected, found })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observation::{Slot, SlotState};
    use crate::domain::osd::Epoch;

    #[test]
    fn id_that_was_ever_up_is_never_purged_as_misplaced() {
        let slot = osd_dump::tests::fine().slots[&OsdId(1)].clone();
        let fsid = slot.fsid.unwrap();
        let misplaced = Slot { state: SlotState::New, up: false, up_from: Epoch(0), ..slot.clone() };
        assert!(expect::to_purge_misplaced(&misplaced, fsid));
        assert!(!expect::to_purge_misplaced(&Slot { up_from: Epoch(6), ..misplaced.clone() }, fsid));
        assert!(!expect::to_purge_misplaced(&Slot { state: SlotState::Exists, ..misplaced.clone() }, fsid));
        assert!(!expect::to_purge_misplaced(&Slot { fsid: None, ..misplaced }, fsid));
        assert!(!expect::to_purge_misplaced(&slot, fsid));
    }
}
