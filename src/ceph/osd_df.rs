//! `ceph osd df`: bytes used on each OSD, as reported by the mgr. A stopped OSD keeps its last numbers until
//! it is purged.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::ceph::command::Command;
use crate::ceph::numbers::above_zero;
use crate::domain::forecast::OsdSpace;
use crate::domain::osd::OsdId;

#[derive(Deserialize)]
struct OsdDf {
    nodes: Vec<Node>,
    /// OSDs outside CRUSH.
    #[serde(rename = "stray")]
    outside: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: OsdId,
    kb: u64,
    kb_used: u64,
    // Below zero if Ceph's estimate of another part is too high (`BlueStore::_get_statfs_overall`).
    kb_used_data: i64,
    kb_used_omap: i64,
    kb_used_meta: i64,
}

impl Node {
    /// Returns the KiB used.
    ///
    /// BlueStore counts a database's whole device as used, so its own parts are added up. Filestore has no
    /// such parts: it reports the free space as its data.
    fn used(&self) -> u64 {
        if !self.has_parts() {
            return self.kb_used;
        }
        self.data().saturating_add(above_zero(self.kb_used_meta)).min(self.kb_used)
    }

    fn has_parts(&self) -> bool {
        self.kb_used_meta != 0
    }

    /// Returns the KiB of objects and their keys.
    fn data(&self) -> u64 {
        above_zero(self.kb_used_data).saturating_add(above_zero(self.kb_used_omap))
    }
}

/// Usage of an OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// Bytes used, without unused space on auxiliary devices.
    pub(super) bytes: u64,
    /// Used part of the size in 1/10000, as Ceph compares it with its ratios.
    pub(super) part: u32,
}

pub(super) fn command() -> Command {
    Command::mgr("osd df")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<BTreeMap<OsdId, Usage>> {
    let usage = |node: Node| {
        let part = node.kb_used.saturating_mul(10_000).checked_div(node.kb);
        let part = part.and_then(|part| u32::try_from(part).ok()).unwrap_or_default();
        (node.id, Usage { bytes: node.used().saturating_mul(1024), part })
    };
    Ok(known(answer)?.map(usage).collect())
}

/// Parses size and usage of each OSD.
pub(super) fn parse_space(answer: &[u8]) -> serde_json::Result<BTreeMap<OsdId, OsdSpace>> {
    let space = |node: Node| {
        let bytes = |kib: u64| kib.saturating_mul(1024);
        let data_bytes = node.has_parts().then(|| bytes(node.data()));
        let (total_bytes, used_bytes) = (bytes(node.kb), bytes(node.kb_used));
        (node.id, OsdSpace { total_bytes, used_bytes, data_bytes })
    };
    Ok(known(answer)?.map(space).collect())
}

/// Returns the OSDs of which the mgr has statistics: an OSD without has size 0.
fn known(answer: &[u8]) -> serde_json::Result<impl Iterator<Item = Node>> {
    let OsdDf { nodes, outside } = serde_json::from_slice(answer)?;
    Ok(nodes.into_iter().chain(outside).filter(|node| node.kb > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer, legacy};

    #[test]
    fn used_bytes_are_read_for_up_and_stopped_osds() {
        for (release, up, stopped) in
            [("16.2.15", 145_556, 145_740), ("18.2.7", 26_995, 27_043), ("20.2.4", 27_491, 27_539)]
        {
            let fine = parse(&answer(release, "osd-df")).unwrap();
            assert_eq!((fine.len(), fine[&OsdId(1)].bytes), (4, up * 1024), "{release}");
            let down = parse(&answer(release, "osd-df.down")).unwrap();
            assert_eq!(down[&OsdId(1)].bytes, stopped * 1024, "{release}");
        }
    }

    #[test]
    fn used_part_is_that_which_ceph_compares_with_its_ratios() {
        let node = |used: u64| {
            serde_json::json!({"id": 1, "kb": 1000, "kb_used": used, "kb_used_data": 1, "kb_used_omap": 0,
                "kb_used_meta": 1})
        };
        for (used, part) in [(0, 0), (899, 8990), (900, 9000), (1000, 10_000)] {
            let answer = serde_json::json!({"nodes": [node(used)], "stray": []}).to_string();
            assert_eq!(parse(answer.as_bytes()).unwrap()[&OsdId(1)].part, part);
        }
    }

    #[test]
    fn part_below_zero_counts_as_zero() {
        let node = serde_json::json!({"id": 1, "kb": 1000, "kb_used": 300, "kb_used_data": 200,
            "kb_used_omap": -7, "kb_used_meta": -50});
        let answer = serde_json::json!({"nodes": [node], "stray": []}).to_string();
        assert_eq!(parse(answer.as_bytes()).unwrap()[&OsdId(1)].bytes, 200 << 10);
        assert_eq!(parse_space(answer.as_bytes()).unwrap()[&OsdId(1)].data_bytes, Some(200 << 10));
    }

    #[test]
    fn space_of_an_osd_has_its_size_and_the_data_that_moves() {
        for release in RELEASES {
            let space = parse_space(&answer(release, "osd-df")).unwrap();
            let used = parse(&answer(release, "osd-df")).unwrap();
            let fits = |of: &OsdSpace| of.total_bytes > of.used_bytes && Some(of.used_bytes) > of.data_bytes;
            assert!(space.values().all(fits), "{release}: {space:?}");
            assert!(space.values().any(|of| of.data_bytes.is_some()), "{release}");
            assert!(used.iter().all(|(osd, usage)| space[osd].used_bytes >= usage.bytes), "{release}");
        }
    }

    #[test]
    fn used_bytes_exclude_unused_space_on_auxiliary_devices() {
        let kinds = parse(&legacy("16.2.15", "osd-df")).unwrap();
        let kib = |osd| kinds[&OsdId(osd)].bytes / 1024;
        assert_eq!(
            kib(5),
            12_820 + 305_152,
            "BlueStore, db and wal on other disks: 6 GiB are said to be used"
        );
        assert_eq!(kib(4), 13_308 + 297_088, "BlueStore on one disk");
        assert_eq!((kib(3), kib(8)), (398_832, 166_872), "Filestore");
    }

    #[test]
    fn ceph_reports_a_whole_auxiliary_db_device_as_used() {
        for (release, with_db) in [("16.2.15", 5), ("18.2.7", 6)] {
            let answer = legacy(release, "osd-df");
            let said: serde_json::Value = serde_json::from_slice(&answer).unwrap();
            let nodes = said["nodes"].as_array().unwrap();
            let said = nodes.iter().find(|node| node["id"] == with_db).unwrap()["kb_used"].as_u64().unwrap();
            let used = parse(&answer).unwrap()[&OsdId(with_db)].bytes / 1024;
            assert!(used > 0 && used < said / 2, "{release}: {used} of {said}");
        }
    }

    #[test]
    fn osd_outside_crush_has_its_used_bytes() {
        for release in RELEASES {
            let mut said: serde_json::Value = serde_json::from_slice(&answer(release, "osd-df")).unwrap();
            let outside = said["nodes"].as_array_mut().unwrap().pop().unwrap();
            said["stray"] = serde_json::json!([outside]);
            let used = parse(said.to_string().as_bytes()).unwrap();
            assert_eq!(used, parse(&answer(release, "osd-df")).unwrap(), "{release}");
        }
    }

    #[test]
    fn osd_without_mgr_statistics_has_no_used_bytes() {
        for release in RELEASES {
            let renewed = parse(&answer(release, "osd-df.renewed")).unwrap();
            assert!(renewed.len() == 3 && !renewed.contains_key(&OsdId(1)), "{release}: {renewed:?}");
        }
    }
}
