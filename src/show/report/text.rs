//! `report` as text.

use comfy_table::{ContentArrangement, Table, presets};

use crate::domain::history::Row;
use crate::domain::units::{size, time};
use crate::layout;
use crate::show::report::Report;
use crate::show::report::words::{
    Approval, change, disk, moment, outcome, phases, summary, unread, waits_line,
};

/// Column in which the details of an OSD begin.
const INDENT: &str = "            ";

/// Returns the report as text of this width.
///
/// Names and fsids are never broken: a line with a longer one is wider.
pub fn report_text(report: &Report<'_>, width: u16) -> String {
    let sums = report.account.sums(report.now);
    let mut parts = vec![wrapped(&report.names.cluster_line(), width), wrapped(&summary(&sums), width)];
    parts.extend(waits_line(&sums.waits).map(|waits| wrapped(&format!("Waits: {waits}."), width)));
    parts.extend(unread(report).map(|text| wrapped(&text, width)));
    if !report.account.rows.is_empty() {
        parts.push(format!("\n{}", approvals(report, width)));
        parts.push(format!("\n{}", osds(report, width)));
    }
    parts.extend(report.account.rows.iter().map(|row| format!("\n{}", details(row, width))));
    report.names.complete(&parts.join("\n"))
}

fn approvals(report: &Report<'_>, width: u16) -> String {
    let line = |confirmed| {
        let Approval { job, how, who, at, osds } = Approval::of(confirmed);
        wrapped(&format!("Job {job} began with {osds}. Confirmed by: {how}; who: {who}; when: {at}."), width)
    };
    report.account.confirmations().iter().map(line).collect::<Vec<_>>().join("\n")
}

fn osds(report: &Report<'_>, width: u16) -> String {
    let mut table = table(&["OSD", "RESULT", "STARTED", "TOOK", "MOVED"], width);
    for Row { entry, took, .. } in &report.account.rows {
        table.add_row([
            entry.key.osd.to_string(),
            outcome(entry.outcome).to_owned(),
            entry.began_at().map_or_else(|| "-".to_owned(), moment),
            time(*took),
            size(entry.all_moved_bytes()),
        ]);
    }
    trimmed(&table)
}

/// Returns what else is known about an OSD, one subject a line.
fn details(row: &Row, width: u16) -> String {
    let entry = &row.entry;
    let head = format!("{} on node {}: {}", entry.key.osd, entry.node, change(entry));
    let fsid = |fsid: Option<crate::domain::osd::OsdFsid>| fsid.map(|fsid| fsid.to_string());
    let subjects = [
        ("disk", Some(disk(entry))),
        ("directory", entry.directory.clone()),
        ("database", entry.database.clone()),
        ("emptied", entry.emptied_bytes.map(|bytes| format!("{} moved away before the stop", size(bytes)))),
        ("old fsid", fsid(entry.old)),
        ("new fsid", fsid(entry.new)),
        ("phases", Some(phases(&row.spans)).filter(|text| !text.is_empty())),
        ("waits", waits_line(&entry.waits)),
        ("before", waits_line(&entry.waits_before)),
        ("why", entry.why.clone()),
    ];
    let subjects = subjects.into_iter().filter_map(|(name, text)| Some(subject(name, &text?, width)));
    let notes = entry.notes.iter().filter(|note| entry.why.as_ref() != Some(&note.why));
    let notes =
        notes.map(|note| subject("note", &format!("{} {}: {}", moment(note.at), note.code, note.why), width));
    let lines = std::iter::once(wrapped(&head, width)).chain(subjects).chain(notes);
    lines.collect::<Vec<_>>().join("\n")
}

fn subject(name: &str, text: &str, width: u16) -> String {
    let first = format!("  {name:<10}");
    layout::wrapped(text, width.into(), &first, INDENT)
}

fn wrapped(text: &str, width: u16) -> String {
    layout::wrapped(text, width.into(), "", "")
}

fn table(header: &[&str], width: u16) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(header.to_vec());
    table
}

/// Returns the table without spaces at the ends of its lines.
fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
