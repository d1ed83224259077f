//! `status`: records in progress, what runs changed temporarily, the last event; and the answers of `pause`,
//! `cancel` and `resume`.

use comfy_table::Table;
use serde_json::{Value, json};

use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{Control, ControlKind};
use crate::domain::osd::DeviceIdentity;
use crate::report::Said;
use crate::show::disks;
use crate::show::table::{quarantined_text, table, time};

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
        parts.push("No OSD is being migrated or made.".to_owned());
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
            "Rook's operator {name} is kept at 0; in the end it gets its {replicas} replicas back"
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
    format!("{what}{since}: no OSD is begun. To let runs begin again: osd-migrate resume")
}

fn said(said: &Said) -> String {
    let Said { at, since, waits, says, .. } = said;
    match since.filter(|_| *waits) {
        Some(since) => format!("Waits since {} (as of {}): {says}", time(since), time(*at)),
        None => format!("Last, at {}: {says}", time(*at)),
    }
}

/// Returns the answer of `pause`, `cancel` and `resume` to the previous control and the requested one.
pub fn control_changed(standing: Option<ControlKind>, asked: Option<ControlKind>) -> &'static str {
    match (standing, asked) {
        (Some(ControlKind::Cancel), Some(ControlKind::Pause)) => {
            "cancelled already, which is more than paused: nothing was changed. To let runs begin again: osd-migrate resume"
        }
        (_, Some(ControlKind::Pause)) => {
            "paused: no OSD is begun; one that is stopped for its migration is finished first. To go on: osd-migrate resume"
        }
        (_, Some(ControlKind::Cancel)) => {
            "cancelled: no OSD is begun; one that is stopped for its migration is finished first, then the run ends with 3. \
             To see how far it is: osd-migrate status. To let runs begin again: osd-migrate resume"
        }
        (None, None) => "neither paused nor cancelled: nothing was changed",
        (Some(ControlKind::Pause), None) => "resumed: a run that waits goes on within a second",
        (Some(ControlKind::Cancel), None) => {
            "resumed: a run that has not ended goes on; else start one: kubectl create job --from=cronjob/osd-migrate NAME"
        }
    }
}

fn open_records(ledger: &Ledger) -> Table {
    let mut table = table(&["OSD", "NODE", "WHY", "STANDS AT", "SINCE", "DEVICE"]);
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
            "standsAt": word,
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
        "order": control,
        "last": status.said,
    })
}

/// Returns the last saved milestone of a record in words, and its time.
fn stands_at(record: &Record) -> (String, String) {
    let Some((word, at)) = record.milestones.last() else { return ("recorded".to_owned(), "-".to_owned()) };
    let words = match word.as_str() {
        "record" => "recorded, device being looked at",
        "inspect" => "device being looked at",
        "proof" => "device proven, to be stopped",
        "stop" | "pgs-gone" => "being stopped and destroyed",
        "rebuild" => "being made anew",
        "restore-slot" => "its slot being given back",
        "clear" => "its old directory being removed",
        "new" => "made anew, starting and filling",
        "closing" | "uncleared" | "withdrawn" => "cleaning up",
        "quarantine" => "left alone",
        other => other,
    };
    (words.to_owned(), time(*at))
}
