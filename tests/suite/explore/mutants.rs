//! Each guard is taken out by name, and the search must find the harm.

use std::collections::BTreeSet;

use osd_migrate::domain::guard::{Guard, without};
use osd_migrate::domain::policy::Policy;
use osd_migrate::sim::example;

use super::search::Search;
use super::{around, everything, machines, nothing};

/// Where mutants are sought, the small searches first.
fn searches() -> Vec<Search> {
    let replicated = example::replicated;
    let new = Search::new;
    let shut = |name, world| Search { stays_shut: true, ..new(name, world, nothing, (0, 0, 0)) };
    let closed =
        || Policy { windows: ["03:00-03:01".parse().unwrap()].into_iter().collect(), ..Policy::default() };
    vec![
        shut("two copies", || example::replicated_as(2, 1, 1)),
        shut("min_size as size", || example::replicated_as(3, 3, 1)),
        shut("too full", || example::replicated_as(3, 2, 6)),
        Search { policy: closed, ..shut("outside of the window", replicated) },
        Search { freezes_late: true, ..new("replicated", replicated, nothing, (0, 1, 0)) },
        new("replicated", replicated, around, (1, 0, 0)),
        Search { loses_ledger: true, ..new("replicated", replicated, nothing, (1, 0, 0)) },
        new("replicated", replicated, everything, (1, 0, 0)),
        new("min_size 1", || example::replicated_as(3, 1, 1), machines, (1, 0, 0)),
        new("erasure coded", example::erasure_coded, machines, (1, 0, 0)),
    ]
}

#[test]
fn with_every_guard_in_place_nothing_is_found() {
    for search in searches() {
        let found = search.run();
        assert_eq!(found.violation, None, "{}", search.name);
    }
}

#[test]
fn each_guard_taken_out_is_found() {
    let only: Option<String> = std::env::var("MUTANT").ok();
    let mut missed = BTreeSet::new();
    for guard in Guard::ALL {
        if only.as_ref().is_some_and(|name| !guard.name().contains(name.as_str())) {
            continue;
        }
        let began = std::time::Instant::now();
        let found = searches().into_iter().enumerate().find_map(|(n, search)| {
            let found = without(Some(*guard), || search.run());
            found.violation.map(|story| (n, search.name, found.states, story))
        });
        match found {
            Some((n, name, states, story)) => {
                let last = story.lines().last().unwrap_or_default().to_owned();
                println!(
                    "mutant {guard:?}: {n} {name}, {states} states, {:.1} s: {last}",
                    began.elapsed().as_secs_f64()
                );
            }
            None => {
                println!("mutant {guard:?}: MISSED, {:.1} s", began.elapsed().as_secs_f64());
                missed.insert(*guard);
            }
        }
    }
    assert!(missed.is_empty(), "taken out, and nothing happened: {missed:?}");
}
