//! Metrics and traces of one run.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::runtime::Handle;

use super::error::TelemetryError;
use super::listener::Listener;
use super::metrics::Metrics;
use super::settings::OtlpSettings;
use super::traces::Traces;
use crate::report::{Event, Figures, RunProgress, RunSpans};

/// Longest time that a run that ended stays for its last scrape: one and a half intervals of 30 s.
const LAST_SCRAPE: Duration = Duration::from_secs(45);

/// Code of the metrics for an end by an error: its own code is in the log.
const OF_ERROR: &str = "error";

/// Metrics and traces of one run, both off by default.
#[derive(Default)]
pub struct RunTelemetry {
    metrics: Option<Served>,
    traces: Option<(RunSpans, Traces)>,
}

struct Served {
    figures: Figures,
    metrics: Arc<Metrics>,
    listener: Listener,
    /// Whether the run changed something, so that a first scrape is waited for.
    has_acted: bool,
    /// Whether the end waits for the first scrape, if something was done.
    waits: bool,
}

impl RunTelemetry {
    /// Starts what is asked for, for the run of a Job.
    ///
    /// A part that cannot be started is logged, and the run goes on without it.
    pub async fn start(job: &str, port: Option<u16>, otlp: Option<&OtlpSettings>) -> Self {
        let mut telemetry = Self::default();
        if let Some(port) = port {
            let metrics = Arc::new(Metrics::default());
            match Listener::on_port(port, Arc::clone(&metrics)).await {
                Ok(listener) => telemetry.serve(metrics, listener),
                Err(error) => TelemetryError::MetricsOff { port, why: error.to_string() }.warn(),
            }
        }
        if let Some(settings) = otlp {
            match Traces::start(job, settings, Handle::current()) {
                Ok(traces) => telemetry.trace(job, traces),
                Err(error) => error.warn(),
            }
        }
        telemetry
    }

    /// Returns whether neither metrics nor traces leave the process.
    pub fn is_off(&self) -> bool {
        self.metrics.is_none() && self.traces.is_none()
    }

    /// Serves these metrics.
    pub fn serve(&mut self, metrics: Arc<Metrics>, listener: Listener) {
        self.metrics =
            Some(Served { figures: Figures::default(), metrics, listener, has_acted: false, waits: true });
    }

    /// Serves only what `fence` knows: it is no run, and must not end the alert about a run that halted.
    ///
    /// If the fence is set, nobody waits for a scrape: the owner edits the CephCluster at once, and a run may
    /// follow.
    #[must_use]
    pub fn of_fence(mut self, is_removed: bool) -> Self {
        if let Some(Served { metrics, waits, .. }) = &mut self.metrics {
            metrics.hide_run();
            *waits = is_removed;
        }
        self
    }

    /// Sends the spans of a Job to this exporter.
    pub fn trace(&mut self, job: &str, traces: Traces) {
        self.traces = Some((RunSpans::of_job(job), traces));
    }

    /// Takes up an event, after the progress has taken it up.
    pub fn add(&mut self, event: &Event<'_>, progress: &RunProgress, now: DateTime<Utc>) {
        if let Some(Served { figures, metrics, has_acted, .. }) = &mut self.metrics {
            *has_acted |= matches!(event, Event::Saved { .. } | Event::Done(_));
            figures.add(event, progress, now);
            metrics.set(figures);
        }
        if let Some((spans, traces)) = &mut self.traces {
            let began = progress.pace.began.unwrap_or(now);
            spans.add(event, began, now).into_iter().for_each(|span| traces.send(span));
        }
    }

    /// Ends the telemetry of a run that ended by itself.
    ///
    /// A Prometheus that scraped the run sees its end: a scrape comes every 30 s, and the pod is about to go.
    /// Without a scrape so far, only a run that needs a person or that changed something waits: it may end
    /// before its first scrape, and the alerts would ask for the last values of the run before.
    ///
    /// `error` is the reason of an end without a halt that needs a person, too.
    pub async fn end(&mut self, error: Option<&str>, progress: &RunProgress, now: DateTime<Utc>) {
        // The spans first: a collector needs no second look.
        if let (Some(error), Some((mut spans, traces))) = (error, self.traces.take()) {
            let began = progress.pace.began.unwrap_or(now);
            spans.failed(error, began, now).into_iter().for_each(|span| traces.send(span));
        }
        if let Some(Served { mut figures, metrics, listener, has_acted, waits }) = self.metrics.take() {
            if error.is_some() {
                figures.halted = Some(OF_ERROR);
                metrics.set(&figures);
            }
            let awaits_first = (has_acted && waits) || figures.halted.is_some();
            listener.scraped_once_more(awaits_first, LAST_SCRAPE).await;
        }
    }
}
