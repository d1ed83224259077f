//! Options of logs and metrics. Traces are set by the environment variables of OpenTelemetry.

use clap::{Args, ValueEnum};

use super::number::number;

/// Heading of these options.
const HEADING: &str = "Logs and metrics";

/// Options of logs and metrics.
#[derive(Debug, Clone, Copy, Args)]
pub struct TelemetryArgs {
    /// Format of the log on stderr.
    ///
    /// Lines for people, or one JSON object a line.
    #[arg(
        long,
        global = true,
        env = "OSD_MIGRATE_LOG_FORMAT",
        value_enum,
        value_name = "FORMAT",
        default_value_t = LogFormat::Text,
        help_heading = HEADING,
        hide_short_help = true
    )]
    pub log_format: LogFormat,
    /// Port on which a run serves metrics for Prometheus.
    ///
    /// They are at /metrics. Without a port, a run serves none.
    #[arg(
        long,
        global = true,
        env = "OSD_MIGRATE_METRICS_PORT",
        value_name = "PORT",
        value_parser = number(1..=u16::MAX, "(a TCP port)"),
        help_heading = HEADING,
        hide_short_help = true
    )]
    pub metrics_port: Option<u16>,
}

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}
