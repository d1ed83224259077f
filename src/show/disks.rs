//! Disks of the nodes in `plan`, and progress of the nodes in `status`.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::domain::ledger::Ledger;
use crate::domain::plan::{DiskLine, Disks};
use crate::layout::{Rows, Width};
use crate::show::table::{age, time};

/// Returns one row a disk, followed by what blocks their use.
///
/// Returns nothing if nothing is known and nothing is requested.
pub(super) fn disks_text(disks: &Disks, width: Width) -> Vec<String> {
    let mut parts = Vec::new();
    if !disks.lines.is_empty() {
        let as_of = disks.as_of.map(|at| format!(", as of {}", time(at))).unwrap_or_default();
        parts.push(format!("\nDisks{as_of}:"));
        parts.push(disks_table(&disks.lines).text(width));
    }
    parts.extend(disks.problems.iter().map(|(node, problem)| format!("node {node}: {problem}")));
    if !disks.unseen.is_empty() {
        let names: Vec<_> = disks.unseen.iter().map(ToString::to_string).collect();
        parts.push(format!(
            "the disks of {} were not inspected. To inspect them, in a Job: osd-migrate -n NAMESPACE plan \
             --inventory",
            names.join(", ")
        ));
    }
    parts
}

fn disks_table(lines: &[DiskLine]) -> Rows {
    let mut table = Rows::new(&["NODE", "DISK", "SIZE", "VERDICT", "WHY", "BECOMES", "NAME"]);
    for line in lines {
        table.add([
            line.node.to_string(),
            line.disk.clone(),
            size(line.size_bytes),
            line.verdict.to_owned(),
            line.why.clone().unwrap_or_else(|| "-".to_owned()),
            line.becomes.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            line.stable.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
pub(super) fn size(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Returns the disks for programs.
pub(super) fn disks_json(disks: &Disks) -> (Value, Value, Value) {
    let row = |line: &DiskLine| {
        json!({
            "node": line.node,
            "disk": line.disk,
            "stable": line.stable,
            "sizeBytes": line.size_bytes,
            "verdict": line.verdict,
            "why": line.why,
            "becomes": line.becomes,
        })
    };
    let problems = disks.problems.iter().map(|(node, problem)| format!("node {node}: {problem}"));
    (
        Value::Array(disks.lines.iter().map(row).collect()),
        problems.map(Value::String).collect(),
        json!(disks.unseen),
    )
}

/// Returns the progress of each node with its new OSDs, if a run has inspected the node.
pub(super) fn nodes_text(ledger: &Ledger, now: DateTime<Utc>, width: Width) -> Option<String> {
    if ledger.nodes.is_empty() {
        return None;
    }
    let mut table = Rows::new(&["NODE", "NEW OSDS", "AGE", "MESSAGE"]);
    for (node, work) in &ledger.nodes {
        let said = std::iter::once(&work.message).chain(&work.problems).filter(|text| !text.is_empty());
        let said: Vec<&str> = said.map(String::as_str).collect();
        table.add([node.to_string(), work.status.code().to_owned(), age(work.since, now), said.join("; ")]);
    }
    Some(table.text(width))
}
