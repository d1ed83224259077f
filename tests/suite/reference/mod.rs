//! Generated pages: the command line, the values of the chart, its README, and the sample of `rehearse` in
//! README.md.
//!
//! To write them: `REFERENCE_WRITE=1 cargo test --locked --test suite reference::`, then read the difference.

mod anchors;
mod command_line;
mod guide;
mod ledger;
mod values;

use osd_migrate::layout::Width;
use osd_migrate::rehearse::{self, Detail};
use osd_migrate::sim::schedule::BACKFILL_RATE;

use crate::runbook::{PAGES, read, root};

/// Compares a page with what it is generated from.
fn check(path: &str, generated: &str) {
    // Other tests read these pages at the same time.
    if option_env!("REFERENCE_WRITE").is_some() && read(path) != generated {
        std::fs::write(root().join(path), generated).unwrap();
    }
    let differs = |(page, expected): &(&str, &str)| page != expected;
    let page = read(path);
    let first = page.lines().zip(generated.lines()).find(differs);
    assert!(
        page == generated,
        "{path} is not up to date ({first:?}): REFERENCE_WRITE=1 cargo test --locked --test suite reference::"
    );
}

/// Sets a text to the width of pages, each line behind the indent.
fn wrapped(text: &str, indent: &str) -> String {
    const WIDTH: usize = 120; // of generated pages
    let mut lines = vec![indent.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last().unwrap();
        if line.chars().count() + word.chars().count() + 1 > WIDTH {
            lines.push(indent.to_owned());
        }
        let line = lines.last_mut().unwrap();
        if line.len() > indent.len() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.join("\n")
}

#[test]
fn command_line_page_is_up_to_date() {
    check("docs/reference/command-line.md", &command_line::page());
}

#[test]
fn values_page_is_up_to_date() {
    check("docs/reference/values.md", &values::page());
}

#[test]
fn readme_of_the_chart_is_up_to_date() {
    check("charts/osd-migrate/README.md", &values::readme());
}

#[test]
fn each_code_has_its_anchor() {
    for page in PAGES {
        check(page, &anchors::anchored(&read(page)));
    }
}

/// Removes numbers from a line: times and sizes differ as soon as a step is added, the rest of a line does
/// not.
fn without_numbers(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).collect::<String>().trim().to_owned()
}

/// Returns the sample with each line as the program prints it now.
fn printed(sample: &str, story: &str) -> String {
    let mut story = story.lines();
    let mut of_story = |line: &str| {
        let wanted = without_numbers(line);
        let found = story.find(|printed| without_numbers(printed) == wanted);
        format!("    {}", found.unwrap_or_else(|| panic!("README.md: `rehearse` does not print `{line}`")))
    };
    let lines = sample.lines().map(|line| match line.trim() {
        "" | "..." => line.to_owned(),
        _ => of_story(line),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn readme_sample_is_what_rehearse_prints() {
    let readme = read("README.md");
    let (before, rest) = readme.split_once("-- rehearse\n").unwrap();
    let (sample, after) = rest.split_once("\n\n").unwrap();
    assert!((10..=14).contains(&sample.lines().count()), "twelve lines are enough: {sample}");
    let story = rehearse::text(&rehearse::rehearse(1, &[], BACKFILL_RATE), Detail::Usual, Width::Unknown);
    check("README.md", &format!("{before}-- rehearse\n{}\n\n{after}", printed(sample, &story)));
}

#[test]
fn sample_line_that_is_not_printed_fails() {
    let story = " 0:00:03  osd.0: stopped\n 0:00:09  osd.0: done";
    assert_eq!(printed("     0:00:01  osd.0: done\n    ...", story), "     0:00:09  osd.0: done\n    ...");
    for sample in ["    0:00:03  osd.0: started", "    0:00:09  osd.0: done\n    0:00:03  osd.0: stopped"] {
        let result = std::panic::catch_unwind(|| printed(sample, story));
        assert!(result.is_err(), "{sample}");
    }
}
