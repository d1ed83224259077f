//! Gates of a removal: clients that wait, and a Rook that resets weights.

use std::time::Duration;

use osd_migrate::domain::removal::DiskAfter;

use super::removal::{dropped, requested, set_weight};
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
