//! Times of the API and of the domain.

use chrono::{DateTime, Utc};
use k8s_openapi::jiff::Timestamp;

/// Converts a time of the API. Times outside chrono's range can't occur.
pub(crate) fn from_jiff(time: Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.as_second(), u32::try_from(time.subsec_nanosecond()).ok()?)
}

/// Converts a time for the API, to the microsecond that `MicroTime` has.
pub(crate) fn to_jiff(time: DateTime<Utc>) -> Timestamp {
    Timestamp::from_microsecond(time.timestamp_micros()).unwrap_or(Timestamp::UNIX_EPOCH)
}
