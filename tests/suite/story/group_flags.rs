//! `nodown` on one OSD: it is not stopped, and a stop before the flag is reverted. The others are migrated.

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::next::Summary;
use osd_migrate::run::End;
use osd_migrate::sim::ports::{Call, Side, Watch};

use super::play::{BY_HAND, FILESTORE, Play, count, old};

/// Returns the summary of a run that ended, without a wait for the OSD.
fn ended(play: &Play, watch: Option<Watch>) -> Summary {
    match play.run_watched(watch) {
        Some(Ok(End::Finished(summary))) => summary,
        other => panic!("{other:?}"),
    }
}

/// Asserts that osd.0 serves with its old data, and that the other OSD was migrated.
fn assert_only_the_other_is_migrated(play: &Play) {
    assert_eq!(count(play, |act| matches!(act, Act::Ceph(CephAct::Destroy { osd: BY_HAND, .. }))), 0);
    let sim = play.sim.borrow();
    let world = &sim.world;
    let (slot, daemon) = (&world.ceph.slots[&BY_HAND], &world.kube.daemons[&BY_HAND]);
    assert_eq!((slot.up, slot.fsid, daemon.replicas), (true, Some(old(BY_HAND)), 1));
    assert_eq!((slot.noout, slot.noin, daemon.pods.len()), (false, false, 1));
    assert_ne!(world.ceph.slots[&FILESTORE].fsid, Some(old(FILESTORE)));
}

#[test]
fn osd_with_nodown_is_not_stopped() {
    let play = Play::new();
    play.sim.borrow_mut().world.osd_nodown(BY_HAND, true);
    let summary = ended(&play, None);
    let [(BY_HAND, why)] = summary.skipped.as_slice() else { panic!("{summary:?}") };
    assert!(why.contains("ceph osd unset-group nodown osd.0"), "{why}");
    assert_eq!(count(&play, |act| matches!(act, Act::Kube(KubeAct::Stop { osd: BY_HAND, .. }))), 0);
    assert_only_the_other_is_migrated(&play);
    play.sim.borrow_mut().world.osd_nodown(BY_HAND, false);
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
}

#[test]
fn stop_of_an_osd_that_gets_nodown_is_reverted() {
    let play = Play::new();
    let sets: Watch = Box::new(|call, side, world| {
        if let (Call::Act(Act::Kube(KubeAct::Stop { osd: BY_HAND, .. })), Side::Done) = (call, side) {
            world.osd_nodown(BY_HAND, true);
        }
        false
    });
    let summary = ended(&play, Some(sets));
    assert_eq!(count(&play, |act| matches!(act, Act::Kube(KubeAct::Stop { osd: BY_HAND, .. }))), 1);
    assert_eq!(count(&play, |act| matches!(act, Act::Kube(KubeAct::Restart { osd: BY_HAND, .. }))), 1);
    let [(BY_HAND, why)] = summary.quarantined.as_slice() else { panic!("{summary:?}") };
    assert!(why.contains("ceph osd unset-group nodown osd.0"), "{why}");
    assert_only_the_other_is_migrated(&play);
}
