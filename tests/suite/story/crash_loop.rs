//! Pods of a run that end repeatedly: after ten of them without progress, the run calls for a person.

use std::collections::BTreeSet;
use std::rc::Rc;

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::ledger::Progress;
use osd_migrate::domain::next::Halt;
use osd_migrate::domain::observation::Observation;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan::{CRASH_LOOP, Questions};
use osd_migrate::domain::policy::Policy;
use osd_migrate::ports::{Cluster, Failure};
use osd_migrate::run::{End, Ports};
use osd_migrate::sim::ports::{Call, Runner, Side, Watch};

use super::play::{BY_HAND, Ended, Log, Play, ended};

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

/// Stops a run right after it stopped an OSD.
fn killed_after_stop(play: &Play) {
    let watch: Watch = Box::new(|call, side, _| {
        matches!((call, side), (Call::Act(Act::Kube(KubeAct::Stop { .. })), Side::Done))
    });
    assert_eq!(play.run_watched(Some(watch)), None);
}

#[test]
fn crash_loop_count_outlives_a_run_of_another_job() {
    let play = after(Play::new(), 7);
    killed_after_stop(&play);
    let noted = |play: &Play| play.sim.borrow().ledger().unwrap().run.progress;
    let of_this = noted(&play);
    assert_eq!(of_this, Some(Progress { job: JOB.to_owned(), failed_pods: 7, left_bytes: None }));
    let other = Play { policy: Policy { run: "another".to_owned(), ..Policy::default() }, ..play };
    assert_eq!(other.run(), Play::finished());
    assert_eq!(noted(&other), of_this);
}

/// A cluster whose observation kills the pod, as one that needs more memory than the pod has.
struct Killing(Runner);

impl Cluster for Killing {
    async fn observe(
        &mut self,
        _: &BTreeSet<OsdId>,
        _: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        panic!("killed")
    }

    async fn ask_again(
        &mut self,
        _: Observation,
        _: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        panic!("killed")
    }

    async fn observe_partly(
        &mut self,
        _: &BTreeSet<OsdId>,
        _: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Option<Observation>, Failure> {
        panic!("killed")
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        self.0.act(act).await
    }
}

#[test]
fn crash_loop_of_pods_killed_by_their_observation_halts() {
    let play = after(Play::new(), 0);
    killed_after_stop(&play);
    assert!(play.sim.borrow().world.ceph.slots[&BY_HAND].noout);
    // The pod that was to halt was killed before.
    let play = after(play, CRASH_LOOP + 1);
    let runner = Runner::new(&play.sim, None);
    let mut ports = Ports {
        cluster: Killing(runner.clone()),
        store: runner.clone(),
        lease: runner.clone(),
        clock: runner,
        audience: Log(Rc::clone(&play.log)),
    };
    assert_eq!(ended(ports.run(&play.policy)), crash_loop(CRASH_LOOP + 1));
    assert!(!play.sim.borrow().world.ceph.slots[&BY_HAND].noout, "Ceph heals without the stopped OSD");
}
