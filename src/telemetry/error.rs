//! Faults of the telemetry: they are logged, and the run continues.

/// Fault of the telemetry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum TelemetryError {
    /// The port of the metrics cannot be opened.
    #[error(
        "port {port} cannot be opened, so the run serves no metrics: {why}. Choose another port: --metrics-port"
    )]
    MetricsOff {
        /// the port
        port: u16,
        /// error of the system
        why: String,
    },
    /// The exporter of the traces cannot be started.
    #[error("the run sends no traces: {0}")]
    TracesOff(String),
    /// A request to the collector failed.
    #[error("traces are not sent, and the run continues without them: {0}")]
    TracesNotSent(String),
}

impl TelemetryError {
    /// Logs the fault, with its code at the end.
    pub(super) fn warn(&self) {
        let code: &'static str = self.into();
        tracing::warn!(code, "{self} [{code}]");
    }
}
