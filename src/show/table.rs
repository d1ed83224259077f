//! What all tables have in common.

use crate::domain::commands::retry;
use crate::domain::osd::OsdId;
use crate::domain::units;
use chrono::{DateTime, Utc};

/// Returns a time for people.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// Returns the age of a time for people.
pub(super) fn age(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    units::time(now - at)
}

/// Returns the line of an OSD that is quarantined.
pub(super) fn quarantined_text(osd: OsdId, why: &str) -> String {
    format!("{osd} is quarantined: {why}. When the cause is fixed: {}", retry(osd))
}
