//! HTTP client of the exporter: kube's HTTP and TLS libraries.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::Handle;

use super::error::TelemetryError;
use super::settings::OtlpSettings;
use crate::k8s::cause;

/// Time limit of a request. A request that takes longer only delays other spans.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Most bytes of an answer that are read: an answer is a few bytes.
const ANSWER_BYTES: usize = 64 << 10;

/// HTTP client of the exporter.
///
/// It runs on the program's runtime: the exporter's own thread has none.
#[derive(Debug)]
pub struct OtlpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
    url: String,
    has_failed: AtomicBool,
}

impl OtlpClient {
    /// Creates a client for the URL of the settings.
    pub fn new(settings: &OtlpSettings, runtime: Handle) -> Result<Self, String> {
        let builder = HttpsConnectorBuilder::new();
        let builder = match &settings.certificates {
            Some(file) => builder.with_tls_config(trusting(file)?),
            None if settings.url.starts_with("https:") => builder
                .with_native_roots()
                .map_err(|error| format!("{error}. Name a file: OTEL_EXPORTER_OTLP_CERTIFICATE"))?,
            None => builder.with_tls_config(with_roots(rustls::RootCertStore::empty())),
        };
        let connector = builder.https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, runtime, url: settings.url.clone(), has_failed: AtomicBool::new(false) })
    }

    /// Logs the first failure of a row: a collector that is away must not fill the log.
    fn failed(&self, why: &str) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            TelemetryError::TracesNotSent(format!("{}: {why}", self.url)).warn();
        }
    }
}

/// Returns the settings of TLS with the certificates of a file.
fn trusting(file: &Path) -> Result<rustls::ClientConfig, String> {
    let wrong = |error: String| format!("{}: {error}", file.display());
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))? {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(with_roots(roots))
}

fn with_roots(roots: rustls::RootCertStore) -> rustls::ClientConfig {
    rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

#[async_trait]
impl HttpClient for OtlpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.client.request(request.map(Full::new));
        let answer = async move {
            let (head, body) = sent.await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        let timed = async move { tokio::time::timeout(ANSWERS_WITHIN, answer).await? };
        let sent = self.runtime.spawn(timed).await.map_err(HttpError::from).flatten();
        match &sent {
            Ok(answer) if answer.status().is_success() => self.has_failed.store(false, Ordering::Relaxed),
            Ok(answer) => self.failed(&format!("the collector answered {}", answer.status())),
            Err(error) => self.failed(&cause(error.as_ref())),
        }
        sent
    }
}
