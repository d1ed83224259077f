//! Location of data, and what the mgr knows of it.

use std::collections::BTreeSet;

use crate::domain::forecast::is_known;
use crate::domain::gate::names;
use crate::domain::observation::{Emptiable, OkToStop, Pg, Pool, Slot};
use crate::domain::osd::{OsdFsid, OsdId, PgId, Weight};
use crate::sim::world::Placement;
use crate::sim::world::World;

impl World {
    /// Returns the OSDs that should have a PG now: up, in, with a place in CRUSH.
    ///
    /// `pg-upmap-items` replaces one OSD by another. Destroy and `osd new` keep the upmap (observed on
    /// 16.2.15).
    pub fn up_set(&self, pg: &PgId) -> BTreeSet<OsdId> {
        self.placements.get(pg).map_or_else(BTreeSet::new, |placement| self.up_of(pg, placement))
    }

    fn up_of(&self, pg: &PgId, placement: &Placement) -> BTreeSet<OsdId> {
        let is_up = |osd: &OsdId| self.ceph.slots.get(osd).is_some_and(|slot| slot.up);
        self.mapped(pg, placement).filter(is_up).collect()
    }

    /// Returns the OSDs that CRUSH and upmaps give a PG, which may be down.
    pub fn crush_set(&self, pg: &PgId) -> BTreeSet<OsdId> {
        let Some(placement) = self.placements.get(pg) else { return BTreeSet::new() };
        self.mapped(pg, placement).collect()
    }

    /// Returns the OSDs that CRUSH chooses for a PG, after its upmaps.
    fn mapped(&self, pg: &PgId, placement: &Placement) -> impl Iterator<Item = OsdId> {
        let mappings = self.ceph.upmaps.iter().filter(move |upmap| upmap.pg == *pg).flat_map(|u| &u.mappings);
        let mapped = move |osd| mappings.clone().find(|(from, _)| *from == osd).map_or(osd, |(_, to)| *to);
        self.chosen(placement).into_iter().map(mapped).filter(|osd| self.is_chosen(*osd))
    }

    /// Returns whether CRUSH chooses an OSD, which may be down.
    fn is_chosen(&self, osd: OsdId) -> bool {
        self.ceph.slots.get(&osd).is_some_and(Slot::gets_data)
    }

    /// Returns the OSDs that CRUSH chooses for a PG: another one in place of each that is out or gone.
    fn chosen(&self, placement: &Placement) -> Vec<OsdId> {
        let mut chosen: Vec<OsdId> =
            placement.home.iter().copied().filter(|osd| self.is_chosen(*osd)).collect();
        for osd in &placement.spare {
            if chosen.len() < placement.home.len() && self.is_chosen(*osd) && !chosen.contains(osd) {
                chosen.push(*osd);
            }
        }
        chosen
    }

    /// Returns whether each PG of an OSD finds another OSD if this one is marked out.
    pub fn emptiable(&self, osd: OsdId) -> Emptiable {
        let mut without = self.clone();
        without.osd_out(osd);
        self.finds_places(&osd.to_string(), &without)
    }

    /// Returns whether each PG of these OSDs finds other OSDs if they get CRUSH weight 0.
    pub fn removable(&self, osds: &BTreeSet<OsdId>) -> Emptiable {
        let mut without = self.clone();
        for osd in osds {
            without.crush_reweight(*osd, Weight(0));
        }
        self.finds_places(&names(osds), &without)
    }

    fn finds_places(&self, osds: &str, without: &Self) -> Emptiable {
        let is_short = |pg: &&PgId| without.up_set(pg).len() < self.up_set(pg).len();
        let is_unknown = |pg: &PgId| {
            let now = self.up_set(pg);
            let known = self.ceph.pgs.get(pg);
            without.up_set(pg) != now && known.is_some_and(|known| !is_known(&now, known, &self.ceph))
        };
        match self.placements.keys().find(is_short) {
            Some(pg) => Emptiable::No(format!("without {osds}, PG {pg} finds too few OSDs")),
            None if self.placements.keys().any(is_unknown) => {
                Emptiable::Unknown("statistics are older than the last start of an OSD".to_owned())
            }
            None if self.noise.no_space => {
                Emptiable::No(format!("without {osds}, another OSD would be full"))
            }
            None => Emptiable::Yes { moved_bytes: 0, fullest: None },
        }
    }

    /// Returns the OSDs of the up set whose store is complete.
    pub fn complete_set(&self, pg: &PgId) -> BTreeSet<OsdId> {
        let Some(placement) = self.placements.get(pg) else { return BTreeSet::new() };
        self.complete_of(placement, &self.up_of(pg, placement))
    }

    fn complete_of(&self, placement: &Placement, up: &BTreeSet<OsdId>) -> BTreeSet<OsdId> {
        // An empty PG is complete everywhere.
        let complete = |osd: &&OsdId| {
            placement.objects == 0
                || self.serving_fsid(**osd).is_some_and(|fsid| placement.complete.contains(&fsid))
        };
        up.iter().filter(complete).copied().collect()
    }

    /// Returns the OSDs that serve a PG: the complete ones of its up set.
    ///
    /// If CRUSH has just moved a replica, the complete store that it moves away from still serves until the
    /// new one has all objects (`pg_temp`).
    fn acting_of(&self, placement: &Placement, up: &BTreeSet<OsdId>) -> BTreeSet<OsdId> {
        let mut acting = self.complete_of(placement, up);
        let size = self.pool_of(placement).map_or(0, |pool| pool.size as usize);
        if up.len() < size {
            return acting;
        }
        let misplaced = |(osd, slot): (&OsdId, &Slot)| {
            let serves = slot.up && slot.fsid.is_some_and(|fsid| placement.complete.contains(&fsid));
            (serves && !up.contains(osd)).then_some(*osd)
        };
        let mut orphans = self.ceph.slots.iter().filter_map(misplaced);
        while acting.len() < size
            && let Some(osd) = orphans.next()
        {
            acting.insert(osd);
        }
        acting
    }

    fn serving_fsid(&self, osd: OsdId) -> Option<OsdFsid> {
        self.ceph.slots.get(&osd).filter(|slot| slot.up).and_then(|slot| slot.fsid)
    }

    fn pool_of(&self, placement: &Placement) -> Option<&Pool> {
        self.ceph.pools.get(&placement.pool)
    }

    /// Returns what the PG's primary would report now.
    ///
    /// The states are those observed on 16.2.15 from stop to clean.
    pub fn true_pg(&self, pg: &PgId) -> Option<Pg> {
        let placement = self.placements.get(pg)?;
        let pool = self.pool_of(placement)?;
        let up = self.up_of(pg, placement);
        let complete = self.acting_of(placement, &up);
        let lacking = u64::from(pool.size).saturating_sub(complete.len() as u64);
        let serves = complete.len() as u64 >= u64::from(pool.min_size);
        let whole = up.len() as u64 >= u64::from(pool.size);
        let moves = up.difference(&complete).count() as u64;
        let state = match (placement.peered, serves, lacking) {
            (false, _, _) => "peering",
            (true, true, 0) if moves > 0 => "active+remapped+backfilling",
            (true, true, 0) => "active+clean",
            (true, true, _) if whole => "active+undersized+degraded+remapped+backfilling",
            (true, true, _) => "active+undersized+degraded",
            (true, false, _) => "undersized+degraded+peered",
        };
        Some(Pg {
            pool: placement.pool,
            state: self.noise.state_of(pg, state.split('+').map(str::to_owned).collect()).into(),
            acting: if placement.peered { complete } else { up.clone() },
            up,
            reported_epoch: placement.changed,
            objects: placement.objects,
            degraded: lacking * placement.objects,
            misplaced: if lacking == 0 { moves * placement.objects } else { 0 },
            bytes: placement.bytes,
        })
    }

    /// Returns the PGs of which the mgr has old statistics: by default it receives them once in 5 s
    /// (`mgr_stats_period`; up to 7 s observed).
    pub fn lagging(&self) -> Vec<PgId> {
        let is_old = |pg: &&PgId| self.true_pg(pg).as_ref() != self.ceph.pgs.get(*pg);
        let receives = !self.noise.mgr_away;
        self.placements.keys().filter(|pg| receives && is_old(pg)).copied().collect()
    }

    /// Lets the mgr receive the statistics of a PG.
    pub(in crate::sim) fn report_pg(&mut self, pg: &PgId) {
        if let Some(now) = self.true_pg(pg) {
            self.ceph.pgs.insert(*pg, now);
        }
    }

    /// Makes PGs peer again after an OSD in their sets came or went.
    pub(super) fn repeer(&mut self, osd: OsdId) {
        let epoch = self.ceph.epoch;
        let upmaps = self.ceph.upmaps.clone();
        for (id, placement) in &mut self.placements {
            let mapped = upmaps.iter().filter(|upmap| upmap.pg == *id).flat_map(|upmap| &upmap.mappings);
            let named = placement.home.contains(&osd) || placement.spare.contains(&osd);
            let concerned = named || mapped.clone().any(|(_, to)| *to == osd);
            if concerned {
                (placement.peered, placement.changed) = (false, epoch);
            }
        }
    }

    /// Doubles the number of PGs of a pool.
    ///
    /// Each OSD splits its own part of a PG. An OSD that is down does so when it boots. All PGs of the pool
    /// peer again.
    pub(super) fn split(&mut self, pool: u64) {
        self.ceph.epoch.0 += 1;
        let epoch = self.ceph.epoch;
        let Some(shape) = self.ceph.pools.get_mut(&pool) else { return };
        let pg_num = shape.pg_num;
        shape.pg_num *= 2;
        let mut parents = Vec::new();
        for (id, placement) in self.placements.iter_mut().filter(|(_, placement)| placement.pool == pool) {
            (placement.peered, placement.changed) = (false, epoch);
            placement.bytes /= 2;
            placement.objects = placement.objects.div_ceil(2);
            parents.push((*id, placement.clone()));
        }
        for (id, placement) in parents {
            self.placements.insert(PgId { number: id.number + pg_num, ..id }, placement);
        }
    }

    /// Lets CRUSH place a PG on the OSDs of the first PG. Its data stays on those that have it.
    ///
    /// The mgr knows at once: a change right before a record closes is no part of the simulation.
    pub(super) fn place_as_first(&mut self, pg: &PgId) {
        self.ceph.epoch.0 += 1;
        let epoch = self.ceph.epoch;
        let Some(home) = self.placements.values().next().map(|first| first.home.clone()) else { return };
        if let Some(placement) = self.placements.get_mut(pg) {
            (placement.home, placement.peered, placement.changed) = (home, false, epoch);
        }
        self.peer(pg);
        self.report_pg(pg);
    }

    /// Creates a pool with one PG, which CRUSH places as the first PG of the cluster.
    pub(super) fn create_pool(&mut self) {
        self.ceph.epoch.0 += 1;
        let (Some((first, pool)), Some(home)) =
            (self.ceph.pools.first_key_value(), self.placements.values().next())
        else {
            return;
        };
        let id = self.ceph.pools.keys().last().unwrap_or(first) + 1;
        let pool = Pool { name: format!("pool{id}"), pg_num: 1, ..pool.clone() };
        let empty = Placement {
            pool: id,
            peered: false,
            changed: self.ceph.epoch,
            objects: 0,
            bytes: 0,
            complete: BTreeSet::new(),
            home: home.home.clone(),
            spare: home.spare.clone(),
        };
        self.ceph.pools.insert(id, pool);
        self.placements.insert(PgId { pool: id, number: 0 }, empty);
    }

    /// Lets a PG's OSDs agree.
    ///
    /// From then on clients write, if enough replicas are complete: an absent store falls behind.
    pub(super) fn peer(&mut self, pg: &PgId) {
        let Some(placement) = self.placements.get(pg) else { return };
        let complete = self.acting_of(placement, &self.up_of(pg, placement));
        let min_size = self.pool_of(placement).map_or(u32::MAX, |pool| pool.min_size);
        let present: BTreeSet<OsdFsid> = complete.iter().filter_map(|osd| self.serving_fsid(*osd)).collect();
        if let Some(placement) = self.placements.get_mut(pg) {
            placement.peered = true;
            if complete.len() as u64 >= u64::from(min_size) {
                placement.complete = present;
            }
        }
    }

    /// Returns the PGs that an OSD should serve without having all of their objects yet, and that can be
    /// backfilled.
    pub fn to_fill(&self) -> Vec<(PgId, OsdId)> {
        let mut found = Vec::new();
        for (id, placement) in self.placements.iter().filter(|(_, placement)| placement.peered) {
            let up = self.up_of(id, placement);
            let complete = self.acting_of(placement, &up);
            let min_size = self.pool_of(placement).map_or(u32::MAX, |pool| pool.min_size);
            if complete.len() as u64 >= u64::from(min_size) {
                found.extend(up.difference(&complete).map(|osd| (*id, *osd)));
            }
        }
        found
    }

    /// Completes backfill or recovery of one PG onto one OSD.
    pub(super) fn fill(&mut self, pg: &PgId, osd: OsdId) {
        let epoch = self.ceph.epoch;
        if let (Some(fsid), Some(placement)) = (self.serving_fsid(osd), self.placements.get_mut(pg)) {
            placement.complete.insert(fsid);
            placement.changed = epoch;
        }
    }

    /// Removes a store.
    pub(super) fn forget_store(&mut self, fsid: OsdFsid) {
        for placement in self.placements.values_mut() {
            placement.complete.remove(&fsid);
        }
        self.pvcs.stores.remove(&fsid);
    }

    /// Answers `osd ok-to-stop` as the mgr computes it from its statistics (16.2.15, DaemonServer).
    ///
    /// Each PG that acts on one of the OSDs must be active, and its other acting OSDs (if it is degraded:
    /// those that miss nothing) must be at least `min_size`. An unknown id is ok to stop.
    pub fn ok_to_stop(&self, osds: &BTreeSet<OsdId>) -> OkToStop {
        let bad = |pg: &Pg| {
            if pg.acting.is_disjoint(osds) {
                return false;
            }
            let left = pg.acting.difference(osds).count() as u64;
            let min_size = self.ceph.pools.get(&pg.pool).map_or(u64::MAX, |pool| u64::from(pool.min_size));
            !pg.state.contains("active") || left < min_size
        };
        let bad_pgs = u32::try_from(self.ceph.pgs.values().filter(|pg| bad(pg)).count()).unwrap_or(u32::MAX);
        OkToStop { ok: bad_pgs == 0, bad_pgs }
    }

    /// Answers `osd safe-to-destroy` (16.2.15): never true while PGs map to the OSD, so it is no gate for a
    /// rebuild in place.
    ///
    /// An unknown id is safe to destroy. Of an OSD that is up and out, the mgr forgets what it stores.
    pub fn safe_to_destroy(&self, osd: OsdId) -> bool {
        let maps = |pg: &Pg| pg.is_on(osd);
        let is_known = |slot: &Slot| slot.is_in || !slot.up;
        let passes =
            |slot: &Slot| is_known(slot) && slot.fsid.is_some_and(|fsid| self.disk_of(fsid).is_some());
        let is_clean = |pg: &Pg| pg.state.contains("clean");
        let stored = self.ceph.slots.get(&osd).is_some_and(passes) && !self.ceph.pgs.values().all(is_clean);
        !self.ceph.slots.contains_key(&osd) || !(self.ceph.pgs.values().any(maps) || stored)
    }
}
