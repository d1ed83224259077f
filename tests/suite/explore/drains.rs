//! Drains of other nodes while an OSD is stopped: the runner freezes around what it writes about them, and people stop the run before
//! its stop.

use osd_migrate::domain::guard::Guard;
use osd_migrate::sim::{Around, Happening, World, example};

use super::search::Search;
use super::{OURS, explored, has_time, needs};

/// What gives an OSD up, or holds it, before its stop.
fn holds_up(_: &World) -> Vec<Happening> {
    let mut menu: Vec<_> = [Around::Paused, Around::Cancelled, Around::RookPrepares, Around::MonDown]
        .map(|what| Happening::Around(what, true))
        .into();
    menu.push(Happening::Unconfirmed);
    menu
}

/// The same, when all but that is done for the stop. (A Stop that comes late after its record was given up is undone, and no matter of
/// drains.)
fn holds_up_last(world: &World) -> Vec<Happening> {
    let is_hushed = world.ceph.slots.get(&OURS).is_some_and(|slot| slot.up && slot.noout && slot.noin);
    let is_limited = world.kube.osd_budget.as_ref().is_none_or(|budget| budget.max_unavailable == 0);
    if is_hushed && !is_limited { holds_up(world) } else { Vec::new() }
}

fn frozen() -> Search {
    Search::new("held up, a freeze", example::replicated, holds_up, (1, 1, 0))
}

fn frozen_late() -> Search {
    Search {
        freezes_late: true,
        ..Search::new("held up, a late freeze", example::replicated, holds_up_last, (1, 1, 0))
    }
}

#[test]
fn what_holds_an_osd_up_before_its_stop_and_a_runner_that_freezes() {
    explored(&frozen());
    explored(&frozen_late());
}

#[test]
fn what_holds_an_osd_up_before_its_stop_and_a_leap_in_time() {
    explored(&Search::new("held up, a leap", example::replicated, holds_up, (1, 0, 1)));
}

#[test]
fn drains_need_their_guards() {
    needs(frozen, &[Guard::BudgetSavedFirst, Guard::DrainsLimitedFirst]);
}

#[test]
fn drains_wider_where_there_is_time() {
    if has_time() {
        explored(&Search {
            freezes_late: true,
            ..Search::new("held up", example::replicated, holds_up_last, (1, 1, 1))
        });
    }
}
