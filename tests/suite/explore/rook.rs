//! Beside a Rook that runs: it starts what it finds stopped, whenever it likes, until it has seen the fence and said so.

use osd_migrate::domain::guard::{Guard, without};
use osd_migrate::domain::policy::Policy;
use osd_migrate::sim::{Happening, World, example};

use super::search::{Menu, Search};
use super::{OURS, PARTNER, agents, explored, has_time, nothing};

fn confirmed_by_flag() -> Policy {
    Policy { confirmed: true, ..Policy::default() }
}

pub(super) fn beside(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    Search { policy: confirmed_by_flag, ..Search::new(name, example::beside_rook, menu, left) }
}

/// What goes wrong around the fence, and with the OSD while it is up.
pub(super) fn faults(world: &World) -> Vec<Happening> {
    let mut menu = agents(world);
    let is_up = |osd: &_| world.ceph.slots.get(osd).is_some_and(|slot| slot.up);
    menu.extend([OURS, PARTNER].into_iter().filter(is_up).map(Happening::Dies));
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
fn beside_a_rook_that_runs_leaps_in_time() {
    explored(&beside("beside Rook", nothing, (0, 0, 2)));
}

#[test]
fn beside_a_rook_that_runs_a_fault() {
    explored(&beside("beside Rook", faults, (1, 0, 0)));
}

#[test]
fn beside_a_rook_that_runs_a_freeze() {
    explored(&beside("beside Rook", nothing, (0, 1, 0)));
    explored(&Search { freezes_late: true, ..beside("beside Rook, frozen late", nothing, (0, 1, 0)) });
}

#[test]
fn beside_a_rook_that_runs_guards_are_needed() {
    for guard in [Guard::FenceHeard, Guard::FencedFirst, Guard::FenceSavedFirst] {
        let found = without(Some(guard), || beside("beside Rook", faults, (1, 0, 0)).run());
        assert!(found.violation.is_some(), "{guard:?} was taken out, and nothing happened");
    }
}

#[test]
fn beside_a_rook_that_runs_wider_where_there_is_time() {
    if has_time() {
        explored(&beside("beside Rook", faults, (1, 1, 0)));
        explored(&beside("beside Rook", faults, (2, 0, 0)));
        explored(&beside("beside Rook", faults, (1, 0, 1)));
    }
}
