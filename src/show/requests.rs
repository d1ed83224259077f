//! Requests to remove OSDs: the list and the answer of `remove`, the answers of `keep`, and the requests in
//! `status`.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::domain::commands::{REMOVE_CONFIRMED, RUN_REMOVALS};
use crate::domain::gate::names;
use crate::domain::ledger::{Ledger, Record};
use crate::domain::osd::{NodeName, OsdFsid, OsdId};
use crate::domain::removal::{Cause, DiskAfter, Removal, RemovalRequest, Requests};
use crate::domain::undeclared::Found;
use crate::domain::units::size;
use crate::layout::{Rows, Width};
use crate::show::table::age;

/// An OSD whose removal is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToRemove {
    /// The OSD.
    pub osd: OsdId,
    /// The fsid that the request names.
    pub fsid: OsdFsid,
    /// State that its disk gets.
    pub disk: DiskAfter,
    /// Whether the id is kept for a new disk.
    pub keep_id: bool,
    /// Node whose OSDs are all removed.
    pub node: Option<NodeName>,
    /// Host of the OSD in CRUSH.
    pub host: Option<String>,
    /// Devices of the OSD, by the most stable names that Ceph knows.
    pub devices: Option<String>,
    /// Bytes that are on it.
    pub used_bytes: Option<u64>,
    /// Whether its daemon is up.
    pub up: bool,
}

/// OSDs to remove, as a person named them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The OSDs.
    pub found: Vec<ToRemove>,
    /// Words that named them.
    pub by: By,
    /// Sentences about them.
    pub remarks: Vec<String>,
}

/// Words that named the OSDs to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// Their ids.
    Osds,
    /// Their node.
    Node(NodeName),
    /// They are not declared.
    Undeclared,
}

impl Asked {
    fn osds(&self) -> Vec<OsdId> {
        self.found.iter().map(|one| one.osd).collect()
    }

    /// Returns the arguments of `remove`.
    fn to_remove(&self) -> String {
        match &self.by {
            By::Undeclared => "--undeclared".to_owned(),
            By::Osds | By::Node(_) => self.to_keep(),
        }
    }

    /// Returns the arguments of `keep`.
    fn to_keep(&self) -> String {
        match &self.by {
            By::Osds | By::Undeclared => listed(&self.osds()),
            By::Node(node) => format!("--node {node}"),
        }
    }

    /// Returns the argument of `plan`.
    fn to_plan(&self) -> String {
        match &self.by {
            By::Osds | By::Undeclared => format!("--remove {}", listed(&self.osds())),
            By::Node(node) => format!("--remove-node {node}"),
        }
    }
}

/// Requests as they are stored, and what tells whether one is void.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredRequests {
    /// The requests.
    pub requests: Requests,
    /// Fsids that the Deployments of the OSDs start, as far as they are known.
    pub deployed: BTreeMap<OsdId, OsdFsid>,
}

/// State of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
enum RequestState {
    /// No run has begun with it.
    Waiting,
    /// The removal has begun.
    InProgress,
    /// The removal failed.
    Quarantined,
    /// The OSD has another fsid: nothing is removed.
    Void,
}

/// Returns what is removed with these OSDs, and what follows.
pub fn requested_text(asked: &Asked, is_confirmed: bool, width: Width) -> String {
    let found = &asked.found;
    if found.is_empty() {
        let none = "No OSD to remove was found: nothing was requested".to_owned();
        return asked.remarks.iter().cloned().chain([none]).collect::<Vec<_>>().join("\n");
    }
    let mut table = Rows::new(&["OSD", "HOST", "FSID", "DEVICE", "DATA", "ITS DISK"]);
    for one in found {
        let unknown = || "-".to_owned();
        table.add([
            one.osd.to_string(),
            one.host.clone().unwrap_or_else(unknown),
            one.fsid.to_string(),
            one.devices.clone().filter(|devices| !devices.is_empty()).unwrap_or_else(unknown),
            one.used_bytes.map_or_else(unknown, size),
            becomes(if one.up { one.disk } else { DiskAfter::Leave }).to_owned(),
        ]);
    }
    let mut parts = vec![table.text(width)];
    let down: Vec<&OsdId> = found.iter().filter(|one| !one.up).map(|one| &one.osd).collect();
    if !down.is_empty() {
        parts.push(format!(
            "Down: {}. Such an OSD is removed when it is out and its data is on other OSDs; its disk is not read",
            names(down)
        ));
    }
    parts.extend(asked.remarks.iter().cloned());
    if is_confirmed {
        parts.push(format!(
            "Requested: {}. A run removes OSDs only with --removals (value remove.enabled). To start one: {RUN_REMOVALS}",
            names(&asked.osds())
        ));
        let to_keep = asked.to_keep();
        parts.push(format!("To withdraw the request: osd-migrate -n NAMESPACE keep {to_keep}"));
    } else {
        let disk = found.first().map(|one| one.disk).filter(|disk| *disk != DiskAfter::default());
        let mut disk = disk.map(|disk| format!(" --disk {}", disk.code())).unwrap_or_default();
        if found.first().is_some_and(|one| one.keep_id) {
            disk += " --keep-id";
        }
        let (to_plan, to_remove) = (asked.to_plan(), asked.to_remove());
        parts.push(format!("To see where the data would go: osd-migrate -n NAMESPACE plan {to_plan}"));
        parts.push(format!(
            "Not confirmed: nothing was requested. To request it: osd-migrate -n NAMESPACE remove {to_remove}{disk} \
             {REMOVE_CONFIRMED}"
        ));
    }
    parts.join("\n")
}

/// Returns a remark about mons and mgrs on the node whose OSDs are removed; `None` if there are none.
pub fn other_daemons(node: &NodeName, daemons: &BTreeSet<String>) -> Option<String> {
    let (are, stay, them) = if daemons.len() == 1 { ("is", "stays", "it") } else { ("are", "stay", "them") };
    (!daemons.is_empty()).then(|| {
        format!(
            "{} {are} on node {node}, too, and {stay} there. Before you turn the node off, drain it, and wait until \
             Rook has started {them} on other nodes: kubectl drain {node} --ignore-daemonsets \
             --delete-emptydir-data",
            names(daemons)
        )
    })
}

/// Returns sentences about the OSDs that are not declared, and about those of which that is not known.
pub fn undeclared(found: &Found) -> Vec<String> {
    let mut sentences: Vec<String> =
        found.undeclared.iter().map(|(osd, why)| format!("{osd} is not declared: {why}")).collect();
    let mut unknown: BTreeMap<&String, Vec<&OsdId>> = BTreeMap::new();
    for (osd, why) in &found.unknown {
        unknown.entry(why).or_default().push(osd);
    }
    let of_unknown = |(why, osds): (&&String, &Vec<&OsdId>)| {
        format!("Not compared, and kept: {}: {why}", names(osds.iter().copied()))
    };
    sentences.extend(unknown.iter().map(of_unknown));
    sentences
}

/// Returns OSDs as one word of a command line.
fn listed(osds: &[OsdId]) -> String {
    osds.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Returns what becomes of the disk of a removed OSD.
pub(super) fn becomes(disk: DiskAfter) -> &'static str {
    match disk {
        DiskAfter::Wipe => "is wiped",
        DiskAfter::Mark => "is wiped and marked",
        DiskAfter::Leave => "stays as it is",
    }
}

/// Returns why an OSD is removed.
pub(super) fn removed_by(cause: Cause) -> &'static str {
    cause.switch().unwrap_or("removal requested")
}

/// Returns the answer of `keep` about OSDs that stay; the removal of some of them had begun.
pub fn kept(osds: &[OsdId], begun: &[OsdId]) -> String {
    let withdrawn = format!("{}: the request for its removal is withdrawn", names(osds));
    if begun.is_empty() {
        return withdrawn;
    }
    format!(
        "{withdrawn}. A run restores the CRUSH weight of {}, and its data moves back. If no run is at work, start one: \
         {RUN_REMOVALS}",
        names(begun)
    )
}

/// Returns the answer of `keep` about an OSD whose stop a run may have sent already.
pub fn undecided(osd: OsdId) -> String {
    format!(
        "the request for the removal of {osd} is withdrawn, but its stop is under way. A run either restores its CRUSH weight, \
         or completes the removal. To see which: osd-migrate -n NAMESPACE status. If no run is at work, start one: \
         {RUN_REMOVALS}"
    )
}

/// Returns the answer of `keep` about an OSD that is already stopped.
pub fn too_late(record: &Record) -> String {
    let is_wiped = |removal: &&Removal| removal.left.is_none();
    let disk = becomes(record.removal().filter(is_wiped).map_or(DiskAfter::Leave, |removal| removal.disk));
    format!(
        "it is too late to keep {}: it is empty and stopped. A run completes its removal: the id is purged, the disk \
         {disk}. To see its progress: osd-migrate -n NAMESPACE status",
        record.osd
    )
}

impl StoredRequests {
    fn state(&self, osd: OsdId, request: &RemovalRequest, ledger: &Ledger) -> RequestState {
        let record =
            ledger.records.get(&osd).filter(|record| record.is_removal() && record.old == request.fsid);
        match record {
            Some(record) if record.quarantine.is_some() => RequestState::Quarantined,
            Some(_) => RequestState::InProgress,
            None if self.deployed.get(&osd).is_some_and(|fsid| *fsid != request.fsid) => RequestState::Void,
            None => RequestState::Waiting,
        }
    }
}

/// Returns the requests as a table, and the keys that can't be read; none without requests.
pub(super) fn requests_text(
    stored: &StoredRequests,
    ledger: &Ledger,
    now: DateTime<Utc>,
    width: Width,
) -> Option<String> {
    let mut parts = Vec::new();
    let mut table = Rows::new(&["TO REMOVE", "ITS DISK", "REQUESTED", "STATE"]);
    for (osd, request) in &stored.requests.removals {
        let state = match stored.state(*osd, request, ledger) {
            RequestState::Waiting => "waits for a run with --removals",
            RequestState::InProgress => "in progress",
            RequestState::Quarantined => "quarantined",
            RequestState::Void => "void: the OSD has another fsid",
        };
        let requested = request.since.map(|since| format!("{} ago", age(since, now)));
        let removal = ledger.removal(*osd);
        let disk = match (removal, request.disk) {
            (Some(removal), _) => becomes(removal.disk_after()).to_owned(),
            (None, DiskAfter::Leave) => becomes(DiskAfter::Leave).to_owned(),
            // The disk of a dead OSD is not read.
            (None, disk @ (DiskAfter::Wipe | DiskAfter::Mark)) => format!("{} if it is up", becomes(disk)),
        };
        table.add([osd.to_string(), disk, requested.unwrap_or_else(|| "-".to_owned()), state.to_owned()]);
    }
    if !stored.requests.removals.is_empty() {
        parts.push(table.text(width));
    }
    parts.extend(whole_nodes(&stored.requests));
    let is_void = |(osd, request): &(&OsdId, &RemovalRequest)| {
        stored.state(**osd, request, ledger) == RequestState::Void
    };
    let void: Vec<OsdId> = stored.requests.removals.iter().filter(is_void).map(|(osd, _)| *osd).collect();
    if !void.is_empty() {
        let listed = listed(&void);
        parts.push(format!("To delete void requests: osd-migrate -n NAMESPACE keep {listed}"));
    }
    if !stored.requests.unreadable.is_empty() {
        parts.push(format!(
            "Requests that can't be read, and are ignored: {}. See: kubectl -n NAMESPACE get configmap \
             osd-migrate-requests -o yaml",
            names(&stored.requests.unreadable)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// Returns a sentence for each node whose OSDs were requested together.
fn whole_nodes(requests: &Requests) -> Vec<String> {
    let mut nodes: BTreeMap<&NodeName, Vec<OsdId>> = BTreeMap::new();
    for (osd, request) in &requests.removals {
        if let Some(node) = &request.node {
            nodes.entry(node).or_default().push(*osd);
        }
    }
    let sentence = |(node, osds): (&&NodeName, &Vec<OsdId>)| {
        format!(
            "All OSDs of node {node}: {}. To keep them: osd-migrate -n NAMESPACE keep --node {node}",
            names(osds)
        )
    };
    nodes.iter().map(sentence).collect()
}

/// Returns the requests for programs.
pub(super) fn requests_json(stored: Option<&StoredRequests>, ledger: &Ledger) -> Value {
    let Some(stored) = stored else { return json!({ "removals": [], "unreadable": [] }) };
    let row = |(osd, request): (&OsdId, &RemovalRequest)| {
        let state: &str = stored.state(*osd, request, ledger).into();
        json!({
            "osd": osd,
            "fsid": request.fsid,
            "disk": request.disk,
            "keepId": request.keep_id,
            "node": request.node,
            "since": request.since,
            "state": state,
        })
    };
    json!({
        "removals": stored.requests.removals.iter().map(row).collect::<Vec<_>>(),
        "unreadable": stored.requests.unreadable,
    })
}
