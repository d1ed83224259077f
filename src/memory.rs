//! Compares the pod's memory limit with the size of the cluster, and warns before the kernel kills the
//! process.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::domain::units::{grouped, size};

/// Format in which the mgr's complete statistics of all PGs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The table for people.
    Table,
    /// JSON, if a mgr's table is not the known one.
    Json,
}

impl Format {
    /// Returns the bytes for each PG in an observation inside an act.
    ///
    /// The table of `pg dump` has 0.4-0.5 KB for each PG (16-20), more if one PG has a long state, and JSON
    /// 2.2-2.6 KB. librados has either in memory twice while it passes the answer on (`do_out_buffer`). The
    /// current observation keeps 0.4 KB of each PG, and the previous one as much.
    fn bytes_per_pg(self) -> u64 {
        match self {
            Self::Table => 3 * 1024,
            Self::Json => 7 * 1024,
        }
    }
}

/// Bytes for the program, librados with its maps, and a page of each Kubernetes list.
const BASE: u64 = 64 << 20;

/// Files with the limit in cgroup v2 and v1
/// (<https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files>, cgroup-v1/memory.html).
const LIMITS: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// Smallest number that stands for no limit: cgroup v1 writes a number near 2^63, and Kubernetes offers no
/// limit as large as this.
const NO_LIMIT: u64 = 1 << 60;

/// Logs a warning, once for each format, if an observation of so many PGs in that format can need more memory
/// than the pod may use.
pub fn warn_if_short(pgs: u64, format: Format, namespace: &str) {
    static TABLE: AtomicBool = AtomicBool::new(false);
    static JSON: AtomicBool = AtomicBool::new(false);
    let Some(limit) = limit() else { return };
    let is_said = match format {
        Format::Table => &TABLE,
        Format::Json => &JSON,
    };
    if let Some(advice) = advice(limit, peak().unwrap_or(0), (pgs, format), namespace)
        && !is_said.swap(true, Ordering::Relaxed)
    {
        tracing::warn!("{advice}");
    }
}

fn limit() -> Option<u64> {
    LIMITS.iter().find_map(|path| parse_limit(&fs::read_to_string(path).ok()?))
}

/// Parses a limit.
///
/// `max` in v2 and a huge number in v1 stand for no limit.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < NO_LIMIT)
}

/// Returns the largest memory of the process so far (`VmHWM`; proc(5)).
fn peak() -> Option<u64> {
    parse_peak(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Returns the largest memory of the process so far, in KiB.
pub fn peak_kib() -> u64 {
    peak().map_or(0, |bytes| bytes / 1024)
}

/// Returns the CPU time of all threads of the process so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn parse_peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1024))
}

/// Returns what to do if the limit is too low for the number of PGs or for the memory used so far.
fn advice(limit: u64, peak: u64, (pgs, format): (u64, Format), namespace: &str) -> Option<String> {
    let by_size = pgs.saturating_mul(format.bytes_per_pg()).saturating_add(BASE);
    // A reserve of a quarter: the next observation may be the one inside an act.
    let by_use = peak.saturating_add(peak / 4);
    let needed = by_size.max(by_use);
    if needed <= limit {
        return None;
    }
    let gib = (0..=20).map(|power| 1_u64 << power).find(|gib| needed <= gib << 30)?;
    Some(format!(
        "this pod may use {} of memory, but an observation of the {} PGs of this cluster can need {} \
         (maximum so far: {}). The kernel kills a pod that needs more than its limit. To raise the limit of \
         the next Job with Helm, set the value resources.limits.memory={gib}Gi. Without Helm: kubectl -n \
         {namespace} set resources cronjob/osd-migrate --limits=memory={gib}Gi",
        size(limit),
        grouped(pgs),
        size(needed),
        size(peak)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limit_is_read_from_both_cgroup_versions() {
        assert_eq!(parse_limit("1073741824\n"), Some(1 << 30));
        assert_eq!((parse_limit("max\n"), parse_limit("9223372036854771712\n")), (None, None));
        assert_eq!(parse_peak("VmPeak:\t  900 kB\nVmHWM:\t     512 kB\n"), Some(512 << 10));
        assert!(peak().is_some_and(|bytes| bytes > 1 << 20), "this process");
    }

    #[test]
    fn memory_limit_of_the_chart_suffices_for_9000_osds() {
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/osd-migrate/values.yaml");
        let values = fs::read_to_string(chart).unwrap();
        assert!(values.contains("  limits: {memory: 1Gi}\n"));
        // 33 PGs with 3 replicas are 100 on each OSD, which is what the autoscaler aims at.
        let pgs = |osds: u64, format| (osds * 100 / 3, format);
        assert_eq!(advice(1 << 30, 0, pgs(9_000, Format::Table), "rook-ceph"), None);
        assert!(advice(512 << 20, 0, pgs(9_000, Format::Table), "rook-ceph").is_some());
        // Without the table, for 4,000.
        assert_eq!(advice(1 << 30, 0, pgs(4_000, Format::Json), "rook-ceph"), None);
        let json = advice(1 << 30, 0, pgs(9_000, Format::Json), "rook-ceph").unwrap();
        assert!(json.contains("resources.limits.memory=4Gi"), "{json}");
    }

    #[test]
    fn memory_shortage_is_reported_with_the_limit_to_set() {
        let by_size = advice(1 << 30, 80 << 20, (700_000, Format::Table), "rook-ceph").unwrap();
        for part in [
            "may use 1.0 GiB",
            "700,000 PGs",
            "maximum so far: 80.0 MiB",
            "resources.limits.memory=4Gi",
            "kubectl -n rook-ceph set resources cronjob/osd-migrate --limits=memory=4Gi",
        ] {
            assert!(by_size.contains(part), "{part}: {by_size}");
        }
        let few = (1_000, Format::Table);
        assert_eq!(advice(1 << 30, 700 << 20, few, "rook-ceph"), None);
        let by_use = advice(1 << 30, 900 << 20, few, "rook-ceph").unwrap();
        assert!(by_use.contains("memory=2Gi") && by_use.contains("maximum so far: 900.0 MiB"), "{by_use}");
    }
}
