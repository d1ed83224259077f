//! `plan --remove`: what a removal of OSDs would move, and whether there is space for it.

use serde_json::{Value, json};

use crate::domain::estimate::Rate;
use crate::domain::forecast::{Change, Forecast, Obstacle, Placement, Remark};
use crate::domain::observation::Ceph;
use crate::domain::osd::OsdId;
use crate::domain::units::{size, time};
use crate::layout::{Rows, Width};
use crate::show::document::API_VERSION;
use crate::show::pgs::{changed_pgs, changed_pgs_json};

/// Number of rows without `--all`: the OSDs that are the fullest at the highest.
const ROWS: usize = 20;

/// Content of `plan --remove`.
pub struct Removal<'a> {
    /// Forecast.
    pub forecast: &'a Forecast,
    /// Placement by which it was computed.
    pub placement: &'a Placement,
    /// Cluster as it is now.
    pub ceph: &'a Ceph,
    /// Rate for the expected time.
    pub rate: Rate,
}

/// Returns the forecast.
///
/// It has the summary, the expected time, one row for each OSD that gets or loses PGs, PGs per OSD, and the
/// reasons against the removal.
pub fn removal_text(removal: &Removal<'_>, all: bool, width: Width) -> String {
    let Removal { forecast, placement, ceph, rate } = *removal;
    let mut parts = vec![summary(forecast), expected_time(forecast, rate)];
    let rows = by_usage(forecast);
    let shown = if all { rows.len() } else { rows.len().min(ROWS) };
    let mut table = Rows::new(&["OSD", "PGS", "GETS", "LOSES", "NOW", "HIGHEST", "THEN"]);
    for (osd, change) in rows.iter().take(shown) {
        table.add(row(*osd, change));
    }
    if shown > 0 {
        parts.push(table.text(width));
    }
    if shown < rows.len() {
        parts.push(format!("{} more OSDs get or lose PGs: --all", rows.len() - shown));
    }
    parts.extend(changed_pgs(placement, ceph));
    if forecast.unclean > 0 {
        parts.push(format!(
            "{} PGs are not active+clean now. The forecast is for the time when they are",
            forecast.unclean
        ));
    }
    if forecast.obstacles.is_empty() {
        parts.push("Every PG finds its OSDs, and every OSD has space.".to_owned());
    }
    parts.extend(forecast.obstacles.iter().map(|obstacle| format!("{}: {obstacle}", obstacle.code())));
    parts.extend(forecast.remarks.iter().map(|remark| format!("{}: {remark}", remark.code())));
    parts.join("\n")
}

fn summary(forecast: &Forecast) -> String {
    let Forecast { epoch, pgs, moved_bytes, held_bytes, .. } = forecast;
    let osds: Vec<_> = forecast.without.iter().map(ToString::to_string).collect();
    format!(
        "Without {} (CRUSH weight 0, osdmap {epoch}), {pgs} PGs move: {}{}. Nothing is changed.",
        osds.join(", "),
        size(*moved_bytes),
        tenths_of_held(*moved_bytes, *held_bytes)
            .map(|tenths| format!(", {}.{} times what is on {}", tenths / 10, tenths % 10, it(osds.len())))
            .unwrap_or_default()
    )
}

fn it(osds: usize) -> &'static str {
    if osds == 1 { "it" } else { "them" }
}

/// Returns the moved bytes as a multiple of the bytes on the removed OSDs, in tenths.
fn tenths_of_held(moved: u64, held: u64) -> Option<u64> {
    moved.saturating_mul(10).checked_div(held)
}

fn expected_time(forecast: &Forecast, rate: Rate) -> String {
    rate.measured_time(forecast.moved_bytes).map_or_else(
        || "Expected time: unknown, because no run of osd-migrate has measured a rate yet".to_owned(),
        |expected| format!("Expected time: about {} at {rate}", time(expected)),
    )
}

/// Returns the OSDs, the fullest at the highest first.
fn by_usage(forecast: &Forecast) -> Vec<(OsdId, Change)> {
    let mut rows: Vec<_> = forecast.osds.iter().map(|(osd, change)| (*osd, *change)).collect();
    rows.sort_by_key(|(_, change)| std::cmp::Reverse(change.percent(change.peak_bytes())));
    rows
}

fn row(osd: OsdId, change: &Change) -> [String; 7] {
    let percent = |bytes: u64| match change.total_bytes {
        0 => "?".to_owned(),
        _ => format!("{} %", change.percent(bytes)),
    };
    [
        osd.to_string(),
        change.pgs.to_string(),
        change.gains.to_string(),
        change.loses.to_string(),
        percent(change.used_bytes),
        percent(change.peak_bytes()),
        percent(change.end_bytes()),
    ]
}

/// Returns the forecast for programs, with the up sets of the PGs that move.
pub fn removal_json(removal: &Removal<'_>) -> Value {
    let Removal { forecast, placement, ceph, rate } = *removal;
    let osds: Vec<_> = by_usage(forecast)
        .into_iter()
        .map(|(osd, change)| {
            json!({
                "osd": osd.0,
                "pgs": change.pgs,
                "pgsGained": change.gains,
                "pgsLost": change.loses,
                "totalBytes": change.total_bytes,
                "usedBytes": change.used_bytes,
                "highestBytes": change.peak_bytes(),
                "endBytes": change.end_bytes(),
            })
        })
        .collect();
    let ids = |osds: &std::collections::BTreeSet<OsdId>| osds.iter().map(|osd| osd.0).collect::<Vec<_>>();
    let moves: Vec<_> = placement
        .moves
        .iter()
        .map(|(pg, moved)| json!({"pg": pg.to_string(), "now": ids(&moved.now), "then": ids(&moved.then)}))
        .collect();
    let obstacle = |obstacle: &Obstacle| json!({"reason": obstacle.code(), "message": obstacle.to_string()});
    let remark = |remark: &Remark| json!({"reason": remark.code(), "message": remark.to_string()});
    json!({
        "apiVersion": API_VERSION,
        "kind": "RemovalForecast",
        "epoch": forecast.epoch.0,
        "without": ids(&forecast.without),
        "movedBytes": forecast.moved_bytes,
        "heldBytes": forecast.held_bytes,
        "movedTenthsOfHeld": tenths_of_held(forecast.moved_bytes, forecast.held_bytes),
        "bytesPerSecond": rate.is_measured.then_some(rate.bytes),
        "expectedSeconds": rate.measured_time(forecast.moved_bytes).map(|expected| expected.num_seconds()),
        "uncleanPgs": forecast.unclean,
        "possible": forecast.obstacles.is_empty(),
        "obstacles": forecast.obstacles.iter().map(obstacle).collect::<Vec<_>>(),
        "remarks": forecast.remarks.iter().map(remark).collect::<Vec<_>>(),
        "pgsPerOsd": changed_pgs_json(placement, ceph),
        "osds": osds,
        "pgs": moves,
    })
}
