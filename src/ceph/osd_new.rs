//! `ceph osd new`: registers an id for an fsid.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::osd_dump;
use crate::ceph::session::Ceph;
use crate::domain::expect;
use crate::domain::osd::{OsdFsid, OsdId};

const NAME: &str = "osd new";

fn command(osd: OsdId, issued: OsdFsid) -> Command {
    Command::mon(NAME).with("uuid", issued.to_string()).with("id", osd.0)
}

impl Ceph {
    /// Re-registers an id after a purge.
    ///
    /// The id must be absent, or already have this issued fsid (then nothing is sent). The slot starts empty:
    /// no key, no CRUSH item, reweight and affinity 1.0, no flags (16.2.15).
    pub async fn reregister(&self, osd: OsdId, issued: OsdFsid) -> Result<(), CephError> {
        let slot = self.slot(osd).await?;
        if expect::to_reregister(slot.as_ref()) {
            return self.act(osd, command(osd, issued)).await;
        }
        if slot.as_ref().is_some_and(|slot| expect::is_reregistered(slot, issued)) {
            return Ok(());
        }
        let (expected, found) = ("no such id".to_owned(), osd_dump::describe(slot.as_ref()));
        Err(CephError::Unexpected { command: NAME, osd, expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observation::{Slot, SlotState};

    #[test]
    fn osd_new_sends_the_issued_fsid_and_the_id() {
        let issued = "11111111-2222-4333-8444-555555555555".parse().unwrap();
        let sent = command(OsdId(1), issued).to_c_string().into_string().unwrap();
        let uuid = r#""uuid":"11111111-2222-4333-8444-555555555555""#;
        assert_eq!(sent, format!(r#"{{"format":"json","id":1,"prefix":"osd new",{uuid}}}"#));
    }

    #[test]
    fn slot_counts_as_reregistered_only_before_it_boots() {
        let slot = osd_dump::tests::fine().slots[&OsdId(1)].clone();
        let fsid = slot.fsid.unwrap();
        assert!(!expect::is_reregistered(&slot, fsid));
        assert!(expect::is_reregistered(&Slot { state: SlotState::New, up: false, ..slot }, fsid));
    }
}
