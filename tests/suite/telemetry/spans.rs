//! Spans of records that a run finds quarantined, or quarantines.

use chrono::{DateTime, TimeDelta, Utc};

use osd_migrate::domain::ledger::{Ledger, Quarantine};
use osd_migrate::domain::next::Saving;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::report::{Event, RunSpans, Span};

use super::JOB;
use crate::support::build::World;

/// Returns a ledger with one record in progress, its OSD, and its time.
fn recorded() -> (Ledger, OsdId, DateTime<Utc>) {
    let world = World::new().saved("record");
    let osd = *world.ledger.records.keys().next().unwrap();
    (world.ledger, osd, world.seen.at)
}

/// Quarantines the OSD as the run does.
fn quarantined(ledger: &Ledger, osd: OsdId, since: DateTime<Utc>) -> Ledger {
    let mut record = ledger.records[&osd].clone();
    record.milestones.push(("quarantine".to_owned(), since));
    record.quarantine = Some(Quarantine { why: "it failed".to_owned(), since });
    ledger.with(record)
}

fn names(spans: &[Span]) -> Vec<&'static str> {
    spans.iter().map(|span| span.name).collect()
}

fn saved(
    spans: &mut RunSpans,
    osd: Option<OsdId>,
    why: &Saving,
    ledger: &Ledger,
    at: DateTime<Utc>,
) -> Vec<Span> {
    spans.add(&Event::Saved { osd, why, ledger }, at, at)
}

#[test]
fn osd_that_an_earlier_run_quarantined_has_no_spans() {
    let (ledger, osd, at) = recorded();
    let ledger = quarantined(&ledger, osd, at + TimeDelta::seconds(9));
    let mut spans = RunSpans::of_job(JOB);
    for _ in 0..3 {
        assert_eq!(saved(&mut spans, None, &Saving::Fence, &ledger, at), []);
    }
    // A person has it retried.
    let retried = ledger.retried(osd, at).unwrap();
    let ended = saved(&mut spans, None, &Saving::Fence, &retried, at);
    assert_eq!(names(&ended), ["inspect", "node-job"]);
}

#[test]
fn osd_that_the_run_quarantines_has_a_span_with_the_reason() {
    let (ledger, osd, at) = recorded();
    let mut spans = RunSpans::of_job(JOB);
    assert_eq!(saved(&mut spans, Some(osd), &Saving::Record, &ledger, at), []);
    let later = at + TimeDelta::seconds(9);
    let why = Saving::Quarantine { why: "it failed".to_owned() };
    let ended = saved(&mut spans, Some(osd), &why, &quarantined(&ledger, osd, later), later);
    assert_eq!(names(&ended), ["inspect", "node-job", "osd"]);
    let span = &ended[2];
    assert_eq!((span.start, span.end, span.error.as_deref()), (at, later, Some("it failed")));
}

#[test]
fn node_job_that_fails_and_is_repeated_has_a_span_for_each_attempt() {
    let (ledger, osd, at) = recorded();
    let mut spans = RunSpans::of_job(JOB);
    saved(&mut spans, Some(osd), &Saving::Record, &ledger, at);
    let attempt = |after: Option<&str>| Saving::Attempt {
        task: osd_migrate::domain::inspection::NodeTask::Inspect,
        after: after.map(str::to_owned),
    };
    let mut ended = Vec::new();
    for (second, why) in [(10, "the node went away"), (20, "no disk")] {
        let now = at + TimeDelta::seconds(second);
        let mut record = ledger.records[&osd].clone();
        // A repeated milestone replaces the last one.
        record.milestones.push(("inspect".to_owned(), now));
        ended.extend(saved(&mut spans, Some(osd), &attempt(Some(why)), &ledger.with(record), now));
    }
    let jobs: Vec<_> = ended.iter().map(|span| (span.name, span.error.as_deref().unwrap())).collect();
    assert_eq!(jobs, [("node-job", "the node went away"), ("node-job", "no disk")]);
    assert_eq!((ended[0].end, ended[1].start), (at + TimeDelta::seconds(10), at + TimeDelta::seconds(10)));
    assert_eq!(ended[0].parent, ended[1].parent);
}
