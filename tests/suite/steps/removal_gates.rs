//! Gates of a removal: clients that wait, and a Rook that resets weights.

use std::time::Duration;

use osd_migrate::domain::ledger::Strategy;
use osd_migrate::domain::removal::{DiskAfter, Removal};
use osd_migrate::report::Event;

use super::removal::{dropped, proven, requested, set_weight};
use super::*;

#[test]
fn removal_waits_while_commits_are_slow() {
    let slow = |limit: Option<u64>| {
        requested(DiskAfter::Wipe).with(|w| {
            w.policy.max_commit_latency = limit.map(Duration::from_millis);
            let osds = w.seen.ceph.slots.keys();
            w.seen.ceph.commit_latency = Some(osds.map(|osd| (*osd, Duration::from_millis(51))).collect());
        })
    };
    check!(slow(Some(50)).plan(), Next::Wait(Wait::Gate { osd: OSD, reason: Reason::CommitLatency { .. } }));
    for limit in [Some(51), None] {
        assert_eq!(word(&slow(limit).plan()), Some("record"));
    }
}

/// Checks the command that marks a disk: a request for the OSD alone would replace the one for its node.
#[test]
fn osd_of_a_node_whose_disk_is_selected_names_the_node_to_mark() {
    for (node, marks) in [(None, "remove osd.0 --disk mark"), (Some("h1"), "remove --node h1 --disk mark")] {
        let selected = proven(DiskAfter::Wipe).with(|w| {
            w.seen.kube.declaration.storage.selection.all = Some(true);
            let node = node.map(|node| NodeName(node.to_owned()));
            let removal = Removal { whole_node: node.is_some(), ..Removal::default() };
            w.record(OSD).strategy = Strategy::Removal(removal);
            w.seen.kube.requests.removals.get_mut(&OSD).unwrap().node = node;
        });
        let Next::Save { why: Saving::NotEmptied { why }, .. } = selected.plan() else {
            panic!("{:?}", selected.plan());
        };
        assert!(why.contains(marks), "{why}");
    }
}

#[test]
fn withdrawn_record_says_whether_data_moves_back() {
    let text = |world: World| match &world.with(|w| w.seen.kube.requests.removals.clear()).plan() {
        Next::Save { why: why @ Saving::Withdrawn, osd, ledger } => {
            Event::Saved { osd: *osd, why, ledger }.to_string()
        }
        next => panic!("{next:?}"),
    };
    assert!(text(proven(DiskAfter::Wipe)).contains("the OSD is as before"));
    let dropped = dropped(DiskAfter::Wipe);
    let former = dropped.ledger.records[&OSD].crush.weight;
    let restored = dropped.with(|w| w.slot(OSD).crush.as_mut().unwrap().weight = former);
    assert!(text(restored).contains("its data moves back"));
}

#[test]
fn weight_reset_by_rook_names_the_option_to_switch_off() {
    for (resets, is_named) in [(true, true), (false, false)] {
        let given_up = dropped(DiskAfter::Wipe).with(set_weight(0.75)).with(|w| {
            w.seen.kube.declaration.resets_weights = resets;
            w.seen.kube.operator.as_mut().unwrap().replicas = 1;
        });
        let Next::Save { why: Saving::NotEmptied { why }, .. } = given_up.plan() else {
            panic!("{:?}", given_up.plan());
        };
        assert_eq!(why.contains("allowOsdCrushWeightUpdate"), is_named, "{why}");
    }
}
