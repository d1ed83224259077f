//! Migrations in a replicated and in an erasure-coded cluster.

use osd_migrate_core::sim::{Happening, World, example};

use super::search::{Menu, Search};
use super::{agents, around, everything, explore, explored, has_time, nothing, pairs, spontaneous};

/// Returns a search in which client.bootstrap-osd is missing: Rook from 1.19 on deletes it.
pub(crate) fn keyless(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    let world = || {
        let mut world = example::replicated();
        world.ceph.bootstrap = Some(false);
        world
    };
    Search::new(name, world, menu, left)
}

#[test]
fn replicated_cluster_survives_leaps_in_time() {
    explore("replicated", example::replicated, nothing, (0, 0, 2));
}

#[test]
fn replicated_cluster_survives_a_fault_of_any_kind() {
    explore("replicated", example::replicated, everything, (1, 0, 0));
}

#[test]
fn replicated_cluster_survives_a_change_around_the_osds() {
    explore("replicated", example::replicated, around, (1, 0, 0));
}

#[test]
fn two_osds_on_a_host_survive_a_freeze() {
    explore("two on a host", example::two_on_a_host, nothing, (0, 1, 0));
}

#[test]
fn run_without_bootstrap_key_survives_a_fault_or_a_freeze() {
    explored(&keyless("no bootstrap key, a fault", agents, (1, 0, 0)));
    explored(&keyless("no bootstrap key, a freeze", nothing, (0, 1, 0)));
}

/// Returns a search in which a person removes the fence, and a runner that is to set it again sleeps right
/// before it writes.
#[test]
fn replicated_cluster_survives_a_late_fence() {
    let unfenced = |_: &World| vec![Happening::PersonUnfences];
    let late = Search::new("replicated, a late fence", example::replicated, unfenced, (1, 1, 0));
    explored(&Search { freezes_late: true, ..late });
}

#[test]
fn erasure_coded_cluster_survives_a_fault_of_any_kind() {
    explore("erasure coded", example::erasure_coded, everything, (1, 0, 0));
}

/// Checks seeded walks with many faults one after the other, deeper than the exhaustive search can go.
#[test]
fn random_walks_with_many_faults_find_no_violation() {
    let walks = if has_time() { 30_000 } else { 300 };
    let mut steps = 0;
    for search in [
        Search::new("two on a host", example::two_on_a_host, spontaneous, (5, 0, 4)),
        Search::new("erasure coded", example::erasure_coded, spontaneous, (5, 0, 4)),
    ] {
        for seed in 0..walks {
            let (taken, violation) = search.walk(seed, 250);
            steps += taken;
            assert_eq!(violation, None, "{}", violation.as_deref().unwrap_or_default());
        }
    }
    println!("walked {steps} steps on {} walks with at most 5 faults and 4 leaps in time", 2 * walks);
}

#[test]
fn migrations_wider_if_there_is_time() {
    if !has_time() {
        println!("wider bounds: in `make lab-full` (EXPLORE_FULL)");
        return;
    }
    explore("replicated", example::replicated, pairs, (1, 1, 0));
    explore("replicated", example::replicated, pairs, (2, 0, 0));
    explore("replicated", example::replicated, everything, (1, 1, 0));
    explore("replicated", example::replicated, everything, (1, 0, 1));
    explore("two on a host", example::two_on_a_host, everything, (1, 0, 0));
    explore("replicated", example::replicated, spontaneous, (1, 0, 1));
    explore("replicated", example::replicated, around, (1, 0, 1));
    explore("erasure coded", example::erasure_coded, everything, (1, 0, 1));
}
