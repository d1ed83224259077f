//! `ceph osd destroy`: gives up an OSD's data and key, keeps its id and its place in CRUSH.
//!
//! `osd destroy` is a mgr command that checks safe-to-destroy (never true for an OSD rebuilt in place, and
//! skipped with `--yes-i-really-mean-it`) and then sends `osd destroy-actual` to the mon. osd-migrate sends
//! `osd destroy-actual` itself. The mon does it in one step or refuses it (`EBUSY` while the OSD is up), and
//! no mgr keeps the command for later. Same in 16.2.15.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::osd_dump;
use crate::ceph::session::Ceph;
use crate::domain::expect;
use crate::domain::osd::{OsdFsid, OsdId};

const NAME: &str = "osd destroy-actual";

fn command(osd: OsdId) -> Command {
    Command::mon(NAME).with("id", osd.0).with("yes_i_really_mean_it", true)
}

impl Ceph {
    /// Destroys the OSD `fsid` in its slot.
    ///
    /// The map is read again right before. If the slot is up, or has another fsid or none, nothing is sent.
    /// `osd down` is never sent: osd-migrate did not stop an OSD that is up.
    pub async fn destroy(&self, osd: OsdId, fsid: OsdFsid) -> Result<(), CephError> {
        let slot = self.slot(osd).await?;
        if slot.as_ref().is_some_and(|slot| expect::to_destroy(slot, fsid)) {
            return self.act(osd, command(osd)).await;
        }
        let (expected, found) = (format!("down, fsid {fsid}"), osd_dump::describe(slot.as_ref()));
        Err(CephError::Unexpected { command: NAME, osd, expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observation::{Slot, SlotState};

    #[test]
    fn osd_is_destroyed_only_if_down_and_with_the_expected_fsid() {
        let slot = osd_dump::tests::fine().slots[&OsdId(1)].clone();
        let (fsid, other) = (slot.fsid.unwrap(), "11111111-2222-4333-8444-555555555555".parse().unwrap());
        let down = Slot { up: false, ..slot.clone() };
        assert!(expect::to_destroy(&down, fsid));
        assert!(expect::to_destroy(&Slot { state: SlotState::New, ..down.clone() }, fsid));
        assert!(!expect::to_destroy(&slot, fsid), "up");
        assert!(!expect::to_destroy(&down, other), "another fsid");
        assert!(!expect::to_destroy(&Slot { fsid: None, ..down.clone() }, fsid), "no fsid");
        assert!(
            !expect::to_destroy(&Slot { state: SlotState::Destroyed, ..down }, fsid),
            "destroyed already"
        );
    }

    #[test]
    fn destroy_command_says_yes_i_really_mean_it() {
        let sent = command(OsdId(1)).to_c_string().into_string().unwrap();
        assert_eq!(
            sent,
            r#"{"format":"json","id":1,"prefix":"osd destroy-actual","yes_i_really_mean_it":true}"#
        );
    }
}
