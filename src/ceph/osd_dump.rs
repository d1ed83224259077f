//! `ceph osd dump`: the osdmap, with slots, pools, flags and upmaps of one epoch.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::ceph::command::Command;
use crate::domain::observation::{Autoscale, Pool, Slot, SlotState};
use crate::domain::osd::{ClusterFsid, Epoch, OsdFsid, OsdId, PgId, Upmap, Weight};

/// Used part of the osdmap.
///
/// Slots are without their CRUSH item, metadata and usage, pools without their failure domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OsdMap {
    pub(super) fsid: ClusterFsid,
    pub(super) epoch: Epoch,
    /// Grows with each change of CRUSH (`OSDMap::apply_incremental`).
    pub(super) crush_version: u64,
    pub(super) flags: BTreeSet<String>,
    pub(super) nearfull_ratio: u32,
    pub(super) backfillfull_ratio: u32,
    pub(super) pools: BTreeMap<u64, Pool>,
    /// CRUSH rule of each pool.
    pub(super) rules: BTreeMap<u64, i64>,
    pub(super) slots: BTreeMap<OsdId, Slot>,
    /// Slots with the flag `new`, whether up or down: their next boot without `noin` sets their reweight to
    /// 1.0.
    pub(super) marked_new: BTreeSet<OsdId>,
    /// Upper limit of the ids, exclusive; a purge does not change it (16.2.15).
    pub(super) max_osd: u32,
    pub(super) upmaps: Vec<Upmap>,
}

#[derive(Deserialize)]
struct OsdDump {
    fsid: ClusterFsid,
    epoch: Epoch,
    crush_version: u64,
    flags: String,
    nearfull_ratio: f64,
    backfillfull_ratio: f64,
    max_osd: u32,
    pools: Vec<PoolEntry>,
    osds: Vec<OsdEntry>,
    #[serde(default)]
    last_up_change: String,
    pg_upmap_items: Vec<UpmapEntry>,
    erasure_code_profiles: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Began {
    modified: String,
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
    /// Smaller than `pg_num` while PGs are being merged (16.2.15 to 20.2: `pg_pool_t::pg_num_pending`).
    pg_num_pending: u32,
    pg_num_target: u32,
    /// `pgp_num`
    pg_placement_num: u32,
    pg_placement_num_target: u32,
    #[serde(default)]
    pg_autoscale_mode: String,
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
    let answer: OsdDump = serde_json::from_slice(answer)?;
    let profiles = answer.erasure_code_profiles;
    let last_change = time_of(&answer.last_up_change);
    Ok(OsdMap {
        fsid: answer.fsid,
        epoch: answer.epoch,
        crush_version: answer.crush_version,
        flags: answer.flags.split(',').filter(|flag| !flag.is_empty()).map(str::to_owned).collect(),
        nearfull_ratio: in_ten_thousandths(answer.nearfull_ratio),
        backfillfull_ratio: in_ten_thousandths(answer.backfillfull_ratio),
        rules: answer.pools.iter().map(|pool| (pool.pool, pool.crush_rule)).collect(),
        pools: answer.pools.into_iter().map(|entry| (entry.pool, pool(entry, &profiles))).collect(),
        marked_new: answer.osds.iter().filter(|osd| is_marked_new(osd)).map(|osd| osd.osd).collect(),
        max_osd: answer.max_osd,
        slots: answer.osds.into_iter().map(|entry| (entry.osd, slot(&entry, last_change))).collect(),
        upmaps: answer.pg_upmap_items.into_iter().map(upmap).collect(),
    })
}

/// Returns a ratio in 1/10000.
fn in_ten_thousandths(ratio: f64) -> u32 {
    Weight::from_decimal(ratio * 10_000.0 / 65_536.0).0
}

fn pool(entry: PoolEntry, profiles: &BTreeMap<String, BTreeMap<String, String>>) -> Pool {
    let k = profiles.get(&entry.erasure_code_profile).and_then(|profile| profile.get("k")?.parse().ok());
    Pool {
        name: entry.pool_name,
        pg_num: entry.pg_num,
        merges: entry.pg_num_pending < entry.pg_num,
        resizes: entry.pg_num != entry.pg_num_target
            || entry.pg_placement_num != entry.pg_placement_num_target,
        autoscale: match entry.pg_autoscale_mode.as_str() {
            "off" | "warn" => Autoscale::Off,
            _ => Autoscale::On,
        },
        size: entry.size,
        min_size: entry.min_size,
        // An unknown k counts as the whole size: no loss is survivable, which is the careful assumption.
        data_chunks: (entry.kind != 1).then(|| k.unwrap_or(entry.size)),
        failure_domain: String::new(),
    }
}

/// Returns when the epoch of an osdmap began.
pub(super) fn beginning(answer: &[u8]) -> serde_json::Result<Option<DateTime<Utc>>> {
    let Began { modified } = serde_json::from_slice(answer)?;
    Ok(time_of(&modified))
}

/// Returns a time of the osdmap; `None` if it is not one: `0.000000` if nothing has happened yet
/// (`utime_t::localtime` in utime.h, 16.2.15).
fn time_of(stamp: &str) -> Option<DateTime<Utc>> {
    let parsed = DateTime::parse_from_str(stamp, "%Y-%m-%dT%H:%M:%S%.f%z");
    parsed.ok().map(|at| at.with_timezone(&Utc))
}

/// Returns a slot.
///
/// `last_change`: when an OSD last came up or went down. One that is down has been down since then at least.
/// The OSD's `osd_xinfo.down_stamp` is not read: it stays what it was before, 0 or the time of an earlier
/// crash, if the OSD announces its stop or a peer finds its port closed, because the mons then write back
/// the whole former entry with `dead_epoch` (`OSDMonitor::prepare_mark_me_down`, seen on 16.2.15).
fn slot(entry: &OsdEntry, last_change: Option<DateTime<Utc>>) -> Slot {
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
        down_since: last_change.filter(|_| entry.up == 0),
        noout: has("noout"),
        noin: has("noin"),
        auto_out: has("autoout"),
        dmcrypt_key: false,
        crush: None,
        metadata: None,
        used_bytes: None,
    }
}

/// Returns the state of a slot.
///
/// The flag `new` means less than its name: Ceph clears it when the slot is marked in or reweighted, not when
/// the OSD boots. So a reweighted slot that never came up does not have it, and a slot that came up under
/// `noin` still has it (16.2.15).
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

/// Describes the content of a slot for people.
pub(super) fn describe(slot: Option<&Slot>) -> String {
    let Some(slot) = slot else { return "no such id".to_owned() };
    let state = match slot.state {
        SlotState::Exists => "exists",
        SlotState::New => "new (fsid issued, never booted)",
        SlotState::Destroyed => "destroyed",
    };
    let fsid = slot.fsid.map_or_else(|| "no fsid".to_owned(), |fsid| format!("fsid {fsid}"));
    format!("{state}, {}, {fsid}", if slot.up { "up" } else { "down" })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer};

    fn sample(release: &str, state: &str) -> OsdMap {
        parse(&answer(release, &format!("osd-dump{state}"))).unwrap()
    }

    pub(crate) fn fine() -> OsdMap {
        sample("16.2.15", "")
    }

    fn osd_1(map: &OsdMap) -> &Slot {
        map.slots.get(&OsdId(1)).unwrap()
    }

    #[test]
    fn osd_map_of_a_healthy_cluster_is_parsed() {
        for (release, epoch, up_from, pool) in
            [("16.2.15", 15, 6, 2), ("18.2.7", 22, 16, 1), ("20.2.4", 27, 20, 1)]
        {
            let map = sample(release, "");
            assert_eq!((map.epoch, map.nearfull_ratio), (Epoch(epoch), 8500));
            assert!(map.flags.contains("sortbitwise"));
            assert_eq!(map.slots.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3].map(OsdId));
            let slot = osd_1(&map);
            assert_eq!((slot.state, slot.up, slot.is_in), (SlotState::Exists, true, true));
            assert_eq!(
                (slot.reweight, slot.primary_affinity, slot.up_from),
                (Weight::ONE, Weight::ONE, Epoch(up_from))
            );
            assert!(slot.fsid.is_some() && !slot.noout && !slot.noin);
            assert_eq!(map.rules[&pool], 0);
            let pool = &map.pools[&pool];
            assert_eq!((pool.name.as_str(), pool.pg_num, pool.size, pool.min_size), ("labpool", 32, 3, 2));
            assert_eq!((pool.data_chunks, pool.autoscale), (None, Autoscale::Off));
        }
    }

    #[test]
    fn pool_whose_number_of_pgs_is_not_as_wanted_changes_it() {
        let said: serde_json::Value = serde_json::from_slice(&answer("16.2.15", "osd-dump")).unwrap();
        let pools = |said: &serde_json::Value| parse(said.to_string().as_bytes()).unwrap().pools;
        assert!(pools(&said).values().all(|pool| !pool.resizes && !pool.merges));
        for wanted in ["pg_num_target", "pg_placement_num_target"] {
            let mut changed = said.clone();
            changed["pools"][0][wanted] = 64.into();
            assert_eq!(pools(&changed).values().filter(|pool| pool.resizes).count(), 1, "{wanted}");
        }
    }

    #[test]
    fn osd_flags_reweight_affinity_and_upmaps_are_parsed() {
        for (release, pgs) in
            [("16.2.15", ["2.8", "2.c"]), ("18.2.7", ["1.1e", "1.1f"]), ("20.2.4", ["1.1e", "1.1f"])]
        {
            let map = sample(release, ".marked");
            let slot = osd_1(&map);
            assert!(slot.noout && slot.noin && slot.up, "{release}");
            assert_eq!((slot.reweight, slot.primary_affinity), (Weight(58982), Weight(0x8000)), "{release}");
            let moved = |pg: &str| Upmap { pg: pg.parse().unwrap(), mappings: vec![(OsdId(0), OsdId(3))] };
            assert_eq!(map.upmaps, pgs.map(moved), "{release}");
        }
    }

    #[test]
    fn slot_is_down_then_destroyed_with_its_reweight_then_new() {
        for (release, down_at) in [("16.2.15", 23), ("18.2.7", 29), ("20.2.4", 34)] {
            let down = sample(release, ".down");
            assert_eq!(
                (osd_1(&down).state, osd_1(&down).up, osd_1(&down).down_at),
                (SlotState::Exists, false, Epoch(down_at))
            );
            for destroyed in [sample(release, ".destroyed"), sample(release, ".destroyed-new")] {
                let slot = osd_1(&destroyed);
                assert_eq!(
                    (slot.state, slot.fsid, slot.reweight),
                    (SlotState::Destroyed, None, Weight(58982))
                );
                assert!(slot.noout && slot.is_in, "{release}");
            }
            let new = sample(release, ".new");
            assert_eq!(osd_1(&new).state, SlotState::New, "{release}");
            assert_eq!(osd_1(&new).fsid, "11111111-2222-4333-8444-555555555555".parse().ok());
        }
    }

    #[test]
    fn purge_removes_the_slot_and_osd_new_starts_from_defaults() {
        for release in RELEASES {
            assert!(!sample(release, ".purged").slots.contains_key(&OsdId(1)), "{release}");
            let map = sample(release, ".renewed");
            let slot = osd_1(&map);
            assert_eq!((slot.state, slot.reweight, slot.noout), (SlotState::New, Weight::ONE, false));
            assert_eq!((slot.up_from, slot.down_at), (Epoch(0), Epoch(0)), "{release}");
        }
    }

    #[test]
    fn new_slot_that_was_reweighted_is_still_new() {
        for release in RELEASES {
            let map = sample(release, ".reweighted");
            assert_eq!(
                (osd_1(&map).state, osd_1(&map).reweight),
                (SlotState::New, Weight(58982)),
                "{release}"
            );
        }
    }

    #[test]
    fn osd_up_under_noin_is_not_new_though_marked_new() {
        for release in RELEASES {
            let map = sample(release, ".up-under-noin");
            assert_eq!((osd_1(&map).state, osd_1(&map).up), (SlotState::Exists, true), "{release}");
            assert_eq!(map.marked_new, [OsdId(1)].into(), "{release}");
        }
        assert!(fine().marked_new.is_empty());
    }

    #[test]
    fn erasure_coded_pool_reports_k_as_data_chunks() {
        for (release, coded) in [("16.2.15", 3), ("18.2.7", 2), ("20.2.4", 3)] {
            let map = sample(release, ".ec-hole");
            let (coded, other) = (&map.pools[&coded], &map.pools[&1]);
            assert_eq!((coded.data_chunks, coded.size, other.data_chunks), (Some(2), 3, None), "{release}");
        }
    }

    #[test]
    fn time_of_the_map_is_a_time_or_unknown() {
        let at = time_of("2026-11-26T07:08:09.123456+0100").unwrap();
        assert_eq!(at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true), "2026-11-26T06:08:09.123456Z");
        assert_eq!(time_of("2026-11-26T06:08:09.123456+0000"), Some(at));
        assert_eq!(time_of("0.000000"), None);
    }

    /// Checks an OSD whose `down_stamp` is `0.000000` although it is down, and one that never was down.
    #[test]
    fn osd_is_down_at_least_since_the_last_change_of_any() {
        let map = sample("16.2.15", ".out");
        let of = |osd: u32| &map.slots[&OsdId(osd)];
        assert!(!of(7).up && !of(7).is_in && of(0).up);
        assert_eq!(of(7).down_since, time_of("2026-11-26T23:13:19.360248+0000"));
        assert_eq!(of(0).down_since, None);
        for (release, since) in [
            ("16.2.15", "2026-11-21T09:50:23.676720+0000"),
            ("18.2.7", "2026-11-21T20:00:01.245024+0000"),
            ("20.2.4", "2026-11-21T19:56:37.162063+0000"),
        ] {
            assert_eq!(osd_1(&sample(release, ".down")).down_since, time_of(since), "{release}");
        }
    }

    #[test]
    fn slot_is_described_for_people() {
        assert_eq!(describe(None), "no such id");
        assert_eq!(
            describe(sample("16.2.15", ".destroyed").slots.get(&OsdId(1))),
            "destroyed, down, no fsid"
        );
    }
}
