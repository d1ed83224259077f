//! Forecast of a removal: bytes, PGs and the reasons against it.

use std::collections::{BTreeMap, BTreeSet};

use osd_migrate::domain::estimate::Rate;
use osd_migrate::domain::forecast::{Forecast, Limits, Move, Obstacle, OsdSpace, Placement, Space, forecast};
use osd_migrate::domain::observation::{Ceph, Emptiable};
use osd_migrate::domain::osd::{Epoch, OsdId, PgId};
use osd_migrate::layout::Width;
use osd_migrate::show::{Removal, removal_json, removal_text};

use crate::support::build::{observation, states};

const GIB: u64 = 1 << 30;

fn osds(ids: &[u32]) -> BTreeSet<OsdId> {
    ids.iter().copied().map(OsdId).collect()
}

/// Cluster of four OSDs, and a placement without osd.0.
#[derive(Clone)]
struct Scene {
    ceph: Ceph,
    space: Space,
    placement: Placement,
}

impl Scene {
    /// Returns a cluster with one pool of size 2 and two PGs of 10 GiB on osd.0, of which osd.2 and osd.3 get
    /// one each. osd.0 has 24 GiB for the 20 GiB of objects.
    fn new() -> Self {
        let mut ceph = observation().ceph;
        let sample = ceph.pgs.values().next().unwrap().clone();
        let pg = |up: &[u32], bytes: u64| {
            let mut pg = sample.clone();
            (pg.up, pg.acting, pg.bytes) = (osds(up), osds(up), bytes);
            pg
        };
        let pgs =
            [("1.0", pg(&[0, 1], 10 * GIB)), ("1.1", pg(&[0, 1], 10 * GIB)), ("1.2", pg(&[2, 3], 10 * GIB))];
        ceph.pgs = pgs.map(|(id, pg)| (id.parse::<PgId>().unwrap(), pg)).into_iter().collect();
        let slot = ceph.slots.values().next().unwrap().clone();
        ceph.slots = (0..4).map(|id| (OsdId(id), slot.clone())).collect();
        for pool in ceph.pools.values_mut() {
            (pool.size, pool.min_size) = (2, 1);
        }
        let of = |data: u64| OsdSpace {
            total_bytes: 100 * GIB,
            used_bytes: (data + 1) * GIB,
            data_bytes: Some(data * GIB),
        };
        let data = [(0, 24), (1, 20), (2, 10), (3, 10)];
        let limits = Limits { nearfull: 8500, backfillfull: 9000, wanted_pgs: 250, pgs: 750 };
        let space = Space { osds: data.map(|(id, data)| (OsdId(id), of(data))).into(), limits };
        let to = |then: &[u32]| Move { now: osds(&[0, 1]), then: osds(then) };
        let leaving = [("1.0", to(&[2, 1])), ("1.1", to(&[3, 1]))];
        let moves = leaving.map(|(id, change)| (id.parse::<PgId>().unwrap(), change)).into();
        Self { ceph, space, placement: Placement { epoch: Epoch(7), without: osds(&[0]), moves } }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn forecast(&self) -> Forecast {
        forecast(&self.placement, &self.space, &self.ceph)
    }

    /// Returns what `show` prints of the forecast.
    fn shown<T>(&self, rate: Rate, show: impl FnOnce(&Removal<'_>) -> T) -> T {
        let (placement, ceph) = (&self.placement, &self.ceph);
        show(&Removal { forecast: &self.forecast(), placement, ceph, rate })
    }

    fn text_at(&self, rate: Rate) -> String {
        self.shown(rate, |removal| removal_text(removal, false, Width::of(80)))
    }

    fn text(&self) -> String {
        self.text_at(Rate::of(None))
    }

    fn json(&self, rate: Rate) -> serde_json::Value {
        self.shown(rate, removal_json)
    }

    fn obstacles(&self) -> Vec<&'static str> {
        self.forecast().obstacles.iter().map(Obstacle::code).collect()
    }
}

#[test]
fn forecast_shares_the_data_of_an_osd_over_its_pgs() {
    let found = Scene::new().forecast();
    assert_eq!((found.pgs, found.held_bytes, found.moved_bytes), (2, 24 * GIB, 24 * GIB));
    assert!(found.obstacles.is_empty(), "{:?}", found.obstacles);
    let (left, gets) = (found.osds[&OsdId(0)], found.osds[&OsdId(2)]);
    assert_eq!((left.pgs, left.loses, left.gains, left.end_bytes()), (2, 2, 0, GIB));
    assert_eq!((gets.pgs, gets.loses, gets.gains), (1, 0, 1));
    // A tenth more than the 12 GiB that the PG has on osd.0: clients may write meanwhile.
    assert_eq!(gets.in_bytes, 12 * GIB / 10 * 11);
    assert_eq!(gets.peak_bytes(), gets.end_bytes());
    assert!(!found.osds.contains_key(&OsdId(1)), "it gets and loses nothing");
}

/// Checks that data on its way to an OSD, because another OSD is emptied, counts as data that the OSD gets.
#[test]
fn pg_that_moves_already_is_counted_from_where_its_data_is() {
    let moving = Scene::new().with(|scene| {
        let pg = scene.ceph.pgs.get_mut(&"1.2".parse::<PgId>().unwrap()).unwrap();
        pg.up = osds(&[1, 3]);
        pg.state = states("active+remapped+backfill_wait");
    });
    let found = moving.forecast();
    assert_eq!((found.pgs, found.moved_bytes), (3, 34 * GIB));
    let (gets, loses) = (found.osds[&OsdId(1)], found.osds[&OsdId(2)]);
    assert_eq!((gets.gains, gets.in_bytes), (1, 10 * GIB / 10 * 11));
    assert_eq!((loses.gains, loses.loses, loses.out_bytes), (1, 1, 10 * GIB));
    let full = moving.with(|scene| scene.space.osds.get_mut(&OsdId(1)).unwrap().used_bytes = 80 * GIB);
    assert_eq!(full.obstacles(), ["no-space"]);
}

#[test]
fn pg_with_too_few_osds_is_an_obstacle_although_bytes_are_free() {
    let short = |scene: &mut Scene| {
        scene.placement.moves.get_mut(&"1.0".parse::<PgId>().unwrap()).unwrap().then = osds(&[1]);
    };
    let scene = Scene::new().with(short);
    assert_eq!(scene.obstacles(), ["no-placement"]);
    let text = scene.forecast().obstacles.first().unwrap().to_string();
    assert!(text.contains("without osd.0, 1 PGs of pool data find too few OSDs for 2 copies"), "{text}");
    // A PG that has more OSDs than its pool's size needs no more than the size.
    let smaller = Scene::new().with(short).with(|scene| {
        scene.ceph.pools.values_mut().for_each(|pool| pool.size = 1);
    });
    assert!(smaller.obstacles().is_empty());
}

#[test]
fn osd_over_backfillfull_or_nearfull_is_an_obstacle() {
    let with_used = |used: u64| {
        Scene::new().with(|scene| scene.space.osds.get_mut(&OsdId(2)).unwrap().used_bytes = used * GIB)
    };
    // It gets 13.2 GiB of 100: at the end nothing has left it, so nearfull (85 GiB) is the first limit.
    assert!(with_used(71).obstacles().is_empty());
    assert_eq!(with_used(72).obstacles(), ["no-space"]);
    let both_ways = |used: u64| {
        with_used(used).with(|scene| {
            let moved = Move { now: osds(&[2, 3]), then: osds(&[3, 1]) };
            scene.placement.moves.insert("1.2".parse::<PgId>().unwrap(), moved);
        })
    };
    // 10 GiB leave it in the end. At the highest they are still there: 90 GiB are too much.
    assert!(both_ways(76).obstacles().is_empty());
    let found = both_ways(77).forecast();
    let Some(Obstacle::NoSpace { osd: OsdId(2), ratio: "backfillfull", percent: 91, limit: 90, .. }) =
        found.obstacles.first()
    else {
        panic!("{:?}", found.obstacles)
    };
}

#[test]
fn forecast_without_statistics_or_with_a_down_osd_is_refused() {
    let unknown = Scene::new().with(|scene| assert!(scene.space.osds.remove(&OsdId(3)).is_some()));
    assert_eq!(unknown.obstacles(), ["no-statistics"]);
    let of_pg = Scene::new().with(|scene| drop(scene.ceph.pgs.remove(&"1.0".parse::<PgId>().unwrap())));
    assert_eq!(of_pg.obstacles(), ["no-statistics"]);
    let down = Scene::new().with(|scene| scene.ceph.slots.get_mut(&OsdId(3)).unwrap().up = false);
    assert_eq!(down.obstacles(), ["not-up"]);
    let crowded = Scene::new().with(|scene| scene.space.limits.pgs = 1);
    assert_eq!(crowded.obstacles(), ["too-many-pgs", "too-many-pgs"]);
    let merging =
        Scene::new().with(|scene| scene.ceph.pools.values_mut().for_each(|pool| pool.merges = true));
    assert_eq!(merging.obstacles(), ["pg-count-changing"]);
    // PGs are split, or `pgp_num` follows in steps.
    let splitting =
        Scene::new().with(|scene| scene.ceph.pools.values_mut().for_each(|pool| pool.resizes = true));
    assert_eq!(splitting.obstacles(), ["pg-count-changing"]);
    assert!(matches!(splitting.forecast().emptiable(), Emptiable::Unknown(_)));
}

/// Checks an OSD that came back to PGs whose statistics do not name it yet.
#[test]
fn forecast_waits_for_statistics_after_the_last_start_of_an_osd() {
    let without = Scene::new().with(|scene| {
        for (_, pg) in scene.ceph.pgs.iter_mut().filter(|(id, _)| id.to_string() != "1.2") {
            (pg.up, pg.acting, pg.reported_epoch) = (osds(&[1, 2]), osds(&[1, 2]), Epoch(5));
        }
        for slot in scene.ceph.slots.values_mut() {
            slot.up_from = Epoch(4);
        }
    });
    assert!(without.obstacles().is_empty(), "{:?}", without.obstacles());
    let restarted = without.with(|scene| scene.ceph.slots.get_mut(&OsdId(0)).unwrap().up_from = Epoch(6));
    assert_eq!(restarted.obstacles(), ["old-statistics"]);
    let answer = restarted.forecast().emptiable();
    assert!(
        matches!(&answer, Emptiable::Unknown(why) if why.starts_with("the statistics of 2 PGs")),
        "{answer:?}"
    );
}

/// Checks that a dead OSD can be removed: the mgr has no statistics of it, and no PG is on it.
#[test]
fn dead_osd_needs_no_statistics() {
    let dead = Scene::new().with(|scene| {
        scene.space.osds.remove(&OsdId(0));
        scene.ceph.slots.get_mut(&OsdId(0)).unwrap().up = false;
        for pg in scene.ceph.pgs.values_mut() {
            pg.up.remove(&OsdId(0));
        }
        let to = |now: &[u32], then: &[u32]| Move { now: osds(now), then: osds(then) };
        scene.placement.moves = [("1.0".parse::<PgId>().unwrap(), to(&[1, 2], &[1, 3]))].into();
    });
    assert_eq!(dead.obstacles(), [""; 0]);
    let holds = dead.with(|scene| {
        let to = |now: &[u32], then: &[u32]| Move { now: osds(now), then: osds(then) };
        scene.placement.moves = [("1.0".parse::<PgId>().unwrap(), to(&[0, 1], &[1, 3]))].into();
    });
    assert_eq!(holds.obstacles(), ["no-statistics"]);
}

/// Checks an OSD that is up and out: the mgr says that its size is 0.
#[test]
fn osd_that_is_out_needs_no_statistics() {
    let out = Scene::new().with(|scene| {
        scene.space.osds.remove(&OsdId(0));
        scene.ceph.slots.get_mut(&OsdId(0)).unwrap().is_in = false;
        for (id, to) in [("1.0", [1, 2]), ("1.1", [1, 3])] {
            let pg = scene.ceph.pgs.get_mut(&id.parse::<PgId>().unwrap()).unwrap();
            (pg.up, pg.acting) = (osds(&to), osds(&to));
        }
        scene.placement.moves.clear();
    });
    assert_eq!(out.obstacles(), [""; 0]);
    // A PG that is still on it has no other replica whose bytes would be known.
    let last = out.clone().with(|scene| {
        let pg = scene.ceph.pgs.get_mut(&"1.0".parse::<PgId>().unwrap()).unwrap();
        (pg.up, pg.acting) = (osds(&[2]), osds(&[0]));
        pg.state = states("active+remapped+backfilling");
    });
    let found = last.forecast();
    assert_eq!((found.obstacles.len(), found.held_bytes), (0, 12 * GIB));
    assert_eq!(found.osds[&OsdId(2)].in_bytes, 12 * GIB / 10 * 11);
    let full = last.with(|scene| scene.space.osds.get_mut(&OsdId(2)).unwrap().used_bytes = 80 * GIB);
    assert_eq!(full.obstacles(), ["no-space"]);
    // One that is in has statistics sooner or later.
    let inside = out.with(|scene| scene.ceph.slots.get_mut(&OsdId(0)).unwrap().is_in = true);
    assert_eq!(inside.obstacles(), ["no-statistics"]);
}

#[test]
fn chunk_of_an_erasure_coded_pg_is_a_part_of_its_bytes() {
    let scene = Scene::new().with(|scene| {
        let mut coded = scene.ceph.pools.values().next().unwrap().clone();
        coded.data_chunks = Some(2);
        scene.ceph.pools.insert(9, coded);
        let pg = scene.ceph.pgs.get_mut(&"1.1".parse::<PgId>().unwrap()).unwrap();
        (pg.pool, pg.bytes) = (9, 20 * GIB);
    });
    // Both PGs have 10 GiB on osd.0, so each has half of its 24 GiB.
    assert_eq!(scene.forecast().osds[&OsdId(3)].in_bytes, 12 * GIB / 10 * 11);
}

#[test]
fn forecast_counts_pgs_that_are_not_clean_now() {
    let scene = Scene::new().with(|scene| {
        scene.ceph.pgs.get_mut(&"1.2".parse::<PgId>().unwrap()).unwrap().state = states("active");
    });
    assert_eq!((Scene::new().forecast().unclean, scene.forecast().unclean), (0, 1));
    let empty = Placement { epoch: Epoch(7), without: osds(&[0]), moves: BTreeMap::new() };
    assert_eq!(forecast(&empty, &scene.space, &scene.ceph).pgs, 0);
}

#[test]
fn filestore_is_forecast_by_its_objects() {
    let scene = Scene::new().with(|scene| {
        scene.space.osds.get_mut(&OsdId(0)).unwrap().data_bytes = None;
        scene.space.osds.get_mut(&OsdId(1)).unwrap().data_bytes = None;
    });
    let found = scene.forecast();
    assert_eq!((found.held_bytes, found.osds[&OsdId(2)].in_bytes), (24 * GIB, 12 * GIB / 10 * 11));
}

#[test]
fn forecast_shows_the_fullest_osd_first_and_every_obstacle() {
    let scene = Scene::new().with(|scene| scene.space.osds.get_mut(&OsdId(2)).unwrap().used_bytes = 80 * GIB);
    let text = scene.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "Without osd.0 (CRUSH weight 0, osdmap e7), 2 PGs move: 24.0 GiB, 1.0 times what is on it. \
         Nothing is changed."
    );
    let rows: Vec<Vec<_>> = lines[2..].iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["OSD", "PGS", "GETS", "LOSES", "NOW", "HIGHEST", "THEN"]);
    assert_eq!(rows[1], ["osd.2", "1", "1", "0", "80", "%", "94", "%", "94", "%"]);
    assert_eq!(rows[2][0], "osd.0", "{text}");
    let last = "no-space: without osd.0, osd.2 would be 94 % full (backfillfull at 90 %), 3.3 GiB too much. Add OSDs, \
                or delete data";
    assert_eq!(lines.last(), Some(&last), "{text}");
    let fine = Scene::new().text();
    assert!(fine.ends_with("Every PG finds its OSDs, and every OSD has space."), "{fine}");
}

#[test]
fn forecast_as_json_has_the_pgs_that_move() {
    let scene = Scene::new();
    let json = scene.json(Rate::of(None));
    assert_eq!((&json["possible"], &json["without"]), (&true.into(), &serde_json::json!([0])));
    assert_eq!(json["pgs"][0], serde_json::json!({"pg": "1.0", "now": [0, 1], "then": [1, 2]}));
    let row = json["osds"].as_array().unwrap().iter().find(|row| row["osd"] == 2).unwrap();
    assert_eq!((&row["pgsGained"], &row["totalBytes"]), (&1.into(), &(100 * GIB).into()));
}

#[test]
fn price_of_a_removal_is_bytes_multiple_and_time() {
    let scene = Scene::new();
    let price = |rate: Rate| {
        let text = scene.text_at(rate);
        (text.lines().nth(1).unwrap().to_owned(), scene.json(rate))
    };
    let (text, json) = price(Rate::of(Some(10 << 20)));
    assert_eq!(text, "Expected time: about 41 min at 10.0 MiB/s (measured by earlier runs)");
    assert_eq!((&json["movedBytes"], &json["movedTenthsOfHeld"]), (&(24 * GIB).into(), &10.into()));
    assert_eq!((&json["bytesPerSecond"], &json["expectedSeconds"]), (&(10 << 20).into(), &2457.into()));
    // An assumed rate says nothing about this cluster.
    let (text, json) = price(Rate::of(None));
    assert_eq!(text, "Expected time: unknown, because no run of osd-migrate has measured a rate yet");
    assert!(json["bytesPerSecond"].is_null() && json["expectedSeconds"].is_null(), "{json}");
}

#[test]
fn osd_above_mon_max_pg_per_osd_is_a_remark() {
    let limited = |wanted: u32, hard: u32| {
        let scene = Scene::new();
        scene.with(|scene| (scene.space.limits.wanted_pgs, scene.space.limits.pgs) = (wanted, hard))
    };
    // osd.2 and osd.3 have a PG each, and get another one. osd.0 gets none.
    assert!(limited(2, 750).forecast().remarks.is_empty());
    let many = limited(1, 750);
    assert!(many.obstacles().is_empty());
    let remark = "many-pgs: osd.2 (2 PGs), osd.3 (2 PGs) would get more PGs than an OSD should have, 1 \
                  (mon_max_pg_per_osd). The removal is possible. For fewer PGs, add OSDs, or lower pg_num of a pool";
    let text = many.text();
    assert_eq!(text.lines().last(), Some(remark), "{text}");
    assert_eq!(many.json(Rate::of(None))["remarks"][0]["reason"], "many-pgs");
    // Above the hard ratio it is an obstacle instead.
    let refused = limited(1, 1).forecast();
    assert!(refused.remarks.is_empty() && refused.obstacles.len() == 2, "{refused:?}");
}

#[test]
fn pgs_per_osd_are_shown_by_class_now_and_after_a_removal() {
    let class = |scene: &mut Scene, osd: u32, name: &str| {
        let item = scene.ceph.slots.get_mut(&OsdId(osd)).unwrap().crush.as_mut().unwrap();
        item.device_class = Some(name.to_owned());
    };
    let of_hdd = |text: &str| text.lines().find(|line| line.starts_with("PGs per OSD")).unwrap().to_owned();
    let scene = Scene::new().with(|scene| (0..4).for_each(|osd| class(scene, osd, "hdd")));
    let expected = "PGs per OSD of class hdd: now 1 to 2 (osd.0), mean 1.5; then 2 to 2 (osd.1), mean 2.0";
    assert_eq!(of_hdd(&scene.text()), expected);
    let json = scene.json(Rate::of(None))["pgsPerOsd"].clone();
    let of = |when: &str| (json[when][0]["osds"].clone(), json[when][0]["highest"].clone());
    assert_eq!((of("now"), of("then")), ((4.into(), 2.into()), (3.into(), 2.into())));
    // osd.1 is of a class that nothing changes, and osd.0 is the last one of its class.
    let mixed = scene.with(|scene| {
        class(scene, 0, "old");
        class(scene, 1, "ssd");
    });
    let text = mixed.text();
    assert!(text.contains("PGs per OSD of class old: now 2 to 2 (osd.0), mean 2.0; then no OSD"), "{text}");
    assert!(
        text.contains("class hdd: now 1 to 1 (osd.2), mean 1.0; then 2 to 2 (osd.2), mean 2.0"),
        "{text}"
    );
    assert!(!text.contains("class ssd"), "{text}");
}

#[test]
fn pg_that_stays_on_the_osd_finds_no_place() {
    let stays = Scene::new().with(|scene| {
        let moved = scene.placement.moves.values_mut().next().unwrap();
        moved.then = moved.now.clone();
    });
    let short = |scene: &Scene| {
        let obstacles = scene.forecast().obstacles;
        obstacles.iter().any(|obstacle| matches!(obstacle, Obstacle::NoPlacement { pgs: 1, .. }))
    };
    assert!(short(&stays) && !short(&Scene::new()));
}
