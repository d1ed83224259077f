//! Order in which OSDs are migrated.

use crate::domain::classify::{self, Class};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::view::View;

/// Returns the selected OSDs without a record that would be migrated by their class, in order: one failure
/// domain (host) after the other.
///
/// `is_meant`: whether to consider an OSD. The class of no other one is computed.
pub(super) fn legacy(view: View<'_>, is_meant: impl Fn(OsdId) -> bool) -> Vec<(OsdId, Class)> {
    let is_free = |osd: OsdId| !view.ledger.records.contains_key(&osd) && view.selects(osd);
    let slots = view.seen.ceph.slots.iter().filter(|(osd, _)| is_meant(**osd) && is_free(**osd));
    let classes = classify::classes(slots, view.seen);
    let mut found: Vec<_> = classes.filter(|(_, class)| class.migrates().is_some()).collect();
    found.sort_by_cached_key(|(osd, _)| (host_of(*osd, view.seen), *osd));
    found
}

/// Returns the OSD's host in CRUSH.
pub fn host_of(osd: OsdId, seen: &Observation) -> Option<String> {
    seen.ceph.slots.get(&osd)?.crush.as_ref()?.host().cloned()
}
