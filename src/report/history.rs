//! Events of a run, as far as the history of its OSDs needs them.

use crate::domain::history::{Entry, Observed};
use crate::domain::next::Wait;
use crate::report::Event;

/// Returns what the history takes up from an event.
///
/// `waits`: see [`Event::waits`].
pub fn observed<'a>(event: &Event<'a>, waits: &[Wait]) -> Observed<'a> {
    match event {
        Event::Waiting { wait, ledger, .. } => {
            let is_beside = |other: &&Wait| other.osd().is_some() && other.osd() != wait.osd();
            let others = waits.iter().filter(|_| wait.osd().is_some()).filter(is_beside);
            Observed::Waits(std::iter::once(*wait).chain(others).cloned().collect(), ledger)
        }
        Event::Saved { osd, why, ledger } => Observed::Saved(*osd, why, ledger),
        Event::Conflict
        | Event::Done(_)
        | Event::NotDone { .. }
        | Event::Blind(_)
        | Event::Lease(_)
        | Event::Finished(_)
        | Event::Halted(_) => Observed::Else,
    }
}

/// Returns the warning about entries of the history that could not be written.
pub fn history_not_written(entries: &[Entry], why: &dyn std::fmt::Display) -> String {
    let osds: Vec<String> = entries.iter().map(|entry| entry.key.osd.to_string()).collect();
    let osds = osds.join(", ");
    let text = format!("the history of {osds} could not be written, and nothing waits for it: {why}");
    format!("{text} [history-not-written]")
}
