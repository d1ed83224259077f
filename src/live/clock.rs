//! The system's clock, and the one sleep.

use std::time::Duration;

use chrono::{DateTime, Utc};

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
