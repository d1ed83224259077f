//! The phases up to Stop: Withdrawn, Serving, NotOurStop.

use osd_migrate::domain::next::Summary;

use super::*;

// ---- Unproven: what the image can do

/// Checks a ceph-volume that was killed, or took too long: it is asked again, and the release is not blamed.
#[test]
fn failed_question_about_ceph_volume_has_limited_retries() {
    let failed = |world: World| {
        world.report_with(OSD, |r| {
            let can = &mut r.inspection.as_mut().unwrap().capability;
            (can.raw_osd_id, can.stores) = (false, [].into());
            can.tool_trouble = Some("`ceph-volume` did not respond within 60 s".to_owned());
        })
    };
    let mut world = failed(World::recorded(OSD));
    for _ in 0..2 {
        check!(world.plan(), Next::Save { why: Saving::Attempt { task: NodeTask::Inspect, after: Some(why) }, .. }
            if why.contains("did not respond"));
        world = failed(world.saved("inspect"));
    }
    let last = world.plan();
    let why = quarantine(&last).unwrap();
    assert!(why.contains("did not respond") && !why.contains("does not support"), "{why}");
    world.report_with(OSD, |_| {}).saved("proof");
}

// ---- Withdrawn

#[test]
fn record_of_an_unwanted_osd_is_withdrawn_before_stop() {
    type Change = fn(&mut World);
    let changes: [Change; 6] = [
        |w| w.seen.kube.declaration.confirmed = false,
        |w| w.policy.select = [FILESTORE].into(),
        |w| w.policy.skip = [OSD].into(),
        |w| w.seen.kube.declaration.storage = encrypted(),
        |w| w.daemon(OSD).activates = true,
        |w| w.daemon(OSD).managed_externally = Some("Rook replaces it".to_owned()),
    ];
    for change in changes {
        for world in [World::recorded(OSD), World::proven(OSD), World::intended(OSD)] {
            assert_eq!(word(&world.with(change).plan()), Some("withdrawn"));
        }
    }
}

#[test]
fn osd_that_moved_to_another_node_is_withdrawn_before_stop() {
    for world in [World::proven(OSD), World::intended(OSD)] {
        let moved = world.with(|w| w.daemon(OSD).node = Some(NodeName("h2".to_owned())));
        assert_eq!(word(&moved.plan()), Some("withdrawn"));
    }
}

#[test]
fn recreated_deployment_withdraws_the_record_before_stop() {
    let recreated = |world: World| world.with(|w| w.daemon(OSD).uid = "uid-new".to_owned());
    for world in [World::recorded(OSD), World::proven(OSD).backed_up(OSD), World::intended(OSD)] {
        assert_eq!(word(&recreated(world).plan()), Some("withdrawn"));
    }
    // After Stop it is not asked.
    check!(recreated(World::stopped(OSD)).plan(), Next::Do(Act::Ceph(CephAct::Destroy { .. })));
}

#[test]
fn withdrawn_record_cleans_up_unsets_flags_and_unfences() {
    let unconfirmed = World::intended(OSD).with(|w| w.seen.kube.declaration.confirmed = false);
    let mut world = unconfirmed.saved("withdrawn").cleaned_up(OSD);
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: OSD, noout: true, noin: true })));
    (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    world.seen.kube.fence = None;
    world = world.saved("unfenced").saved("closed");
    assert!(world.ledger.records.is_empty() && world.ledger.run.fence.is_none());
    check!(world.plan(), Next::Finished(s) if s.unconfirmed == [OSD].into());
}

#[test]
fn osd_flags_from_before_the_stop_intent_are_never_unset() {
    let withdraw = |world: World| world.with(|w| w.policy.skip = [OSD].into()).saved("withdrawn");
    // noout was set when the record was created.
    let had = World::new().with(|w| {
        w.policy.select = [OSD].into();
        w.slot(OSD).noout = true;
    });
    let had = had
        .saved("record")
        .report(OSD, Some(old_content(OSD)), None)
        .saved("proof")
        .backed_up(OSD)
        .saved("stop");
    check!(
        withdraw(had.with_flags_set(OSD)).cleaned_up(OSD).plan(),
        Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { noout: false, noin: true, .. }))
    );
    // A person set flags before osd-migrate intended a stop.
    withdraw(World::proven(OSD).with_flags_set(OSD)).cleaned_up(OSD).saved("closed");
}

#[test]
fn osd_flag_set_by_a_person_before_stop_is_saved_as_former() {
    let set = World::proven(OSD).backed_up(OSD).with(|w| {
        w.slot(OSD).noout = true;
        w.slot(OSD).primary_affinity = Weight::from_decimal(0.5);
    });
    let world = set.saved("stop");
    assert_eq!(world.ledger.records[&OSD].former_flags, (true, false));
    assert_eq!(world.ledger.records[&OSD].primary_affinity, Weight::from_decimal(0.5));
    // The intent is saved once more after osd-migrate's own flags were set: that does not make them a
    // person's flags.
    let dropped = world.with_flags_set(OSD).fenced(OSD).with(|w| {
        w.record(OSD).pgs.pop_first();
    });
    let again = dropped.saved("stop");
    assert_eq!(again.ledger.records[&OSD].former_flags, (true, false));
    // The owner unsets the flag: a flag that is set from then on is osd-migrate's.
    let off = again.with(|w| w.slot(OSD).noout = false).saved("stop");
    assert_eq!(off.ledger.records[&OSD].former_flags, (false, false));
}

#[test]
fn committed_osd_ignores_a_withdrawn_confirmation_and_a_skip() {
    for world in committed().into_iter().chain([World::filled(OSD)]) {
        let withdrawn = world.clone().with(|w| {
            w.seen.kube.declaration.confirmed = false;
            w.policy.skip.insert(OSD);
        });
        assert_eq!(withdrawn.plan(), world.plan());
    }
}

#[test]
fn stop_arriving_after_the_withdrawal_is_reverted_first() {
    let world = World::intended(OSD).with(|w| w.policy.skip = [OSD].into()).saved("withdrawn").with(|w| {
        let id = w.record(OSD).id.clone();
        (w.daemon(OSD).replicas, w.daemon(OSD).stopped_by) = (0, Some(id));
    });
    for world in [world.clone(), world.with(|w| w.daemon(OSD).pods.clear()).down(OSD)] {
        check!(world.plan(), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
    }
}

// ---- Serving: towards Stop

#[test]
fn proven_osd_is_backed_up_saved_fenced_flagged_then_stopped() {
    let mut world = World::proven(OSD);
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::BackUp { osd: OSD, deployment, .. })) if deployment == "uid-0");
    world = world.backed_up(OSD).saved("stop");
    let held: BTreeSet<PgId> = (0..8).filter(|n| members(*n).contains(&OSD)).map(pg_id).collect();
    assert_eq!(world.record(OSD).pgs, held);
    world = world.saved("fence");
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Fence { .. })));
    world = world.fenced(OSD);
    check!(
        world.plan(),
        Next::Do(Act::Ceph(CephAct::SetOsdFlags { osd: OSD, up: true, noout: true, noin: true, .. }))
    );
    world = world.with_flags_set(OSD);
    let record = world.record(OSD).id.clone();
    check!(
        world.plan(),
        Next::Do(Act::Kube(KubeAct::Stop { osd: OSD, fsid, record: named, deployment, generation, .. }))
            if *fsid == old(OSD) && *named == record && deployment == "uid-0" && *generation == 1
    );
}

#[test]
fn osd_flag_that_is_already_set_is_not_set_again() {
    let world = World::intended(OSD).with(|w| w.slot(OSD).noin = false);
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::SetOsdFlags { noout: false, noin: true, .. })));
}

#[test]
fn gate_is_checked_again_in_every_iteration_before_stop() {
    type Noted = fn(World) -> World;
    let at_once: Noted = |world| world;
    for (world, noted) in [
        (World::proven(OSD), at_once),
        (World::proven(OSD).backed_up(OSD), at_once),
        // From the intent on, the ledger saves since when the gate is not open.
        (World::intended(OSD), held),
    ] {
        let world = world.down(OsdId(3));
        check!(
            noted(world.clone().reported()).plan(),
            Next::Wait(Wait::Gate { reason: Reason::NotClean { .. }, .. })
        );
        check!(noted(world).plan(), Next::Wait(Wait::Gate { reason: Reason::StatisticsOld { .. }, .. }));
    }
}

#[test]
fn gate_shut_for_three_minutes_after_intent_withdraws_record() {
    let world = held(World::intended(OSD).down(OsdId(3)).reported());
    check!(world.clone().minutes_later(2).plan(), Next::Wait(Wait::Gate { .. }));
    // The gate opens again: the intent is saved once more.
    let open = world.clone().up(OsdId(3)).reported().saved("stop");
    assert_eq!(open.ledger.records[&OSD].blocked_since, None);
    check!(open.plan(), Next::Do(Act::Kube(KubeAct::Stop { .. })));
    // The gate does not open: the OSD is as it was, and Rook has the CephCluster again.
    let world = world.minutes_later(3).saved("withdrawn").cleaned_up(OSD);
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: OSD, noout: true, noin: true })));
    let world = world.with(|w| (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false));
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
}

#[test]
fn osd_whose_data_would_not_fit_again_is_never_stopped() {
    // Usage was small enough when the OSD was recorded, and grew while it waited.
    let world = World::intended(OSD).with(|w| w.slot(OSD).used_bytes = Some(6 * GIB));
    check!(held(world).plan(), Next::Wait(Wait::Gate { reason: Reason::TooSmall { .. }, .. }));
    let unknown = World::intended(OSD).with(|w| {
        w.record(OSD).used_bytes = None;
        w.slot(OSD).used_bytes = None;
    });
    check!(held(unknown).plan(), Next::Wait(Wait::Gate { reason: Reason::UsageUnknown, .. }));
}

#[test]
fn osd_whose_data_grew_before_its_intent_holds_up_no_other_one() {
    let world = World::proven(OSD).with(|w| w.slot(OSD).used_bytes = Some(6 * GIB)).saved("blocked");
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::TooSmall { .. }, .. }));
    assert!(world.minutes_later(3).saved("withdrawn").ledger.records[&OSD].closing);
}

#[test]
fn used_bytes_are_saved_with_the_stop_intent() {
    let world =
        World::proven(OSD).backed_up(OSD).with(|w| w.slot(OSD).used_bytes = Some(2 * GIB)).saved("stop");
    assert_eq!(world.ledger.records[&OSD].used_bytes, Some(2 * GIB));
}

#[test]
fn pgs_that_moved_after_the_intent_are_saved_again_before_stop() {
    let world = World::intended(OSD).with(|w| w.pg(1).up.extend([OSD]));
    assert_eq!(word(&world.plan()), Some("stop"));
}

#[test]
fn fence_is_recorded_before_it_is_set_and_set_again_if_removed() {
    let bare = World::intended(OSD).with(|w| {
        w.ledger.run.fence = None;
        (w.seen.kube.fence, w.seen.kube.fenced_at) = (None, None);
    });
    let recorded = bare.saved("fence");
    check!(recorded.plan(), Next::Do(Act::Kube(KubeAct::Fence { value, .. })) if Some(value) == recorded.ledger.run.fence.as_ref());
    // Every act from Stop to Deploy has the fence as its precondition.
    let removed = |world: World, code: &str| {
        let later = |w: &mut World| {
            (w.seen.kube.fence, w.seen.kube.cluster_version) = (None, "1000".to_owned());
        };
        world.with(later).saved(code)
    };
    let intended = removed(World::intended(OSD), "fence");
    check!(intended.plan(), Next::Do(Act::Kube(KubeAct::Fence { .. })));
    let (stopped, rebuild) = (World::stopped(OSD), World::destroyed(OSD).saved("rebuild"));
    for world in [stopped, rebuild, World::prepared(OSD).saved("new")] {
        check!(removed(world, "fence-gone").plan(), Next::Do(Act::Kube(KubeAct::Fence { .. })));
    }
}

#[test]
fn external_fence_is_never_replaced() {
    let others = |world: World| world.with(|w| w.seen.kube.fence = Some("theirs".to_owned()));
    check!(
        others(World::prepared(OSD).saved("new")).plan(),
        Next::Wait(Wait::Gate { reason: Reason::FencedExternally { .. }, .. })
    );
    check!(
        held(others(World::intended(OSD))).plan(),
        Next::Wait(Wait::Gate { reason: Reason::FencedExternally { .. }, .. })
    );
}

// ---- NotOurStop

#[test]
fn down_osd_that_was_only_recorded_is_withdrawn() {
    let stopped = |world: World| {
        let world = world.with(|w| {
            w.daemon(OSD).replicas = 0;
            w.daemon(OSD).pods.clear();
        });
        world.down(OSD).reported()
    };
    for world in [World::recorded(OSD), World::proven(OSD)] {
        assert!(stopped(world).saved("withdrawn").ledger.records[&OSD].closing);
    }
    // A stop of osd-migrate may still be in transit: the run waits a minute for it.
    let intended = stopped(World::intended(OSD));
    check!(intended.plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
    assert!(intended.minutes_later(1).saved("withdrawn").ledger.records[&OSD].closing);
}

#[test]
fn osd_restarted_by_a_reverted_stop_is_waited_for() {
    let stop_reverted =
        |w: &mut World| w.record(OSD).stop_reverted = Some("a neighbour was nearly full".to_owned());
    let world = World::intended(OSD).with(stop_reverted).down(OSD).reported();
    check!(world.plan(), Next::Wait(Wait::Up { osd: OSD, .. }));
    let stopped = world.with(|w| w.daemon(OSD).replicas = 0);
    check!(stopped.plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
}

#[test]
fn stop_without_our_annotation_is_never_ours() {
    // A person removed the annotation of osd-migrate while the OSD was stopped.
    let world = World::stopped(OSD).with(|w| w.daemon(OSD).stopped_by = None);
    check!(world.plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
}

#[test]
fn stopped_osd_whose_deployment_was_deleted_is_restarted() {
    let world = World::stopped(OSD).with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Restart { osd: OSD, .. })));
}

/// Checks disks without serial numbers: virtio without serial, VMware without enableUUID, KubeVirt.
///
/// Two of such OSDs ended the run before.
#[test]
fn osd_on_a_disk_without_serial_number_is_proven() {
    let world = World::recorded(OSD).report_with(OSD, |report| {
        let device = &mut report.inspection.as_mut().unwrap().evidence.as_mut().unwrap().device;
        (device.by_id, device.serial) = ([].into(), None);
    });
    let mut proven = world.saved("proof");
    assert!(!proven.record(OSD).evidence.as_ref().unwrap().device.is_named());
}

#[test]
fn osd_is_given_up_if_rook_never_acknowledges_the_fence() {
    let hangs = |world: World| {
        world.with(|w| {
            let operator = w.seen.kube.operator.as_mut().unwrap();
            (operator.honours_fence, operator.replicas, operator.pods) = (true, 1, 1);
            (w.policy.confirmed, w.policy.select) = (true, [OSD].into());
            w.seen.kube.declaration.confirmed = false;
            "8".clone_into(&mut w.seen.kube.cluster_version);
            (w.ledger.run.fence_after, w.seen.kube.fenced_at) = (Some(6), Some(7));
        })
    };
    let waits = |world: &World| {
        let next = world.plan();
        let is_it = |reason: &Reason| matches!(reason, Reason::FenceNotAcknowledged { .. });
        assert!(matches!(&next, Next::Wait(Wait::Gate { reason, .. }) if is_it(reason)), "{next:?}");
    };
    let intended = hangs(World::intended(OSD)).with(|w| w.record(OSD).saved_at = Some(w.seen.at));
    waits(&intended.clone().minutes_later(29));
    let given_up = intended.clone().minutes_later(30).saved("withdrawn");
    assert!(given_up.ledger.records[&OSD].closing);
    // The run ends, and names the OSD.
    let ended = given_up.with(|w| {
        w.ledger.records.clear();
        (w.ledger.run.fence, w.seen.kube.fence) = (None, None);
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
    });
    let ended = ended.cleaned_up(OSD);
    let named = |summary: &Summary| matches!(summary.skipped.as_slice(), [(OSD, why)] if why.contains("not acknowledged the fence"));
    check!(ended.plan(), Next::Finished(summary) if named(summary));
    // The next OSD waits for a shorter time.
    let refusals = ended.ledger.run.refusals;
    let next = intended.clone().with(|w| w.ledger.run.refusals = refusals);
    waits(&next.clone().minutes_later(9));
    check!(next.clone().minutes_later(10).plan(), Next::Save { why: Saving::Withdrawn, .. });
    // An acknowledgement shows that Rook works again.
    let skipped = |w: &mut World| w.seen.kube.skipped = Some(8);
    let acknowledged = next.with(skipped).saved("fence-acknowledged").ledger.run.refusals;
    waits(&intended.clone().with(|w| w.ledger.run.refusals = acknowledged).minutes_later(29));
    // Rook had no time while no process ran.
    let began = |w: &mut World| w.policy.at_work_since = Some(w.seen.at);
    waits(&intended.minutes_later(40).with(began).minutes_later(29));
    // If Rook would migrate too, the fence comes before the intent.
    let backed_up = hangs(World::proven(OSD).backed_up(OSD).fenced(OSD))
        .with(|w| w.seen.kube.declaration.confirmed = true)
        .saved("blocked");
    waits(&backed_up.clone().minutes_later(29));
    check!(backed_up.minutes_later(30).plan(), Next::Save { why: Saving::Withdrawn, .. });
}
