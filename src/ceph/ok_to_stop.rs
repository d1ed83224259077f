//! `ceph osd ok-to-stop`: whether PGs would stop serving if these OSDs stopped.
//!
//! A yes is not enough: from 20.2.2 on (since `osd ok-to-upgrade`), `DaemonServer::_check_offlines_pgs`
//! counts a PG only if the last OSD of its acting set is one of those asked about. So the gate
//! (`src/domain/gate/stop.rs`) and the act (`src/domain/expect.rs`) also count the PGs themselves.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::ceph::command::Command;
use crate::ceph::error::{CephError, errno};
use crate::ceph::session::Ceph;
use crate::domain::observation::OkToStop;
use crate::domain::osd::OsdId;

#[derive(Deserialize)]
struct OkToStopAnswer {
    ok_to_stop: bool,
    num_not_ok_pgs: u32,
}

fn command(osds: &BTreeSet<OsdId>) -> Command {
    let ids: Vec<String> = osds.iter().map(|osd| osd.0.to_string()).collect();
    Command::mgr("osd ok-to-stop").with("ids", ids)
}

fn parse(answer: &[u8]) -> serde_json::Result<OkToStop> {
    let OkToStopAnswer { ok_to_stop, num_not_ok_pgs } = serde_json::from_slice(answer)?;
    Ok(OkToStop { ok: ok_to_stop, bad_pgs: num_not_ok_pgs })
}

impl Ceph {
    /// Sends `osd ok-to-stop` for these OSDs.
    ///
    /// The verdict is in the JSON: 16.2 answers "no" with `EBUSY` and JSON, later releases with 0 and JSON.
    /// An id that does not exist is ok to stop (16.2.15), so it must only be sent for observed OSDs.
    pub async fn ok_to_stop(&self, osds: &BTreeSet<OsdId>) -> Result<OkToStop, CephError> {
        let command = command(osds);
        let reply = self.send(&command).await?;
        match (reply.code, parse(&reply.out)) {
            (_, Ok(verdict)) => Ok(verdict),
            (0.., Err(source)) => Err(CephError::UnreadableAnswer { command: command.name, source }),
            (code, Err(_)) => {
                Err(CephError::Read { command: command.name, errno: errno(code), said: reply.said })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::answer;

    #[test]
    fn ok_to_stop_verdict_and_bad_pgs_are_parsed_from_json() {
        for (release, bad_pgs) in [("16.2.15", 33), ("18.2.7", 32), ("20.2.4", 27)] {
            let no = parse(&answer(release, "osd-ok-to-stop.no")).unwrap();
            assert_eq!(no, OkToStop { ok: false, bad_pgs }, "{release}");
            let yes = parse(&answer(release, "osd-ok-to-stop")).unwrap();
            assert_eq!(yes, OkToStop { ok: true, bad_pgs: 0 }, "{release}");
        }
    }

    #[test]
    fn ok_to_stop_names_all_osds_in_one_command() {
        let sent = command(&BTreeSet::from([OsdId(3), OsdId(12)])).to_c_string();
        assert_eq!(sent.to_str(), Ok(r#"{"format":"json","ids":["3","12"],"prefix":"osd ok-to-stop"}"#));
    }
}
