//! From the finished new OSD to the closed record: Prepared, Starting, Settling, Settled.

use chrono::TimeDelta;
use osd_migrate::domain::inspection::{Evidence, KernelDisk};
use osd_migrate::domain::osd::DeviceIdentity;

use super::*;
use crate::support::build::nothing_left;
use osd_migrate::domain::ledger::Emptying;

// ---- Prepared, Starting

#[test]
fn new_fsid_is_saved_before_the_osd_is_deployed() {
    let mut world = World::prepared(OSD).saved("new");
    assert_eq!(world.record(OSD).new, Some(issued_fsid(OSD, 1)));
    assert!(world.record(OSD).issued.contains(&issued_fsid(OSD, 1)));
    check!(
        world.plan(),
        Next::Do(Act::Kube(KubeAct::Deploy(deploy)))
            if deploy.fsid == issued_fsid(OSD, 1) && deploy.block_path == "/dev/disk/by-id/ata-disk-0"
                && deploy.store == "bluestore" && deploy.node == NodeName("h1".to_owned())
    );
    let gone = World::prepared(OSD).saved("new").with(|w| drop(w.seen.kube.daemons.remove(&OSD)));
    check!(gone.plan(), Next::Do(Act::Kube(KubeAct::Deploy(_))));
}

/// Checks that the Deployment has the kernel name where ceph-volume takes no link, and if there is none.
#[test]
fn deployment_has_the_link_to_its_disk_or_its_kernel_name() {
    let path = |by_path: &[&str], release: &str| {
        let world = World::prepared(OSD).saved("new").with(|w| {
            let evidence = w.record(OSD).evidence.clone().unwrap();
            let by_path = by_path.iter().map(|name| (*name).to_owned()).collect();
            let device = DeviceIdentity { by_id: [].into(), by_path, serial: None, ..evidence.device };
            w.ledger.records.get_mut(&OSD).unwrap().evidence = Some(Evidence { device, ..evidence });
            for report in w.seen.kube.reports.values_mut() {
                let kernel = KernelDisk {
                    node: "/dev/vdb".to_owned(),
                    device_type: "ssd".to_owned(),
                    links: BTreeSet::new(),
                };
                let inspection = report.inspection.as_mut().unwrap();
                inspection.kernel = Some(kernel);
                inspection.capability.ceph_version = format!("ceph version {release} (stable)");
            }
        });
        let Next::Do(Act::Kube(KubeAct::Deploy(deploy))) = world.plan() else {
            panic!("{:#?}", world.plan())
        };
        assert_eq!(deploy.device_type.as_deref(), Some("ssd"), "as Rook labels it");
        deploy.block_path
    };
    assert_eq!(path(&["pci-0000:00:04.0"], "18.2.7"), "/dev/disk/by-path/pci-0000:00:04.0");
    assert_eq!(path(&["pci-0000:00:04.0"], "16.2.15"), "/dev/vdb");
    assert_eq!(path(&[], "18.2.7"), "/dev/vdb");
}

#[test]
fn new_daemon_is_waited_for_with_its_trouble() {
    check!(World::deployed(OSD).plan(), Next::Wait(Wait::Up { osd: OSD, trouble: None }));
    let pulling =
        World::deployed(OSD).with(|w| w.daemon(OSD).pods[0].trouble = Some("ImagePullBackOff".to_owned()));
    check!(pulling.plan(), Next::Wait(Wait::Up { trouble: Some(why), .. }) if why == "ImagePullBackOff");
    let scaled = World::deployed(OSD).with(|w| w.daemon(OSD).replicas = 0);
    check!(scaled.plan(), Next::Wait(Wait::NotOurStop { osd: OSD }));
}

#[test]
fn new_daemon_with_three_restarts_quarantines_with_its_trouble() {
    let world = |restarts| {
        World::deployed(OSD).with(|w| {
            w.daemon(OSD).pods[0].restarts = restarts;
            w.daemon(OSD).pods[0].trouble = Some("exit 1: no block".to_owned());
        })
    };
    check!(world(2).plan(), Next::Wait(Wait::Up { .. }));
    let next = world(3).plan();
    assert!(quarantine(&next).is_some_and(|why| why.contains("no block")), "{next:#?}");
}

#[test]
fn restarts_after_a_retry_count_from_the_first_boot_on() {
    let retried = |before, restarts| {
        World::deployed(OSD).with(|w| {
            (w.record(OSD).retried, w.record(OSD).pod_restarts) = (true, before);
            w.daemon(OSD).pods[0].restarts = restarts;
        })
    };
    for (before, restarts) in [(None, 9), (Some(9), 9), (Some(9), 11), (Some(9), 2)] {
        check!(retried(before, restarts).plan(), Next::Wait(Wait::Up { .. }));
    }
    for restarts in [12, 3] {
        let next = retried(Some(9), restarts).plan();
        assert!(quarantine(&next).is_some_and(|why| why.contains("does not stay up")), "{next:#?}");
    }
    let up = retried(None, 9).up(OSD).saved("up");
    assert_eq!(up.ledger.records[&OSD].pod_restarts, Some(9));
}

#[test]
fn new_daemon_without_a_pod_quarantines_with_the_refusal() {
    let refused = "FailedCreate: exceeded quota: pods";
    let world = World::deployed(OSD).with(|w| {
        w.daemon(OSD).pods.clear();
        w.daemon(OSD).replica_failure = Some(refused.to_owned());
    });
    check!(world.plan(), Next::Wait(Wait::Up { trouble: Some(why), .. }) if why == refused);
    let lifted = world.minutes_later(16).with(|w| {
        w.record(OSD).noout_lifted = true;
        w.slot(OSD).noout = false;
    });
    let next = lifted.plan();
    assert!(quarantine(&next).is_some_and(|why| why.contains(refused)), "{next:#?}");
}

#[test]
fn new_daemon_that_does_not_come_up_names_the_flag_noup() {
    let of_cluster: fn(&mut World) = |w| w.seen.ceph.flags = ["noup".to_owned()].into();
    let of_host: fn(&mut World) = |w| w.slot(OSD).noup = Some("h1".to_owned());
    for (set, unset) in [(of_cluster, "osd unset noup"), (of_host, "osd unset-group noup h1")] {
        let world = World::deployed(OSD).with(set);
        check!(world.plan(), Next::Wait(Wait::Up { trouble: Some(why), .. }) if why.contains(unset));
        let late = world.minutes_later(16).with(|w| {
            w.record(OSD).noout_lifted = true;
            w.slot(OSD).noout = false;
        });
        assert!(quarantine(&late.plan()).is_some_and(|why| why.contains(unset)), "{:#?}", late.plan());
    }
}

#[test]
fn deployment_of_a_foreign_osd_quarantines_the_record() {
    for world in [World::prepared(OSD).saved("new"), World::deployed(OSD)] {
        let world = world.with(|w| w.daemon(OSD).fsid = Some(foreign()));
        assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
    }
}

#[test]
fn osd_id_taken_by_a_foreign_osd_quarantines_the_record() {
    for world in [World::destroyed(OSD), World::prepared(OSD), World::deployed(OSD)] {
        let next = world.slot_registered(OSD, foreign()).plan();
        assert!(quarantine(&next).is_some_and(|why| why.contains(&foreign().to_string())), "{next:#?}");
    }
}

// ---- Settling, Settled

/// Lifts noin from a daemon that booted under it and is still marked `new`; the mark goes with it, once the
/// OSD is up.
pub(super) fn noin_lifted(world: World) -> World {
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: OSD, noout: true, noin: true })));
    world.with(|w| (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false))
}

/// Removes the fence, which must be the next act.
pub(super) fn unfenced(world: World) -> World {
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Unfence { .. })));
    world.with(|w| w.seen.kube.fence = None).saved("unfenced")
}

#[test]
fn backfilling_osd_is_unfenced_and_waited_for_with_numbers() {
    let world = unfenced(noin_lifted(World::booted(OSD)));
    check!(
        world.plan(),
        Next::Wait(Wait::ActiveClean { osd: OSD, pgs: 4, objects: 400, bytes, .. }) if *bytes == 400 << 20
    );
}

#[test]
fn osd_with_a_pg_that_a_scrub_found_faulty_is_finished() {
    let with = |state: &str| unfenced(noin_lifted(World::booted(OSD))).reported().pg_state(0, state);
    for fault in ["inconsistent", "failed_repair", "snaptrim_error"] {
        check!(with(&format!("active+clean+{fault}")).plan(), Next::Save { why: Saving::Closing, .. });
        check!(
            with(&format!("active+clean+scrubbing+deep+inconsistent+{fault}")).plan(),
            Next::Save { why: Saving::Closing, .. }
        );
        for other in ["active+undersized+degraded", "active+remapped+backfilling", "active+recovering"] {
            check!(with(&format!("{other}+{fault}")).plan(), Next::Wait(Wait::ActiveClean { .. }));
        }
        let faulty = with(&format!("active+clean+{fault}"));
        // The PG is not on the OSD yet, or lacks another replica.
        for osd in [OSD, OsdId(2)] {
            let incomplete = faulty.clone().with(|w| w.pg(0).acting.retain(|other| *other != osd));
            check!(incomplete.plan(), Next::Wait(Wait::ActiveClean { .. }));
        }
        let behind = faulty.clone().with(|w| w.pg(0).degraded = 1);
        check!(behind.plan(), Next::Wait(Wait::ActiveClean { .. }));
        // The old directory may have the better replica.
        let in_directory = faulty.with(|w| {
            let onto = w.record(OSD).evidence.as_ref().unwrap().device.clone();
            let path = "/data/osd0".to_owned();
            w.record(OSD).strategy = osd_migrate::domain::ledger::Strategy::Directory { path, onto };
            w.record(OSD).up_seen = Some((w.slot(OSD).up_from, w.seen.at));
            w.seen.at += TimeDelta::minutes(1);
        });
        check!(in_directory.plan(), Next::Wait(Wait::ActiveClean { .. }));
        assert_eq!(word(&in_directory.pg_state(0, "active+clean").plan()), Some("clear"));
    }
}

#[test]
fn backfill_progress_since_an_earlier_pod_is_saved_once() {
    let of_job = |failed_pods, left_bytes| Some(Progress { job: "job".to_owned(), failed_pods, left_bytes });
    let left = |world: World, mib: u64| world.with(|w| w.pg(0).degraded = mib);
    let world = unfenced(noin_lifted(World::booted(OSD))).with(|w| w.policy.run = "job".to_owned());
    let world = left(world, 100);
    check!(world.plan(), Next::Wait(Wait::ActiveClean { .. }));
    let world = world.with(|w| w.policy.failed_pods = 9).saved("progress");
    assert_eq!(world.ledger.run.progress, of_job(0, Some(400 << 20)));
    check!(world.plan(), Next::Wait(Wait::ActiveClean { .. }));
    assert_eq!(plan::crash_loop(&world.policy, &world.ledger), None);
    let more = left(world, 200);
    check!(more.plan(), Next::Wait(Wait::ActiveClean { .. }));
    let world = left(more, 50).saved("progress");
    assert_eq!(world.ledger.run.progress, of_job(9, Some(350 << 20)));
    check!(left(world.clone(), 10).plan(), Next::Wait(Wait::ActiveClean { .. }));
    let stuck = world.clone().with(|w| w.policy.failed_pods = 19);
    let halt = plan::crash_loop(&stuck.policy, &stuck.ledger);
    assert_eq!(halt, Some(Halt::CrashLoop { job: "job".to_owned(), starts: 10 }));
    let world = left(world.with(|w| w.policy.failed_pods = 18), 10).saved("progress");
    assert_eq!(world.ledger.run.progress, of_job(18, Some(310 << 20)));
}

#[test]
fn pg_statistics_from_before_the_boot_never_prove_clean() {
    // The mgr still shows the sets without osd.0, from when it was down: no PG names it, so none of its PGs
    // is unclean.
    let world = World::deployed(OSD).up(OSD).with(|w| {
        w.slot(OSD).metadata = Some(metadata("bluestore", OSD, false));
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
        w.ledger.run.fence = None;
        w.seen.kube.fence = None;
    });
    assert!(world.seen.ceph.pgs.values().all(|pg| !pg.up.contains(&OSD)));
    let world = world.saved("up");
    check!(world.plan(), Next::Wait(Wait::ActiveClean { .. }));
    // Nor if some PGs report already, and others not yet.
    let half = world.with(|w| {
        let epoch = w.seen.ceph.epoch;
        let pg = w.pg(0);
        (pg.state, pg.up, pg.acting, pg.reported_epoch) =
            (states("active+clean"), members(0), members(0), epoch);
    });
    check!(half.plan(), Next::Wait(Wait::ActiveClean { .. }));
}

#[test]
fn pg_clean_since_before_the_last_boot_is_not_clean() {
    let world = World::filled(OSD);
    assert_eq!(word(&world.plan()), Some("closing"));
    let restarted =
        unfenced(noin_lifted(world.with(|w| w.slot(OSD).up_from = Epoch(w.seen.ceph.epoch.0 + 1))));
    check!(restarted.saved("up").plan(), Next::Wait(Wait::ActiveClean { .. }));
}

#[test]
fn pg_missing_or_not_served_by_the_osd_delays_closing() {
    let world = unfenced(noin_lifted(World::filled(OSD).with(|w| w.pg(0).acting.retain(|osd| *osd != OSD))));
    check!(world.plan(), Next::Wait(Wait::ActiveClean { .. }));
    let incomplete =
        unfenced(noin_lifted(World::filled(OSD).with(|w| drop(w.seen.ceph.pgs.remove(&pg_id(0))))));
    check!(incomplete.plan(), Next::Wait(Wait::ActiveClean { .. }));
}

#[test]
fn pg_merged_since_the_stop_never_delays_closing() {
    let world = World::filled(OSD).with(|w| {
        w.seen.ceph.pgs.remove(&pg_id(0));
        w.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num -= 1;
    });
    assert_eq!(word(&world.plan()), Some("closing"));
}

#[test]
fn degraded_pg_elsewhere_never_delays_closing() {
    let world = World::filled(OSD).pg_state(1, "active+undersized+degraded");
    assert_eq!(word(&world.plan()), Some("closing"));
}

/// Checks an OSD that osd-migrate had emptied, and that a person takes out after it was in.
#[test]
fn emptied_osd_that_was_in_and_is_taken_out_stays_out() {
    let emptied = World::booted(OSD).with(|w| {
        let at = Some(w.seen.at);
        let empty = Emptying { intended_at: at, out_since: at, emptied_at: at, ..Emptying::default() };
        let record = w.record(OSD);
        (record.empty, record.up_seen, record.down_since) = (Some(empty), None, None);
    });
    let was_in = unfenced(noin_lifted(emptied)).saved("up");
    assert_eq!(was_in.ledger.records[&OSD].empty.as_ref().unwrap().intended_at, None);
    let out = was_in.with(|w| {
        (w.slot(OSD).is_in, w.slot(OSD).up_from) = (false, Epoch(w.slot(OSD).up_from.0 + 7));
    });
    assert!(!matches!(out.plan(), Next::Do(Act::Ceph(CephAct::TakeIn { .. }))), "{:#?}", out.plan());
}

#[test]
fn osd_marked_out_externally_waits_with_the_command() {
    let out = World::filled(OSD).with(|w| {
        w.slot(OSD).is_in = false;
        w.slot(OSD).reweight = Weight(0);
        // The OSD's PGs moved elsewhere, and are clean.
        for n in (0..8).filter(|n| members(*n).contains(&OSD)) {
            let pg = w.pg(n);
            pg.up = [1, 3, 5].map(OsdId).into();
            pg.acting.clone_from(&pg.up);
        }
    });
    let out = held(unfenced(noin_lifted(out)));
    let Next::Wait(wait @ Wait::MarkedOutExternally { osd: OSD, .. }) = out.plan() else {
        panic!("{:#?}", out.plan())
    };
    assert!(wait.to_string().contains("ceph osd in 0; ceph osd reweight 0 0.899993896484375"), "{wait}");
    let plain = Wait::MarkedOutExternally { osd: OSD, reweight: Weight::ONE }.to_string();
    assert!(plain.ends_with("Mark it in: ceph osd in 0"), "{plain}");
    // No person marks the OSD in: the others continue without it.
    let long = out.clone().minutes_later(15);
    assert!(quarantine(&long.plan()).is_some_and(|why| why.contains("ceph osd in 0")));
    // The mons marked it out while its noout was lifted: it is marked in.
    let healed = out.clone().with(|w| (w.slot(OSD).auto_out, w.record(OSD).noout_lifted) = (true, true));
    check!(healed.plan(), Next::Do(Act::Ceph(CephAct::TakeIn { osd: OSD, reweight, .. })) if *reweight == healed.ledger.records[&OSD].reweight);
    // An OSD that was out when it was recorded stays out.
    let was_out = out.with(|w| w.record(OSD).reweight = Weight(0));
    assert_eq!(word(&was_out.plan()), Some("closing"));
    // Also while another PG lacks an OSD, and reports nothing.
    let silent = was_out.with(|w| {
        let pg = w.pg(1);
        (pg.up, pg.acting) = ([1, 2].map(OsdId).into(), [1, 2].map(OsdId).into());
        (pg.state, pg.reported_epoch) = (states("active+undersized"), Epoch(1));
        w.record(OSD).up_seen = None;
    });
    let noted = silent.saved("up");
    assert_ne!(word(&noted.plan()), Some("closing"));
    assert_eq!(word(&noted.minutes_later(1).plan()), Some("closing"));
}

#[test]
fn osd_that_boots_with_another_layout_is_quarantined() {
    for change in [
        (|w: &mut World| w.slot(OSD).metadata = None) as fn(&mut World),
        |w| w.slot(OSD).metadata.as_mut().unwrap().store.0 = "filestore".to_owned(),
        |w| w.slot(OSD).metadata.as_mut().unwrap().device_mapper = true,
        |w| w.slot(OSD).metadata.as_mut().unwrap().on_partition = true,
        |w| w.slot(OSD).metadata.as_mut().unwrap().dedicated_db = true,
    ] {
        let world = World::filled(OSD).with(change);
        assert!(quarantine(&world.plan()).is_some(), "{:#?}", world.plan());
    }
}

#[test]
fn settled_osd_is_judged_by_its_record_not_the_declaration() {
    let world = World::filled(OSD).with(|w| w.seen.kube.declaration.storage = encrypted());
    assert_eq!(word(&world.plan()), Some("closing"));
}

#[test]
fn settled_record_closes_with_one_cleanup_per_iteration() {
    let mut world = World::filled(OSD).saved("closing");
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: OSD, noout: true, noin: true })));
    (world.slot(OSD).noout, world.slot(OSD).noin) = (false, false);
    world = unfenced(world);
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::CleanUp { osd: OSD, .. })));
    world.seen.kube.backups.clear();
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::CleanUp { .. })));
    world.seen.kube.node_jobs.clear();
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::CleanUp { .. })));
    world.seen.kube.reports.clear();
    let id = world.record(OSD).id.clone();
    world.seen.kube.leftovers.insert(id.clone(), ["Secret/x".to_owned()].into());
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::CleanUp { .. })));
    world.seen.kube.leftovers.remove(&id);
    world = world.saved("closed");
    assert!(world.ledger.records.is_empty());
    world.daemon(OSD).fsid = Some(issued_fsid(OSD, 1));
    check!(world.plan(), Next::Finished(s) if *s == nothing_left());
    assert_eq!(world.ledger.run.serial, 1, "names of records are never used again");
}

#[test]
fn closing_record_only_closes_even_if_the_osd_is_down() {
    let world = World::filled(OSD).saved("closing").down(OSD).reported();
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { .. })));
}

#[test]
fn fence_that_nothing_needs_is_removed_at_the_end() {
    let world = World::new().with(|w| {
        w.policy.skip = [BY_HAND, FILESTORE].into();
        w.ledger.run.fence = Some("osd-migrate-x".to_owned());
        w.seen.kube.fence = Some("osd-migrate-x".to_owned());
    });
    check!(world.plan(), Next::Do(Act::Kube(KubeAct::Unfence { value })) if value == "osd-migrate-x");
    let down = world.with(|w| w.seen.kube.fence = None).saved("unfenced");
    check!(down.plan(), Next::Finished(_));
}
