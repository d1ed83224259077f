//! PGs per OSD by device class, and the advice that `plan` prints.

use osd_migrate::domain::observation::{Autoscale, Ceph};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::pg_counts::{PgCounts, by_class};
use osd_migrate::show::{pgs_json, pgs_text};
use osd_migrate::sim::example;

fn seen() -> Ceph {
    let mut ceph = example::replicated().ceph;
    for slot in ceph.slots.values_mut() {
        slot.crush.as_mut().unwrap().device_class = Some("hdd".to_owned());
    }
    ceph
}

fn not_autoscaled(mut ceph: Ceph) -> Ceph {
    ceph.pools.values_mut().for_each(|pool| pool.autoscale = Autoscale::Off);
    ceph
}

fn counts(lowest: u64, mean: u64, highest: u64) -> PgCounts {
    let fixed = [("rbd".to_owned(), 64)].into();
    PgCounts { class: None, osds: 10, lowest, all: mean * 10, highest: (highest, OsdId(3)), fixed }
}

#[test]
fn pgs_are_counted_by_device_class() {
    let ceph = seen();
    let [hdd] = by_class(&ceph).try_into().unwrap();
    let held = |osd: &OsdId| ceph.pgs.values().filter(|pg| pg.up.contains(osd)).count() as u64;
    assert_eq!(hdd.class.as_deref(), Some("hdd"));
    assert_eq!(hdd.osds, ceph.slots.len() as u64);
    assert_eq!(hdd.all, ceph.slots.keys().map(held).sum::<u64>());
    assert_eq!(hdd.highest.0, ceph.slots.keys().map(held).max().unwrap());
    assert_eq!(hdd.lowest, ceph.slots.keys().map(held).min().unwrap());
    // An OSD of another class, and one that gets no data.
    let mut other = ceph;
    let last = *other.slots.keys().last().unwrap();
    other.slots.get_mut(&last).unwrap().crush.as_mut().unwrap().device_class = Some("ssd".to_owned());
    other.slots.get_mut(&OsdId(0)).unwrap().is_in = false;
    let [hdd_now, ssd] = by_class(&other).try_into().unwrap();
    assert_eq!((hdd_now.osds, ssd.osds, ssd.class.as_deref()), (hdd.osds - 2, 1, Some("ssd")));
}

#[test]
fn pg_advice_names_pools_that_are_not_autoscaled() {
    // The autoscaler sees to it, however few they are.
    assert_eq!(pgs_text(&seen()), None);
    let text = pgs_text(&not_autoscaled(seen())).unwrap();
    assert!(text.starts_with("PGs per OSD of class hdd: "), "{text}");
    assert!(text.ends_with("ceph osd pool set pool1 pg_autoscale_mode on"), "{text}");
    let json = pgs_json(&not_autoscaled(seen()));
    assert_eq!((&json[0]["deviceClass"], &json[0]["advice"]), (&"hdd".into(), &text.into()));
    assert!(json[0]["notAutoscaled"]["pool1"].is_u64());
}

#[test]
fn pg_advice_is_given_far_from_a_hundred_pgs_only() {
    for well in [counts(30, 34, 40), counts(90, 100, 110), counts(200, 240, 250)] {
        assert_eq!(well.advice(), None, "{well:?}");
    }
    for far in [counts(1, 33, 60), counts(251, 251, 252), counts(90, 100, 251)] {
        let advice = far.advice().unwrap();
        assert!(advice.contains("rbd (64 PGs)") && !advice.contains(" of class "), "{advice}");
    }
    // Without such a pool only what the mons refuse is said.
    let autoscaled = |counts: PgCounts| PgCounts { fixed: [].into(), ..counts };
    assert_eq!(autoscaled(counts(1, 10, 20)).advice(), None);
    assert_eq!(
        autoscaled(counts(90, 100, 260)).advice().unwrap(),
        "PGs per OSD: 90 to 260 (osd.3), mean 100.0; about 100 are usual, and above 250 the mons create no \
         pool"
    );
    let four = ["a", "b", "c", "d"].map(|name| (name.to_owned(), 8)).into();
    let many = PgCounts { fixed: four, ..counts(1, 10, 20) };
    assert!(many.advice().unwrap().contains("does not change a (8 PGs), b (8 PGs), c (8 PGs) and 1 more."));
}
