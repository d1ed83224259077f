//! The program dies before or after any call that changes something, and is restarted with nothing but the
//! stored state. Dying around an observation is the same as dying at the point before it: the program's
//! memory is lost either way.

use std::cell::Cell;
use std::rc::Rc;

use osd_migrate::sim::course::Sim;
use osd_migrate::sim::ports::{Call, Side, Watch};

use osd_migrate_explore::approving_all;

use super::play::{Ended, Play, ends, print_figures};
use super::removal::{assert_removed, requested};
use super::{assert_cancelled_after_the_first, cancelled, rebuild_fails};

/// Number of second crashes for each first one, evenly spaced over the points that follow, and different each
/// time.
const SECOND: usize = 1;

/// Stops at the n-th point (from 1), and counts the points.
fn dies_at(n: usize, points: &Rc<Cell<usize>>) -> Option<Watch> {
    let points = Rc::clone(points);
    points.set(0);
    let mut held = false;
    Some(Box::new(move |call, side, _| {
        // A Lease that is acquired already is only read: one point an iteration, for the sleep before it.
        let again = matches!(call, Call::Hold) && side == Side::Done && std::mem::replace(&mut held, true);
        if side == Side::Late || again {
            return false;
        }
        points.set(points.get() + 1);
        assert!(points.get() < 5000, "it goes round in circles");
        points.get() == n
    }))
}

pub(crate) struct Crashes {
    pub(crate) play: fn() -> Play,
    pub(crate) run: fn(&Play, Option<Watch>) -> Ended,
    pub(crate) end: fn() -> Ended,
    pub(crate) check: fn(&Play),
}

impl Crashes {
    pub(crate) const PLAIN: Self = Self {
        play: Play::new,
        run: Play::run_watched,
        end: Play::finished,
        check: |play| {
            play.assert_all_is_well();
            play.assert_once_per_incarnation();
        },
    };

    /// Restarts the program some seconds later.
    fn goes_on(&self, play: &Play, pause: usize, said: &str) -> usize {
        play.time_passes(i64::try_from(pause).unwrap());
        let points = Rc::new(Cell::new(0));
        assert_eq!((self.run)(play, dies_at(0, &points)), (self.end)(), "{said}");
        (self.check)(play);
        points.get()
    }

    pub(crate) fn run(&self, name: &str, twice: bool) {
        let undisturbed = (self.play)();
        let points = Rc::new(Cell::new(0));
        assert_eq!((self.run)(&undisturbed, dies_at(0, &points)), (self.end)());
        (self.check)(&undisturbed);
        let (points, end) = (points.get(), ends(&undisturbed.sim.borrow()));
        assert!(points > 40, "{points}");
        let mut second = 0;
        for n in 1..=points {
            let play = (self.play)();
            assert_eq!((self.run)(&play, dies_at(n, &Rc::default())), None, "it must die at {n}");
            let dead: Sim = play.sim.borrow().clone();
            let left = self.goes_on(&play, n % 4, &format!("died at {n}"));
            assert_eq!(ends(&play.sim.borrow()), end, "died at {n}");
            for k in (0..SECOND).filter(|_| twice) {
                let m = 1 + (n * 7 + k * left / SECOND) % left;
                let play = Play::of(dead.clone());
                play.time_passes(i64::try_from(n % 4).unwrap());
                let said = format!("died at {n}, and again at {m}");
                assert_eq!((self.run)(&play, dies_at(m, &Rc::default())), None, "{said}");
                self.goes_on(&play, m % 5, &said);
                assert_eq!(ends(&play.sim.borrow()), end, "{said}");
                second += 1;
            }
        }
        print_figures(&format!("{name}: {points} crash points, each once; {second} pairs of crashes"));
    }
}

#[test]
fn migration_ends_the_same_after_a_crash_at_any_point() {
    Crashes::PLAIN.run("two OSDs", true);
}

#[test]
fn approved_plan_ends_the_same_after_a_crash_at_any_point() {
    let play = || {
        let play = Play::new();
        let policy = approving_all(&play.sim.borrow().world);
        assert_eq!(policy.approval.as_ref().map(|plan| plan.lines.osds().count()), Some(2));
        Play { policy, ..play }
    };
    Crashes { play, ..Crashes::PLAIN }.run("an approved plan", false);
}

#[test]
fn failing_rebuild_ends_the_same_after_a_crash_at_any_point() {
    let play = || {
        let play = Play::new();
        rebuild_fails(&play);
        play
    };
    Crashes { play, ..Crashes::PLAIN }.run("a rebuild that fails", false);
}

#[test]
fn partner_outage_ends_the_same_after_a_crash_at_any_point() {
    let play = || {
        let play = Play::new();
        play.partner_fails();
        play
    };
    Crashes { play, check: Play::assert_all_is_well, ..Crashes::PLAIN }.run("a partner's outage", false);
}

#[test]
fn removal_ends_the_same_after_a_crash_at_any_point() {
    Crashes { play: requested, check: assert_removed, ..Crashes::PLAIN }.run("a removal", false);
}

#[test]
fn cancelled_run_ends_the_same_after_a_crash_at_any_point() {
    let (run, check) = (Play::run_cancelled_at_stop, assert_cancelled_after_the_first);
    Crashes { run, end: cancelled, check, ..Crashes::PLAIN }.run("cancelled", false);
}
