//! The program dies before or after any call that changes something, and is restarted with nothing but the
//! stored state. Dying around an observation is the same as dying at the point before it: the program's
//! memory is lost either way.

use std::cell::Cell;
use std::rc::Rc;

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::observation::Slot;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::sim::Happening;
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::ports::{Call, Side, Watch};

use osd_migrate_explore::approving_all;

use super::play::{Ended, Play, Running, ends, print_figures};
use super::removal::{assert_removed, requested};
use super::{assert_cancelled_after_the_first, cancelled, rebuild_fails};

/// Number of second crashes for each first one, evenly spaced over the points that follow, and different each
/// time.
const SECOND: usize = 1;

/// Stops at these points (from 1), and counts the points.
fn stops_at(is_one: impl Fn(usize) -> bool + 'static, points: &Rc<Cell<usize>>) -> Option<Watch> {
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
        is_one(points.get())
    }))
}

pub(crate) struct Crashes {
    pub(crate) play: fn() -> Play,
    pub(crate) start: fn(&Play, Option<Watch>) -> Running,
    pub(crate) end: fn() -> Ended,
    pub(crate) check: fn(&Play),
}

impl Crashes {
    pub(crate) const PLAIN: Self = Self {
        play: Play::new,
        start: Play::start,
        end: Play::finished,
        check: |play| {
            play.assert_all_is_well();
            play.assert_once_per_incarnation();
        },
    };

    /// Restarts the program some seconds later, and returns the number of points until its end.
    fn goes_on(&self, play: &Play, pause: usize, said: &str) -> usize {
        play.time_passes(i64::try_from(pause).unwrap());
        let points = Rc::new(Cell::new(0));
        assert_eq!((self.start)(play, stops_at(|_| false, &points)).go_on(), (self.end)(), "{said}");
        (self.check)(play);
        points.get()
    }

    /// Runs undisturbed to the end, and returns what a crash at each point would leave.
    fn undisturbed(&self, play: &Play) -> Vec<Sim> {
        let mut left = Vec::new();
        let mut running = (self.start)(play, stops_at(|_| true, &Rc::default()));
        let end = loop {
            let end = running.go_on();
            if !running.runner.is_stopped() {
                break end;
            }
            left.push(play.sim.borrow().without_runners());
            running.runner.resume();
        };
        assert_eq!(end, (self.end)());
        (self.check)(play);
        left
    }

    pub(crate) fn run(&self, name: &str, twice: bool) {
        let first = (self.play)();
        let crashes = self.undisturbed(&first);
        let (points, end) = (crashes.len(), ends(&first.sim.borrow()));
        assert!(points > 40, "{points}");
        let over = |sim: &Sim| Play { policy: first.policy.clone(), ..Play::of(sim.clone()) };
        let mut second = 0;
        for (n, dead) in (1..).zip(&crashes) {
            let play = over(dead);
            let left = self.goes_on(&play, n % 4, &format!("died at {n}"));
            assert_eq!(ends(&play.sim.borrow()), end, "died at {n}");
            for k in (0..SECOND).filter(|_| twice) {
                let m = 1 + (n * 7 + k * left / SECOND) % left;
                let play = over(dead);
                play.time_passes(i64::try_from(n % 4).unwrap());
                let said = format!("died at {n}, and again at {m}");
                let dies = stops_at(move |point| point == m, &Rc::default());
                assert_eq!((self.start)(&play, dies).go_on(), None, "{said}");
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
    let (start, check) = (Play::start_cancelled_at_stop, assert_cancelled_after_the_first);
    Crashes { start, end: cancelled, check, ..Crashes::PLAIN }.run("cancelled", false);
}

/// Checks an outage of the whole site: the run is back before the host of a stopped OSD is.
#[test]
fn outage_of_the_site_quarantines_no_stopped_osd() {
    let play = dead_with_the_power_of_a_node(TimeDelta::hours(6) + TimeDelta::minutes(5));
    play.time_passes(6 * 3600);
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
}

/// Checks a runner that waited for the Lease of the dead one for half an hour, and observed nothing.
#[test]
fn wait_for_the_lease_takes_no_time_from_a_stopped_osd() {
    let play = dead_with_the_power_of_a_node(TimeDelta::minutes(35));
    {
        let mut sim = play.sim.borrow_mut();
        sim.lease_held_until = Some(sim.world.at + TimeDelta::minutes(30));
    }
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
}

/// Returns a run that died after it deployed a new OSD, whose node has no power for this time.
fn dead_with_the_power_of_a_node(back: TimeDelta) -> Play {
    let play = Play::new();
    let deployed: Watch = Box::new(|call, side, _| {
        matches!((call, side), (Call::Act(Act::Kube(KubeAct::Deploy(_))), Side::Done))
    });
    assert_eq!(play.run_watched(Some(deployed)), None);
    {
        let mut sim = play.sim.borrow_mut();
        let down = |(osd, slot): (&OsdId, &Slot)| (!slot.up).then_some(*osd);
        let osd = sim.world.ceph.slots.iter().find_map(down).unwrap();
        let node = sim.world.kube.daemons[&osd].node.clone().unwrap();
        let now = TimeDelta::zero();
        sim.add_fault(Rc::new(move |_, _| {
            vec![(now, Happening::PowerLost(node.clone())), (back, Happening::PowerBack(node.clone()))]
        }));
    }
    play
}
