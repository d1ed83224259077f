//! Kubernetes events of a run, for `kubectl describe` of its Job and of the CephCluster. They are few, and
//! each is a sentence that stands alone.

use crate::domain::act::{Act, CephAct, KubeAct};
use crate::domain::ledger::{Ledger, Record, Strategy};
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
pub const REASONS: [&str; 14] = [
    OSD_RECORDED,
    OSD_STOPPED,
    OSD_DESTROYED,
    OSD_PREPARED,
    OSD_MIGRATED,
    OSD_QUARANTINED,
    MIGRATION_PROGRESSED,
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
const OSD_PREPARED: &str = "OsdPrepared";
const OSD_MIGRATED: &str = "OsdMigrated";
const OSD_QUARANTINED: &str = "OsdQuarantined";
const OSD_STOP_REVERTED: &str = "OsdStopReverted";
/// Ceph may recover without an OSD that stays down.
const NOOUT_LIFTED: &str = "NooutLifted";
const OPERATOR_SCALED: &str = "OperatorScaled";
const MIGRATION_PROGRESSED: &str = "MigrationProgressed";
const MIGRATION_HALTED: &str = "MigrationHalted";
const MIGRATION_FINISHED: &str = "MigrationFinished";
/// A declared disk cannot be used, or does not match its settings.
pub const DEVICE_PROBLEM_FOUND: &str = "DeviceProblemFound";
/// The cluster contains a discrepancy that no run fixes by itself, or not without a confirmation.
pub const DRIFT_FOUND: &str = "DriftFound";

/// Returns the Kubernetes event for an event of a run, or none if the event is only logged.
pub fn kube_event(event: &Event<'_>) -> Option<KubeEvent> {
    Some(match event {
        Event::Saved { osd: Some(osd), why, ledger } => return saved(*osd, why, ledger),
        Event::Done(act) => return done_act(act),
        Event::Halted(_) => warning(MIGRATION_HALTED, event.to_string()),
        Event::Finished(summary) if waits_for_a_person(summary) => {
            warning(MIGRATION_FINISHED, event.to_string())
        }
        Event::Finished(_) => normal(MIGRATION_FINISHED, event.to_string()),
        Event::Saved { .. }
        | Event::Conflict
        | Event::NotDone { .. }
        | Event::Blind(_)
        | Event::Waiting { .. }
        | Event::Lease(_) => return None,
    })
}

fn normal(reason: &'static str, note: String) -> KubeEvent {
    KubeEvent { kind: EventType::Normal, reason, note }
}

fn warning(reason: &'static str, note: String) -> KubeEvent {
    KubeEvent { kind: EventType::Warning, reason, note }
}

fn saved(osd: OsdId, why: &Saving, ledger: &Ledger) -> Option<KubeEvent> {
    Some(match why {
        Saving::Record => normal(OSD_RECORDED, begun(ledger.records.get(&osd)?)),
        Saving::New => normal(OSD_PREPARED, format!("{osd} was made anew with its id, and is to be started")),
        // Records that are given up are closed too. This event is only for records whose OSD is done.
        Saving::Closing => normal(OSD_MIGRATED, done(osd)),
        Saving::Uncleared { path, node, why } => warning(
            OSD_MIGRATED,
            format!("{}; its old directory {path} on node {node} could not be removed: {why}", done(osd)),
        ),
        Saving::Quarantine { why } => warning(OSD_QUARANTINED, quarantined(osd, why)),
        Saving::RevertStop { why } => warning(
            OSD_STOP_REVERTED,
            format!("{osd} is started again as it was, nothing of it is lost: {why}"),
        ),
        Saving::NooutLifted => warning(
            NOOUT_LIFTED,
            format!("{osd} is still down: its noout is lifted, and Ceph may restore its data elsewhere"),
        ),
        Saving::Withdrawn
        | Saving::NotAdmitted { .. }
        | Saving::Purged
        | Saving::Attempt { .. }
        | Saving::Proof
        | Saving::Stop
        | Saving::PgsGone { .. }
        | Saving::WipeBlocked
        | Saving::Bootstrap { .. }
        | Saving::Fence
        | Saving::FenceGone
        | Saving::FenceAcknowledged
        | Saving::OperatorScaled
        | Saving::OperatorRestored
        | Saving::Pdb
        | Saving::PdbRestored
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

fn done_act(act: &Act) -> Option<KubeEvent> {
    if let Act::Kube(KubeAct::Stop { osd, .. }) = act {
        return Some(normal(
            OSD_STOPPED,
            format!("{osd} was stopped: its data lacks a copy until it is filled again"),
        ));
    }
    if let Act::Ceph(CephAct::Destroy { osd, fsid, .. }) = act {
        return Some(normal(OSD_DESTROYED, format!("{osd}, {fsid}, was destroyed; its id and place stay")));
    }
    let Act::Kube(KubeAct::ScaleOperator { name, replicas, .. }) = act else { return None };
    let until = if *replicas == 0 {
        ", while OSDs are migrated: Rook reconciles nothing until it is back"
    } else {
        " again"
    };
    Some(normal(OPERATOR_SCALED, format!("Rook's operator {name} was scaled to {replicas}{until}")))
}

/// Returns whether work is left that needs a confirmation or that Rook prevents. The person who set the
/// schedule reads no logs.
fn waits_for_a_person(summary: &Summary) -> bool {
    !(summary.unconfirmed.is_empty() && summary.withheld_from_rook.is_empty() && summary.half_way.is_empty())
}

/// Returns the events that are published repeatedly while a run lasts: progress and quarantined OSDs.
/// Kubernetes keeps events for an hour only.
pub fn standing(text: &str, ledger: &Ledger) -> Vec<KubeEvent> {
    let progressed =
        KubeEvent { kind: EventType::Normal, reason: MIGRATION_PROGRESSED, note: text.to_owned() };
    let quarantined = ledger.quarantined().map(|record| KubeEvent {
        kind: EventType::Warning,
        reason: OSD_QUARANTINED,
        note: quarantined(
            record.osd,
            record.quarantine.as_ref().map_or("", |quarantine| quarantine.why.as_str()),
        ),
    });
    [progressed].into_iter().chain(quarantined).collect()
}

fn begun(record: &Record) -> String {
    let Record { osd, node, class, target, .. } = record;
    match record.strategy {
        Strategy::New { .. } => format!("{osd} is made on node {node}: {target}, on a free disk"),
        Strategy::InPlace | Strategy::Directory { .. } => {
            format!("{osd} on node {node} is migrated: {class}; it becomes {target}")
        }
    }
}

fn done(osd: OsdId) -> String {
    format!("{osd} is as declared; every PG that it holds is active+clean")
}

fn quarantined(osd: OsdId, why: &str) -> String {
    format!("{osd} was left alone: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_words_in_past_tense_and_no_two_are_the_same() {
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
            "Migrated",
            "Quarantined",
            "Progressed",
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
    fn what_is_wrong_is_a_warning_and_waits_are_no_events() {
        let quarantine = Saving::Quarantine { why: "the disk is gone".to_owned() };
        let event = Event::Saved { osd: Some(OsdId(3)), why: &quarantine, ledger: &Ledger::default() };
        let told = kube_event(&event).unwrap();
        assert_eq!((told.kind, told.reason), (EventType::Warning, "OsdQuarantined"));
        assert_eq!(told.note, "osd.3 was left alone: the disk is gone");
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
    fn what_stands_is_told_again_with_what_was_left_alone() {
        let told = standing("osd.1 fills", &Ledger::default());
        assert_eq!(told.iter().map(|a| a.reason).collect::<Vec<_>>(), ["MigrationProgressed"]);
        assert_eq!(told[0].note, "osd.1 fills");
    }
}
