//! Alongside a running Rook that does not honour a fence: the run scales its operator to 0 temporarily.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::sim::{Around, Happening, World, example};

use super::search::{Menu, Search};
use super::{OURS, PARTNER, agents, deaths_of, explored, has_time, needs, nothing};

fn scales() -> Policy {
    Policy { scales_operator: true, ..Policy::default() }
}

pub(super) fn alongside(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    Search { policy: scales, ..Search::new(name, example::with_old_rook, menu, left) }
}

/// Returns the faults of the OSD, and what people do to the operator and the run meanwhile.
fn faults(world: &World) -> Vec<Happening> {
    let mut menu = agents(world);
    menu.extend(deaths_of(&[OURS, PARTNER], world));
    if world.kube.running_operator().is_none() {
        menu.push(Happening::OperatorUp);
    }
    menu.extend(
        [Around::Paused, Around::Cancelled, Around::RookPrepares].map(|what| Happening::Around(what, true)),
    );
    menu.push(Happening::Unconfirmed);
    menu
}

#[test]
fn run_alongside_old_rook_survives_leaps_in_time() {
    explored(&alongside("alongside an old Rook", nothing, (0, 0, 2)));
}

#[test]
fn run_alongside_old_rook_survives_a_fault() {
    explored(&alongside("alongside an old Rook", faults, (1, 0, 0)));
}

#[test]
fn run_alongside_old_rook_survives_a_freeze() {
    explored(&alongside("alongside an old Rook", nothing, (0, 1, 0)));
    explored(&frozen_late());
}

/// Returns a search with a runner that wakes when everything is done.
pub(super) fn frozen_late() -> Search {
    Search { freezes_late: true, ..alongside("alongside an old Rook, frozen late", nothing, (0, 1, 0)) }
}

/// Returns a cancel by a person while a runner is about to scale the operator.
fn cancels(world: &World) -> Vec<Happening> {
    let runs = world.kube.running_operator().is_some();
    let cancelled = [Happening::Around(Around::Cancelled, true), Happening::Unconfirmed];
    if runs { cancelled.into() } else { Vec::new() }
}

#[test]
fn cancelled_run_alongside_old_rook_survives_a_late_freeze() {
    let search = alongside("alongside an old Rook, cancelled", cancels, (1, 1, 0));
    explored(&Search { freezes_late: true, ..search });
}

/// Returns a pause while the operator is at 0.
fn is_paused(world: &World) -> Vec<Happening> {
    let is_at_0 = world.kube.running_operator().is_none();
    if is_at_0 { vec![Happening::Around(Around::Paused, true)] } else { Vec::new() }
}

/// Returns a search with a pause, for which the operator is restored, and after which it is scaled to 0
/// again.
pub(super) fn paused() -> Search {
    alongside("alongside an old Rook, paused", is_paused, (1, 0, 0))
}

#[test]
fn run_alongside_old_rook_continues_after_a_pause() {
    explored(&paused());
}

#[test]
fn run_alongside_old_rook_needs_its_guards() {
    needs(frozen_late, &[Guard::OperatorSavedFirst, Guard::OperatorVersion]);
}

#[test]
fn run_alongside_old_rook_wider_if_there_is_time() {
    if has_time() {
        explored(&alongside("alongside an old Rook", faults, (1, 1, 0)));
        explored(&alongside("alongside an old Rook", faults, (2, 0, 0)));
    }
}
