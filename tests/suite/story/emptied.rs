//! OSDs whose data is moved first: the program dies or freezes at any point, and the result is the same.
//!
//! OSDs that are emptied and migrated, that leave because of a switch of the run or because they are dead,
//! and whole nodes that leave.

use chrono::TimeDelta;

use osd_migrate::domain::osd::{NodeName, OsdId};
use osd_migrate::domain::policy::{Empty, Policy};
use osd_migrate::sim::example;

use super::crash::Crashes;
use super::freeze::{BEFORE, LATE, at_each_point};
use super::play::{FILESTORE, Play, assert_no_leftovers, closed, ends, six_with_spares};
use super::removal::removes;

/// The OSD that leaves.
const OSD: OsdId = OsdId(0);

/// Starts a migration that empties each OSD before its stop.
fn emptied() -> Play {
    let policy = Policy { empty: Empty::All, ..Policy::default() };
    Play::with_policy(six_with_spares(), policy, 1)
}

/// Starts the removal of an OSD in a directory, by the switch of the run.
fn without_a_disk() -> Play {
    let policy = Policy { drop_directories: true, ..removes() };
    Play::with_policy(example::directory_without_a_disk(), policy, 1)
}

/// Starts the removal of an OSD that has been out for long, by the switch of the run.
fn out() -> Play {
    let policy = Policy { remove_out: Some(TimeDelta::minutes(60)), ..removes() };
    Play::with_policy(example::out_for(61), policy, 1)
}

/// Starts the removal of a node with two OSDs.
fn node() -> Play {
    let mut world = six_with_spares();
    world.request_removal_of_node(&NodeName("h1".to_owned()));
    let policy = Policy { skip: [FILESTORE].into(), ..removes() };
    Play::with_policy(world, policy, 1)
}

/// Asserts that these OSDs left, and the others serve with all data.
fn assert_left(play: &Play, left: &[OsdId]) {
    let sim = play.sim.borrow();
    for osd in left {
        assert!(!sim.world.ceph.slots.contains_key(osd) && !sim.world.ceph.auth.contains_key(osd), "{osd}");
        assert!(!sim.world.kube.daemons.contains_key(osd), "{osd}");
    }
    for (osd, end) in ends(&sim) {
        assert_eq!((end.is_new, end.flags), (false, (true, true, false, false)), "{osd}");
    }
    for (pg, placement) in &sim.world.placements {
        assert_eq!(sim.world.complete_set(pg).len(), placement.home.len(), "{pg}");
    }
    assert!(sim.world.kube.requests.removals.is_empty());
    assert_no_leftovers(&sim);
    assert_eq!(closed(&sim).len(), left.len());
}

fn one_left(play: &Play) {
    assert_left(play, &[OSD]);
}

fn node_left(play: &Play) {
    assert_left(play, &[OSD, OsdId(1)]);
    assert!(play.sim.borrow().world.ceph.empty_hosts.is_empty());
}

#[test]
fn emptied_osds_end_the_same_after_a_crash_at_any_point() {
    Crashes { play: emptied, ..Crashes::PLAIN }.run("emptied OSDs", true);
}

#[test]
fn switched_removals_end_the_same_after_a_crash_at_any_point() {
    for (play, name) in [(without_a_disk as fn() -> Play, "a directory"), (out, "an OSD that is out")] {
        Crashes { play, check: one_left, ..Crashes::PLAIN }.run(name, true);
    }
}

#[test]
fn removal_of_a_node_ends_the_same_after_a_crash_at_any_point() {
    Crashes { play: node, check: node_left, ..Crashes::PLAIN }.run("a node", false);
}

#[test]
fn runner_frozen_while_osds_are_emptied_changes_nothing() {
    for side in [BEFORE, LATE] {
        at_each_point(emptied, Play::assert_all_is_well, side, "emptied OSDs");
        at_each_point(without_a_disk, one_left, side, "a directory");
        at_each_point(out, one_left, side, "an OSD that is out");
        at_each_point(node, node_left, side, "a node");
    }
}
