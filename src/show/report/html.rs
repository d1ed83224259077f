//! `report` as a page. The template and its style are in `templates/`.

use askama::Template;

use crate::domain::history::{Note, Outcome, Row};
use crate::domain::stage::Stage;
use crate::domain::units::{size, time};
use crate::show::report::Report;
use crate::show::report::chart::{self, Bar, Overview};
use crate::show::report::words::{
    Approval, change, disk, moment, outcome, phases, summary, unread, waits, waits_line,
};
use strum::VariantArray;

/// Content of the page, whose template escapes every value.
#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    cluster: String,
    at: String,
    version: &'static str,
    summary: String,
    unread: Option<String>,
    approvals: Vec<Approval>,
    waits: Vec<(String, String)>,
    overview: Option<Overview>,
    outcomes: Vec<(&'static str, &'static str)>,
    stages: Vec<&'static str>,
    osds: Vec<Osd>,
}

/// An OSD on the page.
struct Osd {
    /// Identity on the page: an OSD may have been migrated twice.
    anchor: String,
    name: String,
    node: String,
    outcome: &'static str,
    change: String,
    began: String,
    took: String,
    moved: String,
    facts: Vec<(&'static str, String)>,
    bars: Vec<Bar>,
    phases: String,
}

/// Returns the report as one page that needs nothing else: no script, no font, no network.
pub fn report_html(report: &Report<'_>) -> Result<String, askama::Error> {
    let sums = report.account.sums(report.now);
    let page = Page {
        cluster: report.names.cluster_line(),
        at: moment(report.now),
        version: env!("CARGO_PKG_VERSION"),
        summary: summary(&sums),
        unread: unread(report),
        approvals: report.account.confirmations().iter().map(Approval::of).collect(),
        waits: waits(&sums.waits),
        overview: Overview::of(report.account, &sums, report.now),
        outcomes: sums.outcomes.keys().map(|kind| (kind.code(), outcome(*kind))).collect(),
        stages: Stage::VARIANTS.iter().map(|stage| stage.code()).collect(),
        osds: report.account.rows.iter().map(|row| Osd::of(row, report)).collect(),
    };
    page.render()
}

impl Osd {
    fn of(row: &Row, report: &Report<'_>) -> Self {
        let entry = &row.entry;
        Self {
            anchor: format!("o{}-{}", entry.key.osd.0, entry.key.id),
            name: entry.key.osd.to_string(),
            node: entry.node.to_string(),
            outcome: outcome(entry.outcome),
            change: change(entry),
            began: entry.began_at().map_or_else(|| "-".to_owned(), moment),
            took: time(row.took),
            moved: size(entry.all_moved_bytes()),
            facts: facts(row, report),
            bars: chart::stages(row),
            phases: with_units(&phases(&row.spans)),
        }
    }
}

fn facts(row: &Row, report: &Report<'_>) -> Vec<(&'static str, String)> {
    let entry = &row.entry;
    let complete = |text: &str| report.names.complete(text);
    let note = |note: &Note| format!("{} {}: {}", moment(note.at), note.code, complete(&note.why));
    let notes = entry.notes.iter().filter(|note| entry.why.as_ref() != Some(&note.why));
    let why = entry.why.as_deref().map(complete);
    let (why_quarantined, why) =
        if entry.outcome == Outcome::Quarantined { (why, None) } else { (None, why) };
    let facts = [
        ("Quarantined", why_quarantined),
        ("Why", why),
        ("Disk", Some(with_units(&disk(entry)))),
        ("Directory", entry.directory.clone()),
        ("Database", entry.database.clone()),
        (
            "Emptied",
            entry
                .emptied_bytes
                .map(|bytes| with_units(&format!("{} moved away before the stop", size(bytes)))),
        ),
        ("Old fsid", entry.old.map(|fsid| fsid.to_string())),
        ("New fsid", entry.new.map(|fsid| fsid.to_string())),
        ("Waits", waits_line(&entry.waits).map(|waits| with_units(&waits))),
        ("Waits before", waits_line(&entry.waits_before).map(|waits| with_units(&waits))),
        ("Jobs", Some(entry.jobs.join(", ")).filter(|jobs| !jobs.is_empty())),
    ];
    let facts = facts.into_iter().filter_map(|(name, text)| Some((name, text?)));
    facts.chain(notes.map(|one| ("Note", note(one)))).collect()
}

/// Returns the text with a space that does not break between each number and its unit.
fn with_units(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |n: usize| chars.get(n).copied().unwrap_or(' ');
    let is_before_unit = |n: usize| n > 0 && at(n - 1).is_ascii_digit() && at(n + 1).is_alphabetic();
    let space = |(n, c): (usize, &char)| if *c == ' ' && is_before_unit(n) { '\u{a0}' } else { *c };
    chars.iter().enumerate().map(space).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_stays_with_its_unit() {
        assert_eq!(with_units("stop 00:02:10 (8 s), 1.7 TiB"), "stop 00:02:10 (8\u{a0}s), 1.7\u{a0}TiB");
    }
}
