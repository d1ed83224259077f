//! Traces of simulated runs, received and decoded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use clap::Parser;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use osd_migrate::cli::Cli;
use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::sim::ports::{Call, Side, Watch};
use osd_migrate::telemetry::{OtlpSettings, RunTelemetry, Traces};

use super::{JOB, progress, run};
use crate::story::play::Play;

fn settings(url: &str) -> OtlpSettings {
    OtlpSettings { url: url.to_owned(), names_service: false, certificates: None, other_protocol: None }
}

/// Everything that a receiver got: the requests, and the line and headers of each.
#[derive(Default, Clone)]
struct Received(Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>);

impl Received {
    /// Starts a receiver, and returns its URL.
    async fn start() -> (Self, String) {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", socket.local_addr().unwrap());
        let received = Self::default();
        let all = received.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                tokio::spawn(all.clone().receive(stream));
            }
        });
        (received, url)
    }

    async fn receive(self, mut stream: TcpStream) -> Option<()> {
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                head.push(char::from(stream.read_u8().await.ok()?));
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.ok()?;
            let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
            self.0.lock().unwrap().push((head, request));
            let answer = ExportTraceServiceResponse::default().encode_to_vec();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
            stream.write_all(&[head.as_bytes(), &answer].concat()).await.ok()?;
        }
    }

    /// Returns all spans, in the order in which they came.
    fn spans(&self) -> Vec<Span> {
        let all = self.0.lock().unwrap();
        let resources = all.iter().flat_map(|(_, request)| &request.resource_spans);
        resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| scope.spans.clone()).collect()
    }
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match &found.value {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => Some(text.clone()),
        other => panic!("{key}: {other:?}"),
    }
}

/// Ends the telemetry of a run at the start of its world.
async fn ends(telemetry: &mut RunTelemetry, error: Option<&str>) {
    let now = Play::new().sim.borrow().world.at;
    telemetry.end(error, &progress().take(), now).await;
}

/// Stops a run right after the first act for which this is true.
fn killed_after(mut is_it: impl FnMut(&Act) -> bool + 'static) -> Option<Watch> {
    Some(Box::new(move |call, side, _| matches!(call, Call::Act(act) if side == Side::Done && is_it(act))))
}

/// Runs three processes of one Job, of which two are killed; returns what a receiver got.
async fn killed_twice() -> Received {
    let (received, url) = Received::start().await;
    let (play, progress) = (Play::new(), progress());
    let watches = [
        killed_after(|act| matches!(act, Act::Ceph(CephAct::Destroy { .. }))),
        killed_after(|act| matches!(act, Act::Kube(KubeAct::Deploy(_)))),
        None,
    ];
    for (number, watch) in watches.into_iter().enumerate() {
        let traces = Traces::start(JOB, &settings(&url), Handle::current()).unwrap();
        let mut telemetry = RunTelemetry::default();
        telemetry.trace(JOB, traces);
        let end =
            run(&play, watch, &progress, &mut |event, progress, now| telemetry.add(event, progress, now));
        assert_eq!(end.is_some(), number == 2, "{number}: {end:?}");
        if end.is_some() {
            assert_eq!(end, Play::finished());
            ends(&mut telemetry, None).await;
        }
        play.time_passes(12);
    }
    received
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trace_of_a_run_that_is_killed_twice_is_one_tree() {
    let received = killed_twice().await;
    let mut spans = BTreeMap::<Vec<u8>, Span>::new();
    for span in received.spans() {
        assert_eq!(span.trace_id, uuid::Uuid::parse_str(JOB).unwrap().into_bytes(), "{span:?}");
        // A span that came twice is the same one.
        if let Some(before) = spans.insert(span.span_id.clone(), span.clone()) {
            assert_eq!(before, span);
        }
    }
    let named = |name: &str| spans.values().filter(|span| span.name == name).collect::<Vec<_>>();
    let [root] = named("run")[..] else { panic!("{:?}", named("run")) };
    assert!(root.parent_span_id.is_empty(), "{root:?}");
    assert_eq!(text(&root.attributes, "osd_migrate.code").as_deref(), Some("finished"));
    let parent_of = |span: &Span| spans.get(&span.parent_span_id).unwrap_or_else(|| panic!("{span:?}"));
    let osds = named("osd");
    let of_osds: Vec<_> =
        osds.iter().map(|span| text(&span.attributes, "osd_migrate.osd").unwrap()).collect();
    assert_eq!(of_osds.len(), 2, "{of_osds:?}");
    assert!(["osd.0", "osd.2"].iter().all(|osd| of_osds.iter().any(|one| one == osd)), "{of_osds:?}");
    let mut stages = BTreeMap::<&str, usize>::new();
    for span in spans.values().filter(|span| span.span_id != root.span_id) {
        let parent = parent_of(span);
        let expected = match span.name.as_str() {
            "osd" => "run",
            "node-job" => match text(&span.attributes, "osd_migrate.task").as_deref() {
                Some("inspect") => "inspect",
                Some("rebuild") => "rebuild",
                other => panic!("{other:?}"),
            },
            stage => {
                *stages.entry(stage).or_default() += 1;
                "osd"
            }
        };
        assert_eq!(parent.name, expected, "{span:?}");
        let is_inside = parent.start_time_unix_nano <= span.start_time_unix_nano
            && span.start_time_unix_nano <= span.end_time_unix_nano
            && span.end_time_unix_nano <= parent.end_time_unix_nano;
        assert!(is_inside, "{span:?}\nis not inside\n{parent:?}");
    }
    let expected = ["backfill", "clean-up", "inspect", "rebuild", "start", "stop", "wait"];
    assert_eq!(stages, expected.map(|stage| (stage, 2)).into(), "each OSD passes each stage once");
    assert_eq!(named("node-job").len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trace_has_the_program_and_its_version() {
    let received = killed_twice().await;
    let all = received.0.lock().unwrap();
    let (head, request) = all.first().unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name").as_deref(), Some("osd-migrate"));
    assert_eq!(text(&resource.attributes, "service.version").as_deref(), Some(env!("CARGO_PKG_VERSION")));
}

/// Checks that the end of a run comes before the exporter gives up a request, which closes its connection.
///
/// How long the end waits: `last_spans_of_a_run_have_two_seconds_to_be_sent`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_ends_while_a_collector_that_never_answers_is_connected() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", socket.local_addr().unwrap());
    let mut telemetry = RunTelemetry::default();
    telemetry.trace(JOB, Traces::start(JOB, &settings(&url), Handle::current()).unwrap());
    // No span is sent before the end, so that the request is no older. The end blocks its thread.
    let runtime = Handle::current();
    let end = tokio::task::spawn_blocking(move || runtime.block_on(ends(&mut telemetry, Some("it failed"))));
    let (mut collector, _) = socket.accept().await.unwrap();
    let is_given_up = async { while collector.read_u8().await.is_ok() {} };
    tokio::select! {
        biased;
        () = is_given_up => panic!("the run waited for the answer of the collector"),
        end = end => end.unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trace_of_a_run_that_fails_has_its_error() {
    let (received, url) = Received::start().await;
    let mut telemetry = RunTelemetry::default();
    telemetry.trace(JOB, Traces::start(JOB, &settings(&url), Handle::current()).unwrap());
    let play = Play::new();
    let watch = killed_after(|act| matches!(act, Act::Ceph(CephAct::Destroy { .. })));
    run(&play, watch, &progress(), &mut |event, progress, now| telemetry.add(event, progress, now));
    ends(&mut telemetry, Some("the key is refused [ceph-key-refused]")).await;
    let spans = received.spans();
    let failed: Vec<_> = spans.iter().filter(|span| span.status.as_ref().unwrap().code == 2).collect();
    let names: Vec<_> = failed.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["osd", "run"]);
    for span in failed {
        assert_eq!(span.status.as_ref().unwrap().message, "the key is refused [ceph-key-refused]");
    }
}

fn read(vars: &[(&str, &str)]) -> Option<OtlpSettings> {
    OtlpSettings::read(|key| vars.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn traces_are_off_unless_the_environment_has_an_endpoint() {
    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    assert_eq!(read(&[]), None);
    assert_eq!(read(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://x:4318")]), None);
    assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", ""), ("OTEL_SERVICE_NAME", "x")]), None);
    assert_eq!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")]), None);
    assert_eq!(read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]), None);
    let of_all = settings("http://collector:4318/v1/traces");
    assert_eq!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "false")]), Some(of_all.clone()));
    assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")]), Some(of_all.clone()));
    let of_traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://x:4318/spans");
    assert_eq!(read(&[ENDPOINT, of_traces]), Some(settings("https://x:4318/spans")));
    let named = Some(OtlpSettings { names_service: true, ..of_all });
    assert_eq!(read(&[ENDPOINT, ("OTEL_SERVICE_NAME", "x")]), named);
    assert_eq!(read(&[ENDPOINT, ("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=x")]), named);
    let grpc = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap();
    assert_eq!(grpc.other_protocol.as_deref(), Some("grpc"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_settings_are_named_and_the_run_has_no_traces() {
    let right = settings("https://collector:4318/v1/traces");
    let wrong = [
        (
            OtlpSettings { other_protocol: Some("grpc".to_owned()), ..right.clone() },
            "only http/protobuf is supported",
        ),
        (OtlpSettings { certificates: Some("/nowhere/ca.crt".into()), ..right }, "/nowhere/ca.crt: "),
        (settings("nowhere at all"), "invalid endpoint 'nowhere at all'"),
    ];
    for (settings, expected) in wrong {
        let why = Traces::start(JOB, &settings, Handle::current()).err().unwrap().to_string();
        assert!(why.starts_with("the run sends no traces: ") && why.contains(expected), "{why}");
        assert!(RunTelemetry::start(JOB, None, Some(&settings)).await.is_off());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_without_settings_opens_no_port_and_no_connection() {
    let cli = Cli::try_parse_from(["osd-migrate", "run"]).unwrap();
    let mut telemetry = RunTelemetry::start(JOB, cli.telemetry.metrics_port, read(&[]).as_ref()).await;
    // There is neither a listener nor an exporter that an event could reach.
    assert!(telemetry.is_off());
    let end =
        run(&Play::new(), None, &progress(), &mut |event, progress, now| telemetry.add(event, progress, now));
    assert_eq!(end, Play::finished());
    ends(&mut telemetry, None).await;
}
