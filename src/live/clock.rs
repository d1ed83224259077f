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

/// Longest pause that a change ends: that of the seconds after an act (`src/pause.rs`). A longer one spares
/// Ceph and the API server, or follows a refusal.
const WOKEN: Duration = Duration::from_millis(500);

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::Group;

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "the paused clock of the test")]
    async fn change_ends_a_short_pause_and_no_other() {
        let changes = Arc::new(Changes::default());
        let mut clock = WokenClock(Arc::clone(&changes));
        for (time, is_changed, slept) in
            [(500, true, 200), (500, false, 500), (100, true, 100), (501, true, 501), (1000, true, 1000)]
        {
            if is_changed {
                changes.note(Group::OsdPods);
            }
            let began = tokio::time::Instant::now();
            clock.sleep(Duration::from_millis(time)).await;
            assert_eq!(began.elapsed().as_millis(), slept, "{time} ms");
            if is_changed {
                // A longer pause leaves the change to the next one.
                changes.note(Group::OsdPods);
                changes.next().await;
            }
        }
    }
}
