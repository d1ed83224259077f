//! Modules know only what they must. The domain decides and does nothing else: its sources name no runtime,
//! no clock, no output, no unordered map.
//!
//! Of crates the domain imports serde, thiserror, chrono's types, uuid, jiff's time zones (from its own
//! tables, not from files), and regex: the filters for disks are regular expressions of their owner's, and
//! matching one depends on nothing but pattern and text.

use std::fs;
use std::path::{Path, PathBuf};

/// Banned words, and the reasons.
const BANNED: [(&str, &str); 17] = [
    ("async", "decisions do not wait"),
    (".await", "decisions do not wait"),
    ("tokio", "no runtime"),
    ("kube::", "no client"),
    ("k8s_openapi", "no client"),
    ("crate::k8s", "no adapter"),
    ("crate::ceph", "no adapter"),
    ("crate::node", "no adapter"),
    ("std::process", "no processes"),
    ("std::env", "no environment"),
    ("std::fs", "no files"),
    ("Utc::now", "time is observed, not asked"),
    ("SystemTime", "time is observed, not asked"),
    ("Instant", "time is observed, not asked"),
    ("tracing", "reasons are data; logging is elsewhere"),
    ("println", "reasons are data; printing is elsewhere"),
    ("HashMap", "order must be the same in every run"),
];

const ALSO_BANNED: [(&str, &str); 5] = [
    ("HashSet", "order must be the same in every run"),
    ("Uuid::new_v4", "no randomness"),
    ("rand::", "no randomness"),
    ("crate::ports", "the domain knows no ports"),
    ("unsafe", "nothing here needs it"),
];

pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the line without its comment.
///
/// (A `//` in a text also counts as a comment: that hides too much of texts, never of code.)
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

fn findings(text: &str, banned: &[(&str, &str)]) -> Vec<String> {
    text.lines()
        .enumerate()
        .flat_map(|(number, line)| {
            banned
                .iter()
                .filter(move |(word, _)| code(line).contains(word))
                .map(move |(word, why)| format!("{}: {word} ({why})", number + 1))
        })
        .collect()
}

fn found_in(folder: &str, banned: &[(&str, &str)]) -> Vec<String> {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    assert!(sources.len() >= 8, "the sources of {folder} moved: {sources:?}");
    sources
        .iter()
        .flat_map(|path| {
            let of_file = findings(&fs::read_to_string(path).unwrap(), banned);
            of_file.into_iter().map(move |what| format!("{}:{what}", path.display()))
        })
        .collect()
}

fn of_the_domain() -> Vec<(&'static str, &'static str)> {
    BANNED.into_iter().chain(ALSO_BANNED).collect()
}

#[test]
fn domain_is_pure() {
    let found = found_in("src/domain", &of_the_domain());
    assert!(found.is_empty(), "{found:#?}");
}

/// Checks what the modules alongside the domain must not import: the table in
/// `docs/development/reading-guide.md`.
#[test]
fn adapters_are_independent_and_the_simulation_uses_none() {
    const K8S: [(&str, &str); 3] = [
        ("crate::k8s", "no Kubernetes here"),
        ("use kube::", "no Kubernetes here"),
        ("k8s_openapi", "no Kubernetes here"),
    ];
    const CEPH: (&str, &str) = ("crate::ceph::", "no Ceph here");
    const NODE: (&str, &str) = ("crate::node", "no disks here");
    const REAL: [(&str, &str); 4] = [
        ("std::fs", "nothing real here"),
        ("std::process", "nothing real here"),
        ("std::net", "nothing real here"),
        ("tokio", "nothing real here"),
    ];
    let of_node = [("domain::ledger", "an agent knows its request, not the ledger"), CEPH];
    let of_sim: Vec<_> = K8S.into_iter().chain([CEPH, NODE]).chain(REAL).collect();
    let found: Vec<String> = [
        found_in("src/ceph", &K8S),
        found_in("src/k8s", &[CEPH]),
        found_in("src/node", &of_node),
        found_in("src/sim", &of_sim),
    ]
    .concat();
    assert!(found.is_empty(), "{found:#?}");
}

/// Checks that the agent, which is compiled on Linux only, is used in one place.
///
/// All other commands then work on a laptop with another system. `build/mac` compiles them for macOS.
#[test]
fn only_the_command_node_uses_the_agent() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let uses = |path: &&PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        !path.starts_with(root.join("node")) && text.lines().any(|line| code(line).contains("crate::node"))
    };
    let found: Vec<_> = sources(&root).iter().filter(uses).cloned().collect();
    assert_eq!(found, [root.join("commands/node.rs")]);
}

/// Checks that an act whose outcome is unknown is decided again.
///
/// Only questions to Ceph (`Ceph::read`, not `Ceph::act`), reads of Kubernetes and an agent's report are
/// retried in place. A report says the same however often it is sent.
#[test]
fn in_place_retry_is_limited_to_reads_and_reports() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let tries = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let calls = text.lines().filter(|line| code(line).contains(".retry(")).count();
        (path.strip_prefix(&root).unwrap().display().to_string(), calls)
    };
    let found: Vec<_> = sources(&root).iter().map(tries).filter(|(_, calls)| *calls > 0).collect();
    let expected = ["ceph/session.rs", "k8s/client/list.rs", "k8s/nodes/report_map.rs"];
    assert_eq!(found, expected.map(|file| (file.to_owned(), 1)));
}

#[test]
fn impurity_is_found_in_code_and_not_in_comments() {
    let found = |text| findings(text, &of_the_domain()).len();
    assert_eq!(found("//! no async, no tokio\nlet x = 1; // Utc::now"), 0);
    assert_eq!(found("let at = Utc::now();\nasync fn f() {}"), 2);
}
