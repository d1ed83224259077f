//! Removal of an OSD that is dead: down and out, with its data on other OSDs; and its id kept for a new disk.

use osd_migrate::domain::ledger::{Quarantine, Strategy};
use osd_migrate::domain::observation::Emptiable;
use osd_migrate::domain::removal::{DiskAfter, Removal, RemovalRequest};

use super::emptying::{emptied, proven, takes_in};
use super::removal::dropped;
use super::*;

/// Returns a world in which the removal of a dead OSD is requested, and its data is on other OSDs.
fn dead(keep_id: bool) -> World {
    World::new().down(OSD).with(|w| {
        w.policy.removals = true;
        w.policy.select = [OSD].into();
        (w.slot(OSD).is_in, w.slot(OSD).reweight) = (false, Weight(0));
        for pg in w.seen.ceph.pgs.values_mut().filter(|pg| pg.up.contains(&OSD)) {
            let free = (0..6).map(OsdId).find(|osd| !pg.up.contains(osd)).unwrap();
            pg.up.remove(&OSD);
            pg.up.insert(free);
            pg.acting = pg.up.clone();
        }
        let epoch = w.seen.ceph.epoch;
        w.seen.ceph.pgs.values_mut().for_each(|pg| pg.reported_epoch = epoch);
        w.seen.ceph.emptiable.insert(OSD, Emptiable::Yes { moved_bytes: 0, fullest: None });
        w.seen.ceph.safe_to_destroy = [(OSD, true)].into();
        let fsid = w.slot(OSD).fsid.unwrap();
        let request = RemovalRequest { keep_id, ..RemovalRequest::of(fsid) };
        w.seen.kube.requests.removals.insert(OSD, request);
    })
}

/// Returns a world in which the dead OSD is about to be stopped.
fn intended(keep_id: bool) -> World {
    let recorded = dead(keep_id).saved("record").minutes_later(2).backed_up(OSD);
    recorded.saved("stop").with_flags_set(OSD).fenced(OSD)
}

/// Returns a world in which the slot of the dead OSD is destroyed.
fn destroyed(keep_id: bool) -> World {
    let stopped = intended(keep_id).with(|w| {
        let id = w.record(OSD).id.clone();
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (0, Some(id));
        w.daemon(OSD).pods.clear();
    });
    stopped.saved("down").slot_destroyed(OSD)
}

#[test]
fn dead_osd_is_recorded_without_an_inspection_of_its_disk() {
    let world = dead(false).saved("record");
    let record = &world.ledger.records[&OSD];
    assert!(record.is_of_dead() && record.evidence.is_none() && record.attempt.number == 0);
    // Statistics are from after the record.
    check!(
        world.clone().backed_up(OSD).plan(),
        Next::Wait(Wait::Emptying { pgs: 0, .. }) | Next::Save { .. }
    );
    let next = intended(false).plan();
    let prepares = matches!(
        next,
        Next::Do(Act::Kube(KubeAct::LimitDrains { .. })) | Next::Save { why: Saving::Pdb, .. }
    );
    let stops = matches!(next, Next::Do(Act::Kube(KubeAct::Stop { osd: OSD, emptied: true, up: false, .. })));
    assert!(prepares || stops, "{next:#?}");
}

#[test]
fn osd_that_is_down_with_data_missing_elsewhere_is_not_removed() {
    let in_still = dead(false).with(|w| w.slot(OSD).is_in = true);
    let lacking = dead(false).pg_state(0, "active+undersized+degraded").with(|w| w.pg(0).degraded = 5);
    let named = dead(false).with(|w| w.pg(0).acting.extend([OSD]));
    for world in [in_still, lacking, named] {
        let next = world.plan();
        let is_record = matches!(&next, Next::Save { why: Saving::Record, .. });
        assert!(!is_record, "{next:#?}");
    }
}

#[test]
fn dead_osd_is_destroyed_and_purged_and_its_disk_is_left() {
    let stopped = intended(false).with(|w| {
        let id = w.record(OSD).id.clone();
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (0, Some(id));
        w.daemon(OSD).pods.clear();
    });
    check!(stopped.saved("down").plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: OSD, .. })));
    let world = destroyed(false);
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::Purge { osd: OSD, .. })));
    let purged = world.slot_gone(OSD);
    check!(purged.plan(), Next::Do(Act::Kube(KubeAct::DropDeployment { osd: OSD, .. })));
    let undeployed = purged.with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
    check!(undeployed.plan(), Next::Do(Act::Kube(KubeAct::DropRequest { osd: OSD, .. })));
    let done = undeployed.with(|w| w.seen.kube.requests.removals.clear());
    let next = done.plan();
    assert!(matches!(next, Next::Do(_) | Next::Save { .. }), "{next:#?}");
}

#[test]
fn id_of_a_dead_osd_is_kept_for_a_new_disk() {
    let world = destroyed(true);
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::DropDeployment { osd: OSD, .. })));
    let undeployed = world.with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
    check!(undeployed.plan(), Next::Do(Act::Kube(KubeAct::DropRequest { osd: OSD, .. })));
}

#[test]
fn fence_and_flags_are_restored_once_after_the_id_is_kept() {
    let mut world = destroyed(true).with(|w| {
        w.seen.kube.daemons.remove(&OSD);
        w.seen.kube.requests.removals.clear();
    });
    let mut acts = Vec::new();
    for _ in 0..12 {
        match world.plan() {
            Next::Save { ledger, why, .. } => {
                acts.push(why.code().to_owned());
                world.ledger = ledger;
                if why == Saving::Removed {
                    break;
                }
            }
            Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { .. })) => {
                acts.push("flags".to_owned());
                (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
            }
            Next::Do(Act::Kube(KubeAct::Unfence { .. })) => {
                acts.push("unfence".to_owned());
                (world.seen.kube.fence, world.seen.kube.fenced_at) = (None, None);
            }
            next => panic!("{next:#?} after {acts:?}"),
        }
    }
    assert_eq!(acts, ["flags", "unfence", "unfenced", "removed"]);
}

#[test]
fn id_of_an_osd_that_is_up_is_not_kept() {
    let world = dead(true).up(OSD).reported().with(|w| w.slot(OSD).is_in = true);
    let Next::Finished(summary) = world.plan() else { panic!("{:#?}", world.plan()) };
    assert!(
        matches!(summary.refused.as_slice(), [(OSD, why)] if why.contains("only an OSD that is dead")),
        "{summary:#?}"
    );
}

#[test]
fn dead_osd_that_comes_up_before_its_stop_is_withdrawn() {
    let revived = intended(false).up(OSD);
    let next = revived.plan();
    check!(next, Next::Save { why: Saving::Withdrawn, .. });
}

#[test]
fn kept_dead_osd_is_withdrawn_when_its_request_is_deleted() {
    let kept = dead(false).saved("record").with(|w| w.seen.kube.requests.removals.clear());
    check!(kept.plan(), Next::Save { why: Saving::Withdrawn, .. });
}

fn lose_its_node(w: &mut World) {
    w.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().ready = false;
}

#[test]
fn dead_osd_whose_pod_does_not_end_is_given_up_for_this_run() {
    let stopped = intended(false).with(|w| {
        let id = w.record(OSD).id.clone();
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (0, Some(id));
    });
    let hangs = stopped.saved("down");
    check!(hangs.clone().minutes_later(14).plan(), Next::Wait(Wait::Down { osd: OSD }));
    let healing = hangs.minutes_later(30).saved("noout-lifted").with(|w| w.slot(OSD).noout = false);
    let given_up = healing.saved("not-emptied");
    check!(given_up.plan(), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
    let started = given_up.with(|w| (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (1, None));
    let unset = started.cleaned_up(OSD).with(|w| w.slot(OSD).noin = false);
    let unfenced = unset.with(|w| w.seen.kube.fence = None).saved("unfenced").saved("closed");
    let Next::Finished(summary) = unfenced.plan() else { panic!("{:#?}", unfenced.plan()) };
    assert!(
        matches!(summary.refused.as_slice(), [(OSD, why)] if why.contains("has not ended for 30 minutes")),
        "{summary:#?}"
    );
}

#[test]
fn dead_osd_on_a_lost_node_holds_up_no_other() {
    let lost = dead(false).with(lose_its_node);
    let ended = lost.clone().saved("skipping").minutes_later(15).plan();
    let Next::Finished(summary) = ended else { panic!("{ended:#?}") };
    assert!(
        matches!(summary.skipped.as_slice(), [(OSD, why)] if why.contains("kubectl delete node h1")),
        "{summary:#?}"
    );
    // Kubernetes has deleted the pod: the node was deleted, or declared out of service.
    let fenced = lost.with(|w| w.daemon(OSD).pods.clear());
    check!(fenced.plan(), Next::Save { why: Saving::Record, .. });
}

#[test]
fn stop_of_a_dead_osd_names_its_lost_node() {
    let stopped = intended(false).with(|w| {
        let id = w.record(OSD).id.clone();
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (0, Some(id));
    });
    check!(stopped.clone().plan(), Next::Wait(Wait::Down { .. }) | Next::Save { .. });
    let is_named =
        |next: &Next| matches!(next, Next::Wait(Wait::Gate { reason: Reason::NodeLost { .. }, .. }));
    let lost = stopped.with(lose_its_node);
    let next = lost.plan();
    let next = if let Next::Save { ledger, .. } = next { World { ledger, ..lost }.plan() } else { next };
    assert!(is_named(&next), "{next:#?}");
}

/// Restores the data of the OSD on other OSDs.
pub(super) fn heal(w: &mut World) {
    for pg in w.seen.ceph.pgs.values_mut() {
        let free: Vec<OsdId> = (0..6).map(OsdId).filter(|osd| *osd != OSD && !pg.up.contains(osd)).collect();
        pg.up.extend(free.into_iter().take(3_usize.saturating_sub(pg.up.len())));
        (pg.acting, pg.state, pg.degraded) = (pg.up.clone(), states("active+clean"), 0);
    }
}

/// Checks that an OSD that dies while it is emptied is removed as a dead one, once its data is elsewhere.
#[test]
fn osd_that_dies_while_it_is_emptied_goes_on_as_a_dead_one() {
    let alive = dead(false).up(OSD).reported().with(|w| w.slot(OSD).is_in = true);
    let proven =
        alive.saved("record").report(OSD, Some(old_content(OSD)), None).saved("proof").backed_up(OSD);
    let dropped = proven.saved("emptying").with(|w| w.slot(OSD).crush.as_mut().unwrap().weight = Weight(0));
    let down = dropped.saved("marked-out").down(OSD).reported();
    check!(down.plan(), Next::Save { why: Saving::Blocked, .. });
    let down = down.saved("blocked").with(heal);
    // It restarts: nothing has changed.
    check!(down.clone().minutes_later(14).plan(), Next::Wait(Wait::NotOurStop { .. }));
    let up = down.clone().minutes_later(1).up(OSD).saved("up");
    assert!(!up.ledger.records[&OSD].is_of_dead());
    let dead = down.minutes_later(15).saved("disk-left");
    assert!(dead.ledger.records[&OSD].is_of_dead());
    check!(dead.minutes_later(1).plan(), Next::Save { why: Saving::Stop, .. });
}

#[test]
fn osd_that_died_while_it_was_emptied_is_removed_once_its_data_is_restored() {
    let dead = dropped(DiskAfter::Wipe).down(OSD).reported().saved("blocked");
    let quarantined = dead.minutes_later(15).saved("quarantine");
    assert_ne!(word(&quarantined.plan()), Some("disk-left"), "its PGs need it");
    let restored = quarantined.with(heal);
    let lost = restored.clone().with(lose_its_node);
    assert_ne!(word(&lost.plan()), Some("disk-left"), "its pod may still run");
    let other = |w: &mut World| {
        w.seen.kube.requests.removals.get_mut(&OSD).unwrap().disk = DiskAfter::Leave;
    };
    let left = restored.clone().with(other).saved("disk-left");
    assert_eq!(left.ledger.records[&OSD].removal().unwrap().disk, DiskAfter::Leave, "the last request");
    let goes_on = restored.saved("disk-left");
    let record = &goes_on.ledger.records[&OSD];
    assert!(record.quarantine.is_none() && record.is_of_dead() && !record.closing);
    assert!(record.crush.weight > Weight(0), "it is restored if the person keeps the OSD");
}

#[test]
fn dead_osd_in_quarantine_is_removed_if_a_person_requests_it() {
    type Change = fn(&mut World);
    let dead = || emptied().down(OSD).saved("blocked").minutes_later(15).saved("quarantine");
    let requested = |world: World| {
        world.with(|w| {
            let request = RemovalRequest::of(w.record(OSD).old);
            w.seen.kube.requests.removals.insert(OSD, request);
            w.policy.removals = true;
        })
    };
    let is_removed = |world: &World| word(&world.plan()) == Some("disk-left");
    assert!(!is_removed(&dead()) && is_removed(&requested(dead())));
    let changes: [Change; 4] = [
        |w| w.policy.removals = false,
        |w| w.slot(OSD).is_in = true,
        |w| w.daemon(OSD).managed_externally = Some("label ceph.rook.io/do-not-reconcile=true".to_owned()),
        |w| drop(w.seen.kube.daemons.remove(&OSD)),
    ];
    for change in changes {
        assert!(!is_removed(&requested(dead()).with(change)), "it stays in quarantine");
    }
    // Without data that a PG needs, it is stopped, and then destroyed.
    let removal = requested(dead()).saved("disk-left");
    assert!(removal.ledger.records[&OSD].is_of_dead());
    assert_eq!(word(&removal.plan()), Some("stop"));
    // It comes up, or the person keeps it: it is not left out.
    let revived = removal.clone().up(OSD);
    assert!(takes_in(&revived.plan()), "{:#?}", revived.plan());
    let kept = removal.with(|w| w.seen.kube.requests.removals.clear());
    let kept = kept.saved("quarantine");
    assert!(takes_in(&kept.clone().up(OSD).plan()));
    // Requested again, it is removed.
    let again = requested(kept.minutes_later(1));
    assert!(!is_removed(&again), "a request without a time is not known to be new");
    assert!(is_removed(&again.with(|w| {
        w.seen.kube.requests.removals.get_mut(&OSD).unwrap().since = Some(w.seen.at);
    })));
}

#[test]
fn osd_with_a_request_is_not_migrated_after_a_retry() {
    let requested = |w: &mut World| {
        let request = RemovalRequest::of(w.record(OSD).old);
        w.seen.kube.requests.removals.insert(OSD, request);
    };
    assert!(matches!(proven().plan(), Next::Save { .. }));
    assert_eq!(word(&proven().with(requested).plan()), Some("withdrawn"));
}

/// Checks the way out for an OSD whose disk failed after its OSD was destroyed.
#[test]
fn destroyed_osd_in_quarantine_is_purged_if_a_person_requests_it() {
    let mut world = World::destroyed(OSD);
    let gone = tombstone(&world.ledger.records[&OSD]);
    for _ in 0..4 {
        world = world.rebuild_ended(OSD, Some(gone.clone()), failed());
    }
    let mut world = world.saved("quarantine");
    world.slot(OSD).noout = false;
    let requested = world.with(|w| {
        let request = RemovalRequest::of(w.record(OSD).old);
        w.seen.kube.requests.removals.insert(OSD, request);
        w.policy.removals = true;
    });
    assert_ne!(word(&requested.plan()), Some("disk-left"), "its PGs lack a replica");
    let healed = requested.with(heal).with(|w| w.slot(OSD).is_in = false);
    check!(healed.clone().saved("disk-left").plan(), Next::Do(Act::Ceph(CephAct::Purge { osd: OSD, .. })));
    // With its id kept, it stays destroyed and out, and its record closes.
    let keeps_id = |w: &mut World| w.seen.kube.requests.removals.get_mut(&OSD).unwrap().keep_id = true;
    let kept = healed.with(keeps_id).saved("disk-left");
    check!(kept.clone().plan(), Next::Do(Act::Kube(KubeAct::DropDeployment { osd: OSD, .. })));
    let dropped = kept.with(|w| {
        w.seen.kube.daemons.remove(&OSD);
        w.seen.kube.requests.removals.clear();
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
        w.seen.kube.fence = None;
    });
    let closing = dropped.saved("unfenced").saved("removed").cleaned_up(OSD);
    assert_eq!(word(&closing.plan()), Some("closed"));
}

/// Checks the way out for an OSD whose disk failed after the new OSD was registered.
#[test]
fn new_osd_that_dies_in_quarantine_is_removed_on_request() {
    let late = World::deployed(OSD).with(|w| {
        let (why, since) = ("its daemon does not start".to_owned(), w.seen.at);
        w.record(OSD).quarantine = Some(Quarantine { why, since });
    });
    let fsid = late.ledger.records[&OSD].new.expect("it was deployed");
    let requested = |fsid| {
        late.clone().with(move |w| {
            w.seen.kube.requests.removals.insert(OSD, RemovalRequest::of(fsid));
            w.policy.removals = true;
            w.seen.ceph.emptiable.insert(OSD, Emptiable::Yes { moved_bytes: 0, fullest: None });
            w.seen.ceph.safe_to_destroy = [(OSD, true)].into();
            (w.slot(OSD).noout, w.slot(OSD).is_in) = (false, false);
            heal(w);
        })
    };
    let of_old = requested(late.ledger.records[&OSD].old);
    assert_ne!(word(&of_old.plan()), Some("disk-left"), "the request is for the OSD that was destroyed");
    let needed = requested(fsid).with(|w| {
        w.seen.ceph.pgs.values_mut().next().unwrap().up.insert(OSD);
    });
    assert_ne!(word(&needed.plan()), Some("disk-left"), "a PG needs it");
    let removal = requested(fsid).saved("disk-left");
    let record = &removal.ledger.records[&OSD];
    assert_eq!((record.old, record.new, record.issued.len()), (fsid, None, 0));
    assert!(record.is_of_dead() && record.quarantine.is_none() && record.down_since.is_none());
    assert_eq!(word(&removal.minutes_later(1).plan()), Some("stop"));
}

#[test]
fn osd_in_quarantine_that_was_removed_by_hand_is_forgotten() {
    let mut quarantined = World::stopped(OSD).slot_gone(OSD).saved("quarantine");
    assert_ne!(word(&quarantined.plan()), Some("purged-externally"), "its Deployment exists");
    quarantined.seen.kube.daemons.remove(&OSD);
    let at_work = quarantined.clone().job(OSD, JobState::Running);
    assert_ne!(word(&at_work.plan()), Some("purged-externally"));
    let closing = quarantined.clone().saved("purged-externally");
    assert!(closing.ledger.records[&OSD].closing && closing.ledger.records[&OSD].quarantine.is_none());
    let with = |strategy, new| {
        quarantined.clone().with(|w| (w.record(OSD).strategy, w.record(OSD).new) = (strategy, new))
    };
    // No OSD was created on the disk: it is not tried again.
    let new = Strategy::New { initial_weight: None, on_file: false };
    assert_ne!(word(&with(new.clone(), None).plan()), Some("purged-externally"));
    let fsid = issued_fsid(OSD, 1);
    assert_eq!(word(&with(new, Some(fsid)).plan()), Some("purged-externally"));
    // A removal goes on.
    let removal = with(Strategy::Removal(Removal::default()), None).saved("purged-externally");
    assert!(!removal.ledger.records[&OSD].closing && removal.ledger.records[&OSD].quarantine.is_none());
}
