//! Port of the loop for its events.

use crate::domain::history::{Course, Entry};
use crate::domain::ledger::Record;
use crate::ports::Failure;
use crate::report::Event;

/// Receiver of everything that happens.
pub trait Reporter {
    /// Reports an event as it happens.
    ///
    /// Never fails the run.
    fn report(&mut self, event: Event<'_>) -> impl Future<Output = ()>;

    /// Returns the entries of the history to write before a save: that of the record that the save closes,
    /// and those that could not be written before.
    fn entries(&mut self, closed: Option<&Record>) -> Vec<Entry> {
        closed.map(|record| Entry::of(record, Course::default())).into_iter().collect()
    }

    /// Learns whether entries of the history were written.
    ///
    /// A receiver that returns them again does so with the next save.
    fn written(&mut self, _: Vec<Entry>, _: Result<(), Failure>) -> impl Future<Output = ()> {
        std::future::ready(())
    }
}
