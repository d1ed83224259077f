//! Alongside a running Rook that can be fenced.

use osd_migrate::domain::policy::DeploymentBy;
use osd_migrate::domain::storage::Storage;
use osd_migrate::report::Event;

use super::*;

/// Lets Rook run and honour a fence; `skipped` is the version of the CephCluster that it reported as skipped.
pub(super) fn auxiliary(world: World, skipped: Option<u64>) -> World {
    world.with(|w| {
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.honours_fence, operator.replicas, operator.pods) = (true, 1, 1);
        w.seen.kube.declaration.confirmed = false;
        w.policy.confirmed = true;
        "8".clone_into(&mut w.seen.kube.cluster_version);
        w.seen.kube.skipped = skipped;
    })
}

fn is_not_acknowledged(next: &Next) -> bool {
    matches!(next, Next::Wait(Wait::Gate { reason: Reason::FenceNotAcknowledged { .. }, .. }))
}

#[test]
fn fence_counts_only_after_rook_acknowledged_a_later_version() {
    let put_on_7 =
        |world: World| world.with(|w| (w.ledger.run.fence_after, w.seen.kube.fenced_at) = (Some(6), Some(7)));
    let prepared = || World::prepared(OSD).fenced(OSD).saved("new");
    for world in [World::intended(OSD), World::stopped(OSD).fenced(OSD), prepared()] {
        for skipped in [None, Some(6), Some(7)] {
            let next = auxiliary(put_on_7(world.clone()), skipped).plan();
            assert!(is_not_acknowledged(&next), "{skipped:?}: {next:?}");
        }
        let acknowledged = auxiliary(put_on_7(world), Some(8));
        check!(acknowledged.plan(), Next::Save { why: Saving::FenceAcknowledged, ledger, .. } if ledger.run.fence_acknowledged);
        // From then on events may be forgotten.
        let act = acknowledged.saved("fence-acknowledged").with(|w| w.seen.kube.skipped = None).plan();
        check!(
            act,
            Next::Do(
                Act::Kube(KubeAct::Stop { .. } | KubeAct::Deploy(_)) | Act::Ceph(CephAct::Destroy { .. })
            )
        );
    }
}

#[test]
fn removed_fence_is_set_and_acknowledged_again() {
    let acknowledged = |w: &mut World| {
        (w.ledger.run.fence_after, w.ledger.run.fence_acknowledged) = (Some(7), true);
        w.seen.kube.fence = None;
    };
    let bare = auxiliary(World::intended(OSD).with(acknowledged), Some(8));
    let saved = bare.saved("fence");
    assert_eq!((saved.ledger.run.fence_after, saved.ledger.run.fence_acknowledged), (Some(8), false));
    check!(saved.plan(), Next::Do(Act::Kube(KubeAct::Fence { .. })));
    // Rook writes the CephCluster each minute, and an iteration may take longer: the fence is set all the
    // same (ADR 0024).
    let later = saved.with(|w| w.seen.kube.cluster_version = "9".to_owned());
    check!(later.clone().plan(), Next::Do(Act::Kube(KubeAct::Fence { .. })));
    // It was set on version 9, and a person removed the label before Rook acknowledged it: another runner may
    // have seen the acknowledgement, and must not save it.
    let removed = later.with(|w| {
        w.seen.kube.cluster_version = "11".to_owned();
        w.seen.kube.fenced_at = Some(9);
    });
    assert_eq!(removed.saved("fence").ledger.run.fence_after, Some(11));
}

#[test]
fn fence_label_without_a_current_version_is_set_again() {
    let up = auxiliary(World::intended(OSD), Some(9));
    let of = |fenced_at| {
        up.clone().with(|w| (w.ledger.run.fence_after, w.seen.kube.fenced_at) = (Some(7), fenced_at))
    };
    // A person removed the annotation, or set the label again by hand: an older annotation was written for an
    // earlier fence.
    for fenced_at in [None, Some(6)] {
        check!(of(fenced_at).plan(), Next::Do(Act::Kube(KubeAct::Fence { .. })));
    }
    check!(of(Some(8)).plan(), Next::Save { why: Saving::FenceAcknowledged, .. });
    // Once the fence is acknowledged, nothing more is required of it.
    let acknowledged = of(None).with(|w| w.ledger.run.fence_acknowledged = true);
    check!(acknowledged.plan(), Next::Do(Act::Kube(KubeAct::Stop { .. })));
}

/// An OSD that conforms.
const ON_RAW: OsdId = OsdId(5);

/// Lets the CephCluster confirm to both.
fn both_confirmed(world: World) -> World {
    auxiliary(world, None).with(|w| {
        w.seen.kube.declaration.confirmed = true;
        w.policy.confirmed = false;
        w.ledger.run.fence_acknowledged = true;
    })
}

#[test]
fn fence_stays_for_backfill_and_next_osd_if_rook_is_confirmed() {
    let up = |w: World| w.with(|w| (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false));
    let is_unfence = |next: &Next| matches!(next, Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    let booted = up(World::booted(OSD).fenced(OSD));
    assert!(is_unfence(&auxiliary(booted.clone(), None).plan()));
    assert!(!is_unfence(&both_confirmed(booted).plan()));
    // The fence is set before the stop is intended.
    let backups = World::proven(OSD).backed_up(OSD);
    check!(auxiliary(backups.clone(), None).plan(), Next::Save { why: Saving::Stop, .. });
    check!(both_confirmed(backups).plan(), Next::Save { why: Saving::Fence, .. });
    // Its record is closed, and the next one has the same fence.
    let fenced = both_confirmed(World::recorded(OSD).fenced(OSD).with(|w| w.ledger.records.clear()));
    check!(fenced.plan(), Next::Save { why: Saving::Record, ledger, .. } if ledger.run.fence == fenced.ledger.run.fence);
}

#[test]
fn fence_stays_at_the_end_only_while_rook_would_migrate() {
    let ended = |w: World| {
        both_confirmed(w.with(|w| {
            (w.ledger.run.fence, w.seen.kube.fence) =
                (Some("osd-migrate-x".to_owned()), Some("osd-migrate-x".to_owned()));
            w.policy.skip = w.seen.ceph.slots.keys().copied().collect();
            // No OSD conforms to that.
            w.seen.kube.declaration.storage = encrypted();
        }))
    };
    let done = ended(World::new()).plan();
    let Next::Finished(summary) = &done else { panic!("{done:?}") };
    assert!(!summary.withheld_from_rook.is_empty());
    let said = Event::Finished(summary).to_string();
    assert!(said.contains("kept from reconciling") && said.contains("Remove the confirmation"), "{said}");
    // Nothing is left for Rook; or the confirmation was removed; or osd-migrate is being uninstalled.
    let cases: [fn(&mut World); 3] = [
        |w| w.seen.kube.declaration.storage = Storage::default(),
        |w| (w.seen.kube.declaration.confirmed, w.policy.confirmed) = (false, true),
        |w| w.policy.leaves = true,
    ];
    for change in cases {
        check!(ended(World::new()).with(change).plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    }
    // The OSD conforms, but not to Rook: Rook wants each encrypted OSD that is on no PVC to be plain.
    let encrypted_one = |w: &mut World| {
        w.seen.kube.declaration.storage = Storage::default();
        w.slot(ON_RAW).dmcrypt_key = true;
        w.slot(ON_RAW).metadata.as_mut().unwrap().device_mapper = true;
        w.daemon(ON_RAW).mode = Some(Mode::Lvm);
    };
    let only_that = ended(World::new()).with(encrypted_one).plan();
    check!(only_that, Next::Finished(summary) if summary.withheld_from_rook == [ON_RAW].into());
    // By its label the OSD is encrypted to Rook, though its disk is plain as declared.
    let by_label = ended(World::new()).with(|w| {
        w.seen.kube.declaration.storage = Storage::default();
        w.daemon(ON_RAW).encrypted_to_rook = true;
    });
    check!(by_label.plan(), Next::Finished(summary) if summary.withheld_from_rook == [ON_RAW].into());
}

#[test]
fn operator_scale_up_hint_puts_confirmation_removal_first() {
    let said = |change: fn(&mut World)| {
        let world = World::new().with(|w| {
            w.policy.skip = w.seen.ceph.slots.keys().copied().collect();
            w.seen.kube.declaration.confirmed = true;
            w.daemon(ON_RAW).encrypted_to_rook = true;
        });
        let end = world.with(change).plan();
        let Next::Finished(summary) = &end else { panic!("{end:?}") };
        Event::Finished(summary).to_string()
    };
    let end = "kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=1";
    let text = said(|_| {});
    let (first, then) = (text.find("Remove the confirmation first"), text.find(end));
    assert!(first.is_some() && first < then && text.contains("osd.5"), "{text}");
    let harmless: [fn(&mut World); 2] = [
        |w| (w.seen.kube.declaration.confirmed, w.policy.confirmed) = (false, true),
        |w| w.daemon(ON_RAW).encrypted_to_rook = false,
    ];
    for change in harmless {
        let text = said(change);
        assert!(text.contains(end) && !text.contains("confirmation"), "{text}");
    }
}

#[test]
fn new_osds_are_left_to_a_running_rook() {
    let select = |w: &mut World| {
        w.policy.skip = [BY_HAND, FILESTORE].into();
        w.seen.kube.declaration.storage.all_nodes = true;
        w.seen.kube.declaration.storage.selection.all = Some(true);
    };
    let done = auxiliary(World::new().with(select), None);
    check!(done.plan(), Next::Finished(summary) if !summary.left_to_rook.is_empty());
    // An owner who asks only for new OSDs wants osd-migrate's.
    let only_new = done.with(|w| w.policy.only_new = true);
    check!(only_new.plan(), Next::Save { why: Saving::Node { .. }, .. });
}

/// Returns a world with a recreated OSD whose Deployment a running Rook is to create.
///
/// The OSD's fsid is saved, and Rook has acknowledged the fence.
fn left_to_rook() -> World {
    auxiliary(World::prepared(OSD).fenced(OSD).backed_up(OSD).saved("new"), None).with(|w| {
        w.policy.deployment_by = DeploymentBy::ByRook;
        w.seen.kube.declaration.storage.all_nodes = true;
        w.ledger.run.fence_acknowledged = true;
    })
}

fn renders(world: &World) -> bool {
    matches!(world.plan(), Next::Do(Act::Kube(KubeAct::Deploy(_))))
}

#[test]
fn rook_deploys_after_old_deployment_and_fence_are_gone() {
    let handed = left_to_rook().saved("left-to-rook");
    assert_eq!(handed.ledger.records[&OSD].left_to_rook_since, Some(handed.seen.at));
    let (uid, version) =
        (handed.seen.kube.daemons[&OSD].uid.clone(), handed.seen.kube.daemons[&OSD].generation);
    check!(
        handed.plan(),
        Next::Do(Act::Kube(KubeAct::DropDeployment { osd: OSD, deployment, generation, .. }))
            if *deployment == uid && *generation == version
    );
    let gone = handed.with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
    check!(gone.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    let unfenced = gone.with(|w| w.seen.kube.fence = None).saved("unfenced");
    check!(unfenced.plan(), Next::Wait(Wait::RookDeploys { osd: OSD, .. }));
    // A Deployment that Rook created: the run waits for it as for its own.
    let theirs = unfenced.with(|w| {
        let created = World::deployed(OSD).seen.kube.daemons.remove(&OSD).unwrap();
        w.seen.kube.daemons.insert(OSD, created);
    });
    check!(theirs.plan(), Next::Wait(Wait::Up { osd: OSD, .. }));
}

#[test]
fn deployment_missing_after_ten_minutes_is_rendered_fenced() {
    let waits = left_to_rook().saved("left-to-rook").with(|w| {
        w.seen.kube.daemons.remove(&OSD);
        (w.ledger.run.fence, w.seen.kube.fence) = (None, None);
    });
    let waits_on = |minutes| waits.clone().minutes_later(minutes);
    check!(waits_on(9).plan(), Next::Wait(Wait::RookDeploys { .. }));
    check!(waits_on(10).plan(), Next::Save { why: Saving::Fence, .. });
    let fenced = waits_on(10).with(|w| {
        (w.ledger.run.fence, w.seen.kube.fence) = (Some("x".to_owned()), Some("x".to_owned()));
    });
    assert!(renders(&fenced), "{:?}", fenced.plan());
}

#[test]
fn deployment_is_rendered_unless_rook_can_create_it_safely() {
    let cases: [fn(&mut World); 7] = [
        |w| w.policy.deployment_by = DeploymentBy::Rendered,
        |w| w.seen.kube.operator.as_mut().unwrap().honours_fence = false,
        |w| {
            let operator = w.seen.kube.operator.as_mut().unwrap();
            (operator.replicas, operator.pods) = (0, 0);
        },
        // Rook would start a migration of its own.
        |w| w.seen.kube.declaration.confirmed = true,
        |w| w.seen.kube.declaration.storage.all_nodes = false,
        // Another client changes the Deployment.
        |w| w.daemon(OSD).replicas = 1,
        |w| w.daemon(OSD).stopped_by = None,
    ];
    for (n, change) in cases.into_iter().enumerate() {
        let world = left_to_rook().with(change);
        assert!(renders(&world), "{n}: {:?}", world.plan());
        // Also once the old Deployment is gone.
        let gone = left_to_rook()
            .saved("left-to-rook")
            .with(change)
            .with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
        assert!(n > 4 || renders(&gone), "{n}: {:?}", gone.plan());
    }
}

/// Checks the case seen with 1.20.6: `mkfs` was blocked for minutes, and Rook reconciled freely until the
/// agent had ended.
#[test]
fn fence_removed_while_an_agent_rebuilds_is_set_again() {
    let busy =
        auxiliary(World::destroyed(OSD).fenced(OSD).with_flags_set(OSD).job(OSD, JobState::Running), Some(9))
            .with(|w| {
                w.ledger.run.fence_acknowledged = true;
            });
    check!(busy.plan(), Next::Wait(Wait::Agent { .. }));
    let bare = busy.with(|w| w.seen.kube.fence = None);
    check!(bare.plan(), Next::Save { why: Saving::FenceGone, .. });
    let event = Event::Saved { osd: Some(OSD), why: &Saving::FenceGone, ledger: &bare.ledger };
    assert!(!event.is_detail() && event.to_string().contains("do-not-reconcile"), "{event}");
    let saved = bare.saved("fence-gone");
    check!(saved.plan(), Next::Do(Act::Kube(KubeAct::Fence { .. })));
    // With the fence in force again, the run waits for the agent.
    let again = saved.with(|w| {
        w.seen.kube.fence.clone_from(&w.ledger.run.fence);
        (w.seen.kube.fenced_at, w.seen.kube.skipped) = (Some(9), Some(10));
    });
    check!(again.plan(), Next::Wait(Wait::Agent { .. }));
}
