//! Drains of other nodes wait while osd-migrate has stopped an OSD, and are allowed before the next stop.

use std::cell::Cell;
use std::rc::Rc;

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::observation::{Control, ControlKind};
use osd_migrate::sim::ports::{Call, Side, Watch};
use osd_migrate::sim::{Around, Happening};

use super::cancelled;
use super::play::{Play, assert_no_leftovers, count};

fn limits(play: &Play) -> Vec<u32> {
    let sim = play.sim.borrow();
    let limit = |act: &Act| match act {
        Act::Kube(KubeAct::LimitDrains { max_unavailable, .. }) => Some(*max_unavailable),
        _ => None,
    };
    sim.done.iter().filter_map(limit).collect()
}

/// Stops at the first act that limits drains, before it or after it.
fn at_the_limit(
    side: Side,
    mut then: impl FnMut(&mut osd_migrate::sim::World) -> bool + 'static,
) -> Option<Watch> {
    let mut is_over = false;
    Some(Box::new(move |call, at, world| {
        let is_it = !is_over
            && at == side
            && matches!(call, Call::Act(Act::Kube(KubeAct::LimitDrains { max_unavailable: 0, .. })));
        is_over |= is_it;
        is_it && then(world)
    }))
}

#[test]
fn pdb_allows_a_drain_between_two_osds() {
    let play = Play::new();
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
    assert_eq!(limits(&play), [0, 1, 0, 1]);
}

#[test]
fn pdb_patch_is_resumed_after_a_kill_before_or_after_it() {
    for side in [Side::Before, Side::Done] {
        let play = Play::new();
        assert_eq!(play.run_watched(at_the_limit(side, |_| true)), None);
        assert!(play.sim.borrow().ledger().unwrap().run.pdb.is_some());
        assert_eq!(play.run(), Play::finished());
        play.assert_all_is_well();
        assert_eq!(limits(&play), [0, 1, 0, 1]);
    }
}

#[test]
fn pdb_is_restored_if_cancelled_before_the_stop() {
    for side in [Side::Before, Side::Done] {
        let play = Play::new();
        let cancels = at_the_limit(side, |world| {
            world.kube.control = Some(Control { kind: ControlKind::Cancel, since: None });
            false
        });
        assert_eq!(play.run_watched(cancels), cancelled());
        assert_eq!(
            (limits(&play), count(&play, |act| matches!(act, Act::Kube(KubeAct::Stop { .. })))),
            (vec![0, 1], 0)
        );
        assert_no_leftovers(&play.sim.borrow());
    }
}

#[test]
fn pdb_is_restored_during_a_pause_before_the_stop() {
    let play = Play::new();
    let is_over = Cell::new(false);
    play.sim.borrow_mut().add_fault(Rc::new(move |world, _| {
        if world.kube.control.is_none() || is_over.replace(true) {
            return Vec::new();
        }
        vec![(TimeDelta::minutes(10), Happening::Around(Around::Paused, false))]
    }));
    let pauses = at_the_limit(Side::Done, |world| {
        world.kube.control = Some(Control { kind: ControlKind::Pause, since: None });
        false
    });
    assert_eq!(play.run_watched(pauses), Play::finished());
    assert_no_leftovers(&play.sim.borrow());
    assert_eq!(limits(&play), [0, 1, 0, 1, 0, 1]);
    let log = play.log.borrow();
    let at = |what: &str| log.iter().position(|line| line == what);
    assert!(at("save pdb-restored") < at("do stop"), "{log:?}");
}
