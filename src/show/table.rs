//! What all tables have in common.

use chrono::{DateTime, Utc};
use comfy_table::{ContentArrangement, Table, presets};

use crate::domain::commands::retry;
use crate::domain::osd::OsdId;
use crate::domain::units;

/// Columns that a table may take: fits a terminal of 120 columns (kubectl's tables do).
const WIDTH: u16 = 120;

/// Returns an empty table with this header.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header.to_vec());
    table
}

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
