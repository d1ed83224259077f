//! PVCs of a device set without an OSD become OSDs, once each, at whatever point the program dies or freezes.

use std::rc::Rc;

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, NodeAct};
use osd_migrate::domain::classify::Class;
use osd_migrate::domain::guard::{Guard, without};
use osd_migrate::domain::inspection::Content;
use osd_migrate::domain::next::Summary;
use osd_migrate::domain::osd::{NodeName, OsdId, Weight};
use osd_migrate::domain::policy::Policy;
use osd_migrate::run::End;
use osd_migrate::sim::{Around, Happening, World, example};

use super::crash::Crashes;
use super::freeze;
use super::play::{Play, assert_no_leftovers, closed, count, ends};
use crate::support::build::FINISHED;

const NEW: OsdId = OsdId(3);

fn plain() -> Play {
    Play::over(example::pvc_without_osd(), 1)
}

fn encrypted() -> Play {
    Play::over(example::pvc_without_osd_encrypted(), 1)
}

fn with_database() -> Play {
    Play::over(example::pvcs_without_osd(), 1)
}

fn with_data() -> Play {
    Play::over(example::pvc_with_data(), 1)
}

/// Returns the summary of a run that finishes.
fn summary(play: &Play) -> Summary {
    match play.run() {
        Some(Ok(End::Finished(summary))) => summary,
        other => panic!("{other:?}"),
    }
}

/// Asserts that the PVC is an OSD that is up, in, and as its device set declares, and nothing else is left.
fn is_created(play: &Play) {
    let sim = play.sim.borrow();
    let world = &sim.world;
    for (osd, end) in ends(&sim) {
        assert_eq!((end.class, end.flags), (Class::Conforming, (true, true, false, false)), "{osd}");
    }
    let fsid = world.ceph.slots[&NEW].fsid.unwrap();
    assert_eq!(world.disk_of(fsid).unwrap().0, example::NEW_DISK);
    let daemon = &world.kube.daemons[&NEW];
    let on = daemon.on_pvcs.clone().unwrap();
    assert_eq!((on.data.as_deref(), on.set.as_deref()), (Some(example::NEW_PVC), Some("set1")));
    assert_eq!(world.ceph.slots[&NEW].crush.clone().unwrap().location["host"], "h1");
    let set = &world.kube.declaration.storage.sets[0];
    assert_eq!(daemon.opens_encryption, set.encrypted);
    assert_eq!(world.pvcs.keys.contains_key(example::NEW_PVC), set.encrypted);
    let database = set.templates.len() > 1;
    assert_eq!(on.db.as_deref(), database.then_some(example::NEW_DB_PVC));
    assert_eq!(world.databases.get(&fsid).map(String::as_str), database.then_some(example::NEW_DB_DISK));
    let issued: Vec<_> = world.issued.iter().map(|((osd, _), issued)| (*osd, issued.len())).collect();
    assert_eq!(issued, [(NEW, 1)], "no other id was taken");
    assert_eq!(closed(&sim), [NEW]);
    assert_no_leftovers(&sim);
}

/// Asserts that the device with data of another owner is unchanged, and its PVC is reported.
fn is_left(play: &Play) {
    let sim = play.sim.borrow();
    assert_eq!(sim.world.disks[example::NEW_DISK], example::pvc_with_data().disks[example::NEW_DISK]);
    assert!(!sim.world.ceph.slots.contains_key(&NEW) && sim.world.issued.is_empty());
    let rebuilds = |act: &Act| matches!(act, Act::Node(NodeAct::Agent { request, .. }) if request.task.code() == "rebuild");
    assert!(!sim.done.iter().any(rebuilds));
    assert_no_leftovers(&sim);
}

#[test]
fn pvc_of_a_device_set_becomes_an_osd_in_the_expected_steps() {
    let play = plain();
    assert_eq!(play.run(), Play::finished());
    is_created(&play);
    let expected = [
        "save record",
        "do agent",
        "save proof",
        "save rebuild",
        "do agent",
        "save new",
        "do deploy",
        "save up",
        "save closing",
        "do clean-up",
        "save closed",
        FINISHED,
    ];
    assert_eq!(*play.log.borrow(), expected);
    play.assert_again_nothing();
}

#[test]
fn pvcs_of_a_device_set_become_encrypted_and_with_a_database() {
    for play in [encrypted(), with_database()] {
        assert_eq!(play.run(), Play::finished());
        is_created(&play);
        play.assert_again_nothing();
    }
}

#[test]
fn pvcs_of_a_device_set_become_osds_one_after_the_other() {
    let play = Play::over(example::two_pvcs_without_osd(), 1);
    assert_eq!(play.run(), Play::finished());
    let sim = play.sim.borrow();
    for (osd, disk) in [(NEW, "disk-3"), (OsdId(4), "disk-4")] {
        let fsid = sim.world.ceph.slots[&osd].fsid.unwrap();
        assert_eq!(sim.world.disk_of(fsid).unwrap().0, disk);
    }
    assert_eq!(closed(&sim), [NEW, OsdId(4)]);
    assert_no_leftovers(&sim);
}

#[test]
fn new_osd_on_a_pvc_ends_the_same_after_a_crash_at_any_point() {
    let crashes = Crashes { check: is_created, ..Crashes::PLAIN };
    Crashes { play: plain, ..crashes }.run("a PVC without an OSD", true);
    let crashes = Crashes { check: is_created, ..Crashes::PLAIN };
    Crashes { play: encrypted, ..crashes }.run("an encrypted PVC without an OSD", false);
    let crashes = Crashes { check: is_created, ..Crashes::PLAIN };
    Crashes { play: with_database, ..crashes }.run("PVCs without an OSD", false);
}

#[test]
fn frozen_runner_never_creates_an_osd_on_a_pvc_twice() {
    for (begin, name) in [(plain as fn() -> Play, "a PVC"), (encrypted, "an encrypted PVC")] {
        freeze::at_each_point(begin, is_created, freeze::BEFORE, &format!("{name}, frozen before"));
        freeze::at_each_point(begin, is_created, freeze::LATE, &format!("{name}, frozen late"));
    }
}

#[test]
fn pvc_whose_device_has_data_is_left_unchanged_and_reported() {
    let play = with_data();
    let summary = summary(&play);
    is_left(&play);
    let [place] = summary.places.as_slice() else { panic!("{:?}", summary.places) };
    for part in
        ["device set `set1`, index 1", "PVC set1-data-1c is left unchanged", "its device is not blank"]
    {
        assert!(place.contains(part), "{place}");
    }
    assert_eq!(play.log.borrow().iter().filter(|line| *line == "save record").count(), 1, "asked once");
    // Another Job looks again.
    let again = Play { policy: Policy { run: "another".to_owned(), ..Policy::default() }, ..play };
    assert!(matches!(again.run(), Some(Ok(End::Finished(_)))));
    assert_eq!(again.log.borrow().iter().filter(|line| *line == "save record").count(), 2);
    is_left(&again);
}

#[test]
fn destroyed_osd_of_a_device_set_gives_its_id_to_the_new_one() {
    let play = Play::over(example::pvc_in_place_of_a_destroyed_osd(), 1);
    assert_eq!(play.run(), Play::finished());
    let sim = play.sim.borrow();
    let on = sim.world.kube.daemons[&OsdId(1)].on_pvcs.clone().unwrap();
    assert_eq!(on.data.as_deref(), Some("set1-data-1e"));
    assert!(sim.world.ceph.slots[&OsdId(1)].up && sim.world.ceph.slots.len() == 3);
    assert_eq!(closed(&sim), [OsdId(1)]);
    assert_no_leftovers(&sim);
}

#[test]
fn new_osd_on_a_pvc_has_the_weight_of_its_volume() {
    // Returns the weight of the new OSD in a set whose other OSDs have this one, and that by its size.
    let new = |others: Option<Weight>| {
        let mut world = example::pvc_in_place_of_a_destroyed_osd();
        let by_size = Weight::by_size(world.disks.values().next().unwrap().identity.size_bytes);
        for (osd, slot) in &mut *world.ceph.slots {
            let weight = if *osd == OsdId(1) { Weight(1 << 10) } else { others.unwrap_or(by_size) };
            slot.crush.as_mut().unwrap().weight = weight;
        }
        let play = Play::over(world, 1);
        assert_eq!(play.run(), Play::finished());
        let weight = play.sim.borrow().world.ceph.slots[&OsdId(1)].crush.as_ref().unwrap().weight;
        (weight, by_size)
    };
    let (weight, by_size) = new(None);
    assert_eq!(weight, by_size);
    // The owner has chosen the weights of the set.
    assert_eq!(new(Some(Weight(1 << 10))).0, Weight(1 << 10));
}

#[test]
fn id_of_an_osd_of_another_class_is_not_used_for_a_pvc() {
    let mut world = example::pvc_in_place_of_a_destroyed_osd();
    let item = world.ceph.slots.get_mut(&OsdId(1)).unwrap().crush.as_mut().unwrap();
    item.device_class = Some("hdd".to_owned());
    world.kube.declaration.storage.sets[0].device_class = Some("ssd".to_owned());
    let play = Play::over(world, 1);
    assert_eq!(play.run(), Play::finished());
    assert_eq!(closed(&play.sim.borrow()), [NEW]);
}

#[test]
fn pvc_that_a_deployment_names_does_not_become_another_osd() {
    let play = || Play::over(example::pvc_of_a_destroyed_osd(), 1);
    let one = play();
    assert_eq!(one.run(), Play::finished());
    assert!(one.sim.borrow().done.is_empty());
    let broken = breaks(Guard::PvcUnused, play);
    assert!(broken.contains("P3: PVC set1-data-1c is used for two OSDs"), "{broken}");
}

/// Returns a play in which the agent of the new OSD fails after its inspection.
fn agents_fail() -> Play {
    let play = plain();
    play.sim.borrow_mut().world.noise.agents_fail.insert(NodeName("h1".to_owned()));
    play
}

#[test]
fn pvc_of_a_quarantined_osd_is_not_recorded_again() {
    let play = agents_fail();
    let summary = summary(&play);
    assert_eq!(summary.quarantined.iter().map(|(osd, _)| *osd).collect::<Vec<_>>(), [NEW]);
    assert_eq!(play.sim.borrow().ledger().unwrap().records.len(), 1);
    let broken = breaks(Guard::PvcOnce, agents_fail);
    assert!(broken.contains("P3: PVC set1-data-1c is used for two OSDs"), "{broken}");
}

#[test]
fn device_that_is_written_after_its_inspection_is_not_wiped() {
    let play = overwritten_meanwhile();
    assert!(matches!(play.run(), Some(Ok(End::Finished(_)))));
    let content = |world: &World| world.disks[example::NEW_DISK].content.clone();
    assert_eq!(content(&play.sim.borrow().world), content(&example::pvc_with_data()));
    let broken = breaks(Guard::DiskAvailable, overwritten_meanwhile);
    assert!(broken.contains("P3: disk-3 was overwritten for osd.3"), "{broken}");
}

/// Returns a play in which a person writes to the device after its first inspection.
fn overwritten_meanwhile() -> Play {
    let play = plain();
    play.sim.borrow_mut().add_fault(Rc::new(|world, _| {
        let is_inspected = !world.kube.reports.is_empty();
        let is_blank = world.disks[example::NEW_DISK].content == Content::Blank;
        let now = TimeDelta::zero();
        let what = Happening::DiskOverwritten(example::NEW_DISK.to_owned());
        (is_inspected && is_blank).then_some((now, what)).into_iter().collect()
    }));
    play
}

/// Returns the promise that a story without a guard breaks.
///
/// The guard stays out on the thread of a story that ends like this.
fn breaks(guard: Guard, play: fn() -> Play) -> String {
    let story = std::thread::spawn(move || drop(without(Some(guard), || play().run())));
    let broken = story.join().expect_err("nothing is broken");
    broken.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn pvcs_are_left_to_a_running_rook_unless_only_new_osds_are_asked_for() {
    let play = Play::over(example::pvc_without_osd_alongside_rook(), 1);
    let left = summary(&play);
    assert_eq!(left.pvcs_left_to_rook, [example::NEW_PVC.to_owned()].into());
    assert_eq!(count(&play, |_| true), 0);
}

#[test]
fn unconfirmed_pvcs_are_only_named() {
    let mut world = example::pvc_without_osd();
    world.kube.declaration.confirmed = false;
    let play = Play::over(world, 1);
    let named = summary(&play);
    assert_eq!(named.unconfirmed_pvcs, [example::NEW_PVC.to_owned()].into());
    assert!(named.needs_only_confirmation() && count(&play, |_| true) == 0);
}

#[test]
fn job_of_rook_that_hangs_holds_up_a_free_pvc_for_a_limited_time() {
    let play = plain();
    play.sim.borrow_mut().world.happen(&Happening::Around(Around::RookPrepares, true));
    let summary = summary(&play);
    assert!(!play.sim.borrow().world.ceph.slots.contains_key(&NEW));
    let is_named =
        |place: &String| place.contains(example::NEW_PVC) && place.contains("Rook is preparing OSDs");
    assert!(summary.places.iter().any(is_named), "{:?}", summary.places);
}
