//! Gates of an OSD that is emptied before its stop: it is marked out, and serves until no PG needs it.

use super::Reason;
use super::answer::{Gate, first_not_open, shut_if};
use super::clean::{has_all_replicas, state_text};
use super::data::complete_and_fresh;
use crate::domain::observation::{Ceph, Emptiable, Observation, Pg, Slot};
use crate::domain::osd::{OsdId, PgId};
use std::collections::BTreeSet;

/// Returns the gate that is open if each PG of the OSD finds another OSD, with space for it.
pub fn emptiable(osd: OsdId, seen: &Observation) -> Gate {
    match seen.ceph.emptiable.get(&osd) {
        Some(Emptiable::Yes { .. }) => Gate::Open,
        Some(Emptiable::No(why)) => Gate::Shut(Reason::CannotBeEmptied { osd, why: why.clone() }),
        Some(Emptiable::Unknown(why)) => {
            Gate::Unknown(Reason::EmptyingUnknown { osd, why: Some(why.clone()) })
        }
        None => Gate::Unknown(Reason::EmptyingUnknown { osd, why: None }),
    }
    .guarded()
}

/// Returns the gate that is open if no PG needs the OSD any more.
///
/// `osd safe-to-destroy` alone does not say that: right after `osd out` it answers yes while PGs are peering
/// and nothing has moved (16.2.15, 4 of 21 times). So no PG may name the OSD, and each PG must have all its
/// replicas without it. CRUSH must also place no data on it: statistics lag, the osdmap does not.
pub fn emptied(osd: OsdId, ceph: &Ceph) -> Gate {
    let needs = ceph.pgs.iter().find(|(_, pg)| {
        let names = pg.is_on(osd);
        names || !has_all_replicas(pg, ceph)
    });
    first_not_open([
        still_out(osd, ceph),
        needs.map_or(Gate::Open, |(id, pg)| {
            Gate::Shut(Reason::StillNeeded { osd, pg: *id, state: state_text(pg) })
        }),
        complete_and_fresh(false, ceph),
    ])
}

/// States in which a PG names no OSD that it leaves, although data of it may be on that OSD.
///
/// While a PG peers, its acting set is where CRUSH places it now. Only then it asks the mons to let the
/// former OSDs serve, until the new ones have the data (`pg_temp`).
const UNPLACED: [&str; 4] = ["unknown", "stale", "peering", "activating"];

/// Returns those of these PGs whose OSDs are not known now.
pub fn peering(pgs: &BTreeSet<PgId>, ceph: &Ceph) -> BTreeSet<PgId> {
    let is_unplaced = |pg: &Pg| UNPLACED.iter().any(|word| pg.state.contains(*word));
    let known = |id: &&PgId| ceph.pgs.get(id).is_some_and(is_unplaced);
    pgs.iter().filter(known).copied().collect()
}

/// Returns the gate that is open if CRUSH places no data on an emptied OSD: it is out, or has CRUSH weight 0.
///
/// If another client changed that, PGs map to it again, and soon move.
pub(super) fn still_out(osd: OsdId, ceph: &Ceph) -> Gate {
    shut_if(ceph.slots.get(&osd).is_some_and(Slot::gets_data), || Reason::MarkedIn { osd })
}

/// Returns the gate that is open if Ceph answers that the data of an OSD is not needed.
pub fn safe_to_destroy(osd: OsdId, seen: &Observation) -> Gate {
    match seen.ceph.safe_to_destroy.get(&osd) {
        Some(true) => Gate::Open,
        Some(false) => Gate::Unknown(Reason::NotSafeToDestroy { osd }),
        None => Gate::Unknown(Reason::NotAsked),
    }
}
