//! Numbers and sizes as messages and tables show them.

use std::time::Duration;

use bytesize::ByteSize;
use chrono::TimeDelta;

/// Formats bytes with a binary unit: `5.0 GiB`.
pub fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Formats bytes as GiB, rounded up: a disk of the printed size is large enough.
pub fn size_at_least(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// Formats a duration with one unit: `40 min`, `31 h`.
///
/// A person plans with hours, not with their seconds: the unit changes at 90 s, at 90 min and at two days.
pub fn time(time: TimeDelta) -> String {
    let seconds = time.num_seconds().max(0);
    let rounded = |unit: i64| (seconds + unit / 2) / unit;
    match seconds {
        ..=89 => format!("{seconds} s"),
        90..=5_399 => format!("{} min", rounded(60)),
        5_400..=172_799 => format!("{} h", rounded(3600)),
        _ => format!("{} d", rounded(86_400)),
    }
}

/// Formats a latency: `63 ms`.
pub fn milliseconds(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

/// Formats a number with a comma between thousands: `3,400`.
pub fn grouped(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", grouped(thousands), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers_have_units_and_separators() {
        assert_eq!([size(512 << 20), size(5 << 30), size(12 << 40)], ["512.0 MiB", "5.0 GiB", "12.0 TiB"]);
        assert_eq!([size_at_least((1 << 30) + 1), size_at_least(1 << 30)], ["1.1 GiB", "1.0 GiB"]);
        let times = [0, 89, 90, 5_399, 5_400, 100_000, 200_000].map(|s| time(TimeDelta::seconds(s)));
        assert_eq!(times, ["0 s", "89 s", "2 min", "90 min", "2 h", "28 h", "2 d"]);
        assert_eq!(milliseconds(Duration::from_millis(63)), "63 ms");
        assert_eq!([grouped(999), grouped(3_400), grouped(1_000_002)], ["999", "3,400", "1,000,002"]);
    }
}
