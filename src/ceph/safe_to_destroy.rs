//! `ceph osd safe-to-destroy`: whether the data of an OSD is needed.

use std::collections::BTreeSet;

use rustix::io::Errno;
use serde::Deserialize;

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::session::Ceph;
use crate::domain::osd::OsdId;

#[derive(Deserialize)]
struct Answer {
    safe_to_destroy: BTreeSet<u32>,
}

fn command(osd: OsdId) -> Command {
    Command::mgr("osd safe-to-destroy").with("ids", vec![osd.0.to_string()])
}

impl Ceph {
    /// Sends `osd safe-to-destroy` for an OSD.
    ///
    /// With `-f json` the return code is 0 although the answer is no. While a PG is unknown, the mgr refuses
    /// the question with `EAGAIN`, which is a no, too (`DaemonServer.cc`).
    pub async fn safe_to_destroy(&self, osd: OsdId) -> Result<bool, CephError> {
        let parse = |answer: &[u8]| serde_json::from_slice(answer);
        match self.read(command(osd), parse).await {
            Ok(Answer { safe_to_destroy }) => Ok(safe_to_destroy.contains(&osd.0)),
            Err(CephError::Read { errno: Errno::AGAIN, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_to_destroy_is_asked_for_one_osd() {
        let sent = command(OsdId(3)).to_c_string().into_string().unwrap();
        assert_eq!(sent, r#"{"format":"json","ids":["3"],"prefix":"osd safe-to-destroy"}"#);
        assert!(crate::ceph::caps::tests::allow(&command(OsdId(3))));
    }

    #[test]
    fn answer_names_the_osds_that_are_safe_to_destroy() {
        let safe = |text: &str| serde_json::from_str::<Answer>(text).unwrap().safe_to_destroy;
        let no = r#"{"safe_to_destroy":[],"active":[3],"missing_stats":[],"stored_pgs":[]}"#;
        let yes = r#"{"safe_to_destroy":[3],"active":[],"missing_stats":[],"stored_pgs":[]}"#;
        assert!(!safe(no).contains(&3) && safe(yes).contains(&3));
    }
}
