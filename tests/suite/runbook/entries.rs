//! Entries of the pages.

use std::collections::BTreeSet;

use super::sources::{plain, read};

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Option<String>,
    pub(super) said: Option<String>,
    pub(super) rest: String,
}

/// The pages with entries.
pub(crate) const PAGES: [&str; 4] = [
    "docs/reference/messages.md",
    "docs/reference/exit-codes.md",
    "docs/reference/events.md",
    "docs/guides/recover-by-hand.md",
];

pub(super) fn runbook() -> String {
    PAGES.map(read).join("\n")
}

/// Returns the list items below a heading, including those of its subheadings.
pub(super) fn entries(heading: &str) -> Vec<Entry> {
    let document = runbook();
    let level = heading.split(' ').next().unwrap().len();
    let is_end = |line: &str| {
        line.starts_with('#') && line.split(' ').next().is_some_and(|marks| marks.len() <= level)
    };
    let below = document.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !is_end(line));
    let mut items: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in below {
        if let Some(item) = line.strip_prefix("- ") {
            items.push(item.to_owned());
            is_open = true;
        } else if is_open && line.starts_with("  ") {
            let item = items.last_mut().unwrap();
            *item = format!("{item} {}", line.trim());
        } else {
            is_open = false;
        }
    }
    assert!(!items.is_empty(), "no entries below `{heading}`");
    items.iter().map(|item| entry(item)).collect()
}

fn entry(item: &str) -> Entry {
    let item =
        item.strip_prefix("<a id=").and_then(|rest| rest.split_once("</a> ")).map_or(item, |(_, item)| item);
    let (key, rest) = match item.strip_prefix("**`").and_then(|rest| rest.split_once("`**")) {
        Some((key, rest)) => (Some(key.to_owned()), rest.trim()),
        None => (None, item),
    };
    let (said, rest) = match rest.strip_prefix('*').and_then(italics) {
        Some((said, rest)) => (Some(said.replace("\\<", "<").replace("\\*", "*")), rest.trim()),
        None => (None, rest),
    };
    Entry { key, said, rest: rest.to_owned() }
}

/// Splits a text at the asterisk that ends the italics; an escaped asterisk has a backslash.
fn italics(rest: &str) -> Option<(&str, &str)> {
    let (end, _) = rest.match_indices('*').find(|(at, _)| !rest[..*at].ends_with('\\'))?;
    Some((&rest[..end], &rest[end + 1..]))
}

pub(super) fn keys(entries: &[Entry]) -> BTreeSet<String> {
    entries.iter().map(|entry| entry.key.clone().unwrap_or_else(|| panic!("no key: {entry:?}"))).collect()
}

pub(super) fn said(entries: &[Entry]) -> BTreeSet<String> {
    let plain_of =
        |entry: &Entry| plain(entry.said.as_ref().unwrap_or_else(|| panic!("nothing said: {entry:?}")));
    entries.iter().map(plain_of).collect()
}

/// Returns the entries of all pages.
fn all_entries() -> Vec<Entry> {
    let document = runbook();
    let has_entries = |heading: &&str| {
        let (_, below) = document.split_once(&format!("{heading}\n")).unwrap();
        let ends = ["\n## ", "\n# "].iter().filter_map(|heading| below.find(heading)).min();
        below[..ends.unwrap_or(below.len())].contains("\n- ")
    };
    let headings = document.lines().filter(|line| line.starts_with("## ") || line.starts_with("# E"));
    headings.filter(has_entries).flat_map(entries).collect()
}

/// Returns what the entries say in addition to the program's messages.
pub(crate) fn remarks() -> Vec<String> {
    all_entries().into_iter().map(|entry| entry.rest).collect()
}

/// Checks that no entry only repeats its sentence.
#[test]
fn each_entry_says_more_than_the_sentence() {
    let all = all_entries();
    assert!(all.len() > 200, "they moved: {}", all.len());
    let bare: Vec<_> = all.iter().filter(|entry| entry.rest.is_empty()).collect();
    assert!(bare.is_empty(), "no remedy: {bare:#?}");
}

#[test]
fn messages_page_lines_have_at_most_120_columns() {
    let document = runbook();
    let long: Vec<_> = document.lines().filter(|line| line.chars().count() > 120).collect();
    assert!(long.is_empty(), "longer than 120 columns: {long:#?}");
}
