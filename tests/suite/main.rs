//! The one binary of hermetic tests: no network but this computer's loopback, no disk except the
//! sources, no sleeping.
#![recursion_limit = "256"] // whole answers of Ceph are one `json!` each
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

mod activation;
mod begin;
mod begin_beside;
mod chart;
mod chart_objects;
mod classify;
mod commands;
mod corpus;
mod drift;
mod emptied;
mod failpoint;
mod fidelity;
mod forecast;
mod gates;
mod growth;
mod hooks;
mod image;
mod ledger;
mod makespan;
mod pace;
mod pages;
mod pg_counts;
mod plan_new;
mod preview;
mod progress;
mod provision;
mod purity;
mod reference;
mod rehearsal;
mod report;
mod requests;
mod rooms;
mod rules;
mod runbook;
mod safety;
mod stall;
mod steps;
mod story;
mod style;
mod support;
mod telemetry;
mod terminal;
mod undeclared;
mod windows;
