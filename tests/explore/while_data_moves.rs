//! Searches of what a run changes in Ceph while data moves, and of a person who changes the same.

use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::sim::{Around, Happening, World, example};

use super::search::{Menu, Search};
use super::state::Allowance;
use super::{OURS, deaths_of, nothing};

/// Returns what a person does to the change, and the faults beside it.
pub(super) fn with_faults(by_a_person: Menu, world: &World) -> Vec<Happening> {
    let mut menu = by_a_person(world);
    menu.extend(deaths_of(&[OURS], world));
    menu.extend([Around::Paused, Around::Cancelled].map(|what| Happening::Around(what, true)));
    menu.push(Happening::Unconfirmed);
    menu
}

/// Returns a search in which nothing goes wrong, and one with a fault.
pub(super) fn searches(
    policy: fn() -> Policy,
    (alone, fault): (&'static str, &'static str),
    menu: Menu,
) -> Vec<Search> {
    let new = |name, menu, left| Search { policy, ..Search::new(name, example::replicated, menu, left) };
    vec![new(alone, nothing, (0, 0, 0)), new(fault, menu, (1, 0, 0))]
}

/// Returns the search with a runner that freezes late, beside what a person does.
pub(super) fn with_a_late_freeze(name: &'static str, by_a_person: Menu, search: &Search) -> Search {
    let left = Allowance { faults: 1, freezes: 1, leaps: 0 };
    Search { name, left, menu: by_a_person, freezes_late: true, ..*search }
}
