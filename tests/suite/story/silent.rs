//! Watches that report nothing: a run sees changes late, and ends all the same.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use chrono::TimeDelta;

use osd_migrate::domain::act::Act;
use osd_migrate::domain::observation::{Listed, Observation};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan::Questions;
use osd_migrate::ports::{Cluster, Failure};
use osd_migrate::run::Ports;
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::ports::Runner;

use super::play::{Log, Play, ended};
use super::removal::{assert_removed, requested};

/// Longest time without a complete observation.
const KEPT: TimeDelta = TimeDelta::minutes(2);

/// A runner to which no watch reports anything, not even what it does itself.
///
/// Partial observations have nothing new of Kubernetes. Complete ones have nothing new of Deployments and
/// pods of OSDs that are not in progress.
struct Silent {
    runner: Runner,
    kept: Option<Observation>,
    listed: Option<Listed>,
    sim: Rc<RefCell<Sim>>,
    /// Partial observations.
    partial: u32,
    /// Complete observations in which other OSDs were as listed before.
    by_list: u32,
    /// The last complete observation was one of them.
    is_by_list: bool,
}

impl Cluster for Silent {
    async fn observe(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        let Observation { at, ceph, kube, failed } =
            self.sim.borrow().world.observe(|_| Questions::default()).unanswered();
        let listed = self.listed.take().filter(|listed| listed.is_young(at));
        self.is_by_list = listed.is_some();
        self.by_list += u32::from(self.is_by_list);
        let (kube, listed) = if let Some(listed) = listed {
            let read = listed.read_each_time(in_progress);
            listed.complete(kube, &read)
        } else {
            let listed = Listed::of(&kube, at);
            (kube, listed)
        };
        self.listed = listed;
        let seen = self.runner.ask_again(Observation { at, ceph, kube, failed }, ask).await?;
        self.kept = Some(seen.clone());
        Ok(seen)
    }

    fn forget_list(&mut self) -> bool {
        self.listed = None;
        self.is_by_list
    }

    async fn ask_again(
        &mut self,
        seen: Observation,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        self.runner.ask_again(seen, ask).await
    }

    async fn observe_partly(
        &mut self,
        _: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Option<Observation>, Failure> {
        let Some(kept) = &self.kept else { return Ok(None) };
        let Observation { at, ceph, failed, .. } =
            self.sim.borrow().world.observe(|_| Questions::default()).unanswered();
        let Some(ceph) = ceph.completed_by(&kept.ceph).filter(|_| at - kept.at < KEPT) else {
            return Ok(None);
        };
        let seen = Observation { at, ceph, kube: kept.kube.clone(), failed };
        self.partial += 1;
        self.runner.ask_again(seen, ask).await.map(Some)
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        let listed = self.listed.take();
        self.runner.act(act).await?;
        self.listed = listed.filter(|_| !act.changes_other_osds());
        Ok(())
    }
}

/// Runs to the end, and returns the number of partial observations.
fn run(play: &Play) -> u32 {
    let runner = Runner::new(&play.sim, None);
    let cluster = Silent {
        runner: runner.clone(),
        kept: None,
        listed: None,
        sim: Rc::clone(&play.sim),
        partial: 0,
        by_list: 0,
        is_by_list: false,
    };
    let (store, lease, clock) = (runner.clone(), runner.clone(), runner);
    let mut ports = Ports { cluster, store, lease, clock, audience: Log(Rc::clone(&play.log)) };
    assert_eq!(ended(ports.run(&play.policy)), Play::finished());
    assert!(ports.cluster.by_list > 10);
    assert!(!ports.cluster.is_by_list, "before the end, all OSDs are listed");
    ports.cluster.partial
}

#[test]
fn run_whose_watches_report_nothing_ends_the_same() {
    for seed in 1..=5 {
        let play = Play::seeded(seed);
        assert!(run(&play) > 10);
        play.assert_all_is_well();
        play.assert_once_per_incarnation();
    }
}

#[test]
fn removal_whose_watches_report_nothing_ends_the_same() {
    let play = requested();
    assert!(run(&play) > 10);
    assert_removed(&play);
}

#[test]
fn partner_outage_whose_watches_report_nothing_ends_the_same() {
    let play = Play::new();
    play.partner_fails();
    assert!(run(&play) > 10);
    play.assert_all_is_well();
}
