//! The real loop over the fake cluster: a BlueStore made by hand and a Filestore go the whole way, and do so wherever the
//! program dies on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use osd_migrate::domain::act::Act;
use osd_migrate::domain::classify::{self, Class};
use osd_migrate::domain::next::Summary;
use osd_migrate::domain::observation::{OrderKind, SlotState};
use osd_migrate::domain::osd::{CrushItem, OsdFsid, OsdId, Weight};
use osd_migrate::domain::policy::Policy;
use osd_migrate::run::{End, Ports, RunError};

use crate::support::build::{BY_HAND, FILESTORE, OSDS, claim, label, observation, old};
use crate::support::fake::{Fake, Sim};

/// Runs the program until its end, or until it dies.
fn run(fake: &Fake) -> Option<Result<End, RunError>> {
    let (cluster, store, lease, clock, audience) =
        (fake.clone(), fake.clone(), fake.clone(), fake.clone(), fake.clone());
    let mut ports = Ports { cluster, store, lease, clock, audience };
    let policy = Policy::default();
    let future = pin!(ports.run(&policy));
    // Nothing in the fake waits but death, so one poll goes all the way.
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(end) => Some(end),
        Poll::Pending => None,
    }
}

fn finished() -> Option<Result<End, RunError>> {
    Some(Ok(End::Finished(Summary::default())))
}

fn fake(change: impl FnOnce(&mut Sim)) -> Fake {
    let mut sim = Sim::new();
    change(&mut sim);
    Fake(Rc::new(RefCell::new(sim)))
}

/// What is the same however the way went: ids, places, weights, flags, and that each OSD is as wanted.
type Ends =
    BTreeMap<OsdId, (Option<OsdFsid>, Option<CrushItem>, Weight, Weight, (bool, bool, bool, bool), Class)>;

fn ends(sim: &Sim) -> Ends {
    let classes = classify::classify(&sim.seen);
    let slot = |osd: &OsdId| {
        let slot = &sim.seen.ceph.slots[osd];
        assert_eq!(slot.state, SlotState::Exists);
        let flags = (slot.up, slot.is_in, slot.noout, slot.noin);
        (slot.fsid, slot.crush.clone(), slot.reweight, slot.primary_affinity, flags, classes[osd].clone())
    };
    sim.seen.ceph.slots.keys().map(|osd| (*osd, slot(osd))).collect()
}

/// The end that every story must have.
fn assert_all_is_well(sim: &Sim, tries: u32) {
    let before = observation();
    let now = ends(sim);
    assert_eq!(now.keys().copied().collect::<Vec<_>>(), (0..OSDS).map(OsdId).collect::<Vec<_>>(), "same ids");
    for (osd, (fsid, crush, reweight, affinity, flags, class)) in now {
        let slot = &before.ceph.slots[&osd];
        let migrated = osd == BY_HAND || osd == FILESTORE;
        let n = if osd == BY_HAND { tries } else { 1 };
        assert_eq!(fsid, Some(if migrated { claim(osd, n) } else { old(osd) }), "{osd}");
        assert_eq!(
            (crush, reweight, affinity),
            (slot.crush.clone(), slot.reweight, slot.primary_affinity),
            "{osd}"
        );
        assert_eq!(flags, (true, true, false, false), "{osd}: up, in, no flag left");
        assert_eq!(class, Class::Conforming, "{osd}");
        if migrated {
            assert_eq!(sim.disks[&osd], label(claim(osd, n), osd, true));
        }
    }
    assert!(sim.ledger().records.is_empty() && sim.ledger().run.fence.is_none());
    assert_eq!(sim.history.len(), 2);
    let kube = &sim.seen.kube;
    assert!(
        kube.fence.is_none() && kube.kept.is_empty() && kube.node_jobs.is_empty() && kube.reports.is_empty()
    );
    assert!(kube.daemons.values().all(|daemon| daemon.stopped_by.is_none() && daemon.replicas == 1));
}

fn count(sim: &Sim, is: impl Fn(&Act) -> bool) -> usize {
    sim.done.iter().filter(|act| is(act)).count()
}

/// One Stop of each old OSD, one Destroy of each fsid.
fn assert_once_per_incarnation(sim: &Sim) {
    for osd in [BY_HAND, FILESTORE] {
        assert_eq!(
            count(sim, |act| matches!(act, Act::Stop { osd: o, .. } if *o == osd)),
            1,
            "stops of {osd}"
        );
    }
    let mut destroyed: BTreeMap<OsdFsid, u32> = BTreeMap::new();
    for act in &sim.done {
        if let Act::Destroy { fsid, .. } = act {
            *destroyed.entry(*fsid).or_default() += 1;
        }
    }
    assert!(destroyed.contains_key(&old(BY_HAND)) && destroyed.contains_key(&old(FILESTORE)));
    assert!(destroyed.values().all(|times| *times == 1), "{destroyed:?}");
}

#[test]
fn two_legacy_osds_go_the_whole_way_one_after_the_other() {
    let fake = fake(|_| {});
    assert_eq!(run(&fake), finished());
    let sim = fake.0.borrow();
    assert_all_is_well(&sim, 1);
    assert_once_per_incarnation(&sim);
    let one_osd = [
        "save record",
        "do agent",
        "save proof",
        "do keep",
        "save stop",
        "save fence",
        "do fence",
        "do hush",
        "do stop",
        "do destroy",
        "save rebuild",
        "do agent",
        "save new",
        "do deploy",
        "do unhush",
        "do unfence",
        "save unfenced",
        "save closing",
        "do unhush",
        "do sweep",
        "save closed",
    ];
    let end = ["finished: nothing is left to do"];
    let expected: Vec<&str> = one_osd.iter().chain(&one_osd).chain(&end).copied().collect();
    assert_eq!(sim.log, expected);
}

#[test]
fn once_finished_running_it_again_does_nothing() {
    let fake = fake(|_| {});
    assert_eq!(run(&fake), finished());
    let done = fake.0.borrow().done.len();
    assert_eq!(run(&fake), finished());
    assert_eq!(fake.0.borrow().done.len(), done);
}

#[test]
fn a_rebuild_that_fails_after_claiming_the_slot_is_done_again_under_the_same_id() {
    let fake = fake(|sim| sim.rebuilds_fail = 2);
    assert_eq!(run(&fake), finished());
    let sim = fake.0.borrow();
    assert_all_is_well(&sim, 3);
    assert_once_per_incarnation(&sim);
    assert_eq!(
        count(&sim, |act| matches!(act, Act::Destroy { osd: BY_HAND, .. })),
        3,
        "the old one, and two claims"
    );
}

#[test]
fn a_partner_that_fails_after_the_stop_turns_it_back_and_it_is_done_later() {
    let fake = fake(|sim| sim.outage = Some((OsdId(4), BY_HAND, 12)));
    assert_eq!(run(&fake), finished());
    let sim = fake.0.borrow();
    assert_all_is_well(&sim, 1);
    assert_eq!(count(&sim, |act| matches!(act, Act::Restart { osd: BY_HAND, .. })), 1);
    assert_eq!(count(&sim, |act| matches!(act, Act::Stop { osd: BY_HAND, .. })), 2);
    assert_eq!(count(&sim, |act| matches!(act, Act::Destroy { osd: BY_HAND, .. })), 1);
}

/// The program dies at the n-th beginning or end of a port call that changes the world, for every n; some seconds later it is started anew and
/// has nothing but the stored ledger.
fn sweep(change: impl Fn(&mut Sim), check: impl Fn(&Sim)) {
    let undisturbed = fake(&change);
    assert_eq!(run(&undisturbed), finished());
    let (points, end) = (undisturbed.0.borrow().points, ends(&undisturbed.0.borrow()));
    assert!(points > 100, "{points}");
    for n in 1..=points {
        let fake = fake(|sim| {
            change(sim);
            sim.dies_at = Some(n);
        });
        assert_eq!(run(&fake), None, "it must die at {n}");
        for _ in 0..n % 4 {
            fake.0.borrow_mut().tick();
        }
        assert_eq!(run(&fake), finished(), "died at {n}");
        let sim = fake.0.borrow();
        assert_eq!(ends(&sim), end, "died at {n}");
        check(&sim);
    }
}

#[test]
fn wherever_the_program_dies_the_end_is_the_same() {
    sweep(
        |_| {},
        |sim| {
            assert_all_is_well(sim, 1);
            assert_once_per_incarnation(sim);
        },
    );
}

#[test]
fn wherever_the_program_dies_around_a_failing_rebuild_the_end_is_the_same() {
    sweep(
        |sim| sim.rebuilds_fail = 1,
        |sim| {
            assert_all_is_well(sim, 2);
            assert_once_per_incarnation(sim);
        },
    );
}

/// osd.0 is stopped when somebody cancels: it is finished, osd.2 is not begun, nothing of ours is left.
fn assert_cancelled_after_the_first(sim: &Sim) {
    let now = ends(sim);
    assert_eq!(now[&BY_HAND].0, Some(claim(BY_HAND, 1)));
    assert_eq!(now[&FILESTORE].0, Some(old(FILESTORE)));
    assert!(now.values().all(|(_, _, _, _, flags, _)| *flags == (true, true, false, false)));
    assert!(sim.ledger().records.is_empty() && sim.ledger().run.fence.is_none());
    assert!(
        sim.seen.kube.fence.is_none() && sim.seen.kube.kept.is_empty() && sim.seen.kube.node_jobs.is_empty()
    );
    assert_eq!(count(sim, |act| matches!(act, Act::Stop { .. })), 1);
}

#[test]
fn cancelled_in_the_middle_it_finishes_the_osd_that_is_down_and_ends_wherever_the_program_dies() {
    let cancels = |sim: &mut Sim| sim.orders_at_stop = Some((BY_HAND, OrderKind::Cancel));
    let cancelled = || Some(Ok(End::Finished(Summary { cancelled: true, ..Summary::default() })));
    let undisturbed = fake(cancels);
    assert_eq!(run(&undisturbed), cancelled());
    assert_cancelled_after_the_first(&undisturbed.0.borrow());
    // Lifted, the next run does the rest.
    undisturbed.0.borrow_mut().seen.kube.order = None;
    assert_eq!(run(&undisturbed), finished());
    let points = undisturbed.0.borrow().points / 2;
    for n in 1..=points {
        let fake = fake(|sim| {
            cancels(sim);
            sim.dies_at = Some(n);
        });
        assert_eq!(run(&fake), None, "it must die at {n}");
        assert_eq!(run(&fake), cancelled(), "died at {n}");
        assert_cancelled_after_the_first(&fake.0.borrow());
    }
}
