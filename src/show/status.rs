//! `status`: records in progress, what runs changed temporarily, the last event; and the answers of `pause`,
//! `cancel` and `resume`.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::domain::commands::{Names, RESUME, RUN_AGAIN};
use crate::domain::gate::names;
use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{Control, ControlKind, Runner};
use crate::domain::osd::DeviceIdentity;
use crate::domain::stage::Stage;
use crate::domain::temporary::{self, Temporary};
use crate::domain::units::size;
use crate::layout::{Rows, Width};
use crate::report::Said;
use crate::show::disks;
use crate::show::document::API_VERSION;
use crate::show::fence::{fence_text, fenced_since};
use crate::show::progress::{progress_json, progress_lines, said_json};
use crate::show::requests::{StoredRequests, removed_by, requests_json, requests_text};
use crate::show::table::{age, quarantined_text};

/// Content of `status`.
pub struct Status<'a> {
    /// Namespace and name of the CephCluster.
    pub names: &'a Names,
    /// Ledger.
    pub ledger: &'a Ledger,
    /// Control that a person set: pause or cancel.
    pub control: Option<&'a Control>,
    /// Whether the PodDisruptionBudget of osd-migrate exists.
    pub own_pdb: bool,
    /// Runner that acquired the Lease last.
    pub runner: Option<&'a Runner>,
    /// Requests to remove OSDs.
    pub requests: Option<&'a StoredRequests>,
    /// Last event of a run.
    pub said: Option<&'a Said>,
    /// Present time.
    pub now: DateTime<Utc>,
}

impl Status<'_> {
    /// Returns the PodDisruptionBudgets that prevent every eviction of an OSD because of osd-migrate.
    fn drains_limited_by(&self) -> Vec<&'static str> {
        let rooks = self.ledger.run.pdb.is_some().then_some("rook-ceph-osd");
        rooks.into_iter().chain(self.own_pdb.then_some("osd-migrate-drains")).collect()
    }

    /// Returns the temporary changes that may be in place.
    fn temporary_changes(&self) -> impl Iterator<Item = &'static Temporary> {
        temporary::ALL.iter().filter(|one| (one.is_saved)(self.ledger))
    }

    fn is_at_work(&self) -> bool {
        self.runner.is_some_and(|runner| runner.is_alive)
    }
}

/// Returns the status in words, with tables of this width.
pub fn status_text(status: &Status<'_>, width: Width) -> String {
    let ledger = status.ledger;
    let mut parts = vec![status.names.cluster_line()];
    parts.extend(runner_line(status));
    parts.extend(progress_lines(status.said));
    if ledger.records.is_empty() {
        parts.push("No OSD is in progress.".to_owned());
    } else {
        parts.push(open_records(status).text(width));
    }
    parts.extend(status.requests.and_then(|stored| requests_text(stored, ledger, status.now, width)));
    for record in ledger.quarantined() {
        let why = record.quarantine.as_ref().map_or("", |quarantine| quarantine.why.as_str());
        parts.push(quarantined_text(record.osd, why));
    }
    if let Some(fenced) = fence_text(ledger, status.now) {
        parts.push(fenced);
    } else if let Some(fence) = &ledger.run.fence {
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
    parts.extend(changes_line(status));
    parts.extend(disks::nodes_text(ledger, status.now, width));
    parts.extend(status.control.map(|control| standing(control, status.now)));
    parts.extend(status.said.map(|said| said_line(said, status)));
    parts.join("\n")
}

/// Returns the line about the temporary changes that may be in place, by the names that metrics have.
fn changes_line(status: &Status<'_>) -> Option<String> {
    let changes: Vec<_> =
        status.temporary_changes().map(|one| format!("{} ({})", one.name, one.what)).collect();
    let restored = if status.is_at_work() {
        "The run restores what no OSD needs any more".to_owned()
    } else {
        format!("The next run restores what no OSD needs any more: {RUN_AGAIN}")
    };
    (!changes.is_empty()).then(|| format!("Temporary changes: {}. {restored}", changes.join(", ")))
}

/// Returns the line about the run at work, or about OSDs in progress that no run works on.
fn runner_line(status: &Status<'_>) -> Option<String> {
    if let Some(Runner { job, pod, .. }) = status.runner.filter(|runner| runner.is_alive) {
        return Some(format!("Job {job} is running (pod {pod})."));
    }
    let osds = names(status.ledger.in_flight().map(|record| &record.osd));
    let suspended =
        status.runner.filter(|runner| runner.has_pod).map(|Runner { pod, renewed_at, .. }| {
            let age = renewed_at.map(|at| format!(" for {}", age(at, status.now))).unwrap_or_default();
            format!(" Pod {pod} exists, and has not renewed its Lease{age}.")
        });
    (!osds.is_empty()).then(|| {
        let suspended = suspended.unwrap_or_default();
        format!("NO RUN IS AT WORK, and OSDs are in progress: {osds}.{suspended} Start a run: {RUN_AGAIN}")
    })
}

fn standing(control: &Control, now: DateTime<Utc>) -> String {
    let what = match control.kind {
        ControlKind::Pause => "Paused",
        ControlKind::Cancel => "Cancelled",
    };
    let since = control.since.map(|at| format!(" {} ago", age(at, now))).unwrap_or_default();
    format!("{what}{since}: runs begin work on no other OSD. To allow runs again: {RESUME}")
}

fn said_line(said: &Said, status: &Status<'_>) -> String {
    let (Said { at, since, waits, says, .. }, now) = (said, status.now);
    let ago = age(*at, now);
    match since.filter(|_| *waits) {
        Some(since) if status.is_at_work() => {
            format!("Waiting for {} (as of {ago} ago): {says}", age(since, now))
        }
        Some(since) => {
            let last = format!("The last run waited for {}, until {ago} ago: {says}", age(since, *at));
            // The line about OSDs in progress says the rest.
            let is_said = status.ledger.in_flight().next().is_some();
            if is_said { last } else { format!("No run is at work. {last}. Start a run: {RUN_AGAIN}") }
        }
        None => format!("Last message, {ago} ago: {says}"),
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
            "paused: runs begin work on no other OSD; an OSD that is stopped for its migration is completed first. To \
             resume: osd-migrate -n NAMESPACE resume"
        }
        (_, Some(ControlKind::Cancel)) => {
            "cancelled: runs begin work on no other OSD; an OSD that is stopped for its migration is completed first, then \
             the run ends with exit code 3. To see its progress: osd-migrate -n NAMESPACE status. To allow \
             runs again: osd-migrate -n NAMESPACE resume"
        }
        (None, None) => "runs are neither paused nor cancelled: nothing was changed",
        (Some(ControlKind::Pause), None) => "resumed: a waiting run continues within some seconds",
        (Some(ControlKind::Cancel), None) => {
            "resumed: a run that has not ended continues. If no run is in progress, start one: kubectl -n \
             NAMESPACE create job --from=cronjob/osd-migrate osd-migrate-$(date +%s)"
        }
    }
}

fn open_records(status: &Status<'_>) -> Rows {
    let mut table = Rows::new(&["OSD", "NODE", "WHY", "MILESTONE", "AGE", "DEVICE"]);
    for record in status.ledger.records.values() {
        let (word, since) = stands_at(record, status);
        let device = record.device().map(DeviceIdentity::stable_name);
        table.add([
            record.osd.to_string(),
            record.node.to_string(),
            why(record),
            word,
            since.map_or_else(|| "-".to_owned(), |at| age(at, status.now)),
            device.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

/// Returns the status for programs.
pub fn status_json(status: &Status<'_>) -> Value {
    let row = |record: &Record| {
        let (word, since) = stands_at(record, status);
        json!({
            "osd": record.osd,
            "record": record.id,
            "node": record.node,
            "why": why(record),
            "milestone": word,
            "since": since,
            "emptying": emptying_json(record, status),
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
        "apiVersion": API_VERSION,
        "kind": "Status",
        "namespace": status.names.namespace,
        "cluster": status.names.cluster,
        "runner": status.runner.map(|Runner { job, pod, renewed_at, is_alive, .. }| {
            json!({ "job": job, "pod": pod, "renewedAt": renewed_at, "alive": is_alive })
        }),
        "open": status.ledger.records.values().map(row).collect::<Vec<_>>(),
        "requests": requests_json(status.requests, status.ledger),
        "nodes": status.ledger.nodes,
        "fence": status.ledger.run.fence,
        "fencedSince": fenced_since(status.ledger),
        "operator": operator,
        "drains": { "wait": !pdbs.is_empty(), "limitedBy": pdbs },
        "temporaryChanges": status.temporary_changes().map(|one| one.name).collect::<Vec<_>>(),
        "control": control,
        "progress": status.said.and_then(progress_json),
        "last": status.said.map(said_json),
    })
}

/// Returns the bytes that are left on an OSD that is marked out, and serves; none if there is no such OSD.
///
/// The last message of a run is more recent than the ledger, which is saved with each tenth less.
fn left_bytes(record: &Record, status: &Status<'_>) -> Option<u64> {
    let empty = record.empty.as_ref().filter(|empty| empty.out_since.is_some())?;
    if empty.emptied_at.is_some() {
        return Some(0);
    }
    let pace = status.said.and_then(|said| said.pace.as_ref()?.backfills.get(&record.osd));
    let pace = pace.filter(|emptying| emptying.away);
    pace.map(|emptying| emptying.left_bytes).or(empty.least.map(|(bytes, _)| bytes))
}

fn emptying_json(record: &Record, status: &Status<'_>) -> Option<Value> {
    let empty = record.empty.as_ref()?;
    Some(json!({
        "bytes": empty.bytes,
        "leftBytes": left_bytes(record, status),
        "markedOutAt": empty.out_since,
        "emptiedAt": empty.emptied_at,
    }))
}

/// Returns why an OSD is in progress.
fn why(record: &Record) -> String {
    let removal = record.removal().map(|removal| removed_by(removal.cause).to_owned());
    removal.unwrap_or_else(|| record.class.to_string())
}

/// Returns the last saved milestone of a record in words, and its time.
fn stands_at(record: &Record, status: &Status<'_>) -> (String, Option<DateTime<Utc>>) {
    if Stage::of(record) == Stage::Emptying {
        let left = left_bytes(record, status).map(|bytes| format!(", {} left on it", size(bytes)));
        let since = record.empty.as_ref().and_then(|empty| empty.out_since.or(empty.intended_at));
        return (format!("emptying{}", left.unwrap_or_default()), since);
    }
    let Some((word, at)) = record.milestones.last() else { return ("recorded".to_owned(), None) };
    let words = match word.as_str() {
        "stop" | "pgs-gone" | "down" | "wipe-blocked" | "wipe" | "disk-left" | "host-left"
            if record.is_removal() =>
        {
            "removing"
        }
        "record" => "recorded, inspecting its disk",
        "inspect" => "inspecting its disk",
        "proof" if record.empty.is_some() => "disk proven, emptying is next",
        "proof" => "disk proven, stop is next",
        "emptied" | "emptying-progress" => "emptied, stop is next",
        "stop-intent-cleared" => "emptied, stop is postponed",
        "stop" | "pgs-gone" => "stopping and destroying",
        "rebuild" => "recreating",
        "restore-slot" => "restoring its slot",
        "clear" => "removing its old directory",
        "new" => "recreated, starting and backfilling",
        "closing" | "removed" | "uncleared" | "withdrawn" | "not-emptied" => "cleaning up",
        "quarantine" => "quarantined",
        other => other,
    };
    (words.to_owned(), Some(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_names_each_temporary_change_that_is_saved() {
        let (names, mut ledger) = (Names::default(), Ledger::default());
        let runner = Runner {
            job: "m".to_owned(),
            pod: "m-x".to_owned(),
            renewed_at: None,
            has_pod: true,
            is_alive: true,
        };
        let of = |ledger: &Ledger, runner| {
            let status = Status {
                names: &names,
                ledger,
                control: None,
                own_pdb: false,
                runner,
                requests: None,
                said: None,
                now: DateTime::UNIX_EPOCH,
            };
            (status_text(&status, Width::Unknown), status_json(&status)["temporaryChanges"].clone())
        };
        let (text, json) = of(&ledger, None);
        assert!(!text.contains("Temporary changes"), "{text}");
        assert_eq!(json, json!([]));
        (ledger.run.bootstrap, ledger.run.fence) = (true, Some("osd-migrate-1".to_owned()));
        let (text, json) = of(&ledger, None);
        let line = "Temporary changes: fence (label of the CephCluster), bootstrap (user client.bootstrap-osd \
                    of Ceph). The next run restores what no OSD needs any more: kubectl ";
        assert!(text.contains(line), "{text}");
        assert_eq!(json, json!(["fence", "bootstrap"]));
        let (text, _) = of(&ledger, Some(&runner));
        assert!(text.contains("The run restores what no OSD needs any more") && !text.contains("The next"));
    }

    #[test]
    fn resumed_run_is_not_promised_within_a_second() {
        // A pause of a run that waits takes up to 30 s.
        assert!(control_changed(Some(ControlKind::Pause), None).ends_with("within some seconds"));
    }
}
