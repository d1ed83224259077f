//! Marks of osd-migrate without a record: the ledger was lost.

use crate::domain::guard::{Guard, is_out};
use crate::domain::inspection::RecordId;
use crate::domain::next::{Halt, Next};
use crate::domain::view::View;

/// Halts if a mark of osd-migrate has no record.
pub(super) fn halt(view: View<'_>) -> Option<Next> {
    lost_record(view).filter(|_| !is_out(Guard::LedgerNotLost)).map(Next::Halt)
}

/// Returns a halt if a mark of osd-migrate has no record: the ledger was lost.
fn lost_record(view: View<'_>) -> Option<Halt> {
    let stopped = view.seen.kube.daemons.values().find_map(|daemon| {
        let id = daemon.stopped_by.as_ref().filter(|id| !view.ledger.has(id))?;
        Some(Halt::LedgerLost { place: format!("Deployment {}", daemon.name), record: id.clone() })
    });
    let fence = || {
        let known = [view.our_fence(), view.ledger.run.last_fence.as_deref()];
        let value = view.seen.kube.fence.as_deref().filter(|value| !known.contains(&Some(*value)))?;
        let id = value.strip_prefix("osd-migrate-")?;
        Some(Halt::LedgerLost { place: "the CephCluster".to_owned(), record: RecordId(id.to_owned()) })
    };
    stopped.or_else(fence)
}
