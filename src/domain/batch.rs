//! A batch: OSDs of one host that are migrated in parallel (`run.inParallel`).
//!
//! A PG of a pool that is spread over hosts has one replica on a host. So while several OSDs of one host are
//! stopped, each PG lacks one replica, as it does if they are stopped one after the other.

use crate::domain::classify::Class;
use crate::domain::gate::served;
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::{Record, Strategy};
use crate::domain::osd::Layout;
use crate::domain::phase::is_committed;
use crate::domain::policy::{Accepted, Missing};
use crate::domain::view::View;

/// Returns whether the OSD may be migrated in parallel to others: in its place, with its data.
///
/// An OSD that is emptied, removed, or moved to another disk changes where PGs are placed.
pub fn is_of_batch(record: &Record) -> bool {
    matches!(record.strategy, Strategy::InPlace) && record.empty.is_none()
}

/// Returns the states of PGs that are accepted before the stop of this OSD.
///
/// If OSDs are migrated in parallel, PGs may lack their replica on another OSD of its batch.
pub fn accepted_beside(record: &Record, accepted: Accepted, view: View<'_>) -> Accepted {
    let host = record.crush.host().filter(|_| is_of_batch(record) && view.policy.in_parallel > 1);
    let missing = host.map(|host| missing_on(host, view)).unwrap_or_default();
    Accepted { missing, ..accepted }
}

/// Returns the PGs that may lack their replica on an OSD of the host that is stopped, or gets its data back.
///
/// If an OSD of a batch is quarantined, no further one is stopped.
pub fn missing_on(host: &str, view: View<'_>) -> Missing {
    let is_meant = |other: &&Record| {
        let is_on_host = other.crush.host().is_some_and(|name| name == host);
        passes(Guard::BatchOneHost, is_on_host) && is_committed(other, view.seen)
    };
    pgs_of_each(view.ledger.in_flight().filter(is_meant), view)
}

/// Returns the PGs that may lack their replica on another OSD of this OSD's host that osd-migrate stopped.
///
/// The replicas of these PGs on other hosts exist: the wipe of this OSD takes none of them. That is so
/// whatever the run allows by now, and even if the other OSD is quarantined, or its stop was reverted and it
/// is not up yet.
pub fn beside(record: &Record, view: View<'_>) -> Missing {
    let host = record.crush.host().filter(|_| is_of_batch(record));
    let is_meant = |other: &&Record| {
        let is_on_host = host.is_some() && other.crush.host() == host;
        is_on_host && other.osd != record.osd && other.stop_intended_at.is_some()
    };
    pgs_of_each(view.ledger.records.values().filter(is_meant), view)
}

fn pgs_of_each<'a>(records: impl Iterator<Item = &'a Record>, view: View<'_>) -> Missing {
    let records = records.filter(|record| is_of_batch(record));
    records.map(|record| (record.osd, served(record, &view.seen.ceph))).collect()
}

/// Returns the kind of a migration, as the ledger notes it when the first OSD of the kind is finished.
pub fn kind(class: &Class, target: &Layout) -> String {
    format!("{class} to {target}")
}

/// Returns whether OSDs of a kind may be migrated in parallel.
///
/// The run has migrated one of the kind alone, and that one has served for the time that the run allows it to
/// fail in.
pub fn is_tried(kind: &str, view: View<'_>) -> bool {
    let done = view.ledger.run.tried_by(&view.policy.run, kind);
    let is_long_ago = done.is_some_and(|at| view.seen.at - at >= view.policy.limits.soak);
    passes(Guard::CanaryFirst, is_long_ago)
}
