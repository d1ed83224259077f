//! The log on stderr, as text or as JSON.

use std::fmt::Debug;
use std::io::IsTerminal;

use tracing::field::Field;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::{EnvFilter, fmt};

use crate::cli::LogFormat;

/// Starts the log, for the rest of the process.
pub fn start_logging(format: LogFormat) {
    // kube's client logs each failed request by itself, without its cause: the error that is returned has it.
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("osd_migrate=info,kube_client::client::builder=off,warn"));
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Json => {
            log.json().flatten_event(true).with_current_span(false).with_span_list(false).init()
        }
        LogFormat::Text => {
            let is_terminal = std::io::stderr().is_terminal();
            log.fmt_fields(debug_fn(write_text)).with_ansi(is_terminal).with_target(false).init();
        }
    }
}

/// Writes a field of the text format: the sentence of an event has its OSD and its code already.
fn write_text(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        "osd" | "phase" | "code" => Ok(()),
        name => write!(writer, " {name}={value:?}"),
    }
}
