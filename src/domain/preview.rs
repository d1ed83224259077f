//! Preview of a run, OSD by OSD, with the reasons for waiting: the output of `plan`.

use std::collections::{BTreeMap, BTreeSet};

use super::approval::PlanLines;
use super::classify::{self, Class};
use super::gate::{self, Gate, Own, Reason};
use super::ledger::{Ledger, Record, RefusedStep, Strategy};
use super::observation::{Emptiable, Observation};
use super::osd::pvc::PerPvc;
use super::osd::{DbDevice, Kind, Layout, NodeName, OsdId, Role};
use super::places::Place;
use super::plan::{
    Disks, Onto, candidates, changed, databases, directories, host_of, line_of_osd, line_of_pvcs, removals,
    unrequested_removals,
};
use super::policy::Policy;
use super::removal::{Cause, DiskAfter, RemovalRequest};
use super::view::View;

/// One line of the table that `plan` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The OSD.
    pub osd: OsdId,
    /// Host of the OSD in CRUSH.
    pub host: String,
    /// Class of the OSD.
    pub class: Class,
    /// Layout that the OSD will get. None if nothing is to be done.
    pub becomes: Option<Layout>,
    /// Devices as named by the daemon: kernel names, for people only. The stable name is known after the
    /// inspection.
    pub devices: Vec<String>,
    /// The same devices by names that survive a reboot, as far as Ceph knows them.
    pub stable_devices: Vec<String>,
    /// PVC of the data, for an OSD on PVCs.
    pub pvc: Option<String>,
    /// PVCs that the database and the log of an OSD to migrate go to.
    pub parts: Vec<PartOnPvc>,
    /// Directory of the host, for an OSD in a directory. The disk below it is never touched.
    pub directory: Option<String>,
    /// Available disk for an OSD in a directory, if one is known.
    pub onto: Option<Onto>,
    /// Separate device for the database, if there is one and it is known.
    pub db: Option<DbDevice>,
    /// Bytes used on the OSD, as far as they are known. Of an OSD in progress: before its stop.
    pub used_bytes: Option<u64>,
    /// Emptying before the stop; none if the OSD is stopped with its data.
    pub emptied: Option<Emptied>,
    /// Why the OSD is to be removed, and the state that its disk gets; none if it stays.
    pub removal: Option<(Cause, DiskAfter)>,
    /// Strategy, in words.
    pub strategy: &'static str,
    /// Whether the OSD can be migrated now.
    pub now: Now,
}

impl Line {
    /// Returns the bytes that move: those of an OSD that is emptied move away, and back if it is not removed.
    pub fn moved_bytes(&self) -> Option<u64> {
        let times = if self.emptied.is_some() && self.removal.is_none() { 2 } else { 1 };
        self.used_bytes.map(|bytes| bytes.saturating_mul(times))
    }
}

/// Emptying of an OSD before its stop, as far as Ceph was asked about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Emptied {
    /// Bytes that move to other OSDs. As many move back.
    pub moved_bytes: Option<u64>,
    /// The fullest OSD that gets data, and its usage at the highest in percent.
    pub fullest: Option<(OsdId, u64)>,
}

/// Database or log that goes to a PVC of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOnPvc {
    /// Database or log.
    pub role: Role,
    /// Name of the PVC.
    pub pvc: String,
    /// Whether the OSD has this part on the PVC already, by its Deployment.
    pub is_there: bool,
}

/// State of an OSD with respect to a migration that starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// Nothing is to be done.
    Nothing,
    /// The OSD is the next one.
    Next,
    /// The OSD is in progress.
    InFlight,
    /// The OSD failed and is quarantined.
    Quarantined {
        /// why it is quarantined
        why: String,
    },
    /// The OSD has to wait.
    Waits(Reason),
    /// The OSD is not migrated as the cluster is now, and waiting does not help.
    Refused(Reason),
}

/// Returns the preview of a run, one line for each OSD.
pub fn lines(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Vec<Line> {
    let view = View { policy, ledger, seen };
    let mut directories = directories(view);
    let mut databases = databases(view);
    let needs = [lacking(&directories), lacking(&databases)].into_iter().flatten().collect();
    // A first preview shows what the switches would remove if the run was confirmed.
    let confirmed = Policy { confirmed: true, ..policy.clone() };
    let by_switch = removed_by_switch(View { policy: &confirmed, ..view });
    let Previews { mut now, emptied } = previews(&needs, &by_switch, view);
    let classes: BTreeMap<OsdId, Class> = classify::classify(seen);
    classes
        .into_iter()
        .map(|(osd, class)| {
            let record = ledger.records.get(&osd);
            // The class of an OSD in progress may have changed: the record has the original one.
            let class = record.map_or(class, |record| record.class.clone());
            let slot = seen.ceph.slots.get(&osd);
            let metadata = slot.and_then(|slot| slot.metadata.as_ref());
            let removal = removal_of(osd, record, view).or_else(|| by_switch.get(&osd).copied());
            let kind = class.migrates().filter(|_| removal.is_none());
            let target = classify::target_of(osd, seen).filter(|_| kind.is_some());
            let now = now.remove(&osd).unwrap_or(Now::Nothing);
            let is_emptied =
                removal.is_some() || record.map_or(emptied.contains(&osd), |record| record.empty.is_some());
            let onto = record.map_or_else(|| directories.remove(&osd)?.ok(), recorded);
            let db = match (record, &onto) {
                (Some(record), _) => record.db.clone(),
                (None, Some(onto)) => onto.db.clone(),
                (None, None) => databases.remove(&osd).and_then(Result::ok),
            };
            let daemon = seen.kube.daemons.get(&osd);
            let mounted = || daemon?.data_dir.clone();
            let directory = || record.and_then(path).or_else(mounted);
            Line {
                osd,
                host: host_of(osd, seen).unwrap_or_else(|| "-".to_owned()),
                becomes: onto.as_ref().map(|onto| onto.layout.clone()).or(target),
                directory: kind.filter(|kind| kind.in_directory()).and_then(|_| directory()),
                pvc: daemon.and_then(|daemon| daemon.on_pvcs.as_ref()?.data.clone()),
                parts: if kind.is_some() { parts(osd, record, view) } else { Vec::new() },
                onto,
                db,
                devices: metadata.map(|m| m.devices.clone()).unwrap_or_default(),
                stable_devices: metadata.map(|m| m.stable_devices.clone()).unwrap_or_default(),
                used_bytes: view.used_bytes(osd),
                strategy: match removal {
                    Some(_) if view.is_up(osd) => "emptied, removed",
                    Some(_) => "removed",
                    None => strategy(kind, view.selects(osd), is_emptied, &now),
                },
                removal,
                emptied: is_emptied.then(|| price(osd, seen)),
                class,
                now,
            }
        })
        .collect()
}

/// Returns why an OSD is to be removed, or is being removed, and the state that its disk gets.
fn removal_of(osd: OsdId, record: Option<&Record>, view: View<'_>) -> Option<(Cause, DiskAfter)> {
    if let Some(record) = record {
        return record.removal().map(|removal| (removal.cause, removal.disk_after()));
    }
    view.removal_request(osd).map(|request| (Cause::Request, disk_after(osd, request, view)))
}

/// Returns the state that the disk of an OSD without a record gets: that of a dead one is not read.
fn disk_after(osd: OsdId, request: &RemovalRequest, view: View<'_>) -> DiskAfter {
    if view.is_up(osd) { request.disk } else { DiskAfter::Leave }
}

/// Returns the OSDs without a record that switches of the run remove, and what becomes of their disks.
fn removed_by_switch(view: View<'_>) -> BTreeMap<OsdId, (Cause, DiskAfter)> {
    let is_free = |osd: &OsdId| !view.ledger.records.contains_key(osd);
    let all = unrequested_removals(view).into_iter().filter(|(osd, ..)| is_free(osd));
    all.map(|(osd, cause, request)| (osd, (cause, disk_after(osd, &request, view)))).collect()
}

fn strategy(kind: Option<Kind>, selected: bool, is_emptied: bool, now: &Now) -> &'static str {
    match (kind, selected, now) {
        (Some(_), _, Now::Refused(Reason::NoRedundancy { .. })) => "must be emptied first",
        (Some(kind), true, _) if kind.in_directory() && is_emptied => {
            "emptied, on an available disk, same id"
        }
        (Some(kind), true, _) if kind.in_directory() => "on an available disk, same id",
        (Some(_), true, _) if is_emptied => "emptied, same id",
        (Some(_), true, _) => "in place, same id",
        (Some(_), false, _) => "not selected",
        (None, _, _) => "-",
    }
}

/// Returns what the emptying of an OSD moves, if Ceph was asked.
fn price(osd: OsdId, seen: &Observation) -> Emptied {
    match seen.ceph.emptiable.get(&osd) {
        Some(Emptiable::Yes { moved_bytes, fullest }) => {
            Emptied { moved_bytes: Some(*moved_bytes), fullest: *fullest }
        }
        Some(Emptiable::No(_) | Emptiable::Unknown(_)) | None => Emptied::default(),
    }
}

/// Returns the destination of an OSD in a directory, as recorded.
fn recorded(record: &Record) -> Option<Onto> {
    let Strategy::Directory { onto, .. } = &record.strategy else { return None };
    let weight = record.former_weight.map(|before| (before, record.crush.weight));
    Some(Onto { device: onto.clone(), layout: record.target.clone(), db: record.db.clone(), weight })
}

/// Returns the PVCs that database and log of an OSD go to: those of its record, or those that it would get.
fn parts(osd: OsdId, record: Option<&Record>, view: View<'_>) -> Vec<PartOnPvc> {
    let names = |record: &Record| record.pvcs.as_ref().map(|pvcs| pvcs.map(|pvc| pvc.name.clone()));
    let pvcs = record.map_or_else(|| classify::pvcs_of(osd, view.seen), names);
    let on = view.daemon(osd).and_then(|daemon| daemon.on_pvcs.as_ref());
    let is_there =
        |pvc: &String| on.is_some_and(|on| [&on.db, &on.wal].into_iter().flatten().any(|on| on == pvc));
    let part = |(role, pvc): (Role, &String)| PartOnPvc { role, pvc: pvc.clone(), is_there: is_there(pvc) };
    pvcs.iter().flat_map(PerPvc::others).map(part).collect()
}

fn path(record: &Record) -> Option<String> {
    match &record.strategy {
        Strategy::Directory { path, .. } => Some(path.clone()),
        Strategy::InPlace | Strategy::New { .. } | Strategy::Removal(_) => None,
    }
}

/// Returns the OSDs that need another disk and have none, with the reason.
fn lacking<T>(found: &BTreeMap<OsdId, Result<T, Reason>>) -> BTreeMap<OsdId, &Reason> {
    found.iter().filter_map(|(osd, found)| Some((*osd, found.as_ref().err()?))).collect()
}

/// State of the open records and of the OSDs to migrate.
struct Previews {
    now: BTreeMap<OsdId, Now>,
    /// OSDs without a record that are emptied before their stop.
    emptied: BTreeSet<OsdId>,
}

/// Returns the state of the open records and of the OSDs to migrate, in the order of migration.
///
/// `needs`: why an OSD that needs another disk has none.
/// `by_switch`: OSDs that are removed without a request.
fn previews(
    needs: &BTreeMap<OsdId, &Reason>,
    by_switch: &BTreeMap<OsdId, (Cause, DiskAfter)>,
    view: View<'_>,
) -> Previews {
    let mut found: BTreeMap<OsdId, Now> =
        view.ledger.records.values().map(|record| (record.osd, of_record(record))).collect();
    let mut emptied = BTreeSet::new();
    let own = Own::of(&gate::accepted(view), view.seen);
    let for_all = for_all(&own, view);
    let first = view.ledger.in_flight().map(|record| record.osd).next();
    let confirmed = Policy { confirmed: true, ..view.policy.clone() };
    let (removals, mut first) = removals(&own, first, View { policy: &confirmed, ..view });
    found.extend(removals.into_iter().map(|(osd, gate)| (osd, of_removal(gate))));
    for (osd, _) in candidates(view) {
        let Some(node) = view.node_of(osd).filter(|_| !by_switch.contains_key(&osd)) else {
            continue;
        };
        let changed = changed(osd, view);
        let is_emptied = own.is_to_be_emptied(osd, view.policy.empty);
        emptied.extend(is_emptied.then_some(osd));
        let never = own.never(osd).filter(|_| !is_emptied);
        let not_emptied = is_emptied.then(|| cannot_be_emptied(osd, view)).flatten();
        let own_reason = never.or(needs.get(&osd).copied()).or(changed.as_ref()).or(not_emptied.as_ref());
        let now = match (own_reason, &for_all, first) {
            // The reason disappears after an inventory, which the run makes when it comes to the OSD.
            (Some(reason), _, _) if !reason.is_permanent() => {
                first = first.or(Some(osd).filter(|_| for_all.is_none()));
                Now::Waits(reason.clone())
            }
            (Some(reason), _, _) => Now::Refused(reason.clone()),
            (None, Some(reason), _) if reason.is_permanent() => Now::Refused(reason.clone()),
            (None, Some(reason), _) => Now::Waits(why(own.gate(osd, node)).unwrap_or_else(|| reason.clone())),
            // A gate of this OSD blocks no other OSD.
            (None, None, first_of_all) => {
                let soon = why(now_or_soon(&own, (osd, node), is_emptied || first_of_all.is_some()));
                match (soon, first_of_all) {
                    (Some(reason), _) => Now::Waits(reason),
                    (None, Some(first)) => Now::Waits(Reason::Queued { osd: first }),
                    (None, None) => {
                        let emptiable = || gate::emptiable(osd, view.seen);
                        let waits = why(if is_emptied { emptiable() } else { own.gate_asked(osd, node) });
                        // A run asks about this OSD before the others.
                        let is_asked_first = matches!(waits, Some(Reason::EmptyingUnknown { why: None, .. }));
                        first = (waits.is_none() || is_asked_first).then_some(osd);
                        waits.map_or(Now::Next, Now::Waits)
                    }
                }
            }
        };
        found.insert(osd, now);
    }
    Previews { now: found, emptied }
}

/// Returns the gate of this OSD alone.
///
/// The statistics predict the answer to `osd ok-to-stop`, which an empty OSD does not need. While another OSD
/// is in progress, it would only report that OSD's missing replicas.
fn now_or_soon(own: &Own<'_>, (osd, node): (OsdId, &NodeName), without_prediction: bool) -> Gate {
    if without_prediction { own.gate(osd, node) } else { own.gate_predicted(osd, node) }
}

/// Returns why an OSD can't be emptied, by the answer of Ceph or by this run's earlier refusal.
fn cannot_be_emptied(osd: OsdId, view: View<'_>) -> Option<Reason> {
    let refused = view.ledger.refused(osd, &view.policy.run);
    let refused = refused.filter(|refused| refused.step == RefusedStep::Emptying);
    let refused = refused.map(|refused| Reason::CannotBeEmptied { osd, why: refused.why().to_owned() });
    refused.or_else(|| match gate::emptiable(osd, view.seen) {
        Gate::Shut(reason) => Some(reason),
        Gate::Open | Gate::Unknown(_) => None,
    })
}

fn of_removal(gate: Gate) -> Now {
    match why(gate) {
        None => Now::Next,
        Some(reason) if reason.is_permanent() => Now::Refused(reason),
        Some(reason) => Now::Waits(reason),
    }
}

fn of_record(record: &Record) -> Now {
    match &record.quarantine {
        Some(quarantine) => Now::Quarantined { why: quarantine.why.clone() },
        None => Now::InFlight,
    }
}

/// Returns why work on no OSD at all can start now.
///
/// The missing confirmation comes last: a first preview has to show all other reasons.
fn for_all(own: &Own<'_>, view: View<'_>) -> Option<Reason> {
    let begin = why(gate::begin(view));
    // While an OSD is in progress, its own missing replicas would be reported for all other OSDs, which come
    // later anyway.
    let in_flight = view.ledger.in_flight().next().is_some();
    let around = || {
        let around = gate::around_any_stop(&view.ledger.run, view.seen);
        why(gate::first_not_open([around, own.all().clone()])).filter(|_| !in_flight)
    };
    match begin {
        Some(Reason::NotConfirmed) => around().or(Some(Reason::NotConfirmed)),
        Some(reason) => Some(reason),
        None => around(),
    }
}

fn why(gate: Gate) -> Option<Reason> {
    match gate {
        Gate::Open => None,
        Gate::Shut(reason) | Gate::Unknown(reason) => Some(reason),
    }
}

/// Returns the lines that a person approves: OSDs that are to be migrated or in progress, and disks and PVCs
/// that become OSDs.
pub fn plan_lines(lines: &[Line], new: (&Disks, &[Place]), view: View<'_>) -> PlanLines {
    // A plan that is approved confirms no removal: the request does.
    let osds = lines.iter().filter(|line| line.removal.is_none()).filter(|line| match line.now {
        Now::Next | Now::Waits(_) | Now::InFlight | Now::Refused(Reason::ChangedSincePlan { .. }) => true,
        Now::Nothing | Now::Quarantined { .. } | Now::Refused(_) => false,
    });
    let osds = osds.filter_map(|line| Some((line.osd, line_of_osd(line.osd, view)?)));
    let (disks, places) = new;
    let of_disks = disks.lines.iter().filter_map(|line| line.approval.clone());
    let of_pvcs = places.iter().filter_map(Place::available).map(line_of_pvcs);
    PlanLines::new(osds.collect(), of_disks.chain(of_pvcs).collect())
}

/// Returns the reasons that occur, each once.
///
/// Their sentences are printed below the table.
pub fn reasons(lines: &[Line]) -> BTreeSet<&Reason> {
    lines
        .iter()
        .filter_map(|line| match &line.now {
            Now::Waits(reason) | Now::Refused(reason) => Some(reason),
            Now::Nothing | Now::Next | Now::InFlight | Now::Quarantined { .. } => None,
        })
        .collect()
}
