//! `ceph versions`: releases of the running daemons.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ceph::command::Command;
use crate::domain::observation::Releases;
use crate::domain::release;

/// First release whose OSDs have no Filestore: Reef.
const WITHOUT_FILESTORE: u32 = 18;

#[derive(Deserialize)]
struct VersionsAnswer {
    #[serde(default)]
    mon: Map<String, Value>,
    #[serde(default)]
    mgr: Map<String, Value>,
    overall: Map<String, Value>,
}

pub(super) fn command() -> Command {
    Command::mon("versions")
}

/// Returns whether daemons of more than one release are running, and whether mons and mgrs are ahead.
pub(super) fn parse(answer: &[u8]) -> serde_json::Result<Releases> {
    let VersionsAnswer { mon, mgr, overall } = serde_json::from_slice(answer)?;
    if overall.len() <= 1 {
        return Ok(Releases::One);
    }
    let leaders: BTreeSet<&String> = mon.keys().chain(mgr.keys()).collect();
    let is_ahead = |leader: &String| {
        let ahead = major(leader).filter(|major| *major >= WITHOUT_FILESTORE);
        ahead
            .is_some_and(|ahead| overall.keys().all(|other| major(other).is_some_and(|major| major <= ahead)))
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
        let mixed = br#"{"mon":{},"overall":{"ceph version 16.2.15 (x)":3,"ceph version 18.2.7 (y)":1}}"#;
        assert_eq!(parse(mixed).unwrap(), Releases::Several);
    }

    #[test]
    fn mons_and_mgrs_ahead_differ_from_an_upgrade_among_them() {
        assert_eq!(parse(&answer("half-upgraded", "versions")).unwrap(), Releases::OthersBehind);
        let with = |mon: &str, mgr: &str| {
            let old = "ceph version 16.2.15 (x)";
            let text =
                format!(r#"{{"mon":{{"{mon}":1}},"mgr":{{"{mgr}":1}},"overall":{{"{old}":3,"{mon}":1}}}}"#);
            parse(text.as_bytes()).unwrap()
        };
        let (reef, quincy) = ("ceph version 18.2.7 (y)", "ceph version 17.2.9 (z)");
        assert_eq!(with(reef, reef), Releases::OthersBehind);
        assert_eq!(with(reef, "ceph version 16.2.15 (x)"), Releases::Several);
        assert_eq!(with(quincy, quincy), Releases::Several, "its OSDs have Filestore still: they can follow");
    }
}
