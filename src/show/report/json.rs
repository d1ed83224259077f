//! `report` as JSON.

use serde_json::{Value, json};

use crate::domain::history::{Confirmed, ConfirmedBy, Entry, Row, Span};
use crate::show::document::API_VERSION;
use crate::show::report::Report;

/// Returns the report for programs.
pub fn report_json(report: &Report<'_>) -> Value {
    let sums = report.account.sums(report.now);
    let outcomes = sums.outcomes.iter().map(|(outcome, count)| (outcome.code(), *count));
    let (from, to) = sums.period.unzip();
    json!({
        "apiVersion": API_VERSION,
        "kind": "Report",
        "namespace": report.names.namespace,
        "cluster": report.names.cluster,
        "at": report.now,
        "summary": {
            "outcomes": outcomes.collect::<std::collections::BTreeMap<_, _>>(),
            "movedBytes": sums.moved_bytes,
            "waits": sums.waits,
            "from": from,
            "to": to,
        },
        "unreadLines": report.unread,
        "confirmations": report.account.confirmations().iter().map(confirmed).collect::<Vec<_>>(),
        "osds": report.account.rows.iter().map(|row| osd(row, report)).collect::<Vec<_>>(),
    })
}

fn confirmed(confirmed: &Confirmed) -> Value {
    let known = confirmed.confirmation.as_ref();
    let (by, plan) = match known.map(|known| &known.by) {
        Some(ConfirmedBy::Flag) => (Some("flag"), None),
        Some(ConfirmedBy::CephCluster) => (Some("cephCluster"), None),
        Some(ConfirmedBy::Plan(hash)) => (Some("plan"), Some(hash)),
        None => (None, None),
    };
    json!({
        "job": known.map(|known| &known.job),
        "scheduled": known.map(|known| known.scheduled),
        "by": by,
        "plan": plan,
        "who": known.and_then(|known| known.who.as_ref()),
        "at": known.and_then(|known| known.at),
        "osds": confirmed.osds,
    })
}

fn osd(row: &Row, report: &Report<'_>) -> Value {
    let entry = &row.entry;
    let complete = |text: &String| report.names.complete(text);
    let note = |note: &crate::domain::history::Note| json!({ "at": note.at, "code": note.code, "why": report.names.complete(&note.why) });
    let disk = entry.disk.as_ref();
    json!({
        "osd": entry.key.osd,
        "record": entry.key.id,
        "attempt": entry.key.attempt,
        "outcome": entry.outcome.code(),
        "why": entry.why.as_ref().map(complete),
        "node": entry.node,
        "class": entry.class.code(),
        "target": entry.target,
        "removal": entry.is_removal(),
        "directory": entry.directory,
        "disk": disk.map(|disk| json!({
            "name": disk.name, "serial": disk.serial, "sizeBytes": disk.size_bytes,
        })),
        "database": entry.database,
        "oldFsid": entry.old,
        "newFsid": entry.new,
        "usedBytes": entry.used_bytes,
        "emptiedBytes": entry.emptied_bytes,
        "movedBytes": entry.moved_bytes,
        "revertedStops": entry.restarts,
        "startedAt": entry.began_at(),
        "endedAt": entry.ended_at(),
        "seconds": row.took.num_seconds(),
        "phases": row.spans.iter().map(phase).collect::<Vec<_>>(),
        "waits": entry.waits,
        "waitsBefore": entry.waits_before,
        "notes": entry.notes.iter().map(note).collect::<Vec<_>>(),
        "jobs": entry.jobs,
        "pods": entry.pods,
        "earlier": row.earlier.iter().map(|entry| earlier(entry, report)).collect::<Vec<_>>(),
    })
}

fn phase(span: &Span) -> Value {
    json!({
        "phase": span.stage.code(), "from": span.from, "to": span.to, "seconds": span.time().num_seconds(),
    })
}

fn earlier(entry: &Entry, report: &Report<'_>) -> Value {
    json!({
        "attempt": entry.key.attempt,
        "outcome": entry.outcome.code(),
        "why": entry.why.as_ref().map(|why| report.names.complete(why)),
        "endedAt": entry.ended_at(),
    })
}
