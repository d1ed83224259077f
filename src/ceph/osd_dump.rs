//! `ceph osd dump`: the osdmap. Slots, pools, flags, upmaps of one epoch.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::command::Command;
use super::{Ceph, CephError};
use crate::domain::observation::{Pool, Slot, SlotState};
use crate::domain::osd::{ClusterFsid, Epoch, OsdFsid, OsdId, PgId, Upmap, Weight};

/// What is used of the osdmap. Slots lack their CRUSH item, metadata and usage, pools their failure domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OsdMap {
    pub(super) fsid: ClusterFsid,
    pub(super) epoch: Epoch,
    pub(super) flags: BTreeSet<String>,
    pub(super) nearfull_ratio: u32,
    pub(super) pools: BTreeMap<u64, Pool>,
    /// CRUSH rule of each pool.
    pub(super) rules: BTreeMap<u64, i64>,
    pub(super) slots: BTreeMap<OsdId, Slot>,
    /// Slots with the flag `new`, be they up or down: their next boot without `noin` sets reweight to 1.0.
    pub(super) marked_new: BTreeSet<OsdId>,
    pub(super) upmaps: Vec<Upmap>,
}

#[derive(Deserialize)]
struct Answer {
    fsid: ClusterFsid,
    epoch: Epoch,
    flags: String,
    nearfull_ratio: f64,
    pools: Vec<PoolEntry>,
    osds: Vec<OsdEntry>,
    pg_upmap_items: Vec<UpmapEntry>,
    erasure_code_profiles: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct PoolEntry {
    pool: u64,
    pool_name: String,
    /// 1 replicated, 3 erasure coded (`pg_pool_t`).
    #[serde(rename = "type")]
    kind: u32,
    size: u32,
    min_size: u32,
    crush_rule: i64,
    pg_num: u32,
    erasure_code_profile: String,
}

#[derive(Deserialize)]
struct OsdEntry {
    osd: OsdId,
    uuid: String,
    up: u8,
    #[serde(rename = "in")]
    is_in: u8,
    weight: f64,
    primary_affinity: f64,
    up_from: Epoch,
    down_at: Epoch,
    state: BTreeSet<String>,
}

#[derive(Deserialize)]
struct UpmapEntry {
    pgid: PgId,
    mappings: Vec<Mapping>,
}

#[derive(Deserialize)]
struct Mapping {
    from: OsdId,
    to: OsdId,
}

pub(super) fn command() -> Command {
    Command::mon("osd dump")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<OsdMap> {
    let answer: Answer = serde_json::from_slice(answer)?;
    let profiles = answer.erasure_code_profiles;
    Ok(OsdMap {
        fsid: answer.fsid,
        epoch: answer.epoch,
        flags: answer.flags.split(',').filter(|flag| !flag.is_empty()).map(str::to_owned).collect(),
        nearfull_ratio: Weight::from_decimal(answer.nearfull_ratio * 10_000.0 / 65_536.0).0,
        rules: answer.pools.iter().map(|pool| (pool.pool, pool.crush_rule)).collect(),
        pools: answer.pools.into_iter().map(|entry| (entry.pool, pool(entry, &profiles))).collect(),
        marked_new: answer.osds.iter().filter(|osd| is_marked_new(osd)).map(|osd| osd.osd).collect(),
        slots: answer.osds.into_iter().map(|entry| (entry.osd, slot(&entry))).collect(),
        upmaps: answer.pg_upmap_items.into_iter().map(upmap).collect(),
    })
}

fn pool(entry: PoolEntry, profiles: &BTreeMap<String, BTreeMap<String, String>>) -> Pool {
    let k = profiles.get(&entry.erasure_code_profile).and_then(|profile| profile.get("k")?.parse().ok());
    Pool {
        name: entry.pool_name,
        pg_num: entry.pg_num,
        size: entry.size,
        min_size: entry.min_size,
        // An unknown k counts as the whole size: no loss is survivable, which is the careful reading.
        data_chunks: (entry.kind != 1).then(|| k.unwrap_or(entry.size)),
        failure_domain: String::new(),
    }
}

fn slot(entry: &OsdEntry) -> Slot {
    let has = |state: &str| entry.state.contains(state);
    Slot {
        state: state(entry),
        fsid: entry.uuid.parse::<OsdFsid>().ok(), // all zeros: none
        up: entry.up != 0,
        is_in: entry.is_in != 0,
        reweight: Weight::from_decimal(entry.weight),
        primary_affinity: Weight::from_decimal(entry.primary_affinity),
        up_from: entry.up_from,
        down_at: entry.down_at,
        noout: has("noout"),
        noin: has("noin"),
        dmcrypt_key: false,
        crush: None,
        metadata: None,
        used_bytes: None,
    }
}

/// The flag `new` says less than its name: it goes when the slot is marked in or reweighted, not when it boots. So it is gone
/// from a reweighted slot that never came up, and still there on one that came up under `noin` (16.2.15).
fn state(entry: &OsdEntry) -> SlotState {
    let never_up = entry.up == 0 && (is_marked_new(entry) || entry.up_from == Epoch(0));
    match (entry.state.contains("destroyed"), never_up) {
        (true, _) => SlotState::Destroyed,
        (false, true) => SlotState::New,
        (false, false) => SlotState::Exists,
    }
}

fn is_marked_new(entry: &OsdEntry) -> bool {
    entry.state.contains("new")
}

fn upmap(entry: UpmapEntry) -> Upmap {
    Upmap { pg: entry.pgid, mappings: entry.mappings.into_iter().map(|m| (m.from, m.to)).collect() }
}

impl Ceph {
    /// The osdmap as of now.
    pub(super) async fn osd_map(&self) -> Result<OsdMap, CephError> {
        self.read(command(), parse).await
    }

    /// The slot as of now; none where the id is absent. What every act looks at right before it is sent.
    pub(super) async fn slot(&self, osd: OsdId) -> Result<Option<Slot>, CephError> {
        Ok(self.osd_map().await?.slots.remove(&osd))
    }
}

/// What was found in a slot, for people.
pub(super) fn describe(slot: Option<&Slot>) -> String {
    let Some(slot) = slot else { return "no such id".to_owned() };
    let state = match slot.state {
        SlotState::Exists => "exists",
        SlotState::New => "new (claimed, never booted)",
        SlotState::Destroyed => "destroyed",
    };
    let fsid = slot.fsid.map_or_else(|| "no fsid".to_owned(), |fsid| format!("fsid {fsid}"));
    format!("{state}, {}, {fsid}", if slot.up { "up" } else { "down" })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    macro_rules! sample {
        ($name:literal) => {
            parse(include_bytes!(concat!("../../tests/suite/fixtures/ceph/16.2.15/osd-dump", $name, ".json")))
                .unwrap()
        };
    }

    pub(crate) fn fine() -> OsdMap {
        sample!("")
    }

    fn osd_1(map: &OsdMap) -> &Slot {
        map.slots.get(&OsdId(1)).unwrap()
    }

    #[test]
    fn a_map_where_all_is_well() {
        let map = fine();
        assert_eq!((map.epoch, map.nearfull_ratio), (Epoch(15), 8500));
        assert_eq!(map.fsid.to_string(), "6a94672f-2736-4a1b-b5c8-51c0e08ed0de");
        assert!(map.flags.contains("sortbitwise"));
        assert_eq!(map.slots.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3].map(OsdId));
        let slot = osd_1(&map);
        assert_eq!((slot.state, slot.up, slot.is_in), (SlotState::Exists, true, true));
        assert_eq!(
            (slot.reweight, slot.primary_affinity, slot.up_from),
            (Weight::ONE, Weight::ONE, Epoch(6))
        );
        assert!(slot.fsid.is_some() && !slot.noout && !slot.noin);
        let pool = &map.pools[&2];
        assert_eq!((pool.name.as_str(), pool.pg_num, pool.size, pool.min_size), ("labpool", 32, 3, 2));
        assert_eq!((pool.data_chunks, map.rules[&2]), (None, 0));
    }

    #[test]
    fn flags_reweight_affinity_and_upmaps_are_seen() {
        let map = sample!(".marked");
        let slot = osd_1(&map);
        assert!(slot.noout && slot.noin && slot.up);
        assert_eq!((slot.reweight, slot.primary_affinity), (Weight(58982), Weight(0x8000)));
        let moved = |pg: &str| Upmap { pg: PgId(pg.to_owned()), mappings: vec![(OsdId(0), OsdId(3))] };
        assert_eq!(map.upmaps, [moved("2.8"), moved("2.c")]);
    }

    #[test]
    fn a_slot_goes_from_down_to_destroyed_to_new_and_keeps_what_it_has() {
        let down = sample!(".down");
        assert_eq!(
            (osd_1(&down).state, osd_1(&down).up, osd_1(&down).down_at),
            (SlotState::Exists, false, Epoch(23))
        );
        for destroyed in [sample!(".destroyed"), sample!(".destroyed-new")] {
            let slot = osd_1(&destroyed);
            assert_eq!((slot.state, slot.fsid, slot.reweight), (SlotState::Destroyed, None, Weight(58982)));
            assert!(slot.noout && slot.is_in);
        }
        let new = sample!(".new");
        assert_eq!(osd_1(&new).state, SlotState::New);
        assert_eq!(osd_1(&new).fsid, "11111111-2222-4333-8444-555555555555".parse().ok());
    }

    #[test]
    fn a_purge_leaves_no_slot_and_a_new_claim_starts_from_nothing() {
        assert!(!sample!(".purged").slots.contains_key(&OsdId(1)));
        let map = sample!(".renewed");
        let slot = osd_1(&map);
        assert_eq!((slot.state, slot.reweight, slot.noout), (SlotState::New, Weight::ONE, false));
        assert_eq!((slot.up_from, slot.down_at), (Epoch(0), Epoch(0)));
    }

    #[test]
    fn a_claimed_slot_that_was_reweighted_is_still_new() {
        let map = sample!(".reweighted");
        assert_eq!((osd_1(&map).state, osd_1(&map).reweight), (SlotState::New, Weight(58982)));
    }

    #[test]
    fn an_osd_that_came_up_under_noin_is_not_new_though_it_is_marked_so() {
        let map = sample!(".up-under-noin");
        assert_eq!((osd_1(&map).state, osd_1(&map).up), (SlotState::Exists, true));
        assert_eq!(map.marked_new, [OsdId(1)].into());
        assert!(fine().marked_new.is_empty());
    }

    #[test]
    fn an_erasure_coded_pool_says_its_k() {
        let map = sample!(".ec-hole");
        assert_eq!(
            (map.pools[&3].data_chunks, map.pools[&3].size, map.pools[&2].data_chunks),
            (Some(2), 3, None)
        );
    }

    #[test]
    fn a_slot_is_described_for_people() {
        assert_eq!(describe(None), "no such id");
        assert_eq!(describe(sample!(".destroyed").slots.get(&OsdId(1))), "destroyed, down, no fsid");
    }
}
