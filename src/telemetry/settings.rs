//! Settings of traces, by the environment variables of OpenTelemetry.

use std::path::PathBuf;

/// Settings of traces in the environment, apart from those that the exporter reads itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpSettings {
    /// URL of the requests.
    pub url: String,
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
        let of_traces = |key: &str| {
            let all = || get(&format!("OTEL_EXPORTER_OTLP_{key}"));
            get(&format!("OTEL_EXPORTER_OTLP_TRACES_{key}")).or_else(all)
        };
        // An endpoint for all signals is completed, one for traces is taken as it is.
        let of_all =
            || Some(format!("{}/v1/traces", get("OTEL_EXPORTER_OTLP_ENDPOINT")?.trim_end_matches('/')));
        let url = get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(of_all)?;
        let is_off = get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || get("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        if is_off {
            return None;
        }
        let in_attributes = get("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
        Some(Self {
            url,
            names_service: in_attributes || get("OTEL_SERVICE_NAME").is_some(),
            certificates: of_traces("CERTIFICATE").map(PathBuf::from),
            other_protocol: of_traces("PROTOCOL").filter(|protocol| protocol != "http/protobuf"),
        })
    }
}
