//! The log on stderr, as text or as JSON.

use std::fmt::Debug;

use tracing::Dispatch;
use tracing::field::Field;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::{EnvFilter, fmt};

use crate::cli::LogFormat;

/// Starts the log, for the rest of the process.
pub fn start_logging(format: LogFormat, is_coloured: bool) {
    // kube's client logs each failed request and each watch that was cut by itself, without its cause: the
    // error that is returned has it.
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("osd_migrate=info,kube_client::client=off,warn"));
    let log = log(format, filter, std::io::stderr, is_coloured);
    if tracing::dispatcher::set_global_default(log).is_err() {
        tracing::debug!("the log was started before");
    }
}

/// Returns a log in a format that writes to a place.
fn log<W>(format: LogFormat, filter: EnvFilter, writer: W, is_terminal: bool) -> Dispatch
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let log = fmt().with_env_filter(filter).with_writer(writer);
    match format {
        LogFormat::Json => {
            log.json().flatten_event(true).with_current_span(false).with_span_list(false).into()
        }
        LogFormat::Text => {
            log.fmt_fields(debug_fn(write_text)).with_ansi(is_terminal).with_target(false).into()
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns what the log writes about an event of a run, and about a failure of a library.
    fn written(format: LogFormat) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let log = log(format, EnvFilter::new("info"), move || writer.clone(), false);
        tracing::dispatcher::with_default(&log, || {
            let (osd, phase, code) = (Some("osd.5"), None::<&str>, "down");
            tracing::info!(osd, phase, code, "{} [down]", "osd.5 is \"down\"");
            tracing::warn!(attempts = 3, "no answer");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn json_log_has_osd_and_code_as_fields() {
        let lines = written(LogFormat::Json);
        let objects: Vec<serde_json::Value> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [event, failure] = objects.as_slice() else { panic!("{lines:?}") };
        assert_eq!(event["message"], "osd.5 is \"down\" [down]");
        for (field, value) in [("osd", "osd.5"), ("code", "down"), ("level", "INFO")] {
            assert_eq!(event[field], value);
        }
        assert!(event.get("phase").is_none(), "an unknown field is absent: {event}");
        assert_eq!(failure["attempts"], 3);
        // As `follow` tells it from output.
        assert!(lines.iter().all(|line| line.starts_with("{\"timestamp\":\"")), "{lines:?}");
    }

    #[test]
    fn text_log_has_no_field_that_its_sentence_has() {
        let lines = written(LogFormat::Text);
        assert!(lines[0].ends_with("  INFO osd.5 is \"down\" [down]"), "{lines:?}");
        assert!(lines[1].ends_with("  WARN no answer attempts=3"), "{lines:?}");
    }
}
