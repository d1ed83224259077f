//! The text, the JSON and the page of the report.

use std::collections::BTreeSet;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use osd_migrate::domain::commands::Names;
use osd_migrate::domain::history::{self, Account, Entry, Note, Outcome, RunHistory};
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::show::{Report, report_html, report_json, report_text};

use crate::runbook::root;
use crate::story::play::print_figures;

fn names() -> Names {
    Names { namespace: "rook-ceph".to_owned(), cluster: Some("rook-ceph".to_owned()), ..Names::default() }
}

/// Returns an entry like those of a large cluster.
fn entry(n: u32) -> Entry {
    let at =
        |seconds: i64| DateTime::from_timestamp(1_772_323_200 + i64::from(n) * 4000 + seconds, 0).unwrap();
    let milestones = [
        ("record", 0),
        ("inspect", 1),
        ("proof", 9),
        ("stop", 130),
        ("down", 138),
        ("rebuild", 140),
        ("new", 171),
        ("up", 190),
        ("closing", 3900),
    ];
    let value = json!({
        "osd": n, "id": format!("{n:08x}-{n}"), "attempt": 2, "outcome": "migrated", "node": format!("node-{}", n % 40),
        "class": {"class": "legacy", "why": "filestore-partition"},
        "target": {"store": "bluestore", "mode": "raw", "encrypted": false},
        "disk": {"name": format!("/dev/disk/by-id/ata-SAMSUNG_MZ7LH3T8HMLT-00005_S456NY0M{n:06}"),
            "serial": format!("S456NY0M{n:06}"), "size_bytes": 3_840_755_982_336_u64},
        "old": format!("{n:08x}-0000-4000-8000-000000000001"), "new": format!("{n:08x}-0000-4000-8000-000000000002"),
        "used_bytes": 1_900_000_000_000_u64, "moved_bytes": 1_912_345_678_901_u64,
        "milestones": milestones.map(|(code, seconds)| json!([code, at(seconds) + TimeDelta::milliseconds(123)])),
        "waits": {"node-agent": 39, "stopping": 8, "starting": 19, "backfilling": 3690, "not-clean": 120},
        "waits_before": {"window": 3600},
        "confirmation": {"job": "osd-migrate-run-1772323200", "by": "flag", "who": "alice@example.org", "at": "2026-02-28T23:59:00Z"},
        "jobs": ["osd-migrate-run-1772323200"], "pods": 1,
    });
    serde_json::from_value(value).unwrap()
}

/// Returns the account of so many OSDs, one of which is quarantined, and one of which was retried.
fn account(osds: u32) -> (Account, DateTime<Utc>) {
    let mut entries: Vec<Entry> = (0..osds).map(entry).collect();
    let why = "its disk <cannot> be read & \"nothing\" helps. See: kubectl -n NAMESPACE logs job/x";
    let bad = &mut entries[1];
    (bad.outcome, bad.why) = (Outcome::Quarantined, Some(why.to_owned()));
    bad.milestones.truncate(4);
    let at = bad.milestones[3].1 + TimeDelta::minutes(7);
    bad.milestones.push(("quarantine".to_owned(), at));
    let retried = &mut entries[2];
    retried.notes.push(Note { at, code: "quarantine".to_owned(), why: why.to_owned() });
    let mut earlier = retried.clone();
    earlier.outcome = Outcome::Quarantined;
    earlier.key.attempt = 1;
    entries.push(earlier);
    let now = entries.iter().filter_map(Entry::ended_at).max().unwrap();
    (Account::of(entries, &Ledger::default(), &history::Courses::default(), now), now)
}

fn report_of<'a>((account, now): &'a (Account, DateTime<Utc>), names: &'a Names) -> Report<'a> {
    Report { names, account, unread: 0, now: *now }
}

#[test]
fn rate_of_the_history_is_bytes_over_time_of_backfills() {
    // Each OSD was backfilling from its start to its end: 3,710 s.
    let done: Vec<Entry> = (0..3).map(entry).collect();
    let rate = 1_912_345_678_901 * 1000 / 3_710_000;
    assert_eq!(history::rate(&done), Some(rate));
    let quarantined = Entry { outcome: Outcome::Quarantined, moved_bytes: 1, ..entry(4) };
    assert_eq!(history::rate(&[done[0].clone(), quarantined.clone()]), Some(rate));
    assert_eq!((history::rate(&[quarantined]), history::rate(&[])), (None, None));
}

#[test]
fn removed_osd_is_not_reported_as_migrated() {
    let entry = Entry { outcome: Outcome::Removed, ..entry(4) };
    let now = entry.milestones.last().unwrap().1;
    let account = Account::of(vec![entry], &Ledger::default(), &history::Courses::default(), now);
    let (account, names) = ((account, now), names());
    let report = report_of(&account, &names);
    for text in [report_text(&report, 120), report_html(&report).unwrap()] {
        assert!(text.contains("removal") && !text.contains(" becomes "), "{text}");
    }
    assert_eq!(report_json(&report)["osds"][0]["removal"], true);
}

#[test]
fn entry_of_the_history_takes_at_most_1200_bytes() {
    let sizes: Vec<usize> = (0..1000).map(|n| serde_json::to_string(&entry(n)).unwrap().len() + 1).collect();
    let (mean, most) = (sizes.iter().sum::<usize>() / sizes.len(), sizes.iter().max().copied().unwrap());
    print_figures(&format!("an OSD takes {mean} bytes of the history"));
    assert!(most <= 1200, "{most}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures")]
fn report_of_1000_osds_has_less_than_2_mib() {
    let (names, lines) = (names(), (0..1000).map(|n| serde_json::to_string(&entry(n)).unwrap()));
    let text = lines.collect::<Vec<_>>().join("\n");
    let began = Instant::now();
    let (entries, _) = history::read(&text);
    let now = entries.iter().filter_map(Entry::ended_at).max().unwrap();
    let account = (Account::of(entries, &Ledger::default(), &history::Courses::default(), now), now);
    let report = report_of(&account, &names);
    let html = report_html(&report).unwrap();
    let of_html = began.elapsed();
    write_for_browser("many.html", &html);
    let text = report_text(&report, 120);
    let json = report_json(&report).to_string();
    let took = began.elapsed();
    let sizes = [html.len(), text.len(), json.len()];
    print_figures(&format!("1,000 OSDs: page in {of_html:?}, all forms in {took:?}, bytes {sizes:?}"));
    assert!(html.contains("One row a node"), "1,000 rows fit on no screen");
    assert!(sizes.iter().all(|size| *size < 2 << 20), "{sizes:?}");
}

#[test]
fn page_is_well_formed_escaped_and_needs_no_network() {
    let (account, names) = (account(3), names());
    let html = report_html(&report_of(&account, &names)).unwrap();
    write_for_browser("few.html", &html);
    assert_well_formed(&html);
    assert!(html.contains("&#60;cannot&#62; be read &#38;"), "values are escaped");
    assert!(html.contains("kubectl -n rook-ceph logs job/x"), "commands have the namespace");
    for word in ["<script", "http://", "https://", "url(", "@import", "style=\"", "onclick", "NAMESPACE"] {
        assert!(!html.contains(word), "{word}");
    }
    for word in [
        "prefers-color-scheme:dark",
        "@media print",
        "max-width:40rem",
        "<caption>",
        "scope=\"col\"",
        "scope=\"row\"",
        "lang=\"en\"",
        "role=\"img\" aria-label=\"Timeline of 3 OSDs",
    ] {
        assert!(html.contains(word), "{word}");
    }
    let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    for link in html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&link), "{link}");
    }
}

/// Writes a page into the folder that the script `build/report` names.
#[expect(clippy::disallowed_methods, reason = "the script asks for the pages")]
fn write_for_browser(name: &str, html: &str) {
    if let Some(folder) = std::env::var_os("REPORT_PAGES") {
        std::fs::write(std::path::Path::new(&folder).join(name), html).unwrap();
    }
}

/// Asserts that each element is closed in its turn.
fn assert_well_formed(html: &str) {
    let (mut open, mut rest) = (Vec::new(), html);
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match tag {
            _ if tag.starts_with("!DOCTYPE") || tag.ends_with('/') || ["meta", "link"].contains(&name) => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "</{name}>"),
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn report_as_json_is_complete() {
    let (account, names) = (account(3), names());
    let json = report_json(&report_of(&account, &names));
    assert_eq!((&json["apiVersion"], &json["kind"]), (&json!("osd-migrate.io/v1"), &json!("Report")));
    assert_eq!(json["summary"]["outcomes"], json!({"migrated": 2, "quarantined": 1}));
    assert_eq!(json["summary"]["waits"]["backfilling"], json!(3690 * 3));
    assert_eq!(json["confirmations"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["confirmations"][0]["osds"], json!([0, 1, 2]));
    let osd = &json["osds"][0];
    let phases: Vec<_> = osd["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["phase"].as_str().unwrap(), one["seconds"].as_i64().unwrap()))
        .collect();
    assert_eq!(
        phases,
        [("inspect", 9), ("wait", 121), ("stop", 10), ("rebuild", 31), ("start", 19), ("backfill", 3710)]
    );
    assert_eq!(osd["seconds"], json!(3900));
    assert_eq!(
        json["osds"][1]["why"],
        json!("its disk <cannot> be read & \"nothing\" helps. See: kubectl -n rook-ceph logs job/x")
    );
    assert_eq!(json["osds"][2]["earlier"][0]["outcome"], json!("quarantined"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "writes the golden files on request")]
fn report_fits_60_80_and_120_columns() {
    let (account, names) = (account(3), names());
    let folder = root().join("tests/suite/golden");
    for width in [60, 80, 120] {
        let text = report_text(&report_of(&account, &names), width);
        let path = folder.join(format!("report-{width}.txt"));
        if std::env::var_os("GOLDEN_WRITE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, format!("{text}\n")).unwrap();
        }
        assert_eq!(format!("{text}\n"), std::fs::read_to_string(&path).unwrap(), "GOLDEN_WRITE=1 writes it");
        let is_wide =
            |line: &&str| line.chars().count() > width.into() && line.split_whitespace().count() > 2;
        assert_eq!(text.lines().find(is_wide), None, "wider than {width}");
    }
}

#[test]
fn empty_report_says_so() {
    let (names, account) = (names(), (Account::default(), DateTime::UNIX_EPOCH));
    let report = Report { unread: 2, ..report_of(&account, &names) };
    let text = report_text(&report, 80);
    assert!(text.contains("No OSD was migrated") && text.contains("2 lines of the history"), "{text}");
    assert_well_formed(&report_html(&report).unwrap());
    assert_eq!(report_json(&report)["osds"], Value::Array(Vec::new()));
}

#[test]
fn entries_that_cannot_be_written_are_limited() {
    let mut history = RunHistory::default();
    history.keep((0..1000).map(entry).collect());
    assert_eq!(history.unwritten.first().map(|entry| entry.key.osd), Some(OsdId(800)), "the latest are kept");
    assert!(serde_json::to_string(&history).unwrap().len() < 256 * 1024, "they fit into the status");
}

#[test]
fn history_line_is_added_once_even_if_its_times_differ() {
    let mut later = entry(5);
    let line = serde_json::to_string(&later).unwrap();
    later.waits.insert("backfilling".to_owned(), 4000);
    assert_eq!(history::missing(&line, &[later.clone()]), Vec::<String>::new());
    later.key.attempt += 1;
    assert_eq!(history::missing(&line, &[later]).len(), 1, "it was retried");
    assert_eq!(history::read("{}\nno\n\n").1, 2, "lines that cannot be read are counted");
}
