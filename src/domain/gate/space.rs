//! Gate of the space on the new OSD.

use super::Reason;
use super::answer::{Gate, shut_if};
use crate::domain::ledger::Record;
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;

/// Returns the gate that is open if the old OSD's data fits into the new OSD.
///
/// The data and a tenth more must fit below the nearfull line of the new OSD. While the old OSD is up, its
/// present usage counts; after that, its usage at Stop.
pub fn enough_space(record: &Record, seen: &Observation) -> Gate {
    let old = seen.ceph.slots.get(&record.osd).filter(|slot| slot.fsid == Some(record.old));
    let now = old.filter(|slot| slot.up).and_then(|slot| slot.used_bytes);
    let used = now.or(record.used_bytes).or_else(|| used_bytes(record.osd, seen));
    let (Some(evidence), Some(used)) = (&record.evidence, used) else {
        return Gate::Unknown(Reason::UsageUnknown).guarded();
    };
    room(evidence.usable_bytes, used, seen)
}

/// Returns the bytes used on an OSD; `None` if that is not known.
///
/// The mgr drops the usage of an OSD that is out (`ClusterState::ingest_pgstats`, 16 to 20). If no PG is on
/// it any more, nothing is to move back to it but what CRUSH places there later.
pub fn used_bytes(osd: OsdId, seen: &Observation) -> Option<u64> {
    let slot = seen.ceph.slots.get(&osd)?;
    let is_emptied = || !slot.is_in && !seen.ceph.pgs.values().any(|pg| pg.is_on(osd));
    slot.used_bytes.or_else(|| is_emptied().then_some(0))
}

/// Returns the gate that is open if so many bytes are enough for the data of an OSD.
pub fn room(bytes: u64, used: u64, seen: &Observation) -> Gate {
    let usable = bytes / 10_000 * u64::from(seen.ceph.nearfull_ratio);
    let needed = needed(used);
    shut_if(usable < needed, || Reason::TooSmall { usable, needed }).guarded()
}

/// Returns the smallest number of bytes that is enough for this usage.
pub fn least_space(used: u64, seen: &Observation) -> u64 {
    needed(used).div_ceil(u64::from(seen.ceph.nearfull_ratio).max(1)) * 10_000
}

fn needed(used: u64) -> u64 {
    used / 10 * 11
}
