//! An OSD that is removed by a request, from its record to its history.

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::inspection::Content;
use osd_migrate::domain::observation::{Control, ControlKind};
use osd_migrate::domain::osd::{NodeName, OsdId, Weight};
use osd_migrate::domain::policy::{Empty, Policy};
use osd_migrate::domain::removal::DiskAfter;
use osd_migrate::run::End;
use osd_migrate::sim::ports::Side;
use osd_migrate::sim::{World, example};

use super::freeze::{BEFORE, LATE, at_each_point};
use super::play::{FILESTORE, Play, assert_no_leftovers, closed, count, six, six_with_spares};
use crate::support::build::FINISHED;

/// The OSD that is removed.
const OSD: OsdId = OsdId(0);

/// Starts with the request to remove one of six OSDs, whose data finds other OSDs.
pub(crate) fn requested() -> Play {
    let mut world = six_with_spares();
    world.request_removal(OSD, DiskAfter::Wipe);
    let policy = Policy { removals: true, skip: [FILESTORE].into(), ..Policy::default() };
    Play::with_policy(world, policy, 1)
}

fn weight(world: &World) -> Option<Weight> {
    world.ceph.slots.get(&OSD).map(|slot| slot.crush.as_ref().unwrap().weight)
}

/// Asserts that the OSD is removed, and everything else is as before.
pub(crate) fn assert_removed(play: &Play) {
    let sim = play.sim.borrow();
    let (before, world) = (six(), &sim.world);
    assert!(!world.ceph.slots.contains_key(&OSD) && !world.ceph.auth.contains_key(&OSD));
    assert!(!world.kube.daemons.contains_key(&OSD) && world.kube.requests.removals.is_empty());
    assert_eq!(world.disks["disk-0"].content, Content::Blank);
    for (osd, slot) in &world.ceph.slots {
        let was = &before.ceph.slots[osd];
        assert_eq!((&slot.fsid, &slot.crush, slot.reweight), (&was.fsid, &was.crush, was.reweight), "{osd}");
        assert!(slot.up && slot.is_in && !slot.noout && !slot.noin, "{osd}");
    }
    for (pg, placement) in &world.placements {
        assert_eq!(world.complete_set(pg).len(), placement.home.len(), "{pg}");
    }
    assert_no_leftovers(&sim);
    assert_eq!(closed(&sim), [OSD]);
}

#[test]
fn requested_osd_is_emptied_stopped_wiped_and_purged() {
    let play = requested();
    assert_eq!(play.run(), Play::finished());
    assert_removed(&play);
    let expected = [
        "save record",
        "do agent",
        "save proof",
        "do back-up",
        "save emptying",
        "do drop-weight",
        "save marked-out",
    ];
    assert_eq!(play.log.borrow()[..expected.len()], expected);
    let end = [
        "do stop",
        "save down",
        "do destroy",
        "save wipe",
        "do agent",
        "do purge",
        "do drop-deployment",
        "do drop-request",
        "do unfence",
        "save unfenced",
        "save removed",
        "do limit-drains",
        "save pdb-restored",
        "do clean-up",
        "save closed",
        FINISHED,
    ];
    let log = play.log.borrow();
    assert_eq!(log[log.len() - end.len()..], end);
    drop(log);
    play.assert_again_nothing();
}

/// Checks an OSD whose data a person moved away already: it is up, and out.
#[test]
fn osd_that_a_person_marked_out_is_removed() {
    let mut world = requested().sim.borrow().world.clone();
    world.osd_out(OSD);
    let policy = Policy { removals: true, skip: [FILESTORE].into(), ..Policy::default() };
    let play = Play::with_policy(world, policy, 1);
    assert_eq!(play.run(), Play::finished());
    assert_removed(&play);
}

/// Asserts that the first OSD is gone, and returns whether its directory is.
fn is_directory_gone(play: &Play) -> bool {
    assert_eq!(play.run(), Play::finished());
    let sim = play.sim.borrow();
    assert!(!sim.world.ceph.slots.contains_key(&OSD) && !sim.world.kube.daemons.contains_key(&OSD));
    assert_no_leftovers(&sim);
    assert_eq!(closed(&sim), [OSD]);
    sim.world.disks["disk-0"].directory().is_none()
}

pub(crate) fn removes() -> Policy {
    Policy { removals: true, ..Policy::default() }
}

#[test]
fn requested_osd_in_a_directory_is_removed_with_its_directory() {
    let play = Play::with_policy(example::removal_of_a_directory(), removes(), 1);
    assert!(is_directory_gone(&play));
    let log = play.log.borrow();
    let at = |what: &str| log.iter().position(|line| line == what);
    let order = ["do destroy", "save clear", "do purge"].map(|what| at(what).unwrap_or_default());
    assert!(0 < order[0] && order.is_sorted(), "{log:?}");
    assert_eq!(at("save wipe"), None);
    drop(log);
    let mut left = example::removal_of_a_directory();
    left.request_removal(OSD, DiskAfter::Leave);
    assert!(!is_directory_gone(&Play::with_policy(left, removes(), 1)));
}

#[test]
fn osd_in_a_directory_without_a_disk_is_removed_by_the_switch() {
    let world = example::directory_without_a_disk;
    let on = || Policy { drop_directories: true, ..removes() };
    let play = Play::with_policy(world(), on(), 1);
    assert!(is_directory_gone(&play));
    for policy in [removes(), Policy { removals: false, ..on() }] {
        let play = Play::with_policy(world(), policy, 1);
        let Some(Ok(End::Finished(summary))) = play.run() else { panic!("it does not end") };
        let is_named = |(osd, why): &(OsdId, String)| *osd == OSD && why.contains("run.dropDirectories");
        assert!(summary.refused.iter().any(is_named), "{summary:?}");
        assert!(play.sim.borrow().world.ceph.slots[&OSD].up);
    }
}

#[test]
fn osd_that_has_been_out_for_long_is_removed_by_the_switch() {
    let on = || Policy { remove_out: Some(TimeDelta::minutes(60)), ..removes() };
    let play = Play::with_policy(example::out_for(61), on(), 1);
    assert!(is_directory_gone(&play));
    for (minutes, policy) in [(59, on()), (61, removes())] {
        let play = Play::with_policy(example::out_for(minutes), policy, 1);
        assert!(matches!(play.run(), Some(Ok(End::Finished(_)))));
        assert!(play.sim.borrow().world.ceph.slots.contains_key(&OSD));
    }
}

#[test]
fn purge_of_a_removed_osd_moves_no_data() {
    let play = requested();
    assert_eq!(play.run(), Play::finished());
    let sim = play.sim.borrow();
    let fills = |what: &osd_migrate::sim::Happening| matches!(what, osd_migrate::sim::Happening::Fill(..));
    let moved = sim.occurred.iter().filter(|one| fills(&one.what)).count();
    let held = six().placements.values().filter(|placement| placement.home.contains(&OSD)).count();
    assert!(held > 0 && moved == held, "{moved} moves of {held} PGs");
}

/// Checks that each PG moves once, and that nothing of the node is left in CRUSH.
#[test]
fn osds_of_a_node_are_emptied_at_the_same_time() {
    let node = NodeName("h1".to_owned());
    let mut world = requested().sim.borrow().world.clone();
    world.kube.requests.removals.clear();
    world.request_removal_of_node(&node);
    let requested: Vec<OsdId> = world.kube.requests.removals.keys().copied().collect();
    let held = |world: &World| {
        let held = |home: &Vec<OsdId>| home.iter().filter(|osd| requested.contains(osd)).count();
        world.placements.values().map(|placement| held(&placement.home)).sum::<usize>()
    };
    let held = held(&world);
    let policy = Policy { removals: true, skip: [FILESTORE].into(), ..Policy::default() };
    let play = Play::with_policy(world, policy, 1);
    assert_eq!(play.run(), Play::finished());
    let sim = play.sim.borrow();
    assert!(requested.len() > 1 && requested.iter().all(|osd| !sim.world.ceph.slots.contains_key(osd)));
    let fills = |what: &osd_migrate::sim::Happening| matches!(what, osd_migrate::sim::Happening::Fill(..));
    let moved = sim.occurred.iter().filter(|one| fills(&one.what)).count();
    assert_eq!(moved, held, "each PG moves once");
    assert!(sim.world.ceph.empty_hosts.is_empty() && sim.world.kube.requests.removals.is_empty());
    let log = play.log.borrow();
    let at = |line: &str| {
        log.iter().enumerate().filter(|(_, said)| *said == line).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let (drops, stops) = (at("do drop-weight"), at("do stop"));
    assert_eq!((drops.len(), stops.len()), (requested.len(), requested.len()));
    assert!(
        drops.last() < stops.first(),
        "all weights are dropped before the first stop: {drops:?} {stops:?}"
    );
    assert_eq!(at("do remove-host").len(), 1);
    assert_no_leftovers(&sim);
}

/// Cancels a removal right after an act, and runs to the end.
fn cancelled_after(is_it: fn(&Act) -> bool) -> Play {
    let play = requested();
    let end = play.run_watched(Some(Box::new(move |call, side, world| {
        let osd_migrate::sim::ports::Call::Act(act) = call else { return false };
        if side == osd_migrate::sim::ports::Side::Done && is_it(act) {
            world.kube.control = Some(Control { kind: ControlKind::Cancel, since: None });
        }
        false
    })));
    assert!(matches!(end, Some(Ok(End::Finished(_)))), "{end:?}");
    play
}

#[test]
fn cancelled_removal_restores_the_weight_before_the_stop_only() {
    let play = cancelled_after(|act| matches!(act, Act::Ceph(CephAct::DropWeight { .. })));
    assert_eq!(weight(&play.sim.borrow().world), weight(&six()));
    assert_no_leftovers(&play.sim.borrow());
    assert_eq!(count(&play, |act| matches!(act, Act::Ceph(CephAct::RestoreWeight { .. }))), 1);
    let play = cancelled_after(|act| matches!(act, Act::Kube(KubeAct::Stop { .. })));
    assert_removed(&play);
}

#[test]
fn withdrawn_request_keeps_the_osd_with_its_weight() {
    let play = requested();
    let end = play.run_watched(Some(Box::new(|call, side, world| {
        let osd_migrate::sim::ports::Call::Act(Act::Ceph(CephAct::DropWeight { .. })) = call else {
            return false;
        };
        if side == osd_migrate::sim::ports::Side::Done {
            world.kube.requests.removals.clear();
        }
        false
    })));
    assert!(matches!(end, Some(Ok(End::Finished(_)))), "{end:?}");
    let sim = play.sim.borrow();
    let slot = &sim.world.ceph.slots[&OSD];
    assert!(slot.up && slot.is_in);
    assert_eq!(weight(&sim.world), weight(&six()));
    assert_no_leftovers(&sim);
}

/// Checks a runner that is frozen after its forecast, while another one closes the record.
///
/// The forecast takes minutes in a large cluster.
#[test]
fn data_of_a_closed_record_is_not_moved_after_a_late_forecast() {
    let emptied = || {
        let world = requested().sim.borrow().world.clone();
        let policy = Policy { empty: Empty::All, skip: [FILESTORE].into(), ..Policy::default() };
        let play = Play::with_policy(world, policy, 1);
        play.sim.borrow_mut().world.kube.requests.removals.clear();
        play
    };
    for (play, control) in [(requested(), None), (emptied(), Some(ControlKind::Cancel))] {
        let mut frozen = play.start(Some(Box::new(|_, side, _| side == Side::Placed)));
        assert_eq!(frozen.go_on(), None, "it must freeze");
        frozen.runner.is_taken_for_gone();
        {
            let world = &mut play.sim.borrow_mut().world;
            world.kube.requests.removals.clear();
            world.kube.control = control.map(|kind| Control { kind, since: None });
        }
        assert!(matches!(play.run(), Some(Ok(End::Finished(_)))));
        assert_no_leftovers(&play.sim.borrow());
        frozen.runner.thaw();
        frozen.go_on();
        let sim = play.sim.borrow();
        assert!(sim.world.ceph.slots[&OSD].is_in && weight(&sim.world) == weight(&six()));
        assert_no_leftovers(&sim);
    }
}

#[test]
fn runner_frozen_during_a_removal_changes_nothing() {
    at_each_point(requested, assert_removed, BEFORE, "a removal, frozen before");
    at_each_point(requested, assert_removed, LATE, "a removal, frozen late");
}
