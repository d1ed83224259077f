//! Before a stop all PGs are clean, Ceph answers that it is ok to stop, and one more failure is survived.

use std::collections::BTreeSet;

use osd_migrate::domain::expect;
use osd_migrate::domain::gate::{self, Gate, Reason};
use osd_migrate::domain::ledger::Run;
use osd_migrate::domain::observation::OkToStop;
use osd_migrate::domain::osd::{OsdId, PgId};
use osd_migrate::domain::policy::Accepted;

use super::ask::{WITH, WITHOUT, before, changed, fenced};
use crate::support::build::{BY_HAND, POOL, World, members, node_of, pg_id, states};
use crate::support::check;

// ---- usage

/// Checks an OSD that a person marked out and that is empty: the mgr reports no usage of it.
#[test]
fn osd_that_is_out_and_empty_needs_no_space() {
    let mut world = World::proven(BY_HAND);
    (world.slot(BY_HAND).is_in, world.slot(BY_HAND).used_bytes) = (false, None);
    world.record(BY_HAND).used_bytes = None;
    let gate = |world: &World| gate::enough_space(&world.ledger.records[&BY_HAND], &world.seen);
    assert_eq!(gate(&world), Gate::Unknown(Reason::UsageUnknown));
    for n in 0..8 {
        let pg = world.pg(n);
        pg.up.remove(&BY_HAND);
        pg.acting.remove(&BY_HAND);
    }
    assert_eq!(gate(&world), Gate::Open);
    world.slot(BY_HAND).is_in = true;
    assert_eq!(gate(&world), Gate::Unknown(Reason::UsageUnknown), "it is in");
}

#[test]
fn rollout_of_an_osd_that_has_no_data_is_not_waited_for() {
    let rolling = |up, is_in| {
        let mut world = World::new();
        world.daemon(OsdId(4)).rolled_out = false;
        (world.slot(OsdId(4)).up, world.slot(OsdId(4)).is_in) = (up, is_in);
        let gate = gate::before_restart(BY_HAND, &node_of(BY_HAND), &Run::default(), &world.seen);
        matches!(gate, Gate::Unknown(Reason::RolloutInProgress { osd: OsdId(4) }))
    };
    assert!(rolling(true, true) && rolling(true, false));
    assert!(!rolling(false, false));
    // The Deployment of a purged OSD may stay.
    let mut purged = World::new();
    purged.daemon(OsdId(4)).rolled_out = false;
    purged.seen.ceph.slots.remove(&OsdId(4));
    let gate = gate::before_restart(BY_HAND, &node_of(BY_HAND), &Run::default(), &purged.seen);
    assert!(!matches!(gate, Gate::Unknown(Reason::RolloutInProgress { .. })), "{gate:?}");
}

// ---- clean

#[test]
fn pg_that_lacks_a_replica_of_the_batch_must_share_no_osd() {
    let gate = |number: u32| {
        let other = members(number).into_iter().find(|osd| *osd != BY_HAND).unwrap();
        let world = World::new().pg_state(number, "active+undersized+degraded");
        let world = world.with(|w| w.pg(number).acting.retain(|osd| *osd != other));
        let missing = [(other, [pg_id(number)].into())].into();
        let accepted = Accepted { missing, ..Accepted::default() };
        gate::before_stop(BY_HAND, &node_of(BY_HAND), &fenced(&world), &accepted, &world.seen)
    };
    assert_eq!(gate(WITHOUT), Gate::Open);
    check!(gate(WITH), Gate::Shut(Reason::NotClean { count: 1, .. }));
}

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

#[test]
fn shut_gate_takes_precedence_over_an_unknown_one() {
    let gate = changed(|w| {
        w.seen.kube.nodes.get_mut(&node_of(BY_HAND)).unwrap().ready = false;
        w.seen.ceph.ok_to_stop.clear();
        w.pg(WITHOUT).state = states("active+undersized+degraded");
    });
    check!(gate, Gate::Shut(Reason::NotClean { .. }));
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

/// Checks that a yes of Ceph 20.2.2 and later is not enough.
#[test]
fn ok_to_stop_counts_pgs_that_the_answer_leaves_out() {
    let world = World::new().with(|w| w.seen.ceph.pools.get_mut(&POOL).unwrap().min_size = 3);
    let yes = &world.seen.ceph.ok_to_stop[&BTreeSet::from([BY_HAND])];
    assert!(yes.ok);
    let held = u32::try_from(gate::pgs_of(BY_HAND, &world.seen).len()).unwrap();
    let node = node_of(BY_HAND);
    for gate in [
        before(&world),
        gate::before_restart(BY_HAND, &node, &Run::default(), &world.seen),
        gate::before_last_stop(BY_HAND, &node, &Run::default(), &Accepted::default(), &world.seen),
    ] {
        assert_eq!(gate, Gate::Shut(Reason::NotOkToStop { bad_pgs: held }));
    }
    assert_eq!(expect::to_stop_by_ceph(BY_HAND, yes, &world.seen.ceph), Err(held));
    assert_eq!(expect::to_stop_by_ceph(BY_HAND, yes, &World::new().seen.ceph), Ok(()));
    let no = OkToStop { ok: false, bad_pgs: 7 };
    assert_eq!(expect::to_stop_by_ceph(BY_HAND, &no, &World::new().seen.ceph), Err(7));
}

#[test]
fn pool_whose_code_survives_one_loss_only_shuts_the_gate() {
    for (any_losses, open) in [(None, true), (Some(2), true), (Some(1), false), (Some(0), false)] {
        let gate = changed(|w| {
            let pool = w.seen.ceph.pools.get_mut(&POOL).unwrap();
            (pool.size, pool.data_chunks, pool.any_losses) = (8, Some(4), any_losses);
        });
        assert_eq!(gate == Gate::Open, open, "{any_losses:?}: {gate:?}");
        assert!(open || matches!(gate, Gate::Shut(Reason::NoRedundancy { .. })), "{gate:?}");
    }
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
        w.seen.ceph.pgs.insert(PgId { pool: 2, number: 0 }, pg);
    });
    assert_eq!(gate, Gate::Open);
}
