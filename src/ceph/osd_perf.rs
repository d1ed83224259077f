//! `ceph osd perf`: how long OSDs took to commit writes since their last report to the mgr.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::session::Ceph;
use crate::domain::osd::OsdId;

#[derive(Deserialize)]
struct OsdPerf {
    osdstats: OsdStats,
}

#[derive(Deserialize)]
struct OsdStats {
    osd_perf_infos: Vec<Info>,
}

#[derive(Deserialize)]
struct Info {
    id: OsdId,
    perf_stats: Stats,
}

/// Average over the writes of some seconds; 0 if there was none, or if it is below 1 ms.
///
/// `commit_latency_ns` has no more digits: an OSD reports whole milliseconds (seen on 16.2.15, 18.2.7 and
/// 20.2.4).
#[derive(Deserialize)]
struct Stats {
    commit_latency_ms: u64,
}

pub(super) fn command() -> Command {
    Command::mgr("osd perf")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<BTreeMap<OsdId, Duration>> {
    let OsdPerf { osdstats } = serde_json::from_slice(answer)?;
    let latency = |info: Info| (info.id, Duration::from_millis(info.perf_stats.commit_latency_ms));
    Ok(osdstats.osd_perf_infos.into_iter().map(latency).collect())
}

impl Ceph {
    /// Returns how long each OSD took to commit a write, in whole milliseconds: zero if it wrote nothing.
    pub async fn commit_latency(&self) -> Result<BTreeMap<OsdId, Duration>, CephError> {
        self.read(command(), parse).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer};

    #[test]
    fn commit_latency_is_read_for_every_osd() {
        for release in RELEASES {
            let found = parse(&answer(release, "osd-perf")).unwrap();
            assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 1, 2].map(OsdId), "{release}");
            assert!(found.values().any(|latency| !latency.is_zero()), "{release}");
            assert!(found.values().all(|latency| *latency < Duration::from_secs(10)), "{release}");
        }
    }
}
