//! Times of an agent's report: of its steps, and of the report itself.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};

#[expect(
    clippy::disallowed_methods,
    reason = "the agent's only read of the wall clock: its report says when"
)]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Wall time of each step.
#[derive(Default)]
pub(crate) struct Steps(Mutex<Vec<(String, u32)>>);

impl Steps {
    #[expect(clippy::disallowed_methods, reason = "durations for the report; nothing is decided by them")]
    pub(crate) async fn time<T>(&self, step: &str, work: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let done = work.await;
        let tenths = u32::try_from(since.elapsed().as_millis() / 100).unwrap_or(u32::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((step.to_owned(), tenths));
        done
    }

    pub(crate) fn into_tenths(self) -> Vec<(String, u32)> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
