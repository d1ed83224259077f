//! What the rules leave to the rules below them.

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::gate::{self, Gate, Reason};
use crate::domain::ledger::{Record, Run, Skipping};
use crate::domain::next::{Next, Saving, Summary};
use crate::domain::osd::OsdId;
use crate::domain::view::View;

/// Findings of the rules that did not decide.
pub(super) struct Rest {
    /// First wait that does not keep the rules below from acting.
    pub(super) wait: Option<Next>,
    /// First wait of a removal, which does not keep migrations from beginning.
    pub(super) removal: Option<Next>,
    /// First OSD to remove or to migrate that its own state delays, and the reason, which may disappear
    /// without help.
    pub(super) delayed: Option<(OsdId, Reason)>,
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
        Self {
            wait: None,
            removal: None,
            delayed: None,
            summary: Summary { quarantined, fenced_since, ..Summary::default() },
        }
    }

    /// Returns the summary, and leaves an empty one.
    pub(super) fn take_summary(&mut self) -> Summary {
        std::mem::take(&mut self.summary)
    }
}

/// Returns for how long the run has waited only for OSDs that their own state blocks, if that is saved.
pub(super) fn skipping_for(view: View<'_>) -> Option<TimeDelta> {
    lasts(view.ledger.run.skipping.as_ref(), view)
}

/// Returns how long a wait of this run lasts, if its begin is saved.
pub(super) fn lasts(begin: Option<&Skipping>, view: View<'_>) -> Option<TimeDelta> {
    let known = begin.filter(|known| known.job == view.policy.run)?;
    Some(known.held_at.unwrap_or(view.seen.at) - known.since)
}

/// Returns the next step while only OSDs that their own state blocks are left; `None` once the run ends
/// without them.
pub(super) fn until_skipped(wait: Next, view: View<'_>) -> Option<Next> {
    if let Some(noted) = noting_held(view) {
        return Some(noted);
    }
    let begin = || save_begin(Some(view.seen.at), |run| &mut run.skipping, view);
    up_to_limit(skipping_for(view), begin, wait, view)
}

/// Saves that the time of the wait for OSDs that their own state blocks stops, or goes on; `None` if that is
/// saved, or no such wait has begun.
///
/// A pause is no time in which a node could return.
pub(super) fn noting_held(view: View<'_>) -> Option<Next> {
    let is_held = gate::held(view) != Gate::Open;
    let known = view.ledger.run.skipping.as_ref().filter(|known| known.job == view.policy.run)?;
    (known.held_at.is_some() != is_held).then(|| {
        let mut ledger = view.ledger.clone();
        ledger.run.skipping = Some(known.held(is_held, view.seen.at));
        Next::Save { ledger, osd: None, why: Saving::Skipping }
    })
}

/// Returns the next step of a wait that lasts for `run.skipAfter` at most; `None` once that is over.
///
/// `waited` is how long it lasts, and `begin` saves its begin.
pub(super) fn up_to_limit(
    waited: Option<TimeDelta>,
    begin: impl FnOnce() -> Next,
    wait: Next,
    view: View<'_>,
) -> Option<Next> {
    match waited {
        None => Some(begin()),
        Some(time) => (time < view.policy.limits.skip_after).then_some(wait),
    }
}

/// Saves when a wait of this run began, or that it is over.
///
/// Otherwise a restarted pod would wait for the whole time again.
pub(super) fn save_begin(
    since: Option<DateTime<Utc>>,
    of: fn(&mut Run) -> &mut Option<Skipping>,
    view: View<'_>,
) -> Next {
    let mut ledger = view.ledger.clone();
    let job = || view.policy.run.clone();
    *of(&mut ledger.run) = since.map(|since| Skipping { job: job(), since, held_at: None });
    Next::Save { ledger, osd: None, why: Saving::Skipping }
}
