//! Spans of a run, exported by OTLP over HTTP.

use std::borrow::Cow;
use std::path::PathBuf;
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
use crate::report::{Span, trace_id};

/// Name of the program in traces, unless the environment says another.
const SERVICE: &str = "osd-migrate";

/// Time after which a span is sent. A run that is killed loses the spans of this time.
const SENT_AFTER: Duration = Duration::from_secs(1);

/// Time that the end of the process may take for the last spans.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// Most spans that wait to be sent: those of 50 OSDs. More are dropped.
const QUEUE: usize = 1024;

/// What the environment says about traces, apart from what the exporter reads itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpSettings {
    /// Whether the environment names the service.
    pub names_service: bool,
    /// File with the certificates to trust.
    pub certificates: Option<PathBuf>,
    /// Protocol, if it is not the one that this program has.
    pub other_protocol: Option<String>,
}

impl OtlpSettings {
    /// Reads the environment; `None` if it asks for no traces.
    ///
    /// The names are those of the OpenTelemetry specification.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let get = |key: &str| lookup(key).filter(|value| !value.is_empty());
        let first = |keys: [&str; 2]| keys.into_iter().find_map(get);
        first(["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"])?;
        let is_off = get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || get("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        if is_off {
            return None;
        }
        let in_attributes = get("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
        Some(Self {
            names_service: in_attributes || get("OTEL_SERVICE_NAME").is_some(),
            certificates: first(["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"])
                .map(PathBuf::from),
            other_protocol: first(["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"])
                .filter(|protocol| protocol != "http/protobuf"),
        })
    }
}

/// Exporter of the spans of a Job; when it is dropped, it sends the last ones.
pub struct Traces {
    trace: TraceId,
    queue: BatchSpanProcessor,
    scope: InstrumentationScope,
}

impl Traces {
    /// Starts the exporter, for the endpoint in the environment.
    pub fn start(job: &str, settings: &OtlpSettings, runtime: Handle) -> Result<Self, TelemetryError> {
        Self::start_for(job, settings, runtime, None)
    }

    /// Starts the exporter for a URL, or for the endpoint in the environment.
    pub fn start_for(
        job: &str,
        settings: &OtlpSettings,
        runtime: Handle,
        url: Option<String>,
    ) -> Result<Self, TelemetryError> {
        if let Some(protocol) = &settings.other_protocol {
            return Err(TelemetryError::TracesOff(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}, and only http/protobuf is supported (port 4318 of a \
                 collector)"
            )));
        }
        let client =
            OtlpClient::new(settings.certificates.as_deref(), runtime).map_err(TelemetryError::TracesOff)?;
        let exporter =
            SpanExporter::builder().with_http().with_http_client(client).with_protocol(Protocol::HttpBinary);
        let exporter = match url {
            Some(url) => exporter.with_endpoint(url),
            None => exporter,
        };
        let exporter = exporter.build().map_err(|error| TelemetryError::TracesOff(error.to_string()))?;
        let config =
            BatchConfigBuilder::default().with_max_queue_size(QUEUE).with_scheduled_delay(SENT_AFTER).build();
        let mut queue = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        let resource = Resource::builder().with_attribute(KeyValue::new("service.version", version()));
        queue.set_resource(&match settings.names_service {
            true => resource.build(),
            false => resource.with_service_name(SERVICE).build(),
        });
        let scope = InstrumentationScope::builder(SERVICE).with_version(version()).build();
        Ok(Self { trace: TraceId::from_bytes(trace_id(job)), queue, scope })
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
