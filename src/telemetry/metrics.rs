//! Figures of a run in the text format of OpenMetrics, which Prometheus reads.
//!
//! Names and meanings: `docs/reference/metrics.md`. The labels have few values: codes of this program, never
//! an OSD or a node.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::report::Figures;

/// Type of the text, as Prometheus asks for it.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Text without any metric: nothing was observed yet.
const NOTHING: &str = "# EOF\n";

/// Prefix of all names.
const PREFIX: &str = "osd_migrate";

/// Label with its value.
type Label = [(&'static str, &'static str); 1];
type Float = Gauge<f64, AtomicU64>;
type Seconds = Counter<f64, AtomicU64>;

/// Metrics of a run.
pub struct Metrics {
    of_run: Registry,
    of_osds: Registry,
    osds: Family<Label, Gauge>,
    down: Gauge,
    left: Gauge,
    moved: Gauge,
    rate: Gauge,
    stalled: Gauge,
    changes: Family<Label, Gauge>,
    halted: Gauge,
    halt: Family<Label, Gauge>,
    finished: Gauge,
    iteration: Float,
    waited: Family<Label, Seconds>,
    node_jobs: Family<Label, Counter>,
    failures: Family<Label, Counter>,
    hides_run: AtomicBool,
    shows_run: AtomicBool,
    shows_osds: AtomicBool,
}

impl Default for Metrics {
    #[rustfmt::skip] // one metric a line, as in the page
    fn default() -> Self {
        let (mut run, mut osds) = (Registry::with_prefix(PREFIX), Registry::with_prefix(PREFIX));
        let metrics = Self {
            osds: added(&mut osds, "osds", "OSDs by state", None),
            down: added(&mut osds, "osds_down", "OSDs that are down because of their migration", None),
            left: added(&mut osds, "left", "Bytes that are left to move", Some(Unit::Bytes)),
            moved: added(&mut osds, "moved", "Bytes that were moved", Some(Unit::Bytes)),
            rate: added(&mut osds, "rate_bytes_per_second", "Rate of the backfill, 0 if unknown", None),
            stalled: added(&mut osds, "stalled", "Whether the backfill in progress makes no progress", None),
            changes: added(&mut osds, "temporary_change", "Whether a temporary change may be in place", None),
            halted: added(&mut run, "halted", "Whether the run halted: a person is needed", None),
            halt: added(&mut run, "halt_info", "Code of the halt", None),
            finished: added(&mut run, "finished", "Whether the run finished", None),
            iteration: added(&mut osds, "last_iteration_timestamp", "Time of the last iteration", Some(Unit::Seconds)),
            waited: added(&mut run, "wait", "Time for which the run waited, by code", Some(Unit::Seconds)),
            node_jobs: added(&mut run, "node_jobs", "Node Jobs that were created, by task", None),
            failures: added(&mut run, "failures", "Failures by kind; the run tries again", None),
            hides_run: AtomicBool::new(false),
            shows_run: AtomicBool::new(false),
            shows_osds: AtomicBool::new(false),
            of_run: Registry::default(),
            of_osds: Registry::default(),
        };
        Self { of_run: run, of_osds: osds, ..metrics }
    }
}

/// Registers a metric.
fn added<M>(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>) -> M
where
    M: prometheus_client::registry::Metric + Default + Clone,
{
    let metric = M::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, metric.clone()),
        None => registry.register(name, help, metric.clone()),
    }
    metric
}

impl Metrics {
    /// Leaves out the metrics of a run.
    pub fn hide_run(&self) {
        self.hides_run.store(true, Ordering::Relaxed);
    }

    /// Takes over the present figures.
    pub fn set(&self, figures: &Figures) {
        if !self.hides_run.load(Ordering::Relaxed) {
            self.set_run(figures);
        }
        if figures.has_ledger {
            self.set_osds(figures);
        }
    }

    fn set_run(&self, figures: &Figures) {
        self.halted.set(figures.halted.is_some().into());
        if let Some(code) = figures.halted {
            self.halt.get_or_create(&[("code", code)]).set(1);
        }
        self.finished.set(figures.finished.into());
        for (code, waited) in &figures.waited {
            let counter = self.waited.get_or_create(&[("code", *code)]);
            counter.inc_by((waited.as_seconds_f64() - counter.get()).max(0.0));
        }
        for (counters, label, counts) in
            [(&self.node_jobs, "task", &figures.node_jobs), (&self.failures, "kind", &figures.failures)]
        {
            for (value, count) in counts {
                let counter = counters.get_or_create(&[(label, *value)]);
                counter.inc_by(count.saturating_sub(counter.get()));
            }
        }
        if figures.iteration_at.is_some() || figures.halted.is_some() {
            self.shows_run.store(true, Ordering::Relaxed);
        }
    }

    fn set_osds(&self, figures: &Figures) {
        let osds = &figures.osds;
        let states = [
            ("done", osds.done),
            ("in-progress", osds.in_progress),
            ("queued", osds.queued),
            ("quarantined", osds.quarantined),
            ("refused", osds.refused),
        ];
        for (state, count) in states {
            self.osds.get_or_create(&[("state", state)]).set(signed(count));
        }
        self.down.set(signed(figures.down));
        self.left.set(signed(figures.left_bytes));
        self.moved.set(signed(figures.moved_bytes));
        self.rate.set(signed(figures.rate.unwrap_or_default()));
        self.stalled.set(figures.stalled.into());
        for (change, is_saved) in &figures.changes {
            self.changes.get_or_create(&[("change", *change)]).set((*is_saved).into());
        }
        if let Some(at) = figures.iteration_at {
            self.iteration.set(seconds(at));
            self.shows_osds.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the text, with the metrics that are known.
    ///
    /// A process that only waits for the Lease knows nothing, and must not say 0. A run that halts before it
    /// had the ledger knows nothing about OSDs: their last values, of the run before, stay.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let all = [(&self.shows_run, &self.of_run), (&self.shows_osds, &self.of_osds)];
        let mut shown = all.into_iter().filter(|(is_shown, _)| is_shown.load(Ordering::Relaxed));
        let encoded = shown.try_for_each(|(_, registry)| encode_registry(&mut text, registry));
        match encoded.and_then(|()| encode_eof(&mut text)) {
            Ok(()) => text,
            Err(std::fmt::Error) => NOTHING.to_owned(),
        }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a time as Prometheus counts it.
fn seconds(at: DateTime<Utc>) -> f64 {
    (at - DateTime::UNIX_EPOCH).as_seconds_f64()
}
