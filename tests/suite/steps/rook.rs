//! Beside a Rook that runs and can be fenced.

use super::*;

/// Rook runs, honours a fence, and has said that it skipped that version of the CephCluster.
fn beside(world: World, skipped: Option<u64>) -> World {
    world.with(|w| {
        let operator = w.seen.kube.operator.as_mut().unwrap();
        (operator.honours_fence, operator.replicas, operator.pods) = (true, 1, 1);
        w.seen.kube.declaration.confirmed = false;
        w.policy.confirmed = true;
        w.seen.kube.cluster_version = "8".to_owned();
        w.seen.kube.skipped = skipped;
    })
}

fn is_not_heard(next: &Next) -> bool {
    matches!(next, Next::Wait(Wait::Gate { reason: Reason::FenceNotHeard { .. }, .. }))
}

#[test]
fn a_fence_counts_only_when_a_running_rook_was_heard_of_a_later_version() {
    let put_on_7 = |world: World| world.with(|w| w.ledger.run.fence_after = Some(7));
    let prepared = || World::prepared(OSD).fenced(OSD).saved("new");
    for world in [World::intended(OSD), World::stopped(OSD).fenced(OSD), prepared()] {
        for skipped in [None, Some(6), Some(7)] {
            let next = beside(put_on_7(world.clone()), skipped).plan();
            assert!(is_not_heard(&next), "{skipped:?}: {next:?}");
        }
        let heard = beside(put_on_7(world), Some(8));
        check!(heard.plan(), Next::Save { why: Saving::FenceHeard, ledger, .. } if ledger.run.fence_heard);
        // From then on events may be forgotten.
        let act = heard.saved("fence-heard").with(|w| w.seen.kube.skipped = None).plan();
        check!(act, Next::Do(Act::Stop { .. } | Act::Destroy { .. } | Act::Deploy(_)));
    }
}

#[test]
fn a_fence_that_was_taken_off_is_put_on_the_version_that_is_saved_and_heard_anew() {
    let heard = |w: &mut World| {
        (w.ledger.run.fence_after, w.ledger.run.fence_heard) = (Some(7), true);
        w.seen.kube.fence = None;
    };
    let bare = beside(World::intended(OSD).with(heard), Some(8));
    let saved = bare.saved("fence");
    assert_eq!((saved.ledger.run.fence_after, saved.ledger.run.fence_heard), (Some(8), false));
    check!(saved.plan(), Next::Do(Act::Fence { resource_version, .. }) if resource_version == "8");
    // Somebody wrote the CephCluster meanwhile.
    let later = saved.with(|w| w.seen.kube.cluster_version = "9".to_owned());
    check!(later.plan(), Next::Save { why: Saving::Fence, ledger, .. } if ledger.run.fence_after == Some(9));
}

#[test]
fn new_osds_are_left_to_a_rook_that_runs() {
    let select = |w: &mut World| {
        w.policy.skip = [BY_HAND, FILESTORE].into();
        w.seen.kube.declaration.storage.all_nodes = true;
        w.seen.kube.declaration.storage.selection.all = Some(true);
    };
    let done = beside(World::new().with(select), None);
    check!(done.plan(), Next::Finished(summary) if !summary.left_to_rook.is_empty());
    // Who asks for them alone means ours.
    let only_new = done.with(|w| w.policy.only_new = true);
    check!(only_new.plan(), Next::Save { why: Saving::Node { .. }, .. });
}
