//! How a run ends: with the fence down and Rook's operator back, or with what is left for a person.

use std::collections::BTreeSet;

use super::operator;
use crate::domain::gate;
use crate::domain::ledger::{Ledger, Record};
use crate::domain::next::{Next, Summary};
use crate::domain::observation::Observation;
use crate::domain::phase;
use crate::domain::policy::Policy;
use crate::domain::step;

/// Every PG that is not clean was served by an OSD that was left alone past Stop and is down: waiting alone does not end
/// that. One that serves, the old one or the new one, fills by itself.
pub(super) fn only_quarantined_lack(ledger: &Ledger, seen: &Observation) -> bool {
    let is_up = |record: &Record| seen.ceph.slots.get(&record.osd).is_some_and(|slot| slot.up);
    let theirs: BTreeSet<_> = ledger
        .quarantined()
        .filter(|record| is_past_stop(record, seen) && !is_up(record))
        .flat_map(|record| &record.pgs)
        .collect();
    let unclean = seen.ceph.pgs.iter().filter(|(_, pg)| !gate::is_clean(pg));
    !theirs.is_empty() && unclean.into_iter().all(|(id, _)| theirs.contains(id))
}

/// It was to be stopped, and is not as it was before: stopped by us, or no longer the old OSD. One that was only meant to
/// be stopped, or serves again, is not.
fn is_past_stop(record: &Record, seen: &Observation) -> bool {
    record.stop_intended_at.is_some() && !phase::facts(record, true, seen).before_stop()
}

/// Nothing is left but our fence, perhaps, and Rook's operator at 0. An OSD that was left alone past Stop keeps both: Rook would
/// start it. The fence stays, too, where Rook would go on with a migration of its own; it goes with us.
pub(super) fn end(policy: &Policy, ledger: &Ledger, seen: &Observation, last: Next) -> Next {
    let past_stop = ledger.records.values().any(|record| is_past_stop(record, seen));
    if past_stop {
        return last;
    }
    let left = gate::left_to_rooks_migration(seen);
    match (&ledger.run.fence, last) {
        (Some(_), Next::Finished(summary)) if !left.is_empty() && !policy.leaves => {
            Next::Finished(Summary { fenced_for: left, ..summary })
        }
        (Some(_), halt @ Next::Halt(_)) if !left.is_empty() && !policy.leaves => halt,
        (Some(value), _) => step::take_down(value, ledger, seen),
        (None, last) => operator::back(ledger, seen).unwrap_or(last),
    }
}
