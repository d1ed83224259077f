//! One look at Ceph: everything a turn needs of mons and mgr.

use std::collections::BTreeMap;

use super::osd_crush_dump::Crush;
use super::osd_dump::OsdMap;
use super::{
    Ceph, CephError, config_key_ls, health, osd_crush_dump, osd_df, osd_metadata, osd_stat, pg_dump, versions,
};
use crate::domain::observation::{self, Metadata, Pg, Pool};
use crate::domain::osd::{OsdId, PgId};

/// Reading both takes milliseconds and the map changes once a second at its busiest: more tries mean that something is wrong.
const TRIES: u32 = 5;

impl Ceph {
    /// Looks. Slots and CRUSH are of one epoch; everything else is read after it. `ok_to_stop` and `auth` are empty: they
    /// are asked for the OSDs that it matters for.
    pub async fn observe(&self) -> Result<observation::Ceph, CephError> {
        let (map, crush) = self.osd_map_with_crush().await?;
        let (metadata, health, releases, used, pgs, encrypted) = tokio::try_join!(
            self.read(osd_metadata::command(), osd_metadata::parse),
            self.read(health::command(), health::parse),
            self.read(versions::command(), versions::parse),
            self.read(osd_df::command(), osd_df::parse),
            self.read(pg_dump::command(), pg_dump::parse),
            self.read(config_key_ls::command(), config_key_ls::parse),
        )?;
        let mut seen = join(map, crush, metadata, &used, pgs);
        for slot in seen.slots.values_mut() {
            slot.dmcrypt_key = slot.fsid.is_some_and(|fsid| encrypted.contains(&fsid));
        }
        Ok(observation::Ceph { health, releases, ..seen })
    }

    /// The CRUSH dump tells no epoch, so the map must be the same before and after it.
    async fn osd_map_with_crush(&self) -> Result<(OsdMap, Crush), CephError> {
        for _ in 0..TRIES {
            let map = self.osd_map().await?;
            let crush = self.read(osd_crush_dump::command(), osd_crush_dump::parse).await?;
            if self.read(osd_stat::command(), osd_stat::parse).await? == map.epoch {
                return Ok((map, crush));
            }
        }
        Err(CephError::Unsettled { tries: TRIES })
    }
}

fn join(
    map: OsdMap,
    mut crush: Crush,
    mut metadata: BTreeMap<OsdId, Metadata>,
    used: &BTreeMap<OsdId, u64>,
    pgs: BTreeMap<PgId, Pg>,
) -> observation::Ceph {
    let OsdMap { fsid, epoch, flags, nearfull_ratio, mut pools, rules, mut slots, upmaps, .. } = map;
    for (osd, slot) in &mut slots {
        slot.crush = crush.items.remove(osd);
        slot.metadata = metadata.remove(osd);
        slot.used_bytes = used.get(osd).copied();
        if slot.metadata.as_ref().is_some_and(|metadata| metadata.store.is_filestore()) {
            slot.used_bytes = slot.used_bytes.map(|used| used.min(explained(*osd, &pools, &pgs)));
        }
    }
    for (id, pool) in &mut pools {
        let domain = rules.get(id).and_then(|rule| crush.failure_domains.get(rule));
        // A pool whose rule is not in the map spreads over nobody knows what: one OSD at a time is the careful reading.
        pool.failure_domain = domain.map_or_else(|| osd_crush_dump::FINEST.to_owned(), Clone::clone);
    }
    observation::Ceph {
        fsid,
        epoch,
        flags,
        health: std::collections::BTreeSet::new(),
        releases: observation::Releases::One,
        nearfull_ratio,
        pools,
        slots,
        pgs,
        upmaps,
        ok_to_stop: BTreeMap::new(),
        auth: BTreeMap::new(),
        bootstrap: None,
    }
}

/// What the PGs on an OSD explain of the bytes used there: their objects, a fifth for attributes, omap and what a file wastes of
/// its last block, and a GiB for maps and logs.
///
/// Filestore tells how full its file system is (`statfs`), and a directory's is the host's own: whatever lies there would count.
fn explained(osd: OsdId, pools: &BTreeMap<u64, Pool>, pgs: &BTreeMap<PgId, Pg>) -> u64 {
    let share = |pg: &Pg| {
        let chunks = pools.get(&pg.pool).and_then(|pool| pool.data_chunks).unwrap_or(1);
        pg.bytes / u64::from(chunks.max(1))
    };
    let is_there = |pg: &&Pg| pg.acting.contains(&osd) || pg.up.contains(&osd);
    let objects: u64 = pgs.values().filter(is_there).map(share).sum();
    objects.saturating_add(objects / 5).saturating_add(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::super::{osd_dump, samples};
    use super::*;

    #[test]
    fn slots_and_pools_are_completed_from_the_other_answers() {
        let metadata = osd_metadata::parse(&samples::answer("16.2.15", "osd-metadata")).unwrap();
        let used = BTreeMap::from([(OsdId(1), 4096)]);
        let (map, crush) = (osd_dump::tests::fine(), osd_crush_dump::tests::fine());
        let seen = join(map, crush, metadata, &used, BTreeMap::new());
        let slot = &seen.slots[&OsdId(1)];
        assert_eq!(slot.crush.as_ref().unwrap().location["host"], "h2");
        assert!(slot.metadata.as_ref().unwrap().store.is_filestore());
        assert_eq!((slot.used_bytes, seen.slots[&OsdId(2)].used_bytes), (Some(4096), None));
        assert_eq!(seen.pools[&2].failure_domain, "host");
    }

    #[test]
    fn what_others_have_in_the_file_system_of_a_filestore_is_not_its_own() {
        let metadata = osd_metadata::parse(&samples::answer("16.2.15", "osd-metadata")).unwrap();
        let osd = |is_filestore: bool| {
            *metadata.iter().find(|(_, metadata)| metadata.store.is_filestore() == is_filestore).unwrap().0
        };
        let (filestore, bluestore) = (osd(true), osd(false));
        let used = BTreeMap::from([(filestore, 500 << 30), (bluestore, 500 << 30)]);
        let (map, crush) = (osd_dump::tests::fine(), osd_crush_dump::tests::fine());
        let mut pgs = pg_dump::parse(&samples::answer("16.2.15", "pg-dump")).unwrap();
        for pg in pgs.values_mut() {
            pg.bytes = 10 << 20;
        }
        let there = pgs.values().filter(|pg| pg.acting.contains(&filestore)).count() as u64;
        assert!(there > 0);
        let objects = there * (10 << 20);
        let seen = join(map, crush, metadata, &used, pgs);
        assert_eq!(seen.slots[&filestore].used_bytes, Some(objects + objects / 5 + (1 << 30)));
        assert_eq!(seen.slots[&bluestore].used_bytes, Some(500 << 30));
    }
}
