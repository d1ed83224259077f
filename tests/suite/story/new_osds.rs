//! Available disks become OSDs, once each, at whatever point the program dies or freezes.

use osd_migrate::domain::classify::Class;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::sim::example;

use super::crash::Crashes;
use super::freeze;
use super::play::{Play, assert_no_leftovers, closed, ends};
use crate::support::build::FINISHED;

fn one_more() -> Play {
    Play::over(example::one_more(), 1)
}

fn from_nothing() -> Play {
    Play::over(example::empty(), 1)
}

/// Asserts that every disk is an OSD that is up, in, and in its place, and that nothing of osd-migrate's is
/// left.
///
/// No other id was taken.
fn assert_created(play: &Play, created: &[u32]) {
    let sim = play.sim.borrow();
    for (osd, end) in ends(&sim) {
        assert_eq!(end.flags, (true, true, false, false), "{osd}: up, in, no flag left");
        assert_eq!(end.class, Class::Conforming, "{osd}");
        let fsid = sim.world.ceph.slots[&osd].fsid.unwrap();
        let (_, disk) = sim.world.disk_of(fsid).unwrap();
        assert_eq!(end.crush.unwrap().location["host"], disk.node.0, "{osd}");
    }
    assert_eq!(
        sim.world.disks.len(),
        sim.world.ceph.slots.len(),
        "a disk for each OSD, an OSD for each disk"
    );
    let issued: Vec<_> = sim.world.issued.iter().map(|((osd, _), issued)| (osd.0, issued.len())).collect();
    assert_eq!(issued, created.iter().map(|osd| (*osd, 1)).collect::<Vec<_>>());
    assert_eq!(closed(&sim), created.iter().copied().map(OsdId).collect::<Vec<_>>());
    assert_no_leftovers(&sim);
}

fn one_is_created(play: &Play) {
    assert_created(play, &[3]);
}

fn three_are_created(play: &Play) {
    assert_created(play, &[0, 1, 2]);
}

/// The story of one disk, from its record on.
const ONE_DISK: [&str; 9] = [
    "save record",
    "save rebuild",
    "do agent",
    "save new",
    "do deploy",
    "save up",
    "save closing",
    "do clean-up",
    "save closed",
];

#[test]
fn available_disk_becomes_an_osd_in_the_expected_steps() {
    let play = one_more();
    assert_eq!(play.run(), Play::finished());
    one_is_created(&play);
    let node = ["save computingDiff", "do inventory", "save orchestrating"];
    let end = ["save completed", "do delete-inventory-job", FINISHED];
    let expected: Vec<&str> = node.iter().chain(&ONE_DISK).chain(&end).copied().collect();
    assert_eq!(*play.log.borrow(), expected);
}

#[test]
fn empty_cluster_gets_an_osd_per_disk_idempotently() {
    let play = from_nothing();
    assert_eq!(play.run(), Play::finished());
    three_are_created(&play);
    play.assert_again_nothing();
}

#[test]
fn available_disk_becomes_one_osd_despite_a_crash() {
    Crashes { play: one_more, check: one_is_created, ..Crashes::PLAIN }.run("one more disk", true);
}

#[test]
fn empty_cluster_gets_one_osd_per_disk_despite_a_crash() {
    Crashes { play: from_nothing, check: three_are_created, ..Crashes::PLAIN }.run("from nothing", false);
}

#[test]
fn frozen_runner_never_creates_an_osd_twice() {
    freeze::at_each_point(one_more, one_is_created, freeze::BEFORE, "one more disk, frozen before");
    freeze::at_each_point(one_more, one_is_created, freeze::LATE, "one more disk, frozen late");
}
