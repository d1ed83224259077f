//! Progress of a run in `status`.

use serde_json::{Value, json};

use crate::domain::pace::{Backfill, RunPace, Span};
use crate::domain::units::size;
use crate::report::{Said, backfill_text, moving};

/// Returns the progress of all OSDs in one line, and that of the backfill or emptying in another.
///
/// It is that of the last message: if no run is at work, what has moved since is not known.
pub(super) fn progress_lines(said: Option<&Said>) -> Vec<String> {
    let Some(Said { pace: Some(pace), stall, at: now, .. }) = said else { return Vec::new() };
    let now = *now;
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
        "{} of {total} OSDs done, {} in progress, {} queued{quarantined}; {} moved, {} to move{left}",
        pace.done,
        queue.in_progress,
        queue.osds,
        size(progress.moved_bytes),
        size(progress.left_bytes),
    );
    let text = backfill_text(pace, &progress, stall.as_deref(), now);
    let moving = text.map(|text| format!("{}: {text}", moving_osds(pace)));
    [Some(all), moving].into_iter().flatten().collect()
}

/// Returns the OSDs whose data moves: `osd.3, osd.6 backfilling`.
fn moving_osds(pace: &RunPace) -> String {
    let of = |away: bool| -> Vec<String> {
        let those = moving(pace).filter(|backfill| backfill.away == away);
        those.map(|backfill| backfill.osd.to_string()).collect()
    };
    let parts = [(of(true), "emptying"), (of(false), "backfilling")];
    let parts = parts.into_iter().filter(|(osds, _)| !osds.is_empty());
    parts.map(|(osds, what)| format!("{} {what}", osds.join(", "))).collect::<Vec<_>>().join("; ")
}

/// Returns the progress for programs.
pub(super) fn progress_json(said: &Said) -> Option<Value> {
    let (pace, now) = (said.pace.as_ref()?, said.at);
    let progress = pace.progress(now);
    let span = |span: Span| json!({ "shortestSeconds": span.shortest.num_seconds(), "longestSeconds": span.longest.num_seconds() });
    let stalled = progress.stalled.map(|(_, osd)| osd);
    let of_one = |backfill: &Backfill| {
        json!({
            "osd": backfill.osd,
            "emptying": backfill.away,
            "since": backfill.since,
            "totalBytes": backfill.total_bytes,
            "leftBytes": backfill.left_bytes,
            "left": backfill.time_left().map(span),
            "stalledSince": backfill.stalled_since(now),
            "stalledBy": said.stall.as_ref().filter(|_| stalled == Some(backfill.osd)),
        })
    };
    Some(json!({
        "done": pace.done,
        "inProgress": pace.queue.in_progress,
        "queued": pace.queue.osds,
        "quarantined": pace.queue.quarantined,
        "movedBytes": progress.moved_bytes,
        "leftBytes": progress.left_bytes,
        "bytesPerSecond": progress.rate,
        "left": progress.all_left.map(span),
        "backfills": pace.backfills.values().map(of_one).collect::<Vec<_>>(),
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
