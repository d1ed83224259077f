//! `ceph versions`: releases of the running daemons.
//!
//! Only the sections of mons, mgrs, OSDs and MDSs are read. `overall` also counts gateways with a release of
//! their own, such as NVMe-oF, which an upgrade of Ceph never brings to the same one.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ceph::command::Command;
use crate::domain::observation::Releases;
use crate::domain::release;

/// First release whose OSDs have no Filestore: Reef.
const WITHOUT_FILESTORE: u32 = 18;

#[derive(Default, Deserialize)]
#[serde(default)]
struct VersionsAnswer {
    mon: Map<String, Value>,
    mgr: Map<String, Value>,
    osd: Map<String, Value>,
    mds: Map<String, Value>,
}

pub(super) fn command() -> Command {
    Command::mon("versions")
}

/// Returns whether daemons of more than one release are running, and whether mons and mgrs are ahead.
pub(super) fn parse(answer: &[u8]) -> serde_json::Result<Releases> {
    let VersionsAnswer { mon, mgr, osd, mds } = serde_json::from_slice(answer)?;
    let leaders: BTreeSet<&String> = mon.keys().chain(mgr.keys()).collect();
    let all: BTreeSet<&String> = osd.keys().chain(mds.keys()).chain(leaders.iter().copied()).collect();
    if all.len() <= 1 {
        return Ok(Releases::One);
    }
    let is_ahead = |leader: &String| {
        let ahead = major(leader).filter(|major| *major >= WITHOUT_FILESTORE);
        ahead.is_some_and(|ahead| all.iter().all(|other| major(other).is_some_and(|major| major <= ahead)))
    };
    Ok(match leaders.first() {
        Some(leader) if leaders.len() == 1 && is_ahead(leader) => Releases::OthersBehind,
        Some(_) | None => Releases::Several,
    })
}

/// Returns 18 for `ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)`.
fn major(version: &str) -> Option<u32> {
    release::numbers(version).map(|(major, ..)| major)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer};

    #[test]
    fn versions_of_two_releases_are_mixed_and_of_one_are_not() {
        for release in RELEASES {
            assert_eq!(parse(&answer(release, "versions")).unwrap(), Releases::One, "{release}");
        }
        let mixed = br#"{"mon":{},"osd":{"ceph version 16.2.15 (x)":3,"ceph version 18.2.7 (y)":1}}"#;
        assert_eq!(parse(mixed).unwrap(), Releases::Several);
    }

    #[test]
    fn gateway_with_a_release_of_its_own_is_no_upgrade() {
        let ceph = r#"{"ceph version 19.2.3 (x) squid (stable)":3}"#;
        let gateway = r#"{"ceph version 19.3.0-6243 (y) squid (dev)":2}"#;
        let both =
            r#"{"ceph version 19.2.3 (x) squid (stable)":9,"ceph version 19.3.0-6243 (y) squid (dev)":2}"#;
        let text =
            format!(r#"{{"mon":{ceph},"mgr":{ceph},"osd":{ceph},"nvmeof":{gateway},"overall":{both}}}"#);
        assert_eq!(parse(text.as_bytes()).unwrap(), Releases::One);
    }

    #[test]
    fn mons_and_mgrs_ahead_differ_from_an_upgrade_among_them() {
        assert_eq!(parse(&answer("half-upgraded", "versions")).unwrap(), Releases::OthersBehind);
        let with = |mon: &str, mgr: &str| {
            let old = "ceph version 16.2.15 (x)";
            let text =
                format!(r#"{{"mon":{{"{mon}":1}},"mgr":{{"{mgr}":1}},"osd":{{"{old}":3,"{mon}":1}}}}"#);
            parse(text.as_bytes()).unwrap()
        };
        let (reef, quincy) = ("ceph version 18.2.7 (y)", "ceph version 17.2.9 (z)");
        assert_eq!(with(reef, reef), Releases::OthersBehind);
        assert_eq!(with(reef, "ceph version 16.2.15 (x)"), Releases::Several);
        assert_eq!(with(quincy, quincy), Releases::Several, "its OSDs have Filestore still: they can follow");
    }
}
