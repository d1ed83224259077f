//! All states: the real `plan`, `step` and `gate` over the simulated cluster, searched breadth first.
//!
//! The search takes every order in which things may happen, go wrong or be done externally. See
//! `docs/concepts/safety.md`. A crate of its own, because only the searches need to be optimized; the stories
//! of `tests/suite` check the same promises.
// Without its tests, the crate is only the promises: nothing uses the searches.
#![cfg_attr(not(test), allow(dead_code, unused_imports))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    clippy::unnecessary_wraps,
    clippy::wildcard_enum_match_arm,
    clippy::wildcard_imports
)]

mod approval;
mod batch;
mod batch_lag;
mod canonical;
pub mod counted;
mod databases;
mod directories;
mod drains;
mod emptying;
mod encrypted;
mod ending;
mod first_for;
#[cfg(test)]
mod growth;
mod hashed;
mod lag;
mod menus;
mod migrations;
mod mutants;
mod new_osds;
mod new_pvcs;
mod noise;
mod operator;
mod owner;
mod pace;
mod promises;
mod pvcs;
mod recovery;
mod removal;
mod rook;
mod scrubs;
mod search;
mod state;
mod unnamed;
mod upmaps;
mod while_data_moves;
mod words;

use osd_migrate_core::domain::ledger::Ledger;
use osd_migrate_core::sim::{Effect, World};

pub use approval::approving_all;
use menus::{
    OURS, PARTNER, agents, around, deaths_of, everything, explore, explored, has_time, needs, nothing, pairs,
    spontaneous, with_the_osd,
};
use migrations::keyless;
use state::{Allowance, Done, State};

/// Allocator for the searches, which clone whole worlds.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the promise that a change of the world breaks, whatever caused the change.
///
/// The check does not know what a runner decided.
pub fn broken_promise(
    (before, after): (&World, &World),
    ledger: &Ledger,
    effects: &[Effect],
    by_flag: bool,
) -> Option<String> {
    let state = |world: &World| State {
        ledger: ledger.clone().into(),
        by_flag,
        ..State::new(world.clone(), Allowance { faults: 0, freezes: 0, leaps: 0 })
    };
    let done = Done { effects: effects.to_vec(), ..Done::default() };
    promises::always(&state(before), None, &done, &state(after))
}
