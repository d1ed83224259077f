//! A runner is frozen before any of its acts and saves. Another runner finishes over the same cluster, and
//! then the first one resumes. Nothing that the first runner does then may change anything.

use std::cell::Cell;
use std::rc::Rc;

use osd_migrate::sim::World;
use osd_migrate::sim::ports::{Call, Side, Watch};

use super::play::{Play, print_figures};

fn freezes_at(n: usize, side: Side, points: &Rc<Cell<usize>>) -> Option<Watch> {
    let points = Rc::clone(points);
    Some(Box::new(move |call, at, _| {
        let counts = at == side && !matches!(call, Call::Hold);
        points.set(points.get() + usize::from(counts));
        counts && points.get() == n
    }))
}

/// Returns the world without its clock.
fn world_of(play: &Play) -> World {
    let mut world = play.sim.borrow().world.clone();
    world.at = chrono::DateTime::UNIX_EPOCH;
    world
}

pub(crate) const BEFORE: Side = Side::Before;
pub(crate) const LATE: Side = Side::Late;

pub(crate) fn at_each_point(begin: fn() -> Play, check: fn(&Play), side: Side, name: &str) {
    let points = Rc::new(Cell::new(0));
    assert_eq!(begin().run_watched(freezes_at(0, side, &points)), Play::finished());
    let points = points.get();
    assert!(points > if side == LATE { 3 } else { 11 }, "{points}");
    for n in 1..=points {
        let play = begin();
        let mut frozen = play.start(freezes_at(n, side, &Rc::default()));
        assert_eq!(frozen.go_on(), None, "it must freeze at {n}");
        frozen.runner.is_taken_for_gone();
        assert_eq!(play.run(), Play::finished(), "alongside a runner frozen at {n}");
        play.time_passes(60);
        let (before, version) = (world_of(&play), play.sim.borrow().version());
        let (history, reported) = (play.sim.borrow().history.clone(), play.log.borrow().len());
        frozen.runner.thaw();
        assert_eq!(frozen.go_on(), Play::finished(), "frozen at {n}: {:?}", &play.log.borrow()[reported..]);
        play.time_passes(60);
        let said = format!("frozen at {n}: {:?}", &play.log.borrow()[reported..]);
        assert_eq!(world_of(&play), before, "{said}");
        assert_eq!(play.sim.borrow().version(), version, "{said}");
        assert_eq!(play.sim.borrow().history, history, "{said}");
        check(&play);
    }
    print_figures(&format!("{name}: {points} points"));
}

#[test]
fn runner_frozen_before_an_act_or_a_save_changes_nothing() {
    at_each_point(Play::new, Play::assert_all_is_well, BEFORE, "frozen before");
}

#[test]
fn runner_frozen_after_its_last_ledger_read_changes_nothing() {
    at_each_point(Play::new, Play::assert_all_is_well, LATE, "frozen late");
}
