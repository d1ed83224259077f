//! Tables and JSON of `plan` and `status`: text made of domain values, printed by `main`.

use std::collections::BTreeMap;

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::domain::ledger::{Ledger, Record};
use crate::domain::osd::OsdId;
use crate::domain::plan::Line;

/// Columns that a table may take: fits a terminal of 120 (kubectl's tables do).
const WIDTH: u16 = 120;

/// The plan, one row an OSD.
pub fn plan_table(lines: &[Line], devices: &BTreeMap<OsdId, String>) -> String {
    let mut table = table(&["OSD", "HOST", "CLASS", "WHY", "BECOMES", "DEVICE", "STRATEGY"]);
    for line in lines {
        table.add_row([
            line.osd.to_string(),
            line.host.clone(),
            line.class.word().to_owned(),
            line.class.to_string(),
            line.becomes.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            device(line, devices),
            line.strategy.to_owned(),
        ]);
    }
    table.to_string()
}

/// The plan for programs: a list of objects with the columns of the table.
pub fn plan_json(lines: &[Line], devices: &BTreeMap<OsdId, String>) -> Value {
    let row = |line: &Line| {
        json!({
            "osd": line.osd,
            "host": line.host,
            "class": line.class.word(),
            "why": line.class.to_string(),
            "becomes": line.becomes,
            "device": device(line, devices),
            "strategy": line.strategy,
        })
    };
    json!({ "osds": lines.iter().map(row).collect::<Vec<_>>() })
}

/// The stable name where one is known; else the kernel's, marked as such, because it may name another disk tomorrow.
fn device(line: &Line, devices: &BTreeMap<OsdId, String>) -> String {
    match devices.get(&line.osd) {
        Some(name) => name.clone(),
        None if !line.stable_devices.is_empty() => line.stable_devices.join(", "),
        None if line.devices.is_empty() => "-".to_owned(),
        None => format!("{} (today)", line.devices.join(", ")),
    }
}

/// The ledger in words.
pub fn status_text(ledger: &Ledger, doing: Option<&str>) -> String {
    let mut parts = Vec::new();
    if ledger.records.is_empty() {
        parts.push("No OSD is being migrated.".to_owned());
    } else {
        parts.push(open_records(ledger).to_string());
    }
    for record in ledger.quarantined() {
        let why = record.quarantine.as_ref().map_or("", |quarantine| quarantine.why.as_str());
        parts.push(format!(
            "{} was left alone: {why}. When that is mended: osd-migrate retry {}",
            record.osd, record.osd
        ));
    }
    if let Some(fence) = &ledger.run.fence {
        parts.push(format!("Rook is kept from reconciling: ceph.rook.io/do-not-reconcile={fence}"));
    }
    parts.extend(doing.map(|doing| format!("Last: {doing}")));
    parts.join("\n")
}

fn open_records(ledger: &Ledger) -> Table {
    let mut table = table(&["OSD", "NODE", "WHY", "STANDS AT", "SINCE", "DEVICE"]);
    for record in ledger.records.values() {
        let (word, since) = stands_at(record);
        let device = record.evidence.as_ref().map(|evidence| evidence.device.stable_name());
        table.add_row([
            record.osd.to_string(),
            record.node.to_string(),
            record.class.to_string(),
            word,
            since,
            device.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

/// The ledger for programs.
pub fn status_json(ledger: &Ledger, doing: Option<&str>) -> Value {
    let row = |record: &Record| {
        let (word, since) = stands_at(record);
        json!({
            "osd": record.osd,
            "record": record.id,
            "node": record.node,
            "why": record.class.to_string(),
            "standsAt": word,
            "since": since,
            "attempts": record.attempt.number,
            "failures": record.attempt.failures,
            "quarantine": record.quarantine,
        })
    };
    json!({
        "open": ledger.records.values().map(row).collect::<Vec<_>>(),
        "fence": ledger.run.fence,
        "last": doing,
    })
}

/// The last thing saved of it, in words, and when.
fn stands_at(record: &Record) -> (String, String) {
    let Some((word, at)) = record.milestones.last() else { return ("recorded".to_owned(), "-".to_owned()) };
    let words = match word.as_str() {
        "record" => "recorded, device being looked at",
        "inspect" => "device being looked at",
        "proof" => "device proven, to be stopped",
        "stop" => "being stopped and destroyed",
        "rebuild" => "being made anew",
        "give-back" => "its slot being given back",
        "new" => "made anew, starting and filling",
        "closing" | "withdrawn" => "cleaning up",
        "quarantine" => "left alone",
        other => other,
    };
    (words.to_owned(), at.format("%Y-%m-%d %H:%M:%SZ").to_string())
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header.to_vec());
    table
}
