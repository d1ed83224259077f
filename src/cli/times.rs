//! Times within a range, as in `--soak 10m`.

use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::TimeDelta;

/// Longest time.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Shortest limit: with less, OSDs would be quarantined, and lose `noout`, in each ordinary start.
const SHORTEST_LIMIT: Duration = Duration::from_secs(30);

/// Parses a time for which a run waits for an OSD that was stopped.
pub(super) fn limit(text: &str) -> Result<TimeDelta, String> {
    seconds(text, SHORTEST_LIMIT..=DAY, "30s to 24h, such as 15m or 1h")
}

/// Parses a pause between attempts.
///
/// Without a pause, all attempts would fail for the same short reason.
pub(super) fn pause(text: &str) -> Result<TimeDelta, String> {
    seconds(text, Duration::from_secs(1)..=DAY, "1s to 24h, such as 30s or 5m")
}

/// Parses a time that may be 0, so that a run does not wait.
pub(super) fn wait(text: &str) -> Result<TimeDelta, String> {
    seconds(text, Duration::ZERO..=DAY, "0s to 24h, such as 15m or 1h")
}

/// Parses the latency of a write.
///
/// OSDs report whole milliseconds.
pub(super) fn latency(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(1)..=Duration::from_secs(60), "1ms to 1m, such as 50ms")
}

fn seconds(text: &str, range: RangeInclusive<Duration>, words: &str) -> Result<TimeDelta, String> {
    TimeDelta::from_std(within(text, range, words)?).map_err(|error| error.to_string())
}

fn within(text: &str, range: RangeInclusive<Duration>, words: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok().filter(|time| range.contains(time));
    time.ok_or_else(|| format!("expected a time from {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parse = fn(&str) -> Result<TimeDelta, String>;

    #[test]
    fn time_out_of_range_names_the_range() {
        for (taken, refused, parse, range) in [
            (&["30s", "24h", "1h 30m"][..], &["0", "0s", "29s", "25h", "x", ""][..], limit as Parse, "30s"),
            (&["1s", "24h"], &["0s", "999ms", "-1s", "2d"], pause as Parse, "1s"),
            (&["0s", "10m", "24h"], &["86401s", "10"], wait as Parse, "0s"),
        ] {
            for text in taken {
                assert!(parse(text).is_ok(), "{range}: {text}");
            }
            for text in refused {
                let error = parse(text).unwrap_err();
                assert!(
                    error.starts_with(&format!("expected a time from {range} to 24h, such as ")),
                    "{text}: {error}"
                );
            }
        }
        for wrong in ["0", "0ms", "61s", "fast"] {
            assert_eq!(
                latency(wrong),
                Err("expected a time from 1ms to 1m, such as 50ms".to_owned()),
                "{wrong}"
            );
        }
        assert_eq!(latency("50ms"), Ok(Duration::from_millis(50)));
    }
}
