//! Recovery by hand: its page covers each phase, and the program accepts what a person left.

use serde_json::Value;

use osd_migrate::domain::act::{Act, CephAct};
use osd_migrate::domain::ledger::{Ledger, Quarantine};
use osd_migrate::domain::next::Next;
use osd_migrate::domain::observation::{Control, ControlKind, SlotState};
use osd_migrate::domain::phase::ROWS;

use crate::support::build::{BY_HAND, FILESTORE, World, noon, old};

use super::entries::{entries, keys, runbook};
use super::quotes::assert_same;
use super::sources::variants;
use super::values::{name, text};

#[test]
fn each_phase_can_be_finished_or_undone_by_hand() {
    let there = variants("src/domain/phase/phases.rs", "Phase");
    assert!(ROWS.iter().all(|(phase, _)| there.contains(&name(phase))));
    assert_same("phases", &there, &keys(&entries("## Phase by phase")));
    let document = runbook();
    let (_, rest) = document.split_once("\n## Where it stands\n").unwrap();
    let (table, _) = rest.split_once("\n## ").unwrap();
    let unseen: Vec<_> = there.iter().filter(|phase| !table.contains(&format!("`{phase}`"))).collect();
    assert!(unseen.is_empty(), "how are these seen: {unseen:?}");
}

/// Checks that the ledger without a record, removed as the runbook describes, reads as if the record never
/// existed.
#[test]
fn record_removed_by_hand_leaves_a_readable_ledger() {
    let document = runbook();
    assert!(document.contains("del(.data[\"osd-\\($id)\"])"), "the command changed");
    assert!(document.contains(".data.run |= (fromjson | .open -= [$id] | tojson)"), "the command changed");
    let mut ledger = World::destroyed(BY_HAND).ledger;
    ledger.records.extend(World::deployed(FILESTORE).ledger.records);
    let mut keys = ledger.to_keys().unwrap();
    keys.remove(&format!("osd-{}", BY_HAND.0)).unwrap();
    assert!(Ledger::from_keys(&keys).is_err(), "half of it is noticed");
    let mut run: Value = serde_json::from_str(&keys["run"]).unwrap();
    run["open"].as_array_mut().unwrap().retain(|id| *id != BY_HAND.0);
    keys.insert("run".to_owned(), run.to_string());
    assert_eq!(Ledger::from_keys(&keys).unwrap(), ledger.without(BY_HAND));
}

/// Checks that a cancelled run closes the record of an OSD that a person restored, one act an iteration.
#[test]
fn osd_restored_by_hand_is_withdrawn_by_a_cancelled_run() {
    let world = World::destroyed(BY_HAND).with(|w| {
        let slot = w.slot(BY_HAND);
        (slot.fsid, slot.state) = (Some(old(BY_HAND)), SlotState::Exists);
        let daemon = w.daemon(BY_HAND);
        (daemon.replicas, daemon.stopped_by) = (1, None);
        w.record(BY_HAND).quarantine = Some(Quarantine { why: text("WHY"), since: noon() });
        w.seen.kube.control = Some(Control { kind: ControlKind::Cancel, since: Some(noon()) });
    });
    let world = world.up(BY_HAND).minutes_later(2);
    let quarantined = world.plan();
    assert!(!matches!(quarantined, Next::Save { .. }), "not while it is left alone: {quarantined:?}");
    let world = world.with(|w| w.ledger = w.ledger.retried(BY_HAND, w.seen.at).unwrap());
    let world = world.saved("up").saved("withdrawn").cleaned_up(BY_HAND);
    assert!(
        matches!(
            world.plan(),
            Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: BY_HAND, noout: true, noin: true }))
        ),
        "{:?}",
        world.plan()
    );
}
