//! Tables and JSON of `plan` and `status`, and the texts of the hooks. This module creates text from domain
//! values; `main` prints it.

mod disks;
mod drift;
mod preflight;

pub use drift::{drift_json, drift_text};
pub use preflight::{
    UNINSTALL_ALL_THE_SAME, left_behind, left_without_cluster, no_cluster, not_inspected, preflight,
    still_open,
};

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::domain::commands::{RESUME, retry};
use crate::domain::gate::Reason;
use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{Control, ControlKind};
use crate::domain::osd::{DeviceIdentity, OsdId};
use crate::domain::plan::Disks;
use crate::domain::preview::{self, Line, Now};
use crate::report::Said;

/// Columns that a table may take: fits a terminal of 120 columns (kubectl's tables do).
const WIDTH: u16 = 120;

/// Returns the plan, one row an OSD.
///
/// The reasons follow below it in full, each once and unbroken: they contain commands to be copied.
pub fn plan_table(lines: &[Line], devices: &BTreeMap<OsdId, String>, disks: &Disks) -> String {
    let mut table = table(&["OSD", "HOST", "CLASS", "WHY", "BECOMES", "DEVICE", "STRATEGY", "NOW"]);
    for line in lines {
        table.add_row([
            line.osd.to_string(),
            line.host.clone(),
            line.class.code().to_owned(),
            line.class.to_string(),
            line.becomes.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            device(line, devices),
            line.strategy.to_owned(),
            now(&line.now),
        ]);
    }
    let mut parts = if lines.is_empty() { Vec::new() } else { vec![table.to_string()] };
    parts.extend(preview::reasons(lines).into_iter().map(|reason| format!("{}: {reason}", reason.code())));
    parts.extend(lines.iter().filter_map(goes_to));
    parts.extend(lines.iter().filter_map(database_on));
    parts.extend(lines.iter().filter_map(quarantined));
    parts.extend(disks::disks_text(disks));
    parts.join("\n")
}

/// Returns the state of an OSD in one or two words.
fn now(now: &Now) -> String {
    match now {
        Now::Nothing => "-".to_owned(),
        Now::Next => "next".to_owned(),
        Now::InFlight => "in progress".to_owned(),
        Now::Quarantined { .. } => "quarantined".to_owned(),
        Now::Waits(Reason::Queued { osd }) => format!("after {osd}"),
        Now::Waits(reason) => reason.code().to_owned(),
        Now::Refused(reason) => format!("refused: {}", reason.code()),
    }
}

/// Returns the target of an OSD in a directory.
fn goes_to(line: &Line) -> Option<String> {
    let (directory, onto) = (line.directory.as_ref()?, line.onto.as_ref()?);
    let weight =
        onto.weight.map(|(before, after)| format!("; CRUSH weight {before} -> {after}, by its size"));
    Some(format!(
        "{}: recreated with its id on {} ({}){}; {directory} is removed when the new OSD has all its data",
        line.osd,
        onto.device.stable_name(),
        disks::size(onto.device.size_bytes),
        weight.unwrap_or_default()
    ))
}

/// Returns the target of an OSD's database.
fn database_on(line: &Line) -> Option<String> {
    let db = line.db.as_ref()?;
    let size = db.size_mib.map_or_else(|| "the whole device".to_owned(), |mib| format!("{mib} MiB"));
    Some(format!("{}: its database is created on {} ({size})", line.osd, db.identity.stable_name()))
}

fn quarantined(line: &Line) -> Option<String> {
    match &line.now {
        Now::Quarantined { why } => Some(quarantined_text(line.osd, why)),
        Now::Nothing | Now::Next | Now::InFlight | Now::Waits(_) | Now::Refused(_) => None,
    }
}

fn quarantined_text(osd: OsdId, why: &str) -> String {
    format!("{osd} is quarantined: {why}. When the cause is fixed: {}", retry(osd))
}

/// Returns the plan for programs: a list of objects with the columns of the table.
pub fn plan_json(lines: &[Line], devices: &BTreeMap<OsdId, String>, disks: &Disks) -> Value {
    let row = |line: &Line| {
        json!({
            "osd": line.osd,
            "host": line.host,
            "class": line.class.code(),
            "why": line.class.to_string(),
            "becomes": line.becomes,
            "device": device(line, devices),
            "directory": line.directory,
            "onto": line.onto.as_ref().map(|onto| json!({
                "device": onto.device.stable_name(),
                "sizeBytes": onto.device.size_bytes,
                "weight": onto.weight.map(|(before, after)| [before.as_decimal(), after.as_decimal()]),
            })),
            "database": line.db.as_ref().map(|db| json!({
                "device": db.identity.stable_name(),
                "sizeMiB": db.size_mib,
            })),
            "strategy": line.strategy,
            "now": now_json(&line.now),
        })
    };
    let (disks, problems, unseen) = disks::disks_json(disks);
    let osds: Vec<_> = lines.iter().map(row).collect();
    json!({ "osds": osds, "disks": disks, "problems": problems, "notInspected": unseen })
}

fn now_json(now: &Now) -> Value {
    let (state, reason, message) = match now {
        Now::Nothing => ("nothing", None, None),
        Now::Next => ("next", None, None),
        Now::InFlight => ("in-progress", None, None),
        Now::Quarantined { why } => ("quarantined", None, Some(why.clone())),
        Now::Waits(reason) => ("waits", Some(reason.code()), Some(reason.to_string())),
        Now::Refused(reason) => ("refused", Some(reason.code()), Some(reason.to_string())),
    };
    json!({ "state": state, "reason": reason, "message": message })
}

/// Returns the stable name if one is known; otherwise the kernel's name, marked as such, because it may name
/// another disk tomorrow.
fn device(line: &Line, devices: &BTreeMap<OsdId, String>) -> String {
    match (devices.get(&line.osd), &line.directory) {
        // The disk that Ceph reports is that of the host's system.
        (_, Some(directory)) => directory.clone(),
        (Some(name), None) => name.clone(),
        (None, None) if !line.stable_devices.is_empty() => line.stable_devices.join(", "),
        (None, None) if line.devices.is_empty() => "-".to_owned(),
        (None, None) => format!("{} (kernel name)", line.devices.join(", ")),
    }
}

/// Content of `status`.
pub struct Status<'a> {
    /// Ledger.
    pub ledger: &'a Ledger,
    /// Control that a person set: pause or cancel.
    pub control: Option<&'a Control>,
    /// Whether the PodDisruptionBudget of osd-migrate exists.
    pub own_pdb: bool,
    /// Last event of a run.
    pub said: Option<&'a Said>,
}

impl Status<'_> {
    /// Returns the PodDisruptionBudgets that prevent every eviction of an OSD because of osd-migrate.
    fn drains_limited_by(&self) -> Vec<&'static str> {
        let rooks = self.ledger.run.pdb.is_some().then_some("rook-ceph-osd");
        rooks.into_iter().chain(self.own_pdb.then_some("osd-migrate-drains")).collect()
    }
}

/// Returns the status in words.
pub fn status_text(status: &Status<'_>) -> String {
    let ledger = status.ledger;
    let mut parts = Vec::new();
    if ledger.records.is_empty() {
        parts.push("No OSD is in progress.".to_owned());
    } else {
        parts.push(open_records(ledger).to_string());
    }
    for record in ledger.quarantined() {
        let why = record.quarantine.as_ref().map_or("", |quarantine| quarantine.why.as_str());
        parts.push(quarantined_text(record.osd, why));
    }
    if let Some(fence) = &ledger.run.fence {
        parts.push(format!("Rook is kept from reconciling: ceph.rook.io/do-not-reconcile={fence}"));
    }
    if let Some(operator) = &ledger.run.operator {
        let (name, replicas) = (&operator.name, operator.replicas);
        parts.push(format!(
            "Rook's operator {name} is scaled to 0 during the migration; osd-migrate scales it back to \
             {replicas} at the end"
        ));
    }
    let pdbs = status.drains_limited_by();
    if !pdbs.is_empty() {
        let pdbs = pdbs.join(", ");
        parts.push(format!("Drains of nodes wait: no OSD may be evicted (PodDisruptionBudget {pdbs})"));
    }
    parts.extend(disks::nodes_text(ledger));
    parts.extend(status.control.map(standing));
    parts.extend(status.said.map(said));
    parts.join("\n")
}

fn standing(control: &Control) -> String {
    let what = match control.kind {
        ControlKind::Pause => "Paused",
        ControlKind::Cancel => "Cancelled",
    };
    let since = control.since.map(|at| format!(" since {}", time(at))).unwrap_or_default();
    format!("{what}{since}: no OSD is started. To allow runs again: {RESUME}")
}

fn said(said: &Said) -> String {
    let Said { at, since, waits, says, .. } = said;
    match since.filter(|_| *waits) {
        Some(since) => format!("Waiting since {} (as of {}): {says}", time(since), time(*at)),
        None => format!("Last message, at {}: {says}", time(*at)),
    }
}

/// Returns the answer of `pause`, `cancel` and `resume` to the previous control and the requested one.
pub fn control_changed(standing: Option<ControlKind>, asked: Option<ControlKind>) -> &'static str {
    match (standing, asked) {
        (Some(ControlKind::Cancel), Some(ControlKind::Pause)) => {
            "runs are already cancelled, which goes further than a pause: nothing was changed. To allow runs \
             again: osd-migrate -n NAMESPACE resume"
        }
        (_, Some(ControlKind::Pause)) => {
            "paused: no OSD is started; an OSD that is stopped for its migration is completed first. To \
             resume: osd-migrate -n NAMESPACE resume"
        }
        (_, Some(ControlKind::Cancel)) => {
            "cancelled: no OSD is started; an OSD that is stopped for its migration is completed first, then \
             the run ends with exit code 3. To see its progress: osd-migrate -n NAMESPACE status. To allow \
             runs again: osd-migrate -n NAMESPACE resume"
        }
        (None, None) => "runs are neither paused nor cancelled: nothing was changed",
        (Some(ControlKind::Pause), None) => "resumed: a waiting run continues within 1 s",
        (Some(ControlKind::Cancel), None) => {
            "resumed: a run that has not ended continues. If no run is in progress, start one: kubectl -n \
             NAMESPACE create job --from=cronjob/osd-migrate osd-migrate-$(date +%s)"
        }
    }
}

fn open_records(ledger: &Ledger) -> Table {
    let mut table = table(&["OSD", "NODE", "WHY", "MILESTONE", "SINCE", "DEVICE"]);
    for record in ledger.records.values() {
        let (word, since) = stands_at(record);
        let device = record.device().map(DeviceIdentity::stable_name);
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

/// Returns the status for programs.
pub fn status_json(status: &Status<'_>) -> Value {
    let row = |record: &Record| {
        let (word, since) = stands_at(record);
        json!({
            "osd": record.osd,
            "record": record.id,
            "node": record.node,
            "why": record.class.to_string(),
            "milestone": word,
            "since": since,
            "attempts": record.attempt.number,
            "failures": record.attempt.failures,
            "quarantine": record.quarantine,
        })
    };
    let control = status.control.map(|control| {
        let kind = match control.kind {
            ControlKind::Pause => "pause",
            ControlKind::Cancel => "cancel",
        };
        json!({ "kind": kind, "since": control.since })
    });
    let operator = status.ledger.run.operator.as_ref();
    let operator = operator.map(|was| json!({ "name": was.name, "replicas": was.replicas }));
    let pdbs = status.drains_limited_by();
    json!({
        "open": status.ledger.records.values().map(row).collect::<Vec<_>>(),
        "nodes": status.ledger.nodes,
        "fence": status.ledger.run.fence,
        "operator": operator,
        "drains": { "wait": !pdbs.is_empty(), "limitedBy": pdbs },
        "control": control,
        "last": status.said,
    })
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// Returns the last saved milestone of a record in words, and its time.
fn stands_at(record: &Record) -> (String, String) {
    let Some((word, at)) = record.milestones.last() else { return ("recorded".to_owned(), "-".to_owned()) };
    let words = match word.as_str() {
        "record" => "recorded, inspecting its disk",
        "inspect" => "inspecting its disk",
        "proof" => "disk proven, stop is next",
        "stop" | "pgs-gone" => "stopping and destroying",
        "rebuild" => "recreating",
        "restore-slot" => "restoring its slot",
        "clear" => "removing its old directory",
        "new" => "recreated, starting and backfilling",
        "closing" | "uncleared" | "withdrawn" => "cleaning up",
        "quarantine" => "quarantined",
        other => other,
    };
    (words.to_owned(), time(*at))
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header.to_vec());
    table
}
