//! `ceph osd dump`: the osdmap, with slots, pools, flags and upmaps of one epoch.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::ceph::command::Command;
use crate::ceph::erasure_code;
use crate::ceph::group_flags::GroupFlags;
use crate::domain::observation::{Autoscale, Pool, Slot, SlotState};
use crate::domain::osd::{ClusterFsid, Epoch, OsdFsid, OsdId, PgId, Upmap, Weight};

/// Used part of the osdmap.
///
/// Slots are without their CRUSH item, metadata, usage and flags of groups, pools without their failure
/// domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OsdMap {
    pub(super) fsid: ClusterFsid,
    pub(super) epoch: Epoch,
    /// Grows with each change of CRUSH (`OSDMap::apply_incremental`).
    pub(super) crush_version: u64,
    pub(super) flags: BTreeSet<String>,
    pub(super) group_flags: GroupFlags,
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
    #[serde(default)]
    crush_node_flags: BTreeMap<String, BTreeSet<String>>,
    #[serde(default)]
    device_class_flags: BTreeMap<String, BTreeSet<String>>,
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
        group_flags: GroupFlags { nodes: answer.crush_node_flags, classes: answer.device_class_flags },
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
    let is_coded = entry.kind != 1;
    let profile = profiles.get(&entry.erasure_code_profile);
    let k = profile.and_then(|profile| profile.get("k")?.parse().ok());
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
        data_chunks: is_coded.then(|| k.unwrap_or(entry.size)),
        any_losses: if is_coded { erasure_code::any_losses(profile) } else { None },
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
        nodown: has("nodown").then(|| entry.osd.to_string()),
        noup: has("noup").then(|| entry.osd.to_string()),
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
#[path = "osd_dump_tests.rs"]
pub(super) mod tests;
