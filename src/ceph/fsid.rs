//! `ceph fsid`: the cluster's fsid.

use serde::Deserialize;

use crate::ceph::command::Command;
use crate::domain::osd::ClusterFsid;

#[derive(Deserialize)]
struct FsidAnswer {
    fsid: ClusterFsid,
}

pub(super) fn command() -> Command {
    Command::mon("fsid")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<ClusterFsid> {
    serde_json::from_slice(answer).map(|FsidAnswer { fsid }| fsid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::osd_dump;
    use crate::ceph::samples::{RELEASES, answer};

    #[test]
    fn cluster_fsid_of_each_release_is_parsed() {
        let fsid = |release| parse(&answer(release, "fsid")).unwrap();
        assert_eq!(fsid("16.2.15").to_string(), "6a94672f-2736-4a1b-b5c8-51c0e08ed0de");
        for release in RELEASES {
            assert_eq!(
                fsid(release),
                osd_dump::parse(&answer(release, "osd-dump")).unwrap().fsid,
                "{release}"
            );
        }
    }
}
