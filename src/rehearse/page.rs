//! Result of a rehearsal as text and as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::domain::classify::{self, Class};
use crate::domain::next::Summary;
use crate::domain::observation::Slot;
use crate::domain::osd::OsdId;
use crate::domain::plan::Questions;
use crate::domain::units::size;
use crate::layout::{Rows, Width, fitted};
use crate::rehearse::fault;
use crate::rehearse::lines::{self, Detail};
use crate::rehearse::rehearsal::Rehearsal;
use crate::rehearse::story::{Line, LineKind, time};
use crate::run::End;
use crate::sim::World;

/// Returns the page with this part of the story.
pub fn text(rehearsal: &Rehearsal, detail: Detail, width: Width) -> String {
    let mut parts = lines::text(&rehearsal.lines, detail, width);
    if !parts.is_empty() {
        parts.push(String::new());
    }
    parts.push(table(rehearsal).text(width));
    parts.push(String::new());
    parts.extend(summary(rehearsal).iter().map(|line| fitted(line, width)));
    parts.join("\n")
}

/// Returns the page for programs.
pub fn json(rehearsal: &Rehearsal) -> Value {
    let event = |line: &Line| {
        json!({
            "seconds": line.at.num_seconds(),
            "osd": line.osd,
            "fault": line.kind == LineKind::Fault,
            "message": line.text,
        })
    };
    let row = |row: Row| {
        json!({
            "osd": row.osd, "host": row.host, "was": row.was, "is": row.is, "device": row.device,
            "fsidChanged": row.new_fsid, "placeSame": row.place, "weightSame": row.weight,
            "reweightSame": row.reweight,
        })
    };
    json!({
        "events": rehearsal.lines.iter().map(event).collect::<Vec<_>>(),
        "osds": rows(rehearsal).into_iter().map(row).collect::<Vec<_>>(),
        "summary": {
            "end": ended(rehearsal),
            "seconds": rehearsal.took.num_seconds(),
            "migrated": migrated(rehearsal),
            "copiedBytes": rehearsal.copied,
            "faults": rehearsal.struck,
            "faultsWithoutOccasion": rehearsal.not_struck,
        },
    })
}

/// State of one OSD before and after.
struct Row {
    osd: OsdId,
    host: String,
    was: String,
    is: String,
    device: String,
    is_gone: bool,
    new_fsid: bool,
    place: bool,
    weight: bool,
    reweight: bool,
}

fn classes(world: &World) -> BTreeMap<OsdId, Class> {
    classify::classify(&world.observe(|_| Questions::default()))
}

fn rows(rehearsal: &Rehearsal) -> Vec<Row> {
    let (before, after) = (classes(&rehearsal.before), classes(&rehearsal.after));
    let row = |(osd, was): (&OsdId, &Slot)| {
        let is = rehearsal.after.ceph.slots.get(osd);
        let item = |slot: Option<&Slot>| slot.and_then(|slot| slot.crush.clone());
        let (item_was, item_is) = (item(Some(was)), item(is));
        Row {
            osd: *osd,
            host: item_was.as_ref().and_then(|item| item.host().cloned()).unwrap_or_default(),
            was: layout(before.get(osd), was),
            is: is.map_or_else(|| "gone".to_owned(), |slot| layout(after.get(osd), slot)),
            device: device(&rehearsal.before, was),
            is_gone: is.is_none(),
            new_fsid: is.and_then(|slot| slot.fsid) != was.fsid,
            place: item_is.as_ref().map(|item| &item.location)
                == item_was.as_ref().map(|item| &item.location),
            weight: item_is.map(|item| item.weight) == item_was.map(|item| item.weight),
            reweight: is.map(|slot| slot.reweight) == Some(was.reweight),
        }
    };
    rehearsal.before.ceph.slots.iter().map(row).collect()
}

fn layout(class: Option<&Class>, slot: &Slot) -> String {
    match class {
        Some(class @ (Class::Legacy(_) | Class::Mismatched(_))) => class.to_string(),
        Some(Class::Conforming) if slot.up => "BlueStore raw".to_owned(),
        Some(Class::Conforming) => "BlueStore raw, down".to_owned(),
        Some(Class::Available | Class::Refused(_)) | None => "not in service".to_owned(),
    }
}

fn device(world: &World, slot: &Slot) -> String {
    let disk = slot.fsid.and_then(|fsid| world.disk_of(fsid));
    disk.and_then(|(_, disk)| disk.identity.by_id.first().cloned()).unwrap_or_else(|| "-".to_owned())
}

fn table(rehearsal: &Rehearsal) -> Rows {
    let mut table = Rows::new(&["OSD", "HOST", "WAS", "IS", "DEVICE", "FSID", "PLACE", "WEIGHT", "REWEIGHT"]);
    let same = |same: bool| if same { "same" } else { "OTHER" }.to_owned();
    let fsid = |is_gone: bool, is_new: bool| match (is_gone, is_new) {
        (true, _) => "-",
        (false, true) => "new",
        (false, false) => "same",
    };
    for row in rows(rehearsal) {
        table.add([
            row.osd.to_string(),
            row.host,
            row.was,
            row.is,
            row.device,
            fsid(row.is_gone, row.new_fsid).to_owned(),
            same(row.place),
            same(row.weight),
            same(row.reweight),
        ]);
    }
    table
}

/// Returns how many legacy OSDs conform now.
fn migrated(rehearsal: &Rehearsal) -> usize {
    let after = classes(&rehearsal.after);
    let is_now = |osd: &OsdId| after.get(osd) == Some(&Class::Conforming);
    fault::legacy(&rehearsal.before).iter().filter(|osd| is_now(osd)).count()
}

fn ended(rehearsal: &Rehearsal) -> &'static str {
    match &rehearsal.end {
        Some(Ok(End::Finished(Summary { quarantined, .. }))) if quarantined.is_empty() => "finished",
        Some(Ok(End::Finished(_))) => "finished, some OSDs quarantined",
        Some(Ok(End::Halted(_))) => "halted, a person is needed",
        Some(Ok(End::LeftToOther)) => "left to another run",
        Some(Err(_)) => "failed",
        None => "waits for a person",
    }
}

fn summary(rehearsal: &Rehearsal) -> Vec<String> {
    let legacy = fault::legacy(&rehearsal.before).len();
    let mut lines = vec![format!(
        "{}: {} of {legacy} OSDs migrated in {} of virtual time; {} copied, each OSD's data once",
        ended(rehearsal),
        migrated(rehearsal),
        time(rehearsal.took),
        size(rehearsal.copied),
    )];
    if let Some(first) = lines.first_mut().filter(|_| !rehearsal.struck.is_empty()) {
        *first = first.trim_end_matches(", each OSD's data once").to_owned();
    }
    if !rehearsal.struck.is_empty() {
        lines.push(format!("faults that struck: {}", rehearsal.struck.join(", ")));
    }
    if !rehearsal.not_struck.is_empty() {
        lines.push(format!("faults that found no occasion: {}", rehearsal.not_struck.join(", ")));
    }
    lines
}
