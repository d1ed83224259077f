//! An OSD in a directory moves to an available disk, at whatever point the program dies or freezes.

use osd_migrate::domain::classify::Class;
use osd_migrate::domain::inspection::Content;
use osd_migrate::domain::osd::{OsdId, Weight};
use osd_migrate::sim::{example, fsid_on};

use super::crash::Crashes;
use super::freeze;
use super::play::{Play, assert_no_leftovers, closed, ends};
use crate::support::build::FINISHED;

const OSD: OsdId = OsdId(0);

fn in_directory() -> Play {
    Play::over(example::in_directory(), 1)
}

/// Asserts that the OSD is on the disk, unchanged except for its weight.
///
/// The OSD's directory is gone, and nothing of osd-migrate's is left.
fn it_moved(play: &Play) {
    let sim = play.sim.borrow();
    let before = example::in_directory();
    for (osd, end) in ends(&sim) {
        let mut expected = before.ceph.slots[&osd].crush.clone().unwrap();
        if osd == OSD {
            expected.weight = Weight::by_size(6 << 30);
        }
        assert_eq!((end.class, end.crush), (Class::Conforming, Some(expected)), "{osd}");
        assert_eq!(end.flags, (true, true, false, false), "{osd}: up, in, no flag left");
        assert_eq!(end.reweight, before.ceph.slots[&osd].reweight, "{osd}");
    }
    let fsid = sim.world.ceph.slots[&OSD].fsid;
    assert_eq!(fsid_on(&sim.world.disks["disk-new"].content), fsid);
    assert_ne!(fsid, Some(example::fsid(OSD, 0)));
    let below = &sim.world.disks["disk-0"];
    assert_eq!(below.content, Content::Other { what: "the host's system".to_owned() });
    assert_eq!(closed(&sim), [OSD]);
    assert!(sim.world.kube.inventories.is_empty());
    assert_no_leftovers(&sim);
}

#[test]
fn osd_directory_is_cleared_after_rebuild_on_an_available_disk() {
    let play = in_directory();
    assert_eq!(play.run(), Play::finished());
    it_moved(&play);
    let expected = [
        "save computingDiff",
        "do inventory",
        "save orchestrating",
        "save record",
        "do agent",
        "save proof",
        "do back-up",
        "save stop",
        "save fence",
        "do fence",
        "do set-osd-flags",
        "save pdb",
        "do limit-drains",
        "do stop",
        "save down",
        "do destroy",
        "save rebuild",
        "do agent",
        "save new",
        "do restore-crush",
        "do deploy",
        "save up",
        "do unset-osd-flags",
        "do unfence",
        "save unfenced",
        "save clear",
        "do agent",
        "save closing",
        "do limit-drains",
        "save pdb-restored",
        "do clean-up",
        "save closed",
        "save completed",
        "do delete-inventory-job",
        FINISHED,
    ];
    assert_eq!(*play.log.borrow(), expected);
    play.assert_again_nothing();
}

#[test]
fn directory_osd_ends_on_its_disk_after_any_crash() {
    Crashes { play: in_directory, check: it_moved, ..Crashes::PLAIN }.run("in a directory", true);
}

#[test]
fn frozen_runner_touches_neither_disk_nor_directory() {
    freeze::at_each_point(in_directory, it_moved, freeze::BEFORE, "in a directory, frozen before");
    freeze::at_each_point(in_directory, it_moved, freeze::LATE, "in a directory, frozen late");
}
