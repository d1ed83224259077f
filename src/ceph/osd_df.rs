//! `ceph osd df`: bytes used on each OSD, as the mgr knows them. A stopped OSD keeps its last numbers until it is purged.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::command::Command;
use crate::domain::osd::OsdId;

#[derive(Deserialize)]
struct Answer {
    nodes: Vec<Node>,
    /// OSDs outside CRUSH.
    #[serde(default)]
    stray: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: OsdId,
    kb: u64,
    kb_used: u64,
}

pub(super) fn command() -> Command {
    Command::mgr("osd df")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<BTreeMap<OsdId, u64>> {
    let Answer { nodes, stray } = serde_json::from_slice(answer)?;
    // Size 0: the mgr has heard nothing of it.
    let known = nodes.into_iter().chain(stray).filter(|node| node.kb > 0);
    Ok(known.map(|node| (node.id, node.kb_used.saturating_mul(1024))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{RELEASES, answer};
    use super::*;

    #[test]
    fn used_bytes_are_read_also_of_a_stopped_osd() {
        for (release, up, stopped) in
            [("16.2.15", 145_556, 145_740), ("18.2.7", 27_008, 27_064), ("20.2.4", 27_520, 27_576)]
        {
            let fine = parse(&answer(release, "osd-df")).unwrap();
            assert_eq!((fine.len(), fine[&OsdId(1)]), (4, up * 1024), "{release}");
            let down = parse(&answer(release, "osd-df.down")).unwrap();
            assert_eq!(down[&OsdId(1)], stopped * 1024, "{release}");
        }
    }

    #[test]
    fn an_osd_the_mgr_knows_nothing_of_has_no_number() {
        for release in RELEASES {
            let renewed = parse(&answer(release, "osd-df.renewed")).unwrap();
            assert!(renewed.len() == 3 && !renewed.contains_key(&OsdId(1)), "{release}: {renewed:?}");
        }
    }
}
