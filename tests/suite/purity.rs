//! The domain decides and does nothing else: its sources name no runtime, no clock, no output, no unordered map.
//!
//! Of crates it imports serde, thiserror, chrono's types, uuid, and regex: the filters for disks are regular expressions of
//! their owner's, and matching one depends on nothing but pattern and text.

use std::fs;
use std::path::{Path, PathBuf};

/// What must not be there, and why.
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

/// The line without its comment. (A `//` in a text is taken for one too: it hides too much of texts, never of code.)
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

fn findings(text: &str) -> Vec<String> {
    let banned = || BANNED.iter().chain(&ALSO_BANNED);
    text.lines()
        .enumerate()
        .flat_map(|(number, line)| {
            banned()
                .filter(move |(word, _)| code(line).contains(word))
                .map(move |(word, why)| format!("{}: {word} ({why})", number + 1))
        })
        .collect()
}

#[test]
fn the_domain_is_pure() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/domain");
    let sources = sources(&folder);
    assert!(sources.len() >= 10, "the sources moved: {sources:?}");
    let found: Vec<String> = sources
        .iter()
        .flat_map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            findings(&fs::read_to_string(path).unwrap()).into_iter().map(move |what| format!("{name}:{what}"))
        })
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn impurity_is_found_in_code_and_not_in_comments() {
    assert_eq!(findings("//! no async, no tokio\nlet x = 1; // Utc::now").len(), 0);
    assert_eq!(findings("let at = Utc::now();\nasync fn f() {}").len(), 2);
}
