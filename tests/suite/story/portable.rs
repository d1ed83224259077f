//! A portable OSD, on a volume of a CSI driver that is attached under another name each time and perhaps to
//! another node, is migrated like the others.

use std::rc::Rc;

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, CephAct, KubeAct, NodeAct};
use osd_migrate::domain::classify::Class;
use osd_migrate::domain::inspection::NodeTask;
use osd_migrate::domain::osd::{NodeName, OsdId};
use osd_migrate::run::End;
use osd_migrate::sim::ports::{Call, Side};
use osd_migrate::sim::{Happening, PvcChange, World, example};

use super::crash::Crashes;
use super::freeze;
use super::play::{Play, assert_no_leftovers, closed, count, ends};

const OSD: OsdId = OsdId(0);

fn portable() -> Play {
    Play::over(example::pvc_portable(), 1)
}

/// Returns the node on which the OSD runs at first.
fn first_node() -> NodeName {
    example::pvc_portable().disks["disk-0"].node.clone()
}

fn other_node(world: &World) -> NodeName {
    world.kube.nodes.keys().find(|node| **node != first_node()).unwrap().clone()
}

/// Lets something happen once, as soon as the world is in a state.
fn once(play: &Play, is: impl Fn(&World) -> bool + 'static, what: impl Fn(&World) -> Happening + 'static) {
    play.sim.borrow_mut().add_fault(Rc::new(move |world, _| {
        let what = is(world).then(|| what(world));
        what.into_iter().map(|what| (TimeDelta::zero(), what)).collect()
    }));
}

fn moves(world: &World) -> Happening {
    Happening::Pvc(PvcChange::PodMoves(OSD, other_node(world)))
}

fn is_up(world: &World) -> bool {
    world.ceph.slots[&OSD].up
}

/// Asserts that the OSD is recreated on its volume, as declared, and nothing is left.
fn is_migrated(play: &Play) {
    let sim = play.sim.borrow();
    for (osd, end) in ends(&sim) {
        assert_eq!((end.class, end.flags), (Class::Conforming, (true, true, false, false)), "{osd}");
        assert_eq!(end.is_new, osd == OSD, "{osd}");
    }
    let world = &sim.world;
    let slot = &world.ceph.slots[&OSD];
    assert_eq!(world.disk_of(slot.fsid.unwrap()).unwrap().0, "disk-0");
    assert_eq!(slot.crush.as_ref().unwrap().location["host"], example::PVC);
    assert_eq!(closed(&sim).last(), Some(&OSD));
    assert_no_leftovers(&sim);
}

/// Returns the nodes of the agents that rebuilt the OSD.
fn rebuilt_on(play: &Play) -> Vec<NodeName> {
    let node = |act: &Act| match act {
        Act::Node(NodeAct::Agent { request, .. }) if request.task == NodeTask::Rebuild => {
            Some(request.node.clone())
        }
        _ => None,
    };
    play.sim.borrow().done.iter().filter_map(node).collect()
}

#[test]
fn portable_osd_is_recreated_on_a_volume_without_a_name() {
    let play = portable();
    assert_eq!(play.run(), Play::finished());
    is_migrated(&play);
    play.assert_again_nothing();
}

#[test]
fn portable_osd_that_moves_before_its_proof_is_migrated_there() {
    let play = portable();
    once(&play, |world| is_up(world) && !world.kube.node_jobs.is_empty(), moves);
    assert_eq!(play.run(), Play::finished());
    is_migrated(&play);
    assert_eq!(rebuilt_on(&play), [other_node(&play.sim.borrow().world)]);
}

#[test]
fn portable_osd_that_moves_before_its_stop_is_inspected_again() {
    let play = portable();
    let mut has_moved = false;
    let end = play.run_watched(Some(Box::new(move |call, side, world| {
        let is_backed_up = matches!(call, Call::Act(Act::Kube(KubeAct::BackUp { .. }))) && side == Side::Done;
        if is_backed_up && !has_moved {
            has_moved = true;
            let move_of_the_pod = moves(world);
            world.happen(&move_of_the_pod);
        }
        false
    })));
    assert_eq!(end, Play::finished());
    is_migrated(&play);
    assert_eq!(rebuilt_on(&play), [other_node(&play.sim.borrow().world)]);
    let inspections = |act: &Act| matches!(act, Act::Node(NodeAct::Agent { request, .. }) if request.task == NodeTask::Inspect);
    assert_eq!(count(&play, inspections), 2, "one on each node");
    assert_eq!(count(&play, |act| matches!(act, Act::Kube(KubeAct::Stop { .. }))), 1);
}

#[test]
fn stopped_portable_osd_waits_for_the_node_of_its_agents() {
    let play = portable();
    let node = first_node();
    let destroyed = |world: &World| world.issued.values().any(|issued| !issued.is_empty());
    let lost = node.clone();
    once(&play, destroyed, move |_| Happening::PowerLost(lost.clone()));
    let back = node.clone();
    play.sim.borrow_mut().add_fault(Rc::new(move |world, _| {
        let is_lost = world.kube.nodes.get(&back).is_some_and(|node| !node.ready);
        let what = is_lost.then(|| Happening::PowerBack(back.clone()));
        what.into_iter().map(|what| (TimeDelta::minutes(45), what)).collect()
    }));
    assert_eq!(play.run(), Play::finished());
    is_migrated(&play);
    let nodes = rebuilt_on(&play);
    assert!(nodes.len() > 1 && nodes.iter().all(|on| *on == node), "{nodes:?}");
}

#[test]
fn stopped_portable_osd_is_quarantined_if_its_node_is_lost() {
    let play = portable();
    let node = first_node();
    let destroyed = |world: &World| world.issued.values().any(|issued| !issued.is_empty());
    once(&play, destroyed, move |_| Happening::PowerLost(node.clone()));
    let end = play.run();
    let Some(Ok(End::Finished(summary))) = end else { panic!("{end:?}") };
    assert!(matches!(summary.quarantined.as_slice(), [(OSD, _)]), "{summary:?}");
}

#[test]
fn new_portable_osd_starts_on_another_node_if_its_own_is_lost() {
    let play = portable();
    let node = first_node();
    let old = example::fsid(OSD, 0);
    let deployed = move |world: &World| {
        let daemon = &world.kube.daemons[&OSD];
        daemon.fsid.is_some_and(|fsid| fsid != old) && daemon.replicas == 1 && daemon.pods.is_empty()
    };
    once(&play, deployed, move |_| Happening::PowerLost(node.clone()));
    play.run();
    let sim = play.sim.borrow();
    let slot = &sim.world.ceph.slots[&OSD];
    assert!(slot.up && slot.fsid != Some(old));
    assert_eq!(sim.world.kube.daemons[&OSD].node, Some(other_node(&sim.world)));
    let destroys = sim.done.iter().filter(|act| matches!(act, Act::Ceph(CephAct::Destroy { .. })));
    assert_eq!(destroys.count(), 1);
}

#[test]
fn portable_osd_ends_the_same_after_a_crash_at_any_point() {
    let crashes = Crashes { check: is_migrated, ..Crashes::PLAIN };
    Crashes { play: portable, ..crashes }.run("a portable OSD", false);
}

#[test]
fn runner_frozen_with_a_portable_osd_changes_nothing() {
    freeze::at_each_point(portable, is_migrated, freeze::BEFORE, "a portable OSD");
    freeze::at_each_point(portable, is_migrated, freeze::LATE, "a portable OSD, late");
}
