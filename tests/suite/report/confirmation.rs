//! Runs that lose their confirmation, or have none.

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::policy::Policy;
use osd_migrate::domain::removal::DiskAfter;
use osd_migrate::exit::needs_only_confirmation;
use osd_migrate::report::RunProgress;
use osd_migrate::run::End;
use osd_migrate::sim::ports::{Call, Side, Watch};

use crate::story::play::{BY_HAND, FILESTORE, Play, six_with_spares};
use crate::telemetry::{progress, run};

/// Removes the confirmation when osd.0 is stopped, and kills the run then if `kills`.
fn removed_at_stop(kills: bool) -> Option<Watch> {
    Some(Box::new(move |call, side, world| {
        let is_stopped = matches!((call, side), (Call::Act(Act::Kube(KubeAct::Stop { .. })), Side::Done));
        if is_stopped {
            world.kube.declaration.confirmed = false;
        }
        is_stopped && kills
    }))
}

#[test]
fn run_that_only_completes_an_osd_needs_only_a_confirmation() {
    let play = Play::new();
    assert_eq!(run(&play, removed_at_stop(true), &progress(), &mut |_, _, _| {}), None, "killed");
    let other_job = progress();
    let end = run(&play, None, &other_job, &mut |_, _, _| {});
    let Some(Ok(End::Finished(summary))) = end else { panic!("{end:?}") };
    assert_eq!((&summary.unconfirmed, other_job.borrow().pace.done), (&[FILESTORE].into(), 1));
    assert!(needs_only_confirmation(&summary, other_job.borrow().pace.confirmed, false));
}

#[test]
fn run_that_lost_its_confirmation_is_known_after_a_restart() {
    for kills in [false, true] {
        let (play, of_job) = (Play::new(), progress());
        let first = run(&play, removed_at_stop(kills), &of_job, &mut |_, _, _| {});
        assert_eq!(first.is_none(), kills);
        let end = first.or_else(|| run(&play, None, &of_job, &mut |_, _, _| {}));
        let Some(Ok(End::Finished(summary))) = end else { panic!("{end:?}") };
        assert_eq!(summary.unconfirmed, [FILESTORE].into());
        assert!(!needs_only_confirmation(&summary, of_job.borrow().pace.confirmed, false));
    }
    assert!(!RunProgress::of_job("another", None).pace.confirmed);
}

/// Checks the run that `remove --confirm` starts.
#[test]
fn run_that_only_removes_an_osd_needs_only_a_confirmation() {
    let mut world = six_with_spares();
    world.request_removal(BY_HAND, DiskAfter::Wipe);
    world.kube.declaration.confirmed = false;
    let policy = Policy { removals: true, ..Policy::default() };
    let (play, of_job) = (Play::with_policy(world, policy, 1), progress());
    let end = run(&play, None, &of_job, &mut |_, _, _| {});
    let Some(Ok(End::Finished(summary))) = end else { panic!("{end:?}") };
    assert_eq!((&summary.unconfirmed, of_job.borrow().pace.done), (&[FILESTORE].into(), 1));
    assert!(needs_only_confirmation(&summary, of_job.borrow().pace.confirmed, false));
}
