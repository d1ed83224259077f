//! The fields of the ledger, as its pages name them.

use std::collections::BTreeSet;

use crate::runbook::{block, coded, read, variants};

const RECORD: &str = "src/domain/ledger/record.rs";

/// Returns the fields of a struct that is stored.
fn fields(path: &str, of: &str) -> BTreeSet<String> {
    let source = read(path);
    let field = |line: &str| Some(line.trim().strip_prefix("pub ")?.split_once(':')?.0.to_owned());
    let fields = block(&source, &format!("pub struct {of} {{")).lines().filter_map(field);
    fields.filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_')).collect()
}

/// Returns the code spans in the first column of the table below a heading.
fn listed(heading: &str) -> BTreeSet<String> {
    let page = read("docs/reference/ledger-format.md");
    let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap();
    let rows =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap_or_default().to_owned());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn ledger_page_lists_each_field() {
    assert_eq!(listed("## Fields of a record"), fields(RECORD, "Record"));
    assert_eq!(listed("## nodes"), fields("src/domain/ledger/nodes.rs", "NodeWork"));
    let mut of_run = fields("src/domain/ledger/run.rs", "Run");
    of_run.insert("open".to_owned()); // computed from the records, to notice one that was lost
    assert_eq!(listed("## run"), of_run);
}

#[test]
fn milestones_of_the_page_are_codes_of_saves() {
    let page = read("docs/reference/ledger-format.md");
    let (_, rest) = page.split_once("Codes of milestones").unwrap();
    let paragraph = rest.split("\n\n").next().unwrap_or_default();
    let named: Vec<&str> = paragraph.split('`').skip(1).step_by(2).collect();
    let codes = variants("src/domain/next/saving.rs", "Saving");
    let kebab = |variant: &String| coded("", variant).trim_start_matches('-').to_owned();
    let tasks = ["inspect", "rebuild", "restore-slot", "clear", "wipe", "purged-externally", "no-bootstrap"];
    let codes: BTreeSet<String> = codes.iter().map(kebab).chain(tasks.map(str::to_owned)).collect();
    let unknown: Vec<_> = named.iter().filter(|name| !codes.contains(**name)).collect();
    assert!(named.len() > 15 && unknown.is_empty(), "no code of a save: {unknown:?}");
}

/// Returns what a filter of jq takes of its object: `{id, disk: .evidence.device}` is `id` and `evidence`.
fn taken(filter: &str) -> Vec<String> {
    let mut depth = 0;
    let parts = filter.split(|c: char| {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        c == ',' && depth == 0
    });
    let first = |part: &str| {
        let path =
            part.split_once(": ").map_or(part, |(_, path)| path).trim().trim_start_matches(['(', '[', '.']);
        path.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>()
    };
    parts.map(first).collect()
}

#[test]
fn recovery_page_asks_for_fields_that_exist() {
    let page = read("docs/guides/recover-by-hand.md");
    for (begins, path, of, least) in [
        ("fromjson | {", RECORD, "Record", 15),
        ("fromjson? | {", "src/domain/inspection/agent.rs", "NodeReport", 5),
    ] {
        let (_, rest) = page.split_once(begins).unwrap();
        let taken = taken(rest.split_once("}'").unwrap().0);
        let fields = fields(path, of);
        let unknown: Vec<_> = taken.iter().filter(|name| !fields.contains(*name)).collect();
        assert!(taken.len() >= least && unknown.is_empty(), "not in {of}: {unknown:?} of {taken:?}");
    }
    let of_evidence = fields("src/domain/inspection/device.rs", "Evidence");
    let paths = page.split(".evidence.").skip(1);
    let named =
        paths.map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect());
    let unknown: Vec<String> = named.filter(|name| !of_evidence.contains(name)).collect();
    assert!(unknown.is_empty(), "not in Evidence: {unknown:?}");
}

#[test]
fn filter_of_jq_is_read() {
    let filter =
        "id, disk: [.evidence.device.by_id[]? | \"a\"], weight: (.crush.weight/65536), last: .milestones[-1]";
    assert_eq!(taken(filter), ["id", "evidence", "crush", "milestones"]);
}
