//! The decision of an iteration: an ordered list of rules, and what is done after the decision.

use super::rest::Rest;
use super::{
    crash_loop, delayed, end, in_progress, lost_ledger, new_on_pvc, next_osd, nodes, orphans, owner_fence,
    quarantined, removals, tolerate,
};
use crate::domain::ledger::Ledger;
use crate::domain::next::Next;
use crate::domain::observation::Observation;
use crate::domain::policy::Policy;
use crate::domain::temporary::{bootstrap, drains, flags, operator, recovery, scrub};
use crate::domain::view::View;

/// Rule of the decision.
///
/// The first rule that returns a step decides, and the rules below it are not asked.
pub struct Rule {
    /// Name, as in the table of `docs/concepts/how-it-works.md`.
    pub name: &'static str,
    decide: fn(View<'_>, &mut Rest) -> Option<Next>,
}

/// Rules in their order.
pub const RULES: [Rule; 21] = [
    Rule { name: "ledger intact", decide: |view, _| lost_ledger::halt(view) },
    Rule { name: "owner's fence", decide: owner_fence::next },
    Rule { name: "flags of quarantined OSDs", decide: |view, _| quarantined::restore_flags(view) },
    Rule { name: "drains", decide: |view, _| drains::next(view) },
    Rule { name: "keys of quarantined OSDs", decide: |view, _| quarantined::delete_key(view) },
    Rule { name: "quarantined OSDs to remove", decide: |view, _| quarantined::removed(view) },
    Rule { name: "orphaned leftovers", decide: orphans::next },
    Rule { name: "OSDs in progress", decide: in_progress::next },
    Rule { name: "cancelled", decide: end::cancelled },
    Rule { name: "failure limit", decide: end::failure_limit },
    Rule { name: "removals", decide: removals::next },
    Rule { name: "next OSD", decide: next_osd::next },
    Rule { name: "delayed OSDs", decide: delayed::next },
    Rule { name: "fence and Rook's operator", decide: end::restore_rook },
    Rule { name: "no new OSDs", decide: nodes::wind_up },
    Rule { name: "new OSDs unconfirmed", decide: nodes::unconfirmed },
    Rule { name: "new OSDs left to Rook", decide: nodes::leave_to_rook },
    Rule { name: "restarts for taints", decide: tolerate::next },
    Rule { name: "new OSDs", decide: nodes::next },
    Rule { name: "new OSDs on PVCs", decide: new_on_pvc::next },
    Rule { name: "finish", decide: |view, rest| Some(end::finish_run(view, rest)) },
];

/// Change of a decision, which most decisions pass unchanged.
pub struct Afterwards {
    /// Name, as in the table of `docs/concepts/how-it-works.md`.
    pub name: &'static str,
    change: fn(Next, View<'_>) -> Next,
}

/// What is done after the decision, in this order.
pub const AFTERWARDS: [Afterwards; 9] = [
    Afterwards { name: "refused OSDs in the summary", change: end::with_refused },
    Afterwards { name: "rotations and changes in the summary", change: end::with_what_stays },
    Afterwards { name: "Rook's operator during a wait", change: operator::during_a_wait },
    Afterwards { name: "operator that was scaled up", change: operator::named_as_overridden },
    Afterwards { name: "noout before a halt", change: flags::before_halt },
    Afterwards { name: "bootstrap key at the end", change: bootstrap::at_the_end },
    Afterwards { name: "scrubs", change: scrub::around },
    Afterwards { name: "recovery", change: recovery::around },
    Afterwards { name: "progress of the pod", change: crash_loop::noted },
];

/// Returns the one next step of the run.
pub fn plan(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Next {
    let view = View { policy, ledger, seen };
    let mut rest = Rest::of(view);
    let decided = RULES.iter().find_map(|rule| (rule.decide)(view, &mut rest));
    let decided = decided.unwrap_or_else(|| Next::Finished(rest.take_summary()));
    AFTERWARDS.iter().fold(decided, |next, after| (after.change)(next, view))
}
