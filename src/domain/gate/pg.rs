//! What a PG, and the pool that it belongs to, say without any gate.

use super::Reason;
use crate::domain::guard::{Guard, passes};
use crate::domain::observation::{Ceph, Pg, Pool};
use crate::domain::osd::PgId;

/// Returns the reason that the statistics of a PG are older than the last change of its OSDs, if they are.
pub(super) fn old_statistics((id, pg): (&PgId, &Pg), ceph: &Ceph) -> Option<Reason> {
    let needed = pg.last_change(&ceph.slots);
    let old = || Reason::StatisticsOld { pg: *id, reported: pg.reported_epoch, needed };
    (pg.reported_epoch < needed).then(old)
}

/// Returns whether CRUSH finds fewer OSDs for a PG than its pool's size.
pub fn is_short(pg: &Pg, ceph: &Ceph) -> bool {
    (pg.up.len() as u64) < size_of(pg, ceph)
}

/// Returns the number of replicas or chunks of a PG; 0 if its pool is not known.
fn size_of(pg: &Pg, ceph: &Ceph) -> u64 {
    ceph.pools.get(&pg.pool).map_or(0, |pool| u64::from(pool.size))
}

/// Returns whether a pool without this OSD survives one more loss.
///
/// Two complete replicas must remain, or one chunk more than the data needs.
pub(super) fn leaves_redundancy(pool: &Pool) -> bool {
    let precondition = match pool.data_chunks {
        None => pool.size >= 3,
        Some(data_chunks) => {
            pool.size >= data_chunks.saturating_add(2) && pool.any_losses.is_none_or(|losses| losses >= 2)
        }
    };
    passes(Guard::Redundancy, precondition)
}
