//! External changes meanwhile: Registered, Purged, Gone, Unplaced, Misplaced, Undone, Unauthed.

use osd_migrate::domain::observation::Slot;

use super::*;

// ---- Registered, Purged, Gone, Unplaced, Misplaced, Undone, Unauthed

#[test]
fn slot_registered_for_an_unfinished_osd_is_destroyed_again() {
    let fsid = issued_fsid(OSD, 1);
    for content in [
        label(fsid, OSD, false),
        tombstone(&World::destroyed(OSD).ledger.records[&OSD]),
        // Finished, but with an fsid that was issued earlier.
        label(issued_fsid(OSD, 2), OSD, true),
    ] {
        let world = World::destroyed(OSD)
            .rebuild_ended(OSD, Some(content.clone()), failed())
            .report_issued(OSD, [fsid, issued_fsid(OSD, 2)])
            .slot_registered(OSD, fsid);
        check!(world.plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: OSD, fsid: named, .. })) if *named == fsid);
    }
}

#[test]
fn osd_that_booted_once_is_never_destroyed_for_its_label() {
    let fsid = issued_fsid(OSD, 1);
    let world = World::destroyed(OSD)
        .rebuild_ended(OSD, Some(label(fsid, OSD, false)), failed())
        .slot_registered(OSD, fsid)
        .with(|w| w.slot(OSD).state = SlotState::Exists);
    assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
}

#[test]
fn purged_id_is_reregistered_with_the_issued_fsid_on_disk() {
    let world = World::destroyed(OSD)
        .rebuild_ended(OSD, Some(label(issued_fsid(OSD, 1), OSD, true)), None)
        .report_issued(OSD, [issued_fsid(OSD, 1), issued_fsid(OSD, 2)])
        .slot_gone(OSD);
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::Reregister { osd: OSD, issued: named })) if *named == issued_fsid(OSD, 1));
}

#[test]
fn osd_purged_after_its_stop_is_quarantined() {
    let destroyed = World::destroyed(OSD).slot_gone(OSD).plan();
    let inspects =
        matches!(&destroyed, Next::Save { why: Saving::Attempt { task: NodeTask::Inspect, .. }, .. });
    assert!(inspects || quarantine(&destroyed).is_some(), "{destroyed:#?}");
    let stopped = World::stopped(OSD).slot_gone(OSD);
    let next = stopped.plan();
    let why = quarantine(&next).expect("a person purged it");
    assert!(why.contains(&format!("ceph osd new {} ", stopped.ledger.records[&OSD].old)), "{why}");
    assert!(why.ends_with("kubectl -n NAMESPACE delete deployment rook-ceph-osd-0"), "{why}");
    // The commands in the message were run: the slot is destroyed again, and its place in CRUSH is gone.
    let typed = World::destroyed(OSD).with(|w| w.slot(OSD).crush = None);
    check!(typed.plan(), Next::Do(Act::Ceph(CephAct::RestoreCrush { osd: OSD, .. })));
}

#[test]
fn osd_purged_before_its_stop_is_reported_and_forgotten() {
    let purged = |world: World| world.with(|w| w.daemon(OSD).pods.clear()).slot_gone(OSD).reported();
    for world in [World::recorded(OSD), World::proven(OSD), World::proven(OSD).backed_up(OSD)] {
        let mut world = purged(world).saved("purged-externally");
        while matches!(world.plan(), Next::Do(Act::Kube(KubeAct::CleanUp { .. }))) {
            world.seen.kube.backups.clear();
            world.seen.kube.node_jobs.clear();
            world.seen.kube.reports.clear();
        }
        world = world.saved("closed");
        check!(world.plan(), Next::Finished(_));
    }
    // An agent that is still inspecting is waited for.
    let busy = purged(World::recorded(OSD).job(OSD, JobState::Running));
    check!(busy.plan(), Next::Wait(Wait::Agent { .. }));
    // From the intent of a stop on, osd-migrate may have stopped the OSD.
    assert!(quarantine(&purged(World::intended(OSD)).saved("down").plan()).is_some());
}

#[test]
fn lost_crush_item_is_restored_as_recorded() {
    // An OSD that never booted is destroyed first: restoring its reweight would remove the mark `new`.
    let world = World::prepared(OSD).with(|w| w.slot(OSD).crush = None);
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: OSD, .. })));
    let mut world = World::destroyed(OSD).with(|w| w.slot(OSD).crush = None);
    let record = world.record(OSD).clone();
    check!(
        world.plan(),
        Next::Do(Act::Ceph(CephAct::RestoreCrush { osd: OSD, item, former: None, reweight, primary_affinity }))
            if *item == record.crush && *reweight == record.reweight && *primary_affinity == record.primary_affinity
    );
}

/// Checks the flags after a purge, which removes the per-OSD flags; a first boot without noin resets the
/// reweight.
#[test]
fn lost_osd_flags_are_set_again_before_the_daemon_starts() {
    let world = World::prepared(OSD).saved("new").with(|w| {
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
    });
    check!(
        world.plan(),
        Next::Do(Act::Ceph(CephAct::SetOsdFlags { osd: OSD, up: false, noout: true, noin: true, .. }))
    );
}

#[test]
fn misplaced_id_is_purged_and_its_disk_rebuilt() {
    let misplaced = OsdId(6);
    let fsid = issued_fsid(OSD, 1);
    let finished_under_another_id =
        || World::destroyed(OSD).rebuild_ended(OSD, Some(label(fsid, misplaced, true)), failed());
    let slot = |w: &mut World| {
        let mut slot = w.seen.ceph.slots[&OSD].clone();
        (slot.state, slot.fsid, slot.up) = (SlotState::New, Some(fsid), false);
        w.seen.ceph.slots.insert(misplaced, slot);
    };
    check!(finished_under_another_id().with(slot).plan(), Next::Do(Act::Ceph(CephAct::PurgeMisplaced { misplaced: id, fsid: named })) if *id == misplaced && *named == fsid);
    assert_eq!(word(&finished_under_another_id().plan()), Some("rebuild"), "it is gone already");
    for change in [
        (|w: &mut World, s| w.slot(s).state = SlotState::Exists) as fn(&mut World, OsdId),
        |w, s| w.slot(s).up = true,
        |w, s| w.slot(s).fsid = Some(foreign()),
        |w, s| w.slot(s).state = SlotState::Destroyed,
    ] {
        let world = without_noout(finished_under_another_id().with(slot)).with(|w| change(w, misplaced));
        check!(world.plan(), Next::Halt(Halt::MisplacedInUse { osd: OSD, misplaced: id }) if *id == misplaced);
    }
}

#[test]
fn misplaced_id_not_on_the_disk_is_purged_before_the_retry() {
    let (misplaced, fsid) = (OsdId(6), issued_fsid(OSD, 1));
    let world = |change: fn(&mut Slot)| {
        let mut world = World::destroyed(OSD);
        let stone = tombstone(&world.ledger.records[&OSD]);
        let mut slot = world.seen.ceph.slots[&OSD].clone();
        (slot.state, slot.fsid, slot.up, slot.up_from) = (SlotState::New, Some(fsid), false, Epoch(0));
        change(&mut slot);
        world.seen.ceph.slots.insert(misplaced, slot);
        world.rebuild_ended(OSD, Some(stone), failed()).report_issued(OSD, [fsid])
    };
    check!(world(|_| {}).plan(), Next::Do(Act::Ceph(CephAct::PurgeMisplaced { misplaced: id, fsid: named })) if *id == misplaced && *named == fsid);
    for change in [
        (|slot| slot.up = true) as fn(&mut Slot),
        |slot| slot.up_from = Epoch(1),
        |slot| slot.state = SlotState::Exists,
        |slot| slot.fsid = Some(foreign()),
    ] {
        assert_eq!(word(&world(change).plan()), Some("rebuild"), "it is not ours to purge");
    }
}

#[test]
fn destroyed_slot_of_a_finished_osd_is_restored_without_a_wipe() {
    let again_down = World::booted(OSD).down(OSD).slot_destroyed(OSD).saved("down");
    for world in [World::prepared(OSD), World::deployed(OSD), again_down] {
        let world = world.slot_destroyed(OSD).saved("restore-slot");
        assert_eq!(agent(&world), NodeTask::RestoreSlot);
    }
}

#[test]
fn finished_osd_without_auth_key_has_its_slot_destroyed() {
    let world = World::prepared(OSD).with(|w| w.seen.ceph.auth.extend([(OSD, false)]));
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::Destroy { osd: OSD, fsid, .. })) if *fsid == issued_fsid(OSD, 1));
}

#[test]
fn auth_key_that_was_not_queried_is_not_missing() {
    for world in [World::prepared(OSD), World::deployed(OSD)] {
        let world = world.with(|w| w.seen.ceph.auth.clear());
        check!(world.plan(), Next::Wait(Wait::FreshView));
    }
}

/// Checks a disk that got external content after the agent had wiped it.
#[test]
fn disk_zapped_by_a_person_is_rebuilt_as_the_message_says() {
    let inspected = |content: Content, issued: BTreeSet<OsdFsid>| {
        World::destroyed(OSD).rebuild_ended(OSD, Some(content), failed()).report_issued(OSD, issued)
    };
    let luks = || Content::Other { what: "a signature of crypto_LUKS".to_owned() };
    let alone = |world: World| {
        let world = world.with(|w| w.record(OSD).attempt.failures = 3);
        quarantine(&world.plan()).unwrap().to_owned()
    };
    let why = alone(inspected(luks(), [issued_fsid(OSD, 1)].into()));
    assert!(
        why.contains("on node h1 in Ceph's image: ceph-volume lvm zap /dev/disk/by-id/ata-disk-0"),
        "{why}"
    );
    let zapped = inspected(Content::Blank, [issued_fsid(OSD, 1)].into());
    assert_eq!(word(&zapped.plan()), Some("rebuild"));
    // Without an issued fsid nothing shows that the old data is gone, though the disk is blank.
    assert!(!alone(inspected(luks(), BTreeSet::new())).contains("zap"));
    assert_ne!(word(&inspected(Content::Blank, BTreeSet::new()).plan()), Some("rebuild"));
}
