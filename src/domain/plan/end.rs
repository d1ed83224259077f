//! How a run ends: with the fence down and Rook's operator back, or with what is left for a person.

use std::collections::BTreeSet;

use super::operator;
use crate::domain::classify::{self, Class, Refusal};
use crate::domain::gate;
use crate::domain::ledger::{Ledger, Record};
use crate::domain::next::{Next, Summary};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::phase::is_committed;
use crate::domain::policy::Policy;
use crate::domain::step;

/// Every PG that is not clean was served by an OSD that was left alone past Stop and is down: waiting alone does not end
/// that. One that serves, the old one or the new one, fills by itself.
pub(super) fn only_quarantined_missing(ledger: &Ledger, seen: &Observation) -> bool {
    let is_up = |record: &Record| seen.ceph.slots.get(&record.osd).is_some_and(|slot| slot.up);
    let theirs: BTreeSet<_> = ledger
        .quarantined()
        .filter(|record| is_committed(record, seen) && !is_up(record))
        .flat_map(|record| &record.pgs)
        .collect();
    let unclean = seen.ceph.pgs.iter().filter(|(_, pg)| !gate::is_clean(pg));
    !theirs.is_empty() && unclean.into_iter().all(|(id, _)| theirs.contains(id))
}

/// Nothing is left but our fence, perhaps, and Rook's operator at 0. An OSD that was left alone past Stop keeps both: Rook would
/// start it.
pub(super) fn end(policy: &Policy, ledger: &Ledger, seen: &Observation, last: Next) -> Next {
    let half_way: BTreeSet<OsdId> = ledger
        .records
        .values()
        .filter(|record| is_committed(record, seen))
        .map(|record| record.osd)
        .collect();
    if half_way.is_empty() {
        return finish(policy, ledger, seen, last);
    }
    let are_drains_blocked = ledger.run.fence.is_some() || ledger.run.operator.is_some();
    match last {
        Next::Finished(summary) if are_drains_blocked => Next::Finished(Summary { half_way, ..summary }),
        Next::Finished(_) | Next::Save { .. } | Next::Do(_) | Next::Wait(_) | Next::Halt(_) => last,
    }
}

/// The same where no OSD is half-way.
fn finish(policy: &Policy, ledger: &Ledger, seen: &Observation, last: Next) -> Next {
    let left = operator::rook_would_migrate(policy, ledger, seen);
    match (last, &ledger.run.fence) {
        (Next::Finished(summary), _) if !left.is_empty() => {
            Next::Finished(Summary { withheld_from_rook: left, ..summary })
        }
        (last, _) if !left.is_empty() => last,
        (_, Some(value)) => step::take_down(value, ledger, seen),
        (last, None) => operator::back(ledger, seen).unwrap_or_else(|| with_operator_at_0(last, seen)),
    }
}

/// Adds the OSDs that their class refuses to what a run tells at its end: nobody could migrate them, and a run that could do nothing is
/// not complete. A destroyed slot without a record is no OSD.
pub(super) fn with_refused(next: Next, policy: &Policy, seen: &Observation) -> Next {
    let Next::Finished(mut summary) = next else { return next };
    if !(policy.only_new || policy.leaves) {
        let refused = classify::classify(seen).into_iter().filter_map(|(osd, class)| match class {
            Class::Refused(why) if why != Refusal::Orphan && policy.selects(osd) => {
                Some((osd, why.to_string()))
            }
            Class::Refused(_)
            | Class::Conforming
            | Class::Legacy(_)
            | Class::Mismatched(_)
            | Class::Available => None,
        });
        let known: BTreeSet<OsdId> =
            summary.refused.iter().chain(&summary.quarantined).map(|(osd, _)| *osd).collect();
        summary.refused.extend(refused.filter(|(osd, _)| !known.contains(osd)));
    }
    Next::Finished(summary)
}

/// Who scaled Rook's operator to 0 by hand (for a migration, as like as not) is told that it is needed so no longer.
fn with_operator_at_0(last: Next, seen: &Observation) -> Next {
    let Next::Finished(summary) = last else { return last };
    let at_0 = seen.kube.operator.as_ref().filter(|operator| operator.replicas == 0);
    let left_to_rook_at_0 = at_0.map(|_| gate::left_to_rooks_migration(seen)).unwrap_or_default();
    let operator_at_0 = at_0.map(|operator| operator.name.clone());
    Next::Finished(Summary { operator_at_0, left_to_rook_at_0, ..summary })
}
