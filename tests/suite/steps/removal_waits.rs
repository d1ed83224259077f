//! What a removal waits for, and for how long: no wait of one OSD holds up the others without end.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use osd_migrate::domain::approval::{Approval, PlanLines};
use osd_migrate::domain::ledger::Strategy;
use osd_migrate::domain::observation::{Control, ControlKind, Emptiable, RookPrepare};
use osd_migrate::domain::removal::{Cause, DiskAfter, Removal, RemovalRequest};

use super::dead::heal;
use super::removal::{dropped, emptied, proven, purged, requested, stopped};
use super::*;

/// An OSD that is as declared.
const CONFORMING: OsdId = OsdId(1);

fn unknown(w: &mut World) {
    w.seen.ceph.emptiable.insert(OSD, Emptiable::Unknown("osdmaptool failed".to_owned()));
}

/// Returns the OSDs that Ceph is asked about, to be removed together.
fn removable(world: &World) -> BTreeSet<OsdId> {
    plan::questions(&world.policy, &world.ledger, &world.seen).removable
}

#[test]
fn removal_without_a_forecast_holds_up_no_other() {
    let world = requested(DiskAfter::Wipe).with(unknown).with(|w| {
        w.policy.select.clear();
        let request = RemovalRequest::of(w.slot(CONFORMING).fsid.unwrap());
        w.seen.kube.requests.removals.insert(CONFORMING, request);
    });
    assert_eq!(removable(&world), [OSD].into());
    let skipped = world.saved("skipping");
    check!(skipped.clone().plan(), Next::Save { osd: Some(FILESTORE), why: Saving::Record, .. });
    // One that is to be emptied is asked about, too.
    let emptied = skipped.clone().with(|w| w.policy.empty = Empty::All);
    let asked = plan::questions(&emptied.policy, &emptied.ledger, &emptied.seen);
    assert_eq!((asked.removable, asked.emptiable), ([OSD].into(), Some(FILESTORE)));
    // Nothing else is left.
    let alone = skipped.with(|w| w.policy.skip = [FILESTORE].into());
    check!(
        alone.clone().minutes_later(14).plan(),
        Next::Wait(Wait::Gate { osd: OSD, reason: Reason::EmptyingUnknown { why: Some(_), .. } })
    );
    let refused = alone.minutes_later(15).saved("not-emptied");
    assert_eq!(removable(&refused), [CONFORMING].into(), "the next one is asked about");
    let known = refused.clone().with(|w| {
        w.seen.ceph.emptiable.insert(CONFORMING, Emptiable::Yes { moved_bytes: 0, fullest: None });
    });
    check!(known.plan(), Next::Save { osd: Some(CONFORMING), why: Saving::Record, .. });
    let last = refused.saved("not-emptied");
    check!(
        last.clone().plan(),
        Next::Finished(s) if s.refused.iter().any(|(osd, why)| *osd == OSD && why.contains("osdmaptool failed"))
    );
    // A run of another Job asks again.
    assert_eq!(word(&last.with(|w| w.policy.run = "another".to_owned()).plan()), Some("skipping"));
}

/// Checks a prepare Job of Rook, which runs for seconds, and a node that stays cordoned.
#[test]
fn removal_that_its_own_state_delays_is_waited_for() {
    let world = requested(DiskAfter::Wipe).with(|w| {
        let node = w.seen.kube.daemons[&OSD].node.clone();
        let job = "rook-ceph-osd-prepare-h1".to_owned();
        w.seen.kube.rook_prepares = vec![RookPrepare { job, node }];
    });
    let waits = |world: &World| {
        let next = world.plan();
        let is_it = |reason: &Reason| matches!(reason, Reason::RookPrepares { .. });
        assert!(matches!(&next, Next::Wait(Wait::Gate { osd: OSD, reason }) if is_it(reason)), "{next:?}");
    };
    let skipping = world.clone().saved("skipping");
    waits(&skipping.clone().minutes_later(14));
    check!(skipping.clone().minutes_later(15).plan(), Next::Finished(s) if matches!(s.skipped.as_slice(), [(OSD, _)]));
    let ended = skipping.clone().with(|w| w.seen.kube.rook_prepares.clear());
    check!(ended.plan(), Next::Save { osd: Some(OSD), why: Saving::Record, .. });
    // The time does not count while the run is paused, whether it had begun or not.
    let paused =
        |w: &mut World| w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None });
    let is_paused = |world: &World| {
        check!(world.plan(), Next::Wait(Wait::Gate { osd: OSD, reason: Reason::Paused { .. } }));
    };
    is_paused(&world.with(paused));
    let held = skipping.minutes_later(14).with(paused).saved("skipping").minutes_later(60);
    is_paused(&held);
    let resumed = held.with(|w| w.seen.kube.control = None).saved("skipping");
    waits(&resumed);
    check!(resumed.minutes_later(1).plan(), Next::Finished(s) if matches!(s.skipped.as_slice(), [(OSD, _)]));
}

#[test]
fn removal_without_a_crush_location_holds_up_no_other() {
    let world = requested(DiskAfter::Wipe).with(|w| {
        w.policy.select = [OSD, CONFORMING].into();
        w.slot(OSD).crush = None;
        let request = RemovalRequest::of(w.slot(CONFORMING).fsid.unwrap());
        w.seen.kube.requests.removals.insert(CONFORMING, request);
        w.seen.ceph.emptiable.insert(CONFORMING, Emptiable::Yes { moved_bytes: 0, fullest: None });
    });
    assert_eq!(removable(&world), [CONFORMING].into());
    check!(world.clone().plan(), Next::Save { osd: Some(CONFORMING), why: Saving::Record, .. });
    let alone = world.with(|w| drop(w.seen.kube.requests.removals.remove(&CONFORMING)));
    check!(
        alone.plan(),
        Next::Finished(s) if matches!(s.refused.as_slice(), [(OSD, why)] if why.contains("ceph osd crush add osd.0 0 host=h1"))
    );
}

#[test]
fn removal_of_an_osd_that_the_run_leaves_out_is_withdrawn() {
    type Change = fn(&mut World);
    let changes: [Change; 4] = [
        |w| w.policy.skip = [OSD].into(),
        |w| w.policy.select = [FILESTORE].into(),
        |w| w.policy.hosts = ["h9".to_owned()].into(),
        |w| w.policy.device_classes = ["none".to_owned()].into(),
    ];
    for change in changes {
        assert_eq!(word(&proven(DiskAfter::Wipe).with(change).plan()), Some("withdrawn"));
        let left_out = emptied(DiskAfter::Wipe).with(change);
        check!(left_out.clone().plan(), Next::Do(Act::Ceph(CephAct::RestoreWeight { osd: OSD, .. })));
        assert!(left_out.seen.kube.requests.removals.contains_key(&OSD), "the request stays");
        // After its stop, the removal is completed.
        let gone = stopped(DiskAfter::Wipe).with(change);
        check!(gone.plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: OSD, .. })));
    }
}

#[test]
fn flag_that_holds_up_a_removal_holds_up_no_migration() {
    let world = requested(DiskAfter::Wipe).with(|w| {
        w.policy.select.clear();
        w.seen.ceph.emptiable.insert(OSD, Emptiable::Yes { moved_bytes: 0, fullest: None });
        w.seen.ceph.flags.insert("norebalance".to_owned());
    });
    check!(world.clone().plan(), Next::Save { osd: Some(FILESTORE), why: Saving::Record, .. });
    let alone = world.with(|w| w.policy.skip = [FILESTORE].into());
    check!(alone.plan(), Next::Wait(Wait::Gate { osd: OSD, reason: Reason::Flag { .. } }));
    // A reason of both holds up both.
    let full = requested(DiskAfter::Wipe).with(|w| {
        w.policy.select.clear();
        w.seen.ceph.health.insert("OSD_NEARFULL".to_owned());
    });
    check!(full.plan(), Next::Wait(Wait::Gate { .. }));
}

#[test]
fn record_whose_forecast_stays_unknown_is_withdrawn() {
    for world in [proven(DiskAfter::Wipe), super::emptying::proven()] {
        let blocked = world.with(unknown).saved("blocked");
        check!(blocked.clone().minutes_later(2).plan(), Next::Wait(Wait::Gate { .. }));
        assert_eq!(word(&blocked.clone().minutes_later(3).plan()), Some("withdrawn"));
        let known = blocked.with(|w| {
            w.seen.ceph.emptiable.insert(OSD, Emptiable::Yes { moved_bytes: 0, fullest: None });
        });
        assert_eq!(word(&known.minutes_later(2).plan()), Some("emptying"));
    }
}

#[test]
fn osd_that_a_person_or_rook_holds_is_not_removed() {
    let held = |w: &mut World| {
        w.daemon(OSD).managed_externally = Some("label ceph.rook.io/do-not-reconcile=true".to_owned());
    };
    check!(
        requested(DiskAfter::Wipe).with(held).plan(),
        Next::Finished(s) if s.refused.iter().any(|(osd, why)| *osd == OSD && why.contains("do-not-reconcile"))
    );
    assert_eq!(word(&proven(DiskAfter::Wipe).with(held).plan()), Some("withdrawn"));
    let intended = || emptied(DiskAfter::Wipe).saved("stop").with_flags_set(OSD).fenced(OSD);
    for world in [dropped(DiskAfter::Wipe), emptied(DiskAfter::Wipe), intended()] {
        let weight = world.ledger.records[&OSD].crush.weight;
        let kept = world.with(held);
        check!(kept.clone().plan(), Next::Do(Act::Ceph(CephAct::RestoreWeight { osd: OSD, .. })));
        let restored = kept.with(|w| w.slot(OSD).crush.as_mut().unwrap().weight = weight);
        assert_eq!(word(&restored.plan()), Some("withdrawn"));
    }
    // After the stop the data is given up already.
    check!(
        stopped(DiskAfter::Wipe).with(held).plan(),
        Next::Do(Act::Ceph(CephAct::Destroy { osd: OSD, .. }))
    );
}

/// Requests that both OSDs of the node are removed together.
fn request_all_of_node(w: &mut World) {
    w.policy.select.clear();
    for osd in [OSD, CONFORMING] {
        let request = RemovalRequest::of(w.slot(osd).fsid.unwrap());
        let node = Some(NodeName("h1".to_owned()));
        w.seen.kube.requests.removals.insert(osd, RemovalRequest { node, ..request });
    }
}

#[test]
fn osd_of_a_node_that_is_held_is_not_counted_as_leaving() {
    let of_node = requested(DiskAfter::Wipe).with(request_all_of_node);
    assert_eq!(removable(&of_node), [OSD, CONFORMING].into());
    let held = of_node.with(|w| w.daemon(CONFORMING).managed_externally = Some("label x=y".to_owned()));
    assert_eq!(removable(&held), [OSD].into());
}

/// Checks two OSDs of a node that were quarantined after their stops were reverted, and are retried.
#[test]
fn osds_of_a_node_that_are_retried_together_wait_for_one_another_once() {
    let both = emptied(DiskAfter::Wipe).with(|w| {
        request_all_of_node(w);
        let at = w.seen.at;
        let record = w.record(OSD);
        record.stop_intended_at = Some(at);
        record.strategy = Strategy::Removal(Removal { whole_node: true, ..Removal::default() });
        let one = record.clone();
        let (old, deployment) = (w.slot(CONFORMING).fsid.unwrap(), w.daemon(CONFORMING).uid.clone());
        w.ledger.records.insert(CONFORMING, Record { osd: CONFORMING, old, deployment, ..one });
    });
    let is_queued =
        |world: &World| matches!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::Queued { .. }, .. }));
    assert!(!is_queued(&both), "{:#?}", both.plan());
}

#[test]
fn crush_host_that_ceph_refuses_to_remove_is_left() {
    let last = purged().with(|w| {
        w.seen.kube.daemons.remove(&OSD);
        let host = w.record(OSD).crush.host().unwrap().clone();
        w.seen.ceph.empty_hosts.insert(host);
        w.record(OSD).strategy = Strategy::Removal(Removal { whole_node: true, ..Removal::default() });
    });
    let is_tried =
        |world: &World| matches!(world.plan(), Next::Do(Act::Ceph(CephAct::RemoveHost { osd: OSD, .. })));
    assert!(is_tried(&last) && is_tried(&last.clone().minutes_later(3)));
    let refused = last.with(|w| w.seen.failed.note(Some(OSD), false, None));
    assert!(is_tried(&refused.clone().minutes_later(2)));
    let left = refused.minutes_later(3).saved("host-left");
    check!(left.plan(), Next::Do(Act::Kube(KubeAct::DropRequest { osd: OSD, .. })));
}

/// Checks that a request needs no line in a plan, which has none for OSDs that are removed.
#[test]
fn run_with_an_approved_plan_removes_requested_osds() {
    type Change = fn(&mut World);
    let approved = |w: &mut World| {
        let lines = PlanLines::new(BTreeMap::default(), BTreeSet::default());
        w.policy.approval = Some(Approval { hash: lines.hash(), lines });
    };
    let world = requested(DiskAfter::Wipe).with(approved);
    assert!(world.clone().saved("record").ledger.records[&OSD].is_removal());
    assert_eq!(word(&dropped(DiskAfter::Wipe).with(approved).minutes_later(60).plan()), Some("quarantine"));
    // The other selectors count.
    let others: [Change; 2] =
        [|w| w.policy.select = [FILESTORE].into(), |w| w.policy.skip = [OSD, FILESTORE].into()];
    for other in others {
        check!(world.clone().with(other).plan(), Next::Finished(_));
    }
    // The switch is an approval, too.
    let out = World::new().with(approved).with(|w| {
        (w.policy.removals, w.policy.remove_out) = (true, Some(TimeDelta::minutes(60)));
        let since = w.seen.at - TimeDelta::minutes(61);
        let slot = w.slot(OSD);
        (slot.up, slot.is_in, slot.down_since) = (false, false, Some(since));
    });
    let all = plan::unrequested_removals(out.view());
    assert!(matches!(all.as_slice(), [(OSD, Cause::Out, _)]), "{all:?}");
}

#[test]
fn forecast_is_asked_for_when_no_other_gate_is_shut() {
    type Change = fn(&mut World);
    type Asked = fn(&World) -> BTreeSet<OsdId>;
    let emptiable = |world: &World| {
        plan::questions(&world.policy, &world.ledger, &world.seen).emptiable.into_iter().collect()
    };
    let asked: [(World, Asked); 2] =
        [(proven(DiskAfter::Wipe), removable), (super::emptying::proven(), emptiable)];
    let shut: [Change; 4] = [
        |w| w.seen.ceph.flags = ["norebalance".to_owned()].into(),
        |w| w.seen.ceph.health = ["OSD_NEARFULL".to_owned()].into(),
        |w| w.pg(1).state = states("active+undersized+degraded"),
        |w| w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None }),
    ];
    for (world, of) in asked {
        let unasked = world.with(|w| w.seen.ceph.emptiable.clear());
        assert_eq!(of(&unasked), [OSD].into());
        for change in shut {
            assert_eq!(of(&unasked.clone().with(change)), [].into());
        }
    }
}

/// Checks that a running operator of an older Rook does not keep the forecast from being asked for.
#[test]
fn operator_is_scaled_down_before_the_forecast_is_asked_for() {
    let with_an_old_rook = |w: &mut World| {
        w.policy.scales_operator = true;
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.replicas, operator.pods, operator.generation) = (2, 1, 5);
        w.seen.ceph.emptiable.clear();
    };
    let world = proven(DiskAfter::Wipe).with(with_an_old_rook);
    assert_eq!(removable(&world), [].into());
    assert_eq!(word(&world.plan()), Some("operator-scaled"));
    assert_eq!(word(&super::emptying::proven().with(with_an_old_rook).plan()), Some("operator-scaled"));
}

/// Checks the ways out of the quarantine of an OSD that died in the middle of its removal.
#[test]
fn osd_that_died_in_its_removal_is_removed_by_the_next_run() {
    let down = dropped(DiskAfter::Wipe).down(OSD).reported().saved("blocked").with(heal);
    let dead = down.minutes_later(15).saved("disk-left").minutes_later(1);
    // Data of other OSDs moves for hours.
    let moving = dead.with(|w| w.pg(1).state = states("active+remapped+backfilling")).saved("blocked");
    check!(
        moving.clone().minutes_later(900).plan(),
        Next::Wait(Wait::Gate { reason: Reason::NotClean { .. }, .. })
    );
    // Something else blocks its stop.
    let blocked = moving.with(|w| {
        w.pg(1).state = states("active+clean");
        w.seen.ceph.health.insert("OSD_NEARFULL".to_owned());
    });
    let given_up = blocked.minutes_later(900).saved("not-emptied").cleaned_up(OSD);
    let quarantined = given_up.saved("quarantine").with(|w| w.seen.ceph.health.clear());
    assert_ne!(word(&quarantined.plan()), Some("disk-left"), "once in each run");
    let next_run = quarantined.clone().with(|w| w.policy.run = "another".to_owned()).saved("disk-left");
    let record = &next_run.ledger.records[&OSD];
    assert!(record.quarantine.is_none() && !record.closing);
    // `retry` goes on, too, and does not close the record.
    let retried = quarantined.ledger.retried(OSD, quarantined.seen.at).unwrap();
    assert!(!retried.records[&OSD].closing);
    let goes_on = World { ledger: retried, ..quarantined }.saved("marked-out").saved("emptied");
    let goes_on = goes_on.backed_up(OSD).with(|w| w.seen.ceph.safe_to_destroy = [(OSD, true)].into());
    assert_eq!(word(&goes_on.minutes_later(1).plan()), Some("stop"));
}
