//! Pauses of the loop: how long a run that waits does not look.

use std::time::Duration;

use chrono::TimeDelta;

/// Pause right after something was done.
///
/// For an OSD, a run waits some ten times for a pod, a daemon or an agent, mostly while the OSD is down. Each
/// of these waits ends half a pause late: 0.25 s instead of 0.5 s. With 0.2 s, an OSD cost 2.6 times as many
/// requests to the API server as with 1 s (2,865 instead of 1,109, 31 s in a small cluster).
const SOON: Duration = Duration::from_millis(500);

/// Time after something was done in which what it began may be ready.
///
/// A pod starts in 1 to 3 s, a daemon is up 3 to 5 s later, statistics are 7 s late at most, and an agent
/// reports in 7 s (`src/sim/schedule.rs`). What takes longer, takes minutes: a second of them matters little.
const SOON_FOR: TimeDelta = TimeDelta::seconds(10);

/// Shortest pause after that time: at most one poll of Ceph a second.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest pause: the status that people read must be at most ten seconds old.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Divisor that gives the length of a pause from the time in which nothing was done.
///
/// Backfill that takes hours does not justify a dump of all PGs each second. Its end is observed late by at
/// most a thirtieth of its duration.
const PARTS: i32 = 30;

/// Longest pause after an iteration that took as long: of the time while a run waits, mgr and API server have
/// at least half for other clients.
///
/// Above it, the API server is slow for another reason than the size of the cluster (10,000 OSDs: 5 s of CPU
/// time for the lists of an observation).
const LONGEST_PAUSE_OF_SLOW: Duration = Duration::from_secs(30);

/// Returns the pause until the next observation, given how long nothing was done, and how long the last
/// iteration took.
///
/// `is_refused`: an act was refused, or another runner has the Lease. Asking again at once would help nobody.
pub(crate) fn pause(idle: TimeDelta, took: TimeDelta, is_refused: bool) -> Duration {
    // A clock that was set back says nothing about when something was done.
    let is_soon = (TimeDelta::zero()..SOON_FOR).contains(&idle) && !is_refused;
    let by_idle =
        if is_soon { SOON } else { (idle / PARTS).to_std().unwrap_or_default().clamp(PAUSE, LONGEST_PAUSE) };
    by_idle.max(took.to_std().unwrap_or_default().min(LONGEST_PAUSE_OF_SLOW))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: TimeDelta = TimeDelta::milliseconds(100);

    #[test]
    fn iteration_pause_grows_with_idle_time_up_to_five_seconds() {
        let after = |seconds| pause(TimeDelta::seconds(seconds), TOOK, false).as_millis();
        assert_eq!([0, 9].map(after), [500, 500]);
        // The pause is the usual one if the clock was set back.
        assert_eq!([-9, 10, 30].map(after), [1000, 1000, 1000]);
        assert_eq!([90, 150, 100_000].map(after), [3000, 5000, 5000]);
    }

    #[test]
    fn iteration_pause_after_a_refusal_is_never_short() {
        let after = |seconds| pause(TimeDelta::seconds(seconds), TOOK, true).as_millis();
        assert_eq!([0, 9, 90].map(after), [1000, 1000, 3000]);
    }

    #[test]
    fn iteration_pause_is_as_long_as_a_slow_iteration() {
        let after = |took| pause(TimeDelta::seconds(90), TimeDelta::seconds(took), false).as_secs();
        assert_eq!([-9, 0, 2, 8, 30, 300].map(after), [3, 3, 3, 8, 30, 30]);
        let soon = |took| pause(TimeDelta::zero(), TimeDelta::milliseconds(took), false).as_millis();
        assert_eq!([0, 500, 600, 2_000, 60_000].map(soon), [500, 500, 600, 2_000, 30_000]);
    }
}
