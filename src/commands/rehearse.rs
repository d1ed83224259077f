//! `rehearse`: the loop on a simulated cluster.

use crate::cli::{Output, RehearseArgs};
use crate::commands::print::print;
use crate::commands::terminal::width;
use crate::domain::policy::Policy;
use crate::exit::{Exit, ended};
use crate::rehearse;
use crate::sim::schedule::BACKFILL_RATE;

/// Rehearses and prints the story.
pub(super) fn rehearse(args: &RehearseArgs) -> Exit {
    let rehearsal = rehearse::rehearse(args.seed, &args.fault, BACKFILL_RATE);
    let text = match args.output {
        Output::Table => rehearse::text(&rehearsal, args.detail(), width()),
        Output::Json => format!("{:#}", rehearse::json(&rehearsal)),
    };
    if let Err(exit) = print(&text) {
        return exit;
    }
    rehearsal.end.map_or(Exit::Halted, |end| ended(end, &Policy::default()))
}
