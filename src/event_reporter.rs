//! Reports a run's events: log lines on stderr, the status ConfigMap for `status`, and Kubernetes events for
//! `kubectl describe`.

use chrono::{DateTime, TimeDelta, Utc};

use crate::cluster_status_writer::ClusterStatusWriter;
use crate::domain::drift::Finding;
use crate::domain::history::{Confirmation, Entry, RunHistory};
use crate::domain::ledger::{NodeStatus, Record};
use crate::domain::next::Saving;
use crate::domain::stage::Stage;
use crate::k8s::{About, EventType, K8s, Own};
use crate::kube_events::{
    DEVICE_PROBLEM_FOUND, DRIFT_FOUND, KubeEvent, halted, kube_event, stalled, standing,
};
use crate::live::now;
use crate::ports::Failure;
use crate::report::{
    Event, News, Repeats, Reporter, RunProgress, Said, Stalls, history_not_written, observed, with_detail,
};
use crate::telemetry::RunTelemetry;

/// Shortest time between two writes of the status ConfigMap, unless something was done.
const STATUS_SECONDS: i64 = 10;

/// Findings of drift that are reported to Kubernetes.
///
/// Many findings have one cause, and `plan` lists all of them.
const FINDINGS: usize = 10;

/// Reporter of a real run.
pub struct EventReporter {
    k8s: std::sync::Arc<K8s>,
    about: Option<About>,
    /// CephCluster that the events are about, read when the first event about it is published.
    cluster: Option<About>,
    /// Whether this run has done or saved anything.
    has_acted: bool,
    repeats: Repeats,
    stalls: Stalls,
    news: News,
    /// Acts that failed: they must not make a wait new that they alternate with.
    failures: News,
    written_at: DateTime<Utc>,
    progress: RunProgress,
    cluster_status: Option<ClusterStatusWriter>,
    telemetry: RunTelemetry,
    history: RunHistory,
    /// Whether the log says that the history could not be written.
    warned: bool,
    /// Last event that was written, without the progress and the history.
    last: Option<Said>,
}

impl EventReporter {
    /// Creates a reporter that uses this access to Kubernetes.
    pub fn new(k8s: std::sync::Arc<K8s>, own: Option<&Own>) -> Self {
        let about = own.map(About::job);
        Self {
            k8s,
            about,
            cluster: None,
            has_acted: false,
            repeats: Repeats::default(),
            stalls: Stalls::default(),
            news: News::default(),
            failures: News::default(),
            written_at: DateTime::UNIX_EPOCH,
            progress: RunProgress::of_job(own.map_or("", |own| own.job_uid.as_str()), None),
            cluster_status: None,
            telemetry: RunTelemetry::default(),
            history: RunHistory::default(),
            warned: false,
            last: None,
        }
    }

    /// Writes the status of the CephCluster too, if `is_on`.
    #[must_use]
    pub fn with_cluster_status(mut self, is_on: bool) -> Self {
        self.cluster_status = is_on.then(|| ClusterStatusWriter::new(std::sync::Arc::clone(&self.k8s)));
        self
    }

    /// Continues the progress that an earlier pod of the same Job stored, and the history of OSDs that any
    /// earlier run left.
    #[must_use]
    pub fn continuing(mut self, stored: Option<Said>, confirmation: Confirmation) -> Self {
        let job = self.progress.pace.job.clone();
        let (pace, history) = stored.map(|said| (said.pace, said.history)).unwrap_or_default();
        self.progress = RunProgress::of_job(&job, pace);
        self.history = RunHistory { confirmation, ..history.unwrap_or_default() };
        self
    }

    /// Reports to metrics and traces, too.
    #[must_use]
    pub fn with_telemetry(mut self, telemetry: RunTelemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Reports an end by an error that needs a person: the last event of a run has any other end.
    pub async fn failed(&mut self, error: Option<&str>) {
        let Some(error) = error else { return };
        let now = now();
        let text = self.k8s.names().complete(error);
        self.store_status(Said::of(&Event::Blind(&text), &text, now, now)).await;
        self.publish(&halted(&text), now).await;
        // No event follows, and no run may follow for days.
        if let Some(writer) = &mut self.cluster_status {
            writer.restore(now).await;
        }
    }

    /// Ends metrics and traces, after a run that ended by itself or by an error that needs a person.
    ///
    /// This may wait for a scrape, and writes nothing: the Lease is released before.
    pub async fn end(&mut self, error: Option<&str>) {
        self.telemetry.end(error, &self.progress, now()).await;
    }

    /// Returns whether migrations were confirmed at some time of this run, also in an earlier pod of it.
    pub fn was_confirmed(&self) -> bool {
        self.progress.pace.confirmed
    }

    /// Publishes an event about the Job of osd-migrate and about the CephCluster.
    ///
    /// Standing events are published again before Kubernetes forgets them. A run that did nothing publishes
    /// only warnings. It publishes standing events only if a record is in progress or the wait lasts.
    async fn publish_all(&mut self, event: &Event<'_>, text: &str, now: DateTime<Utc>) {
        self.has_acted |= matches!(event, Event::Done(_) | Event::Saved { .. });
        if let Some(announcement) = kube_event(event)
            && (self.has_acted || announcement.kind == EventType::Warning)
        {
            self.publish(&announcement, now).await;
        }
        // The text names the cause.
        if matches!(event, Event::Waiting { .. }) && self.progress.stall.is_some() && self.stalls.is_due(now)
        {
            self.publish(&stalled(text), now).await;
        }
        if let Event::Waiting { ledger, .. } = event
            && (self.has_acted || ledger.in_flight().next().is_some() || self.news.stands(now))
            && self.repeats.is_due(self.has_acted, now)
        {
            // The events' names are derived from the time.
            let times = (0..).map(|n| now + TimeDelta::microseconds(n));
            for (announcement, at) in standing(text, ledger).iter().zip(times) {
                self.publish(announcement, at).await;
            }
        }
    }

    /// Publishes each drift finding once for as long as Kubernetes keeps events: the logs of a scheduled run
    /// are rarely read.
    pub async fn drift(&mut self, findings: &[Finding]) {
        let now = now();
        for finding in findings.iter().take(FINDINGS) {
            for about in self.abouts().await {
                let text = self.k8s.names().complete(&finding.to_string());
                self.k8s.warn_once(&about, DRIFT_FOUND, &text, now).await;
            }
        }
    }

    /// Returns the Job of osd-migrate and the CephCluster, if they are known.
    async fn abouts(&mut self) -> Vec<About> {
        if self.cluster.is_none() {
            self.cluster = self.k8s.about_cluster().await.ok();
        }
        self.about.iter().chain(&self.cluster).cloned().collect()
    }

    async fn publish(&mut self, announcement: &KubeEvent, at: DateTime<Utc>) {
        let KubeEvent { kind, reason, note } = announcement;
        let note = self.k8s.names().complete(note);
        for about in self.abouts().await {
            self.k8s.publish(&about, *kind, reason, &note, at).await;
        }
    }

    async fn write_status(&mut self, event: &Event<'_>, text: &str, now: DateTime<Utc>) {
        let at_once = matches!(event, Event::Finished(_) | Event::Halted(_));
        if !at_once && (now - self.written_at).num_seconds() < STATUS_SECONDS {
            return;
        }
        self.written_at = now;
        self.store_status(Said::of(event, text, self.news.since, now)).await;
    }

    /// Writes the status, with the progress and the history so far.
    async fn store_status(&mut self, said: Said) {
        let stored = Said {
            pace: Some(self.progress.pace.clone()),
            stall: self.progress.stall.clone(),
            history: Some(self.history.clone()),
            ..said.clone()
        };
        let status = serde_json::to_string(&stored).unwrap_or_default();
        if let Err(error) = self.k8s.write_status(&status).await {
            tracing::debug!("status not written: {error}");
        }
        self.last = Some(said);
    }
}

impl Reporter for EventReporter {
    async fn report(&mut self, event: Event<'_>) {
        let now = now();
        let waits = event.waits();
        let detail = self.progress.add(&event, &waits, now);
        self.telemetry.add(&event, &self.progress, now);
        let (osd, phase, code) = (event.osd().map(|osd| osd.to_string()), phase(&event), event.code());
        let osd = osd.as_deref();
        self.history.observe(now, observed(&event, &waits));
        let text = self.k8s.names().complete(&with_detail(&event.to_string(), detail.as_deref()));
        if event.is_detail() {
            self.has_acted = true;
            tracing::debug!(osd, phase, code, "{text}");
            return;
        }
        let (has_failed, waits_now) =
            (matches!(event, Event::NotDone { .. }), matches!(event, Event::Waiting { .. }));
        let repeats = has_failed || waits_now || matches!(event, Event::Lease(_) | Event::Blind(_));
        let news = if has_failed { &mut self.failures } else { &mut self.news };
        let is_due = news.is_due(&text, waits_now, now);
        if !repeats || is_due {
            if is_warning(&event) {
                tracing::warn!(osd, phase, code, "{text}");
            } else {
                tracing::info!(osd, phase, code, "{text}");
            }
        }
        if !matches!(event, Event::Lease(_)) {
            self.write_status(&event, &text, now).await;
        }
        if let Some(writer) = &mut self.cluster_status {
            writer.report(&event, &text, now).await;
        }
        if let Event::Saved {
            why: Saving::Node { node, status: NodeStatus::Orchestrating, problems, .. },
            ..
        } = event
        {
            for problem in problems {
                let text = self.k8s.names().complete(&format!("node {node}: {problem}"));
                tracing::warn!(code, "{text}");
                if let Some(about) = &self.about {
                    self.k8s.warn_once(about, DEVICE_PROBLEM_FOUND, &text, now).await;
                }
            }
        }
        self.publish_all(&event, &text, now).await;
    }

    fn entries(&mut self, closed: Option<&Record>) -> Vec<Entry> {
        self.history.entries(closed)
    }

    /// Keeps entries that could not be written, also in the status: the run may be killed before its next
    /// save.
    async fn written(&mut self, entries: Vec<Entry>, result: Result<(), Failure>) {
        let Err(failure) = result else {
            self.history.unwritten.clear();
            return;
        };
        if !self.warned {
            self.warned = true;
            tracing::warn!("{}", history_not_written(&entries, &failure));
        }
        self.history.keep(entries);
        if let Some(said) = self.last.clone() {
            self.store_status(said).await;
        }
    }
}

/// Returns the stage of the OSD that an event is about, if the event knows it.
fn phase(event: &Event<'_>) -> Option<&'static str> {
    let (Event::Saved { ledger, .. } | Event::Waiting { ledger, .. }) = event else { return None };
    ledger.records.get(&event.osd()?).map(|record| Stage::of(record).code())
}

/// Returns whether an event may need a person, or is tried again.
fn is_warning(event: &Event<'_>) -> bool {
    match event {
        Event::NotDone { .. } | Event::Blind(_) | Event::Halted(_) => true,
        Event::Saved { why, .. } => matches!(
            why,
            Saving::Quarantine { .. }
                | Saving::NotAdmitted { .. }
                | Saving::NotEmptied { .. }
                | Saving::FenceGone
                | Saving::Uncleared { .. }
                | Saving::Attempt { after: Some(_), .. }
        ),
        Event::Conflict | Event::Done(_) | Event::Waiting { .. } | Event::Lease(_) | Event::Finished(_) => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::k8s::wire::{CLUSTERS, cluster, list, on, play_shared};

    /// Checks the requests: the second list is that of the restore.
    #[tokio::test]
    async fn end_by_an_error_restores_the_status_of_the_cluster() {
        let status = "PATCH /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-status?&force=true&fieldManager=\
                      osd-migrate application/apply-patch+yaml";
        let script = vec![
            on(status, 200, json!({"metadata": {"name": "osd-migrate-status"}})),
            on(CLUSTERS, 200, list(&[])),
            on(CLUSTERS, 200, list(&[cluster(&json!({}))])),
        ];
        let ends = async |k8s: Arc<K8s>| {
            EventReporter::new(k8s, None)
                .with_cluster_status(true)
                .failed(Some("the ledger cannot be read"))
                .await;
        };
        play_shared(script, ends).await;
    }
}
