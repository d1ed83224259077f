//! The watches of a run, in the background: whether something has changed since it was read.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::k8s::{K8s, K8sError, Watched};
use crate::live::clock::pause;

/// Pause after a watch that failed. Until it is there again, a run reads instead.
const PAUSE: Duration = Duration::from_secs(10);

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
    let mut from = None;
    loop {
        match k8s.watch(watched, from.take()).await {
            Ok(version) => from = Some(version),
            // A run that may not even list says so itself.
            Err(K8sError::Forbidden { call, .. }) if call.verb == "watch" => {
                tracing::warn!("{call}: forbidden; the run reads these objects again and again instead");
                return;
            }
            Err(error) => {
                tracing::debug!("{error}; watching again");
                pause(PAUSE).await;
            }
        }
    }
}
