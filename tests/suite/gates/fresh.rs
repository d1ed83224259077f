//! PG statistics that are incomplete or older than the last change open no gate.

use osd_migrate::domain::gate::{Gate, Reason};
use osd_migrate::domain::osd::{Epoch, OsdId};

use super::ask::{WITHOUT, after, before, changed};
use crate::support::build::{BY_HAND, POOL, World, pg_id};
use crate::support::check;

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
