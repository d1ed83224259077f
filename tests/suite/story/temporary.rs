//! Promise P9, for each temporary change: every end of a run restores it, wherever the program died or froze.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::observation::{Control, ControlKind, OsdPdb};
use osd_migrate::domain::osd::{OsdId, Weight};
use osd_migrate::domain::plan::Questions;
use osd_migrate::domain::policy::{Empty, Policy, Recovery};
use osd_migrate::domain::recovery::RecoveryConfig;
use osd_migrate::domain::temporary::{ALL, Temporary};
use osd_migrate::domain::view::View;
use osd_migrate::run::End;
use osd_migrate::sim::World;
use osd_migrate::sim::ports::{Call, Side, Watch};

use super::play::{Play, six_with_spares};

/// Moment of a temporary change at which the program dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The former value is saved, and nothing is changed.
    Saved,
    Changed,
    /// The cluster is restored, and the entry is not cleared.
    Restored,
}

/// What is done after the program died, before its next run.
type Then = fn(&mut Play);

/// Ends of a run.
const ENDS: [(&str, Then); 3] = [
    ("finished", |_| {}),
    ("cancelled", |play| {
        let control = Control { kind: ControlKind::Cancel, since: None };
        play.sim.borrow_mut().world.kube.control = Some(control);
    }),
    ("uninstalled", |play| play.policy.leaves = true),
];

/// Starts in a cluster in which a migration needs every temporary change.
fn play() -> Play {
    let mut world = six_with_spares();
    world.ceph.bootstrap = Some(false);
    let operator = world.kube.operator.as_mut().unwrap();
    (operator.replicas, operator.pods, operator.honours_fence) = (1, 1, false);
    let (empty, recovery) = (Empty::All, Recovery::Fast);
    let policy = Policy { scales_operator: true, empty, no_scrub: true, recovery, ..Policy::default() };
    Play::with_policy(world, policy, 1)
}

/// Values that every end restores: fence, operator, PodDisruptionBudgets; bootstrap key, flags of the cluster
/// and options; flags of OSDs, in-weights.
type Former = (OfKube, OfCeph, Vec<OfOsd>);

type OfKube = (Option<String>, Option<u32>, Option<u32>, bool);

type OfCeph = (Option<bool>, BTreeSet<String>, Option<RecoveryConfig>);

/// OSD with its flags `noout` and `noin`, and its in-weight.
type OfOsd = (OsdId, bool, bool, Weight);

fn former(world: &World) -> Former {
    let kube = &world.kube;
    let limit = |pdb: &OsdPdb| pdb.max_unavailable;
    let operator = kube.operator.as_ref().map(|operator| operator.replicas);
    let ceph = &world.ceph;
    (
        (kube.fence.clone(), operator, kube.osd_pdb.as_ref().map(limit), kube.own_pdb.is_some()),
        (ceph.bootstrap, ceph.flags.clone(), ceph.recovery.clone()),
        ceph.slots.iter().map(|(osd, slot)| (*osd, slot.noout, slot.noin, slot.reweight)).collect(),
    )
}

/// Returns whether the ledger has the former value, and whether the cluster is changed.
fn state_of(change: &Temporary, ledger: &Ledger, world: &World) -> (bool, bool) {
    let policy = Policy::default();
    let seen = world.observe(|_| Questions { bootstrap: true, recovery: true, ..Questions::default() });
    let view = View { policy: &policy, ledger, seen: &seen };
    ((change.is_saved)(ledger), (change.is_changed)(view))
}

/// Stops the program right after the call that leads to a moment.
fn dies_at(change: &'static Temporary, moment: Moment) -> Option<Watch> {
    let (mut saved, mut was_changed) = (Ledger::default(), false);
    Some(Box::new(move |call, side, world| {
        if let (Call::Save(ledger), Side::Done) = (&call, side) {
            saved = (*ledger).clone();
        }
        if side != Side::Done || matches!(call, Call::Hold) {
            return false;
        }
        let now = state_of(change, &saved, world);
        was_changed |= now.1;
        now == (true, moment == Moment::Changed) && was_changed == (moment != Moment::Saved)
    }))
}

/// Runs to the end, and asserts that everything is restored.
fn assert_restored(play: &Play, before: &Former, said: &str) {
    let end = play.run();
    assert!(matches!(end, Some(Ok(End::Finished(_)))), "{said}: {end:?}");
    let sim = play.sim.borrow();
    assert_eq!(former(&sim.world), *before, "{said}");
    for change in &ALL {
        assert_eq!(
            state_of(change, &sim.ledger().unwrap(), &sim.world),
            (false, false),
            "{said}: {}",
            change.name
        );
    }
}

#[test]
fn temporary_changes_are_restored_wherever_the_program_dies() {
    for change in &ALL {
        for moment in [Moment::Saved, Moment::Changed, Moment::Restored] {
            for (end, then) in ENDS {
                let said = format!("{} {moment:?}, then {end}", change.name);
                let mut play = play();
                let before = former(&play.sim.borrow().world);
                assert_eq!(play.run_watched(dies_at(change, moment)), None, "{said}: it must die");
                then(&mut play);
                play.time_passes(3);
                assert_restored(&play, &before, &said);
            }
        }
    }
}

/// Whether the change was in the awaited state after each act.
type States = Rc<RefCell<Vec<bool>>>;

/// Freezes the program around its n-th act (from 1), and notes the state after each.
fn freezes_at(n: usize, on: Side, change: &'static Temporary, states: &States) -> Option<Watch> {
    let (states, mut saved, mut count) = (Rc::clone(states), Ledger::default(), 0);
    Some(Box::new(move |call, side, world| {
        match (&call, side) {
            (Call::Save(ledger), Side::Done) => saved = (*ledger).clone(),
            (Call::Act(_), Side::Before) => count += 1,
            (Call::Act(_), Side::Done) => states.borrow_mut().push(state_of(change, &saved, world).1),
            _ => {}
        }
        matches!(call, Call::Act(_)) && side == on && count == n
    }))
}

/// Returns the number of the act (from 1) that makes a change, or that restores it.
fn number_of(change: &'static Temporary, is_change: bool) -> usize {
    let states = States::default();
    let end = play().run_watched(freezes_at(0, Side::Before, change, &states));
    assert!(matches!(end, Some(Ok(End::Finished(_)))), "{end:?}");
    let states = states.take();
    // Nothing is changed before the first act.
    let before = |n: usize| n > 0 && states[n - 1];
    let first = (0..states.len()).find(|n| states[*n] == is_change && before(*n) != is_change);
    1 + first.unwrap_or_else(|| panic!("{}: no act makes it {is_change}", change.name))
}

/// Returns whether the write of a frozen runner stays until Rook undoes it.
///
/// Ceph can't be asked to create a key only if the ledger is unchanged. A runner that is frozen between its
/// check of the ledger and that write leaves client.bootstrap-osd behind. Rook deletes it after its next
/// reconcile (from 1.19 on; earlier versions keep the key).
fn is_left_to_rook(change: &Temporary, is_change: bool, side: Side) -> bool {
    change.name == "bootstrap" && is_change && side == Side::Late
}

#[test]
fn temporary_changes_of_a_frozen_writer_are_restored() {
    for change in &ALL {
        for (is_change, side) in
            [(true, Side::Before), (true, Side::Late), (false, Side::Before), (false, Side::Late)]
        {
            let said = format!("{}: frozen {side:?} its act, changed: {is_change}", change.name);
            let play = play();
            let before = former(&play.sim.borrow().world);
            let n = number_of(change, is_change);
            let mut frozen = play.start(freezes_at(n, side, change, &States::default()));
            assert_eq!(frozen.go_on(), None, "{said}");
            frozen.runner.is_taken_for_gone();
            assert_restored(&play, &before, &said);
            play.time_passes(60);
            frozen.runner.thaw();
            assert!(frozen.go_on().is_some(), "{said}: it ends");
            play.time_passes(60);
            if !is_left_to_rook(change, is_change, side) {
                assert_restored(&play, &before, &said);
            }
        }
    }
}
