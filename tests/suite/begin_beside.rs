//! OSDs that are recorded beside others, and for which nothing was done yet.

use std::time::Duration;

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::batch;
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::in_parallel::InParallel;
use osd_migrate::domain::ledger::{Ledger, Record};
use osd_migrate::domain::next::{Next, Saving, Wait};
use osd_migrate::domain::osd::{OsdFsid, OsdId};
use osd_migrate::domain::plan;

use crate::support::build::{BY_HAND, FILESTORE, World, foreign, noon};
use crate::support::check;

const OSD: OsdId = BY_HAND;

#[test]
fn recorded_osd_is_withdrawn_beyond_the_failure_limit() {
    let mut failed = World::recorded(FILESTORE)
        .report_with(FILESTORE, |r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false)
        .saved("quarantine");
    failed.record(FILESTORE).down_since = Some(noon());
    let failed = failed.record(FILESTORE).clone();
    let beside = |world: World| {
        world.with(|w| {
            w.policy.limits.failures = 0;
            w.ledger.records.insert(FILESTORE, failed.clone());
        })
    };
    check!(beside(World::recorded(OSD)).plan(), Next::Save { osd: Some(OSD), why: Saving::Withdrawn, .. });
    let allowed = beside(World::recorded(OSD)).with(|w| w.policy.limits.failures = 1);
    assert_eq!(allowed.plan(), World::recorded(OSD).plan());
    let stopped = World::stopped(OSD);
    assert_eq!(beside(stopped.clone()).plan(), stopped.plan());
}

#[test]
fn recorded_osd_of_a_batch_waits_while_writes_are_slow() {
    let slow = |w: &mut World| {
        w.policy.max_commit_latency = Some(Duration::from_millis(50));
        let all = w.seen.ceph.slots.keys().map(|osd| (*osd, Duration::from_millis(90)));
        w.seen.ceph.commit_latency = Some(all.collect());
    };
    let down = World::stopped(FILESTORE).record(FILESTORE).clone();
    let alone = World::recorded(OSD);
    let beside = alone.clone().with(|w| drop(w.ledger.records.insert(FILESTORE, down.clone())));
    assert_eq!(alone.clone().with(slow).plan(), alone.plan(), "it is finished, whatever clients notice");
    let is_held = |next: &Next| {
        matches!(next, Next::Wait(Wait::Gate { osd: OSD, reason: Reason::CommitLatency { .. } }))
    };
    let waits =
        |world: &World| plan::waits(world.view()).iter().cloned().map(Next::Wait).any(|next| is_held(&next));
    assert!(waits(&beside.clone().with(slow)) && !waits(&beside));
}

#[test]
fn osds_that_get_their_data_back_need_no_fence() {
    let other = OsdId(5);
    let booted = World::booted(OSD);
    // The daemon booted under noin, which is lifted first.
    let booted = booted.with(|w| (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false));
    let beside = |new: Option<OsdFsid>| {
        booted.clone().with(|w| {
            let record = Record { osd: other, new, ..w.record(OSD).clone() };
            w.ledger.records.insert(other, record);
        })
    };
    let up = booted.seen.ceph.slots[&other].fsid;
    let is_unfenced = |world: World| matches!(world.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    assert!(is_unfenced(beside(up)), "both are up");
    assert!(
        !is_unfenced(beside(None)) && !is_unfenced(beside(Some(foreign()))),
        "the other one is not up yet"
    );
}

#[test]
fn kind_is_untried_while_the_osd_that_tried_it_is_down() {
    let record = World::recorded(OSD).record(OSD).clone();
    let kind = batch::kind(&record.class, &record.target);
    let world = World::recorded(OSD).with(|w| {
        let at = w.seen.at - w.policy.limits.soak;
        w.ledger.run.note_tried(kind.clone(), FILESTORE, &w.policy.run, at);
    });
    let is_tried = |world: World| batch::is_tried(&kind, world.view());
    assert!(is_tried(world.clone()));
    let down = world.with(|w| w.slot(FILESTORE).up = false);
    assert!(!is_tried(down.clone()));
    assert!(!is_tried(down.clone().with(|w| drop(w.seen.ceph.slots.remove(&FILESTORE)))));
    assert!(is_tried(down.clone().with(|w| w.slot(FILESTORE).up = true)));
    // A ledger of an earlier version does not name the OSD.
    let earlier = down.with(|w| w.ledger.run.tried.as_mut().unwrap().osds.clear());
    let keys = earlier.ledger.to_keys().unwrap();
    assert!(!keys["run"].contains("osds"), "{}", keys["run"]);
    assert_eq!(Ledger::from_keys(&keys).unwrap(), earlier.ledger);
    assert!(is_tried(earlier));
}

#[test]
fn finished_osd_replaces_the_one_that_tried_its_kind_if_down() {
    let closed = |is_up| {
        let closing = World::filled(OSD).saved("closing").with(|w| {
            (w.slot(OSD).noout, w.slot(OSD).noin, w.seen.kube.fence) = (false, false, None);
        });
        let world = closing.saved("unfenced").cleaned_up(OSD).with(|w| {
            (w.policy.in_parallel, w.policy.limits.soak) = (InParallel::Count(2), TimeDelta::minutes(10));
            w.slot(FILESTORE).up = is_up;
            let record = w.record(OSD).clone();
            let kind = batch::kind(&record.class, &record.target);
            let at = w.seen.at - TimeDelta::minutes(3);
            w.ledger.run.note_tried(kind, FILESTORE, &w.policy.run, at);
        });
        let at = world.seen.at;
        let tried = world.saved("closed").ledger.run.tried.unwrap();
        let times = tried.kinds.into_values().map(|time| at - time);
        times.zip(tried.osds.into_values()).collect::<Vec<_>>()
    };
    assert_eq!(closed(true), [(TimeDelta::minutes(3), FILESTORE)]);
    assert_eq!(closed(false), [(TimeDelta::zero(), OSD)]);
}
