//! Iterations that take time: nothing may depend on how fast an observation, a decision and an act follow
//! each other.
//!
//! A state stores its times exactly. Two states count as one if their times are between the same deadlines
//! (`canonical::passed`). Of such states the search follows the one that was reached first. So a deadline
//! that passes during a chain of iterations is tested with the remainders of the shortest stories, not with
//! all of them. Different paces give different remainders.

use chrono::TimeDelta;

use osd_migrate_core::sim::{Happening, World, example};

use super::search::{Menu, Search};
use super::{everything, explored, has_time, nothing, rook, spontaneous};

/// Seconds after which new statistics have arrived.
///
/// The mgr gets statistics each 5 s, at most 7 s late, and PGs peer in about a second (16.2.15). A longer
/// iteration sees both.
const STATISTICS_AFTER: i64 = 8;

/// Lets this many seconds pass between what a runner saw and what it does.
pub(super) fn pass(world: &mut World, seconds: i64) {
    if seconds >= STATISTICS_AFTER {
        let peers = |what: &Happening| matches!(what, Happening::Peer(_));
        for what in world.progress().into_iter().filter(peers) {
            world.happen(&what);
        }
        for pg in world.lagging() {
            world.happen(&Happening::PgReports(pg));
        }
    }
    world.at += TimeDelta::seconds(seconds);
    world.agents_say_that_they_live();
}

/// Seconds of an iteration: one, thirty as on a large cluster, and 120 as with an overloaded API server.
const PACES: [i64; 3] = [1, 30, 120];

fn at_each_pace(name: &'static str, world: fn() -> World, menu: Menu, left: (u8, u8, u8)) {
    for pace in PACES {
        explored(&Search { pace, ..Search::new(name, world, menu, left) });
    }
}

/// Returns the search for the mutant of an intent that does not outlive slow iterations.
pub(super) fn slow() -> Search {
    Search { pace: 30, ..Search::new(SLOW, example::replicated, nothing, (0, 0, 0)) }
}

pub(super) const SLOW: &str = "replicated, slow iterations";

#[test]
fn slow_iterations_finish_all_osds() {
    at_each_pace("replicated", example::replicated, nothing, (0, 0, 0));
    at_each_pace("two on a host", example::two_on_a_host, nothing, (0, 0, 0));
    at_each_pace("erasure coded", example::erasure_coded, nothing, (0, 0, 0));
    at_each_pace("three to do", example::three_to_do, nothing, (0, 0, 0));
    at_each_pace("in a directory", example::in_directory, nothing, (0, 0, 0));
    at_each_pace("one more disk", example::one_more, nothing, (0, 0, 0));
}

#[test]
fn slow_iterations_alongside_rook_finish_all_osds() {
    for pace in PACES {
        explored(&Search { pace, ..rook::alongside("alongside Rook", nothing, (0, 0, 0)) });
        explored(&Search { pace, ..super::operator::alongside("alongside an old Rook", nothing, (0, 0, 0)) });
    }
}

#[test]
fn slow_iterations_with_a_fault_come_to_an_end() {
    for pace in [30, 120] {
        explored(&Search { pace, ..Search::new("replicated", example::replicated, spontaneous, (1, 0, 0)) });
    }
}

#[test]
fn slow_iterations_with_a_freeze_come_to_an_end() {
    explored(&Search { pace: 30, ..Search::new("replicated", example::replicated, nothing, (0, 1, 0)) });
}

#[test]
fn slow_iterations_wider_if_there_is_time() {
    if has_time() {
        at_each_pace("replicated", example::replicated, everything, (1, 0, 0));
        at_each_pace("two on a host", example::two_on_a_host, spontaneous, (1, 0, 0));
        at_each_pace("erasure coded", example::erasure_coded, spontaneous, (1, 0, 0));
        at_each_pace("replicated", example::replicated, nothing, (0, 0, 1));
        for pace in PACES {
            explored(&Search { pace, ..rook::alongside("alongside Rook", rook::faults, (1, 0, 0)) });
        }
    }
}
