//! What the rules leave to the rules below them.

use crate::domain::ledger::Record;
use crate::domain::next::{Next, Summary};
use crate::domain::view::View;

/// Findings of the rules that did not decide.
pub(super) struct Rest {
    /// First wait that does not keep the rules below from acting.
    pub(super) wait: Option<Next>,
    /// Report at the end of the run.
    pub(super) summary: Summary,
}

impl Rest {
    /// Returns the findings before any rule: only the quarantined OSDs and the owner's fence are known.
    pub(super) fn of(view: View<'_>) -> Self {
        let why = |record: &Record| record.quarantine.as_ref().map(|quarantine| quarantine.why.clone());
        let quarantined =
            view.ledger.quarantined().map(|record| (record.osd, why(record).unwrap_or_default()));
        let quarantined = quarantined.collect();
        let fenced_since = view.ledger.run.fence_order.as_ref().map(|order| order.since);
        Self { wait: None, summary: Summary { quarantined, fenced_since, ..Summary::default() } }
    }

    /// Returns the summary, and leaves an empty one.
    pub(super) fn take_summary(&mut self) -> Summary {
        std::mem::take(&mut self.summary)
    }
}
