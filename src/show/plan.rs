//! `plan`: one row an OSD, and what follows below the table.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::domain::gate::Reason;
use crate::domain::osd::OsdId;
use crate::domain::plan::Disks;
use crate::domain::preview::{self, Line, Now};
use crate::show::disks;
use crate::show::table::{quarantined_text, table};

/// Returns the plan, one row an OSD.
///
/// The reasons follow below it in full, each once and unbroken: they contain commands to be copied.
pub fn plan_table(lines: &[Line], devices: &BTreeMap<OsdId, String>, disks: &Disks) -> String {
    let mut table = table(&["OSD", "HOST", "CLASS", "WHY", "BECOMES", "DEVICE", "STRATEGY", "NOW"]);
    for line in lines {
        table.add_row([
            line.osd.to_string(),
            line.host.clone(),
            line.class.word().to_owned(),
            line.class.to_string(),
            line.becomes.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            device(line, devices),
            line.strategy.to_owned(),
            now(&line.now),
        ]);
    }
    let mut parts = if lines.is_empty() { Vec::new() } else { vec![table.to_string()] };
    parts.extend(preview::reasons(lines).into_iter().map(|reason| format!("{}: {reason}", reason.word())));
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
        Now::InFlight => "in flight".to_owned(),
        Now::Quarantined { .. } => "left alone".to_owned(),
        Now::Waits(Reason::Queued { osd }) => format!("after {osd}"),
        Now::Waits(reason) => reason.word().to_owned(),
        Now::Refused(reason) => format!("refused: {}", reason.word()),
    }
}

/// Returns the target of an OSD in a directory.
fn goes_to(line: &Line) -> Option<String> {
    let (directory, onto) = (line.directory.as_ref()?, line.onto.as_ref()?);
    let weight =
        onto.weight.map(|(before, after)| format!("; CRUSH weight {before} -> {after}, by its size"));
    Some(format!(
        "{}: its id is made anew on {} ({}){}; {directory} is removed when its data is there",
        line.osd,
        onto.device.stable_name(),
        disks::size(onto.device.size_bytes),
        weight.unwrap_or_default()
    ))
}

/// Returns the target of an OSD's database.
fn database_on(line: &Line) -> Option<String> {
    let db = line.db.as_ref()?;
    let size = db.size_mib.map_or_else(|| "all of it".to_owned(), |mib| format!("{mib} MiB of it"));
    Some(format!("{}: its database goes to {}, {size}", line.osd, db.identity.stable_name()))
}

fn quarantined(line: &Line) -> Option<String> {
    match &line.now {
        Now::Quarantined { why } => Some(quarantined_text(line.osd, why)),
        Now::Nothing | Now::Next | Now::InFlight | Now::Waits(_) | Now::Refused(_) => None,
    }
}

/// Returns the plan for programs: a list of objects with the columns of the table.
pub fn plan_json(lines: &[Line], devices: &BTreeMap<OsdId, String>, disks: &Disks) -> Value {
    let row = |line: &Line| {
        json!({
            "osd": line.osd,
            "host": line.host,
            "class": line.class.word(),
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
    json!({ "osds": osds, "disks": disks, "problems": problems, "notLookedAt": unseen })
}

fn now_json(now: &Now) -> Value {
    let (state, reason, message) = match now {
        Now::Nothing => ("nothing", None, None),
        Now::Next => ("next", None, None),
        Now::InFlight => ("in-flight", None, None),
        Now::Quarantined { why } => ("quarantined", None, Some(why.clone())),
        Now::Waits(reason) => ("waits", Some(reason.word()), Some(reason.to_string())),
        Now::Refused(reason) => ("refused", Some(reason.word()), Some(reason.to_string())),
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
        (None, None) => format!("{} (today)", line.devices.join(", ")),
    }
}
