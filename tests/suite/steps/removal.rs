//! The removal of an OSD by a request: emptied by its CRUSH weight, stopped, wiped, purged.

use osd_migrate::domain::act::DataPrecondition;
use osd_migrate::domain::inspection::{Inspection, KernelDisk};
use osd_migrate::domain::ledger::Record;
use osd_migrate::domain::observation::{Control, ControlKind, Emptiable};
use osd_migrate::domain::removal::{DiskAfter, Removal, RemovalRequest};

use super::emptying::moved;
use super::*;

/// Returns a world in which the removal of the OSD is requested, and only this OSD is selected.
pub(super) fn requested(disk: DiskAfter) -> World {
    World::new().with(|w| {
        w.policy.removals = true;
        w.policy.select = [OSD].into();
        let request = RemovalRequest { disk, ..RemovalRequest::of(old(OSD)) };
        w.seen.kube.requests.removals.insert(OSD, request);
        w.seen.ceph.emptiable.insert(OSD, Emptiable::Yes { moved_bytes: 0, fullest: None });
    })
}

/// Returns a world in which the OSD's device is proven, and was found as `/dev/sdb`.
pub(super) fn proven(disk: DiskAfter) -> World {
    let kernel = || KernelDisk {
        node: "/dev/sdb".to_owned(),
        device_type: "hdd".to_owned(),
        links: ["/dev/disk/by-id/ata-disk-0".to_owned()].into(),
    };
    let found = requested(disk).saved("record").report_with(OSD, |report| {
        report.inspection.as_mut().unwrap().kernel = Some(kernel());
    });
    found.saved("proof").backed_up(OSD)
}

pub(super) fn set_weight(weight: f64) -> impl Fn(&mut World) {
    move |w| w.slot(OSD).crush.as_mut().unwrap().weight = Weight::from_decimal(weight)
}

/// Returns a world in which the OSD has CRUSH weight 0, and its PGs are still on it.
pub(super) fn dropped(disk: DiskAfter) -> World {
    proven(disk).saved("emptying").with(set_weight(0.0)).saved("marked-out")
}

/// Returns a world in which no PG needs the OSD, and Ceph agrees.
pub(super) fn emptied(disk: DiskAfter) -> World {
    let world = dropped(disk).with(moved).saved("emptied").minutes_later(1);
    world.with(|w| w.seen.ceph.safe_to_destroy = [(OSD, true)].into())
}

pub(super) fn stopped(disk: DiskAfter) -> World {
    let mut world = emptied(disk).saved("stop").with_flags_set(OSD).fenced(OSD);
    let id = world.record(OSD).id.clone();
    let daemon = world.daemon(OSD);
    (daemon.replicas, daemon.stopped_by) = (0, Some(id));
    daemon.pods.clear();
    world.saved("down").down(OSD)
}

fn destroyed(disk: DiskAfter) -> World {
    stopped(disk).slot_destroyed(OSD)
}

/// Ends the agent of the saved wipe, which leaves this content.
fn wiped(world: World, content: Content, problem: Option<NodeProblem>) -> World {
    world.report_with(OSD, |report| {
        let seen: &mut Inspection = report.inspection.as_mut().unwrap();
        (seen.content, seen.evidence) = (content, None);
        report.problem = problem;
    })
}

/// Returns a world in which the id is purged, and only the Deployment and the request are left.
pub(super) fn purged() -> World {
    wiped(destroyed(DiskAfter::Wipe).saved("wipe"), Content::Blank, None).slot_gone(OSD)
}

fn is_purge(next: &Next) -> bool {
    matches!(next, Next::Do(Act::Ceph(CephAct::Purge { osd: OSD, .. })))
}

fn cordoned(w: &mut World) {
    w.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().cordoned = true;
}

fn left(world: &World) -> Option<String> {
    world.ledger.records[&OSD].removal().unwrap().left.clone()
}

#[test]
fn requested_osd_is_recorded_as_a_removal_and_emptied() {
    let world = requested(DiskAfter::Mark).saved("record");
    let record = &world.ledger.records[&OSD];
    assert_eq!(record.removal(), Some(&Removal { disk: DiskAfter::Mark, ..Removal::default() }));
    assert!(record.empty.is_some() && record.old == old(OSD));
    // Another OSD under the id is not removed.
    let void = requested(DiskAfter::Wipe).with(|w| w.slot(OSD).fsid = Some(foreign()));
    let next = void.plan();
    assert!(!matches!(&next, Next::Save { ledger, .. } if ledger.records.values().any(Record::is_removal)));
}

#[test]
fn run_without_removals_neither_removes_nor_migrates_the_osd() {
    let world = requested(DiskAfter::Wipe).with(|w| w.policy.removals = false);
    check!(
        world.plan(),
        Next::Finished(s) if s.refused.iter().any(|(osd, why)| *osd == OSD && why.contains("remove.enabled"))
    );
}

#[test]
fn removal_without_a_place_is_refused_in_this_run_only() {
    let full = |w: &mut World| {
        w.seen.ceph.emptiable.insert(OSD, Emptiable::No("osd.3 would be full".to_owned()));
    };
    let refused = requested(DiskAfter::Wipe).with(full).saved("not-emptied");
    assert!(refused.ledger.records.is_empty());
    check!(refused.plan(), Next::Finished(s) if s.refused.iter().any(|(_, why)| why.contains("would be full")));
    let again = refused.with(|w| {
        w.policy.run = "another".to_owned();
        w.seen.ceph.emptiable.insert(OSD, Emptiable::Yes { moved_bytes: 0, fullest: None });
    });
    assert_eq!(word(&again.plan()), Some("record"));
    // Another client took the space meanwhile.
    let late = proven(DiskAfter::Wipe).with(full).saved("not-emptied");
    assert!(late.ledger.records[&OSD].closing);
}

#[test]
fn proof_of_a_removed_osd_asks_for_its_identity_alone() {
    let unable = |report: &mut osd_migrate::domain::inspection::NodeReport| {
        report.inspection.as_mut().unwrap().capability.raw_osd_id = false;
    };
    let world = requested(DiskAfter::Wipe).saved("record").report_with(OSD, unable);
    assert_eq!(word(&world.plan()), Some("proof"));
    let other = requested(DiskAfter::Wipe).saved("record").report_with(OSD, |report| {
        let proof = &mut report.inspection.as_mut().unwrap().evidence.as_mut().unwrap().proof;
        if let Proof::BluestoreLabel { osd_fsid, .. } = proof {
            *osd_fsid = foreign();
        }
    });
    assert!(quarantine(&other.plan()).is_some_and(|why| why.contains("its device is")), "{:?}", other.plan());
}

#[test]
fn weight_is_saved_before_it_is_dropped_and_again_if_it_changed() {
    let saved = proven(DiskAfter::Wipe).with(set_weight(0.5)).saved("emptying");
    assert_eq!(saved.ledger.records[&OSD].crush.weight, Weight::from_decimal(0.5));
    check!(
        saved.clone().plan(),
        Next::Do(Act::Ceph(CephAct::DropWeight { osd: OSD, weight, .. })) if *weight == Weight::from_decimal(0.5)
    );
    let again = saved.with(set_weight(0.25)).saved("emptying");
    assert_eq!(again.ledger.records[&OSD].crush.weight, Weight::from_decimal(0.25));
    check!(
        again.plan(),
        Next::Do(Act::Ceph(CephAct::DropWeight { weight, .. })) if *weight == Weight::from_decimal(0.25)
    );
}

#[test]
fn weight_is_not_dropped_while_a_gate_is_shut() {
    type Change = fn(&mut World);
    let changes: [Change; 4] = [
        |w| w.seen.ceph.flags = ["norebalance".to_owned()].into(),
        |w| w.seen.ceph.health = ["OSD_NEARFULL".to_owned()].into(),
        |w| w.seen.ceph.emptiable.clear(),
        |w| w.pg(1).state = states("active+undersized+degraded"),
    ];
    for change in changes {
        for world in [proven(DiskAfter::Wipe), proven(DiskAfter::Wipe).saved("emptying")] {
            let next = world.with(change).plan();
            let waits =
                matches!(next, Next::Wait(Wait::Gate { .. }) | Next::Save { why: Saving::Blocked, .. });
            assert!(waits, "{next:#?}");
        }
    }
    // Waiting does not help: the owner must switch it off.
    let resets = proven(DiskAfter::Wipe).with(|w| {
        w.seen.kube.declaration.resets_weights = true;
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.replicas, operator.pods, operator.honours_fence) = (1, 1, true);
    });
    check!(resets.plan(), Next::Save { why: Saving::NotEmptied { .. }, .. });
    // The node of an OSD that is removed may be cordoned already.
    check!(
        proven(DiskAfter::Wipe).saved("emptying").with(cordoned).plan(),
        Next::Do(Act::Ceph(CephAct::DropWeight { .. }))
    );
}

#[test]
fn osd_whose_disk_is_selected_is_removed_only_with_a_mark() {
    let selected = |w: &mut World| w.seen.kube.declaration.storage.selection.all = Some(true);
    for disk in [DiskAfter::Wipe, DiskAfter::Leave] {
        let refused = proven(disk).with(selected).saved("not-emptied");
        assert!(refused.ledger.records[&OSD].closing);
    }
    let marked = proven(DiskAfter::Mark).with(selected).saved("emptying");
    check!(marked.plan(), Next::Do(Act::Ceph(CephAct::DropWeight { .. })));
}

#[test]
fn withdrawn_request_restores_the_weight_and_closes_the_record() {
    type Change = fn(&mut World);
    let changes: [Change; 4] = [
        |w| w.seen.kube.requests.removals.clear(),
        |w| w.seen.kube.requests.removals.get_mut(&OSD).unwrap().disk = DiskAfter::Leave,
        |w| w.policy.removals = false,
        |w| w.seen.kube.control = Some(Control { kind: ControlKind::Cancel, since: None }),
    ];
    for change in changes {
        for world in [dropped(DiskAfter::Wipe), emptied(DiskAfter::Wipe)] {
            let former = world.ledger.records[&OSD].crush.weight;
            let kept = world.with(change);
            check!(
                kept.clone().plan(),
                Next::Do(Act::Ceph(CephAct::RestoreWeight { osd: OSD, weight, .. })) if *weight == former
            );
            let restored = kept.with(|w| w.slot(OSD).crush.as_mut().unwrap().weight = former);
            assert_eq!(word(&restored.plan()), Some("withdrawn"));
        }
        let untouched = proven(DiskAfter::Wipe).with(change);
        assert_eq!(word(&untouched.plan()), Some("withdrawn"));
    }
    // After the stop the data is given up already.
    let late = stopped(DiskAfter::Wipe).with(|w| w.seen.kube.requests.removals.clear());
    check!(late.plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: OSD, .. })));
}

#[test]
fn weight_restored_by_another_client_ends_the_removal_for_this_run() {
    for world in [dropped(DiskAfter::Wipe), emptied(DiskAfter::Wipe)] {
        let given_up = world
            .with(set_weight(0.75))
            .saved("not-emptied")
            .cleaned_up(OSD)
            .minutes_later(1)
            .saved("closed");
        check!(
            given_up.plan(),
            Next::Finished(s) if s.refused.iter().any(|(_, why)| why.contains("restored its CRUSH weight"))
        );
        let again = given_up.with(|w| {
            w.policy.run = "another".to_owned();
            w.seen.ceph.pgs = World::new().seen.ceph.pgs;
        });
        assert_eq!(word(&again.plan()), Some("record"));
    }
}

#[test]
fn weight_that_was_0_before_is_not_restored() {
    let theirs = proven(DiskAfter::Wipe).with(set_weight(0.0)).saved("emptying").saved("marked-out");
    let kept = theirs.with(|w| w.seen.kube.requests.removals.clear());
    assert_eq!(word(&kept.plan()), Some("withdrawn"));
}

#[test]
fn osd_that_does_not_become_empty_is_quarantined_with_its_weight() {
    let quarantined = dropped(DiskAfter::Wipe).minutes_later(60).saved("quarantine");
    check!(quarantined.plan(), Next::Do(Act::Ceph(CephAct::RestoreWeight { osd: OSD, .. })));
}

#[test]
fn empty_osd_is_stopped_on_a_cordoned_node() {
    let world = emptied(DiskAfter::Wipe).with(cordoned).saved("stop").with_flags_set(OSD).fenced(OSD);
    check!(
        world.clone().plan(),
        Next::Do(Act::Kube(KubeAct::LimitDrains { .. } | KubeAct::Stop { emptied: true, .. }))
            | Next::Save { why: Saving::Pdb, .. }
    );
    let needed = emptied(DiskAfter::Wipe).with(|w| w.pg(0).acting.extend([OSD]));
    check!(needed.plan(), Next::Wait(Wait::Emptying { .. }) | Next::Save { .. });
}

#[test]
fn empty_osd_is_destroyed_only_by_fresh_statistics() {
    check!(
        stopped(DiskAfter::Wipe).plan(),
        Next::Do(Act::Ceph(CephAct::Destroy {
            precondition: Some(DataPrecondition::NoneMissing { .. }),
            ..
        }))
    );
    // A partner went down, and its PGs have not reported that.
    let partner = OsdId(5);
    let stale = stopped(DiskAfter::Wipe).down(partner);
    assert!(stale.seen.ceph.pgs.values().any(|pg| pg.acting.contains(&partner)));
    check!(stale.plan(), Next::Wait(Wait::Gate { reason: Reason::StatisticsOld { .. }, .. }));
    let weighed = stopped(DiskAfter::Wipe).with(set_weight(0.75));
    assert_eq!(word(&weighed.plan()), Some("revert-stop"));
}

#[test]
fn disk_of_a_destroyed_osd_is_wiped_and_then_its_id_is_purged() {
    let saved = destroyed(DiskAfter::Wipe).saved("wipe");
    assert_eq!(agent(&saved), NodeTask::Wipe);
    assert!(is_purge(&wiped(saved.clone(), Content::Blank, None).plan()));
    // Killed after the tombstone: wiped again.
    let stone = tombstone(&saved.ledger.records[&OSD]);
    let killed = wiped(saved, stone, failed());
    assert_eq!(word(&killed.plan()), Some("wipe"));
    let marked = destroyed(DiskAfter::Mark).saved("wipe");
    check!(
        marked.clone().plan(),
        Next::Do(Act::Node(NodeAct::Agent { request, .. })) if request.after == Some(DiskAfter::Mark)
    );
    let table = Content::Other { what: "an empty partition table".to_owned() };
    assert!(is_purge(&wiped(marked, table, None).plan()));
    assert!(is_purge(&destroyed(DiskAfter::Leave).plan()), "it is left as it is");
}

#[test]
fn disk_that_cannot_be_wiped_is_left_and_the_id_is_purged() {
    let mut failing = destroyed(DiskAfter::Wipe);
    for _ in 0..4 {
        let content = old_content(OSD);
        failing = wiped(failing.saved("wipe"), content, failed());
    }
    let given_up = failing.saved("disk-left");
    assert_eq!(left(&given_up).as_deref(), Some("no luck"));
    assert!(is_purge(&given_up.plan()));
    let other = Content::Other { what: "a signature of ext4".to_owned() };
    let foreign = wiped(destroyed(DiskAfter::Wipe).saved("wipe"), other, refused()).saved("disk-left");
    assert!(left(&foreign).is_some_and(|why| why.contains("ext4")));
    assert!(is_purge(&foreign.plan()));
}

#[test]
fn disk_behind_a_shut_gate_is_left_after_10_minutes() {
    let away = |w: &mut World| {
        w.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().ready = false;
    };
    let blocked = destroyed(DiskAfter::Wipe).with(away).saved("wipe-blocked");
    check!(blocked.clone().minutes_later(9).plan(), Next::Wait(Wait::Gate { .. }));
    let given_up = blocked.clone().minutes_later(10).saved("disk-left");
    assert!(left(&given_up).is_some_and(|why| why.contains("h1")));
    assert!(is_purge(&given_up.plan()));
    let back = blocked.with(|w| w.seen.kube.nodes.values_mut().for_each(|node| node.ready = true));
    assert_eq!(word(&back.plan()), Some("wipe"));
}

#[test]
fn removed_osd_leaves_no_deployment_request_or_fence() {
    let world = purged();
    check!(world.clone().plan(), Next::Do(Act::Kube(KubeAct::DropDeployment { osd: OSD, .. })));
    let world = world.with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
    check!(
        world.clone().plan(),
        Next::Do(Act::Kube(KubeAct::DropRequest { osd: OSD, fsid })) if *fsid == old(OSD)
    );
    let world = world.with(|w| w.seen.kube.requests.removals.clear());
    check!(world.clone().plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    // The fence is not set again, although no OSD is up under the id.
    let end = world.with(|w| w.seen.kube.fence = None).saved("unfenced").saved("removed");
    let end = end.cleaned_up(OSD).saved("closed");
    assert!(end.ledger.records.is_empty());
    check!(end.plan(), Next::Finished(_));
}

#[test]
fn removal_whose_stop_is_reverted_keeps_the_intent_of_its_weight() {
    let reverted = stopped(DiskAfter::Wipe).with(|w| {
        let daemon = w.daemon(OSD);
        (daemon.replicas, daemon.stopped_by) = (1, None);
    });
    let up = reverted.up(OSD).saved("up");
    assert!(up.ledger.records[&OSD].empty.as_ref().unwrap().is_intended());
}

#[test]
fn request_for_the_next_osd_under_the_id_stays() {
    let world = purged().with(|w| {
        w.seen.kube.daemons.remove(&OSD);
        w.seen.kube.requests.removals.get_mut(&OSD).unwrap().fsid = foreign();
    });
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
}

#[test]
fn deployment_that_another_client_changed_is_not_deleted() {
    type Change = fn(&mut World);
    let changes: [Change; 2] = [|w| w.daemon(OSD).stopped_by = None, |w| w.daemon(OSD).replicas = 1];
    for change in changes {
        let next = purged().with(change).plan();
        assert!(quarantine(&next).is_some_and(|why| why.contains("delete deployment")), "{next:#?}");
    }
    let ends = purged().with(|w| w.daemon(OSD).pods = World::new().daemon(OSD).pods.clone());
    check!(ends.plan(), Next::Wait(Wait::Down { osd: OSD }));
}
