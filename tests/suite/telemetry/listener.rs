//! The port of the metrics, over TCP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::next::{Halt, Saving, Summary};
use osd_migrate::report::{Event, Figures};
use osd_migrate::telemetry::{Listener, Metrics, RunTelemetry};

use super::progress;
use crate::story::play::Play;

/// Sends one request, and returns the whole answer.
pub(super) async fn asked(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{request}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn listener() -> (Listener, SocketAddr) {
    let metrics = Arc::new(Metrics::default());
    let mut figures = Figures::default();
    let nothing = Summary::default();
    figures.add(&Event::Finished(&nothing), &progress().borrow(), Play::new().sim.borrow().world.at);
    metrics.set(&figures);
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listener = Listener::on(socket, metrics).unwrap();
    let address = listener.address();
    (listener, address)
}

#[tokio::test]
async fn port_of_the_metrics_answers_a_scrape_and_nothing_else() {
    let (_listener, address) = listener().await;
    let scrape = asked(address, "GET /metrics HTTP/1.1").await;
    assert!(scrape.starts_with("HTTP/1.1 200 OK\r\n"), "{scrape}");
    assert!(scrape.contains("content-type: application/openmetrics-text; version=1.0.0"), "{scrape}");
    assert!(
        scrape.contains("\nosd_migrate_osds{state=\"done\"} 0\n") && scrape.ends_with("# EOF\n"),
        "{scrape}"
    );
    for (request, status) in [
        ("GET /healthz HTTP/1.1", "200"),
        ("POST /metrics HTTP/1.1", "405"),
        ("DELETE /healthz HTTP/1.1", "405"),
        ("GET / HTTP/1.1", "404"),
        ("GET /metrics/ HTTP/1.1", "404"),
        ("nonsense", "400"),
    ] {
        let answer = asked(address, request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
}

#[tokio::test]
async fn port_of_the_metrics_is_closed_when_the_listener_is_dropped() {
    let (listener, address) = listener().await;
    // A connection that is kept for the next scrape, as Prometheus does.
    let mut kept = TcpStream::connect(address).await.unwrap();
    kept.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(kept.read(&mut [0; 16]).await.unwrap() > 0);
    drop(listener);
    let mut rest = Vec::new();
    let ended = kept.read_to_end(&mut rest);
    tokio::time::timeout(Duration::from_secs(5), ended).await.unwrap().unwrap();
    let closed = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), closed).await.unwrap();
}

#[tokio::test]
async fn run_that_was_never_scraped_ends_at_once() {
    let (listener, address) = listener().await;
    // A probe of the kubelet is no scrape.
    asked(address, "GET /healthz HTTP/1.1").await;
    let ends = listener.scraped_once_more(false, Duration::from_secs(45));
    tokio::time::timeout(Duration::from_secs(5), ends).await.unwrap();
}

#[tokio::test]
async fn run_that_was_scraped_stays_until_the_next_scrape() {
    let (listener, address) = listener().await;
    asked(address, "GET /metrics HTTP/1.1").await;
    let short = Duration::from_millis(100);
    let ends = listener.scraped_once_more(false, Duration::from_secs(45));
    tokio::pin!(ends);
    assert!(tokio::time::timeout(short, &mut ends).await.is_err(), "it ended without a scrape");
    asked(address, "GET /metrics HTTP/1.1").await;
    tokio::time::timeout(Duration::from_secs(5), ends).await.unwrap();
    // A Prometheus that went away does not hold up the end for longer than the limit.
    tokio::time::timeout(Duration::from_secs(5), listener.scraped_once_more(false, short)).await.unwrap();
}

/// Returns the telemetry of a run that serves metrics, and the address.
async fn serving() -> (RunTelemetry, SocketAddr) {
    let (metrics, mut telemetry) = (Arc::new(Metrics::default()), RunTelemetry::default());
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listener = Listener::on(socket, Arc::clone(&metrics)).unwrap();
    let address = listener.address();
    telemetry.serve(metrics, listener);
    (telemetry, address)
}

#[tokio::test]
async fn run_that_halts_at_once_stays_for_its_first_scrape() {
    let (mut telemetry, address) = serving().await;
    let (progress, now) = (progress().take(), Play::new().sim.borrow().world.at);
    let halt = Halt::CrashLoop { job: "x".to_owned(), starts: 10 };
    telemetry.add(&Event::Halted(&halt), &progress, now);
    let ends = telemetry.end(None, &progress, now);
    tokio::pin!(ends);
    let short = Duration::from_millis(100);
    assert!(tokio::time::timeout(short, &mut ends).await.is_err(), "it ended without a scrape");
    let (scrape, ()) = tokio::join!(asked(address, "GET /metrics HTTP/1.1"), &mut ends);
    assert!(scrape.contains("\nosd_migrate_halted 1\n"), "{scrape}");
}

/// Checks that the alerts about the run before do not outlast the run that was their remedy.
#[tokio::test]
async fn run_that_changed_something_stays_for_its_first_scrape() {
    let (mut telemetry, address) = serving().await;
    let (progress, now) = (progress().take(), Play::new().sim.borrow().world.at);
    let (ledger, nothing) = (Ledger::default(), Summary::default());
    telemetry.add(&Event::Saved { osd: None, why: &Saving::Unfenced, ledger: &ledger }, &progress, now);
    telemetry.add(&Event::Finished(&nothing), &progress, now);
    let ends = telemetry.end(None, &progress, now);
    tokio::pin!(ends);
    let short = Duration::from_millis(100);
    assert!(tokio::time::timeout(short, &mut ends).await.is_err(), "it ended without a scrape");
    let (scrape, ()) = tokio::join!(asked(address, "GET /metrics HTTP/1.1"), &mut ends);
    assert!(scrape.contains("\nosd_migrate_osds_down 0\n"), "{scrape}");
    assert!(scrape.contains("\nosd_migrate_temporary_change{change=\"fence\"} 0\n"), "{scrape}");
}

#[tokio::test]
async fn error_that_ends_a_run_is_scraped_as_a_halt() {
    let (mut telemetry, address) = serving().await;
    let (progress, now) = (progress().take(), Play::new().sim.borrow().world.at);
    telemetry.add(&Event::Conflict, &progress, now);
    let before = asked(address, "GET /metrics HTTP/1.1").await;
    assert!(before.contains("\nosd_migrate_halted 0\n"), "{before}");
    let ends = telemetry.end(Some("the ledger cannot be read"), &progress, now);
    let (after, ()) = tokio::join!(asked(address, "GET /metrics HTTP/1.1"), ends);
    assert!(after.contains("\nosd_migrate_halted 1\n"), "{after}");
    assert!(after.contains("\nosd_migrate_halt_info{code=\"error\"} 1\n"), "{after}");
}

#[tokio::test]
async fn run_goes_on_without_metrics_if_their_port_is_taken() {
    let taken = TcpListener::bind("[::]:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let telemetry = RunTelemetry::start(super::JOB, Some(port), None).await;
    assert!(telemetry.is_off());
}
