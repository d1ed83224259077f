//! HTTP server of the metrics: GET /metrics and /healthz, and nothing else.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::metrics::{self, Metrics};
use crate::live::pause;

/// Most connections at a time: a few Prometheus servers have one each.
const CONNECTIONS: usize = 16;

/// Time within which a client must send the headers of a request.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);

/// Time after which a client that scraped is taken for gone: four intervals of 30 s.
const GONE_AFTER: Duration = Duration::from_secs(120);

/// Server of the metrics, which ends when it is dropped.
pub struct Listener {
    address: SocketAddr,
    scrapes: Arc<Scrapes>,
    task: JoinHandle<()>,
}

/// Last scrape of each client.
#[derive(Default)]
struct Scrapes {
    last: Mutex<BTreeMap<IpAddr, Instant>>,
    scraped: Notify,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// Listens on all addresses of the pod, for IPv6 and IPv4.
    pub async fn on_port(port: u16, metrics: Arc<Metrics>) -> io::Result<Self> {
        let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let socket = match TcpListener::bind(v6).await {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await?
            }
            other => other?,
        };
        Self::on(socket, metrics)
    }

    /// Serves a socket that listens already.
    pub fn on(socket: TcpListener, metrics: Arc<Metrics>) -> io::Result<Self> {
        let (address, scrapes) = (socket.local_addr()?, Arc::<Scrapes>::default());
        let task = tokio::spawn(accept(socket, metrics, Arc::clone(&scrapes)));
        Ok(Self { address, scrapes, task })
    }

    /// Returns the address of the socket.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until each client that scraped lately has scraped once more, or until the limit.
    ///
    /// Without such a client, this returns at once, or after the first scrape if `awaits_first`.
    pub async fn scraped_once_more(&self, awaits_first: bool, limit: Duration) {
        let began = now();
        let wanted: Vec<IpAddr> = {
            let last = self.scrapes.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.iter().filter(|(_, at)| began - **at <= GONE_AFTER).map(|(client, _)| *client).collect()
        };
        let is_seen = || match wanted.as_slice() {
            [] => !awaits_first || self.scrapes.any_after(began),
            wanted => wanted.iter().all(|client| self.scrapes.is_after(*client, began)),
        };
        let all = async {
            loop {
                let scraped = self.scrapes.scraped.notified();
                if is_seen() {
                    return;
                }
                scraped.await;
            }
        };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::debug!("the end of the run was not scraped by all clients within {limit:?}");
        }
    }
}

impl Scrapes {
    fn add(&self, client: IpAddr) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).insert(client, now());
        self.scraped.notify_waiters();
    }

    fn is_after(&self, client: IpAddr, time: Instant) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.get(&client).is_some_and(|at| *at > time)
    }

    fn any_after(&self, time: Instant) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.values().any(|at| *at > time)
    }
}

/// Accepts connections until the task is ended, which ends the connections, too.
async fn accept(socket: TcpListener, metrics: Arc<Metrics>, scrapes: Arc<Scrapes>) {
    let mut connections = JoinSet::new();
    loop {
        // Those that have ended, and one more if there are too many.
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        match socket.accept().await {
            Ok((stream, client)) => {
                let (metrics, scrapes) = (Arc::clone(&metrics), Arc::clone(&scrapes));
                connections.spawn(async move { serve(stream, client.ip(), &metrics, &scrapes).await });
            }
            Err(error) => {
                tracing::debug!("a connection to the port of the metrics failed: {error}");
                pause(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, client: IpAddr, metrics: &Metrics, scrapes: &Scrapes) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = answer(request.method(), request.uri().path(), metrics);
        if response.1 {
            scrapes.add(client);
        }
        std::future::ready(Ok::<_, Infallible>(response.0))
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!("a request to the port of the metrics failed: {error}");
    }
}

/// Returns the answer, and whether it has the metrics.
fn answer(method: &Method, path: &str, metrics: &Metrics) -> (Response<Full<Bytes>>, bool) {
    let (status, kind, text, is_scrape) = match (path, *method == Method::GET) {
        ("/metrics", true) => (StatusCode::OK, metrics::CONTENT_TYPE, metrics.text(), true),
        ("/healthz", true) => (StatusCode::OK, "text/plain", "ok\n".to_owned(), false),
        ("/metrics" | "/healthz", false) => {
            (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET is allowed\n".to_owned(), false)
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "see /metrics\n".to_owned(), false),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, http::HeaderValue::from_static("GET"));
    }
    (response, is_scrape)
}

#[expect(clippy::disallowed_methods, reason = "when a client scraped: no decision of a run depends on it")]
fn now() -> Instant {
    Instant::now()
}
