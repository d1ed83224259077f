//! What a changed placement means for each OSD.

use std::collections::{BTreeMap, BTreeSet};

use super::obstacle::Obstacle;
use super::placement::{Move, Placement};
use super::remark::Remark;
use super::space::Space;
use crate::domain::guard::{Guard, passes};
use crate::domain::observation::{Ceph, Emptiable, Pg, last_change};
use crate::domain::osd::{Epoch, OsdId, PgId};

/// Clients may write to a PG while it moves: a tenth more than it has now.
const MARGIN_TENTHS: u64 = 11;

/// Filestore needs a fifth more than its objects, for attributes and the unused end of each file's last
/// block.
const FILESTORE_PART: u64 = 5;

/// Forecast of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// Epoch of the osdmap.
    pub epoch: Epoch,
    /// OSDs that would be removed.
    pub without: BTreeSet<OsdId>,
    /// Number of PGs whose placement changes.
    pub pgs: usize,
    /// Bytes that are copied.
    pub moved_bytes: u64,
    /// Bytes that the removed OSDs have, of data and omap.
    pub held_bytes: u64,
    /// Changes of the OSDs that get or lose PGs.
    pub osds: BTreeMap<OsdId, Change>,
    /// PGs that are not active and clean now. The forecast assumes that they will be.
    pub unclean: usize,
    /// Reasons against the removal.
    pub obstacles: BTreeSet<Obstacle>,
    /// Consequences that are no reason against the removal.
    pub remarks: BTreeSet<Remark>,
}

/// Change of an OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// PGs that it has now.
    pub pgs: usize,
    /// PGs that it gets.
    pub gains: usize,
    /// PGs that leave it.
    pub loses: usize,
    /// Size in bytes; 0 if unknown.
    pub total_bytes: u64,
    /// Bytes used now.
    pub used_bytes: u64,
    /// Bytes that it gets at the most.
    pub in_bytes: u64,
    /// Bytes that leave it.
    pub out_bytes: u64,
}

impl Change {
    /// Returns the number of PGs at the highest: none has left the OSD yet.
    pub fn peak_pgs(&self) -> usize {
        self.pgs + self.gains
    }

    /// Returns the bytes used at the highest: nothing has left the OSD yet.
    pub fn peak_bytes(&self) -> u64 {
        self.used_bytes.saturating_add(self.in_bytes)
    }

    /// Returns the bytes used at the end.
    pub fn end_bytes(&self) -> u64 {
        self.peak_bytes().saturating_sub(self.out_bytes)
    }

    /// Returns bytes in percent of the size, rounded up; 0 if the size is unknown.
    pub fn percent(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(100).checked_div(self.total_bytes).map_or(0, |percent| {
            percent + u64::from(!bytes.saturating_mul(100).is_multiple_of(self.total_bytes))
        })
    }
}

impl Forecast {
    /// Returns whether the OSDs can be emptied now.
    ///
    /// Space is only judged by what Ceph can tell now. Missing statistics and merging PGs pass by themselves.
    pub fn emptiable(&self) -> Emptiable {
        let (passing, lasting): (Vec<_>, Vec<_>) =
            self.obstacles.iter().partition(|obstacle| obstacle.passes_by_itself());
        if let Some(obstacle) = lasting.first() {
            return Emptiable::No(obstacle.to_string());
        }
        if let Some(obstacle) = passing.first() {
            return Emptiable::Unknown(obstacle.to_string());
        }
        let gets = self.osds.iter().filter(|(_, change)| change.gains > 0);
        let fullest = gets.map(|(osd, change)| (change.percent(change.peak_bytes()), *osd)).max();
        let fullest = fullest.map(|(percent, osd)| (osd, percent));
        Emptiable::Yes { moved_bytes: self.moved_bytes, fullest }
    }
}

/// Returns the forecast for a changed placement.
pub fn forecast(placement: &Placement, space: &Space, ceph: &Ceph) -> Forecast {
    let shares = Shares::of(ceph, space);
    let mut changes: BTreeMap<OsdId, Change> = BTreeMap::new();
    let mut moved_bytes: u64 = 0;
    let moves = with_pending(placement, ceph);
    for (pg, moved) in &moves {
        let largest = moved.now.iter().map(|osd| shares.of_pg(pg, *osd, ceph)).max().unwrap_or_default();
        for osd in moved.to() {
            let change = changes.entry(osd).or_default();
            change.gains += 1;
            change.in_bytes = change.in_bytes.saturating_add(largest / 10 * MARGIN_TENTHS);
            moved_bytes = moved_bytes.saturating_add(largest);
        }
        for osd in moved.from() {
            let change = changes.entry(osd).or_default();
            change.loses += 1;
            change.out_bytes = change.out_bytes.saturating_add(shares.of_pg(pg, osd, ceph));
        }
    }
    for (osd, change) in &mut changes {
        let known = space.osds.get(osd).copied().unwrap_or_default();
        (change.total_bytes, change.used_bytes) = (known.total_bytes, known.used_bytes);
        change.pgs = shares.pgs.get(osd).copied().unwrap_or_default();
    }
    let held = placement.without.iter().map(|osd| shares.of_osd(*osd));
    Forecast {
        epoch: placement.epoch,
        without: placement.without.clone(),
        pgs: moves.len(),
        moved_bytes,
        held_bytes: held.sum(),
        unclean: ceph.pgs.values().filter(|pg| !is_clean(pg)).count(),
        obstacles: obstacles(placement, &changes, space, ceph),
        remarks: many_pgs(&changes, space).into_iter().collect(),
        osds: changes,
    }
}

/// Returns the moves of PGs from where their data is now: a PG that moves already has the rest of its way,
/// too.
///
/// So an OSD that gets data now, for another OSD that is emptied, has space for both.
fn with_pending(placement: &Placement, ceph: &Ceph) -> BTreeMap<PgId, Move> {
    let mut moves = placement.moves.clone();
    let pending = ceph.pgs.iter().filter(|(_, pg)| pg.state.contains("remapped") && pg.up != pg.acting);
    for (id, pg) in pending {
        let entry = moves.entry(*id);
        let way = entry.or_insert_with(|| Move { now: pg.up.clone(), then: pg.up.clone() });
        way.now.clone_from(&pg.acting);
    }
    moves
}

fn is_clean(pg: &Pg) -> bool {
    pg.state.contains("active") && pg.state.contains("clean")
}

/// Data of each OSD, shared out over its PGs by their bytes.
///
/// So what allocation wastes counts, too. Measured on 16.2.15: within 1 MiB an OSD.
struct Shares<'a> {
    space: &'a Space,
    /// Bytes of all PGs that an OSD serves, by the PGs' own counts.
    sums: BTreeMap<OsdId, u64>,
    /// Number of PGs that an OSD serves, or is to have.
    pgs: BTreeMap<OsdId, usize>,
}

impl<'a> Shares<'a> {
    fn of(ceph: &Ceph, space: &'a Space) -> Self {
        let (mut sums, mut pgs) = (BTreeMap::new(), BTreeMap::new());
        for pg in ceph.pgs.values() {
            for osd in &pg.acting {
                let sum: &mut u64 = sums.entry(*osd).or_default();
                *sum = sum.saturating_add(pg.bytes_on_each(&ceph.pools));
            }
            for osd in pg.up.union(&pg.acting) {
                *pgs.entry(*osd).or_default() += 1;
            }
        }
        Self { space, sums, pgs }
    }

    /// Returns the bytes of a PG on an OSD.
    fn of_pg(&self, pg: &PgId, osd: OsdId, ceph: &Ceph) -> u64 {
        let (Some(pg), Some(sum)) = (ceph.pgs.get(pg), self.sums.get(&osd)) else { return 0 };
        let share = u128::from(self.of_osd(osd)) * u128::from(pg.bytes_on_each(&ceph.pools));
        share.checked_div(u128::from(*sum)).and_then(|share| u64::try_from(share).ok()).unwrap_or_default()
    }

    /// Returns the bytes on an OSD that move with its PGs.
    ///
    /// If an OSD has no statistics, for example because it is out, only the objects of its PGs are known. The
    /// addition for Filestore is more than BlueStore usually needs.
    fn of_osd(&self, osd: OsdId) -> u64 {
        self.space.osds.get(&osd).and_then(|space| space.data_bytes).unwrap_or_else(|| {
            let objects = self.sums.get(&osd).copied().unwrap_or_default();
            objects.saturating_add(objects / FILESTORE_PART)
        })
    }
}

fn obstacles(
    placement: &Placement,
    changes: &BTreeMap<OsdId, Change>,
    space: &Space,
    ceph: &Ceph,
) -> BTreeSet<Obstacle> {
    let receivers = || changes.iter().filter(|(_, change)| change.gains > 0);
    let down = receivers().filter(|(osd, _)| !ceph.slots.get(osd).is_some_and(|slot| slot.up && slot.is_in));
    let full = receivers().filter_map(|(osd, change)| no_space(placement, *osd, change, space));
    let crowded = receivers().filter(|(_, change)| change.peak_pgs() > space.limits.pgs as usize);
    let changing = ceph.pools.values().filter(|pool| pool.merges || pool.resizes);
    no_placement(placement, ceph)
        .into_iter()
        .chain(full)
        .chain(crowded.map(|(osd, change)| Obstacle::TooManyPgs {
            osd: *osd,
            pgs: change.peak_pgs(),
            limit: space.limits.pgs,
        }))
        .chain(down.map(|(osd, _)| Obstacle::NotUp { osd: *osd }))
        .chain(no_statistics(placement, changes, space, ceph))
        .chain(old_statistics(placement, ceph))
        .chain(changing.map(|pool| Obstacle::PgCountChanging { pool: pool.name.clone() }))
        .collect()
}

/// Returns the OSDs that would get more PGs than an OSD should have, without those that Ceph would refuse.
fn many_pgs(changes: &BTreeMap<OsdId, Change>, space: &Space) -> Option<Remark> {
    let most = space.limits.pgs as usize;
    let wanted = space.limits.wanted_pgs;
    let is_many = |pgs: usize| pgs > wanted as usize && pgs <= most;
    let gets_many = |(_, change): &(&OsdId, &Change)| change.gains > 0 && is_many(change.peak_pgs());
    let osds: BTreeMap<OsdId, usize> =
        changes.iter().filter(gets_many).map(|(osd, change)| (*osd, change.peak_pgs())).collect();
    (!osds.is_empty()).then_some(Remark::ManyPgs { osds, limit: wanted })
}

/// Returns the pools with PGs that find fewer OSDs than they have now, or than their size if they have more.
fn no_placement(placement: &Placement, ceph: &Ceph) -> Vec<Obstacle> {
    let mut short: BTreeMap<u64, usize> = BTreeMap::new();
    for (id, moved) in &placement.moves {
        let size = ceph.pools.get(&id.pool).map_or(usize::MAX, |pool| pool.size as usize);
        // CRUSH may choose an OSD without weight if there is no other one.
        let places = moved.then.difference(&placement.without).count();
        if places < moved.now.len().min(size) {
            *short.entry(id.pool).or_default() += 1;
        }
    }
    let of_pool = |(id, pgs): (u64, usize)| {
        let pool = ceph.pools.get(&id)?;
        Some(Obstacle::NoPlacement {
            without: placement.without.clone(),
            pgs,
            pool: pool.name.clone(),
            copies: pool.size,
            domain: pool.failure_domain.clone(),
        })
    };
    short.into_iter().filter_map(of_pool).collect()
}

/// Returns whether an OSD gets more than it has space for: at the highest over `backfillfull`, which would
/// stop the move, or at the end over `nearfull`.
fn no_space(placement: &Placement, osd: OsdId, change: &Change, space: &Space) -> Option<Obstacle> {
    let limits = [
        (change.peak_bytes(), space.limits.backfillfull, "backfillfull"),
        (change.end_bytes(), space.limits.nearfull, "nearfull"),
    ];
    let over = |(bytes, limit, ratio): (u64, u32, &'static str)| {
        let line = change.total_bytes / 10_000 * u64::from(limit);
        (change.total_bytes > 0 && bytes > line).then(|| Obstacle::NoSpace {
            without: placement.without.clone(),
            osd,
            percent: change.percent(bytes),
            limit: u64::from(limit) / 100,
            ratio,
            bytes: bytes - line,
        })
    };
    limits.into_iter().find_map(over)
}

/// Returns the OSDs and PGs whose bytes are unknown.
///
/// An OSD that is down and leaves has no statistics, and no PG whose bytes would matter. The mgr reports the
/// size 0 for an OSD that is out. Such an OSD gets nothing, and the bytes of PGs that are still on it follow
/// from their objects.
fn no_statistics(
    placement: &Placement,
    changes: &BTreeMap<OsdId, Change>,
    space: &Space,
    ceph: &Ceph,
) -> Option<Obstacle> {
    let is_up = |osd: &&OsdId| ceph.slots.get(osd).is_some_and(|slot| slot.up);
    let is_out = |osd: &OsdId| ceph.slots.get(osd).is_some_and(|slot| !slot.is_in);
    let concerned = changes.keys().chain(placement.without.iter().filter(is_up));
    let is_unknown = |osd: &&OsdId| !space.osds.contains_key(osd) && !is_out(osd);
    let osds: BTreeSet<OsdId> = concerned.filter(is_unknown).copied().collect();
    let pgs = placement.moves.keys().filter(|pg| !ceph.pgs.contains_key(pg)).count();
    (!osds.is_empty() || pgs > 0).then_some(Obstacle::NoStatistics { osds, pgs })
}

/// Returns whether the statistics of a PG show what it lacks on the OSDs that the osdmap gives it now.
///
/// Statistics may be older than the osdmap, but none of these OSDs may have come up or gone down since: the
/// PG may lack what was written meanwhile. The gates know only the OSDs that the statistics name.
pub fn is_known(now: &BTreeSet<OsdId>, known: &Pg, ceph: &Ceph) -> bool {
    passes(Guard::StatisticsOfThisMap, known.reported_epoch >= last_change(now.iter(), &ceph.slots))
}

fn old_statistics(placement: &Placement, ceph: &Ceph) -> Option<Obstacle> {
    let is_old = |(pg, moved): &(&PgId, &Move)| {
        ceph.pgs.get(*pg).is_some_and(|known| !is_known(&moved.now, known, ceph))
    };
    let pgs = placement.moves.iter().filter(is_old).count();
    (pgs > 0).then_some(Obstacle::OldStatistics { pgs })
}
