//! A sick OSD next to a healthy one.

use osd_migrate::domain::next::{Next, Summary};
use osd_migrate::domain::osd::OsdId;

use crate::support::build::{BY_HAND, FILESTORE, World, members, node_of, prepare, states};

/// Two legacy OSDs on different hosts; the first of them is the sick one.
pub(super) const SICK: OsdId = BY_HAND;
pub(super) const HEALTHY: OsdId = FILESTORE;

/// Changes the sick OSD to one that died long ago: down, out, and Ceph has recovered without it.
pub(super) fn dead(w: &mut World) {
    let slot = w.slot(SICK);
    (slot.up, slot.is_in) = (false, false);
    for n in (0..8).filter(|n| members(*n).contains(&SICK)) {
        let others = w.pg(n).up.iter().copied().filter(|osd| *osd != SICK).collect();
        let pg = w.pg(n);
        (pg.up, pg.state) = (others, states("active+clean"));
        let free = (1..6).map(OsdId).find(|osd| !pg.up.contains(osd)).unwrap();
        pg.up.insert(free);
        pg.acting = pg.up.clone();
    }
}

pub(super) fn cordoned(w: &mut World) {
    w.seen.kube.nodes.get_mut(&node_of(SICK)).unwrap().cordoned = true;
}

pub(super) fn not_ready(w: &mut World) {
    w.seen.kube.nodes.get_mut(&node_of(SICK)).unwrap().ready = false;
}

/// Lets a Job of Rook hang on the node of the sick OSD.
pub(super) fn prepared_by_rook(w: &mut World) {
    w.seen.kube.rook_prepares.push(prepare(Some(&node_of(SICK))));
}

pub(super) fn ended(next: &Next) -> &Summary {
    match next {
        Next::Finished(summary) => summary,
        other => panic!("{other:#?}"),
    }
}
