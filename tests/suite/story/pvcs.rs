//! An OSD on PersistentVolumeClaims keeps or gets its database on a PVC, at whatever point the program dies
//! or freezes.

use osd_migrate::domain::classify::Class;
use osd_migrate::domain::osd::{Mode, OsdId};
use osd_migrate::run::End;
use osd_migrate::sim::example;

use super::crash::Crashes;
use super::freeze;
use super::play::{Play, assert_no_leftovers, closed, ends};

const OSD: OsdId = OsdId(0);

fn keeps_database() -> Play {
    Play::over(example::pvc_with_database(), 1)
}

fn gets_database() -> Play {
    Play::over(example::pvc_gets_database(), 1)
}

fn to_plain() -> Play {
    Play::over(example::pvc_to_be_plain(), 1)
}

fn to_encrypted() -> Play {
    Play::over(example::pvc_to_be_encrypted(), 1)
}

fn on_lvm() -> Play {
    Play::over(example::pvc_on_lvm(), 1)
}

/// Asserts that the new OSD is raw on the PVC of the old one, and nothing else is left.
fn is_raw(play: &Play) {
    let sim = play.sim.borrow();
    let (daemon, fsid) = (&sim.world.kube.daemons[&OSD], sim.world.ceph.slots[&OSD].fsid.unwrap());
    assert_ne!(fsid, example::fsid(OSD, 0));
    assert_eq!((daemon.mode, daemon.fsid), (Some(Mode::Raw), Some(fsid)));
    assert_eq!(sim.world.disk_of(fsid).unwrap().0, "disk-0");
    assert!(sim.world.pvcs.open.is_empty(), "the volume of LVM is closed");
    assert_eq!(closed(&sim), [OSD]);
    assert_no_leftovers(&sim);
}

/// Asserts that the new OSD is on the PVC of the old one, and encrypted as its device set declares.
fn is_as_declared(play: &Play) {
    let sim = play.sim.borrow();
    let (world, fsid) = (&sim.world, sim.world.ceph.slots[&OSD].fsid.unwrap());
    let encrypted = world.kube.declaration.storage.sets[0].encrypted;
    assert_ne!(fsid, example::fsid(OSD, 0));
    assert_eq!(world.kube.daemons[&OSD].opens_encryption, encrypted);
    assert_eq!(world.pvcs.stores.contains_key(&fsid), encrypted);
    assert_eq!(world.pvcs.keys.len(), 1, "a key is neither replaced nor deleted");
    assert_eq!(world.disk_of(fsid).unwrap().0, "disk-0");
    assert_eq!(closed(&sim), [OSD]);
    assert_no_leftovers(&sim);
}

/// Asserts that the new OSD has its data and its database on its two PVCs, and nothing else is left.
fn has_database(play: &Play) {
    let sim = play.sim.borrow();
    for (osd, end) in ends(&sim) {
        assert_eq!((end.class, end.flags), (Class::Conforming, (true, true, false, false)), "{osd}");
    }
    let (world, fsid) = (&sim.world, sim.world.ceph.slots[&OSD].fsid.unwrap());
    assert_ne!(fsid, example::fsid(OSD, 0));
    assert_eq!(world.databases.iter().collect::<Vec<_>>(), [(&fsid, &example::DB_DISK.to_owned())]);
    assert_eq!(world.disk_of(fsid).unwrap().0, "disk-0");
    let on = world.kube.daemons[&OSD].on_pvcs.clone().unwrap();
    assert_eq!((on.data.as_deref(), on.db.as_deref()), (Some(example::PVC), Some(example::DB_PVC)));
    assert_eq!(closed(&sim), [OSD]);
    assert_no_leftovers(&sim);
}

#[test]
fn osd_on_pvcs_is_recreated_with_its_database() {
    for play in [keeps_database(), gets_database()] {
        assert_eq!(play.run(), Play::finished());
        has_database(&play);
        play.assert_again_nothing();
    }
}

#[test]
fn osd_on_lvm_of_a_pvc_is_recreated_raw_on_the_same_pvc() {
    let play = on_lvm();
    assert_eq!(play.run(), Play::finished());
    is_raw(&play);
    play.assert_again_nothing();
}

#[test]
fn lvm_on_a_pvc_ends_the_same_after_a_crash_at_any_point() {
    Crashes { play: on_lvm, check: is_raw, ..Crashes::PLAIN }.run("LVM on a PVC", false);
}

#[test]
fn run_names_key_rotations_of_osds_no_longer_encrypted() {
    for (world, rotates, left) in [
        (example::pvc_to_be_plain(), true, Some(OSD)),
        (example::pvc_to_be_plain(), false, None),
        (example::pvc_to_be_encrypted(), true, None),
    ] {
        let play = Play::over(world, 1);
        play.sim.borrow_mut().world.kube.declaration.rotates_keys = rotates;
        let Some(Ok(End::Finished(summary))) = play.run() else { panic!("{:?}", play.log.borrow()) };
        assert_eq!(summary.rotations_left, left.into_iter().collect());
        let said = play.log.borrow().last().cloned().unwrap_or_default();
        let command = "delete cronjob --ignore-not-found rook-ceph-osd-key-rotation-0";
        assert_eq!(said.contains(command), left.is_some(), "{said}");
    }
}

#[test]
fn database_on_a_pvc_ends_the_same_after_a_crash_at_any_point() {
    let crashes = Crashes { check: has_database, ..Crashes::PLAIN };
    Crashes { play: keeps_database, ..crashes }.run("a database on a PVC", false);
    let crashes = Crashes { check: has_database, ..Crashes::PLAIN };
    Crashes { play: gets_database, ..crashes }.run("a PVC for a database", false);
}

#[test]
fn runner_frozen_with_a_database_on_a_pvc_changes_nothing() {
    for (begin, name) in [(keeps_database as fn() -> Play, "kept"), (gets_database, "new")] {
        freeze::at_each_point(begin, has_database, freeze::BEFORE, &format!("database on a PVC, {name}"));
        freeze::at_each_point(begin, has_database, freeze::LATE, &format!("database on a PVC, {name}, late"));
    }
}

#[test]
fn pvc_encryption_ends_the_same_after_a_crash_at_any_point() {
    let crashes = Crashes { check: is_as_declared, ..Crashes::PLAIN };
    Crashes { play: to_plain, ..crashes }.run("a PVC to plain", false);
    let crashes = Crashes { check: is_as_declared, ..Crashes::PLAIN };
    Crashes { play: to_encrypted, ..crashes }.run("a PVC to encrypted", false);
}

#[test]
fn runner_frozen_with_an_osd_on_a_pvc_changes_nothing() {
    for (begin, name) in [(to_plain as fn() -> Play, "plain"), (to_encrypted, "encrypted")] {
        freeze::at_each_point(begin, is_as_declared, freeze::BEFORE, &format!("a PVC to {name}"));
        freeze::at_each_point(begin, is_as_declared, freeze::LATE, &format!("a PVC to {name}, late"));
    }
    freeze::at_each_point(on_lvm, is_raw, freeze::LATE, "LVM on a PVC, late");
}
