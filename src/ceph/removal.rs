//! `ceph osd crush reweight`, `ceph osd purge` and `ceph osd crush rm`: empties an OSD that is removed, and
//! removes its id and its CRUSH host.
//!
//! `osd purge` is a mgr command that checks safe-to-destroy and then sends `osd purge-actual` to the mon.
//! osd-migrate sends `osd purge-actual` itself, and only for a destroyed slot: its data was given up by
//! `osd destroy`, with all its conditions. The mon refuses it (`EBUSY`) while the OSD is up.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::osd_crush_dump;
use crate::ceph::osd_dump;
use crate::ceph::session::Ceph;
use crate::domain::expect;
use crate::domain::osd::{Epoch, OsdFsid, OsdId, Weight};

const REWEIGHT: &str = "osd crush reweight";
const PURGE: &str = "osd purge-actual";
const CRUSH_RM: &str = "osd crush rm";

/// Returns the command that sets the CRUSH weight of an OSD.
pub(super) fn reweight(osd: OsdId, weight: Weight) -> Command {
    Command::mon(REWEIGHT).with("name", osd.to_string()).with("weight", weight.as_decimal())
}

fn purge(osd: OsdId) -> Command {
    Command::mon(PURGE).with("id", osd.0).with("yes_i_really_mean_it", true)
}

fn crush_rm(host: &str) -> Command {
    Command::mon(CRUSH_RM).with("name", host)
}

impl Ceph {
    /// Sets the CRUSH weight of an OSD to 0, if it has been up with that fsid since that epoch, and has that
    /// weight.
    pub async fn drop_weight(
        &self,
        osd: OsdId,
        (fsid, up_from): (OsdFsid, Epoch),
        weight: Weight,
    ) -> Result<(), CephError> {
        let slot = self.slot_in_crush(osd).await?;
        if expect::to_drop_weight(slot.as_ref(), fsid, up_from, weight) {
            return self.act(osd, reweight(osd, Weight(0))).await;
        }
        let expected = format!("up since epoch {} with fsid {fsid} and CRUSH weight {weight}", up_from.0);
        let found = osd_dump::describe(slot.as_ref());
        Err(CephError::Unexpected { command: REWEIGHT, osd, expected, found })
    }

    /// Restores the CRUSH weight of an OSD, if it is up with that fsid and has CRUSH weight 0.
    pub async fn restore_weight(&self, osd: OsdId, fsid: OsdFsid, weight: Weight) -> Result<(), CephError> {
        let slot = self.slot_in_crush(osd).await?;
        if expect::to_restore_weight(slot.as_ref(), fsid) {
            return self.act(osd, reweight(osd, weight)).await;
        }
        let expected = format!("up with fsid {fsid} and CRUSH weight 0");
        let found = osd_dump::describe(slot.as_ref());
        Err(CephError::Unexpected { command: REWEIGHT, osd, expected, found })
    }

    /// Purges the id of a removed OSD: its slot must be destroyed and down.
    ///
    /// An absent id is purged already.
    pub async fn purge(&self, osd: OsdId) -> Result<(), CephError> {
        match self.slot(osd).await? {
            None => Ok(()),
            Some(slot) if expect::to_purge(&slot) => self.act(osd, purge(osd)).await,
            Some(slot) => {
                let (expected, found) = ("destroyed, down".to_owned(), osd_dump::describe(Some(&slot)));
                Err(CephError::Unexpected { command: PURGE, osd, expected, found })
            }
        }
    }
}

impl Ceph {
    /// Removes a CRUSH host that has no items and that no rule names.
    ///
    /// An absent one is removed already. The mon itself refuses a bucket with items (`ENOTEMPTY`), so no OSD
    /// can be added in between.
    pub async fn remove_host(&self, osd: OsdId, host: &str) -> Result<(), CephError> {
        let crush = self.read(osd_crush_dump::command(), osd_crush_dump::parse).await?;
        match (crush.hosts.contains(host), crush.empty_hosts.contains(host)) {
            (false, _) => Ok(()),
            (true, true) => self.act(osd, crush_rm(host)).await,
            (true, false) => {
                let expected = format!("no item in the CRUSH host {host}, and no rule that takes it");
                let found = "an item, or a rule".to_owned();
                Err(CephError::Unexpected { command: CRUSH_RM, osd, expected, found })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observation::{Slot, SlotState};

    fn text(command: &Command) -> String {
        command.to_c_string().into_string().unwrap()
    }

    #[test]
    fn slot_is_purged_only_if_destroyed_and_down() {
        let slot = osd_dump::tests::fine().slots[&OsdId(1)].clone();
        let destroyed = Slot { state: SlotState::Destroyed, up: false, ..slot.clone() };
        assert!(expect::to_purge(&destroyed));
        assert!(!expect::to_purge(&Slot { up: true, ..destroyed.clone() }));
        assert!(!expect::to_purge(&Slot { state: SlotState::Exists, ..destroyed.clone() }));
        assert!(!expect::to_purge(&Slot { state: SlotState::New, ..destroyed }));
        assert!(!expect::to_purge(&slot));
    }

    #[test]
    fn commands_of_a_removal_name_the_osd() {
        assert_eq!(
            text(&reweight(OsdId(5), Weight(0))),
            r#"{"format":"json","name":"osd.5","prefix":"osd crush reweight","weight":0.0}"#
        );
        assert_eq!(
            text(&purge(OsdId(5))),
            r#"{"format":"json","id":5,"prefix":"osd purge-actual","yes_i_really_mean_it":true}"#
        );
        assert_eq!(text(&crush_rm("h2")), r#"{"format":"json","name":"h2","prefix":"osd crush rm"}"#);
    }
}
