//! A sick part never blocks the healthy rest, and no OSD stays down without a way back (ADR 0025).
//!
//! There is one test for each finding.

mod pgs;
mod rest;
mod sick;
mod up_again;
mod way_back;
