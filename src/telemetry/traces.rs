//! Spans of a run, exported by OTLP over HTTP.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
};
use tokio::runtime::Handle;

use super::error::TelemetryError;
use super::otlp_client::OtlpClient;
use super::settings::OtlpSettings;
use crate::report::{Span, trace_id};

/// Name of the program in traces, unless the environment says another.
const SERVICE: &str = "osd-migrate";

/// Time after which a span is sent. A run that is killed loses the spans of this time.
const SENT_AFTER: Duration = Duration::from_secs(1);

/// Time that the end of the process may take for the last spans.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// Most spans that wait to be sent: those of 50 OSDs. More are dropped.
const QUEUE: usize = 1024;

/// Exporter of the spans of a Job; when it is dropped, it sends the last ones.
pub struct Traces {
    trace: TraceId,
    queue: Box<dyn SpanProcessor>,
    scope: InstrumentationScope,
}

impl Traces {
    /// Starts the exporter for the spans of a Job.
    pub fn start(job: &str, settings: &OtlpSettings, runtime: Handle) -> Result<Self, TelemetryError> {
        if let Some(protocol) = &settings.other_protocol {
            return Err(TelemetryError::TracesOff(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}, and only http/protobuf is supported (port 4318 of a \
                 collector)"
            )));
        }
        let client = OtlpClient::new(settings, runtime).map_err(TelemetryError::TracesOff)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&settings.url)
            .build()
            .map_err(|error| TelemetryError::TracesOff(error.to_string()))?;
        let config =
            BatchConfigBuilder::default().with_max_queue_size(QUEUE).with_scheduled_delay(SENT_AFTER).build();
        let mut queue = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        let resource = Resource::builder().with_attribute(KeyValue::new("service.version", version()));
        let is_named = settings.names_service;
        let resource = if is_named { resource } else { resource.with_service_name(SERVICE) };
        queue.set_resource(&resource.build());
        let scope = InstrumentationScope::builder(SERVICE).with_version(version()).build();
        Ok(Self { trace: TraceId::from_bytes(trace_id(job)), queue: Box::new(queue), scope })
    }

    /// Sends a span later, or drops it if too many wait.
    pub fn send(&self, span: Span) {
        let id = SpanId::from_bytes(span.id.to_be_bytes());
        let parent = span.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.to_be_bytes()));
        let attributes = span.attributes.into_iter().map(|(key, value)| KeyValue::new(key, value));
        self.queue.on_end(SpanData {
            span_context: SpanContext::new(self.trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: Cow::Borrowed(span.name),
            start_time: SystemTime::from(span.start),
            end_time: SystemTime::from(span.end),
            attributes: attributes.collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: span.error.map_or(Status::Ok, Status::error),
            instrumentation_scope: self.scope.clone(),
        });
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self.queue.shutdown_with_timeout(LAST_WITHIN) {
            tracing::debug!("the last spans may be lost: {error}");
        }
    }
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use opentelemetry::Context;
    use opentelemetry_sdk::error::OTelSdkResult;

    use super::*;

    /// A queue that reports how long its end may take.
    #[derive(Debug)]
    struct Ending(Sender<Duration>);

    impl SpanProcessor for Ending {
        fn on_start(&self, _: &mut opentelemetry_sdk::trace::Span, _: &Context) {}

        fn on_end(&self, _: SpanData) {}

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }

        fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
            self.0.send(timeout).unwrap();
            Ok(())
        }
    }

    #[test]
    fn last_spans_of_a_run_have_two_seconds_to_be_sent() {
        let (sender, limits) = channel();
        let scope = InstrumentationScope::builder(SERVICE).build();
        drop(Traces { trace: TraceId::INVALID, queue: Box::new(Ending(sender)), scope });
        assert_eq!(limits.into_iter().collect::<Vec<_>>(), [Duration::from_secs(2)]);
    }
}
