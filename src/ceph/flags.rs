//! `ceph osd set-group` and `unset-group`: flags of one OSD; `osd out`, and `osd reweight`.
//!
//! One command sets both flags. `osd add-noout` and similar commands set them one by one, and are deprecated
//! since Nautilus.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::osd_dump;
use crate::ceph::session::Ceph;
use crate::domain::expect;
use crate::domain::osd::{OsdFsid, OsdId, Weight};

fn command(name: &'static str, osd: OsdId, noout: bool, noin: bool) -> Option<Command> {
    let flags: Vec<&str> =
        [("noout", noout), ("noin", noin)].into_iter().filter_map(|(f, on)| on.then_some(f)).collect();
    let asked = !flags.is_empty();
    asked.then(|| Command::mon(name).with("flags", flags.join(",")).with("who", vec![osd.to_string()]))
}

/// Returns the command `ceph osd reweight`.
pub(super) fn reweigh(osd: OsdId, reweight: Weight) -> Command {
    Command::mon("osd reweight").with("id", osd.0).with("weight", reweight.as_decimal())
}

fn out(osd: OsdId) -> Command {
    Command::mon("osd out").with("ids", vec![osd.0.to_string()])
}

impl Ceph {
    /// Sets `noout` and `noin` on an OSD: while it is down it is not marked out, and when it boots it keeps
    /// its reweight.
    ///
    /// The flags survive `osd destroy` and `osd new`, not a purge. Nothing would lift flags that are set
    /// after the OSD was recreated. So the slot must have that fsid, and be up or down as expected.
    pub async fn set_osd_flags(
        &self,
        osd: OsdId,
        (fsid, up): (Option<OsdFsid>, bool),
        noout: bool,
        noin: bool,
    ) -> Result<(), CephError> {
        const NAME: &str = "osd set-group";
        let Some(command) = command(NAME, osd, noout, noin) else { return Ok(()) };
        let slot = self.slot(osd).await?;
        if expect::to_set_flags(slot.as_ref(), fsid, up) {
            return self.act(osd, command).await;
        }
        let held = fsid.map_or("destroyed".to_owned(), |fsid| format!("fsid {fsid}"));
        let expected = format!("{}, {held}", if up { "up" } else { "down" });
        Err(CephError::Unexpected { command: NAME, osd, expected, found: osd_dump::describe(slot.as_ref()) })
    }

    /// Marks an OSD out (`osd out`), if it is up and in with that fsid.
    ///
    /// The mons keep its reweight for `osd in`, until it is recreated.
    pub async fn mark_out(&self, osd: OsdId, fsid: OsdFsid) -> Result<(), CephError> {
        let slot = self.slot(osd).await?;
        if expect::to_mark_out(slot.as_ref(), fsid) {
            return self.act(osd, out(osd)).await;
        }
        let expected = format!("up and in, fsid {fsid}");
        let found = osd_dump::describe(slot.as_ref());
        Err(CephError::Unexpected { command: "osd out", osd, expected, found })
    }

    /// Gives an OSD that the mons marked out its reweight again (`osd reweight`), if it is up with that fsid
    /// and still out.
    pub async fn take_in(&self, osd: OsdId, fsid: OsdFsid, reweight: Weight) -> Result<(), CephError> {
        const NAME: &str = "osd reweight";
        let slot = self.slot(osd).await?;
        if expect::to_take_in(slot.as_ref(), fsid) {
            return self.act(osd, reweigh(osd, reweight)).await;
        }
        let expected = format!("up and marked out, fsid {fsid}");
        Err(CephError::Unexpected { command: NAME, osd, expected, found: osd_dump::describe(slot.as_ref()) })
    }

    /// Unsets these flags.
    ///
    /// If the OSD does not have them, or has no slot, nothing is sent.
    ///
    /// An OSD that came up under `noin` is still marked `new`, also when it is down again, and would be
    /// reweighted to 1.0 at its next boot (16.2.15). Therefore it gets its present reweight before `noin` is
    /// unset, which removes the mark.
    pub async fn unset_osd_flags(&self, osd: OsdId, noout: bool, noin: bool) -> Result<(), CephError> {
        let map = self.osd_map().await?;
        let Some(slot) = map.slots.get(&osd) else { return Ok(()) };
        let (noout, noin) = (noout && slot.noout, noin && slot.noin);
        let Some(command) = command("osd unset-group", osd, noout, noin) else { return Ok(()) };
        if noin && map.marked_new.contains(&osd) {
            self.act(osd, reweigh(osd, slot.reweight)).await?;
        }
        self.act(osd, command).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observation::Slot;

    #[test]
    fn noout_and_noin_are_set_in_one_command() {
        let sent =
            command("osd set-group", OsdId(1), true, true).unwrap().to_c_string().into_string().unwrap();
        assert_eq!(
            sent,
            r#"{"flags":"noout,noin","format":"json","prefix":"osd set-group","who":["osd.1"]}"#
        );
        assert!(command("osd set-group", OsdId(1), false, false).is_none());
        for (name, noout, noin) in [
            ("osd set-group", true, true),
            ("osd unset-group", true, false),
            ("osd unset-group", false, true),
        ] {
            let command = command(name, OsdId(1), noout, noin).unwrap();
            assert!(crate::ceph::caps::tests::allow(&command), "{command:?}");
        }
    }

    #[test]
    fn osd_flags_are_set_only_if_fsid_and_up_state_match() {
        let slot = osd_dump::tests::fine().slots[&OsdId(1)].clone();
        let (fsid, other) = (slot.fsid.unwrap(), "11111111-2222-4333-8444-555555555555".parse().unwrap());
        assert!(expect::to_set_flags(Some(&slot), Some(fsid), true));
        assert!(!expect::to_set_flags(Some(&slot), Some(fsid), false), "it was deployed meanwhile");
        assert!(!expect::to_set_flags(Some(&slot), Some(other), true), "it was recreated meanwhile");
        assert!(!expect::to_set_flags(Some(&Slot { fsid: None, ..slot }), Some(fsid), true));
    }

    #[test]
    fn osd_is_marked_out_by_its_id() {
        let sent = out(OsdId(1)).to_c_string().into_string().unwrap();
        assert_eq!(sent, r#"{"format":"json","ids":["1"],"prefix":"osd out"}"#);
        assert!(crate::ceph::caps::tests::allow(&out(OsdId(1))));
    }

    #[test]
    fn reweight_is_sent_as_an_exact_decimal() {
        let sent = reweigh(OsdId(1), Weight(58982)).to_c_string().into_string().unwrap();
        assert_eq!(sent, r#"{"format":"json","id":1,"prefix":"osd reweight","weight":0.899993896484375}"#);
    }
}
