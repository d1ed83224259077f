//! All pages: the targets of their links, the names in them, and their style.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::purity::sources;
use crate::runbook::{read, remarks, root};

/// Returns all pages with their text, by path below the repository.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    add(root(), false, &mut paths);
    add(&root().join("docs"), true, &mut paths);
    paths.sort();
    assert!(paths.len() > 40, "they moved: {paths:?}");
    let name = |path: &PathBuf| path.strip_prefix(root()).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

fn add(folder: &Path, deep: bool, paths: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() && deep {
            add(&path, deep, paths);
        } else if is_page(&path) {
            paths.push(path);
        }
    }
}

/// Returns the text without code: no indented or fenced blocks, no spans between backticks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        fenced ^= line.starts_with("```");
        !fenced && !line.starts_with("    ") && !line.starts_with("```")
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    text.split('`').step_by(2).collect::<Vec<_>>().join("` `")
}

/// Returns the anchors of a page, as GitHub creates them from its headings, and those that the page sets
/// itself.
fn anchors(text: &str) -> BTreeSet<String> {
    let of_heading = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let backups = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        backups.collect::<String>().replace(' ', "-")
    };
    let headings = text.lines().filter(|line| line.starts_with('#')).map(of_heading);
    let set = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    headings.chain(set.map(|(id, _)| id.to_owned())).collect()
}

fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    links.map(|(link, _)| link.to_owned()).filter(|link| !link.starts_with("https://")).collect()
}

/// Returns the path below the repository that a link of a page leads to.
fn target(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[test]
fn links_lead_to_pages_and_headings_that_exist() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (page, text) in pages() {
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let to = if file.is_empty() { page.clone() } else { target(&page, file) };
            let path = root().join(&to);
            let is_there = path.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&path).unwrap()).contains(anchor));
            if !is_there {
                wrong.push(format!("{page}: {link}"));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 200, "{count}");
}

#[test]
fn each_page_is_reached_from_the_index() {
    let mut reached = BTreeSet::from(["docs/README.md".to_owned()]);
    let mut rest = vec!["docs/README.md".to_owned()];
    while let Some(page) = rest.pop() {
        for link in links(&read(&page)) {
            let file = link.split('#').next().unwrap_or_default();
            let to = target(&page, file);
            if is_page(Path::new(file)) && reached.insert(to.clone()) {
                rest.push(to);
            }
        }
    }
    let lost: Vec<_> =
        pages().into_iter().map(|(page, _)| page).filter(|page| !reached.contains(page)).collect();
    assert!(lost.is_empty(), "no way from docs/README.md to {lost:?}");
}

/// Names that a reader of this repository cannot look up.
const OUTSIDE: [&str; 10] = [
    "design.md",
    "design section",
    "The design (",
    "the design's",
    "ceph-lab.md",
    "kube-lab.md",
    "peers.md",
    "seed 0",
    "trap T",
    "/work/",
];

#[test]
fn pages_and_sources_name_nothing_outside_of_the_repository() {
    let sources =
        ["src", "tests/suite", "tests/explore"].iter().flat_map(|folder| sources(&root().join(folder)));
    let sources = sources.filter(|path| !path.ends_with("suite/pages.rs"));
    let sources = sources.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()));
    let names = |(page, text): (String, String)| {
        let found: Vec<_> = OUTSIDE.iter().filter(|word| text.contains(**word)).collect();
        (!found.is_empty()).then(|| format!("{page}: {found:?}"))
    };
    let found: Vec<_> = pages().into_iter().chain(sources).filter_map(names).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// Folders of which pages name files.
const ROOTS: [&str; 8] = ["src/", "tests/", "build/", "charts/", "docs/", "job/", "image/", "domain/"];

/// Returns whether a code span is a path: no command, no pattern, nothing to fill in.
fn is_path(span: &str) -> bool {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    ROOTS.iter().any(|folder| span.starts_with(folder))
        && span.chars().all(is_of_path)
        && !span.contains("NAME")
}

#[test]
fn paths_named_in_pages_exist() {
    let mut missing = Vec::new();
    let mut count = 0;
    let is_history = |page: &str| page.contains("/adr/") || page == "CHANGELOG.md";
    for (page, text) in pages().into_iter().filter(|(page, _)| !is_history(page)) {
        for span in text.split('`').skip(1).step_by(2).filter(|span| is_path(span)) {
            let below_src = span.starts_with("domain/");
            let path = if below_src { root().join("src").join(span) } else { root().join(span) };
            if !path.exists() {
                missing.push(format!("{page}: {span}"));
            }
            count += 1;
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(count > 80, "{count}");
}

#[test]
fn decisions_that_are_named_exist() {
    const FOLDER: &str = "docs/development/adr";
    let index = read(&format!("{FOLDER}/README.md"));
    let texts =
        ["src", "tests/suite", "tests/explore"].iter().flat_map(|folder| sources(&root().join(folder)));
    let texts = texts.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()));
    let mut missing = Vec::new();
    for (path, text) in texts.chain(pages()) {
        let names = text.match_indices("ADR ").map(|(at, name)| &text[at + name.len()..]);
        let numbers = names.filter_map(|rest| rest.get(..4)).filter(|four| four.parse::<u32>().is_ok());
        missing.extend(
            numbers
                .filter(|number| !index.contains(&format!("| [{number}](")))
                .map(|number| format!("{path}: {number}")),
        );
    }
    assert!(missing.is_empty(), "not in {FOLDER}/README.md: {missing:?}");
}

/// Returns the text with the words of its links, and without their targets.
fn without_targets(text: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once(')').map_or(part, |(_, words)| words));
    std::iter::once(first.as_str()).chain(rest).collect::<Vec<_>>().join(" ")
}

/// Words that STYLE.md forbids.
const FORBIDDEN: [&str; 7] = ["anew", "for good", "by us", "somebody", "mend", "whoever", "but for"];

/// Returns whether a page must follow STYLE.md.
///
/// STYLE.md itself quotes the words, messages are the program's, and two pages are generated.
fn is_written_by_style(page: &str) -> bool {
    let others = ["STYLE.md", "CHANGELOG.md"];
    let of_program = ["messages.md", "command-line.md", "values.md"];
    !others.contains(&page) && !of_program.iter().any(|name| page == format!("docs/reference/{name}"))
}

#[test]
fn pages_use_no_forbidden_words() {
    let mut found = Vec::new();
    let messages = ("remarks to messages".to_owned(), remarks().join("\n"));
    let pages = pages().into_iter().filter(|(page, _)| is_written_by_style(page));
    for (page, text) in pages.chain([messages]) {
        let prose = without_targets(&prose(&text)).to_lowercase();
        let words: Vec<&str> =
            prose.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let padded = format!(" {} ", words.join(" "));
        found.extend(
            FORBIDDEN
                .iter()
                .filter(|word| padded.contains(&format!(" {word} ")))
                .map(|word| format!("{page}: {word}")),
        );
    }
    assert!(found.is_empty(), "STYLE.md, Language: {found:#?}");
}

#[test]
fn lines_of_pages_fit() {
    const WIDTH: usize = 120;
    let mut long = Vec::new();
    for (page, text) in pages().into_iter().filter(|(page, _)| is_written_by_style(page)) {
        let is_long = |line: &&str| {
            line.chars().count() > WIDTH && !line.starts_with("    ") && !line.trim_start().starts_with('|')
        };
        long.extend(text.lines().filter(is_long).map(|line| format!("{page}: {line}")));
    }
    assert!(long.is_empty(), "longer than {WIDTH} columns: {long:#?}");
}

#[test]
fn rows_of_tables_are_whole() {
    let mut broken = Vec::new();
    for (page, text) in pages() {
        let is_broken = |line: &&str| line.starts_with('|') && !line.ends_with('|');
        broken.extend(text.lines().filter(is_broken).map(|line| format!("{page}: {line}")));
    }
    assert!(broken.is_empty(), "a row of a table is one line: {broken:#?}");
}

#[test]
fn style_page_is_short() {
    assert!(read("STYLE.md").lines().count() <= 120);
    assert!(read("README.md").lines().count() <= 110);
}

/// Checks that the lines that start a run can be pasted: kubectl reads no log before the pod has started.
#[test]
fn pasted_lines_follow_a_log_once_its_pod_has_started() {
    let files = [
        "charts/osd-migrate/templates/NOTES.txt",
        "charts/osd-migrate/templates/cronjob.yaml",
        "job/cronjob.yaml",
        "docs/guides/run.md",
        "docs/reference/messages.md",
        "src/commands/start.rs",
        "src/show/preflight.rs",
    ];
    for file in files {
        let text = read(file);
        let lines: Vec<_> = text.lines().filter(|line| line.contains("logs --follow")).collect();
        assert!(!lines.is_empty(), "{file}");
        assert!(lines.iter().all(|line| line.contains("until kubectl")), "{file}: {lines:?}");
    }
}

/// Checks that nobody is sent to the oldest pod of a Job that has ended.
#[test]
fn logs_of_an_ended_job_are_those_of_all_its_pods() {
    for file in ["charts/osd-migrate/files/alerts.yaml", "docs/guides/recover-by-hand.md"] {
        let text = read(file);
        assert!(text.contains("logs --prefix --tail=20 -l batch.kubernetes.io/job-name="), "{file}");
        assert!(!text.contains("logs job/") && !text.contains("--tail=5 job/"), "{file}");
    }
}
