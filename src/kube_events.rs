//! Kubernetes events of a run, for `kubectl describe` of its Job and of the CephCluster. They are few, and
//! each is a sentence that stands alone.

use crate::domain::act::{Act, CephAct, KubeAct};
use crate::domain::ledger::Ledger;
use crate::domain::next::{Saving, Summary};
use crate::domain::osd::OsdId;
use crate::k8s::EventType;
use crate::report::Event;

/// Kubernetes event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeEvent {
    /// Type: a warning needs a person's attention.
    pub kind: EventType,
    /// PascalCase reason in the past tense.
    pub reason: &'static str,
    /// Sentence for people.
    pub note: String,
}

/// All event reasons.
pub const REASONS: [&str; 17] = [
    OSD_RECORDED,
    OSD_MARKED_OUT,
    OSD_STOPPED,
    OSD_DESTROYED,
    OSD_PREPARED,
    OSD_MIGRATED,
    OSD_REMOVED,
    OSD_QUARANTINED,
    MIGRATION_PROGRESSED,
    MIGRATION_STALLED,
    MIGRATION_HALTED,
    MIGRATION_FINISHED,
    DEVICE_PROBLEM_FOUND,
    DRIFT_FOUND,
    OSD_STOP_REVERTED,
    NOOUT_LIFTED,
    OPERATOR_SCALED,
];

const OSD_RECORDED: &str = "OsdRecorded";
const OSD_STOPPED: &str = "OsdStopped";
const OSD_DESTROYED: &str = "OsdDestroyed";
/// An OSD is marked out, and its data moves to other OSDs before it is stopped.
const OSD_MARKED_OUT: &str = "OsdMarkedOut";
const OSD_PREPARED: &str = "OsdPrepared";
const OSD_MIGRATED: &str = "OsdMigrated";
const OSD_REMOVED: &str = "OsdRemoved";
const OSD_QUARANTINED: &str = "OsdQuarantined";
const OSD_STOP_REVERTED: &str = "OsdStopReverted";
/// Ceph may recover without an OSD that stays down.
const NOOUT_LIFTED: &str = "NooutLifted";
const OPERATOR_SCALED: &str = "OperatorScaled";
const MIGRATION_PROGRESSED: &str = "MigrationProgressed";
/// The data of an OSD that is backfilling or emptied makes no progress.
const MIGRATION_STALLED: &str = "MigrationStalled";
const MIGRATION_HALTED: &str = "MigrationHalted";
const MIGRATION_FINISHED: &str = "MigrationFinished";
/// A declared disk cannot be used, or does not match its settings.
pub const DEVICE_PROBLEM_FOUND: &str = "DeviceProblemFound";
/// The cluster contains a discrepancy that no run fixes by itself, or not without a confirmation.
pub const DRIFT_FOUND: &str = "DriftFound";

/// Returns the Kubernetes event for an event of a run, or none if the event is only logged.
///
/// Its note is the event's message.
pub fn kube_event(event: &Event<'_>) -> Option<KubeEvent> {
    let (kind, reason) = match event {
        Event::Saved { osd: Some(osd), why: Saving::Removed, ledger } if has_left_its_disk(*osd, ledger) => {
            (EventType::Warning, OSD_REMOVED)
        }
        Event::Saved { osd: Some(_), why, .. } => of_save(why)?,
        Event::Done(act) => of_act(act)?,
        Event::Halted(_) => (EventType::Warning, MIGRATION_HALTED),
        // `fence` is no migration.
        Event::Finished(summary) if summary.fence.is_some() => return None,
        Event::Finished(summary) if waits_for_a_person(summary) => (EventType::Warning, MIGRATION_FINISHED),
        Event::Finished(_) => (EventType::Normal, MIGRATION_FINISHED),
        Event::Saved { .. }
        | Event::Conflict
        | Event::NotDone { .. }
        | Event::Blind(_)
        | Event::Waiting { .. }
        | Event::Lease(_) => return None,
    };
    Some(KubeEvent { kind, reason, note: event.to_string() })
}

/// Returns whether the disk of a removed OSD is left as it is: that of a dead OSD was never read.
fn has_left_its_disk(osd: OsdId, ledger: &Ledger) -> bool {
    ledger.removal(osd).is_some_and(|removal| removal.left.is_some())
}

fn of_save(why: &Saving) -> Option<(EventType, &'static str)> {
    Some(match why {
        Saving::Record => (EventType::Normal, OSD_RECORDED),
        Saving::New => (EventType::Normal, OSD_PREPARED),
        // Records that are given up are closed too. This event is only for records whose OSD is done.
        Saving::Closing => (EventType::Normal, OSD_MIGRATED),
        Saving::Uncleared { .. } => (EventType::Warning, OSD_MIGRATED),
        Saving::Removed => (EventType::Normal, OSD_REMOVED),
        Saving::DiskLeft { .. } | Saving::HostLeft { .. } => (EventType::Warning, OSD_REMOVED),
        Saving::Quarantine { .. } => (EventType::Warning, OSD_QUARANTINED),
        Saving::RevertStop { .. } => (EventType::Warning, OSD_STOP_REVERTED),
        Saving::NooutLifted => (EventType::Warning, NOOUT_LIFTED),
        Saving::Withdrawn
        | Saving::NotAdmitted { .. }
        | Saving::NotEmptied { .. }
        | Saving::Emptying
        | Saving::MarkedOut
        | Saving::EmptyingProgress { .. }
        | Saving::EmptyingHeldUp { .. }
        | Saving::Emptied
        | Saving::StopIntentCleared
        | Saving::Purged
        | Saving::Attempt { .. }
        | Saving::Proof
        | Saving::Stop
        | Saving::PgsGone { .. }
        | Saving::WipeBlocked
        | Saving::Bootstrap { .. }
        | Saving::Fence
        | Saving::FenceOrdered
        | Saving::FenceGone
        | Saving::FenceAcknowledged
        | Saving::OperatorScaled
        | Saving::OperatorRestoring
        | Saving::OperatorRestored
        | Saving::Pdb
        | Saving::PdbRestored
        | Saving::NoScrub
        | Saving::NoScrubSet
        | Saving::NoScrubUnsetExternally
        | Saving::NoScrubRestored
        | Saving::FastRecovery
        | Saving::FastRecoverySet
        | Saving::FastRecoveryChangedExternally
        | Saving::FastRecoveryRestored
        | Saving::Unfenced
        | Saving::LeftToRook
        | Saving::Down
        | Saving::Up
        | Saving::Blocked
        | Saving::Skipping
        | Saving::UpmapsLost
        | Saving::Upmaps
        | Saving::UpmapsDone { .. }
        | Saving::Progress
        | Saving::Closed
        | Saving::Node { .. } => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "few acts are events")]
fn of_act(act: &Act) -> Option<(EventType, &'static str)> {
    match act {
        Act::Kube(KubeAct::Stop { .. }) => Some((EventType::Normal, OSD_STOPPED)),
        Act::Ceph(CephAct::MarkOut { .. } | CephAct::DropWeight { .. }) => {
            Some((EventType::Normal, OSD_MARKED_OUT))
        }
        Act::Ceph(CephAct::Destroy { .. }) => Some((EventType::Normal, OSD_DESTROYED)),
        Act::Kube(KubeAct::ScaleOperator { .. }) => Some((EventType::Normal, OPERATOR_SCALED)),
        _ => None,
    }
}

/// Returns whether work is left that needs a confirmation or that Rook prevents.
///
/// The person who set the schedule reads no logs.
fn waits_for_a_person(summary: &Summary) -> bool {
    !(summary.unconfirmed.is_empty()
        && summary.withheld_from_rook.is_empty()
        && summary.reshaped_by_rook.is_empty()
        && summary.fenced_since.is_none()
        && summary.half_way.is_empty())
}

/// Returns the events that are published repeatedly while a run lasts: progress and quarantined OSDs.
///
/// Kubernetes keeps events for an hour only.
pub fn standing(text: &str, ledger: &Ledger) -> Vec<KubeEvent> {
    let progressed =
        KubeEvent { kind: EventType::Normal, reason: MIGRATION_PROGRESSED, note: text.to_owned() };
    let quarantined = ledger.quarantined().filter_map(|record| {
        let why = record.quarantine.as_ref().map(|quarantine| quarantine.why.clone()).unwrap_or_default();
        kube_event(&Event::Saved { osd: Some(record.osd), why: &Saving::Quarantine { why }, ledger })
    });
    [progressed].into_iter().chain(quarantined).collect()
}

/// Returns the event about a run that an error ended.
pub fn halted(text: &str) -> KubeEvent {
    KubeEvent { kind: EventType::Warning, reason: MIGRATION_HALTED, note: text.to_owned() }
}

/// Returns the event about a stall.
pub fn stalled(text: &str) -> KubeEvent {
    KubeEvent { kind: EventType::Warning, reason: MIGRATION_STALLED, note: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::inspection::RecordId;
    use crate::domain::osd::{Epoch, OsdId};
    use crate::domain::policy::Accepted;

    #[test]
    fn osd_that_is_marked_out_is_an_event_and_no_detail() {
        let act = Act::Ceph(CephAct::MarkOut {
            osd: OsdId(5),
            fsid: "6a9f5b1e-0000-4000-8000-000000000005".parse().unwrap(),
            up_from: Epoch(7),
            record: RecordId("r".to_owned()),
            accepted: Accepted::default(),
        });
        let event = Event::Done(&act);
        assert_eq!(kube_event(&event).unwrap().reason, OSD_MARKED_OUT);
        assert!(!event.is_detail());
    }

    #[test]
    fn event_reasons_are_unique_and_in_the_past_tense() {
        let mut sorted = REASONS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), REASONS.len());
        let past = [
            "Recorded",
            "Lifted",
            "Stopped",
            "Destroyed",
            "Prepared",
            "MarkedOut",
            "Removed",
            "Migrated",
            "Quarantined",
            "Progressed",
            "Stalled",
            "Halted",
            "Finished",
            "Found",
            "Reverted",
            "Scaled",
        ];
        for reason in REASONS {
            assert!(past.iter().any(|verb| reason.ends_with(verb)), "{reason}");
            let is_pascal = reason.starts_with(|c: char| c.is_ascii_uppercase());
            assert!(is_pascal && reason.chars().all(|c| c.is_ascii_alphabetic()), "{reason}");
        }
    }

    #[test]
    fn event_of_a_fault_is_a_warning_and_blind_is_not_an_event() {
        let quarantine = Saving::Quarantine { why: "the disk is gone".to_owned() };
        let event = Event::Saved { osd: Some(OsdId(3)), why: &quarantine, ledger: &Ledger::default() };
        let event = kube_event(&event).unwrap();
        assert_eq!((event.kind, event.reason), (EventType::Warning, "OsdQuarantined"));
        assert_eq!(event.note, "osd.3: quarantined: the disk is gone [quarantine]");
        let end = kube_event(&Event::Finished(&Summary::default())).unwrap();
        assert_eq!((end.kind, end.reason), (EventType::Normal, "MigrationFinished"));
        let fenced = Summary { withheld_from_rook: [OsdId(3)].into(), ..Summary::default() };
        let unconfirmed = Summary { unconfirmed: [OsdId(3)].into(), ..Summary::default() };
        for summary in [fenced, unconfirmed] {
            assert_eq!(kube_event(&Event::Finished(&summary)).unwrap().kind, EventType::Warning);
        }
        assert_eq!(kube_event(&Event::Blind("no mon")), None);
        let said = |why| kube_event(&Event::Saved { osd: Some(OsdId(3)), why, ledger: &Ledger::default() });
        assert_eq!(said(&Saving::Closing).unwrap().reason, "OsdMigrated");
        assert_eq!((said(&Saving::Withdrawn), said(&Saving::Closed)), (None, None), "it was given up");
    }

    #[test]
    fn standing_event_is_progress_if_nothing_is_quarantined() {
        let event = standing("osd.1 is backfilling", &Ledger::default());
        assert_eq!(event.iter().map(|a| a.reason).collect::<Vec<_>>(), ["MigrationProgressed"]);
        assert_eq!(event[0].note, "osd.1 is backfilling");
    }
}
