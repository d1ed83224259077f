//! Answers of `osd dump` that were recorded, and changed ones.

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
            assert_eq!((slot.state, slot.fsid, slot.reweight), (SlotState::Destroyed, None, Weight(58982)));
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
        assert_eq!((osd_1(&map).state, osd_1(&map).reweight), (SlotState::New, Weight(58982)), "{release}");
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
    assert_eq!(describe(sample("16.2.15", ".destroyed").slots.get(&OsdId(1))), "destroyed, down, no fsid");
}

#[test]
fn flags_of_osds_and_groups_are_parsed() {
    let mut said: serde_json::Value = serde_json::from_slice(&answer("16.2.15", "osd-dump")).unwrap();
    assert_eq!(fine().group_flags, GroupFlags::default());
    said["osds"][1]["state"] = serde_json::json!(["exists", "up", "nodown", "noup"]);
    said["crush_node_flags"] = serde_json::json!({"h2": ["nodown", "noout"]});
    said["device_class_flags"] = serde_json::json!({"hdd": ["noup"]});
    let map = parse(said.to_string().as_bytes()).unwrap();
    let of = |slot: &Slot| (slot.nodown.clone(), slot.noup.clone());
    let osd = || Some("osd.1".to_owned());
    assert_eq!((of(osd_1(&map)), of(&map.slots[&OsdId(0)])), ((osd(), osd()), (None, None)));
    let has =
        |groups: &BTreeMap<String, BTreeSet<String>>, name: &str, flag: &str| groups[name].contains(flag);
    assert!(has(&map.group_flags.nodes, "h2", "nodown") && has(&map.group_flags.classes, "hdd", "noup"));
}

#[test]
fn erasure_coded_pool_knows_the_losses_of_its_plugin() {
    let mut said: serde_json::Value = serde_json::from_slice(&answer("16.2.15", "osd-dump.ec-hole")).unwrap();
    let of = |said: &serde_json::Value| {
        let pools = parse(said.to_string().as_bytes()).unwrap().pools;
        (pools[&3].any_losses, pools[&1].any_losses)
    };
    assert_eq!(of(&said), (None, None));
    let pools = said["pools"].as_array().unwrap();
    let name = pools.iter().find(|pool| pool["pool"] == 3).unwrap()["erasure_code_profile"].clone();
    said["erasure_code_profiles"][name.as_str().unwrap()] =
        serde_json::json!({"plugin": "shec", "k": "2", "m": "2", "c": "1"});
    assert_eq!(of(&said), (Some(1), None));
}
