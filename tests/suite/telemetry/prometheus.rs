//! A real Prometheus that scrapes a run and evaluates the alerts of the chart: `build/rules`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;

use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::next::{Halt, Saving};
use osd_migrate::report::Event;
use osd_migrate::telemetry::{Listener, Metrics, RunTelemetry};

use super::listener::asked;
use super::progress;
use crate::runbook::root;

/// A Prometheus that ends with the test.
struct Prometheus {
    process: Child,
    address: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait()).is_ok();
    }
}

impl Prometheus {
    #[expect(clippy::disallowed_methods, reason = "a test of another program")]
    async fn start(folder: &Path, target: SocketAddr) -> Self {
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\nscrape_configs:\n\
             - job_name: x\n  static_configs:\n  - targets: ['{target}']\n    \
             labels: {{namespace: rook-ceph, instance: osd-migrate}}\n",
            root().join("charts/osd-migrate/files/alerts.yaml").display()
        );
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        // A port that is free a moment later, too.
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let process = std::process::Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::from(std::fs::File::create(folder.join("log")).unwrap()))
            .spawn()
            .unwrap();
        Self { process, address }
    }

    /// Asks until an answer satisfies a condition.
    async fn until(&self, path: &str, is_there: impl Fn(&Value) -> bool) {
        let mut last = String::new();
        let asking = async {
            let mut second = tokio::time::interval(Duration::from_secs(1));
            loop {
                second.tick().await;
                if tokio::net::TcpStream::connect(self.address).await.is_err() {
                    continue;
                }
                last = asked(self.address, &format!("GET {path} HTTP/1.0")).await;
                let body = last.split_once("\r\n\r\n").map_or("", |(_, body)| body);
                if serde_json::from_str(body).is_ok_and(|answer| is_there(&answer)) {
                    return;
                }
            }
        };
        let is_there = tokio::time::timeout(Duration::from_secs(60), asking).await.is_ok();
        assert!(is_there, "{path}: {last}");
    }
}

fn fires(alerts: &Value, name: &str) -> bool {
    let alerts = alerts["data"]["alerts"].as_array();
    let is_it = |alert: &Value| alert["labels"]["alertname"] == name && alert["state"] == "firing";
    alerts.is_some_and(|alerts| alerts.iter().any(is_it))
}

#[tokio::test]
#[ignore = "needs Prometheus: build/rules"]
async fn prometheus_sees_a_halt_after_the_pod_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::default());
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listener = Listener::on(socket, Arc::clone(&metrics)).unwrap();
    let prometheus = Prometheus::start(folder.path(), listener.address()).await;
    let mut telemetry = RunTelemetry::default();
    telemetry.serve(metrics, listener);
    let (progress, now) = (progress().take(), chrono::DateTime::UNIX_EPOCH);
    let saved = Event::Saved { osd: None, why: &Saving::Closing, ledger: &Ledger::default() };
    telemetry.add(&saved, &progress, now);
    let has =
        |count: usize| move |answer: &Value| answer["data"]["result"].as_array().unwrap().len() == count;
    // All states are there, and the counters and times are read, too.
    prometheus.until("/api/v1/query?query=osd_migrate_osds", has(5)).await;
    let of_target = |answer: &Value| answer["data"]["activeTargets"][0]["lastError"] == "";
    prometheus.until("/api/v1/targets", of_target).await;
    let halt = Halt::CrashLoop { job: "x".to_owned(), starts: 10 };
    telemetry.add(&Event::Halted(&halt), &progress, now);
    // It stays until Prometheus has seen it, and goes away.
    telemetry.end(None, &progress, now).await;
    prometheus.until("/api/v1/query?query=up==0", has(1)).await;
    prometheus.until("/api/v1/query?query=osd_migrate_halted", has(0)).await;
    prometheus.until("/api/v1/alerts", |alerts| fires(alerts, "OsdMigrateHalted")).await;
}
