//! Whether a record still describes what its owner wants.

use chrono::{DateTime, Utc};

use super::approved::changed;
use super::quarantined::only_quarantined_missing;
use super::{available, database, directory, new_on_pvc, removals};
use crate::domain::classify;
use crate::domain::gate::{self, Gate};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::{Record, Strategy};
use crate::domain::policy::Empty;
use crate::domain::temporary::INTENT_MINUTES;
use crate::domain::view::View;

/// Returns whether confirmation, selection, class, node, Deployment, PVC and target still are as recorded.
///
/// Callers ask only before Stop. If the Deployment was recreated, it is not the one in the backup, and its
/// OSD gets a new record.
///
/// For an available disk: returns whether its node's inventory still finds it available, and it is selected
/// to become the recorded OSD.
pub(super) fn is_wanted(record: &Record, view: View<'_>) -> bool {
    if record.is_new() {
        let is_selected =
            if record.pvcs.is_some() { new_on_pvc::is_selected } else { available::is_selected };
        return view.is_confirmed() && !gate::is_cancelled(view) && is_selected(record, view);
    }
    if record.is_removal() {
        return removals::is_wanted(record, view) && !is_undone(record, view);
    }
    let daemon = view.daemon(record.osd);
    view.is_confirmed()
        && view.selects(record.osd)
        && view.removal_request(record.osd).is_none()
        && !is_undone(record, view)
        && !fails_like_others(record, view)
        && passes(Guard::BatchEndsWithQuarantine, !only_quarantined_missing(view))
        && daemon.is_some_and(|daemon| daemon.uid == record.deployment)
        && (has_no_node_now(record, view) || is_as_recorded(record, view))
}

/// Returns whether too many OSDs of the run have failed, and nothing was done for the stop of this one.
///
/// In a batch, all are recorded before the first one fails.
fn fails_like_others(record: &Record, view: View<'_>) -> bool {
    record.stop_intended_at.is_none() && gate::failure_limit(view.policy, view.ledger) != Gate::Open
}

/// Returns whether the OSD waits for a node: its Deployment is pinned to none, and its pod is not bound yet.
///
/// Class and target are unknown meanwhile. They are compared when the pod has a node, before the OSD is up.
fn has_no_node_now(record: &Record, view: View<'_>) -> bool {
    let is_unbound = view.daemon(record.osd).is_some_and(|daemon| daemon.node.is_none());
    record.pvcs.is_some() && is_unbound && !view.is_up(record.osd)
}

/// Returns whether class, node, PVC and target of an existing OSD are as recorded and as approved.
fn is_as_recorded(record: &Record, view: View<'_>) -> bool {
    let class = view.slot(record.osd).map(|slot| classify::class_of(record.osd, slot, view.seen));
    let daemon = view.daemon(record.osd);
    let node = daemon.and_then(|daemon| daemon.node.as_ref());
    changed(record.osd, view).is_none()
        && (record.empty.is_none() || view.policy.empty != Empty::Never)
        && class.as_ref() == Some(&record.class)
        && node == Some(&record.node)
        && has_same_pvcs(record, view)
        && match &record.strategy {
            Strategy::Directory { path, .. } => {
                daemon.is_some_and(|daemon| daemon.data_dir.as_ref() == Some(path))
                    && directory::is_selected(record, view)
            }
            Strategy::InPlace | Strategy::New { .. } | Strategy::Removal(_) => {
                classify::target_of(record.osd, view.seen).as_ref() == Some(&record.target)
                    && database::is_as_recorded(record, view)
            }
        }
}

/// Returns whether the OSD would get the recorded PVCs, on the recorded PersistentVolumes.
fn has_same_pvcs(record: &Record, view: View<'_>) -> bool {
    let names = record.pvcs.as_ref().map(|pvcs| pvcs.map(|pvc| pvc.name.clone()));
    gate::same_pvc(record, view.seen) == Gate::Open && classify::pvcs_of(record.osd, view.seen) == names
}

/// Returns whether the preparations for a suspended OSD are undone.
///
/// After a cancel they always are. After a pause they are only if something was set for the stop (flags, the
/// fence) or Rook's operator was scaled down: neither may stay as long as a pause may last.
///
/// A recent intent delays this. A Stop may still be on its way (a write has 35 seconds), and the record must
/// exist to recognise it.
fn is_undone(record: &Record, view: View<'_>) -> bool {
    let held = gate::held(view) != Gate::Open;
    let settled = |at: DateTime<Utc>| (view.seen.at - at).num_minutes() >= INTENT_MINUTES;
    let without_intent = || gate::is_cancelled(view) || view.ledger.run.operator.is_some();
    // The preparations for the stop of an emptied OSD are restored without giving the OSD up.
    let stays_emptied = record.is_marked_out() && !gate::is_cancelled(view);
    held && !stays_emptied && record.stop_intended_at.map_or_else(without_intent, settled)
}
