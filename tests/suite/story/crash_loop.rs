//! Pods of a run that end repeatedly: after ten of them without progress, the run calls for a person.

use osd_migrate::domain::ledger::Progress;
use osd_migrate::domain::next::Halt;
use osd_migrate::domain::plan::CRASH_LOOP;
use osd_migrate::domain::policy::Policy;
use osd_migrate::run::End;

use super::play::{Ended, Play};

const JOB: &str = "uid-of-the-job";

/// Returns the play of the next pod of a Job of which `failed_pods` pods failed.
fn after(play: Play, failed_pods: u32) -> Play {
    Play { policy: Policy { run: JOB.to_owned(), failed_pods, ..Policy::default() }, ..play }
}

fn crash_loop(starts: u32) -> Ended {
    Some(Ok(End::Halted(Halt::CrashLoop { job: JOB.to_owned(), starts })))
}

#[test]
fn crash_loop_of_ten_pods_halts_and_changes_nothing() {
    let play = after(Play::new(), CRASH_LOOP);
    let version = play.sim.borrow().version();
    assert_eq!(play.run(), crash_loop(CRASH_LOOP));
    assert_eq!(
        (play.sim.borrow().done.len(), play.sim.borrow().version()),
        (0, version),
        "it did, or wrote, something"
    );
}

#[test]
fn crash_loop_of_nine_pods_resumes_and_progress_resets_it() {
    let play = after(Play::new(), CRASH_LOOP - 1);
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
    let noted = play.sim.borrow().ledger().unwrap().run.progress;
    let failed_pods = CRASH_LOOP - 1;
    assert_eq!(noted, Some(Progress { job: JOB.to_owned(), failed_pods, left_bytes: None }));
    let play = after(play, 2 * CRASH_LOOP - 2);
    assert_eq!(play.run(), Play::finished(), "nine more");
    let play = after(play, 2 * CRASH_LOOP - 1);
    assert_eq!(play.run(), crash_loop(CRASH_LOOP));
    // Another Job has its own count.
    let other =
        Play { policy: Policy { run: "another".to_owned(), failed_pods: 3, ..Policy::default() }, ..play };
    assert_eq!(other.run(), Play::finished());
}
