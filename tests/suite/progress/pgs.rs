//! States of PGs that endanger no data block no OSD and revert no stop.

use osd_migrate::domain::act::{Act, CephAct};
use osd_migrate::domain::gate::{self, Gate, Reason};
use osd_migrate::domain::next::{Next, Saving, Wait};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::policy::{Accepted, Missing, RequireClean};

use super::sick::SICK;
use crate::support::build::{World, members, node_of, word};
use crate::support::check;

#[test]
fn require_clean_own_accepts_pgs_that_miss_no_copy() {
    let begun = |world: &World| matches!(world.plan(), Next::Save { why: Saving::Record, .. });
    let own = |w: &mut World| w.policy.require_clean = RequireClean::Own;
    let elsewhere = (0..8).find(|n| !members(*n).contains(&SICK)).unwrap();
    let ours = (0..8).find(|n| members(*n).contains(&SICK)).unwrap();
    let alone = |w: &mut World| w.policy.select = [SICK].into();
    for state in [
        "active+clean+remapped",
        "active+clean+inconsistent",
        "active+clean+laggy",
        "active+remapped+backfilling",
    ] {
        let world = World::new().with(alone).pg_state(elsewhere, state);
        assert!(!begun(&world), "all PGs have to be clean by default: {state}");
        assert!(begun(&world.with(own)), "{state}");
    }
    // For a PG that shares the OSD, another copy must be certain to be good.
    assert!(begun(&World::new().with(alone).with(own).pg_state(ours, "active+clean+remapped")));
    for state in ["active+clean+inconsistent", "active+recovering+degraded", "active+clean+premerge"] {
        assert!(!begun(&World::new().with(alone).with(own).pg_state(ours, state)), "{state}");
    }
    // A copy is missing elsewhere.
    assert!(!begun(
        &World::new()
            .with(alone)
            .with(own)
            .pg_state(elsewhere, "active+undersized+degraded")
            .with(move |w| w.pg(elsewhere).acting = [OsdId(5)].into())
    ));
    // Rook's own setting accepts the same states, in the order in which Ceph prints them.
    let regex = |w: &mut World| {
        w.seen.kube.declaration.pg_healthy_regex =
            Some(r"^active\+clean(\+scrubbing\+deep)?(\+remapped)?$".to_owned());
    };
    let remapped = World::new().with(alone).pg_state(elsewhere, "active+clean+remapped").with(regex);
    assert!(begun(&remapped));
    assert!(!begun(&remapped.pg_state(elsewhere, "active+clean+inconsistent")));
}

#[test]
fn pgs_that_merge_or_recover_revert_no_stop() {
    let after = |world: &World| {
        gate::after_stop(&world.ledger.records[&SICK], &world.ledger.run, &Missing::new(), &world.seen)
    };
    let elsewhere = (0..8).find(|n| !members(*n).contains(&SICK)).unwrap();
    let ours = (0..8).find(|n| members(*n).contains(&SICK)).unwrap();
    for state in ["clean+premerge+peered", "active+recovering", "active+recovery_wait"] {
        let world = World::stopped(SICK).pg_state(elsewhere, state);
        check!(after(&world), Gate::Unknown(Reason::Peering { .. }));
        check!(world.plan(), Next::Wait(Wait::Gate { .. }));
    }
    check!(
        after(&World::stopped(SICK).pg_state(ours, "active+recovering+undersized+degraded")),
        Gate::Unknown(Reason::Peering { .. })
    );
    // Clients write: objects of a PG elsewhere are behind for a second.
    let behind = World::stopped(SICK)
        .pg_state(elsewhere, "active+recovering+degraded")
        .with(|w| w.pg(elsewhere).degraded = 3);
    check!(after(&behind), Gate::Unknown(_));
    // Before the stop the pools of the OSD must not be merging.
    let merging =
        World::intended(SICK).with(|w| w.seen.ceph.pools.values_mut().for_each(|pool| pool.merges = true));
    let gate =
        gate::before_stop(SICK, &node_of(SICK), &merging.ledger.run, &Accepted::default(), &merging.seen);
    check!(gate, Gate::Unknown(Reason::Merging { .. }));
}

#[test]
fn repair_of_a_pg_elsewhere_holds_up_no_stopped_osd() {
    let elsewhere = (0..8).find(|n| !members(*n).contains(&SICK)).unwrap();
    let ours = (0..8).find(|n| members(*n).contains(&SICK)).unwrap();
    for state in ["active+clean+scrubbing+deep+repair", "active+clean+scrubbing+deep+inconsistent+repair"] {
        let world = World::stopped(SICK).pg_state(elsewhere, state);
        check!(world.plan(), Next::Do(Act::Ceph(CephAct::Destroy { .. })));
    }
    let world = World::stopped(SICK).pg_state(ours, "active+undersized+degraded+scrubbing+deep+repair");
    check!(world.plan(), Next::Wait(Wait::Gate { reason: Reason::Peering { .. }, .. }));
}

#[test]
fn inconsistent_copy_of_its_own_pg_reverts_the_stop() {
    let elsewhere = (0..8).find(|n| !members(*n).contains(&SICK)).unwrap();
    let ours = (0..8).find(|n| members(*n).contains(&SICK)).unwrap();
    let world = World::stopped(SICK).pg_state(ours, "active+undersized+degraded+inconsistent");
    assert_eq!(word(&world.plan()), Some("revert-stop"));
    let world = World::stopped(SICK).pg_state(elsewhere, "active+clean+inconsistent");
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::Destroy { .. })));
}
