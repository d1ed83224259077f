//! After a stop only the stopped OSD's copy is missing, and the new OSD has space for its data.

use std::collections::BTreeSet;

use osd_migrate::domain::gate::{self, Gate, Reason};
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::{Epoch, OsdId, PgId, Weight};
use osd_migrate::domain::policy::Missing;

use super::ask::{WITH, WITHOUT, after};
use crate::support::build::{BY_HAND, GIB, POOL, World, members, pg_id, states};
use crate::support::check;

// ---- copies

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
fn replica_of_another_stopped_osd_of_the_host_may_be_missing() {
    let replicas: Vec<OsdId> = members(WITHOUT).into_iter().collect();
    let other = replicas[0];
    let beside: Missing = [(other, [pg_id(WITHOUT)].into())].into();
    let gate = |world: &World, beside: &Missing| {
        gate::after_stop(&world.ledger.records[&BY_HAND], &world.ledger.run, beside, &world.seen)
    };
    let lacks_one = World::stopped(BY_HAND).with(|w| {
        w.pg(WITHOUT).state = states("active+undersized+degraded");
        w.pg(WITHOUT).acting.remove(&other);
    });
    assert_eq!(gate(&lacks_one, &beside), Gate::Open);
    check!(gate(&lacks_one, &Missing::new()), Gate::Shut(Reason::OtherReplicaMissing { .. }));
    let elsewhere: Missing = [(other, [pg_id(WITH)].into())].into();
    check!(gate(&lacks_one, &elsewhere), Gate::Shut(Reason::OtherReplicaMissing { .. }));
    // A PG lacks one replica at most, whichever of its OSDs were stopped.
    let lacks_two = lacks_one.with(|w| w.pg(WITHOUT).acting.retain(|osd| *osd == replicas[1]));
    check!(gate(&lacks_two, &beside), Gate::Shut(Reason::OtherReplicaMissing { .. }));
    let both: Missing = members(WITHOUT).into_iter().map(|osd| (osd, [pg_id(WITHOUT)].into())).collect();
    check!(gate(&lacks_two, &both), Gate::Shut(Reason::OtherReplicaMissing { .. }));
}

/// Checks a change of `pgp_num`: CRUSH places a PG on the stopped OSD, which never served it.
#[test]
fn pg_that_crush_places_on_the_stopped_osd_passes_after_stop() {
    let placed = |change: fn(&mut World)| {
        after(&World::stopped(BY_HAND).with(|w| {
            w.pg(WITHOUT).state = states("active+undersized+degraded");
            (w.pg(WITHOUT).up, w.pg(WITHOUT).acting) = ([2, 4].map(OsdId).into(), [2, 4].map(OsdId).into());
            change(w);
        }))
    };
    assert_eq!(placed(|_| {}), Gate::Open);
    // An OSD that died, and gets no data.
    let died = |w: &mut World| (w.slot(OsdId(1)).up, w.slot(OsdId(1)).is_in) = (false, false);
    assert_eq!(placed(died), Gate::Open);
    // The mons mark out an OSD that stays destroyed; another OSD that died is out, and its PGs are whole.
    let marked_out = |w: &mut World| {
        (w.slot(BY_HAND).state, w.slot(BY_HAND).fsid, w.slot(BY_HAND).is_in) =
            (SlotState::Destroyed, None, false);
    };
    assert_eq!(placed(marked_out), Gate::Open);
    let missing: [fn(&mut World); 6] = [
        // CRUSH places no PG on an OSD that is out, or has weight 0: another replica is missing.
        |w| w.slot(BY_HAND).is_in = false,
        |w| w.slot(BY_HAND).crush.as_mut().unwrap().weight = Weight(0),
        // Another OSD is down.
        |w| w.slot(OsdId(1)).up = false,
        // Two are missing; or CRUSH has found all its OSDs, and one is backfilled.
        |w| (w.pg(WITHOUT).up, w.pg(WITHOUT).acting) = ([OsdId(2)].into(), [OsdId(2)].into()),
        |w| w.pg(WITHOUT).up.extend([OsdId(5)]),
        // A pool that would not survive one more loss.
        |w| w.seen.ceph.pools.values_mut().for_each(|pool| pool.size = 2),
    ];
    for (number, change) in missing.into_iter().enumerate() {
        assert_ne!(placed(change), Gate::Open, "{number}");
    }
    let old = |w: &mut World| w.pg(WITHOUT).reported_epoch = Epoch(0);
    check!(placed(old), Gate::Unknown(Reason::StatisticsOld { .. }));
}

#[test]
fn faulty_pg_filled_by_another_osd_of_the_batch_passes() {
    let other = members(WITHOUT).into_iter().next().unwrap();
    let gate = |state: &str, change: fn(&mut World)| {
        let world = World::stopped(BY_HAND).pg_state(WITHOUT, state).with(change);
        gate::after_stop(
            &world.ledger.records[&BY_HAND],
            &world.ledger.run,
            &[(other, [pg_id(WITHOUT)].into())].into(),
            &world.seen,
        )
    };
    for state in ["active+clean+inconsistent", "active+clean+scrubbing+deep+repair"] {
        assert_eq!(gate(state, |_| {}), Gate::Open, "{state}");
        // If a replica is missing, the error may be in one of the others.
        let missing: [fn(&mut World); 2] =
            [|w| w.pg(WITHOUT).degraded = 1, |w| w.pg(WITHOUT).acting.retain(|osd| *osd != OsdId(4))];
        for change in missing {
            assert_ne!(gate(state, change), Gate::Open, "{state}");
        }
    }
    // A PG of the stopped OSD in the same state shuts the gate.
    let own = World::stopped(BY_HAND).pg_state(WITH, "active+clean+inconsistent");
    check!(after(&own), Gate::Shut(Reason::OtherReplicaMissing { .. }));
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
}

#[test]
fn erasure_coded_pg_may_miss_one_chunk_after_stop_not_two() {
    let ec = |acting: &[u32], degraded: u64| {
        after(&World::stopped(BY_HAND).with(|w| {
            let mut pool = w.seen.ceph.pools[&POOL].clone();
            (pool.size, pool.min_size, pool.data_chunks, pool.pg_num) = (4, 3, Some(2), 1);
            w.seen.ceph.pools.insert(2, pool);
            let id = PgId { pool: 2, number: 0 };
            let mut pg = w.seen.ceph.pgs[&pg_id(WITH)].clone();
            pg.pool = 2;
            pg.acting = acting.iter().map(|n| OsdId(*n)).collect();
            pg.degraded = degraded;
            w.seen.ceph.pgs.insert(id, pg);
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
