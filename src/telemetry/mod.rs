//! Logs, metrics and traces: what leaves the process for other programs. Metrics and traces are off by
//! default, and nothing of them can fail a run or make it wait, except for [`RunTelemetry::end`].
//!
//! | module | content |
//! | --- | --- |
//! | `logs` | the log on stderr, as text or JSON |
//! | `metrics` | figures of a run in the text format of OpenMetrics |
//! | `listener` | HTTP server of the metrics |
//! | `traces` | spans of a run, exported by OTLP |
//! | `settings` | settings of traces in the environment |
//! | `otlp_client` | HTTP client of the exporter |
//! | `error` | faults, which are only logged |
//! | `run` | metrics and traces of one run |

mod error;
mod listener;
mod logs;
mod metrics;
mod otlp_client;
mod run;
mod settings;
mod traces;

pub use error::TelemetryError;
pub use listener::Listener;
pub use logs::start_logging;
pub use metrics::Metrics;
pub use otlp_client::OtlpClient;
pub use run::RunTelemetry;
pub use settings::OtlpSettings;
pub use traces::Traces;
