//! Sentences about saves of the ledger, for the log, the status, events and the rehearsal.

use crate::domain::gate::names;
use crate::domain::inspection::{Evidence, Proof};
use crate::domain::ledger::{Ledger, Record, Strategy};
use crate::domain::next::{Saving, uncleared};
use crate::domain::osd::OsdId;
use crate::domain::removal::{Cause, Removal};
use crate::domain::units::size;

/// Returns the sentence about a save that was stored.
///
/// A save without an OSD concerns the whole run.
pub(super) fn sentence(osd: Option<OsdId>, why: &Saving, ledger: &Ledger) -> String {
    let Some(osd) = osd else { return what(why, None) };
    let record = ledger.records.get(&osd);
    match (why, record) {
        (Saving::Record, Some(record)) => recorded(record),
        _ => format!("{osd}: {}", what(why, record)),
    }
}

/// Returns whether a save only records what another event reports.
pub(super) fn is_detail(why: &Saving) -> bool {
    match why {
        Saving::Attempt { after, .. } => after.is_none(),
        Saving::Bootstrap { .. }
        | Saving::Fence
        | Saving::FenceOrdered
        | Saving::Unfenced
        | Saving::OperatorScaled
        | Saving::OperatorRestoring
        | Saving::OperatorRestored
        | Saving::Pdb
        | Saving::PdbRestored
        | Saving::NoScrub
        | Saving::NoScrubSet
        | Saving::NoScrubRestored
        | Saving::FastRecovery
        | Saving::FastRecoverySet
        | Saving::FastRecoveryRestored
        | Saving::LeftToRook
        | Saving::Down
        | Saving::Up
        | Saving::Blocked
        | Saving::Skipping
        | Saving::Progress
        | Saving::Emptying
        | Saving::MarkedOut
        | Saving::EmptyingProgress { .. }
        | Saving::EmptyingHeldUp { .. }
        | Saving::Upmaps
        | Saving::Closed => true,
        Saving::Record
        | Saving::Withdrawn
        | Saving::NotAdmitted { .. }
        | Saving::NotEmptied { .. }
        | Saving::Emptied
        | Saving::StopIntentCleared
        | Saving::Purged
        | Saving::Proof
        | Saving::Stop
        | Saving::PgsGone { .. }
        | Saving::RevertStop { .. }
        | Saving::WipeBlocked
        | Saving::NoScrubUnsetExternally
        | Saving::FastRecoveryChangedExternally
        | Saving::FenceGone
        | Saving::FenceAcknowledged
        | Saving::New
        | Saving::NooutLifted
        | Saving::UpmapsLost
        | Saving::UpmapsDone { .. }
        | Saving::DiskLeft { .. }
        | Saving::HostLeft { .. }
        | Saving::Removed
        | Saving::Closing
        | Saving::Uncleared { .. }
        | Saving::Quarantine { .. }
        | Saving::Node { .. } => false,
    }
}

fn removed(removal: Option<&Removal>) -> String {
    let what = if removal.is_some_and(|removal| removal.keep_id) {
        "removed, and its id is kept: the next available disk of its host becomes the OSD"
    } else {
        "removed: its id, its key and its Deployment are gone"
    };
    let left = removal.and_then(|removal| removal.left.as_ref());
    left.map_or_else(|| what.to_owned(), |why| format!("{what}; its disk is left as it is: {why}"))
}

fn recorded(record: &Record) -> String {
    let Record { osd, node, class, target, .. } = record;
    match &record.strategy {
        Strategy::Removal(removal) => {
            let why = match removal.cause {
                Cause::Request => "as requested",
                Cause::Out => "since it has been down and out for a long time",
                Cause::Directory => "since it is in a directory, and its node has no disk for it",
            };
            format!("{osd}: removal started on node {node}, {why}")
        }
        Strategy::New { .. } => {
            format!("{osd}: creation started on an available disk of node {node}: {target}")
        }
        Strategy::InPlace | Strategy::Directory { .. } => {
            format!("{osd}: migration started on node {node}: {class} becomes {target}")
        }
    }
}

fn withdrawn(record: Option<&Record>) -> &'static str {
    match record {
        Some(record) if record.is_of_dead() => "record withdrawn",
        Some(record) if record.is_marked_out() => "record withdrawn; the OSD serves, and its data moves back",
        Some(record) if !record.is_new() => "record withdrawn; the OSD is as before",
        Some(_) | None => "record withdrawn; nothing was changed",
    }
}

#[expect(clippy::too_many_lines, reason = "one sentence for each save")]
fn what(why: &Saving, record: Option<&Record>) -> String {
    let text = match why {
        Saving::Record => "migration started",
        Saving::Withdrawn => withdrawn(record),
        Saving::NotAdmitted { why } => {
            return format!(
                "skipped and unchanged: the API server does not admit its new Deployment, or its stop: {why}"
            );
        }
        Saving::NotEmptied { why } => {
            return format!(
                "skipped in this run: {why}. Data that was moved away from it moves back, if it is up"
            );
        }
        Saving::Emptying => "it is marked out next, so that it is emptied",
        Saving::MarkedOut => "its data moves to other OSDs",
        Saving::EmptyingProgress { bytes } => return format!("{} left on it", size(*bytes)),
        Saving::EmptyingHeldUp { why } => {
            return format!("its data does not move, and this time does not count as a stall: {why}");
        }
        Saving::Emptied => "its data is on other OSDs",
        Saving::StopIntentCleared => {
            "its stop is postponed; what was prepared for it is restored, and the OSD stays empty"
        }
        Saving::Purged => "its id was purged, and not by osd-migrate",
        Saving::Attempt { after: Some(after), .. } => {
            return format!("the node agent failed and is started again: {after}");
        }
        Saving::Attempt { after: None, task } => return format!("Job to {task} is next"),
        Saving::Proof => match record.and_then(|record| record.evidence.as_ref()) {
            Some(Evidence { proof: Proof::Directory { path, .. }, .. })
                if record.is_some_and(Record::is_removal) =>
            {
                return format!("its directory is proven: {path}");
            }
            Some(evidence) => {
                let device = &evidence.device;
                return format!("its disk is proven: {}, {}", device.stable_name(), size(device.size_bytes));
            }
            None => "its disk is proven",
        },
        Saving::Stop => match record {
            Some(record) => {
                return format!("all gates of its stop are open; its {} PGs are recorded", record.pgs.len());
            }
            None => "all gates of its stop are open",
        },
        Saving::PgsGone { pgs } if pgs.is_empty() => "pools have fewer PGs than before the stop",
        Saving::PgsGone { pgs } => {
            return format!("these of its PGs no longer exist: {}", names(pgs));
        }
        Saving::RevertStop { why } => {
            return format!("stop reverted; the OSD is started again, unchanged: {why}");
        }
        Saving::WipeBlocked => "the wipe of its old data is blocked",
        Saving::Bootstrap { ours: true } => "the user client.bootstrap-osd is created next",
        Saving::Bootstrap { ours: false } => "the user client.bootstrap-osd is deleted",
        Saving::Fence => "the fence is set next",
        Saving::FenceOrdered => "the fence that the owner ordered is set next",
        Saving::FenceGone => {
            "another client removed the fence (label ceph.rook.io/do-not-reconcile) while an OSD is down; it is set again"
        }
        Saving::FenceAcknowledged => "Rook acknowledged the fence",
        Saving::OperatorScaled => "Rook's operator is scaled to 0 next",
        Saving::OperatorRestoring => "Rook's operator is restored next",
        Saving::OperatorRestored => "Rook's operator is restored, or not osd-migrate's to restore",
        Saving::Pdb => "the PodDisruptionBudget rook-ceph-osd is limited next",
        Saving::PdbRestored => "the PodDisruptionBudget rook-ceph-osd is restored",
        Saving::NoScrub => "noscrub and nodeep-scrub are set next",
        Saving::NoScrubSet => "noscrub and nodeep-scrub are set",
        Saving::NoScrubUnsetExternally => {
            "another client unset noscrub or nodeep-scrub; this run does not set that flag again"
        }
        Saving::NoScrubRestored => "noscrub and nodeep-scrub are as before",
        Saving::FastRecovery => "the options with which recovery is faster are set next",
        Saving::FastRecoverySet => "the options with which recovery is faster are set",
        Saving::FastRecoveryChangedExternally => {
            "another client changed an option about recovery; this run leaves that option as it is"
        }
        Saving::FastRecoveryRestored => "the options about recovery are as before",
        Saving::Unfenced => "the fence is removed",
        Saving::New => match record.and_then(|record| record.new) {
            Some(fsid) => return format!("recreated on its disk (fsid {fsid})"),
            None => "recreated on its disk",
        },
        Saving::LeftToRook => "Rook creates its Deployment",
        Saving::Down => "down",
        Saving::Up => "up",
        Saving::NooutLifted => {
            "noout is unset while the OSD is down: Ceph may restore its data on other OSDs"
        }
        Saving::Blocked => "waiting for a gate",
        Saving::Skipping => "waiting only for OSDs that are blocked by their own state",
        Saving::UpmapsLost => "its upmaps are gone, and restored later",
        Saving::Upmaps => "its upmaps are restored next",
        Saving::UpmapsDone { left } if left.is_empty() => "its upmaps are restored",
        Saving::UpmapsDone { left } => {
            let commands: Vec<_> =
                left.iter().map(|upmap| format!("ceph osd pg-upmap-items {upmap}")).collect();
            return format!(
                "the mons no longer accept some of its upmaps. To restore them by hand: {}",
                commands.join("; ")
            );
        }
        Saving::Progress => "backfill progress is saved",
        Saving::DiskLeft { why } => return format!("its disk is left as it is: {why}"),
        Saving::HostLeft { host } => {
            return format!(
                "the CRUSH host {host} is empty, and Ceph does not remove it. See what uses it: ceph osd crush rule dump; then \
                 remove it: ceph osd crush rm {host}"
            );
        }
        Saving::Removed => return removed(record.and_then(Record::removal)),
        Saving::Closing => "done: it is as declared, and all its PGs are active+clean",
        Saving::Uncleared { path, node, why } => {
            return format!(
                "done: it is as declared, and all its PGs are active+clean; {}",
                uncleared(path, node, why)
            );
        }
        Saving::Closed => "record closed",
        Saving::Quarantine { why } => return format!("quarantined: {why}"),
        Saving::Node { node, status, message, .. } if message.is_empty() => {
            return format!("node {node}: {}", status.code());
        }
        Saving::Node { node, message, .. } => return format!("node {node}: {message}"),
    };
    text.to_owned()
}
