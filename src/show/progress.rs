//! Progress of a run in `status`.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::domain::pace::Span;
use crate::domain::units::size;
use crate::report::{Said, backfill_text};

/// Returns the progress of all OSDs in one line, and that of the backfill or emptying in another.
pub(super) fn progress_lines(said: Option<&Said>, now: DateTime<Utc>) -> Vec<String> {
    let Some(Said { pace: Some(pace), stall, .. }) = said else { return Vec::new() };
    let progress = pace.progress(now);
    let queue = pace.queue;
    let total = pace.done + queue.osds + queue.in_progress + queue.quarantined;
    if total == 0 {
        return Vec::new();
    }
    let quarantined =
        if queue.quarantined == 0 { String::new() } else { format!(", {} quarantined", queue.quarantined) };
    let left = progress.all_left.map(|left| format!("; {left} left")).unwrap_or_default();
    let all = format!(
        "{} of {total} OSDs migrated, {} in progress, {} queued{quarantined}; {} moved, {} to move{left}",
        pace.done,
        queue.in_progress,
        queue.osds,
        size(progress.moved_bytes),
        size(progress.left_bytes),
    );
    let one = pace.backfill.as_ref().and_then(|backfill| {
        let text = backfill_text(pace, &progress, stall.as_deref(), now)?;
        let what = if backfill.away { "emptying" } else { "backfilling" };
        Some(format!("{} {what}: {text}", backfill.osd))
    });
    [Some(all), one].into_iter().flatten().collect()
}

/// Returns the progress for programs.
pub(super) fn progress_json(said: &Said, now: DateTime<Utc>) -> Option<Value> {
    let pace = said.pace.as_ref()?;
    let progress = pace.progress(now);
    let span = |span: Span| json!({ "shortestSeconds": span.shortest.num_seconds(), "longestSeconds": span.longest.num_seconds() });
    let backfill = pace.backfill.as_ref().map(|backfill| {
        json!({
            "osd": backfill.osd,
            "emptying": backfill.away,
            "since": backfill.since,
            "totalBytes": backfill.total_bytes,
            "leftBytes": backfill.left_bytes,
            "left": progress.osd_left.map(span),
            "stalledSince": progress.stalled_since,
            "stalledBy": said.stall,
        })
    });
    Some(json!({
        "done": pace.done,
        "inProgress": pace.queue.in_progress,
        "queued": pace.queue.osds,
        "quarantined": pace.queue.quarantined,
        "movedBytes": progress.moved_bytes,
        "leftBytes": progress.left_bytes,
        "bytesPerSecond": progress.rate,
        "left": progress.all_left.map(span),
        "backfill": backfill,
    }))
}

/// Returns the last message of a run for programs.
pub(super) fn said_json(said: &Said) -> Value {
    json!({
        "at": said.at,
        "since": said.since,
        "waits": said.waits,
        "reason": said.reason,
        "says": said.says,
    })
}
