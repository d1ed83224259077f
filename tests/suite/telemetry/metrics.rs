//! Figures and metrics of simulated runs.
#![allow(clippy::float_cmp)] // counts are whole numbers

use std::collections::BTreeMap;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta};

use osd_migrate::domain::act::{Act, NodeAct};
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::next::{FenceOutcome, Halt, Saving, Summary};
use osd_migrate::domain::observation::SlotState;
use osd_migrate::report::{Event, Figures};
use osd_migrate::sim::Happening;
use osd_migrate::telemetry::Metrics;

use super::{progress, run};
use crate::story::play::{BY_HAND, Play};

/// Returns each series of a text, with its value.
pub(super) fn series(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
    };
    lines.map(value).collect()
}

/// Runs over a play, and returns the figures and the series after each event.
fn played(play: &Play) -> Vec<(Figures, BTreeMap<String, f64>)> {
    let (metrics, mut figures, mut all) = (Metrics::default(), Figures::default(), Vec::new());
    run(play, None, &progress(), &mut |event, progress, now| {
        figures.add(event, progress, now);
        metrics.set(&figures);
        all.push((figures.clone(), series(&metrics.text())));
    });
    all
}

#[test]
fn metrics_of_a_run_follow_its_osds() {
    let play = Play::new();
    let began = play.sim.borrow().world.at;
    let all = played(&play);
    let value = |at: &BTreeMap<String, f64>, name: &str| *at.get(name).unwrap_or(&f64::NAN);
    let highest = |name: &str| all.iter().map(|(_, at)| value(at, name)).fold(0.0, f64::max);
    // One at a time, down while it is migrated, behind a fence and flags.
    assert_eq!(highest("osd_migrate_osds{state=\"in-progress\"}"), 1.0);
    assert_eq!(highest("osd_migrate_osds_down"), 1.0);
    assert_eq!(highest("osd_migrate_temporary_change{change=\"flags\"}"), 1.0);
    assert!(highest("osd_migrate_left_bytes") > 1e9, "{}", highest("osd_migrate_left_bytes"));
    assert!(highest("osd_migrate_rate_bytes_per_second") > 1e6);
    let (_, end) = all.last().unwrap();
    let states = ["done", "in-progress", "queued", "quarantined", "refused"];
    let states = states.map(|state| value(end, &format!("osd_migrate_osds{{state=\"{state}\"}}")));
    assert_eq!(states, [2.0, 0.0, 0.0, 0.0, 0.0]);
    for name in ["osds_down", "left_bytes", "stalled", "halted", "temporary_change{change=\"flags\"}"] {
        assert_eq!(value(end, &format!("osd_migrate_{name}")), 0.0, "{name}");
    }
    assert_eq!(value(end, "osd_migrate_finished"), 1.0);
    let sim = play.sim.borrow();
    let took = (sim.world.at - began).as_seconds_f64();
    let waited: f64 = end.iter().filter(|(name, _)| name.contains("wait_seconds")).map(|(_, s)| s).sum();
    assert!(waited > took * 0.9 && waited <= took + 0.001, "a run waits nearly always: {waited} of {took} s");
    assert!(value(end, "osd_migrate_wait_seconds_total{code=\"backfilling\"}") > 0.0, "{end:?}");
    let jobs = sim.done.iter().filter(|act| matches!(act, Act::Node(NodeAct::Agent { .. }))).count();
    let counted: f64 = end.iter().filter(|(name, _)| name.contains("node_jobs_total")).map(|(_, s)| s).sum();
    assert_eq!(counted, f64::from(u32::try_from(jobs).unwrap()));
    let last = value(end, "osd_migrate_last_iteration_timestamp_seconds");
    assert_eq!(last, (sim.world.at - DateTime::UNIX_EPOCH).as_seconds_f64());
    assert!(end.len() < 60, "low cardinality: {end:?}");
    assert!(!end.keys().any(|name| name.contains("osd.")), "no OSD is a label: {end:?}");
}

#[test]
fn metrics_never_decrease_a_counter() {
    let all = played(&Play::new());
    for pair in all.windows(2) {
        for (name, before) in pair[0].1.iter().filter(|(name, _)| name.contains("_total")) {
            assert!(pair[1].1[name] >= *before, "{name}");
        }
    }
}

#[test]
fn metrics_of_a_halt_have_its_code_and_the_osd_that_is_down() {
    let play = Play::new();
    play.sim.borrow_mut().add_fault(Rc::new(|world, _| {
        let is_destroyed =
            world.ceph.slots.get(&BY_HAND).is_some_and(|slot| slot.state == SlotState::Destroyed);
        if is_destroyed { vec![(TimeDelta::zero(), Happening::PersonPurges(BY_HAND))] } else { Vec::new() }
    }));
    let all = played(&play);
    let (figures, end) = all.last().unwrap();
    assert_eq!(figures.halted, Some("quarantined-not-clean"));
    assert_eq!(end["osd_migrate_halted"], 1.0);
    assert_eq!(end["osd_migrate_halt_info{code=\"quarantined-not-clean\"}"], 1.0, "{end:?}");
    assert_eq!(end["osd_migrate_osds_down"], 1.0);
    assert_eq!(end["osd_migrate_finished"], 0.0);
}

/// Checks that such a run does not replace the last values of the run before, which the alerts ask for.
#[test]
fn halt_before_the_ledger_is_known_says_nothing_about_osds() {
    let (metrics, mut figures) = (Metrics::default(), Figures::default());
    let now = Play::new().sim.borrow().world.at;
    let halt = Halt::CrashLoop { job: "x".to_owned(), starts: 10 };
    figures.add(&Event::Halted(&halt), &progress().borrow(), now);
    metrics.set(&figures);
    let all = series(&metrics.text());
    let names: Vec<_> = all.keys().map(String::as_str).collect();
    let code = "osd_migrate_halt_info{code=\"crash-loop\"}";
    assert_eq!(names, ["osd_migrate_finished", code, "osd_migrate_halted"], "{all:?}");
}

/// Returns the series after these events of a run, or of `fence`.
fn after(of_fence: bool, events: &[Event<'_>]) -> BTreeMap<String, f64> {
    let (metrics, mut figures) = (Metrics::default(), Figures::default());
    if of_fence {
        metrics.hide_run();
    }
    let now = Play::new().sim.borrow().world.at;
    for event in events {
        figures.add(event, &progress().borrow(), now);
        metrics.set(&figures);
    }
    series(&metrics.text())
}

#[test]
fn run_that_only_finishes_says_which_changes_are_left() {
    let changes = |summary: &Summary| {
        let all = after(false, &[Event::Finished(summary)]);
        let of_changes = all.into_iter().filter(|(name, _)| name.contains("change="));
        of_changes.filter(|(_, is)| *is > 0.0).map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert!(changes(&Summary::default()).is_empty());
    let all = after(false, &[Event::Finished(&Summary::default())]);
    assert_eq!(all.keys().filter(|name| name.contains("change=")).count(), 8, "each of them is 0");
    // A Job of Rook keeps the key: the run before has left it.
    let summary = Summary { changes: ["bootstrap"].into(), ..Summary::default() };
    assert_eq!(changes(&summary), ["osd_migrate_temporary_change{change=\"bootstrap\"}"]);
}

#[test]
fn fence_serves_changes_and_no_end_of_a_run() {
    let (ledger, why) = (Ledger::default(), Saving::Unfenced);
    let saved = Event::Saved { osd: None, why: &why, ledger: &ledger };
    let removed = Summary { fence: Some(FenceOutcome::Removed), ..Summary::default() };
    let all = after(true, &[saved, Event::Finished(&removed)]);
    assert_eq!(all["osd_migrate_temporary_change{change=\"fence\"}"], 0.0);
    assert!(!all.contains_key("osd_migrate_halted"), "{all:?}");
    // Without the ledger, it does not know that no OSD is down.
    assert!(after(true, &[Event::Finished(&removed)]).is_empty());
}

#[test]
fn metrics_are_empty_until_an_iteration_observed_the_cluster() {
    let (metrics, mut figures) = (Metrics::default(), Figures::default());
    let now = Play::new().sim.borrow().world.at;
    figures.add(&Event::Lease("waiting until pod x of an earlier run has ended"), &progress().borrow(), now);
    metrics.set(&figures);
    assert_eq!(metrics.text(), "# EOF\n");
    figures.add(&Event::Blind("no answer"), &progress().borrow(), now);
    metrics.set(&figures);
    assert_eq!(metrics.text(), "# EOF\n");
    figures.add(&Event::Conflict, &progress().borrow(), now);
    metrics.set(&figures);
    assert_eq!(series(&metrics.text())["osd_migrate_failures_total{kind=\"observation\"}"], 1.0);
}

#[test]
fn metric_of_a_stall_is_set_after_ten_minutes_and_cleared_at_the_end() {
    let play = Play::new();
    // A PG of 1 GiB takes 20 minutes.
    play.sim.borrow_mut().schedule.rate = 900 << 10;
    let all = played(&play);
    let stalled = |at: &BTreeMap<String, f64>| at["osd_migrate_stalled"] == 1.0;
    let first = all.iter().find(|(_, at)| at.contains_key("osd_migrate_stalled") && stalled(at)).unwrap();
    assert!(first.1["osd_migrate_osds{state=\"in-progress\"}"] == 1.0, "{:?}", first.1);
    assert!(!stalled(&all.last().unwrap().1));
}
