//! Gate before work on another OSD: the time that OSDs need to commit writes.

use std::time::Duration;

use super::Reason;
use super::answer::{Gate, shut_if};
use crate::domain::view::View;

/// Returns the gate that is shut while OSDs need longer to commit writes than the run allows.
///
/// Only the next OSD waits. One in progress is finished, whatever clients notice.
pub fn commit_latency(view: View<'_>) -> Gate {
    let Some(limit) = view.policy.max_commit_latency else { return Gate::Open };
    let Some(known) = view.seen.ceph.commit_latency.as_ref() else { return Gate::Unknown(Reason::NotAsked) };
    let mut slots = view.seen.ceph.slots.iter();
    if let Some((osd, _)) = slots.find(|(osd, slot)| slot.up && !known.contains_key(osd)) {
        return Gate::Unknown(Reason::CommitLatencyUnknown { osd: *osd });
    }
    let median = median(known.values().copied());
    shut_if(median > limit, || Reason::CommitLatency { median, limit }).guarded()
}

/// Returns the median of the OSDs that wrote: an OSD without a write shows zero.
///
/// One slow disk does not raise it, so that it does not hold up a run for ever.
fn median(all: impl Iterator<Item = Duration>) -> Duration {
    let mut written: Vec<Duration> = all.filter(|latency| !latency.is_zero()).collect();
    written.sort_unstable();
    written.get(written.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_latencies_ignores_idle_osds_and_one_slow_disk() {
        let of = |all: &[u64]| median(all.iter().copied().map(Duration::from_millis));
        assert_eq!(of(&[]), Duration::ZERO);
        assert_eq!(of(&[0, 0, 0]), Duration::ZERO);
        assert_eq!(of(&[0, 0, 0, 40]), Duration::from_millis(40));
        assert_eq!(of(&[5, 900, 3]), Duration::from_millis(5));
    }
}
