//! Time that Rook has had to acknowledge the fences of a Job.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Time that Rook has had to acknowledge the fences of a Job, since it last acknowledged one.
///
/// Records are withdrawn and saved meanwhile, and the fence is removed and set again. Counted from any of
/// these, the time would begin again without end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FenceWait {
    /// uid of the Job. Another Job waits again.
    pub job: String,
    /// Since when a fence is set, later by the time in which none was.
    pub since: DateTime<Utc>,
    /// When the fence was removed. None while it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<DateTime<Utc>>,
}

impl FenceWait {
    /// Returns the wait of a Job whose fence is set, or about to be set.
    ///
    /// `known` is the wait so far.
    pub(super) fn noted(known: Option<Self>, job: &str, at: DateTime<Utc>) -> Self {
        let known = known.filter(|known| known.job == job);
        let begun = || Self { job: job.to_owned(), since: at, removed_at: None };
        let mut wait = known.unwrap_or_else(begun);
        if let Some(removed_at) = wait.removed_at.take() {
            wait.since += at - removed_at;
        }
        wait
    }

    /// Notes that the fence is removed.
    pub(super) fn note_removed(&mut self, at: DateTime<Utc>) {
        self.removed_at.get_or_insert(at);
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    #[test]
    fn time_of_a_fence_counts_only_while_one_is_set() {
        let mut wait = FenceWait::noted(None, "job", at(1));
        wait = FenceWait::noted(Some(wait), "job", at(3));
        wait.note_removed(at(5));
        wait.note_removed(at(6));
        let again = FenceWait::noted(Some(wait), "job", at(105));
        assert_eq!((again.since, again.removed_at), (at(101), None));
        assert_eq!(FenceWait::noted(Some(again), "another", at(200)).since, at(200));
    }
}
