//! Questions, most of them about single OSDs, that Ceph and the API server answer before an iteration is
//! decided.

use std::collections::BTreeSet;

use super::lacks_disk::lacks_its_disk;
use super::rest::skipping_for;
use super::wanted::is_wanted;
use super::{batch, candidates, removals, tolerate};
use crate::domain::act::Deploy;
use crate::domain::ledger::Ledger;
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::policy::Policy;
use crate::domain::step::Step;
use crate::domain::temporary::{bootstrap, recovery};
use crate::domain::view::View;

/// Questions, most of them about single OSDs, that must be answered before an iteration can be decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Questions {
    /// Sets for `osd ok-to-stop`.
    pub ok_to_stop: BTreeSet<BTreeSet<OsdId>>,
    /// OSDs for `auth get`.
    pub auth: BTreeSet<OsdId>,
    /// Whether to ask if client.bootstrap-osd exists.
    pub bootstrap: bool,
    /// Whether to ask which options about recovery the config database has.
    pub recovery: bool,
    /// Whether to ask how long OSDs need to commit writes.
    pub commit_latency: bool,
    /// OSDs for `osd safe-to-destroy`.
    pub safe_to_destroy: BTreeSet<OsdId>,
    /// OSD to be marked out, for a forecast.
    pub emptiable: Option<OsdId>,
    /// OSDs to be removed together, for a forecast; empty if there is none.
    pub removable: BTreeSet<OsdId>,
    /// Deployment of a new OSD for a dry run by the API server: of one OSD, right before its stop.
    pub admission: Option<Deploy>,
    /// Whether an answer that the same observation already has about this Deployment suffices.
    pub keeps_admission: bool,
}

/// Returns the questions to ask Ceph and the API server.
pub fn questions(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Questions {
    let view = View { policy, ledger, seen };
    let recovery = recovery::is_asked_for(view);
    if policy.fence.is_some() {
        return Questions { recovery, ..Questions::default() };
    }
    let open: BTreeSet<OsdId> = ledger.in_flight().map(|record| record.osd).collect();
    let restarts = if policy.makes_new() { tolerate::asked(view) } else { Vec::new() };
    let refused = |osd: OsdId| lacks_its_disk(osd, view);
    let before = |osd: &OsdId| open.is_empty() || open.contains(osd);
    let next = open.is_empty().then(|| candidates::asked(view, refused)).into_iter().flatten();
    let steps: Vec<Step<'_>> = steps(view).collect();
    let admission = admission(&steps, view);
    let removable = match steps.as_slice() {
        [] => removals::asked(view),
        steps => {
            let of_steps = steps.iter().find_map(Step::asks_removable);
            of_steps.unwrap_or_else(|| removals::asked_beside(view))
        }
    };
    Questions {
        ok_to_stop: steps
            .iter()
            .filter_map(Step::asks_ok_to_stop)
            .chain(next.chain(restarts).filter(before))
            .chain(batch::asked(view))
            .map(|osd| BTreeSet::from([osd]))
            .collect(),
        auth: steps.iter().filter_map(Step::asks_auth).collect(),
        bootstrap: bootstrap::is_asked_for(ledger),
        recovery,
        commit_latency: policy.max_commit_latency.is_some(),
        safe_to_destroy: steps.iter().filter_map(Step::asks_safe_to_destroy).collect(),
        emptiable: match steps.as_slice() {
            // A removal without an answer does not hold up the OSDs that are to be emptied.
            [] if !removable.is_empty() && skipping_for(view).is_none() => None,
            [] => candidates::asked_to_be_emptied(view, refused),
            steps => steps.iter().find_map(Step::asks_emptiable),
        },
        removable,
        keeps_admission: admission.as_ref().is_some_and(|(_, step)| step.keeps_admission()),
        admission: admission.map(|(deploy, _)| deploy),
    }
}

/// Returns the question about the first OSD in progress that is about to be stopped; of those whose last act
/// failed only if there is no other.
fn admission<'s, 'v>(steps: &'s [Step<'v>], view: View<'_>) -> Option<(Deploy, &'s Step<'v>)> {
    let has_failed = |step: &&Step<'_>| view.seen.failed.contains(step.record.osd);
    let others = steps.iter().filter(|step| !has_failed(step));
    others.chain(steps.iter().filter(has_failed)).find_map(|step| Some((step.asks_admission()?, step)))
}

fn steps(view: View<'_>) -> impl Iterator<Item = Step<'_>> {
    view.ledger.in_flight().map(move |record| Step::of(record, is_wanted(record, view), view))
}
