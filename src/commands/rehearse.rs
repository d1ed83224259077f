//! `rehearse`: the loop on a simulated cluster.

use crate::cli::{Output, RehearseArgs};
use crate::commands::print::print;
use crate::domain::policy::Policy;
use crate::exit::{Exit, ended};
use crate::rehearse;
use crate::sim::schedule::BACKFILL_RATE;

/// Rehearses and prints the story.
pub(super) fn rehearse(args: &RehearseArgs) -> Exit {
    let rehearsal = rehearse::rehearse(args.seed, &args.fault, BACKFILL_RATE);
    match args.output {
        Output::Table => print(&rehearse::text(&rehearsal, args.quiet)),
        Output::Json => print(&format!("{:#}", rehearse::json(&rehearsal))),
    }
    rehearsal.end.map_or(Exit::Halted, |end| ended(end, &Policy::default()))
}
