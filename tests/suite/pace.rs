//! Progress of simulated runs: estimates against what really followed, and stalls.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use chrono::{DateTime, TimeDelta, Utc};

use osd_migrate::domain::in_parallel::InParallel;
use osd_migrate::domain::next::{Saving, Wait};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::pace::{Backfill, Span};
use osd_migrate::domain::policy::{Limits, Policy};
use osd_migrate::report::{Event, Reporter, RunProgress};
use osd_migrate::run::Ports;
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::example::{Kind, PoolShape, Shape};
use osd_migrate::sim::ports::Runner;
use osd_migrate::sim::{Happening, World};

/// Bytes per second of backfill onto an OSD: a hard disk under load.
const RATE: u64 = 40 << 20;

/// Returns 12 OSDs on six hosts, of which two are legacy, with 192 PGs of 1 GiB.
///
/// The simulation moves whole PGs: with few large ones, nothing would change for a long time.
fn many_pgs() -> World {
    use Kind::{ByHand, Filestore, Raw};
    let pool = PoolShape { pgs: 192, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![
        vec![ByHand, Raw],
        vec![Filestore, Raw],
        vec![Raw, Raw],
        vec![Raw, Raw],
        vec![Raw, Raw],
        vec![Raw, Raw],
    ];
    Shape { hosts, pools: vec![pool], disk_gib: 400 }.world()
}

/// An estimate for an OSD, made when a fifth of its data was moved.
struct Estimate {
    osd: OsdId,
    at: DateTime<Utc>,
    shortest: TimeDelta,
    longest: TimeDelta,
}

#[derive(Default)]
struct Seen {
    progress: RunProgress,
    estimates: Vec<Estimate>,
    /// Ends of backfills.
    ends: Vec<(OsdId, DateTime<Utc>)>,
    /// Time of the first stall, and its text.
    stall: Option<(DateTime<Utc>, String)>,
    details: Vec<String>,
    /// Time that all OSDs still take, estimated when a fifth was moved to each of several OSDs.
    of_all: Option<(DateTime<Utc>, Span)>,
}

struct Listener {
    sim: Rc<RefCell<Sim>>,
    seen: Rc<RefCell<Seen>>,
}

impl Reporter for Listener {
    async fn report(&mut self, event: Event<'_>) {
        let now = self.sim.borrow().world.at;
        let mut seen = self.seen.borrow_mut();
        if let Event::Saved { osd: Some(osd), why: Saving::Closing, .. } = event {
            seen.ends.push((osd, now));
        }
        let detail = seen.progress.add(&event, &event.waits(), now);
        seen.details.extend(detail.clone());
        if !matches!(event, Event::Waiting { wait: Wait::ActiveClean { .. }, .. }) {
            return;
        }
        let progress = seen.progress.pace.progress(now);
        if progress.stalled.is_some() && seen.stall.is_none() {
            seen.stall = Some((now, detail.unwrap_or_default()));
        }
        let backfills = &seen.progress.pace.backfills;
        let is_fifth = |backfill: &Backfill| backfill.moved_bytes() * 5 >= backfill.total_bytes;
        if seen.of_all.is_none() && backfills.len() > 1 && backfills.values().all(is_fifth) {
            seen.of_all = progress.all_left.map(|left| (now, left));
        }
        let Some(backfill) = seen.progress.pace.backfills.values().next().cloned() else { return };
        let is_new = seen.estimates.iter().all(|estimate| estimate.osd != backfill.osd);
        if let (true, Some(left)) = (is_new && is_fifth(&backfill), backfill.time_left()) {
            seen.estimates.push(Estimate {
                osd: backfill.osd,
                at: now,
                shortest: left.shortest,
                longest: left.longest,
            });
        }
    }
}

/// Runs until the end, or until nothing happens any more.
fn run(world: World, random: u64, prepare: impl FnOnce(&mut Sim)) -> Rc<RefCell<Seen>> {
    run_by(&Policy::default(), world, random, prepare)
}

fn run_by(policy: &Policy, world: World, random: u64, prepare: impl FnOnce(&mut Sim)) -> Rc<RefCell<Seen>> {
    let sim = Rc::new(RefCell::new(Sim::new(world, random)));
    sim.borrow_mut().schedule.rate = RATE;
    prepare(&mut sim.borrow_mut());
    let seen = Rc::new(RefCell::new(Seen::default()));
    let runner = Runner::new(&sim, None);
    let mut ports = Ports {
        cluster: runner.clone(),
        store: runner.clone(),
        lease: runner.clone(),
        clock: runner,
        audience: Listener { sim: Rc::clone(&sim), seen: Rc::clone(&seen) },
    };
    let polled = std::pin::pin!(ports.run(policy)).as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(_) | Poll::Pending));
    seen
}

#[test]
fn time_left_after_a_fifth_is_right_in_nine_of_ten_cases() {
    let (mut right, mut all) = (0, 0);
    for seed in 1..=10 {
        let seen = run(many_pgs(), seed, |_| {});
        let seen = seen.borrow();
        assert_eq!(seen.progress.pace.done, 2, "seed {seed}");
        for estimate in &seen.estimates {
            let (_, end) = seen.ends.iter().find(|(osd, _)| *osd == estimate.osd).unwrap();
            let truth = *end - estimate.at;
            let quarter = truth / 4;
            all += 1;
            if estimate.longest >= truth - quarter && estimate.shortest <= truth + quarter {
                right += 1;
            }
        }
    }
    crate::story::play::print_figures(&format!("time left after a fifth: {right} of {all} within a quarter"));
    assert!(all >= 20 && right * 10 >= all * 9, "{right} of {all}");
}

#[test]
fn end_of_an_osd_is_counted_with_its_time_and_bytes() {
    let seen = run(many_pgs(), 1, |_| {});
    let seen = seen.borrow();
    let ends: Vec<_> = seen.details.iter().filter(|detail| detail.contains(" of 2 OSDs; ")).collect();
    assert_eq!(ends.len(), 2, "{:?}", seen.details);
    assert!(ends[0].starts_with("1 of 2 OSDs; ") && ends[0].ends_with(" moved"), "{}", ends[0]);
}

#[test]
fn time_left_of_osds_in_parallel_is_not_added_up() {
    let pool = PoolShape { pgs: 192, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand; 4], vec![Kind::Raw; 4], vec![Kind::Raw; 4]];
    let world = Shape { hosts, pools: vec![pool], disk_gib: 400 }.world();
    let limits = Limits { soak: TimeDelta::zero(), ..Limits::default() };
    let seen =
        run_by(&Policy { in_parallel: InParallel::Count(3), limits, ..Policy::default() }, world, 1, |_| {});
    let seen = seen.borrow();
    assert_eq!(seen.progress.pace.done, 4);
    let ((at, left), (_, end)) = (seen.of_all.unwrap(), seen.ends.last().unwrap());
    let truth = *end - at;
    assert!(left.longest >= truth * 3 / 4 && left.shortest <= truth * 5 / 4, "{left:?}, it took {truth}");
    assert!(seen.details.iter().any(|detail| detail.contains(" OSDs, ")), "{:?}", seen.details);
}

#[test]
fn flag_norecover_is_a_stall_within_eleven_minutes() {
    let set_at = Rc::new(RefCell::new(None));
    let of_fault = Rc::clone(&set_at);
    let seen = run(many_pgs(), 1, |sim| {
        // The flag prevents all data movement in Ceph, and none in the simulation: a PG takes 20 min there.
        sim.schedule.rate = 900 << 10;
        sim.add_fault(Rc::new(move |world, _| {
            let is_backfilling = |state: &String| state.contains("backfill");
            if !world.ceph.pgs.values().any(|pg| pg.state.iter().any(is_backfilling)) {
                return Vec::new();
            }
            *of_fault.borrow_mut() = Some(world.at);
            vec![(TimeDelta::zero(), Happening::FlagSet)]
        }));
    });
    let (at, text) = seen.borrow().stall.clone().expect("a stall");
    let set_at = set_at.borrow().unwrap();
    assert!(at - set_at <= TimeDelta::minutes(11), "{}", at - set_at);
    assert!(text.contains("no progress for ") && text.contains("ceph osd unset norecover"), "{text}");
}

#[test]
fn throttled_backfill_is_no_stall() {
    // A PG of 1 GiB takes about four minutes then.
    let seen = run(many_pgs(), 1, |sim| sim.schedule.rate = RATE / 10);
    assert!(seen.borrow().stall.is_none(), "{:?}", seen.borrow().stall);
    assert_eq!(seen.borrow().progress.pace.done, 2);
}
