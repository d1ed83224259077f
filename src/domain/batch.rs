//! A batch: OSDs of one host that are migrated in parallel (`run.inParallel`).
//!
//! A PG of a pool that is spread over hosts has one replica on a host. So while several OSDs of one host are
//! stopped, each PG lacks one replica, as it does if they are stopped one after the other.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::domain::classify::{self, Class};
use crate::domain::gate::served;
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::{MAX_OPEN, Record, Run, Strategy};
use crate::domain::osd::{Layout, OsdId};
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
    let host =
        record.crush.host().filter(|_| is_of_batch(record) && view.policy.in_parallel.allows_several());
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

/// The data of OSDs, as a share of the data of all OSDs.
pub struct Share<'a> {
    view: View<'a>,
    bytes_of_all: u64,
}

impl<'a> Share<'a> {
    /// Returns the shares in an observation.
    pub fn of(view: View<'a>) -> Self {
        let osds = view.seen.ceph.slots.keys();
        Self { view, bytes_of_all: osds.filter_map(|osd| view.used_bytes(*osd)).sum() }
    }

    /// Returns whether the run allows these OSDs to be in progress together (`--in-parallel`).
    pub fn allows(&self, osds: &[OsdId]) -> bool {
        let of_these: Option<u64> = osds.iter().map(|osd| self.view.used_bytes(*osd)).sum();
        let bytes = of_these.map(|of_these| (of_these, self.bytes_of_all));
        passes(Guard::BatchShare, self.view.policy.in_parallel.allows(osds.len(), bytes))
    }
}

/// Returns how many OSDs of a host the run may have in progress together, as far as their data decides.
pub fn most(view: View<'_>) -> usize {
    let share = Share::of(view);
    let mut hosts: BTreeMap<Option<&String>, Vec<OsdId>> = BTreeMap::new();
    for (osd, _) in classify::classify(view.seen).into_iter().filter(|(_, class)| class.migrates().is_some())
    {
        hosts.entry(view.slot(osd).and_then(|slot| slot.crush.as_ref()?.host())).or_default().push(osd);
    }
    let of_host = |mut osds: Vec<OsdId>| {
        osds.sort_by_key(|osd| view.used_bytes(*osd));
        (1..=osds.len().min(MAX_OPEN))
            .take_while(|count| share.allows(osds.get(..*count).unwrap_or(&osds)))
            .count()
    };
    hosts.into_values().map(of_host).max().unwrap_or_default()
}

/// Returns the kind of a migration, as the ledger notes it when the first OSD of the kind is finished.
pub fn kind(class: &Class, target: &Layout) -> String {
    format!("{class} to {target}")
}

/// Returns whether OSDs of a kind may be migrated in parallel.
///
/// The run has migrated one of the kind alone, and that one is still up after the time that the run allows it
/// to fail in.
pub fn is_tried(kind: &str, view: View<'_>) -> bool {
    let has_soaked =
        |at: DateTime<Utc>| passes(Guard::CanarySoaks, view.seen.at - at >= view.policy.limits.soak);
    passes(Guard::CanaryFirst, tried_at(kind, view).is_some_and(has_soaked))
}

/// Notes that the run has finished an OSD, unless an OSD of its kind that was finished before is up.
pub fn note_tried(record: &Record, run: &mut Run, view: View<'_>) {
    let kind = kind(&record.class, &record.target);
    if tried_at(&kind, view).is_none() {
        run.note_tried(kind, record.osd, &view.policy.run, view.seen.at);
    }
}

/// Returns when the run tried a kind; `None` if the OSD with which it did so is not up.
///
/// A ledger of an earlier version does not name the OSD.
fn tried_at(kind: &str, view: View<'_>) -> Option<DateTime<Utc>> {
    let (at, osd) = view.ledger.run.tried_by(&view.policy.run, kind)?;
    osd.is_none_or(|osd| view.slot(osd).is_some_and(|slot| slot.up)).then_some(at)
}
