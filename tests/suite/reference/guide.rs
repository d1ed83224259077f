//! Quotations of the program in `docs/guides/run.md`.

use osd_migrate::domain::next::Wait;
use osd_migrate::domain::osd::OsdId;

use crate::runbook::{is_quoted, literals, read, reasons, waits};

/// Returns the code spans in the first column of the table with that heading.
fn spans(heading: &str) -> Vec<String> {
    let page = read("docs/guides/run.md");
    let (_, table) = page.split_once(&format!("\n| {heading} |")).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap_or_default());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

#[test]
fn guide_quotes_what_a_run_says() {
    let gate = |reason| Wait::Gate { osd: OsdId(5), reason };
    let of_waits = waits().into_iter().chain(reasons().into_iter().map(gate)).map(|wait| wait.to_string());
    let said: Vec<String> = of_waits.chain(reasons().iter().map(ToString::to_string)).collect();
    let quotes = spans("it says");
    let is_said = |quote: &String| {
        let quote = format!("{}...", quote.trim_end_matches("..."));
        said.iter().any(|text| is_quoted(&quote, text))
    };
    let unknown: Vec<_> = quotes.iter().filter(|quote| !is_said(quote)).collect();
    assert!(quotes.len() > 5 && unknown.is_empty(), "docs/guides/run.md: not said: {unknown:#?}");
}

#[test]
fn guide_names_the_words_of_the_plan() {
    let texts = literals(&read("src/show/plan.rs"));
    let is_word = |span: &String| {
        let word = span.split_once(':').map_or(span.as_str(), |(word, _)| word).replace("osd.5", "...");
        texts.iter().any(|text| *text == word || text.starts_with(&format!("{word}:")))
    };
    let spans = spans("NOW");
    let unknown: Vec<_> = spans.iter().filter(|span| !is_word(span)).collect();
    assert!(spans.len() > 5 && unknown.is_empty(), "docs/guides/run.md, NOW: {unknown:#?}");
}

/// Checks that the headings and entries from which the lab takes its commands exist.
///
/// The lab types what the pages say, so a renamed heading or entry would end its scenario.
#[test]
fn sections_that_the_lab_types_from_exist() {
    let scenario = read("tests/lab/scenarios/by_hand.py");
    let pages =
        ["docs/guides/recover-by-hand.md", "docs/guides/recover-the-ledger.md", "docs/concepts/ledger.md"];
    let pages = pages.map(read).join("\n");
    let named = |call: &str| -> Vec<String> {
        let names = scenario.split(call).skip(1).filter_map(|rest| rest.split_once('"'));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let headings = named(" commands(\"");
    let missing: Vec<_> = headings.iter().filter(|name| !pages.contains(&format!("\n## {name}\n"))).collect();
    assert!(headings.len() > 10 && missing.is_empty(), "by_hand.py: no heading {missing:?}");
    let entries = named(" entry(\"");
    let missing: Vec<_> = entries.iter().filter(|name| !pages.contains(&format!("**`{name}`**"))).collect();
    assert!(entries.len() > 3 && missing.is_empty(), "by_hand.py: no entry {missing:?}");
}

/// Returns the number of lines from a definition to the end of it.
fn lines_of(source: &str, definition: &str) -> usize {
    let (_, rest) = source.split_once(definition).unwrap();
    let before = source[..source.len() - rest.len() - definition.len()].lines().last().unwrap_or_default();
    let indent = &before[..before.len() - before.trim_start().len()];
    let ends = [format!("{indent}}}"), format!("{indent}];")];
    1 + rest.lines().position(|line| ends.iter().any(|end| line == end)).unwrap()
}

#[test]
fn reading_guide_of_the_crate_is_at_most_300_lines() {
    let guide = read("src/lib.rs");
    let rows = guide.lines().filter_map(|line| line.strip_prefix("//! ")?.split_once(". `src/"));
    let mut total = 0;
    for (_, row) in rows {
        let (path, rest) = row.split_once('`').unwrap();
        let name = rest.split('`').nth(1).unwrap().rsplit("::").next().unwrap();
        let source = read(&format!("src/{path}"));
        let definition = [format!("fn {name}("), format!("const {name}:")];
        let at = definition.iter().find(|text| source.contains(text.as_str())).unwrap();
        // The rules are read to the end of their file, which applies them.
        let to_the_end = source[source.find(at.as_str()).unwrap()..].lines().count();
        total += if name == "RULES" { to_the_end } else { lines_of(&source, at) };
    }
    assert!((150..=300).contains(&total), "{total} lines");
}

#[test]
fn reading_guide_begins_where_the_code_does() {
    let page = read("docs/development/reading-guide.md");
    let (_, places) = page.split_once("\n## Start here\n").unwrap();
    let lines = places.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let mut count = 0;
    for line in lines.take(4) {
        let spans: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        let [path, name] = spans.as_slice() else { panic!("a file and a name: {line}") };
        let name = name.rsplit("::").next().unwrap_or_default();
        let source = read(path);
        let is_there = source.contains(&format!("fn {name}(")) || source.contains(&format!("const {name}:"));
        assert!(is_there, "{path} has no {name}");
        count += 1;
    }
    assert_eq!(count, 4);
}
