//! The watches of a run, in the background: whether something has changed since it was read.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::task::JoinSet;

use crate::k8s::{K8s, K8sError, Watched};
use crate::live::clock::{now, pause};

/// Pause after a watch that failed. Until it is there again, a run reads instead.
const PAUSE: Duration = Duration::from_secs(10);

/// Pause after a watch that the account may not have: the right may be granted again.
const PAUSE_WITHOUT_RIGHT: Duration = Duration::from_secs(5 * 60);

/// Shortest time of a watch. Some proxies end each watch at once, as if nothing had happened.
const SHORTEST: TimeDelta = TimeDelta::seconds(5);

/// Watches that are kept up until they are dropped.
pub(super) struct Watches {
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Begins the watches.
    pub(super) fn begin(k8s: &Arc<K8s>) -> Self {
        let mut tasks = JoinSet::new();
        for watched in Watched::ALL {
            tasks.spawn(keep_up(Arc::clone(k8s), watched));
        }
        Self { _tasks: tasks }
    }
}

/// Watches, and watches again whenever the server ends it.
///
/// An account without the right to watch is no failure: everything is read as without watches.
async fn keep_up(k8s: Arc<K8s>, watched: Watched) {
    let (mut from, mut is_said) = (None, false);
    loop {
        let began = now();
        match k8s.watch(watched, from.take()).await {
            Ok(version) if now() - began >= SHORTEST => from = Some(version),
            Ok(_) => {
                k8s.not_watched(watched);
                pause(PAUSE).await;
            }
            Err(K8sError::Forbidden { call, .. }) => {
                // A run that may not list what it lists says so itself.
                if (call.verb == "watch" || call.name.is_some()) && !std::mem::replace(&mut is_said, true) {
                    tracing::warn!("{call}: forbidden; the run reads these objects again and again instead");
                }
                pause(PAUSE_WITHOUT_RIGHT).await;
            }
            Err(error) => {
                tracing::debug!("{error}; watching again");
                pause(PAUSE).await;
            }
        }
    }
}
