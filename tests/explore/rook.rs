//! Alongside a running Rook: it starts what it finds stopped, at any time, until it has acknowledged the
//! fence.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::policy::{DeploymentBy, Policy};
use osd_migrate_core::sim::{Happening, World, example};

use super::search::{Menu, Search};
use super::{OURS, PARTNER, agents, deaths_of, explored, has_time, needs, nothing};

fn confirmed_by_flag() -> Policy {
    Policy { confirmed: true, ..Policy::default() }
}

pub(super) fn alongside(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    Search { policy: confirmed_by_flag, ..Search::new(name, example::with_rook, menu, left) }
}

/// Returns a search in which Rook creates the Deployments.
pub(super) fn handed(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    let policy = || Policy { deployment_by: DeploymentBy::ByRook, ..confirmed_by_flag() };
    Search { policy, ..Search::new(name, example::with_rook_that_hydrates, menu, left) }
}

/// Returns a search in which the CephCluster also confirms Rook's own migration, of two OSDs.
pub(super) fn both_confirmed(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    Search::new(name, || example::with_rook_that_migrates(2), menu, left)
}

/// Returns a search in which Rook migrates one OSD.
fn of_one(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    Search::new(name, || example::with_rook_that_migrates(1), menu, left)
}

/// Returns the faults around the fence, and of the OSD while it is up.
pub(super) fn faults(world: &World) -> Vec<Happening> {
    let mut menu = agents(world);
    menu.extend(deaths_of(&[OURS, PARTNER], world));
    menu.extend(world.kube.fence.as_ref().map(|_| Happening::PersonUnfences));
    menu.push(match world.kube.running_operator() {
        Some(_) => Happening::OperatorDown,
        None => Happening::OperatorUp,
    });
    menu.extend([Happening::OthersFence, Happening::Confirmed]);
    menu.extend(
        world
            .kube
            .daemons
            .get(&OURS)
            .filter(|daemon| daemon.replicas > 0)
            .map(|_| Happening::PersonStops(OURS)),
    );
    menu
}

#[test]
fn run_alongside_rook_survives_leaps_in_time() {
    explored(&alongside("alongside Rook", nothing, (0, 0, 2)));
}

#[test]
fn run_alongside_rook_survives_a_fault() {
    explored(&alongside("alongside Rook", faults, (1, 0, 0)));
}

#[test]
fn run_alongside_rook_survives_a_freeze() {
    explored(&alongside("alongside Rook", nothing, (0, 1, 0)));
    explored(&Search { freezes_late: true, ..alongside("alongside Rook, frozen late", nothing, (0, 1, 0)) });
}

#[test]
fn deployment_by_rook_survives_leaps_in_time() {
    explored(&handed("handed to Rook, leaps", nothing, (0, 0, 2)));
}

#[test]
fn deployment_by_rook_survives_a_fault() {
    explored(&handed("handed to Rook, a fault", faults, (1, 0, 0)));
}

#[test]
fn deployment_by_rook_survives_a_freeze() {
    explored(&handed("handed to Rook, a freeze", nothing, (0, 1, 0)));
}

#[test]
fn run_alongside_rooks_migration_survives_a_leap_in_time() {
    explored(&both_confirmed("alongside Rook, both confirmed", nothing, (0, 0, 0)));
    explored(&of_one("alongside Rook, both confirmed, a leap", nothing, (0, 0, 1)));
}

#[test]
fn run_alongside_rooks_migration_survives_a_fault_or_a_freeze() {
    explored(&of_one("alongside Rook, both confirmed, a fault", faults, (1, 0, 0)));
    explored(&of_one("alongside Rook, both confirmed, a freeze", nothing, (0, 1, 0)));
}

#[test]
fn run_alongside_rook_needs_its_guards() {
    let fenced = || alongside("alongside Rook", faults, (1, 0, 0));
    needs(
        fenced,
        &[Guard::DrainsBlocked, Guard::FenceAcknowledged, Guard::FencedFirst, Guard::FenceSavedFirst],
    );
    let both = || both_confirmed("alongside Rook, both confirmed", nothing, (0, 0, 0));
    needs(both, &[Guard::FenceStays, Guard::FenceAcknowledged]);
}

#[test]
fn run_alongside_rook_wider_if_there_is_time() {
    if has_time() {
        explored(&alongside("alongside Rook", faults, (1, 1, 0)));
        explored(&alongside("alongside Rook", faults, (2, 0, 0)));
        explored(&alongside("alongside Rook", faults, (1, 0, 1)));
        explored(&both_confirmed("alongside Rook, both confirmed, a leap", nothing, (0, 0, 1)));
        explored(&both_confirmed("alongside Rook, both confirmed, a freeze", nothing, (0, 1, 0)));
        explored(&both_confirmed("alongside Rook, both confirmed, a fault", faults, (1, 0, 0)));
    }
}
