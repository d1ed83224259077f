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
    /// Status and message that were last written.
    written: Option<(ClusterStatus, String)>,
    /// Time of the last attempt to write or to restore, which may have failed.
    tried_at: Option<DateTime<Utc>>,
    /// Whether the former status may have to be restored.
    restores: bool,
}

impl ClusterStatusWriter {
    /// Creates a writer.
    ///
    /// An earlier run may have left its status: the first event restores it, or writes over it.
    pub fn new(k8s: Arc<K8s>) -> Self {
        Self { k8s, written: None, tried_at: None, restores: true }
    }

    /// Writes or restores the status after an event whose message is `text`.
    ///
    /// A write that fails is tried again later: the status is for people only.
    pub async fn report(&mut self, event: &Event<'_>, text: &str, now: DateTime<Utc>) {
        match event {
            Event::Waiting { policy, ledger, seen, .. } => {
                if self.tried_at.is_some_and(|at| (now - at).num_seconds() < SECONDS) {
                    return;
                }
                match cluster_status(View { policy, ledger, seen }) {
                    Some(status) => self.write(status, text, now).await,
                    None => self.restore(now).await,
                }
            }
            Event::Finished(_) | Event::Halted(_) => self.restore(now).await,
            Event::Saved { .. }
            | Event::Conflict
            | Event::Done(_)
            | Event::NotDone { .. }
            | Event::Blind(_)
            | Event::Lease(_) => {}
        }
    }

    async fn write(&mut self, status: ClusterStatus, text: &str, now: DateTime<Utc>) {
        let written = (status, text.to_owned());
        if self.written.as_ref() == Some(&written) {
            return;
        }
        (self.restores, self.tried_at) = (true, Some(now));
        match self.k8s.write_cluster_status(&written.0, text).await {
            Ok(()) => self.written = Some(written),
            Err(error) => tracing::debug!("the status of the CephCluster was not written: {error}"),
        }
    }

    /// Restores the former status, unless that is done.
    pub async fn restore(&mut self, now: DateTime<Utc>) {
        if !self.restores {
            return;
        }
        (self.written, self.tried_at) = (None, Some(now));
        match self.k8s.restore_cluster_status().await {
            Ok(()) => self.restores = false,
            Err(error) => tracing::debug!("the status of the CephCluster was not restored: {error}"),
        }
    }
}
