//! Words and times that the text and the page share.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::history::{Confirmed, Entry, Outcome, Span, Sums};
use crate::domain::osd::OsdId;
use crate::domain::units::{size, time};
use crate::show::report::Report;

/// Returns a time of day with its date, to the minute.
pub(super) fn moment(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}

/// Returns the outcome in words.
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Migrated => "migrated",
        Outcome::Created => "created",
        Outcome::Removed => "removed",
        Outcome::Quarantined => "quarantined",
        Outcome::Withdrawn => "withdrawn",
        Outcome::InProgress => "in progress",
    }
}

/// Returns the sums in one sentence.
pub(super) fn summary(sums: &Sums) -> String {
    if sums.outcomes.is_empty() {
        return "No OSD was migrated, and none is in progress.".to_owned();
    }
    let counts = sums.outcomes.iter().map(|(kind, count)| format!("{count} {}", outcome(*kind)));
    let counts: Vec<String> = counts.collect();
    let period = sums
        .period
        .map(|(from, to)| format!("; from {} to {} UTC ({})", moment(from), moment(to), time(to - from)));
    format!("OSDs: {}; {} moved{}.", counts.join(", "), size(sums.moved_bytes), period.unwrap_or_default())
}

/// Returns waits, the longest first.
pub(super) fn waits(waits: &BTreeMap<String, i64>) -> Vec<(String, String)> {
    let mut sorted: Vec<_> = waits.iter().collect();
    sorted.sort_by_key(|(code, seconds)| (-**seconds, code.as_str()));
    sorted.into_iter().map(|(code, seconds)| (code.clone(), time(TimeDelta::seconds(*seconds)))).collect()
}

/// Returns waits in one line; none if there were none.
pub(super) fn waits_line(all: &BTreeMap<String, i64>) -> Option<String> {
    let words: Vec<String> = waits(all).into_iter().map(|(code, time)| format!("{code} {time}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Returns stages with their times, and the date before the first time of a day.
pub(super) fn phases(spans: &[Span]) -> String {
    let mut date = None;
    let words = spans.iter().map(|span| {
        let is_new = date.replace(span.from.date_naive()) != Some(span.from.date_naive());
        let at = span.from.format(if is_new { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" });
        format!("{} {at} ({})", span.stage.code(), time(span.time()))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the ids of OSDs as ranges.
fn ranges(osds: &BTreeSet<OsdId>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for osd in osds {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == osd.0 => *last = osd.0,
            _ => ranges.push((osd.0, osd.0)),
        }
    }
    let word = |(first, last): (u32, u32)| {
        if first == last { format!("osd.{first}") } else { format!("osd.{first} to osd.{last}") }
    };
    ranges.into_iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Returns the reason for the migration and the result.
pub(super) fn change(entry: &Entry) -> String {
    if entry.is_removal() {
        return "removal".to_owned();
    }
    format!("{} becomes {}", entry.class, entry.target)
}

/// Returns the disk with its serial number, unless its name is that.
pub(super) fn disk(entry: &Entry) -> String {
    let Some(disk) = &entry.disk else { return "not known".to_owned() };
    let serial = disk.serial.as_ref().filter(|serial| !disk.name.contains(serial.as_str()));
    let serial = serial.map(|serial| format!(", serial {serial}")).unwrap_or_default();
    format!("{} ({}{serial})", disk.name, size(disk.size_bytes))
}

/// How a run was confirmed, who did it and when.
pub(super) struct Approval {
    pub(super) job: String,
    pub(super) how: String,
    pub(super) who: String,
    pub(super) at: String,
    /// OSDs that the run began with.
    pub(super) osds: String,
}

impl Approval {
    /// Returns the confirmation in words.
    pub(super) fn of(confirmed: &Confirmed) -> Self {
        let unknown = || "not known".to_owned();
        let known = confirmed.confirmation.as_ref();
        let scheduled = known.is_some_and(|known| known.scheduled);
        Self {
            job: known.map_or_else(unknown, |known| known.job.clone()),
            how: known.map_or_else(unknown, |known| {
                format!("{}{}", known.by.words(), if scheduled { ", scheduled" } else { "" })
            }),
            who: known.and_then(|known| known.who.clone()).unwrap_or_else(unknown),
            at: known.and_then(|known| known.at).map_or_else(unknown, moment),
            osds: ranges(&confirmed.osds),
        }
    }
}

/// Returns the sentence about lines of the history that could not be read.
pub(super) fn unread(report: &Report<'_>) -> Option<String> {
    let namespace = &report.names.namespace;
    (report.unread > 0).then(|| {
        format!(
            "{} lines of the history could not be read. See: kubectl -n {namespace} get configmaps -l \
             app.kubernetes.io/name=osd-migrate,osd-migrate.io/part=history -o yaml",
            report.unread
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_osds_are_a_range() {
        let of = |ids: &[u32]| ranges(&ids.iter().copied().map(OsdId).collect());
        assert_eq!(of(&[7, 1, 2, 3, 9]), "osd.1 to osd.3, osd.7, osd.9");
        assert_eq!(of(&[]), "");
    }
}
