//! Observation of Ceph: everything that an iteration needs of mons and mgr.

use std::collections::{BTreeMap, BTreeSet};

use crate::ceph::error::CephError;
use crate::ceph::maps::Maps;
use crate::ceph::osd_crush_dump;
use crate::ceph::osd_df::Usage;
use crate::ceph::osd_dump::OsdMap;
use crate::ceph::session::{Ceph, lock};
use crate::ceph::{config_key_ls, health, osd_df, osd_metadata, versions};
use crate::domain::observation::{self, BackfillFull, Metadata, Pg, Pool, Releases, Slot};
use crate::domain::osd::{OsdFsid, OsdId, PgId};
use crate::domain::shared::Shared;
use crate::memory::{self, Format};

impl Ceph {
    /// Observes Ceph.
    ///
    /// Slots and CRUSH are of one epoch; everything else is read after them. `ok_to_stop` and `auth` are
    /// empty: they are queried separately for the OSDs concerned.
    pub async fn observe(&self) -> Result<observation::Ceph, CephError> {
        let maps = self.osd_map_with_crush().await?;
        let map = &maps.map;
        let pgs: u64 = map.pools.values().map(|pool| u64::from(pool.pg_num)).sum();
        memory::warn_if_short(pgs, Format::Table, &self.namespace);
        let (metadata, health, releases, used, pgs, encrypted) = tokio::try_join!(
            self.metadata(&map.slots),
            self.read(health::command(), health::parse),
            self.read(versions::command(), versions::parse),
            self.read(osd_df::command(), osd_df::parse),
            self.pgs(&map.slots),
            self.read(config_key_ls::command(), config_key_ls::parse),
        )?;
        Ok(join(Parsed { maps, metadata, health, releases, used, pgs, encrypted }))
    }

    /// Reads what the OSDs reported at their last boots, unless that is known.
    async fn metadata(&self, slots: &BTreeMap<OsdId, Slot>) -> Result<BTreeMap<OsdId, Metadata>, CephError> {
        let boots = osd_metadata::boots(slots);
        let kept = lock(&self.kept_metadata).of(&boots);
        if let Some(metadata) = kept {
            return Ok(metadata);
        }
        let metadata = self.read(osd_metadata::command(), osd_metadata::parse).await?;
        lock(&self.kept_metadata).keep(boots, metadata.clone());
        Ok(metadata)
    }

    /// Observes what changes while a run waits: the map, CRUSH, health and PGs.
    ///
    /// The rest is of an earlier observation; `None` if that does not suffice.
    pub async fn observe_partly(
        &self,
        earlier: &observation::Ceph,
    ) -> Result<Option<observation::Ceph>, CephError> {
        let maps = self.osd_map_with_crush().await?;
        let (health, pgs) =
            tokio::try_join!(self.read(health::command(), health::parse), self.pgs_partly(&maps.map.slots))?;
        if is_of(&maps.map, earlier) {
            return Ok(Some(earlier.with(health, pgs)));
        }
        let (metadata, used, encrypted) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let releases = Releases::default(); // of the earlier observation, like the three others
        let now = join(Parsed { maps, metadata, health, releases, used, pgs, encrypted });
        Ok(now.completed_by(earlier))
    }
}

/// Parsed answers of one observation.
pub(super) struct Parsed {
    pub(super) maps: Maps,
    pub(super) metadata: BTreeMap<OsdId, Metadata>,
    pub(super) health: BTreeSet<String>,
    pub(super) releases: Releases,
    pub(super) used: BTreeMap<OsdId, Usage>,
    pub(super) pgs: Shared<BTreeMap<PgId, Pg>>,
    /// OSDs for which the mons keep a dm-crypt key.
    pub(super) encrypted: BTreeSet<OsdFsid>,
}

/// Joins the answers.
///
/// Takes time in proportion to OSDs and PGs.
pub(super) fn join(parsed: Parsed) -> observation::Ceph {
    let Parsed { maps: Maps { map, crush }, mut metadata, health, releases, used, pgs, encrypted } = parsed;
    // The session keeps both.
    let (mut slots, mut pools) = (map.slots.clone(), map.pools.clone());
    for (osd, slot) in &mut slots {
        slot.crush = crush.items.get(osd).cloned();
        if let Some(item) = &slot.crush {
            slot.nodown = map.group_flags.set_on("nodown", item).or(slot.nodown.take());
            slot.noup = map.group_flags.set_on("noup", item).or(slot.noup.take());
        }
        slot.metadata = metadata.remove(osd);
        slot.used_bytes = used.get(osd).map(|usage| usage.bytes);
        slot.dmcrypt_key = slot.fsid.is_some_and(|fsid| encrypted.contains(&fsid));
    }
    for (osd, bytes) in stored_on_filestores(&slots, &pools, &pgs) {
        if let Some(slot) = slots.get_mut(&osd) {
            slot.used_bytes = slot.used_bytes.map(|used| used.min(explained(bytes)));
        }
    }
    for (id, pool) in &mut pools {
        let domain = map.rules.get(id).and_then(|rule| crush.failure_domains.get(rule));
        // If the map does not contain the rule of a pool, the failure domain is unknown. One OSD at a time is
        // the careful assumption.
        pool.failure_domain = domain.map_or_else(|| osd_crush_dump::FINEST.to_owned(), Clone::clone);
    }
    let ratio = map.backfillfull_ratio;
    let full = used.into_iter().filter(|(_, usage)| usage.part >= ratio);
    observation::Ceph {
        fsid: map.fsid,
        epoch: map.epoch,
        flags: map.flags.clone(),
        health,
        releases,
        nearfull_ratio: map.nearfull_ratio,
        backfill_full: BackfillFull { ratio, osds: full.map(|(osd, usage)| (osd, usage.part)).collect() },
        pools: pools.into(),
        slots: slots.into(),
        pgs,
        upmaps: map.upmaps.clone(),
        empty_hosts: crush.empty_hosts.clone(),
        ok_to_stop: BTreeMap::new(),
        auth: BTreeMap::new(),
        bootstrap: None,
        recovery: None,
        commit_latency: None,
        safe_to_destroy: BTreeMap::new(),
        emptiable: BTreeMap::new(),
    }
}

/// Returns whether an observation is of this very map.
///
/// CRUSH belongs to the map. The times since which OSDs are down become known one after the other.
fn is_of(map: &OsdMap, earlier: &observation::Ceph) -> bool {
    let known = map.slots.values().map(|slot| slot.down_since);
    map.epoch == earlier.epoch && known.eq(earlier.slots.values().map(|slot| slot.down_since))
}

/// Sums the bytes of the PGs on each Filestore OSD, in one pass over the PGs.
fn stored_on_filestores(
    slots: &BTreeMap<OsdId, Slot>,
    pools: &BTreeMap<u64, Pool>,
    pgs: &BTreeMap<PgId, Pg>,
) -> BTreeMap<OsdId, u64> {
    let is_filestore = |slot: &Slot| slot.metadata.as_ref().is_some_and(|of| of.store.is_filestore());
    let filestores = slots.iter().filter(|(_, slot)| is_filestore(slot)).map(|(osd, _)| (*osd, 0));
    let mut stored: BTreeMap<OsdId, u64> = filestores.collect();
    if stored.is_empty() {
        return stored;
    }
    for pg in pgs.values() {
        let share = pg.bytes_on_each(pools);
        for osd in pg.acting.union(&pg.up) {
            if let Some(sum) = stored.get_mut(osd) {
                *sum = sum.saturating_add(share);
            }
        }
    }
    stored
}

/// Returns how many used bytes the objects on an OSD explain: the objects, a fifth for attributes, omap and
/// the unused end of each file's last block, and a GiB for maps and logs.
///
/// Filestore reports how full its file system is (`statfs`), and a directory's file system is the host's own:
/// everything else on it would count.
fn explained(objects: u64) -> u64 {
    objects.saturating_add(objects / 5).saturating_add(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::group_flags::GroupFlags;
    use crate::ceph::{osd_dump, pg_dump, samples};

    fn parsed(used: BTreeMap<OsdId, u64>, pgs: BTreeMap<PgId, Pg>) -> Parsed {
        Parsed {
            maps: maps(osd_dump::tests::fine()),
            metadata: osd_metadata::parse(&samples::answer("16.2.15", "osd-metadata")).unwrap(),
            health: BTreeSet::new(),
            releases: Releases::One,
            used: used.into_iter().map(|(osd, bytes)| (osd, Usage { bytes, part: 0 })).collect(),
            pgs: pgs.into(),
            encrypted: BTreeSet::new(),
        }
    }

    fn maps(map: OsdMap) -> Maps {
        Maps { map: map.into(), crush: osd_crush_dump::tests::fine().into() }
    }

    #[test]
    fn partial_observation_of_the_same_osdmap_copies_no_slot() {
        let mut earlier = join(parsed(BTreeMap::new(), BTreeMap::new()));
        let map = osd_dump::tests::fine();
        assert!(is_of(&map, &earlier));
        assert!(!is_of(
            &OsdMap { epoch: crate::domain::osd::Epoch(map.epoch.0 + 1), ..map.clone() },
            &earlier
        ));
        let mut known = map.clone();
        known.slots.get_mut(&OsdId(1)).unwrap().down_since = Some("2026-11-26T12:00:00Z".parse().unwrap());
        assert!(!is_of(&known, &earlier), "a time became known");
        earlier.auth.insert(OsdId(1), true);
        let health: BTreeSet<String> = ["MON_DOWN".to_owned()].into();
        let now = earlier.with(health.clone(), Shared::default());
        assert!(std::ptr::eq(&raw const *now.slots, &raw const *earlier.slots));
        assert!(now.health == health && now.auth.is_empty(), "nothing was asked yet");
    }

    #[test]
    fn osd_slots_and_pools_are_joined_from_several_answers() {
        let seen = join(parsed(BTreeMap::from([(OsdId(1), 4096)]), BTreeMap::new()));
        let slot = &seen.slots[&OsdId(1)];
        assert_eq!(slot.crush.as_ref().unwrap().location["host"], "h2");
        assert!(slot.metadata.as_ref().unwrap().store.is_filestore());
        assert_eq!((slot.used_bytes, seen.slots[&OsdId(2)].used_bytes), (Some(4096), None));
        assert_eq!(seen.pools[&2].failure_domain, "host");
    }

    #[test]
    fn flags_of_crush_nodes_and_device_classes_reach_their_osds() {
        let flags = |name: &str| [(name.to_owned(), ["nodown".to_owned()].into())].into();
        let join_with = |nodes, classes| {
            let mut map = osd_dump::tests::fine();
            map.group_flags = GroupFlags { nodes, classes };
            map.slots.get_mut(&OsdId(0)).unwrap().nodown = Some("osd.0".to_owned());
            join(Parsed { maps: maps(map), ..parsed(BTreeMap::new(), BTreeMap::new()) })
        };
        let of = |seen: &observation::Ceph, osd| seen.slots[&OsdId(osd)].nodown.clone().unwrap_or_default();
        let host = join_with(flags("h2"), BTreeMap::new());
        assert_eq!([0, 1, 2].map(|osd| of(&host, osd)), ["osd.0", "h2", ""]);
        let root = join_with(flags("default"), BTreeMap::new());
        assert_eq!([0, 1].map(|osd| of(&root, osd)), ["default"; 2]);
        let class = root.slots[&OsdId(1)].crush.as_ref().unwrap().device_class.clone().unwrap();
        assert_eq!(of(&join_with(BTreeMap::new(), flags(&class)), 1), class);
        assert!(root.slots.values().all(|slot| slot.noup.is_none()));
    }

    #[test]
    fn osds_at_the_backfillfull_ratio_are_observed_as_full() {
        let mut answers = parsed(BTreeMap::new(), BTreeMap::new());
        let usage = |part| Usage { bytes: 4096, part };
        answers.used = [(OsdId(1), usage(8999)), (OsdId(2), usage(9000)), (OsdId(3), usage(9700))].into();
        let earlier = join(answers);
        let full = BackfillFull { ratio: 9000, osds: [(OsdId(2), 9000), (OsdId(3), 9700)].into() };
        assert_eq!(earlier.backfill_full, full);
        // A partial observation does not ask for the usage.
        let partial = join(parsed(BTreeMap::new(), BTreeMap::new()));
        assert!(partial.backfill_full.osds.is_empty());
        assert_eq!(partial.completed_by(&earlier).unwrap().backfill_full, full);
    }

    #[test]
    fn filestore_usage_excludes_other_data_in_its_file_system() {
        let metadata = osd_metadata::parse(&samples::answer("16.2.15", "osd-metadata")).unwrap();
        let osd = |is_filestore: bool| {
            *metadata.iter().find(|(_, metadata)| metadata.store.is_filestore() == is_filestore).unwrap().0
        };
        let (filestore, bluestore) = (osd(true), osd(false));
        let used = BTreeMap::from([(filestore, 500 << 30), (bluestore, 500 << 30)]);
        let mut pgs = pg_dump::parse(&samples::answer("16.2.15", "pg-dump")).unwrap();
        for pg in pgs.values_mut() {
            pg.bytes = 10 << 20;
        }
        let there = pgs.values().filter(|pg| pg.acting.contains(&filestore)).count() as u64;
        assert!(there > 0);
        let objects = there * (10 << 20);
        let seen = join(parsed(used, pgs));
        assert_eq!(seen.slots[&filestore].used_bytes, Some(objects + objects / 5 + (1 << 30)));
        assert_eq!(seen.slots[&bluestore].used_bytes, Some(500 << 30));
    }

    #[test]
    fn filestore_backfill_target_counts_a_pg_once_by_its_chunk() {
        let chunk = || {
            let mut map = osd_dump::tests::fine();
            map.pools.get_mut(&2).unwrap().data_chunks = Some(2);
            map
        };
        let filestore = OsdId(1);
        let pg = |up: &[u32], acting: &[u32]| Pg {
            pool: 2,
            state: Shared::default(),
            up: up.iter().copied().map(OsdId).collect(),
            acting: acting.iter().copied().map(OsdId).collect(),
            reported_epoch: crate::domain::osd::Epoch(1),
            objects: 1,
            degraded: 0,
            misplaced: 0,
            bytes: 20 << 30,
        };
        let pgs = [("2.0", pg(&[1, 2], &[1, 3])), ("2.1", pg(&[1, 2], &[2, 3])), ("2.2", pg(&[2], &[3]))];
        let pgs: BTreeMap<_, _> = pgs.map(|(id, pg)| (id.parse::<PgId>().unwrap(), pg)).into();
        let used = BTreeMap::from([(filestore, 500 << 30)]);
        let seen = join(Parsed { maps: maps(chunk()), ..parsed(used, pgs) });
        // Two PGs of 20 GiB, half of each in one chunk; a fifth more, and a GiB.
        assert_eq!(seen.slots[&filestore].used_bytes, Some((20 << 30) + (4 << 30) + (1 << 30)));
    }
}
