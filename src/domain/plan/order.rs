//! Order in which OSDs are migrated.

use crate::domain::classify::{self, Class};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::view::View;

/// Returns the selected OSDs without a record that would be migrated by their class, in order: one failure
/// domain (host) after the other.
pub(super) fn legacy(view: View<'_>) -> Vec<(OsdId, Class)> {
    let is_free = |osd: OsdId| view.selects(osd) && !view.ledger.records.contains_key(&osd);
    let mut found: Vec<_> = classify::classify(view.seen)
        .into_iter()
        .filter(|(osd, class)| class.migrates().is_some() && is_free(*osd))
        .collect();
    found.sort_by_cached_key(|(osd, _)| (host_of(*osd, view.seen), *osd));
    found
}

/// Returns the OSD's host in CRUSH.
pub fn host_of(osd: OsdId, seen: &Observation) -> Option<String> {
    seen.ceph.slots.get(&osd)?.crush.as_ref()?.host().cloned()
}
