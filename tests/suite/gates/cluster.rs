//! The state of the cluster closes the gates: flags, health, nodes, releases and ambiguous objects.

use osd_migrate::domain::gate::{Gate, Reason};
use osd_migrate::domain::observation::{Ambiguity, Releases};
use osd_migrate::domain::osd::{Epoch, NodeName, OsdId};

use super::ask::{WITHOUT, after, changed, health};
use crate::support::build::{BY_HAND, FILESTORE, World, node_of};
use crate::support::check;

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
    let unusual = |osds: &[OsdId]| {
        let one = Ambiguity::of(osds.iter().copied(), "osd.1 has two Deployments: a and b".to_owned());
        move |w: &mut World| w.seen.kube.ambiguities.push(one.clone())
    };
    for osds in [&[][..], &[BY_HAND]] {
        check!(changed(unusual(osds)), Gate::Shut(Reason::AmbiguousObjects { what }) if what.contains("osd.1"));
    }
    assert_eq!(changed(unusual(&[FILESTORE])), Gate::Open, "another OSD");
    let unusual = unusual(&[]);
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
