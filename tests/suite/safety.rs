//! `docs/concepts/safety.md` agrees with the sources.
//!
//! Each guard has one row and is checked somewhere in the code, and each test that the page names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use osd_migrate::domain::guard::Guard;

use crate::pages::pages;
use crate::purity::sources;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the rows of all tables whose first column has that name.
fn rows(document: &str, called: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut found = Vec::new();
    let mut is_ours = false;
    let mut is_table = false;
    for line in document.lines() {
        if !line.starts_with('|') {
            is_table = false;
        } else if is_table {
            let row = cells(line);
            let is_rule = row.iter().all(|cell| cell.chars().all(|c| c == '-'));
            if is_ours && !is_rule {
                found.push(row);
            }
        } else {
            is_table = true;
            is_ours = cells(line)[0] == called;
        }
    }
    found
}

/// Returns the words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_like_a_guard(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Returns whether a word has at least three parts: other quoted words (flags, files, commands) are shorter
/// or have other characters.
fn is_like_a_test(word: &str) -> bool {
    word.matches('_').count() >= 2
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Words in the form of test names: options of Ceph, fields of its answers and of the ledger.
const NO_TESTS: [&str; 13] = [
    "left_to_rook_since",
    "waiting_for_node",
    "waiting_to_restart",
    "went_down_at",
    "wipe_blocked_since",
    "bluefs_dedicated_db",
    "bluestore_bdev_dev_node",
    "data_part_uuid",
    "journal_part_uuid",
    "mon_osd_down_out_interval",
    "pg_autoscale_mode",
    "pg_upmap_items",
    "stop_intended_at",
];

fn guards() -> Vec<(String, String)> {
    let document = read("docs/concepts/safety.md");
    let rows = rows(&document, "guard");
    rows.iter()
        .flat_map(|row| quoted(&row[0]).map(|guard| (guard.to_owned(), row[2].clone())).collect::<Vec<_>>())
        .collect()
}

/// Returns the sources, without the list of guards and without this file.
fn code(folder: &str) -> String {
    let of_no_use = ["domain/guard.rs", "suite/safety.rs"];
    let paths = sources(&root().join(folder));
    let paths = paths.iter().filter(|path| !of_no_use.iter().any(|end| path.ends_with(end)));
    paths.map(|path| fs::read_to_string(path).unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns the functions that are tests: those below the attribute.
fn tests() -> BTreeSet<String> {
    let text = ["src", "tests/suite", "tests/explore"].map(code).join("\n");
    let mut found = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test && !line.starts_with("//")) else {
            continue;
        };
        found.extend(rest.split_once('(').map(|(name, _)| name.to_owned()));
        is_test = false;
    }
    found
}

#[test]
fn guard_table_has_each_guard_once_and_no_unknown_guard() {
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for (guard, _) in guards() {
        *listed.entry(guard).or_default() += 1;
    }
    let there: BTreeSet<&str> = Guard::ALL.iter().map(|guard| guard.name()).collect();
    let missing: Vec<_> = there.iter().filter(|name| !listed.contains_key(**name)).collect();
    let unknown: Vec<_> = listed.keys().filter(|name| !there.contains(name.as_str())).collect();
    let twice: Vec<_> = listed.iter().filter(|(_, times)| **times > 1).collect();
    assert!(missing.is_empty(), "not in docs/concepts/safety.md: {missing:?}");
    assert!(unknown.is_empty(), "in docs/concepts/safety.md, and no guard: {unknown:?}");
    assert!(twice.is_empty(), "more than once in docs/concepts/safety.md: {twice:?}");
    assert!(listed.keys().all(|name| is_like_a_guard(name)));
}

#[test]
fn guards_are_all_checked_in_the_code() {
    let code = code("src");
    let is_asked = |guard: &&Guard| {
        let name = format!("Guard::{}", guard.name());
        code.match_indices(&name).any(|(at, _)| {
            !code[at + name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let dead: Vec<_> = Guard::ALL.iter().filter(|guard| !is_asked(guard)).collect();
    assert!(dead.is_empty(), "nothing asks for {dead:?}");
}

#[test]
fn tests_and_lab_scenarios_named_in_pages_exist() {
    // ADRs and the changelog name tests as they were.
    let is_history = |page: &str| page.contains("/adr/") || page == "CHANGELOG.md";
    let pages: Vec<_> = pages().into_iter().filter(|(page, _)| !is_history(page)).collect();
    let there = tests();
    assert!(there.len() > 200, "the tests moved: {}", there.len());
    let quotes = || pages.iter().flat_map(|(page, text)| quoted(text).map(move |word| (page, word)));
    // Names of metrics are checked by telemetry::names.
    let is_metric = |word: &str| word.starts_with("osd_migrate_");
    let is_named = |word: &str| is_like_a_test(word) && !is_metric(word) && !NO_TESTS.contains(&word);
    let missing: Vec<_> = quotes().filter(|(_, word)| is_named(word) && !there.contains(*word)).collect();
    assert!(missing.is_empty(), "no tests: {missing:?}");
    let unused: Vec<_> = NO_TESTS.iter().filter(|name| !quotes().any(|(_, word)| word == **name)).collect();
    assert!(unused.is_empty(), "no exception is needed for {unused:?}");

    let lab = read("tests/lab/test");
    let scenarios: Vec<&str> = quotes().filter_map(|(_, word)| word.strip_prefix("lab ")).collect();
    let missing: Vec<_> = scenarios
        .iter()
        .map(|words| words.trim_end_matches(" --full"))
        .filter(|name| !lab.contains(&format!("\"{name}\": {name}.run")))
        .collect();
    assert!(!scenarios.is_empty() && missing.is_empty(), "no scenarios: {missing:?}");
}

#[test]
fn each_promise_has_a_test_and_each_guard_a_promise() {
    let document = read("docs/concepts/safety.md");
    let (there, mut promise, mut shown) = (tests(), String::new(), BTreeMap::new());
    for row in rows(&document, "promise") {
        if !row[0].is_empty() {
            promise.clone_from(&row[0]);
        }
        let tests = quoted(&row[1]).filter(|word| there.contains(*word)).count();
        *shown.entry(promise.clone()).or_insert(0) += tests;
    }
    let promises: Vec<String> = (1..=13).map(|n| format!("P{n}")).collect();
    assert!(shown.keys().all(|name| promises.contains(name)), "{shown:?}");
    for promise in &promises {
        assert!(shown.get(promise).is_some_and(|tests| *tests > 0), "{promise}: no test: {shown:?}");
    }
    for (guard, of) in guards() {
        let is_one = of.split(", ").all(|name| promises.iter().any(|promise| promise == name));
        assert!(is_one, "{guard} stands for {of}, which is no promise");
    }
}

/// Returns the accounts that the chart names: where they are created, and where pods use one.
fn accounts() -> BTreeSet<String> {
    let folders =
        ["charts/osd-migrate/templates", "job", "tests/chart/rendered"].map(|folder| root().join(folder));
    let files =
        folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path());
    let texts: Vec<String> = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    let beginnings = [
        "kind: ServiceAccount\nmetadata:\n  name: ",
        "{kind: ServiceAccount, name: ",
        "\"ServiceAccount\" \"name\" \"",
        "\"account\" \"",
        "serviceAccountName: ",
        "\"serviceAccountName\": \"",
    ];
    let mut found = BTreeSet::new();
    for (text, begins) in texts.iter().flat_map(|text| beginnings.map(|begins| (text, begins))) {
        for (at, _) in text.match_indices(begins) {
            let rest = &text[at + begins.len()..];
            let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            found.extend(Some(name).filter(|name| !name.is_empty()));
        }
    }
    found
}

/// Names in the sets of values in `tests/chart/values`: an owner's name for the account of runs.
const OF_OWNERS: [&str; 2] = ["storage", "storage-migration"];

#[test]
fn service_accounts_are_all_named_on_the_page_of_rights() {
    let page = read("docs/reference/rights.md");
    let accounts = accounts();
    assert!(accounts.len() >= 4, "they moved: {accounts:?}");
    let listed: Vec<&str> = quoted(&page).collect();
    let is_unlisted =
        |name: &&String| !listed.contains(&name.as_str()) && !OF_OWNERS.contains(&name.as_str());
    let unlisted: Vec<_> = accounts.iter().filter(is_unlisted).collect();
    assert!(unlisted.is_empty(), "not in docs/reference/rights.md: {unlisted:?}");
}
