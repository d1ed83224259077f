//! The system's clock, and the one sleep.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::k8s::{Changes, K8s};
use crate::ports::Clock;

/// System clock.
pub struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> DateTime<Utc> {
        now()
    }

    async fn sleep(&mut self, time: Duration) {
        pause(time).await;
    }
}

/// Longest pause that a change ends. In a longer one, data moves: it is not the time to look at each change.
const WOKEN: Duration = Duration::from_secs(1);

/// Shortest pause: while a pod starts, its status changes several times.
const LEAST: Duration = Duration::from_millis(200);

/// System clock of a run, which looks again when a watch reports a change.
pub struct WokenClock(Arc<Changes>);

impl WokenClock {
    /// Creates the clock.
    pub fn new(k8s: &K8s) -> Self {
        Self(Arc::clone(k8s.changes()))
    }
}

impl Clock for WokenClock {
    fn now(&self) -> DateTime<Utc> {
        now()
    }

    async fn sleep(&mut self, time: Duration) {
        pause(time.min(LEAST)).await;
        let rest = pause(time.saturating_sub(LEAST));
        if time > WOKEN {
            return rest.await;
        }
        tokio::select! {
            () = rest => {}
            () = self.0.next() => {}
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one sleep: the runner's, through its port, and the agent's heartbeat"
)]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

#[expect(clippy::disallowed_methods, reason = "the one clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}
