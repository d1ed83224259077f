//! The decision of an iteration: an ordered list of rules, and what is done after the decision.

use super::{
    crash_loop, end, in_progress, lost_ledger, next_osd, nodes, operator, orphans, quarantined, tolerate,
};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::next::{Halt, Next, Summary};
use crate::domain::observation::Observation;
use crate::domain::policy::Policy;
use crate::domain::step::{self, bootstrap, drains};
use crate::domain::view::View;

/// Rule of the decision. The first rule that returns a step decides, and the rules below it are not asked.
pub struct Rule {
    /// Name, as in the table of `docs/concepts/how-it-works.md`.
    pub name: &'static str,
    decide: fn(View<'_>, &mut Rest) -> Option<Next>,
}

/// Rules in their order.
pub const RULES: [Rule; 16] = [
    Rule { name: "ledger intact", decide: |view, _| lost_ledger::halt(view) },
    Rule { name: "noout of quarantined OSDs", decide: |view, _| quarantined::lift_noout(view) },
    Rule { name: "drains", decide: |view, _| drains::next(view) },
    Rule { name: "keys of quarantined OSDs", decide: |view, _| quarantined::delete_key(view) },
    Rule { name: "orphaned leftovers", decide: orphans::next },
    Rule { name: "OSDs in progress", decide: in_progress::next },
    Rule { name: "cancelled", decide: end::cancelled },
    Rule { name: "failure limit", decide: end::failure_limit },
    Rule { name: "next OSD", decide: next_osd::next },
    Rule { name: "fence and Rook's operator", decide: end::restore_rook },
    Rule { name: "no new OSDs", decide: nodes::wind_up },
    Rule { name: "new OSDs unconfirmed", decide: nodes::unconfirmed },
    Rule { name: "new OSDs left to Rook", decide: nodes::leave_to_rook },
    Rule { name: "restarts for taints", decide: tolerate::next },
    Rule { name: "new OSDs", decide: nodes::next },
    Rule { name: "finish", decide: end::finish_run },
];

/// Change of a decision, which most decisions pass unchanged.
pub struct Afterwards {
    /// Name, as in the table of `docs/concepts/how-it-works.md`.
    pub name: &'static str,
    change: fn(Next, View<'_>) -> Next,
}

/// What is done after the decision, in this order.
pub const AFTERWARDS: [Afterwards; 5] = [
    Afterwards { name: "refused OSDs in the summary", change: end::with_refused },
    Afterwards { name: "Rook's operator during a wait", change: operator::given_back },
    Afterwards { name: "noout before a halt", change: before_halt },
    Afterwards { name: "bootstrap key at the end", change: bootstrap::put_away },
    Afterwards { name: "progress of the pod", change: crash_loop::noted },
];

/// Findings of the rules that did not decide.
pub(super) struct Rest {
    /// First wait that does not keep the rules below from acting.
    pub(super) wait: Option<Next>,
    /// Report at the end of the run.
    pub(super) summary: Summary,
}

impl Rest {
    /// Returns the findings before any rule: only the quarantined OSDs are known.
    fn of(view: View<'_>) -> Self {
        let why = |record: &Record| record.quarantine.as_ref().map(|quarantine| quarantine.why.clone());
        let quarantined =
            view.ledger.quarantined().map(|record| (record.osd, why(record).unwrap_or_default()));
        Self { wait: None, summary: Summary { quarantined: quarantined.collect(), ..Summary::default() } }
    }

    /// Returns the summary, and leaves an empty one.
    pub(super) fn take_summary(&mut self) -> Summary {
        std::mem::take(&mut self.summary)
    }
}

/// Returns the one next step of the run.
pub fn plan(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Next {
    let view = View { policy, ledger, seen };
    let mut rest = Rest::of(view);
    let decided = RULES.iter().find_map(|rule| (rule.decide)(view, &mut rest));
    let decided = decided.unwrap_or_else(|| Next::Finished(rest.take_summary()));
    AFTERWARDS.iter().fold(decided, |next, after| (after.change)(next, view))
}

/// Lifts `noout` of OSDs that are down before a halt ends the run.
///
/// If the ledger was lost, nothing is known of them.
pub fn before_halt(next: Next, view: View<'_>) -> Next {
    match next {
        Next::Halt(halt) if !matches!(halt, Halt::LedgerLost { .. }) => {
            step::before_halt(view).unwrap_or(Next::Halt(halt))
        }
        Next::Halt(_) | Next::Save { .. } | Next::Do(_) | Next::Wait(_) | Next::Finished(_) => next,
    }
}
