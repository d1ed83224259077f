//! Writes the status of the CephCluster while a run is at work. Nothing is decided by it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::domain::cluster_status::{ClusterStatus, cluster_status};
use crate::domain::view::View;
use crate::k8s::K8s;
use crate::report::Event;

/// Shortest time between two writes: each one is a write of etcd and an event for every watcher.
const SECONDS: i64 = 10;

/// Writer of the status of the CephCluster.
pub struct ClusterStatusWriter {
    k8s: Arc<K8s>,
    /// What was last written, and when.
    written: Option<(ClusterStatus, String, DateTime<Utc>)>,
    /// Whether the former status may have to be restored.
    restores: bool,
}

impl ClusterStatusWriter {
    /// Creates a writer.
    ///
    /// An earlier run may have left its status: the first event restores it, or writes over it.
    pub fn new(k8s: Arc<K8s>) -> Self {
        Self { k8s, written: None, restores: true }
    }

    /// Writes or restores the status after an event whose message is `text`.
    ///
    /// A write that fails is tried again with the next event: the status is for people only.
    pub async fn report(&mut self, event: &Event<'_>, text: &str, now: DateTime<Utc>) {
        match event {
            Event::Waiting { policy, ledger, seen, .. } => {
                match cluster_status(View { policy, ledger, seen }) {
                    Some(status) => self.write(status, text, now).await,
                    None => self.restore().await,
                }
            }
            Event::Finished(_) | Event::Halted(_) => self.restore().await,
            Event::Saved { .. }
            | Event::Conflict
            | Event::Done(_)
            | Event::NotDone { .. }
            | Event::Blind(_)
            | Event::Lease(_) => {}
        }
    }

    async fn write(&mut self, status: ClusterStatus, text: &str, now: DateTime<Utc>) {
        let is_known = self.written.as_ref().is_some_and(|(known, message, at)| {
            (*known == status && message == text) || (now - *at).num_seconds() < SECONDS
        });
        if is_known {
            return;
        }
        self.restores = true;
        match self.k8s.write_cluster_status(&status, text).await {
            Ok(()) => self.written = Some((status, text.to_owned(), now)),
            Err(error) => tracing::debug!("the status of the CephCluster was not written: {error}"),
        }
    }

    async fn restore(&mut self) {
        if !self.restores {
            return;
        }
        self.written = None;
        match self.k8s.restore_cluster_status().await {
            Ok(()) => self.restores = false,
            Err(error) => tracing::debug!("the status of the CephCluster was not restored: {error}"),
        }
    }
}
