//! Every reason of a gate: shut or unknown with one thing changed, open without the change.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use osd_migrate::domain::gate::{self, Gate, Reason};
use osd_migrate::domain::ledger::Record;
use osd_migrate::domain::observation::{OkToStop, Operator, Releases};
use osd_migrate::domain::osd::{Epoch, NodeName, OsdId};
use osd_migrate::domain::policy::Accepted;

use crate::support::build::{BY_HAND, FILESTORE, GIB, POOL, World, members, node_of, pg_id, states};
use crate::support::check;

const OURS: &str = "osd-migrate-test";

/// Returns the gate before osd.0 is recorded and stopped.
fn before(world: &World) -> Gate {
    gate::before_stop(BY_HAND, &node_of(BY_HAND), Some(OURS), &Accepted::default(), &world.seen)
}

/// Returns the gate before osd.0, stopped by osd-migrate, is destroyed and wiped.
fn after(world: &World) -> Gate {
    let record: &Record = &world.ledger.records[&BY_HAND];
    gate::after_stop(record, world.ledger.run.fence.as_deref(), &world.seen)
}

fn changed(change: impl FnOnce(&mut World)) -> Gate {
    before(&World::new().with(change))
}

/// A PG that maps to osd.0, and one that does not.
const WITH: u32 = 0;
const WITHOUT: u32 = 1;

#[test]
fn gates_before_and_after_stop_pass_in_the_small_world() {
    assert!(members(WITH).contains(&BY_HAND) && !members(WITHOUT).contains(&BY_HAND));
    assert_eq!(before(&World::new()), Gate::Open);
    assert_eq!(after(&World::stopped(BY_HAND)), Gate::Open);
    assert_eq!(after(&World::destroyed(BY_HAND)), Gate::Open);
}

// ---- around the PGs: the same reasons close both gates

#[test]
fn rook_image_as_declared_or_unknown_shuts_no_gate() {
    let taken_up =
        World::new().with(|w| w.seen.kube.rook_image = Some(w.seen.kube.declaration.image.clone()));
    for world in [World::new(), taken_up] {
        assert_eq!(before(&world), Gate::Open);
    }
}

#[test]
fn rook_drain_upgrade_nearfull_or_lost_node_blocks_both_gates() {
    type Case = (fn(&mut World), fn(&Gate) -> bool);
    let cases: [Case; 15] = [
        (|w| w.seen.kube.declaration.external = true, |g| *g == Gate::Shut(Reason::External)),
        (
            |w| w.seen.kube.declaration.removes_out_osds = true,
            |g| *g == Gate::Shut(Reason::RookRemovesOutOsds),
        ),
        (
            |w| operator(w, 1, 1),
            |g| matches!(g, Gate::Shut(Reason::OperatorRuns { name, .. }) if name.contains("operator")),
        ),
        (
            |w| {
                (w.seen.kube.operator, w.seen.kube.rook_checked) =
                    (None, Some(w.seen.at - TimeDelta::seconds(179)));
            },
            |g| matches!(g, Gate::Shut(Reason::OperatorNotFound { .. })),
        ),
        (|w| operator(w, 0, 1), |g| matches!(g, Gate::Shut(Reason::OperatorRuns { ends: true, .. }))),
        (|w| operator(w, 1, 0), |g| matches!(g, Gate::Shut(Reason::OperatorRuns { ends: false, .. }))),
        (
            |w| w.seen.kube.fence = Some("other".to_owned()),
            |g| matches!(g, Gate::Shut(Reason::FencedExternally { value }) if value == "other"),
        ),
        (
            |w| w.seen.kube.fence = Some(String::new()),
            |g| matches!(g, Gate::Shut(Reason::FencedExternally { value }) if value.is_empty()),
        ),
        (
            |w| w.seen.kube.rook_prepares.push("rook-ceph-osd-prepare-h2".to_owned()),
            |g| matches!(g, Gate::Shut(Reason::RookPrepares { job }) if job.ends_with("h2")),
        ),
        (
            |w| w.seen.kube.draining_failure_domain = Some("h3".to_owned()),
            |g| matches!(g, Gate::Shut(Reason::Draining { domain }) if domain == "h3"),
        ),
        (|w| w.seen.ceph.releases = Releases::Several, |g| *g == Gate::Shut(Reason::Upgrading)),
        (
            |w| w.seen.kube.rook_image = Some("ceph:before".to_owned()),
            |g| matches!(g, Gate::Shut(Reason::ImageChanged { known, .. }) if known == "ceph:before"),
        ),
        (
            |w| health(w, "OSD_NEARFULL"),
            |g| matches!(g, Gate::Shut(Reason::Full { code }) if code == "OSD_NEARFULL"),
        ),
        (
            |w| w.seen.kube.nodes.get_mut(&node_of(BY_HAND)).unwrap().ready = false,
            |g| matches!(g, Gate::Unknown(Reason::NodeNotReady { .. })),
        ),
        (
            |w| drop(w.seen.kube.nodes.remove(&node_of(BY_HAND))),
            |g| matches!(g, Gate::Unknown(Reason::NodeNotReady { .. })),
        ),
    ];
    for (number, (change, is_expected)) in cases.into_iter().enumerate() {
        for (name, gate) in [
            ("before", before(&World::new().with(change))),
            ("after", after(&World::stopped(BY_HAND).with(change))),
        ] {
            assert!(is_expected(&gate), "case {number} {name}: {gate:?}");
        }
    }
}

fn operator(w: &mut World, replicas: u32, pods: u32) {
    let operator = w.seen.kube.operator.take().unwrap();
    w.seen.kube.operator = Some(Operator { replicas, pods, ..operator });
}

fn honouring_operator(w: &mut World) {
    operator(w, 1, 1);
    w.seen.kube.operator.as_mut().unwrap().honours_fence = true;
}

#[test]
fn fenceable_operator_shuts_only_the_gates_of_unfenced_acts() {
    let auxiliary = |mut w: World| {
        honouring_operator(&mut w);
        w
    };
    assert_eq!(before(&auxiliary(World::new())), Gate::Open);
    assert_eq!(after(&auxiliary(World::stopped(BY_HAND))), Gate::Open);
    let w = auxiliary(World::new());
    for gate in [
        gate::before_new(&node_of(BY_HAND), None, &w.seen),
        gate::before_adopt(&node_of(BY_HAND), None, &w.seen),
        gate::before_restart(BY_HAND, &node_of(BY_HAND), None, &w.seen),
    ] {
        assert!(matches!(gate, Gate::Shut(Reason::OperatorRuns { .. })), "{gate:?}");
    }
}

fn health(w: &mut World, code: &str) {
    w.seen.ceph.health.insert(code.to_owned());
}

#[test]
fn cluster_flags_noup_nobackfill_and_pause_shut_both_gates() {
    for flag in ["nodown", "noup", "norecover", "nobackfill", "pause", "pauserd", "pausewr", "full"] {
        let set = |w: &mut World| w.seen.ceph.flags.extend([flag.to_owned()]);
        for gate in [changed(set), after(&World::stopped(BY_HAND).with(set))] {
            let Gate::Shut(reason @ Reason::Flag { .. }) = gate else { panic!("{flag}: {gate:?}") };
            let unset = format!("ceph osd unset {}", if flag.starts_with("pause") { "pause" } else { flag });
            assert!(reason.to_string().contains(flag) && reason.to_string().contains(&unset), "{reason}");
        }
    }
}

#[test]
fn cluster_flags_noout_noscrub_norebalance_shut_no_gate() {
    for flag in ["noout", "noin", "noscrub", "nodeep-scrub", "norebalance", "sortbitwise", "pglog_hardlimit"]
    {
        let set = |w: &mut World| w.seen.ceph.flags.extend([flag.to_owned()]);
        assert_eq!(changed(set), Gate::Open, "{flag}");
        assert_eq!(after(&World::stopped(BY_HAND).with(set)), Gate::Open, "{flag}");
    }
}

#[test]
fn ambiguous_objects_shut_the_gate_before_stop_and_not_after() {
    let unusual =
        |w: &mut World| w.seen.kube.ambiguities.push("osd.1 has two Deployments: a and b".to_owned());
    check!(changed(unusual), Gate::Shut(Reason::AmbiguousObjects { what }) if what.contains("osd.1"));
    assert_eq!(
        after(&World::stopped(BY_HAND).with(unusual)),
        Gate::Open,
        "what was begun is brought to its end"
    );
}

#[test]
fn full_osds_close_the_gate_and_pool_quotas_do_not() {
    for code in ["OSD_FULL", "OSD_NEARFULL", "OSD_BACKFILLFULL", "PG_BACKFILL_FULL", "PG_RECOVERY_FULL"] {
        check!(changed(|w| health(w, code)), Gate::Shut(Reason::Full { .. }));
    }
    // A client at the quota of its pool fills no disk.
    let of_pools = ["POOL_FULL", "POOL_NEAR_FULL", "POOL_BACKFILLFULL"];
    for code in ["OSD_FLAGS", "OSD_FILESTORE", "PG_NOT_DEEP_SCRUBBED"].into_iter().chain(of_pools) {
        assert_eq!(changed(|w| health(w, code)), Gate::Open, "{code}");
    }
}

#[test]
fn own_fence_missing_operator_or_other_node_shuts_no_gate() {
    let none = |w: &mut World| (w.seen.kube.operator, w.seen.kube.rook_checked) = (None, None);
    assert_eq!(changed(none), Gate::Open, "no operator at all");
    assert_eq!(changed(|w| w.seen.kube.fence = Some(OURS.to_owned())), Gate::Open, "our own fence");
    let other_node = NodeName("h2".to_owned());
    assert_eq!(
        changed(|w| w.seen.kube.nodes.get_mut(&other_node).unwrap().ready = false),
        Gate::Open,
        "another node's trouble shows in its PGs"
    );
    check!(
        gate::before_stop(
            BY_HAND,
            &node_of(BY_HAND),
            None,
            &Accepted::default(),
            &World::new().with(|w| w.seen.kube.fence = Some(OURS.to_owned())).seen
        ),
        Gate::Shut(Reason::FencedExternally { .. })
    );
}

#[test]
fn mon_down_shuts_the_gate_before_stop_and_not_after() {
    let down = |w: &mut World| health(w, "MON_DOWN");
    assert_eq!(changed(down), Gate::Shut(Reason::MonDown));
    for world in [World::stopped(BY_HAND), World::destroyed(BY_HAND)] {
        assert_eq!(after(&world.with(down)), Gate::Open);
    }
}

#[test]
fn cordoned_node_shuts_the_gate_before_stop_of_its_osds_only() {
    let cordon = |name: &'static str| {
        move |w: &mut World| w.seen.kube.nodes.get_mut(&NodeName(name.to_owned())).unwrap().cordoned = true
    };
    check!(changed(cordon("h1")), Gate::Shut(Reason::NodeCordoned { node }) if *node == node_of(BY_HAND));
    assert_eq!(changed(cordon("h2")), Gate::Open);
    assert_eq!(after(&World::stopped(BY_HAND).with(cordon("h1"))), Gate::Open);
}

#[test]
fn osd_that_is_down_out_and_in_no_pg_shuts_no_gate() {
    // osd.7 died long ago, was marked out, and its data is elsewhere. It was never removed.
    let dead = |w: &mut World| {
        let mut slot = w.seen.ceph.slots[&OsdId(1)].clone();
        (slot.up, slot.is_in, slot.down_at) = (false, false, Epoch(9000));
        w.seen.ceph.slots.insert(OsdId(7), slot);
        w.seen.ceph.epoch = Epoch(9001);
        w.seen.ceph.health.extend(["OSD_DOWN".to_owned(), "OSD_HOST_DOWN".to_owned()]);
    };
    assert_eq!(changed(dead), Gate::Open);
    assert_eq!(after(&World::stopped(BY_HAND).with(dead)), Gate::Open);
    // If it is in the sets of a PG, it counts.
    let in_a_set = changed(|w| {
        dead(w);
        w.pg(WITHOUT).up.insert(OsdId(7));
    });
    check!(in_a_set, Gate::Unknown(Reason::StatisticsOld { needed: Epoch(9000), .. }));
}

#[test]
fn shut_gate_takes_precedence_over_an_unknown_one() {
    let gate = changed(|w| {
        w.seen.kube.nodes.get_mut(&node_of(BY_HAND)).unwrap().ready = false;
        w.seen.ceph.ok_to_stop.clear();
        w.pg(WITHOUT).state = states("active+undersized+degraded");
    });
    check!(gate, Gate::Shut(Reason::NotClean { .. }));
}

// ---- fresh

#[test]
fn gate_is_unknown_if_pg_statistics_are_incomplete() {
    let fewer = |w: &mut World| drop(w.seen.ceph.pgs.remove(&pg_id(WITHOUT)));
    let more = |w: &mut World| w.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num = 7;
    check!(changed(fewer), Gate::Unknown(Reason::StatisticsIncomplete { known: 7, expected: 8 }));
    check!(changed(more), Gate::Unknown(Reason::StatisticsIncomplete { known: 8, expected: 7 }));
    check!(
        after(&World::stopped(BY_HAND).with(fewer)),
        Gate::Unknown(Reason::StatisticsIncomplete { known: 7, expected: 8 })
    );
    // Right after `osd pool create` the mgr may know no PG at all, and all of none are clean.
    check!(
        changed(|w| w.seen.ceph.pgs.clear()),
        Gate::Unknown(Reason::StatisticsIncomplete { known: 0, .. })
    );
}

#[test]
fn stale_clean_pgs_do_not_pass_after_a_partner_went_down() {
    // osd.2 shares PG 0 with osd.0: the osdmap has it down, the mgr still says active+clean everywhere.
    let world = World::new().down(OsdId(2));
    check!(before(&world), Gate::Unknown(Reason::StatisticsOld { pg, .. }) if *pg == pg_id(0));
    check!(before(&world.reported()), Gate::Shut(Reason::NotClean { .. }));
}

#[test]
fn stale_clean_pgs_do_not_pass_after_a_partner_came_up() {
    let world = World::new().up(OsdId(2));
    check!(before(&world), Gate::Unknown(Reason::StatisticsOld { needed: Epoch(101), .. }));
    assert_eq!(before(&world.reported()), Gate::Open);
}

#[test]
fn pg_statistics_of_all_osds_must_be_fresh_before_a_stop() {
    // osd.1 shares no PG with osd.0. The osdmap has it down, the mgr still says active+clean everywhere.
    let world = World::new().down(OsdId(1));
    assert!(world.seen.ceph.pgs.values().all(|pg| !(pg.up.contains(&OsdId(1)) && pg.up.contains(&BY_HAND))));
    check!(before(&world), Gate::Unknown(Reason::StatisticsOld { pg, .. }) if *pg == pg_id(WITHOUT));
}

#[test]
fn pg_without_changes_may_have_an_old_report() {
    let world = World::new().with(|w| w.seen.ceph.epoch = Epoch(9000));
    assert_eq!(before(&world), Gate::Open);
}

#[test]
fn pg_statistics_after_stop_must_know_of_the_stop() {
    let stale = World::stopping(BY_HAND).with(|w| w.daemon(BY_HAND).pods.clear()).down(BY_HAND);
    check!(after(&stale), Gate::Unknown(Reason::StatisticsOld { .. }));
    assert_eq!(after(&stale.reported()), Gate::Open);
}

#[test]
fn gate_is_unknown_then_shut_if_a_partner_dies_after_stop() {
    let world = World::stopped(BY_HAND).down(OsdId(2));
    check!(after(&world), Gate::Unknown(Reason::StatisticsOld { .. }));
    check!(after(&world.reported()), Gate::Shut(Reason::OtherReplicaMissing { .. }));
}

// ---- clean

#[test]
fn pgs_that_scrub_or_trim_are_clean_all_others_are_not() {
    for clean in [
        "active+clean",
        "active+clean+scrubbing",
        "active+clean+scrubbing+deep",
        "active+clean+snaptrim_wait",
    ] {
        assert_eq!(before(&World::new().pg_state(WITHOUT, clean)), Gate::Open, "{clean}");
    }
    for unclean in [
        "active+undersized+degraded",
        "active+clean+inconsistent",
        "active+clean+remapped",
        "active+recovering",
        "active+clean+scrubbing+deep+repair",
        "clean",
        "active",
        "unknown",
        "stale+active+clean",
        "peering",
        "",
    ] {
        for n in [WITH, WITHOUT] {
            let gate = before(&World::new().pg_state(n, unclean));
            check!(gate, Gate::Shut(Reason::NotClean { count: 1, .. }));
        }
    }
}

#[test]
fn shut_gate_names_the_osds_that_are_down_and_not_destroyed() {
    let gate = before(&World::new().down(OsdId(3)).down(OsdId(5)).slot_destroyed(OsdId(5)).reported());
    check!(&gate, Gate::Shut(Reason::NotClean { down, .. }) if *down == BTreeSet::from([OsdId(3)]));
    let Gate::Shut(reason) = gate else { panic!() };
    assert!(reason.to_string().contains("osd.3"), "{reason}");
}

// ---- ok-to-stop, redundancy

#[test]
fn ok_to_stop_is_required_for_exactly_this_set_of_osds() {
    let asked = |ok: bool| {
        move |w: &mut World| {
            w.seen.ceph.ok_to_stop =
                [(BTreeSet::from([BY_HAND]), OkToStop { ok, bad_pgs: if ok { 0 } else { 7 } })].into();
        }
    };
    assert_eq!(changed(asked(true)), Gate::Open);
    check!(changed(asked(false)), Gate::Shut(Reason::NotOkToStop { bad_pgs: 7 }));
    check!(changed(|w| w.seen.ceph.ok_to_stop.clear()), Gate::Unknown(Reason::NotAsked));
    let other_set = |w: &mut World| {
        w.seen.ceph.ok_to_stop =
            [(BTreeSet::from([BY_HAND, OsdId(1)]), OkToStop { ok: true, bad_pgs: 0 })].into();
    };
    check!(changed(other_set), Gate::Unknown(Reason::NotAsked));
}

#[test]
fn pool_must_survive_one_more_failure_to_pass_the_gate() {
    for (size, data_chunks, open) in [
        (1, None, false),
        (2, None, false),
        (3, None, true),
        (4, None, true),
        (3, Some(2), false),
        (4, Some(2), true),
        (5, Some(4), false),
        (6, Some(4), true),
    ] {
        let gate = changed(|w| {
            let pool = w.seen.ceph.pools.get_mut(&POOL).unwrap();
            pool.size = size;
            pool.data_chunks = data_chunks;
        });
        if open {
            assert_eq!(gate, Gate::Open, "size {size}, k {data_chunks:?}");
        } else {
            check!(gate, Gate::Shut(Reason::NoRedundancy { pool }) if pool == "data");
        }
    }
}

#[test]
fn pool_without_redundancy_elsewhere_shuts_no_gate() {
    let gate = changed(|w| {
        let mut without_redundancy = w.seen.ceph.pools[&POOL].clone();
        without_redundancy.size = 2;
        without_redundancy.pg_num = 1;
        w.seen.ceph.pools.insert(2, without_redundancy);
        let mut pg = w.seen.ceph.pgs[&pg_id(WITHOUT)].clone();
        pg.pool = 2;
        w.seen.ceph.pgs.insert(osd_migrate::domain::osd::PgId("2.0".to_owned()), pg);
    });
    assert_eq!(gate, Gate::Open);
}

// ---- after Stop: only the stopped OSD's copy is missing

#[test]
fn other_replica_missing_shuts_the_gate_after_stop() {
    let shut = |change: fn(&mut World)| {
        check!(after(&World::stopped(BY_HAND).with(change)), Gate::Shut(Reason::OtherReplicaMissing { .. }));
    };
    // Fewer other OSDs serve the PG than the pool has copies without the stopped OSD's.
    shut(|w| w.pg(WITH).acting.retain(|osd| *osd != OsdId(2)));
    // More copies of objects are missing than objects exist: a second copy is incomplete.
    shut(|w| w.pg(WITH).degraded = 101);
    shut(|w| w.pg(WITH).state = states("active+undersized+degraded+backfill_wait"));
    shut(|w| w.pg(WITH).state = states("active+undersized+degraded+inconsistent"));
    shut(|w| w.pg(WITH).state = states("active+recovery_unfound+undersized+degraded"));
    shut(|w| w.pg(WITH).state = states("down"));
    shut(|w| w.pg(WITH).state = states("incomplete"));
    // A PG that has nothing to do with the stopped OSD is not clean.
    shut(|w| w.pg(WITHOUT).state = states("active+undersized+degraded"));
    // A PG of a pool that is not known.
    shut(|w| w.pg(WITH).pool = 99);
}

#[test]
fn backfilling_pgs_pass_after_stop_if_other_replicas_exist() {
    let with = |change: fn(&mut World)| after(&World::stopped(BY_HAND).with(change));
    // An OSD was added: a PG that does not involve the stopped OSD has all its copies, which move elsewhere.
    for state in ["active+clean+remapped", "active+remapped+backfilling", "active+remapped+backfill_wait"] {
        assert_eq!(after(&World::stopped(BY_HAND).pg_state(WITHOUT, state)), Gate::Open, "{state}");
    }
    // And of a PG of the stopped OSD, only that OSD's copy is missing.
    assert_eq!(
        with(|w| w.pg(WITH).state = states("active+undersized+degraded+remapped+backfilling")),
        Gate::Open
    );
    let shut = |change: fn(&mut World)| check!(with(change), Gate::Shut(Reason::OtherReplicaMissing { .. }));
    shut(|w| {
        w.pg(WITHOUT).state = states("active+remapped+backfilling");
        w.pg(WITHOUT).degraded = 1;
    });
    shut(|w| {
        w.pg(WITHOUT).state = states("active+remapped+backfilling");
        w.pg(WITHOUT).acting.pop_last();
    });
    shut(|w| w.pg(WITHOUT).state = states("active+undersized+degraded+remapped+backfilling"));
    shut(|w| w.pg(WITHOUT).state = states("active+remapped+backfill_toofull"));
    shut(|w| w.pg(WITHOUT).state = states("remapped"));
}

#[test]
fn stopped_osd_is_never_counted_among_the_replicas() {
    let gate = after(&World::stopped(BY_HAND).with(|w| {
        let pg = w.pg(WITH);
        pg.acting = [BY_HAND, OsdId(2)].into();
    }));
    check!(gate, Gate::Shut(Reason::OtherReplicaMissing { .. }));
}

#[test]
fn gate_after_stop_is_unknown_while_a_pg_is_peering() {
    for passing in ["peering", "activating", "stale+active+clean", "unknown", "remapped+peering"] {
        let gate = after(&World::stopped(BY_HAND).pg_state(WITH, passing));
        check!(gate, Gate::Unknown(Reason::Peering { .. }));
    }
    // The gate shuts if another PG is known to have a missing copy.
    let gate = after(&World::stopped(BY_HAND).pg_state(0, "peering").with(|w| w.pg(2).degraded = 300));
    check!(gate, Gate::Shut(Reason::OtherReplicaMissing { pg, .. }) if *pg == pg_id(2));
}

#[test]
fn remapped_pg_with_all_replicas_elsewhere_passes_after_stop() {
    let remapped = |state: &str, acting: [u32; 3], degraded: u64| {
        after(&World::stopped(BY_HAND).pg_state(WITH, state).with(|w| {
            let pg = w.pg(WITH);
            (pg.acting, pg.degraded) = (acting.map(OsdId).into(), degraded);
        }))
    };
    // The state after the id was purged, another OSD of the host was backfilled, and the place in CRUSH was
    // restored.
    assert_eq!(remapped("active+clean+remapped", [1, 2, 4], 0), Gate::Open);
    assert_eq!(remapped("active+clean+remapped+scrubbing", [1, 2, 4], 0), Gate::Open);
    // Only the stopped OSD's copy is missing; and if it is complete on other OSDs, it may be moving.
    assert_eq!(remapped("active+clean+remapped", [0, 2, 4], 0), Gate::Open);
    assert_eq!(remapped("active+remapped+backfilling", [1, 2, 4], 0), Gate::Open);
    // The other copies are incomplete, or fewer than required.
    for (acting, degraded) in [([1, 2, 4], 1), ([0, 2, 4], 101), ([0, 2, 2], 0)] {
        let gate = remapped("active+clean+remapped", acting, degraded);
        check!(gate, Gate::Shut(Reason::OtherReplicaMissing { .. }));
    }
    let stale = remapped("stale+active+clean+remapped", [1, 2, 4], 0);
    check!(stale, Gate::Unknown(Reason::Peering { .. }));
    // The statistics of the PG must be from after the last change.
    let old = World::stopped(BY_HAND).pg_state(WITH, "active+clean+remapped").with(|w| {
        let pg = w.pg(WITH);
        (pg.acting, pg.degraded) = ([1, 2, 4].map(OsdId).into(), 0);
    });
    check!(after(&old.down(OsdId(1))), Gate::Unknown(Reason::StatisticsOld { .. }));
}

#[test]
fn scrubbing_and_empty_pgs_pass_after_stop() {
    let gate = after(&World::stopped(BY_HAND).with(|w| {
        w.pg(WITHOUT).state = states("active+clean+scrubbing");
        let empty = w.pg(WITH);
        empty.state = states("active+undersized");
        empty.objects = 0;
        empty.degraded = 0;
    }));
    assert_eq!(gate, Gate::Open);
}

#[test]
fn pgs_removed_since_the_stop_shut_no_gate() {
    let gate = after(&World::stopped(BY_HAND).with(|w| {
        w.seen.ceph.pgs.remove(&pg_id(WITH));
        w.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num -= 1;
    }));
    assert_eq!(gate, Gate::Open);
}

#[test]
fn pgs_merged_or_of_a_deleted_pool_are_found_by_the_osdmap() {
    let world = World::stopped(BY_HAND);
    let held = world.ledger.records[&BY_HAND].pgs.clone();
    assert!(gate::gone(&held, &world.seen).is_empty());
    let unknown = world.clone().with(|w| w.seen.ceph.pgs.clear());
    assert!(gate::gone(&held, &unknown.seen).is_empty(), "the mgr restarts");
    let merged = world.clone().with(|w| w.seen.ceph.pools.get_mut(&POOL).unwrap().pg_num = 4);
    assert_eq!(gate::gone(&held, &merged.seen), BTreeSet::from([pg_id(4), pg_id(6)]));
    let deleted = world.with(|w| w.seen.ceph.pools.clear());
    assert_eq!(gate::gone(&held, &deleted.seen), held);
    let strange = BTreeSet::from(
        ["x".to_owned(), "1.".to_owned(), "1.zz".to_owned()].map(osd_migrate::domain::osd::PgId),
    );
    assert!(gate::gone(&strange, &deleted.seen).is_empty(), "what can't be read is kept");
}

#[test]
fn erasure_coded_pg_may_miss_one_chunk_after_stop_not_two() {
    let ec = |acting: &[u32], degraded: u64| {
        after(&World::stopped(BY_HAND).with(|w| {
            let mut pool = w.seen.ceph.pools[&POOL].clone();
            (pool.size, pool.min_size, pool.data_chunks, pool.pg_num) = (4, 3, Some(2), 1);
            w.seen.ceph.pools.insert(2, pool);
            let id = osd_migrate::domain::osd::PgId("2.0".to_owned());
            let mut pg = w.seen.ceph.pgs[&pg_id(WITH)].clone();
            pg.pool = 2;
            pg.acting = acting.iter().map(|n| OsdId(*n)).collect();
            pg.degraded = degraded;
            w.seen.ceph.pgs.insert(id.clone(), pg);
            w.record(BY_HAND).pgs.insert(id);
        }))
    };
    assert_eq!(ec(&[1, 2, 4], 100), Gate::Open);
    check!(ec(&[2, 4], 200), Gate::Shut(Reason::OtherReplicaMissing { .. }));
    check!(ec(&[1, 2, 4], 200), Gate::Shut(Reason::OtherReplicaMissing { .. }));
}

// ---- capacity

#[test]
fn used_bytes_plus_a_tenth_must_fit_below_nearfull() {
    let gate = |used: Option<u64>, usable: u64, ratio: u32| {
        after(&World::stopped(BY_HAND).with(|w| {
            w.record(BY_HAND).used_bytes = used;
            w.record(BY_HAND).evidence.as_mut().unwrap().usable_bytes = usable;
            w.seen.ceph.nearfull_ratio = ratio;
        }))
    };
    assert_eq!(gate(Some(4 * GIB), 6 * GIB, 8500), Gate::Open);
    check!(gate(Some(5 * GIB), 6 * GIB, 8500), Gate::Shut(Reason::TooSmall { .. }));
    check!(gate(Some(4 * GIB), 6 * GIB, 5000), Gate::Shut(Reason::TooSmall { .. }));
    check!(gate(Some(GIB), 0, 8500), Gate::Shut(Reason::TooSmall { .. }));
    assert_eq!(gate(Some(0), 6 * GIB, 8500), Gate::Open);
}

#[test]
fn destroy_waits_while_usage_or_evidence_is_unknown() {
    let unknown = World::stopped(BY_HAND).with(|w| {
        w.record(BY_HAND).used_bytes = None;
        w.slot(BY_HAND).used_bytes = None;
    });
    assert_eq!(after(&unknown), Gate::Unknown(Reason::UsageUnknown));
    // The mgr also knows the usage of a stopped OSD.
    let known = unknown.with(|w| w.slot(BY_HAND).used_bytes = Some(GIB));
    assert_eq!(after(&known), Gate::Open);
    let unproven = World::stopped(BY_HAND).with(|w| w.record(BY_HAND).evidence = None);
    assert_eq!(after(&unproven), Gate::Unknown(Reason::UsageUnknown));
}

#[test]
fn operator_not_found_is_away_after_three_silent_minutes() {
    let open = |silent: i64| {
        changed(|w| {
            w.seen.kube.operator = None;
            w.seen.kube.rook_checked = Some(w.seen.at - TimeDelta::seconds(silent));
        }) == Gate::Open
    };
    assert!(!open(0) && !open(179) && open(180));
    // An operator that is found shows whether it is running.
    assert!(changed(|w| w.seen.kube.rook_checked = Some(w.seen.at)) == Gate::Open);
}

// ---- messages

#[test]
fn reason_that_needs_a_person_contains_the_command() {
    let text = |gate: Gate| match gate {
        Gate::Shut(reason) | Gate::Unknown(reason) => reason.to_string(),
        Gate::Open => panic!(),
    };
    let scale = text(changed(|w| operator(w, 1, 1)));
    assert!(
        scale.contains("kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=0"),
        "{scale}"
    );
    assert!(
        text(changed(|w| w.seen.kube.fence = Some("x".to_owned()))).contains("label cephcluster CEPHCLUSTER")
    );
    assert!(text(changed(|w| health(w, "OSD_FULL"))).contains("ceph health detail"));
    assert!(text(changed(|w| w.seen.ceph.releases = Releases::Several)).contains("ceph versions"));
}

/// Checks a half-upgraded cluster: Ceph 18 has no Filestore, so the upgrade waits until the migration is
/// done.
#[test]
fn upgrade_that_waits_for_filestore_shuts_no_gate() {
    let behind = |w: &mut World| w.seen.ceph.releases = Releases::OthersBehind;
    assert_eq!(changed(behind), Gate::Open);
    let without_filestore = |w: &mut World| {
        behind(w);
        w.slot(FILESTORE).metadata.as_mut().unwrap().store.0 = "bluestore".to_owned();
    };
    assert_eq!(changed(without_filestore), Gate::Shut(Reason::Upgrading));
}
