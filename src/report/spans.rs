//! Spans of a run's trace: run, OSD, stage, node Job. They follow from the milestones in the ledger, so a run
//! that is started again continues its trace.
//!
//! A span is reported when it ends. Its id follows from the record, and its start from the ledger: if a run
//! was killed, the next one reports the spans of the OSDs in progress again, with the same ids and times.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::domain::ledger::{Ledger, Record};
use crate::domain::next::Saving;
use crate::domain::osd::OsdId;
use crate::domain::stage::{Passed, Stage, passed};
use crate::report::Event;

/// Milestones at which a node Job starts, with its task. The first inspection is saved with the record.
const NODE_JOBS: [(&str, &str); 6] = [
    ("record", "inspect"),
    ("inspect", "inspect"),
    ("rebuild", "rebuild"),
    ("restore-slot", "restore-slot"),
    ("clear", "clear"),
    ("wipe", "wipe"),
];

/// Span of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Id of the span in its trace.
    pub id: u64,
    /// Id of the span around it; none for the run.
    pub parent: Option<u64>,
    /// Name.
    pub name: &'static str,
    /// Start.
    pub start: DateTime<Utc>,
    /// End.
    pub end: DateTime<Utc>,
    /// Attributes.
    pub attributes: Vec<(&'static str, String)>,
    /// Reason why it failed, if it did.
    pub error: Option<String>,
}

/// Parts of a record that its spans need, as of the last event.
#[derive(Debug, Clone)]
struct Known {
    record: String,
    node: String,
    class: &'static str,
    milestones: Vec<(String, DateTime<Utc>)>,
    /// Start of each stage, which a repeated milestone moves in the ledger.
    starts: BTreeMap<usize, DateTime<Utc>>,
}

/// Spans of a run, from its events.
#[derive(Debug, Clone)]
pub struct RunSpans {
    job: String,
    osds: BTreeMap<OsdId, Known>,
    reported: BTreeSet<u64>,
    /// OSDs that an earlier run quarantined: none until a ledger was seen.
    earlier: Option<BTreeSet<OsdId>>,
}

impl RunSpans {
    /// Starts or continues the spans of a Job, by its uid.
    pub fn of_job(job: &str) -> Self {
        Self { job: job.to_owned(), osds: BTreeMap::new(), reported: BTreeSet::new(), earlier: None }
    }

    /// Takes up an event, and returns the spans that ended with it.
    ///
    /// `began` is the start of the run, which may be that of an earlier pod.
    pub fn add(&mut self, event: &Event<'_>, began: DateTime<Utc>, now: DateTime<Utc>) -> Vec<Span> {
        let ended = match event {
            Event::Saved { osd, why, ledger } => {
                let mut ended = Vec::from_iter(self.failed_job(*osd, why, now));
                ended.extend(self.take_up(ledger, *osd, now));
                ended
            }
            Event::Waiting { ledger, .. } => self.take_up(ledger, None, now),
            Event::Finished(_) => self.run_ended(event.code(), None, began, now),
            Event::Halted(_) => self.run_ended(event.code(), Some(&event.to_string()), began, now),
            Event::Conflict | Event::Done(_) | Event::NotDone { .. } | Event::Blind(_) | Event::Lease(_) => {
                Vec::new()
            }
        };
        ended.into_iter().filter(|span| self.reported.insert(span.id)).collect()
    }

    /// Returns the spans of records that changed, are new to this process, or are gone.
    fn take_up(&mut self, ledger: &Ledger, saved: Option<OsdId>, now: DateTime<Utc>) -> Vec<Span> {
        let quarantined = ledger.quarantined().map(|record| record.osd).filter(|osd| saved != Some(*osd));
        let mut earlier = self.earlier.take().unwrap_or_else(|| quarantined.collect());
        let mut ended = Vec::new();
        for (osd, record) in &ledger.records {
            // An OSD that an earlier run quarantined is no part of this run, unless a person has it retried.
            if record.quarantine.is_none() {
                earlier.remove(osd);
            }
            if earlier.contains(osd) || (self.osds.contains_key(osd) && saved != Some(*osd)) {
                continue;
            }
            let known = Known::of(record, self.osds.remove(osd));
            ended.extend(known.ended(*osd));
            if let Some(quarantine) = &record.quarantine {
                ended.push(self.osd_span(*osd, &known, quarantine.since, Some(&quarantine.why)));
            }
            self.osds.insert(*osd, known);
        }
        self.earlier = Some(earlier);
        let gone: Vec<OsdId> =
            self.osds.keys().filter(|osd| !ledger.records.contains_key(osd)).copied().collect();
        for osd in gone {
            if let Some(known) = self.osds.remove(&osd) {
                ended.extend(self.all(osd, &known, now, None));
            }
        }
        ended
    }

    /// Returns the span of a node Job that failed and is repeated: the next save of it overwrites its start.
    fn failed_job(&self, osd: Option<OsdId>, why: &Saving, now: DateTime<Utc>) -> Option<Span> {
        let Saving::Attempt { after: Some(error), .. } = why else { return None };
        let known = self.osds.get(&osd?)?;
        let number = known.milestones.len().checked_sub(1)?;
        let stage = passed(&known.milestones).len().checked_sub(1)?;
        let mut span = known.job(osd?, number, stage, now)?;
        span.error = Some(error.clone());
        Some(span)
    }

    /// Returns the last spans of a run that ended by an error.
    pub fn failed(&mut self, error: &str, began: DateTime<Utc>, now: DateTime<Utc>) -> Vec<Span> {
        let ended = self.run_ended("error", Some(error), began, now);
        ended.into_iter().filter(|span| self.reported.insert(span.id)).collect()
    }

    /// Returns the spans of all OSDs in progress, and of the run.
    fn run_ended(
        &mut self,
        code: &str,
        error: Option<&str>,
        began: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Vec<Span> {
        let mut ended = Vec::new();
        for (osd, known) in std::mem::take(&mut self.osds) {
            ended.extend(self.all(osd, &known, now, error));
        }
        ended.push(Span {
            id: id(&[&self.job, "run"]),
            parent: None,
            name: "run",
            start: began.min(now),
            end: now,
            attributes: vec![("osd_migrate.code", code.to_owned()), ("k8s.job.uid", self.job.clone())],
            error: error.map(str::to_owned),
        });
        ended
    }

    /// Returns all spans of an OSD; those in progress end now.
    fn all(&self, osd: OsdId, known: &Known, now: DateTime<Utc>, error: Option<&str>) -> Vec<Span> {
        let mut ended = known.ended(osd);
        let in_progress = |(_, stage): &(usize, &Passed)| stage.stage != Stage::Quarantine;
        if let Some((number, last)) =
            passed(&known.milestones).iter().enumerate().next_back().filter(in_progress)
        {
            ended.push(known.stage(osd, number, last, now));
            ended.extend(
                known.milestones.len().checked_sub(1).and_then(|job| known.job(osd, job, number, now)),
            );
        }
        ended.push(self.osd_span(osd, known, now, error));
        ended
    }

    fn osd_span(&self, osd: OsdId, known: &Known, end: DateTime<Utc>, error: Option<&str>) -> Span {
        let start = known.milestones.first().map_or(end, |(_, at)| *at);
        let attributes = known.attributes(osd, ("osd_migrate.class", known.class.to_owned()));
        let (id, parent) = (known.id(), Some(id(&[&self.job, "run"])));
        let error = error.map(str::to_owned);
        Span { id, parent, name: "osd", start: start.min(end), end, attributes, error }
    }
}

impl Known {
    fn of(record: &Record, before: Option<Self>) -> Self {
        let mut starts = before.map(|known| known.starts).unwrap_or_default();
        for (number, stage) in passed(&record.milestones).iter().enumerate() {
            let start = starts.entry(number).or_insert(stage.start);
            *start = stage.start.min(*start);
        }
        Self {
            record: record.id.to_string(),
            node: record.node.to_string(),
            class: record.class.code(),
            milestones: record.milestones.clone(),
            starts,
        }
    }

    fn id(&self) -> u64 {
        id(&[&self.record, "osd"])
    }

    fn stage_id(&self, number: usize) -> u64 {
        id(&[&self.record, "stage", &number.to_string()])
    }

    /// Returns the spans of stages and node Jobs that have ended by the milestones.
    fn ended(&self, osd: OsdId) -> Vec<Span> {
        let mut ended = Vec::new();
        for (number, stage) in passed(&self.milestones).iter().enumerate() {
            ended.extend(stage.end.map(|end| self.stage(osd, number, stage, end)));
            for job in stage.milestones.clone() {
                let end = self.milestones.get(job + 1).map(|(_, at)| *at);
                ended.extend(end.and_then(|end| self.job(osd, job, number, end)));
            }
        }
        ended
    }

    fn stage(&self, osd: OsdId, number: usize, stage: &Passed, end: DateTime<Utc>) -> Span {
        let start = self.starts.get(&number).copied().unwrap_or(stage.start).min(end);
        let attributes = self.attributes(osd, ("osd_migrate.phase", stage.stage.code().to_owned()));
        let (id, parent) = (self.stage_id(number), Some(self.id()));
        Span { id, parent, name: stage.stage.code(), start, end, attributes, error: None }
    }

    /// Returns the span of the node Job that a milestone started, if it started one.
    fn job(&self, osd: OsdId, milestone: usize, stage: usize, end: DateTime<Utc>) -> Option<Span> {
        let (code, start) = self.milestones.get(milestone)?;
        let (_, task) = NODE_JOBS.iter().find(|(milestone, _)| milestone == code)?;
        let start = (*start).min(end);
        Some(Span {
            id: id(&[&self.record, "job", task, &start.timestamp_micros().to_string()]),
            parent: Some(self.stage_id(stage)),
            name: "node-job",
            start,
            end,
            attributes: self.attributes(osd, ("osd_migrate.task", (*task).to_owned())),
            error: None,
        })
    }

    fn attributes(&self, osd: OsdId, more: (&'static str, String)) -> Vec<(&'static str, String)> {
        vec![
            ("osd_migrate.osd", osd.to_string()),
            ("osd_migrate.record", self.record.clone()),
            ("k8s.node.name", self.node.clone()),
            more,
        ]
    }
}

/// Returns an id that follows from these words: FNV-1a of 64 bits, never 0, which means no span.
fn id(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    let hash = |h: u64, byte: u8| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, hash).max(1)
}

/// Returns the id of the trace of a Job: its uid, which has as many bytes and is the same for all its pods.
pub fn trace_id(job: &str) -> [u8; 16] {
    if let Ok(uid) = uuid::Uuid::try_parse(job) {
        return uid.into_bytes();
    }
    let mut bytes = [0; 16];
    let halves = id(&[job, "high"]).to_be_bytes().into_iter().chain(id(&[job, "low"]).to_be_bytes());
    bytes.iter_mut().zip(halves).for_each(|(byte, half)| *byte = half);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::inspection::NodeTask;

    #[test]
    fn node_job_of_each_task_has_a_span() {
        let tasks =
            [NodeTask::Inspect, NodeTask::Rebuild, NodeTask::RestoreSlot, NodeTask::Clear, NodeTask::Wipe];
        for task in tasks {
            let saved = Saving::Attempt { task, after: None }.code();
            assert!(NODE_JOBS.contains(&(saved, task.code())), "{saved}");
        }
    }
}
