//! Decisions, and the simulated cluster that they are tested with: nothing here can touch a cluster.
//!
//! The modules are a crate of their own for two reasons. Its dependencies (`core/Cargo.toml`) show that no
//! client is within reach. And the searches through all states need these modules optimized, and no others:
//! optimizing the adapters, too, takes twice as long as the searches save.

pub mod domain;
pub mod ports;
pub mod sim;
