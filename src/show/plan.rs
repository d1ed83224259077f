//! `plan`: one row an OSD, and what follows below the table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::domain::approval::PlanHash;
use crate::domain::classify::Class;
use crate::domain::estimate::{Rate, Totals};
use crate::domain::gate::{Reason, names};
use crate::domain::osd::{OsdId, Role};
use crate::domain::places::Place;
use crate::domain::plan::Disks;
use crate::domain::preview::{self, Emptied, Line, Now};
use crate::domain::removal::{Cause, DiskAfter};
use crate::domain::units::{size, time};
use crate::layout::{Rows, Width};
use crate::show::document::API_VERSION;
use crate::show::requests::{becomes, removed_by};
use crate::show::table::quarantined_text;
use crate::show::{disks, places};

/// Content of `plan`.
pub struct Plan<'a> {
    /// One line for each OSD.
    pub lines: &'a [Line],
    /// Stable names of devices that an inspection has proven.
    pub devices: &'a BTreeMap<OsdId, String>,
    /// Disks of the nodes.
    pub disks: &'a Disks,
    /// Places of device sets that have no OSD.
    pub places: &'a [Place],
    /// Rate for the estimate of times.
    pub rate: Rate,
    /// Hash of the plan, by which a person approves it; none if nothing is to be done or it is not stored.
    pub hash: Option<&'a PlanHash>,
    /// Sentences about OSDs, hosts and classes that were selected and do not exist.
    pub unmatched: &'a BTreeSet<String>,
}

/// Rows and columns of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanDetail {
    /// Rows of OSDs that are as declared, too.
    pub all: bool,
    /// More columns.
    pub wide: bool,
    /// Width of the tables.
    pub width: Width,
}

impl Plan<'_> {
    /// Returns the lines of OSDs that are not as declared, or of all.
    fn shown(&self, all: bool) -> impl Iterator<Item = &Line> {
        let differs = |line: &Line| line.class != Class::Conforming || line.now != Now::Nothing;
        self.lines.iter().filter(move |line| all || differs(line))
    }

    fn row(&self, line: &Line, wide: bool) -> Vec<String> {
        let usual = [
            line.osd.to_string(),
            line.host.clone(),
            why(line),
            line.becomes.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            device(line, self.devices),
            line.used_bytes.map_or_else(|| "-".to_owned(), size),
            self.time(line),
            now(&line.now),
        ];
        let more = [line.class.code().to_owned(), line.strategy.to_owned()];
        usual.into_iter().chain(more.into_iter().filter(|_| wide)).collect()
    }

    /// Returns the expected time of an OSD to migrate.
    fn time(&self, line: &Line) -> String {
        match (&line.now, line.moved_bytes()) {
            (Now::Next | Now::Waits(_), Some(bytes)) => time(self.rate.time_of_osd(bytes)),
            _ => "-".to_owned(),
        }
    }
}

/// Returns the plan: the summary, then one row for each OSD that is not as declared.
///
/// The reasons follow below it in full, each once and unbroken: they contain commands to be copied.
pub fn plan_text(plan: &Plan<'_>, detail: PlanDetail) -> String {
    let lines = plan.lines;
    let mut parts = Vec::new();
    if !lines.is_empty() {
        parts.push(Totals::of(lines, plan.rate).sentence(plan.rate));
    }
    let usual = ["OSD", "HOST", "WHY", "BECOMES", "DEVICE", "DATA", "TIME", "NOW"];
    let header = usual.into_iter().chain(["CLASS", "STRATEGY"].into_iter().filter(|_| detail.wide));
    let mut table = Rows::new(&header.collect::<Vec<_>>());
    let rows: Vec<_> = plan.shown(detail.all).map(|line| plan.row(line, detail.wide)).collect();
    if !rows.is_empty() {
        for row in rows {
            table.add(row);
        }
        parts.push(table.text(detail.width));
    }
    parts.extend(preview::reasons(lines).into_iter().map(|reason| format!("{}: {reason}", reason.code())));
    parts.extend(emptied_first(lines));
    parts.extend(removed(lines));
    parts.extend(lines.iter().filter_map(price));
    parts.extend(lines.iter().filter_map(goes_to));
    parts.extend(lines.iter().filter_map(database_on));
    parts.extend(lines.iter().flat_map(parts_on_pvcs));
    parts.extend(lines.iter().filter_map(quarantined));
    parts.extend(disks::disks_text(plan.disks, detail.width));
    parts.extend(places::places_text(plan.places));
    parts.extend(plan.unmatched.iter().cloned());
    parts.extend(plan.hash.map(|hash| {
        format!("To migrate exactly this, as long as it is so: osd-migrate -n NAMESPACE run --approve {hash}")
    }));
    parts.join("\n")
}

/// Returns the names of the OSDs to migrate, one a line.
pub fn plan_names(plan: &Plan<'_>) -> String {
    let to_migrate = plan.lines.iter().filter(|line| matches!(line.now, Now::Next | Now::Waits(_)));
    let to_migrate = to_migrate.filter(|line| line.removal.is_none());
    to_migrate.map(|line| line.osd.to_string()).collect::<Vec<_>>().join("\n")
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

/// Returns why something is done with an OSD.
fn why(line: &Line) -> String {
    line.removal.map_or_else(|| line.class.to_string(), |(cause, _)| removed_by(cause).to_owned())
}

/// Names the OSDs to remove, with what becomes of their disks, and how to keep one.
fn removed(lines: &[Line]) -> impl Iterator<Item = String> {
    let of = |cause: Cause| {
        let of = lines.iter().filter_map(|line| Some((line.osd, line.removal?)));
        let of: Vec<_> = of.filter(|(_, (why, _))| *why == cause).collect();
        let (first, _) = of.first()?;
        let named = |(osd, (_, disk)): &(OsdId, (Cause, DiskAfter))| match (cause, disk) {
            (Cause::Directory, DiskAfter::Wipe | DiskAfter::Mark) => {
                format!("{osd} (its directory is deleted)")
            }
            (Cause::Directory, DiskAfter::Leave) => format!("{osd} (its directory {})", becomes(*disk)),
            (Cause::Request | Cause::Out, _) => format!("{osd} (its disk {})", becomes(*disk)),
        };
        let osds = of.iter().map(named).collect::<Vec<_>>().join(", ");
        Some(match cause.switch() {
            None => {
                format!("Removed, as requested: {osds}. To keep one: osd-migrate -n NAMESPACE keep {first}")
            }
            Some(switch) => format!(
                "Removed, because {switch} is on: {osds}. To keep one: run with --skip {first} (value \
                 run.skip)"
            ),
        })
    };
    [Cause::Request, Cause::Directory, Cause::Out].into_iter().filter_map(of)
}

/// Names the OSDs to migrate that are emptied before their stop.
fn emptied_first(lines: &[Line]) -> Option<String> {
    /// OSDs that are named. The column STRATEGY of `-o wide` shows all of them.
    const NAMED: usize = 20;
    let is_migrated = |line: &Line| line.removal.is_none() && matches!(line.now, Now::Next | Now::Waits(_));
    let is_emptied = |line: &&Line| line.emptied.is_some() && is_migrated(line);
    let osds: Vec<&OsdId> = lines.iter().filter(is_emptied).map(|line| &line.osd).collect();
    let more = osds.len().checked_sub(NAMED).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    let named = names(osds.iter().take(NAMED).copied());
    (!osds.is_empty())
        .then(|| format!("Emptied before the stop (their data moves to other OSDs, and back): {named}{more}"))
}

/// Returns what the emptying of an OSD moves, if Ceph was asked.
fn price(line: &Line) -> Option<String> {
    let Emptied { moved_bytes, fullest } = line.emptied.as_ref()?;
    let fullest = fullest.map(|(osd, percent)| format!("; the fullest OSD then: {osd}, {percent} %"));
    let (osd, bytes, fullest) = (line.osd, size((*moved_bytes)?), fullest.unwrap_or_default());
    let back = if line.removal.is_some() { "" } else { ", and back" };
    Some(format!("{osd} is emptied first: {bytes} move{back}{fullest}"))
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

/// Returns the PVCs of an OSD's database and log.
fn parts_on_pvcs(line: &Line) -> impl Iterator<Item = String> {
    line.parts.iter().map(|part| {
        let what = if part.role == Role::Wal { "log" } else { "database" };
        let goes = if part.is_there { "is created again on" } else { "goes to" };
        format!("{}: its {what} {goes} PVC {}", line.osd, part.pvc)
    })
}

/// Returns the PVC of an OSD's database or log.
fn pvc_of(role: Role, line: &Line) -> Option<&str> {
    line.parts.iter().find(|part| part.role == role).map(|part| part.pvc.as_str())
}

fn quarantined(line: &Line) -> Option<String> {
    match &line.now {
        Now::Quarantined { why } => Some(quarantined_text(line.osd, why)),
        Now::Nothing | Now::Next | Now::InFlight | Now::Waits(_) | Now::Refused(_) => None,
    }
}

/// Returns the plan for programs: the summary, and a list of objects with the columns of the table.
pub fn plan_json(plan: &Plan<'_>) -> Value {
    let Plan { lines, devices, disks, places, rate, hash, unmatched } = *plan;
    let totals = Totals::of(lines, rate);
    let row = |line: &Line| {
        json!({
            "osd": line.osd,
            "host": line.host,
            "class": line.class.code(),
            "why": why(line),
            "becomes": line.becomes,
            "device": device(line, devices),
            "pvc": line.pvc,
            "databasePvc": pvc_of(Role::Db, line),
            "logPvc": pvc_of(Role::Wal, line),
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
            "removal": line.removal.map(|(_, disk)| disk),
            "emptied": line.emptied.as_ref().map(|emptied| json!({
                "movedBytes": emptied.moved_bytes,
                "fullest": emptied.fullest.map(|(osd, percent)| json!({ "osd": osd, "percent": percent })),
            })),
            "usedBytes": line.used_bytes,
            "expectedSeconds": line.moved_bytes().map(|bytes| rate.time_of_osd(bytes).num_seconds()),
            "now": now_json(&line.now),
        })
    };
    let (disks, problems, unseen) = disks::disks_json(disks);
    let osds: Vec<_> = lines.iter().map(row).collect();
    json!({
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "hash": hash.map(ToString::to_string),
        "summary": {
            "toMigrate": totals.to_migrate,
            "toRemove": totals.to_remove,
            "inProgress": totals.in_progress,
            "quarantined": totals.quarantined,
            "refused": totals.refused,
            "notSelected": totals.not_selected,
            "asDeclared": totals.as_declared,
            "bytes": totals.bytes,
            "expectedSeconds": totals.time.num_seconds(),
            "bytesPerSecond": rate.bytes,
            "isRateMeasured": rate.is_measured,
        },
        "osds": osds,
        "disks": disks,
        "deviceSets": places::places_json(places),
        "problems": problems,
        "notInspected": unseen,
        "unmatched": unmatched,
    })
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
    // The kernel's name is that of the loop device or mapping through which the pod uses the PVC.
    if let Some(pvc) = &line.pvc {
        return format!("PVC {pvc}");
    }
    match (devices.get(&line.osd), &line.directory) {
        // The disk that Ceph reports is that of the host's system.
        (_, Some(directory)) => directory.clone(),
        (Some(name), None) => name.clone(),
        (None, None) if !line.stable_devices.is_empty() => line.stable_devices.join(", "),
        (None, None) if line.devices.is_empty() => "-".to_owned(),
        (None, None) => format!("{} (kernel name)", line.devices.join(", ")),
    }
}
